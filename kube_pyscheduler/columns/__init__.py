"""Numpy tables: the cluster as columns, one row a node.

No plugin rule and no I/O may live here. ``framework`` and everything above it may import it.
"""
