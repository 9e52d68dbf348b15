from __future__ import annotations

import gc
import random
import weakref

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Rows
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.load import load_profile
from kube_pyscheduler.engine.compiled import Compiler
from kube_pyscheduler.framework.interfaces import CycleContext, FilterKernel, NodeFilter, Scope
from kube_pyscheduler.framework.profile import build_profile
from kube_pyscheduler.plugins import IN_TREE
from tests.builders import make_node, make_pod
from tests.clusters import Cluster


class Kernel(FilterKernel):
    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        return np.zeros(len(table.alive[rows]), dtype=np.uint8)


class Counting(NodeFilter):
    """Notes for which pods it made kernels."""

    name = "Counting"
    scope = Scope.NODE

    def __init__(self) -> None:
        self.built: list[str] = []

    def fragment(self, pod: PodInfo) -> str:
        return pod.pod.name

    def filter_kernel(self, _ctx: CycleContext, pod: PodInfo) -> FilterKernel:
        self.built.append(pod.pod.name)
        return Kernel()


def built(pods: str, **limits: int) -> str:
    """For which pods kernels were made when these, one letter each, were asked for in turn."""
    cluster = Cluster([make_node("n1"), make_node("n2")])
    plugin = Counting()
    cluster.add_filter(plugin)
    ctx = cluster.engine.cycle(cluster.profile, PodInfo(make_pod("z")), random.Random(0))[0].ctx
    plugin.built.clear()
    compiler = Compiler(cluster.profile, **limits)
    for name in pods:
        compiler.compiled(ctx, PodInfo(make_pod(name)))
    return "".join(plugin.built)


def test_a_signature_is_compiled_once() -> None:
    assert built("aabbaab") == "ab"


def test_nothing_is_kept_of_profiles_that_are_not() -> None:
    cluster = Cluster([make_node("n1")])
    kept = Counting()
    cluster.add_filter(kept)
    config = load_profile({"plugins": {"filter": {"enabled": [{"name": Counting.name}]}}})
    gone = build_profile(config, {**IN_TREE, Counting.name: lambda _args: Counting()})
    plugin = weakref.ref(gone.plugins[Counting.name])
    cluster.engine.cycle(cluster.profile, PodInfo(make_pod("a")))
    cluster.engine.cycle(gone, PodInfo(make_pod("a")))
    cluster.engine.keep([cluster.profile])
    del gone
    gc.collect()
    assert plugin() is None
    cluster.engine.cycle(cluster.profile, PodInfo(make_pod("a")))
    assert kept.built == ["a"]


def test_the_least_recently_used_signatures_go_beyond_the_limit() -> None:
    assert built("abacab", max_signatures=2) == "abcb"


def test_the_latest_signature_stays_however_large_it_is() -> None:
    assert built("aabba", max_bytes=1) == "aba"
