"""All cases through one cache and one engine."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import msgspec

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.errors import ConfigError
from kube_pyscheduler.config.load import load_profile
from kube_pyscheduler.engine.engine import Engine
from kube_pyscheduler.framework.profile import Profile, build_profile
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.kinds import Kind
from kube_pyscheduler.plugins import IN_TREE
from kube_pyscheduler.scheduler.ports import NullObserver
from kube_pyscheduler.scheduler.scheduler import Ports, Scheduler
from tests.clusters import QuietHandle
from tests.parity.compare import BROKEN, FILTER_KEYS, differences
from tests.parity.corpus_files import Case
from tests.parity.verdict import verdict
from tests.parity.world import decoded, in_random_order


@dataclass(frozen=True, slots=True)
class Result:
    """``wrong``: the keys of ``expected`` where ``got`` differs."""

    case: Case
    got: dict[str, Any]
    wrong: list[str]

    @property
    def filter_exact(self) -> bool:
        return not FILTER_KEYS.intersection(self.wrong)


def silent_ports() -> Ports:
    """A world that is never asked: nothing is bound here."""
    nothing: Any = NullObserver()
    return Ports(**{port.name: nothing for port in fields(Ports)})


class Runner:
    """Holds the one cluster. The objects of a case arrive in an order drawn from ``seed`` and leave before the next."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = random.Random(seed)
        self._profiles: dict[bytes, Profile] = {}
        default = self._profile({})
        self._scheduler = Scheduler({"default-scheduler": default}, silent_ports(), rng=self._rng)
        cache = self._scheduler.cache
        handle = QuietHandle(self._scheduler.queue.nominator)
        self._engine = Engine(cache.table, cache.listers, handle)
        self._present: list[tuple[Kind[Any], Any]] = []

    def run(self, cases: list[Case]) -> Iterator[Result]:
        """A case that breaks us is one that failed: the others are run all the same."""
        for case in cases:
            try:
                got = self._verdict(case)
            except ConfigError as error:
                got = {"config_error": str(error)}
            except Exception as error:
                got = {BROKEN: repr(error)}
            yield Result(case, got, differences(case["expected"], got))

    def _verdict(self, case: Case) -> dict[str, Any]:
        self._replace(case)
        pod = PodInfo(kinds.POD.decoder.decode(msgspec.json.encode(case["pod"])))
        seed = self._rng.randrange(2**32)
        return verdict(self._engine, self._scheduler.cache.table, self._profile(case), pod, seed)

    def _profile(self, case: Case) -> Profile:
        document = case.get("profile") or {}
        key = msgspec.json.encode(document)
        if key not in self._profiles:
            self._profiles[key] = build_profile(load_profile(document), IN_TREE)
        return self._profiles[key]

    def _replace(self, case: Case) -> None:
        # Nodes last: a promise that ends with its node would have to be taken back at the API server.
        for kind, item in sorted(in_random_order(self._present, self._rng), key=lambda there: there[0] is kinds.NODE):
            self._scheduler.handle(kind.name, item, None)
        self._present = []
        self._present = decoded(case["cluster"])
        for kind, item in in_random_order(self._present, self._rng):
            self._scheduler.handle(kind.name, None, item)
