"""Collects what is wrong with an object, field by field, in the words of the real server.

Source: staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kube_pyscheduler.devserver.errors import Cause


def _shown(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


class Problems:
    """The causes found so far, in order; empty (and false) when the object is valid."""

    def __init__(self) -> None:
        self.causes: list[Cause] = []

    def __bool__(self) -> bool:
        return bool(self.causes)

    def required(self, path: str, why: str = "") -> None:
        self.add("FieldValueRequired", "Required value" + (f": {why}" if why else ""), path)

    def invalid(self, path: str, value: Any, why: str) -> None:
        self.add("FieldValueInvalid", f"Invalid value: {_shown(value)}: {why}", path)

    def forbidden(self, path: str, why: str) -> None:
        self.add("FieldValueForbidden", f"Forbidden: {why}", path)

    def duplicate(self, path: str, value: Any) -> None:
        self.add("FieldValueDuplicate", f"Duplicate value: {_shown(value)}", path)

    def unsupported(self, path: str, value: Any, supported: Iterable[str]) -> None:
        allowed = ", ".join(_shown(item) for item in sorted(supported))
        self.add("FieldValueNotSupported", f"Unsupported value: {_shown(value)}: supported values: {allowed}", path)

    def too_long(self, path: str, limit: int) -> None:
        self.add("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", path)

    def one_of(self, path: str, value: Any, supported: Iterable[str], *, required: bool = True) -> None:
        """The value must be one of ``supported``; an absent one only matters when it is required."""
        if value in (None, ""):
            if required:
                self.required(path)
        elif value not in supported:
            self.unsupported(path, value, supported)

    def immutable(self, path: str, new: Any, old: Any) -> None:
        if new != old:
            self.invalid(path, new, "field is immutable")

    def add(self, reason: str, message: str, path: str) -> None:
        """One cause in the words of the caller."""
        self.causes.append(Cause(reason, message, path))
