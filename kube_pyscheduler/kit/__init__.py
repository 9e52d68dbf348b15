"""Helpers that know no Kubernetes: clocks, backoff, heaps, supervised tasks.

Nothing here may mention a pod, a node or an API server. Everybody may import it.
"""
