"""What every handler needs of the server."""

from __future__ import annotations

from dataclasses import dataclass, field

from kube_pyscheduler.devserver.access.rbac import Authorizer
from kube_pyscheduler.devserver.access.reviews import Reviews
from kube_pyscheduler.devserver.access.tokens import Tokens
from kube_pyscheduler.devserver.access.users import User
from kube_pyscheduler.devserver.http.watching import Watch
from kube_pyscheduler.devserver.registry import Registry
from kube_pyscheduler.devserver.resources import ResourceTable
from kube_pyscheduler.devserver.store import Store


@dataclass(slots=True)
class Context:
    """One server's parts and its open watches."""

    store: Store
    table: ResourceTable
    registry: Registry
    tokens: Tokens
    authorizer: Authorizer
    reviews: Reviews
    tokenless: User
    """Who a request without a token is: an administrator on a local plain-text socket, else nobody."""
    bookmark_seconds: float = 60.0
    """Time between bookmarks of a watch; the real server sends one about every minute."""
    watches: set[Watch] = field(default_factory=set)
