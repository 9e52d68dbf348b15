"""The shape of every built-in kind: fields, types, merge keys; read from one data file.

No rule about values may live here. Patching, validation and the OpenAPI documents use it.
"""
