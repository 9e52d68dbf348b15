"""Refusals of the server: every one becomes a ``metav1.Status`` body.

Source of reasons and codes: staging/src/k8s.io/apimachinery/pkg/api/errors and meta/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class Cause(NamedTuple):
    """One entry of ``status.details.causes``: what is wrong with which field."""

    reason: str
    message: str
    field: str


class StatusError(Exception):
    """A request that is answered with ``code`` and a ``metav1.Status`` of this reason and message.

    ``resource`` is the plural with its group ("deployments.apps"); ``retry_after`` is in seconds and also sent
    as the header Retry-After.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        resource: str = "",
        name: str = "",
        uid: str = "",
        causes: Iterable[Cause] = (),
        retry_after: int = 0,
        continue_token: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.resource = resource
        self.name = name
        self.uid = uid
        self.causes = tuple(causes)
        self.retry_after = retry_after
        self.continue_token = continue_token

    def status(self) -> dict[str, Any]:
        """The ``metav1.Status`` object to answer with."""
        details: dict[str, Any] = {}
        if self.name:
            details["name"] = self.name
        if self.resource:
            plural, _, group = self.resource.partition(".")
            if group:
                details["group"] = group
            details["kind"] = plural
        if self.uid:
            details["uid"] = self.uid
        if self.causes:
            details["causes"] = [
                {k: v for k, v in (("reason", c.reason), ("message", c.message), ("field", c.field)) if v}
                for c in self.causes
            ]
        if self.retry_after:
            details["retryAfterSeconds"] = self.retry_after
        metadata = {"continue": self.continue_token} if self.continue_token else {}
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if details:
            body["details"] = details
        body["code"] = self.code
        return body


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def internal(message: str) -> StatusError:
    """What the real server answers for refusals that it does not classify."""
    return StatusError(500, "", message)


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(message: str, *, resource: str = "", name: str = "") -> StatusError:
    return StatusError(403, "Forbidden", message, resource=resource, name=name)


def not_found(resource: str, name: str) -> StatusError:
    return StatusError(404, "NotFound", f'{resource} "{name}" not found', resource=resource, name=name)


def no_such_path() -> StatusError:
    """The path names no resource that is served."""
    return StatusError(404, "NotFound", "the server could not find the requested resource")


def method_not_allowed() -> StatusError:
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def not_acceptable(accepted: Iterable[str]) -> StatusError:
    return StatusError(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(accepted)}")


def already_exists(resource: str, name: str) -> StatusError:
    return StatusError(409, "AlreadyExists", f'{resource} "{name}" already exists', resource=resource, name=name)


def conflict(resource: str, name: str, why: str, *, causes: Iterable[Cause] = ()) -> StatusError:
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return StatusError(409, "Conflict", message, resource=resource, name=name, causes=causes)


STALE = "the object has been modified; please apply your changes to the latest version and try again"


def expired(message: str, *, continue_token: str = "") -> StatusError:
    return StatusError(410, "Expired", message, continue_token=continue_token)


def unsupported_media_type(accepted: Iterable[str]) -> StatusError:
    return StatusError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted),
    )


def invalid(kind: str, group: str, name: str, causes: Iterable[Cause]) -> StatusError:
    """422 with one cause a field; ``kind`` is the CamelCase kind, as the real server reports it here."""
    causes = tuple(causes)
    lines = [f"{c.field}: {c.message}" for c in causes]
    text = lines[0] if len(lines) == 1 else "[" + ", ".join(lines) + "]"
    qualified = f"{kind}.{group}" if group else kind
    message = f'{qualified} "{name}" is invalid: {text}'
    return StatusError(422, "Invalid", message, resource=qualified, name=name, causes=causes)


def too_many_requests(message: str, *, retry_after: int = 0, causes: Iterable[Cause] = ()) -> StatusError:
    return StatusError(429, "TooManyRequests", message, retry_after=retry_after, causes=causes)
