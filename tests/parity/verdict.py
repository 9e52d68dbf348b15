"""Our verdict on one case, under the keys of ``expected``."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import msgspec
import numpy as np

from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.engine.cycle import AttemptFailed, Cycle
from kube_pyscheduler.engine.decision import Decision
from kube_pyscheduler.engine.engine import Engine
from kube_pyscheduler.engine.what_if import failure
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.profile import Profile
from kube_pyscheduler.framework.status import Status
from kube_pyscheduler.plugins.default_preemption.candidates import Candidate, best
from kube_pyscheduler.plugins.default_preemption.plugin import DefaultPreemption
from kube_pyscheduler.plugins.dynamic_resources.plugin import DynamicResources
from kube_pyscheduler.plugins.dynamic_resources.state import EXTENDED
from kube_pyscheduler.plugins.dynamic_resources.state import STATE as DYNAMIC_RESOURCES
from kube_pyscheduler.plugins.volume_binding.kernel import VolumeBindingKernel
from kube_pyscheduler.plugins.volume_binding.plugin import STATE as VOLUME_BINDING
from kube_pyscheduler.plugins.volume_binding.plugin import VolumeBinding
from tests.parity.notes import truncate_note


def shown(status: Status) -> dict[str, Any]:
    return {"code": status.code.label, "plugin": status.plugin, "reasons": list(status.reasons)}


def verdict(engine: Engine, table: NodeTable, profile: Profile, pod: PodInfo, seed: int) -> dict[str, Any]:
    """Runs the whole attempt and, beside it, the steps that an attempt leaves out when it need not take them."""
    cycle, _judged = engine.cycle(profile, pod)
    got: dict[str, Any] = {"preenqueue": _pre_enqueue(profile, pod, cycle.ctx.listers)}
    got.update(_pre_filter(cycle))
    if got["prefilter"] is None:
        got.update(_filter(cycle, table))
    got.setdefault("filter", {})
    got.setdefault("feasible", [])
    got.update(_scores(cycle, table, got["feasible"]))
    got.update(_volume_decisions(cycle, table, got["feasible"]))
    got.update(_device_decisions(cycle, got["feasible"]))
    decision = engine.schedule(profile, pod, random.Random(seed))
    got.update(_outcome(decision))
    if decision.post_filter is not None:
        got.update(_preemption(engine, profile, pod, decision))
    nominated = pod.pod.status.nominated_node_name
    if nominated and decision.node == nominated and decision.evaluated == 1:
        got["nominated_node_used"] = nominated
    return got


def _pre_enqueue(profile: Profile, pod: PodInfo, view: Listers) -> dict[str, Any] | None:
    for plugin in profile.pre_enqueue:
        status = plugin.pre_enqueue(pod.pod, view)
        if status is not None and not status.is_success:
            return shown(status.by(plugin.name))
    return None


def _pre_filter(cycle: Cycle) -> dict[str, Any]:
    try:
        refusal = cycle.pre_filter()
    except AttemptFailed as failed:
        refusal = failed.status
    nodes = None if refusal is not None or cycle.nodes is None else sorted(cycle.nodes)
    return {"prefilter": None if refusal is None else shown(refusal), "prefilter_nodes": nodes}


def _filter(cycle: Cycle, table: NodeTable) -> dict[str, Any]:
    with contextlib.suppress(AttemptFailed):
        # The refusals have the errors, too.
        cycle.filter()
    refused = {table.names[row]: shown(failure(status)) for status, rows in cycle.refusals() for row in rows.tolist()}
    feasible = sorted(table.names[row] for row in np.flatnonzero(cycle.feasible).tolist())
    return {"filter": refused, "feasible": feasible}


def _scores(cycle: Cycle, table: NodeTable, feasible: list[str]) -> dict[str, Any]:
    nothing: dict[str, Any] = {"scores": {}, "totals": {}, "best": []}
    if not feasible:
        return nothing
    try:
        totals = cycle.score()
    except AttemptFailed as failed:
        return {**nothing, "score_error": failed.status.message}
    rows = [table.row_of[name] for name in feasible]
    best = max(int(totals[row]) for row in rows)
    return {
        "scores": {
            plugin: {name: int(scores[row]) for name, row in zip(feasible, rows, strict=True)}
            for plugin, scores in cycle.scores()
        },
        "totals": {name: int(totals[row]) for name, row in zip(feasible, rows, strict=True)},
        "best": [name for name, row in zip(feasible, rows, strict=True) if int(totals[row]) == best],
    }


def _volume_decisions(cycle: Cycle, table: NodeTable, feasible: list[str]) -> dict[str, Any]:
    """Also where the filter of VolumeBinding is disabled."""
    state = cycle.ctx.state.read(VOLUME_BINDING)
    if state is None or not state.claims.delayed:
        return {}
    kernel = VolumeBinding().filter_kernel(cycle.ctx, cycle.pod)
    assert isinstance(kernel, VolumeBindingKernel)
    decisions = {}
    for name in feasible:
        row = table.row_of[name]
        if kernel.codes(table, np.array([row], dtype=np.int64))[0]:
            continue
        volumes = kernel.decide(row)
        decisions[name] = {
            "static": {binding.claim.name: binding.volume.name for binding in volumes.bindings},
            "dynamic": sorted(claim.name for claim in volumes.provisions),
        }
    return {"volume_decisions": decisions}


def _device_decisions(cycle: Cycle, feasible: list[str]) -> dict[str, Any]:
    """What the pod's own claims would get on each node that fits, and where Reserve would fail."""
    plugin = next((plugin for plugin in cycle.profile.reserve if isinstance(plugin, DynamicResources)), None)
    state = cycle.ctx.state.read(DYNAMIC_RESOURCES)
    if plugin is None or state is None:
        return {}
    allocations = {}
    refused = {}
    for node in feasible:
        chosen = plugin.allocate(cycle.ctx, cycle.pod, node)
        allocations[node] = {
            state.claims[number].key: msgspec.json.decode(msgspec.json.encode(allocation))
            for number, allocation in (chosen or {}).items()
            if number != EXTENDED
        }
        status = plugin.reserve(cycle.ctx, cycle.pod, node)
        plugin.unreserve(cycle.ctx, cycle.pod, node)
        if status is not None and not status.is_success:
            refused[node] = shown(status.by(plugin.name))
    return {"dra_allocations": allocations, **({"reserve": refused} if refused else {})}


