"""The columns of nodes, events, storage, access and other kinds.

Source: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.tables.cells import NONE, UNKNOWN, UNSET, access_modes, path, since
from kube_pyscheduler.devserver.tables.column import AGE, NAME, Column, field, wide

Object = dict[str, Any]


def _node_status(node: Object, _: float) -> str:
    ready = next((c for c in path(node, "status", "conditions") or () if c.get("type") == "Ready"), None)
    shown = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if path(node, "spec", "unschedulable"):
        shown.append("SchedulingDisabled")
    return ",".join(shown)


def _roles(node: Object, _: float) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels") or {}
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix)} - {""}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return ",".join(sorted(roles)) or NONE


def _address(kind: str) -> Any:
    def cell(node: Object, _: float) -> str:
        addresses = path(node, "status", "addresses") or ()
        return next((a.get("address", "") for a in addresses if a.get("type") == kind), NONE)

    return cell


def _kernel(node: Object, _: float) -> str:
    info = path(node, "status", "nodeInfo") or {}
    kernel = info.get("kernelVersion") or UNKNOWN
    return f"{kernel} ({info['architecture']})" if info.get("architecture") else kernel


NODES = (
    NAME,
    Column("Status", _node_status),
    Column("Roles", _roles),
    AGE,
    field("Version", "status", "nodeInfo", "kubeletVersion"),
    wide("Internal-IP", _address("InternalIP")),
    wide("External-IP", _address("ExternalIP")),
    field("OS-Image", "status", "nodeInfo", "osImage", default=UNKNOWN, priority=1),
    wide("Kernel-Version", _kernel),
    field("Container-Runtime", "status", "nodeInfo", "containerRuntimeVersion", default=UNKNOWN, priority=1),
)


def _first_seen(event: Object, now: float) -> str:
    return since(event.get("firstTimestamp") or event.get("eventTime"), now)


def _last_seen(event: Object, now: float) -> str:
    if observed := path(event, "series", "lastObservedTime"):
        return since(observed, now)
    return since(event["lastTimestamp"], now) if event.get("lastTimestamp") else _first_seen(event, now)


def _event_object(event: Object, _: float) -> str:
    involved = event.get("involvedObject") or {}
    kind = str(involved.get("kind", "")).lower()
    return f"{kind}/{involved['name']}" if involved.get("name") else kind


def _event_source(event: Object, _: float) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {host}" if host else str(component)


EVENTS = (
    Column("Last Seen", _last_seen),
    field("Type", "type"),
    field("Reason", "reason"),
    Column("Object", _event_object),
    field("Subobject", "involvedObject", "fieldPath", priority=1),
    wide("Source", _event_source),
    Column("Message", lambda event, _: str(event.get("message", "")).strip()),
    wide("First Seen", _first_seen),
    wide("Count", lambda event, _: path(event, "series", "count") or event.get("count") or 1),
    Column("Name", lambda event, _: event["metadata"]["name"], priority=1),
)


def _phase(obj: Object, _: float) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else str(path(obj, "status", "phase", default=""))


def _claim(volume: Object, _: float) -> str:
    reference = path(volume, "spec", "claimRef")
    return f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else ""


PERSISTENT_VOLUMES = (
    NAME,
    field("Capacity", "spec", "capacity", "storage", default="0"),
    Column("Access Modes", lambda obj, _: access_modes(path(obj, "spec", "accessModes"))),
    field("Reclaim Policy", "spec", "persistentVolumeReclaimPolicy"),
    Column("Status", _phase),
    Column("Claim", _claim),
    field("StorageClass", "spec", "storageClassName"),
    field("VolumeAttributesClass", "spec", "volumeAttributesClassName", default=UNSET),
    field("Reason", "status", "reason"),
    AGE,
    field("VolumeMode", "spec", "volumeMode", default=UNSET, priority=1),
)
PERSISTENT_VOLUME_CLAIMS = (
    NAME,
    Column("Status", _phase),
    field("Volume", "spec", "volumeName"),
    field("Capacity", "status", "capacity", "storage"),
    Column("Access Modes", lambda obj, _: access_modes(path(obj, "status", "accessModes"))),
    field("StorageClass", "spec", "storageClassName"),
    field("VolumeAttributesClass", "spec", "volumeAttributesClassName", default=UNSET),
    AGE,
    field("VolumeMode", "spec", "volumeMode", default=UNSET, priority=1),
)


def _class_name(obj: Object, _: float) -> str:
    name = str(obj["metadata"]["name"])
    annotations = obj["metadata"].get("annotations") or {}
    is_default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    return f"{name} (default)" if is_default else name


STORAGE_CLASSES = (
    Column("Name", _class_name),
    field("Provisioner", "provisioner"),
    field("ReclaimPolicy", "reclaimPolicy", default="Delete"),
    field("VolumeBindingMode", "volumeBindingMode", default="Immediate"),
    Column("AllowVolumeExpansion", lambda obj, _: str(bool(obj.get("allowVolumeExpansion"))).lower()),
    AGE,
)
CSI_NODES = (NAME, Column("Drivers", lambda obj, _: len(path(obj, "spec", "drivers") or ()), "integer"), AGE)
CSI_DRIVERS = (
    NAME,
    field("AttachRequired", "spec", "attachRequired", default=True, type="boolean"),
    field("PodInfoOnMount", "spec", "podInfoOnMount", default=False, type="boolean"),
    field("StorageCapacity", "spec", "storageCapacity", default=False, type="boolean"),
    Column(
        "TokenRequests",
        lambda obj, _: ",".join(t.get("audience", "") for t in path(obj, "spec", "tokenRequests") or ()) or UNSET,
    ),
    field("RequiresRepublish", "spec", "requiresRepublish", default=False, type="boolean"),
    Column("Modes", lambda obj, _: ",".join(path(obj, "spec", "volumeLifecycleModes") or ()) or NONE),
    AGE,
)
CSI_STORAGE_CAPACITIES = (
    NAME,
    field("StorageClassName", "storageClassName"),
    field("Capacity", "capacity", default=UNSET),
)
VOLUME_ATTACHMENTS = (
    NAME,
    field("Attacher", "spec", "attacher"),
    field("PV", "spec", "source", "persistentVolumeName"),
    field("Node", "spec", "nodeName"),
    field("Attached", "status", "attached", default=False, type="boolean"),
    AGE,
)
LEASES = (NAME, field("Holder", "spec", "holderIdentity"), AGE)
PRIORITY_CLASSES = (
    NAME,
    field("Value", "value", default=0, type="integer"),
    field("Global-Default", "globalDefault", default=False, type="boolean"),
    AGE,
    field("PreemptionPolicy", "preemptionPolicy"),
)
RUNTIME_CLASSES = (NAME, field("Handler", "handler"), AGE)
NAMESPACES = (NAME, field("Status", "status", "phase"), AGE)


def _data_count(obj: Object, _: float) -> int:
    return len(obj.get("data") or ()) + len(obj.get("binaryData") or ())


CONFIG_MAPS = (NAME, Column("Data", _data_count), AGE)
SECRETS = (NAME, field("Type", "type"), Column("Data", _data_count), AGE)


def _role(binding: Object, _: float) -> str:
    reference = binding.get("roleRef") or {}
    return f"{reference.get('kind')}/{reference.get('name')}"


def _subjects(kind: str) -> Any:
    def cell(binding: Object, _: float) -> str:
        found = [s for s in binding.get("subjects") or () if s.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{s.get('namespace', '')}/{s['name']}" for s in found)
        return ", ".join(s["name"] for s in found)

    return cell


ROLES = (Column("Name", NAME.cell), Column("Created At", lambda obj, _: obj["metadata"].get("creationTimestamp")))
ROLE_BINDINGS = (
    NAME,
    Column("Role", _role),
    AGE,
    wide("Users", _subjects("User")),
    wide("Groups", _subjects("Group")),
    wide("ServiceAccounts", _subjects("ServiceAccount")),
)


def _claim_state(claim: Object, _: float) -> str:
    states = ["deleted"] if claim["metadata"].get("deletionTimestamp") else []
    status = claim.get("status") or {}
    if status.get("allocation"):
        states.append("allocated")
        states += ["reserved"] if status.get("reservedFor") else []
        return ",".join(states)
    return ",".join([*states, "pending"]) if not states else ",".join(states)


RESOURCE_CLAIMS = (NAME, Column("State", _claim_state), AGE)
RESOURCE_SLICES = (
    NAME,
    field("Node", "spec", "nodeName"),
    field("Driver", "spec", "driver"),
    field("Pool", "spec", "pool", "name"),
    AGE,
)


def _group_status(group: Object, _: float) -> str:
    conditions = {c["type"]: c for c in path(group, "status", "conditions") or ()}
    if "DisruptionTarget" in conditions:
        return str(conditions["DisruptionTarget"].get("reason", ""))
    scheduled = conditions.get("PodGroupScheduled")
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


POD_GROUPS = (
    NAME,
    Column("Policy", lambda obj, _: "Gang" if path(obj, "spec", "schedulingPolicy", "gang") else "Basic"),
    field("Workload", "spec", "podGroupTemplateRef", "workload", "workloadName", default=NONE),
    Column("Status", _group_status),
    AGE,
)
