"""The HTTP face of the server: paths, content negotiation, verbs, lists, watches, discovery.

No rule about an object's content may live here. Only ``devserver.app`` imports it.
"""
