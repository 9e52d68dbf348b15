"""CEL expressions over devices: compiled once, evaluated with the results and errors of cel-go in Kubernetes v1.36.

No lookup of claims or slices and no caching by device may live here. ``devices`` imports it.
"""
