"""Asking the hints of a plugin."""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.framework.cluster_event import Action, QueueingHint, Resource
from kube_pyscheduler.framework.interfaces import Plugin
from kube_pyscheduler.framework.listers import Listers


def ask(plugin: Plugin, resource: Resource, action: Action, pod: Any, old: Any, new: Any) -> bool:
    """Whether the plugin wants a pod that it refused queued after this event; it must have asked for such events."""
    matching = [r for r in plugin.events() if r.event.resource == resource and r.event.action & action]
    assert len(matching) == 1
    hint, fragment = matching[0].hint, matching[0].fragment
    assert hint is None or (fragment is not None and hash(fragment(pod)) == hash(fragment(pod)))
    return hint is None or hint(pod, old, new, Listers()) is QueueingHint.QUEUE


def registered(plugin: Plugin) -> dict[Resource, Action]:
    """The events the plugin asks for."""
    found: dict[Resource, Action] = {}
    for registration in plugin.events():
        event = registration.event
        found[event.resource] = found.get(event.resource, Action(0)) | event.action
    return found
