"""The columns of workloads, services and budgets. Source: pkg/printers/internalversion/printers.go."""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.selectors import selector_text
from kube_pyscheduler.devserver.tables.cells import NONE, containers, human_duration, images, pairs, path, since
from kube_pyscheduler.devserver.tables.column import AGE, NAME, Column, field, wide
from kube_pyscheduler.devserver.times import parse_time

Object = dict[str, Any]

_TEMPLATE = ("spec", "template", "spec")
_CONTAINERS = wide("Containers", lambda obj, _: containers(path(obj, *_TEMPLATE)))
_IMAGES = wide("Images", lambda obj, _: images(path(obj, *_TEMPLATE)))
_SELECTOR = wide("Selector", lambda obj, _: selector_text(path(obj, "spec", "selector")) or NONE)


def _ready(obj: Object, _: float) -> str:
    return f"{path(obj, 'status', 'readyReplicas', default=0)}/{path(obj, 'spec', 'replicas', default=0)}"


DEPLOYMENTS = (
    NAME,
    Column("Ready", _ready),
    field("Up-to-date", "status", "updatedReplicas", default=0),
    field("Available", "status", "availableReplicas", default=0),
    AGE,
    _CONTAINERS,
    _IMAGES,
    _SELECTOR,
)
REPLICA_SETS = (
    NAME,
    field("Desired", "spec", "replicas", default=0, type="integer"),
    field("Current", "status", "replicas", default=0, type="integer"),
    field("Ready", "status", "readyReplicas", default=0, type="integer"),
    AGE,
    _CONTAINERS,
    _IMAGES,
    _SELECTOR,
)
STATEFUL_SETS = (NAME, Column("Ready", _ready), AGE, _CONTAINERS, _IMAGES)
DAEMON_SETS = (
    NAME,
    field("Desired", "status", "desiredNumberScheduled", default=0, type="integer"),
    field("Current", "status", "currentNumberScheduled", default=0, type="integer"),
    field("Ready", "status", "numberReady", default=0, type="integer"),
    field("Up-to-date", "status", "updatedNumberScheduled", default=0, type="integer"),
    field("Available", "status", "numberAvailable", default=0, type="integer"),
    Column("Node Selector", lambda obj, _: pairs(path(obj, *_TEMPLATE, "nodeSelector"))),
    AGE,
    _CONTAINERS,
    _IMAGES,
    _SELECTOR,
)


def _job_status(job: Object, _: float) -> str:
    true = {c["type"] for c in path(job, "status", "conditions") or () if c.get("status") == "True"}
    for kind, shown in (("Complete", "Complete"), ("Failed", "Failed")):
        if kind in true:
            return shown
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if kind in true:
            return kind
    return "Running"


def _job_completions(job: Object, _: float) -> str:
    done = path(job, "status", "succeeded", default=0)
    wanted = path(job, "spec", "completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallelism = path(job, "spec", "parallelism", default=0)
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _job_duration(job: Object, now: float) -> str:
    start, end = path(job, "status", "startTime"), path(job, "status", "completionTime")
    if start is None:
        return ""
    return human_duration((parse_time(end) if end else now) - parse_time(start))


JOBS = (
    NAME,
    Column("Status", _job_status),
    Column("Completions", _job_completions),
    Column("Duration", _job_duration),
    AGE,
    _CONTAINERS,
    _IMAGES,
    _SELECTOR,
)
_JOB_TEMPLATE = ("spec", "jobTemplate", *_TEMPLATE)


def _last_schedule(obj: Object, now: float) -> str:
    last = path(obj, "status", "lastScheduleTime")
    return since(last, now) if last else NONE


CRON_JOBS = (
    NAME,
    field("Schedule", "spec", "schedule"),
    field("Timezone", "spec", "timeZone", default=NONE),
    field("Suspend", "spec", "suspend", default=False, type="boolean"),
    Column("Active", lambda obj, _: len(path(obj, "status", "active") or ()), "integer"),
    Column("Last Schedule", _last_schedule),
    AGE,
    wide("Containers", lambda obj, _: containers(path(obj, *_JOB_TEMPLATE))),
    wide("Images", lambda obj, _: images(path(obj, *_JOB_TEMPLATE))),
    wide("Selector", lambda obj, _: selector_text(path(obj, "spec", "jobTemplate", "spec", "selector")) or NONE),
)


def _ports(service: Object, _: float) -> str:
    shown = []
    for port in path(service, "spec", "ports") or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}")
    return ",".join(shown) or NONE


def _external_address(service: Object, _: float) -> str:
    external = path(service, "spec", "externalIPs") or []
    match path(service, "spec", "type"):
        case "LoadBalancer":
            ingress = path(service, "status", "loadBalancer", "ingress") or ()
            found = [entry.get("ip") or entry.get("hostname") or "" for entry in ingress]
            return ",".join([*found, *external]) or "<pending>"
        case "ExternalName":
            return str(path(service, "spec", "externalName", default=""))
    return ",".join(external) or NONE


SERVICES = (
    NAME,
    field("Type", "spec", "type"),
    field("Cluster-IP", "spec", "clusterIP", default=NONE),
    Column("External-IP", _external_address),
    Column("Port(s)", _ports),
    AGE,
    wide("Selector", lambda obj, _: pairs(path(obj, "spec", "selector"))),
)
BUDGETS = (
    NAME,
    Column("Min Available", lambda obj, _: str(path(obj, "spec", "minAvailable", default="N/A"))),
    Column("Max Unavailable", lambda obj, _: str(path(obj, "spec", "maxUnavailable", default="N/A"))),
    field("Allowed Disruptions", "status", "disruptionsAllowed", default=0, type="integer"),
    AGE,
)
