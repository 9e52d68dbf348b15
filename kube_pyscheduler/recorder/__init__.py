"""Event objects (events.k8s.io/v1): aggregated, rate limited, never in anybody's way.

Nothing here may block a binding. The daemon wires it behind a port.
"""
