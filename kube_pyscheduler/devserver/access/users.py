"""The identity behind a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"


@dataclass(frozen=True, slots=True)
class User:
    """A user as the authorizer sees it. Source: staging/src/k8s.io/apiserver/pkg/authentication/user."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, list[str]] = field(default_factory=dict)

    def info(self) -> dict[str, Any]:
        """authentication.k8s.io/v1 UserInfo."""
        found: dict[str, Any] = {"username": self.name, "groups": list(self.groups)}
        if self.uid:
            found["uid"] = self.uid
        if self.extra:
            found["extra"] = self.extra
        return found


ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))
ADMIN = User("kubernetes-admin", (MASTERS, AUTHENTICATED))


def service_account(namespace: str, name: str, uid: str) -> User:
    """The user that a ServiceAccount's token stands for."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return User(f"system:serviceaccount:{namespace}:{name}", groups, uid)
