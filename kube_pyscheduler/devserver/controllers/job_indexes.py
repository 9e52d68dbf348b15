"""Completion indexes of Indexed Jobs.

Source: pkg/controller/job/indexed_job_utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from kube_pyscheduler.devserver.store import Object

KEY = "batch.kubernetes.io/job-completion-index"
"""Annotation and label of a pod."""
_VARIABLE = "JOB_COMPLETION_INDEX"


def index_of(pod: Object) -> int | None:
    """The completion index of a pod; None for pods of a Job without indexes."""
    text = (pod["metadata"].get("annotations") or {}).get(KEY)
    return int(text) if text is not None and text.isdecimal() else None


def indexed(pod: Object, job_name: str, index: int) -> Object:
    """The pod made the one for ``index``; parts are shared with the one given."""
    metadata = dict(pod["metadata"])
    metadata["generateName"] = f"{job_name}-{index}-"
    metadata["annotations"] = {**(metadata.get("annotations") or {}), KEY: str(index)}
    metadata["labels"] = {**(metadata.get("labels") or {}), KEY: str(index)}
    spec = dict(pod["spec"])
    spec["hostname"] = f"{job_name}-{index}"
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{KEY}']"}}
    for key in ("initContainers", "containers"):
        if spec.get(key):
            spec[key] = [
                {**c, "env": [*(c.get("env") or ()), {"name": _VARIABLE, "valueFrom": source}]} for c in spec[key]
            ]
    return {"metadata": metadata, "spec": spec}


def as_text(indexes: Iterable[int]) -> str:
    """Indexes as the status shows them: "0-2,4"."""
    parts: list[list[int]] = []
    for index in sorted(set(indexes)):
        if parts and parts[-1][1] == index - 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" if b > a + 1 else f"{a},{b}" for a, b in parts)
