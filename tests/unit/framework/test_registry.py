from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from kube_pyscheduler.framework import registry
from kube_pyscheduler.framework.registry import ENTRY_POINT_GROUP, RegistryError, with_third_party
from tests.unit.framework.stub_plugins import REGISTRY, stub

Theirs = stub("Theirs")
NOT_CALLABLE = 3


def announce(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str]) -> None:
    def installed(**select: Any) -> EntryPoints:
        every = EntryPoints(EntryPoint(name, value, ENTRY_POINT_GROUP) for name, value in points)
        return every.select(**select)

    monkeypatch.setattr(registry, "entry_points", installed)


def test_plugins_of_other_distributions_are_found_by_their_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    announce(monkeypatch, ("Theirs", f"{__name__}:Theirs"))
    found = with_third_party(REGISTRY)
    assert found["Theirs"] is Theirs
    assert set(found) == {*REGISTRY, "Theirs"}


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("NodeName", f"{__name__}:Theirs", "is registered already"),
        ("Theirs", f"{__name__}:missing", "cannot be loaded"),
        ("Theirs", "no.such.module:X", "cannot be loaded"),
        ("Theirs", f"{__name__}:NOT_CALLABLE", "is no factory"),
    ],
)
def test_what_cannot_be_taken_in_stops(monkeypatch: pytest.MonkeyPatch, name: str, value: str, problem: str) -> None:
    announce(monkeypatch, (name, value))
    with pytest.raises(RegistryError, match=problem):
        with_third_party(REGISTRY)
