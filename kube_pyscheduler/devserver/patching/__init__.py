"""The four kinds of patch as pure functions over JSON objects.

No store and no HTTP may live here. The registry and the HTTP verbs import it.
"""
