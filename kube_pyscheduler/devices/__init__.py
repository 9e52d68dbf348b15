"""Devices of dynamic resource allocation: the pools that nodes see, what is taken of them, which of them suit requests.

No extension point, no reading or writing of the API and no choice of nodes may live here. Plugins import it.
"""
