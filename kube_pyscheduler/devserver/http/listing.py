"""GET on collections: one consistent list, in pages, at the resourceVersion asked for.

Source: staging/src/k8s.io/apiserver/pkg/storage/{etcd3/store.go,continue.go}.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import msgspec

from kube_pyscheduler.devserver import errors
from kube_pyscheduler.devserver.problems import Problems
from kube_pyscheduler.devserver.resources import Resource
from kube_pyscheduler.devserver.selectors import Predicate
from kube_pyscheduler.devserver.store import Key, Store, Stored


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list. ``remaining`` is None when unknown (a selector is set) or nothing remains."""

    items: list[Stored]
    revision: int
    continue_token: str = ""
    remaining: int | None = None


class _Token(msgspec.Struct):
    """Contents of a continue token: the snapshot (-1: whatever is current) and the last key sent."""

    rv: int
    start: tuple[str, str]


def _encode(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).rstrip(b"=").decode()


def _decode(text: str) -> _Token:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=_Token)
    except (ValueError, msgspec.DecodeError):
        raise errors.bad_request("continue key is not valid") from None


def number(query: Mapping[str, str], key: str) -> int:
    """A number of a query; 0 when absent, 400 when it is none."""
    text = query.get(key) or "0"
    if not text.isdecimal():
        raise errors.bad_request(f"invalid {key}: {text!r}")
    return int(text)


def list_page(
    store: Store, resource: Resource, namespace: str, query: Mapping[str, str], predicate: Predicate | None
) -> Page:
    """The page that the query (limit, continue, resourceVersion, resourceVersionMatch) asks for."""
    limit = number(query, "limit")
    wanted = number(query, "resourceVersion")
    if query.get("resourceVersion") == "0":
        limit = 0  # The real server answers such lists from its cache, whole.
    match = _version_match(query, wanted)
    after: Key | None = None
    revision = store.revision
    if text := query.get("continue"):
        if wanted:
            raise errors.bad_request("specifying resource version is not allowed when using continue")
        token = _decode(text)
        after = token.start
        if token.rv >= 0:
            revision = token.rv
    elif wanted and (match == "Exact" or (limit and not match)):
        revision = wanted
    check_revision(store, wanted)
    try:
        candidates = store.snapshot(resource, revision, after=after)
    except errors.StatusError as error:
        if not after:
            raise
        fresh = _encode(_Token(-1, after))
        raise errors.expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new "
            "list without the continue parameter, or use the continue token in this response to retrieve the "
            "remainder of the results.",
            continue_token=fresh,
        ) from error
    return _cut(_matching(candidates, namespace, predicate), limit, revision, counted=predicate is None)


def _version_match(query: Mapping[str, str], wanted: int) -> str:
    """The resourceVersionMatch of a list; 422 where it makes no sense.

    Source: staging/src/k8s.io/apimachinery/pkg/apis/meta/internalversion/validation/validation.go.
    """
    match = query.get("resourceVersionMatch", "")
    problems = Problems()
    if "sendInitialEvents" in query:
        problems.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
    if match:
        if not query.get("resourceVersion"):
            problems.forbidden(
                "resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"
            )
        if query.get("continue"):
            problems.forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
        problems.one_of("resourceVersionMatch", match, ("Exact", "NotOlderThan", ""))
        if match == "Exact" and not wanted:
            problems.forbidden(
                "resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            )
    refuse_options(problems)
    return match


def refuse_options(problems: Problems) -> None:
    """422 for the options of a list or watch when there are problems."""
    if problems:
        raise errors.invalid("ListOptions", "meta.k8s.io", "", problems.causes)


def _matching(candidates: Iterator[Stored], namespace: str, predicate: Predicate | None) -> Iterator[Stored]:
    if namespace:
        candidates = (stored for stored in candidates if stored.key[0] == namespace)
    if predicate is None:
        return candidates
    return (stored for stored in candidates if predicate(stored.obj))


def _cut(found: Iterator[Stored], limit: int, revision: int, *, counted: bool) -> Page:
    if not limit:
        return Page(list(found), revision)
    items = list(islice(found, limit))
    rest = list(found) if counted else list(islice(found, 1))
    if not rest:
        return Page(items, revision)
    token = _encode(_Token(revision, items[-1].key))
    return Page(items, revision, token, len(rest) if counted else None)


def check_revision(store: Store, wanted: int) -> None:
    """Refuse a resourceVersion of the future, as the real server does after waiting for it in vain."""
    if wanted > store.revision:
        raise errors.StatusError(
            504,
            "Timeout",
            f"Too large resource version: {wanted}, current: {store.revision}",
            causes=[errors.Cause("ResourceVersionTooLarge", "Too large resource version", "")],
            retry_after=1,
        )
