"""KubeSchedulerConfiguration v1: schema, defaults with their sources, loading with field paths in errors.

No plugin code may live here. ``framework`` and everything above it may import it.
"""
