"""Who may read the secure port: bearer tokens and what they allow are judged by the API server.

Source: delegated authentication and authorisation in k8s.io/apiserver/pkg/server/options.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from aiohttp import web

from kube_pyscheduler.kit.clock import Clock
from kube_pyscheduler.kit.verbosity import Log

log = Log(__name__)

T = TypeVar("T")

CACHE_SECONDS = 10.0
"""How long an answer of the API server holds, good or bad. Source: as above."""

CACHE_SIZE = 1024
"""Answers kept at most, so that guessed tokens cannot fill the memory."""

ALWAYS_ALLOWED = ("/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*")
"""Paths that need no token; a ``*`` at the end stands for anything. Upstream leaves the single checks out."""

SUPERUSERS = "system:masters"
"""A group that may do anything."""


@dataclass(frozen=True, slots=True)
class User:
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Access:
    allowed: bool
    reason: str = ""


TokenReviewer = Callable[[str], Awaitable[User | None]]
"""Whose token it is, None for nobody's. Raises whatever the transport raises."""

AccessReviewer = Callable[[User, str, str], Awaitable[Access]]
"""Whether a user may do a verb (``get``) on a path."""


class ExpiringCache(Generic[T]):
    """Remembers values for a while; the oldest give way when there are too many."""

    def __init__(self, clock: Clock, size: int = CACHE_SIZE) -> None:
        self._clock = clock
        self._size = size
        self._entries: dict[Any, tuple[float, T]] = {}

    def get(self, key: Any) -> T | None:
        entry = self._entries.get(key)
        if entry is None or entry[0] <= self._clock.monotonic():
            return None
        return entry[1]

    def put(self, key: Any, value: T, seconds: float) -> None:
        self._entries.pop(key, None)
        if len(self._entries) >= self._size:
            del self._entries[next(iter(self._entries))]
        self._entries[key] = (self._clock.monotonic() + seconds, value)


@dataclass(frozen=True, slots=True)
class GuardOptions:
    """Seconds that answers are kept, and paths that need none."""

    token_seconds: float = CACHE_SECONDS
    allowed_seconds: float = CACHE_SECONDS
    denied_seconds: float = CACHE_SECONDS
    always_allowed: Sequence[str] = ALWAYS_ALLOWED


class DelegatingGuard:
    """See the module. A client certificate that the TLS layer verified counts as well as a token."""

    def __init__(
        self, review_token: TokenReviewer, review_access: AccessReviewer, clock: Clock, options: GuardOptions
    ) -> None:
        self._review_token = review_token
        self._review_access = review_access
        self._options = options
        self._tokens: ExpiringCache[tuple[User | None]] = ExpiringCache(clock)
        self._accesses: ExpiringCache[Access] = ExpiringCache(clock)

    async def refusal(self, request: web.Request) -> web.Response | None:
        path, verb = request.path, request.method.lower()
        if any(_matches(pattern, path) for pattern in self._options.always_allowed):
            return None
        user = _certified(request) or await self._owner_of(_token(request.headers.get("Authorization", "")))
        if user is None:
            return _status(401, "Unauthorized", "Unauthorized")
        if SUPERUSERS in user.groups:
            return None
        try:
            access = await self._may(user, verb, path)
        except Exception as error:
            log.error("Cannot find out what a user may do", error, user=user.name, verb=verb, path=path)
            return web.Response(status=500, text=f'Internal Server Error: "{path}"\n')
        if access.allowed:
            return None
        why = f": {access.reason}" if access.reason else ""
        return _status(403, "Forbidden", f'forbidden: User "{user.name}" cannot {verb} path "{path}"{why}')

    async def _owner_of(self, token: str) -> User | None:
        if not token:
            return None
        key = hashlib.sha256(token.encode()).digest()
        known = self._tokens.get(key)
        if known is not None:
            return known[0]
        try:
            user = await self._review_token(token)
        except Exception as error:
            log.error("Cannot find out whose a token is", error)
            return None
        self._tokens.put(key, (user,), self._options.token_seconds)
        return user

    async def _may(self, user: User, verb: str, path: str) -> Access:
        key = (user.name, user.uid, user.groups, verb, path)
        known = self._accesses.get(key)
        if known is not None:
            return known
        access = await self._review_access(user, verb, path)
        seconds = self._options.allowed_seconds if access.allowed else self._options.denied_seconds
        self._accesses.put(key, access, seconds)
        return access


def _matches(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern


def _token(header: str) -> str:
    scheme, _, token = header.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _certified(request: web.Request) -> User | None:
    """The user a verified client certificate names: common name and organisations."""
    certificate = request.transport.get_extra_info("peercert") if request.transport is not None else None
    if not certificate:
        return None
    subject = [attribute for name in certificate.get("subject", ()) for attribute in name]
    names = [value for key, value in subject if key == "commonName"]
    groups = tuple(value for key, value in subject if key == "organizationName")
    return User(names[0], groups=(*groups, "system:authenticated")) if names else None


def _status(code: int, reason: str, message: str) -> web.Response:
    """A metav1.Status, as API servers refuse."""
    body: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    if code == 403:
        body["details"] = {}
    return web.json_response(body, status=code)
