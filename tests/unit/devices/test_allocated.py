"""What claims have, followed as they change."""

from __future__ import annotations

import pytest

from kube_pyscheduler.devices import allocated
from kube_pyscheduler.devices.allocated import AllocatedDevices
from kube_pyscheduler.framework.listers import WrittenLister
from kube_pyscheduler.objects.resource import AllocatedDevice, ResourceClaim
from tests.plugins.dynamic_resources.world import DRIVER, allocation, make_claim

POOL = (DRIVER, "n0")


@pytest.fixture
def claims() -> WrittenLister[ResourceClaim]:
    lister: WrittenLister[ResourceClaim] = WrittenLister()
    lister.put(make_claim("a", status=allocation(("n0", "x"))))
    share = allocation(("n0", "y"), shareID="1", consumedCapacity={"memory": "10"})
    lister.put(make_claim("b", status=share))
    lister.put(make_claim("c", status=allocation(("n0", "z"), adminAccess=True)))
    return lister


def test_devices_are_taken_whole_shared_or_not_at_all(claims: WrittenLister[ResourceClaim]) -> None:
    known = AllocatedDevices()
    known.sync(claims)
    use = known.use_of(POOL)
    assert (use.whole, use.shared) == ({"x": 1}, {"y": 1})
    assert [use.is_taken(device) for device in "xyz"] == [True, True, False]
    assert known.amounts_of(POOL, "y") == {"memory": 10 * 10**9}
    assert known.amounts_of(POOL, "x") == {}
    assert not known.use_of((DRIVER, "other")).whole


def test_shares_add_up_and_go(claims: WrittenLister[ResourceClaim]) -> None:
    known = AllocatedDevices()
    known.sync(claims)
    more = make_claim("d", status=allocation(("n0", "y"), shareID="2", consumedCapacity={"memory": "5", "cores": "1"}))
    claims.put(more)
    known.sync(claims)
    assert known.amounts_of(POOL, "y") == {"memory": 15 * 10**9, "cores": 10**9}
    claims.remove(more)
    claims.remove(make_claim("b"))
    known.sync(claims)
    assert known.amounts_of(POOL, "y") == {}
    assert known.use_of(POOL).shared == {}


def test_what_is_assumed_counts_and_what_comes_to_nothing_does_not(claims: WrittenLister[ResourceClaim]) -> None:
    known = AllocatedDevices()
    known.sync(claims)
    devices = [AllocatedDevice("a", DRIVER, "n1", "x")]
    assert not known.is_in_flight("u")
    known.take("u", devices)
    assert known.is_in_flight("u")
    assert known.use_of((DRIVER, "n1")).is_taken("x")
    known.give_back("u")
    known.give_back("u")
    assert not known.is_in_flight("u")
    assert not known.use_of((DRIVER, "n1")).is_taken("x")
    claims.assume(make_claim("a", version="2"))
    known.sync(claims)
    assert not known.use_of(POOL).is_taken("x")


def test_two_claims_on_one_device_both_have_to_go(claims: WrittenLister[ResourceClaim]) -> None:
    known = AllocatedDevices()
    claims.put(make_claim("again", status=allocation(("n0", "x"))))
    known.sync(claims)
    claims.remove(make_claim("a"))
    known.sync(claims)
    assert known.use_of(POOL).is_taken("x")
    claims.remove(make_claim("again"))
    known.sync(claims)
    assert not known.use_of(POOL).is_taken("x")


def test_readers_are_told_which_pools_changed(
    claims: WrittenLister[ResourceClaim], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocated, "KEEP", 4)
    known = AllocatedDevices()
    known.sync(claims)
    seen = known.position
    assert known.changed_since(seen) == set()
    known.take("u", [AllocatedDevice("a", DRIVER, "n1", "x")])
    assert known.changed_since(seen) == {(DRIVER, "n1")}
    for _turn in range(8):
        known.give_back("u")
        known.take("u", [AllocatedDevice("a", DRIVER, "n2", "x")])
    assert known.changed_since(seen) is None
    assert known.changed_since(known.position - 3) == {(DRIVER, "n2")}
