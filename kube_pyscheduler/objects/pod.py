"""The pod fields that scheduling reads."""

from __future__ import annotations

import msgspec

from kube_pyscheduler.objects import pod_requests
from kube_pyscheduler.objects.meta import Int32, Int64, Object, Struct
from kube_pyscheduler.objects.quantity import RawQuantity
from kube_pyscheduler.objects.selectors import LabelSelector, NodeSelector, PreferredSchedulingTerm

ResourceList = dict[str, RawQuantity]


class ResourceClaimUse(Struct, frozen=True):
    name: str = ""
    request: str = ""


class Resources(Struct, frozen=True):
    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: tuple[ResourceClaimUse, ...] = ()


class ContainerPort(Struct, frozen=True):
    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = ""


class RestartRule(Struct, frozen=True):
    action: str = ""


class Container(Struct, frozen=True):
    name: str = ""
    image: str = ""
    resources: Resources = Resources()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[RestartRule, ...] = ()

    @property
    def is_sidecar(self) -> bool:
        """An init container that keeps running."""
        return self.restart_policy == "Always"


class Toleration(Struct, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeAffinity(Struct, frozen=True):
    required: NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: tuple[PreferredSchedulingTerm, ...] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class PodAffinityTerm(Struct, frozen=True):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Struct, frozen=True):
    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Struct, frozen=True):
    """Terms of podAffinity or of podAntiAffinity."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=()
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class Affinity(Struct, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Struct, frozen=True):
    max_skew: Int32 = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class SchedulingGate(Struct, frozen=True):
    name: str = ""


class ClaimVolume(Struct, frozen=True):
    claim_name: str = ""
    read_only: bool = False


class VolumeClaimSpec(Struct, frozen=True):
    """The part of a claim's spec that matters to scheduling."""

    access_modes: tuple[str, ...] = ()
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = ""
    volume_attributes_class_name: str = ""
    resources: Resources = Resources()
    selector: LabelSelector | None = None


class VolumeClaimTemplate(Struct, frozen=True):
    spec: VolumeClaimSpec = VolumeClaimSpec()


class EphemeralVolume(Struct, frozen=True):
    volume_claim_template: VolumeClaimTemplate | None = None


class GCEPersistentDisk(Struct, frozen=True):
    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStore(Struct, frozen=True):
    volume_id: str = msgspec.field(name="volumeID", default="")
    read_only: bool = False


class RBDVolume(Struct, frozen=True):
    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class ISCSIVolume(Struct, frozen=True):
    iqn: str = ""
    target_portal: str = ""
    lun: Int32 = 0
    read_only: bool = False


class CSIVolume(Struct, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class AzureDisk(Struct, frozen=True):
    disk_name: str = ""
    disk_uri: str = msgspec.field(name="diskURI", default="")
    kind: str = "Shared"


class CinderVolume(Struct, frozen=True):
    volume_id: str = msgspec.field(name="volumeID", default="")


class VsphereVolume(Struct, frozen=True):
    volume_path: str = ""


class PortworxVolume(Struct, frozen=True):
    volume_id: str = msgspec.field(name="volumeID", default="")


class AzureFile(Struct, frozen=True):
    share_name: str = ""


class ImageVolume(Struct, frozen=True):
    reference: str = ""


class VolumeSources(Struct, frozen=True):
    """Volume sources known to scheduling, shared by pod volumes and persistent volumes."""

    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    rbd: RBDVolume | None = None
    iscsi: ISCSIVolume | None = None
    csi: CSIVolume | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: CinderVolume | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None


class Volume(VolumeSources, frozen=True):
    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    image: ImageVolume | None = None


class PodResourceClaim(Struct, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(Struct, frozen=True):
    pod_group_name: str | None = None


class PodSpec(Struct, frozen=True):
    scheduler_name: str = ""
    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: ResourceList = {}
    resources: Resources | None = None
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    volumes: tuple[Volume, ...] = ()
    host_network: bool = False
    host_users: bool | None = None
    restart_policy: str = ""
    resource_claims: tuple[PodResourceClaim, ...] = ()
    termination_grace_period_seconds: Int64 | None = None
    scheduling_group: SchedulingGroup | None = None


class PodCondition(Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_probe_time: str | None = None
    observed_generation: Int64 | None = None


class ContainerStatus(Struct, frozen=True):
    name: str = ""
    resources: Resources | None = None
    allocated_resources: ResourceList = {}


class PodResourceClaimStatus(Struct, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class ExtendedResourceRequestMapping(Struct, frozen=True):
    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class ExtendedResourceClaimStatus(Struct, frozen=True):
    request_mappings: tuple[ExtendedResourceRequestMapping, ...] = ()
    resource_claim_name: str = ""


class PodStatus(Struct, frozen=True):
    phase: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    start_time: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: Resources | None = None
    allocated_resources: ResourceList = {}
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None


class Pod(Object, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def priority(self) -> int:
        """Priority, 0 where admission set none."""
        return self.spec.priority or 0

    @property
    def is_terminal(self) -> bool:
        """Finished for good: uses nothing any more."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp != ""

    def check(self) -> None:
        pod_requests.check_amounts(self)
