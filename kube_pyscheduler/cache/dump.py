"""The cache as text, for people who want to know what is on a node."""

from __future__ import annotations

from collections.abc import Iterator

from kube_pyscheduler.cache.cache import Cache


def dump_cache(cache: Cache) -> Iterator[str]:
    """One line a node, in order of names, and one for each pod on it: what is asked for of what there is, milli-CPU for
    ``cpu`` and else as the resource counts."""
    counts = cache.counts()
    yield f"Cache: {counts['nodes']} nodes, {counts['pods']} pods, {counts['assumed_pods']} of them assumed"
    table = cache.table
    for name in sorted(table.row_of):
        row = table.row_of[name]
        requested, allocatable = table.requested[:, row].tolist(), table.allocatable[:, row].tolist()
        amounts = " ".join(
            f"{resource}={asked}/{there}"
            for resource, asked, there in zip(table.resources.values, requested, allocatable, strict=False)
            if asked or there
        )
        state = "" if table.alive[row] else " (deleted)"
        state += " (unschedulable)" if table.unschedulable[row] else ""
        yield f"  Node {name}{state} pods={table.pod_count[row]}/{table.pod_limit[row]} {amounts}"
        for info in sorted(table.pods[row].values(), key=lambda info: info.key):
            charge = info.demand.columns(table.resources)
            asks = "".join(f" {table.resources.values[resource]}={amount}" for resource, amount in charge.items())
            assumed = " (assumed)" if cache.is_assumed(info.uid) else ""
            yield f"    {info.key}{assumed} uid={info.uid}{asks}"
