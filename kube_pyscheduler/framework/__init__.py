"""Contracts only: extension points, statuses, cluster events, handles, profiles.

No plugin and no algorithm may live here. The engine, plugins, cache, queue and everything above import it.
"""
