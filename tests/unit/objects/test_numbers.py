"""Numbers that the API's integers cannot hold are unreadable; those that they can hold are read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube_pyscheduler.objects.decode import DecodeError
from kube_pyscheduler.objects.kinds import POD
from kube_pyscheduler.objects.pod import Pod

METADATA = {"name": "p", "namespace": "default", "uid": "u"}


def _priority(value: int) -> dict[str, Any]:
    return {"priority": value}


def _skew(value: int) -> dict[str, Any]:
    return {"topologySpreadConstraints": [{"maxSkew": value, "topologyKey": "zone"}]}


def _weight(value: int) -> dict[str, Any]:
    term = {"weight": value, "podAffinityTerm": {"topologyKey": "zone"}}
    return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


FIELDS = (_priority, _skew, _weight)


def _raw(spec: dict[str, Any]) -> bytes:
    return json.dumps({"metadata": METADATA, "spec": {"nodeName": "n", **spec}}).encode()


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**63, 10**30])
def test_what_does_not_fit_is_unreadable_and_the_rest_is_saved(field: Any, value: int) -> None:
    with pytest.raises(DecodeError):
        POD.decoder.decode(_raw(field(value)))
    saved = POD.decoder.salvage(_raw(field(value)))
    assert isinstance(saved, Pod)
    assert saved.spec.node_name == "n"


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [2**31 - 1, -(2**31)])
def test_the_largest_numbers_are_read(field: Any, value: int) -> None:
    assert isinstance(POD.decoder.decode(_raw(field(value))), Pod)
