"""The table of kinds the server knows: names, scope, subresources, short names, categories.

Source: api/discovery of Kubernetes 1.36. Custom resources join and leave the table while the server runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CREATE_ONLY = ("create",)


class PrinterColumn(NamedTuple):
    """A column that a CustomResourceDefinition adds; ``path`` are the keys to the value."""

    name: str
    type: str
    path: tuple[str, ...]
    priority: int


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One served resource, for example pods or deployments.apps; compared by identity."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    printer_columns: tuple[PrinterColumn, ...] = ()
    """Of custom resources only, as is the schema."""
    schema: dict[str, Any] | None = None
    key: str = field(init=False)
    """Plural with its group, "pods" or "deployments.apps": the name in messages, RBAC and the store."""
    api_version: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"{self.plural}.{self.group}" if self.group else self.plural)
        object.__setattr__(self, "api_version", f"{self.group}/{self.version}" if self.group else self.version)

    @property
    def list_kind(self) -> str:
        return self.kind + "List"


SUBRESOURCE_KINDS = {
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "scale": ("autoscaling", "v1", "Scale"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    "log": ("", "v1", "Pod"),
    "exec": ("", "v1", "PodExecOptions"),
    "attach": ("", "v1", "PodAttachOptions"),
    "portforward": ("", "v1", "PodPortForwardOptions"),
    "proxy": ("", "v1", "NodeProxyOptions"),
}
"""Subresource → (group, version, kind) of its body, where it is not the resource's own kind."""

STATUS_VERBS = ("get", "patch", "update")
SUBRESOURCE_VERBS = {
    "binding": CREATE_ONLY,
    "eviction": CREATE_ONLY,
    "token": CREATE_ONLY,
    "log": ("get",),
    "exec": ("create", "get"),
    "attach": ("create", "get"),
    "portforward": ("create", "get"),
    "proxy": ("create", "delete", "get", "patch", "update"),
    "finalize": ("update",),
}
"""Verbs of a subresource; every other one has STATUS_VERBS."""

_ROWS = """
v1 bindings Binding N - - - create
v1 configmaps ConfigMap N cm - -
v1 endpoints Endpoints N ep - -
v1 events Event N ev - -
v1 limitranges LimitRange N limits - -
v1 namespaces Namespace C ns - finalize,status create,delete,get,list,patch,update,watch
v1 nodes Node C no - proxy,status
v1 persistentvolumeclaims PersistentVolumeClaim N pvc - status
v1 persistentvolumes PersistentVolume C pv - status
v1 pods Pod N po all attach,binding,ephemeralcontainers,eviction,exec,log,portforward,resize,status
v1 podtemplates PodTemplate N - - -
v1 replicationcontrollers ReplicationController N rc all scale,status
v1 resourcequotas ResourceQuota N quota - status
v1 secrets Secret N - - -
v1 serviceaccounts ServiceAccount N sa - token
v1 services Service N svc all status
admissionregistration.k8s.io/v1 mutatingwebhookconfigurations MutatingWebhookConfiguration C - api-extensions -
admissionregistration.k8s.io/v1 validatingwebhookconfigurations ValidatingWebhookConfiguration C - api-extensions -
apiextensions.k8s.io/v1 customresourcedefinitions CustomResourceDefinition C crd,crds api-extensions status
apps/v1 controllerrevisions ControllerRevision N - - -
apps/v1 daemonsets DaemonSet N ds all status
apps/v1 deployments Deployment N deploy all scale,status
apps/v1 replicasets ReplicaSet N rs all scale,status
apps/v1 statefulsets StatefulSet N sts all scale,status
events.k8s.io/v1 events Event N ev - -
authentication.k8s.io/v1 selfsubjectreviews SelfSubjectReview C - - - create
authentication.k8s.io/v1 tokenreviews TokenReview C - - - create
authorization.k8s.io/v1 localsubjectaccessreviews LocalSubjectAccessReview N - - - create
authorization.k8s.io/v1 selfsubjectaccessreviews SelfSubjectAccessReview C - - - create
authorization.k8s.io/v1 selfsubjectrulesreviews SelfSubjectRulesReview C - - - create
authorization.k8s.io/v1 subjectaccessreviews SubjectAccessReview C - - - create
autoscaling/v2 horizontalpodautoscalers HorizontalPodAutoscaler N hpa all status
batch/v1 cronjobs CronJob N cj all status
batch/v1 jobs Job N - all status
coordination.k8s.io/v1 leases Lease N - - -
discovery.k8s.io/v1 endpointslices EndpointSlice N - - -
networking.k8s.io/v1 ingressclasses IngressClass C - - -
networking.k8s.io/v1 ingresses Ingress N ing - status
networking.k8s.io/v1 networkpolicies NetworkPolicy N netpol - -
node.k8s.io/v1 runtimeclasses RuntimeClass C - - -
policy/v1 poddisruptionbudgets PodDisruptionBudget N pdb - status
rbac.authorization.k8s.io/v1 clusterrolebindings ClusterRoleBinding C - - -
rbac.authorization.k8s.io/v1 clusterroles ClusterRole C - - -
rbac.authorization.k8s.io/v1 rolebindings RoleBinding N - - -
rbac.authorization.k8s.io/v1 roles Role N - - -
resource.k8s.io/v1 deviceclasses DeviceClass C - - -
resource.k8s.io/v1 resourceclaims ResourceClaim N - - status
resource.k8s.io/v1 resourceclaimtemplates ResourceClaimTemplate N - - -
resource.k8s.io/v1 resourceslices ResourceSlice C - - -
scheduling.k8s.io/v1 priorityclasses PriorityClass C pc - -
scheduling.k8s.io/v1alpha2 podgroups PodGroup N - - status
scheduling.k8s.io/v1alpha2 workloads Workload N - - -
storage.k8s.io/v1 csidrivers CSIDriver C - - -
storage.k8s.io/v1 csinodes CSINode C - - -
storage.k8s.io/v1 csistoragecapacities CSIStorageCapacity N - - -
storage.k8s.io/v1 storageclasses StorageClass C sc - -
storage.k8s.io/v1 volumeattachments VolumeAttachment C - - status
storage.k8s.io/v1 volumeattributesclasses VolumeAttributesClass C vac - -
"""


