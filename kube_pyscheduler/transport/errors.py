"""What can go wrong between us and an API server: one class for each answer that somebody handles.

``NetworkError`` means that no answer came; every ``APIError`` is an answer.
"""

from __future__ import annotations

from typing import Any

import msgspec

_COMPACTED = "required revision has been compacted"
_TOO_LARGE = "Too large resource version"


class NetworkError(Exception):
    """No answer: the connection failed, broke, or the deadline passed. The HTTP library's error is chained.

    ``sent`` is False only where the request certainly never reached the server; else it may have been done.
    """

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class Silent(NetworkError):
    """A stream brought nothing for too long."""


class MayNotWrite(NetworkError):
    """The request was not sent because we do not lead any more."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=False)


class APIError(Exception):
    """The server said no.

    ``code`` is the HTTP status, ``reason`` and ``message`` come from the Status body ("" and the body's text where
    there is none), ``retry_after`` is the server's wish in seconds or None.
    """

    def __init__(self, code: int, reason: str, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(f"{message or reason or 'request failed'} (HTTP {code})")
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


class Unauthorized(APIError):
    """401: the credentials are missing, wrong or expired."""


class Forbidden(APIError):
    """403: RBAC says no, or the namespace is being deleted."""


class NotFound(APIError):
    """404: no such object, or no such kind."""


class Conflict(APIError):
    """409: stale version, wrong uid, or already bound. Also the 422 for a patch that names another uid."""


class AlreadyExists(APIError):
    """409 on a create: the name is taken."""


class Gone(APIError):
    """410 and its disguises: the version asked for is no longer (or not yet) known, so everything is to be listed."""


class TooManyRequests(APIError):
    """429: the server sheds load, or a disruption budget refuses an eviction."""


class ServerError(APIError):
    """5xx: the server failed, and a write may have been done nevertheless."""


_BY_CODE: dict[int, type[APIError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    429: TooManyRequests,
}


def from_status(status: Any, *, code: int = 0, retry_after: float | None = None) -> APIError:
    """The error for a decoded ``metav1.Status``; ``code`` is used where the status carries none."""
    if not isinstance(status, dict):
        status = {}
    code = code or _int(status.get("code"))
    reason = _text(status.get("reason"))
    message = _text(status.get("message"))
    if _is_gone(code, reason, message, status.get("details")):
        cls: type[APIError] = Gone
    elif code == 422 and _is_about_another(status.get("details")):
        cls = Conflict
    elif reason == "AlreadyExists":
        cls = AlreadyExists
    elif code >= 500:
        cls = ServerError
    else:
        cls = _BY_CODE.get(code, APIError)
    return cls(code, reason, message, retry_after=retry_after)


def from_body(code: int, body: bytes, *, retry_after: float | None = None) -> APIError:
    """The error for an HTTP answer; a body that is no Status (a proxy's page) is quoted, cut to 200 bytes."""
    try:
        status = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = {"message": body[:200].decode(errors="replace").strip()}
    return from_status(status, code=code, retry_after=retry_after)


def _is_about_another(details: Any) -> bool:
    """Whether the refusal is that a patch would change the object's uid: it was meant for another object."""
    return any(cause.get("field") == "metadata.uid" for cause in _causes(details))


def _causes(details: Any) -> list[dict[str, Any]]:
    causes = details.get("causes") if isinstance(details, dict) else None
    return [cause for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []


def _is_gone(code: int, reason: str, message: str, details: Any) -> bool:
    """410, a compaction reported as an internal error, or a version from the server's future (its data were restored
    from a backup). Source: client-go/tools/cache/reflector.go, isExpiredError and isTooLargeResourceVersionError."""
    if code == 410 or reason in ("Expired", "Gone"):
        return True
    if code < 500:
        return False
    texts = [message]
    for cause in _causes(details):
        if cause.get("reason") == "ResourceVersionTooLarge":
            return True
        texts.append(_text(cause.get("message")))
    return any(_COMPACTED in text or _TOO_LARGE in text for text in texts)


def _int(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
