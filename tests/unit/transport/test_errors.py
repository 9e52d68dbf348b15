import json
from typing import Any

import pytest

from kube_pyscheduler.transport import errors


def _status(**fields: Any) -> bytes:
    return json.dumps({"kind": "Status", "status": "Failure", **fields}).encode()


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Gone),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerError),
        (504, "Timeout", errors.ServerError),
        (422, "Invalid", errors.APIError),
    ],
)
def test_class_by_code_and_reason(code: int, reason: str, expected: type[errors.APIError]) -> None:
    error = errors.from_body(code, _status(reason=reason, code=code, message="why"))
    assert type(error) is expected
    assert (error.code, error.reason, error.message) == (code, reason, "why")


@pytest.mark.parametrize(
    "status",
    [
        {"code": 410, "reason": "Gone", "metadata": {}},
        {"code": 410},
        {"code": 500, "message": "etcdserver: mvcc: required revision has been compacted"},
        {"code": 504, "reason": "Timeout", "message": "Too large resource version: 9, current: 3"},
        {"code": 504, "details": {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large"}]}},
        {"code": 504, "details": {"causes": [None, {"message": "Too large resource version"}]}},
    ],
)
def test_bc53_every_form_of_a_version_that_is_not_known(status: dict[str, Any]) -> None:
    assert type(errors.from_status(status)) is errors.Gone


def test_a_patch_for_another_uid_is_a_conflict() -> None:
    causes = [{"reason": "FieldValueInvalid", "message": "field is immutable", "field": "metadata.uid"}]
    error = errors.from_status({"code": 422, "reason": "Invalid", "details": {"causes": causes}})
    assert type(error) is errors.Conflict
    assert error.code == 422


def test_an_ordinary_server_error_keeps_its_version() -> None:
    assert type(errors.from_status({"code": 500, "message": "etcdserver: request timed out"})) is errors.ServerError


@pytest.mark.parametrize("body", [b"<html>bad gateway</html>", b"", b"[]", b'{"message": 5}', b"\xff\xfe"])
def test_a_body_that_is_no_status(body: bytes) -> None:
    error = errors.from_body(502, body)
    assert type(error) is errors.ServerError
    assert "502" in str(error)


def test_a_foreign_body_is_quoted() -> None:
    assert errors.from_body(502, b"<html>bad gateway</html>").message == "<html>bad gateway</html>"
