"""Bearer tokens: fixed ones, and signed ones for ServiceAccounts that expire.

Source: pkg/serviceaccount/claims.go; the signature is an HMAC with a key that lives as long as the server.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from kube_pyscheduler.devserver.access.users import AUTHENTICATED, User, service_account
from kube_pyscheduler.devserver.resources import SERVICE_ACCOUNTS
from kube_pyscheduler.devserver.store import Store
from kube_pyscheduler.kit.clock import Clock

AUDIENCE = "https://kubernetes.default.svc"
MIN_EXPIRATION = 600
DEFAULT_EXPIRATION = 3600
"""Seconds. Source: pkg/apis/authentication/{v1/defaults.go,validation}."""


class TokenFileError(Exception):
    """A token file can't be used; the message names file and line."""


def read_token_file(path: Path) -> dict[str, User]:
    """Static tokens from CSV lines ``token,user,uid[,"group1,group2"]``, as --token-auth-file of kube-apiserver.

    TokenFileError.
    """
    users: dict[str, User] = {}
    try:
        rows = list(csv.reader(path.read_text().splitlines(), skipinitialspace=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TokenFileError(f"{path}: {error}") from error
    for number, row in enumerate(rows, 1):
        if not row or row[0].startswith("#"):
            continue
        if len(row) < 3 or not row[0] or not row[1]:
            raise TokenFileError(f'{path}:{number}: expected token,user,uid[,"group,group"]')
        groups = tuple(filter(None, row[3].split(","))) if len(row) > 3 else ()
        users[row[0]] = User(row[1], (*groups, AUTHENTICATED), row[2])
    return users


def _encode(part: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(part)).rstrip(b"=").decode()


def _decode(part: str) -> Any:
    return msgspec.json.decode(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


class Tokens:
    """Issues ServiceAccount tokens and tells who a token belongs to."""

    def __init__(self, store: Store, clock: Clock, static: Mapping[str, User]) -> None:
        self._store = store
        self._clock = clock
        self._static = dict(static)
        self._key = secrets.token_bytes(32)

    def issue(self, namespace: str, name: str, uid: str, seconds: int, audiences: list[str]) -> tuple[str, float]:
        """A token for a ServiceAccount and the time (seconds since the epoch) at which it expires."""
        now = self._clock.now()
        expires = now + seconds
        claims = {
            "aud": audiences,
            "exp": int(expires),
            "iat": int(now),
            "nbf": int(now),
            "iss": AUDIENCE,
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        signed = f"{_encode({'alg': 'HS256', 'typ': 'JWT'})}.{_encode(claims)}"
        return f"{signed}.{self._signature(signed)}", expires

    def user_of(self, token: str, audiences: list[str] | None = None) -> User | None:
        """The user a token stands for; None when it is unknown, expired, or meant for other audiences."""
        static = self._static.get(token)
        if static is not None:
            return static
        signed, _, signature = token.rpartition(".")
        if not signed or not hmac.compare_digest(signature, self._signature(signed)):
            return None
        claims = _decode(signed.partition(".")[2])
        if claims["exp"] <= self._clock.now() or not set(claims["aud"]) & set(audiences or [AUDIENCE]):
            return None
        about = claims["kubernetes.io"]
        namespace, account = about["namespace"], about["serviceaccount"]
        current = self._store.get(SERVICE_ACCOUNTS, namespace, account["name"])
        if current is None or current["metadata"]["uid"] != account["uid"]:
            return None
        return service_account(namespace, account["name"], account["uid"])

    def _signature(self, signed: str) -> str:
        digest = hmac.new(self._key, signed.encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
