"""What the pods of a measurement ask for, and what the cluster has besides nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from bench.devices import Claims, add_devices
from bench.labels import HOSTNAME, ZONE
from bench.volumes import add_storage, volume_spec
from kube_pyscheduler.cache.cache import Cache
from kube_pyscheduler.engine.decision import Decision
from kube_pyscheduler.objects.pod import Pod

Document = dict[str, Any]


def nothing_more(cache: Cache) -> None:
    """Nodes and pods are all."""


class Company(Protocol):
    """What single pods come with."""

    def before(self, cache: Cache, template: int, pod: Document) -> None:
        """Before it is decided on."""

    def bound(self, cache: Cache, pod: Pod, decision: Decision) -> None:
        """When it was decided on."""

    def gone(self, cache: Cache, uid: str) -> None:
        """When it is deleted."""


class Alone:
    """Pods come with nothing."""

    def before(self, cache: Cache, template: int, pod: Document) -> None:
        return None

    def bound(self, cache: Cache, pod: Pod, decision: Decision) -> None:
        return None

    def gone(self, cache: Cache, uid: str) -> None:
        return None


ALONE = Alone()


@dataclass(frozen=True, slots=True)
class Scenario:
    """``spec``: what a template's pods have in their spec besides a container, by the template's number; its pods are
    labelled ``app=app-<number>``. ``prepare``: adds to the cluster what else is needed, before there are pods;
    ``company``: what single pods come with.
    ``promised``: so many more pods, of the same templates, that were promised nodes."""

    name: str
    spec: Callable[[int], Document]
    prepare: Callable[[Cache], None] = nothing_more
    company: Company = ALONE
    promised: int = 0


def _plain(number: int) -> Document:
    return {}


def _node_affinity(number: int) -> Document:
    wanted = {"key": "disk", "operator": "In", "values": ["ssd"] if number % 2 else ["ssd", "nvme"]}
    liked = {"key": ZONE, "operator": "In", "values": [f"zone-{number % 10}"]}
    return {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [wanted]}]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 10, "preference": {"matchExpressions": [liked]}}
                ],
            }
        }
    }


def _own(number: int) -> Document:
    return {"matchLabels": {"app": f"app-{number}"}}


def _spread(when: str) -> Callable[[int], Document]:
    def spec(number: int) -> Document:
        return {
            "topologySpreadConstraints": [
                {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": _own(number)}
                for key, skew in ((ZONE, 1), (HOSTNAME, 2))
            ]
        }

    return spec


def _required(kind: str, key: str) -> Callable[[int], Document]:
    def spec(number: int) -> Document:
        term = {"topologyKey": key, "labelSelector": _own(number)}
        return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}

    return spec


def _preferred(number: int) -> Document:
    """Half of the templates want their pods together, half apart."""
    terms = [
        {"weight": weight, "podAffinityTerm": {"topologyKey": key, "labelSelector": _own(number)}}
        for key, weight in ((ZONE, 10), (HOSTNAME, 1))
    ]
    kind = "podAffinity" if number % 2 else "podAntiAffinity"
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}


SCENARIOS = (
    Scenario("basic", _plain),
    Scenario("basic-500-nominated", _plain, promised=500),
    Scenario("node-affinity", _node_affinity),
    Scenario("hard-spread", _spread("DoNotSchedule")),
    Scenario("soft-spread", _spread("ScheduleAnyway")),
    Scenario("required-anti-affinity", _required("podAntiAffinity", HOSTNAME)),
    Scenario("required-affinity", _required("podAffinity", ZONE)),
    Scenario("preferred-affinity", _preferred),
    Scenario("volumes", volume_spec, add_storage),
    Scenario("dra", _plain, add_devices, Claims()),
)
