"""What a request takes of a capacity that several share, and whether it may."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube_pyscheduler.devices.capacity import consumed, has_room, nano
from kube_pyscheduler.objects.resource import DeviceCapacity


def offered(value: str, **policy: Any) -> DeviceCapacity:
    return msgspec.convert({"value": value, **({"requestPolicy": policy} if policy else {})}, DeviceCapacity)


RANGE = {"validRange": {"min": "10", "max": "30", "step": "5"}}
VALUES = {"validValues": ["10", "20", "30"]}


@pytest.mark.parametrize(
    ("capacity", "wanted", "taken"),
    [
        (offered("40"), None, "40"),
        (offered("40"), "7", "7"),
        (offered("40", default="8"), None, "8"),
        (offered("40", default="8"), "7", "7"),
        (offered("40", **RANGE), "1", "10"),
        (offered("40", **RANGE), "11", "15"),
        (offered("40", **RANGE), "15", "15"),
        (offered("40", **RANGE), "32", "35"),
        (offered("40", validRange={"min": "10"}), "11", "11"),
        (offered("40Gi", validRange={"min": "1Gi", "step": "1Gi"}), "1500Mi", "2Gi"),
        (offered("40", **VALUES), "1", "10"),
        (offered("40", **VALUES), "20", "20"),
        (offered("40", **VALUES), "31", "31"),
    ],
)
def test_what_is_taken(capacity: DeviceCapacity, wanted: str | None, taken: str) -> None:
    assert str(consumed(wanted, capacity)) == taken


@pytest.mark.parametrize(
    ("capacity", "wanted", "fits"),
    [
        (offered("40"), "40", True),
        (offered("40"), "41", False),
        (offered("40", **RANGE), "30", True),
        (offered("40", **RANGE), "31", False),
        (offered("40", validRange={"min": "10", "max": "30"}), "12", True),
        (offered("40", validRange={"max": "30"}), "31", False),
        (offered("40", **VALUES), "30", True),
        (offered("40", **VALUES), "31", False),
        # What it takes by default is allowed whatever else the policy says.
        (offered("40", default="7", **VALUES), None, True),
        (offered("40", default="7", **VALUES), "5", True),
    ],
)
def test_what_a_policy_allows(capacity: DeviceCapacity, wanted: str | None, fits: bool) -> None:
    requests = {} if wanted is None else {"memory": wanted}
    assert has_room({"memory": capacity}, requests, {}, {}) is fits


def test_others_leave_so_much() -> None:
    capacity = {"memory": offered("40"), "cores": offered("4", default="1")}
    assert has_room(capacity, {"memory": "10"}, {"memory": nano("20")}, {"memory": nano("10")})
    assert not has_room(capacity, {"memory": "11"}, {"memory": nano("20")}, {"memory": nano("10")})
    assert not has_room(capacity, {"memory": "10"}, {"cores": nano("4")}, {})
    assert not has_room(capacity, {"bandwidth": "1"}, {}, {})