def _words(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split(","))


def _builtin() -> Iterator[Resource]:
    for row in _ROWS.strip().splitlines():
        api_version, plural, kind, scope, short, categories, subresources, *verbs = row.split()
        group, _, version = api_version.rpartition("/")
        yield Resource(
            group=group,
            version=version,
            plural=plural,
            singular=kind.lower(),
            kind=kind,
            namespaced=scope == "N",
            short_names=_words(short),
            categories=_words(categories),
            subresources=_words(subresources),
            verbs=_words(verbs[0]) if verbs else ALL_VERBS,
        )


class ResourceTable:
    """The resources a server serves, found by path or by kind. Starts with the built-in ones."""

    def __init__(self, resources: Iterable[Resource] | None = None) -> None:
        self._by_path: dict[tuple[str, str, str], Resource] = {}
        self._by_kind: dict[tuple[str, str], Resource] = {}
        for resource in BUILTIN if resources is None else resources:
            self.add(resource)

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._by_path.values())

    def add(self, resource: Resource) -> None:
        """Serve a resource; one with the same group, version and plural is replaced."""
        self._by_path[resource.group, resource.version, resource.plural] = resource
        self._by_kind[resource.api_version, resource.kind] = resource

    def remove(self, resource: Resource) -> None:
        self._by_path.pop((resource.group, resource.version, resource.plural), None)
        self._by_kind.pop((resource.api_version, resource.kind), None)

    def by_path(self, group: str, version: str, plural: str) -> Resource | None:
        return self._by_path.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> Resource | None:
        return self._by_kind.get((api_version, kind))


BUILTIN: tuple[Resource, ...] = tuple(_builtin())
_KEYED = {resource.key: resource for resource in BUILTIN}


def builtin(key: str) -> Resource:
    """The built-in resource of that key, for example ``builtin("deployments.apps")``. KeyError if unknown."""
    return _KEYED[key]


PODS = builtin("pods")
NODES = builtin("nodes")
NAMESPACES = builtin("namespaces")
EVENTS = builtin("events")
PERSISTENT_VOLUMES = builtin("persistentvolumes")
PERSISTENT_VOLUME_CLAIMS = builtin("persistentvolumeclaims")
SERVICE_ACCOUNTS = builtin("serviceaccounts")
LEASES = builtin("leases.coordination.k8s.io")
DEPLOYMENTS = builtin("deployments.apps")
REPLICA_SETS = builtin("replicasets.apps")
STATEFUL_SETS = builtin("statefulsets.apps")
DAEMON_SETS = builtin("daemonsets.apps")
JOBS = builtin("jobs.batch")
POD_DISRUPTION_BUDGETS = builtin("poddisruptionbudgets.policy")
PRIORITY_CLASSES = builtin("priorityclasses.scheduling.k8s.io")
STORAGE_CLASSES = builtin("storageclasses.storage.k8s.io")
CSI_NODES = builtin("csinodes.storage.k8s.io")
RESOURCE_CLAIMS = builtin("resourceclaims.resource.k8s.io")
CUSTOM_RESOURCE_DEFINITIONS = builtin("customresourcedefinitions.apiextensions.k8s.io")
