"""Which columns a kind has."""

from __future__ import annotations

from kube_pyscheduler.devserver.resources import PrinterColumn, Resource
from kube_pyscheduler.devserver.tables import cluster, workloads
from kube_pyscheduler.devserver.tables.cells import path, since
from kube_pyscheduler.devserver.tables.column import AGE, NAME, Column, Columns, field
from kube_pyscheduler.devserver.tables.pods import PODS

_COLUMNS: dict[str, Columns] = {
    "pods": PODS,
    "nodes": cluster.NODES,
    "namespaces": cluster.NAMESPACES,
    "events": cluster.EVENTS,
    "events.events.k8s.io": cluster.EVENTS,
    "configmaps": cluster.CONFIG_MAPS,
    "secrets": cluster.SECRETS,
    "services": workloads.SERVICES,
    "persistentvolumes": cluster.PERSISTENT_VOLUMES,
    "persistentvolumeclaims": cluster.PERSISTENT_VOLUME_CLAIMS,
    "replicationcontrollers": workloads.REPLICA_SETS,
    "deployments.apps": workloads.DEPLOYMENTS,
    "replicasets.apps": workloads.REPLICA_SETS,
    "statefulsets.apps": workloads.STATEFUL_SETS,
    "daemonsets.apps": workloads.DAEMON_SETS,
    "jobs.batch": workloads.JOBS,
    "cronjobs.batch": workloads.CRON_JOBS,
    "poddisruptionbudgets.policy": workloads.BUDGETS,
    "leases.coordination.k8s.io": cluster.LEASES,
    "priorityclasses.scheduling.k8s.io": cluster.PRIORITY_CLASSES,
    "podgroups.scheduling.k8s.io": cluster.POD_GROUPS,
    "runtimeclasses.node.k8s.io": cluster.RUNTIME_CLASSES,
    "storageclasses.storage.k8s.io": cluster.STORAGE_CLASSES,
    "csinodes.storage.k8s.io": cluster.CSI_NODES,
    "csidrivers.storage.k8s.io": cluster.CSI_DRIVERS,
    "csistoragecapacities.storage.k8s.io": cluster.CSI_STORAGE_CAPACITIES,
    "volumeattachments.storage.k8s.io": cluster.VOLUME_ATTACHMENTS,
    "roles.rbac.authorization.k8s.io": cluster.ROLES,
    "clusterroles.rbac.authorization.k8s.io": cluster.ROLES,
    "rolebindings.rbac.authorization.k8s.io": cluster.ROLE_BINDINGS,
    "clusterrolebindings.rbac.authorization.k8s.io": cluster.ROLE_BINDINGS,
    "resourceclaims.resource.k8s.io": cluster.RESOURCE_CLAIMS,
    "resourceslices.resource.k8s.io": cluster.RESOURCE_SLICES,
}


def columns_for(resource: Resource) -> Columns:
    """The columns of a kind: its own, else name and age."""
    if resource.printer_columns:
        return (NAME, *map(_custom, resource.printer_columns))
    return _COLUMNS.get(resource.key, (NAME, AGE))


def _custom(column: PrinterColumn) -> Column:
    if column.type == "date":
        return Column(column.name, lambda obj, now: since(path(obj, *column.path), now), "date", column.priority)
    return field(column.name, *column.path, default=None, type=column.type, priority=column.priority)
