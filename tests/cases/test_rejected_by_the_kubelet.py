"""A pod that the kubelet turned away is gone from the books, and its replacement waits."""

from __future__ import annotations

import random

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.load import load_profile
from kube_pyscheduler.framework.profile import build_profile
from kube_pyscheduler.plugins import IN_TREE
from kube_pyscheduler.scheduler.scheduler import Scheduler
from tests.builders import make_node, make_pod
from tests.parity.runner import silent_ports


def test_bc_50_a_pod_the_kubelet_failed_is_no_longer_charged_and_is_not_tried_again() -> None:
    profile = build_profile(load_profile({}), IN_TREE)
    scheduler = Scheduler({"pysched": profile}, silent_ports(), rng=random.Random(0))
    scheduler.handle("Node", None, make_node("n1"))
    requests = {"cpu": "3"}
    ours, theirs = make_pod("a", node="n1", requests=requests), make_pod("b", node="n1", requests=requests)
    scheduler.handle("Pod", None, ours)
    scheduler.handle("Pod", None, theirs)
    row = scheduler.cache.table.row_of["n1"]
    assert scheduler.cache.table.requested[0, row] == 6000
    failed = make_pod("b", node="n1", requests=requests, status={"phase": "Failed", "reason": "OutOfcpu"})
    scheduler.handle("Pod", theirs, failed)
    assert scheduler.cache.table.requested[0, row] == 3000
    assert theirs.uid not in scheduler.queue
    replacement = make_pod("b", uid="another", requests=requests)
    decision = scheduler._decide(profile, PodInfo(replacement))
    assert decision.node is None
    assert "1 Insufficient cpu" in decision.status.message
    scheduler.handle("Pod", ours, None)
    assert scheduler._decide(profile, PodInfo(replacement)).node == "n1"
