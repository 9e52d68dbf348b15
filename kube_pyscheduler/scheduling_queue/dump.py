"""The queue as text, for people who look for a pod."""

from __future__ import annotations

from collections.abc import Iterator

from kube_pyscheduler.scheduling_queue.priority_queue import PriorityQueue


def dump_queue(queue: PriorityQueue, now: float) -> Iterator[str]:
    """One line a waiting pod, in order of places and names, then the pods in flight and the promises."""
    pending = queue.pending()
    yield (
        f"Queue: {pending.active} active, {pending.backoff} backing off, {pending.unschedulable} unschedulable, "
        f"{pending.gated} gated, {len(queue.in_flight)} in flight with {queue.in_flight.event_count} events"
    )
    for queued in sorted(queue, key=lambda queued: (queued.place.value, queued.pod_info.key)):
        line = f"  {queued.place.value} {queued.pod_info.key} uid={queued.uid} attempts={queued.attempts}"
        line += f" since={now - queued.timestamp:.1f}s"
        if queued.rejectors:
            line += f" refused-by={','.join(sorted(queued.rejectors))}"
        if queued.gated:
            line += f" gated-by={queued.gating_plugin}"
        yield line
    for uid in queue.in_flight.uids():
        yield f"  InFlight uid={uid}"
    for node in sorted(queue.nominator.nodes()):
        for info in queue.nominator.nominated_on(node):
            yield f"  Nominated {info.key} uid={info.uid} node={node}"
