import itertools
from typing import Any

import pytest

from kube_pyscheduler.kit.timestamps import rfc3339_micro
from kube_pyscheduler.leader.election import (
    Decision,
    Observed,
    Record,
    Timing,
    claim,
    decide,
    new_identity,
    release,
)

TIMING = Timing()
OURS = Record("me", 15.0, "2025-01-01T00:00:00.000000Z", "2025-01-01T00:00:10.000000Z", 3)
THEIRS = Record("them", 15.0, "2025-01-01T00:00:00.000000Z", "2025-01-01T00:00:10.000000Z", 3)
NOBODYS = Record("", 1.0, "", "", 3)
ENDLESS = Record("them")
"""As written by a client that leaves out what it may."""


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ((10, 10, 2), "lease_duration must be greater than renew_deadline"),
        ((15, 2.4, 2), r"renew_deadline must be greater than retry_period \* 1.2"),
        ((0, 10, 2), "lease_duration must be greater than zero"),
        ((15, 0, 2), "renew_deadline must be greater than zero"),
        ((15, 10, 0), "retry_period must be greater than zero"),
    ],
)
def test_impossible_timings_are_refused(values: tuple[float, float, float], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Timing(*values)


@pytest.mark.parametrize(("renew_deadline", "expected"), [(10.0, 5.0), (1.5, 1.0), (0.5, 0.5)])
def test_one_request_never_takes_all_the_time_there_is(renew_deadline: float, expected: float) -> None:
    assert Timing(15.0, renew_deadline, 0.1).request_deadline == expected


@pytest.mark.parametrize(
    ("record", "leading", "age", "expected"),
    [
        (THEIRS, False, 0.0, Decision.WAIT),
        (THEIRS, False, 14.9, Decision.WAIT),
        (THEIRS, False, 15.0, Decision.ACQUIRE),
        (ENDLESS, False, 14.9, Decision.WAIT),
        (ENDLESS, False, 15.0, Decision.ACQUIRE),
        (NOBODYS, False, 0.0, Decision.ACQUIRE),
        (OURS, False, 0.0, Decision.RENEW),
        (OURS, True, 0.0, Decision.RENEW),
        (OURS, True, 60.0, Decision.RENEW),
        (NOBODYS, True, 0.0, Decision.RENEW),
        (THEIRS, True, 0.0, Decision.LOST),
        (THEIRS, True, 60.0, Decision.LOST),
        (Record(), False, 0.0, Decision.ACQUIRE),
    ],
)
def test_decisions(record: Record, leading: bool, age: float, expected: Decision) -> None:
    assert decide(Observed(record, 100.0), "me", TIMING, leading=leading, now=100.0 + age) is expected


def test_time_starts_anew_with_every_change_and_only_then() -> None:
    seen = Observed(THEIRS, 100.0)
    assert seen.again(THEIRS, 105.0).since == 100.0
    renewed = Record("them", 15.0, THEIRS.acquire_time, "2025-01-01T00:00:12.000000Z", 3)
    assert seen.again(renewed, 105.0) == Observed(renewed, 105.0)


def test_bc58_the_times_in_a_record_mean_nothing() -> None:
    for written in ("1970-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "yesterday", ""):
        record = Record("them", 15.0, written, written, 0)
        assert decide(Observed(record, 100.0), "me", TIMING, leading=False, now=101.0) is Decision.WAIT


def test_the_first_claim() -> None:
    assert claim(None, "me", TIMING, 1_700_000_000.25) == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2023-11-14T22:13:20.250000Z",
        "renewTime": "2023-11-14T22:13:20.250000Z",
        "leaseTransitions": 0,
    }


def test_a_renewal_keeps_since_when_and_a_takeover_counts() -> None:
    renewed = claim(OURS, "me", TIMING, 0.0)
    assert (renewed["acquireTime"], renewed["leaseTransitions"]) == (OURS.acquire_time, 3)
    taken = claim(THEIRS, "me", TIMING, 0.0)
    assert (taken["acquireTime"], taken["leaseTransitions"]) == (rfc3339_micro(0.0), 4)
    assert claim(NOBODYS, "me", TIMING, 0.0)["leaseTransitions"] == 4


def test_a_fraction_of_a_second_is_not_cut_off_the_duration() -> None:
    assert claim(None, "me", Timing(2.5, 2.0, 0.1), 0.0)["leaseDurationSeconds"] == 3


def test_bc61_a_released_lease_is_a_valid_one() -> None:
    released = release(OURS, 0.0)
    assert released["holderIdentity"] == ""
    assert released["leaseDurationSeconds"] == 1
    assert released["leaseTransitions"] == 3
    assert released["renewTime"] == released["acquireTime"] == rfc3339_micro(0.0)


@pytest.mark.parametrize(
    "lease",
    [
        {},
        {"spec": None},
        {"spec": []},
        {"spec": {"holderIdentity": 5, "leaseDurationSeconds": "x", "acquireTime": None}},
    ],
)
def test_a_malformed_lease_says_nothing(lease: dict[str, Any]) -> None:
    assert Record.of(lease) == Record()


def test_every_process_has_its_own_name() -> None:
    names = {new_identity() for _ in range(3)}
    assert len(names) == 3
    assert len({name.rpartition("_")[0] for name in names}) == 1


def test_two_candidates_never_hold_it_together_by_the_rules() -> None:
    for record, age in itertools.product((OURS, THEIRS, NOBODYS), (0.0, 14.9, 15.0, 60.0)):
        seen = Observed(record, 0.0)
        if decide(seen, "me", TIMING, leading=True, now=age) is Decision.RENEW and record.holder == "me" and age < 15.0:
            assert decide(seen, "them", TIMING, leading=False, now=age) is Decision.WAIT