def _outcome(decision: Decision) -> dict[str, Any]:
    if decision.node is not None:
        return {"outcome": "scheduled", "message": None, "preemption": None}
    full = decision.status.message
    message = truncate_note(full)
    got: dict[str, Any] = {
        "outcome": "unschedulable" if decision.status.is_rejected else "error",
        "message": message,
        "preemption": None,
    }
    if message != full:
        got["message_full"] = full
    if decision.diagnosis is not None and decision.diagnosis.post_filter_message:
        got["postfilter_message"] = decision.diagnosis.post_filter_message
    return got


def _preemption(engine: Engine, profile: Profile, pod: PodInfo, decision: Decision) -> dict[str, Any]:
    """What preemption found on its way to the decision; where several nodes are equally good, all of them."""
    plugin = next((plugin for plugin in profile.post_filter if isinstance(plugin, DefaultPreemption)), None)
    if plugin is None:
        return {}
    cycle, _judged = engine.cycle(profile, pod)
    diagnosis = cycle.diagnosis
    if cycle.pre_filter() is None:
        cycle.filter()
        diagnosis = cycle.diagnose()
    candidates, in_vain = plugin.find_candidates(cycle.ctx, pod, diagnosis)
    got: dict[str, Any] = {}
    names = cycle.ctx.table.names
    if in_vain:
        got["preemption_statuses"] = {names[row]: shown(status) for status, rows in in_vain for row in rows.tolist()}
    if candidates:
        got["preemption_candidates"] = {candidate.node: _victims(candidate) for candidate in candidates}
        equals = {candidate.node: candidate for candidate in best(candidates)}
        assert decision.post_filter is not None
        assert decision.post_filter.nominated in equals
        first = min(equals)
        got["preemption"] = {"nominated": first, **_victims(equals[first])}
        if len(equals) > 1:
            got["preemption"]["nominated_any"] = sorted(equals)
    return got


def _victims(candidate: Candidate) -> dict[str, Any]:
    return {
        "victims": sorted(victim.key for victim in candidate.victims),
        "pdb_violations": candidate.violations,
    }
