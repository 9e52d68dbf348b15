"""PodTopologySpread: pods like this one spread evenly over the domains of a topology.

It keeps no counts of its own: those live in ``columns``. Only ``plugins`` imports it.
"""
