"""What must not happen to the cache."""

from __future__ import annotations


class CacheInvariantError(Exception):
    """A transition that cannot be, such as assuming a pod twice."""
