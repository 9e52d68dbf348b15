"""The demonstration: a small lively cluster, realistic workloads, the real daemon, a readable summary.

Nothing of the product may depend on it. Only ``cli`` imports it.
"""
