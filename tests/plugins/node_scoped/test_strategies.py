"""The one-row and the all-rows forms of the scoring kernels give the same numbers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.args import ResourceSpec
from kube_pyscheduler.config.load import load_profile
from kube_pyscheduler.framework.cycle_state import CycleState
from kube_pyscheduler.framework.interfaces import CycleContext, ScoreKernel
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.kit.rng import AlwaysFirst
from kube_pyscheduler.plugins.node_resources.allocation import BalancedKernel, scored_resources, strategy_kernel
from tests.builders import make_info, make_node, make_pod
from tests.clusters import QuietHandle

SHAPE = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 37, "score": 9}, {"utilization": 90, "score": 2}]}
RESOURCES = [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}, {"name": "example.com/gpu", "weight": 5}]


def table_of(rng: random.Random, count: int = 60) -> NodeTable:
    table = NodeTable()
    for number in range(count):
        name = f"n{number}"
        allocatable = {
            "cpu": f"{rng.randrange(0, 9000)}m",
            "memory": rng.choice(["0", "1E", "8Gi", f"{rng.randrange(1, 10**10)}"]),
            "example.com/gpu": str(rng.randrange(0, 4)),
        }
        table.set_node(make_node(name, allocatable=allocatable))
        for serial in range(rng.randrange(4)):
            requests = {"cpu": f"{rng.randrange(3000)}m", "memory": str(rng.randrange(10**9)), "example.com/gpu": "1"}
            table.add_pod(make_info(f"{name}-{serial}", node=name, requests=requests), name)
    return table


def kernels(table: NodeTable, pod: PodInfo) -> list[ScoreKernel]:
    ctx = CycleContext(table, Listers(), CycleState(), QuietHandle(), AlwaysFirst())
    made: list[ScoreKernel] = []
    for kind in ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"):
        strategy: dict[str, Any] = {"type": kind, "resources": RESOURCES}
        if kind == "RequestedToCapacityRatio":
            strategy["requestedToCapacityRatio"] = SHAPE
        args = {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}
        config = load_profile({"pluginConfig": [args]})
        kernel = strategy_kernel(ctx, config.args["NodeResourcesFit"].scoring_strategy, pod)
        assert isinstance(kernel, ScoreKernel)
        made.append(kernel)
    resources = [ResourceSpec(str(resource["name"])) for resource in RESOURCES]
    made.append(BalancedKernel(scored_resources(ctx, resources, pod.demand.charge)))
    return made


@pytest.mark.parametrize("seed", range(5))
def test_one_row_and_all_rows_agree(seed: int) -> None:
    rng = random.Random(seed)
    table = table_of(rng)
    for requests in ({"cpu": "700m", "memory": "1Gi"}, {"cpu": "2", "example.com/gpu": "2"}, {"memory": "3E"}):
        pod = PodInfo(make_pod(requests=requests))
        for kernel in kernels(table, pod):
            everywhere = kernel.scores(table, table.all_rows)
            for row in range(table.high):
                one = kernel.scores(table, np.array([row], dtype=np.int64))
                assert one.tolist() == [everywhere[row]], (type(kernel).__name__, row)
