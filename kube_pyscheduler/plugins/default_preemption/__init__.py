"""DefaultPreemption: makes room for a pod by removing pods of lower priority.

It decides who has to go, and changes nothing: carrying it out is not done here. Only ``plugins`` imports it.
"""
