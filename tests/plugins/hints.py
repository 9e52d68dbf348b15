"""What plugins make of events, and a cluster to ask them in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kube_pyscheduler.cache.cache import Cache
from kube_pyscheduler.framework.cluster_event import Action, ClusterEvent, QueueingHint, Resource
from kube_pyscheduler.framework.interfaces import Plugin
from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins import IN_TREE
from kube_pyscheduler.scheduler.event_handlers import KINDS

FINE: dict[Resource, Action] = {
    Resource.POD: Action.UPDATE_POD_LABEL
    | Action.UPDATE_POD_SCALE_DOWN
    | Action.UPDATE_POD_TOLERATION
    | Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    | Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    | Action.UPDATE_POD_OTHER,
    Resource.NODE: Action.UPDATE_NODE_ALLOCATABLE
    | Action.UPDATE_NODE_LABEL
    | Action.UPDATE_NODE_TAINT
    | Action.UPDATE_NODE_CONDITION
    | Action.UPDATE_NODE_ANNOTATION
    | Action.UPDATE_NODE_DECLARED_FEATURE,
}
"""Resources whose updates are told apart."""


def actions_of(event: ClusterEvent) -> Iterator[Action]:
    """The actions of a registration one by one, as events have them."""
    yield from (action for action in (Action.ADD, Action.DELETE) if action in event.action)
    if event.resource in FINE:
        yield from (action for action in FINE[event.resource] if action in event.action)
    elif Action.UPDATE in event.action:
        yield Action.UPDATE


@dataclass(frozen=True)
class Case:
    """An event, and whether the plugin wants ``pod``, which it refused, queued after it. ``known``: what else there is
    in the cluster. ``args``: of the plugin."""

    plugin: str
    resource: Resource
    action: Action
    pod: Pod
    old: Any
    new: Any
    queues: bool
    known: tuple[Object, ...] = ()
    args: Any = None

    def __str__(self) -> str:
        name = "Update" if self.action == Action.UPDATE else self.action.name
        return f"{self.plugin}-{self.resource}-{name}-{'queue' if self.queues else 'skip'}"


def answer(case: Case) -> bool:
    """Whether the plugin wants the pod queued; it must have asked for the event, and for each event once."""
    cache = Cache()
    for item in case.known:
        _apply(cache, None, item)
    if not (isinstance(case.new or case.old, Pod) and (case.new or case.old).uid == case.pod.uid):
        if case.old is not None:
            _apply(cache, None, case.old)
        _apply(cache, case.old, case.new)
    plugin = IN_TREE[case.plugin](case.args)
    event = ClusterEvent(case.resource, case.action)
    (registration,) = [each for each in plugin.events() if each.event.matches(event)]
    if registration.hint is None:
        return True
    if registration.fragment is not None:
        hash(registration.fragment(case.pod))
    found = registration.hint(case.pod, case.old, case.new, cache.listers)
    return found is QueueingHint.QUEUE


def _apply(cache: Cache, old: Object | None, new: Object | None) -> None:
    match old, new:
        case _, Node() as node:
            cache.set_node(node)
        case Node() as node, _:
            cache.remove_node(node)
        case _, Pod() as pod:
            if pod.spec.node_name:
                cache.set_pod(pod)
        case Pod() as pod, _:
            cache.remove_pod(pod.uid)
        case _:
            item = new or old
            lister = getattr(cache.listers, KINDS[type(item).__name__][0])
            if new is not None:
                lister.put(new)
            else:
                lister.remove(old)


def plugin_of(name: str) -> Plugin:
    """The plugin with its default arguments."""
    return IN_TREE[name](None)
