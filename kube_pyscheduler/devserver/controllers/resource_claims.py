"""ResourceClaims: made from templates for pods, and given back when their pods have ended.

Claims of pod groups are left alone. Source: pkg/controller/resourceclaim/controller.go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from kube_pyscheduler.devserver.controllers import pods
from kube_pyscheduler.devserver.controllers.environment import Environment
from kube_pyscheduler.devserver.controllers.events import WARNING
from kube_pyscheduler.devserver.controllers.owned_pods import controller_of
from kube_pyscheduler.devserver.controllers.writing import write_status
from kube_pyscheduler.devserver.errors import StatusError
from kube_pyscheduler.devserver.resources import PODS, Resource, builtin
from kube_pyscheduler.devserver.store import DELETED, Change, Key, Object, Subscriber

RESOURCE_CLAIMS = builtin("resourceclaims.resource.k8s.io")
RESOURCE_CLAIM_TEMPLATES = builtin("resourceclaimtemplates.resource.k8s.io")
POD_CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
FINALIZER = "resource.kubernetes.io/delete-protection"
"""Set by the scheduler while a claim is allocated."""
MAX_RESERVED_FOR = 256
"""Source: staging/src/k8s.io/api/resource/v1/types.go, ResourceClaimReservedForMaxSize."""
_MAX_BASE = 57
COMPONENT = "resource_claim"


class ResourceClaims:
    """The controller of all ResourceClaims."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._users: dict[Key, set[str]] = defaultdict(set)
        """Claim → names of the pods that mention it."""
        self._lacking: dict[Key, set[Key]] = defaultdict(set)
        """Template that does not exist → the pods that need it."""

    def subscriptions(self) -> Iterable[tuple[Resource, Subscriber]]:
        yield RESOURCE_CLAIM_TEMPLATES, self._follow_template
        yield PODS, self._follow_pod
        yield RESOURCE_CLAIMS, self._follow_claim

    def _follow_template(self, change: Change) -> None:
        for key in self._lacking.pop(change.new.key, ()):
            self._env.agenda.soon(self._sync_pod, key)

    def _follow_pod(self, change: Change) -> None:
        pod, (namespace, name) = change.new.obj, change.new.key
        if change.old is not None:
            for claim in _claim_names(change.old.obj):
                self._users[namespace, claim].discard(name)
                if not self._users[namespace, claim]:
                    del self._users[namespace, claim]
        ended = change.kind == DELETED or _is_done(pod)
        for claim in _claim_names(pod):
            if change.kind != DELETED:
                self._users[namespace, claim].add(name)
            if ended:
                self._env.agenda.soon(self._sync_claim, (namespace, claim))
        if not ended and pod["spec"].get("resourceClaims"):
            self._env.agenda.soon(self._sync_pod, change.new.key)

    def _follow_claim(self, change: Change) -> None:
        key = change.new.key
        if change.kind != DELETED:
            self._env.agenda.soon(self._sync_claim, key)
        for name in self._users.get(key, ()):
            self._env.agenda.soon(self._sync_pod, (key[0], name))

    # -- pods --------------------------------------------------------------------------------------------------

    def _sync_pod(self, key: Key) -> None:
        pod = self._env.store.get(PODS, *key)
        if pod is None or pods.is_terminating(pod) or pods.is_terminal(pod):
            return
        made = {}
        for wish in pod["spec"].get("resourceClaims") or ():
            try:
                name = self._ensure(key, pod, wish)
            except StatusError as error:
                message = f"PodResourceClaim {wish['name']}: {error.message}"
                self._env.events.write(COMPONENT, pod, WARNING, "FailedResourceClaimCreation", message)
                raise
            if name:
                made[wish["name"]] = name
        if made:
            pod = self._note(pod, made)
        if pod["spec"].get("nodeName"):
            self._reserve_all(key[0], pod)

    def _ensure(self, key: Key, pod: Object, wish: Object) -> str:
        """Make the claim for one entry of the pod; the name of a claim made now, else ""."""
        template_name = wish.get("resourceClaimTemplateName")
        known = _statuses(pod).get(wish["name"])
        if not template_name or (known is not None and not known):
            return ""
        if known and self._env.store.get(RESOURCE_CLAIMS, key[0], known) is not None:
            return ""
        template_key = (key[0], template_name)
        template = self._env.store.get(RESOURCE_CLAIM_TEMPLATES, *template_key)
        if template is None:
            message = (
                f'PodResourceClaim {wish["name"]}: resource claim template "{template_name}": '
                f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            )
            self._env.events.write(COMPONENT, pod, WARNING, "FailedResourceClaimCreation", message, once=True)
            self._lacking[template_key].add(key)
            return ""
        given = template["spec"].get("metadata") or {}
        metadata: Object = {
            "namespace": key[0],
            "generateName": _base_name(key[1], wish["name"]),
            "annotations": {**(given.get("annotations") or {}), POD_CLAIM_ANNOTATION: wish["name"]},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": key[1], "uid": pod["metadata"]["uid"], "controller": True}
            ],
        }
        if given.get("labels"):
            metadata["labels"] = given["labels"]
        claim = self._env.registry.create(RESOURCE_CLAIMS, {"metadata": metadata, "spec": template["spec"]["spec"]})
        return str(claim["metadata"]["name"])

    def _note(self, pod: Object, made: dict[str, str]) -> Object:
        """Record the claims that were made in the pod's status."""
        status = pod.get("status") or {}
        kept = [entry for entry in status.get("resourceClaimStatuses") or () if entry["name"] not in made]
        added = [{"name": name, "resourceClaimName": claim} for name, claim in made.items()]
        return write_status(self._env.store, PODS, pod, {**status, "resourceClaimStatuses": [*kept, *added]})

    def _reserve_all(self, namespace: str, pod: Object) -> None:
        """A pod that was put on its node without the scheduler reserves its allocated claims now."""
        for name in _claim_names(pod):
            claim = self._env.store.get(RESOURCE_CLAIMS, namespace, name)
            if claim is None or not (claim.get("status") or {}).get("allocation"):
                continue
            reserved = claim["status"].get("reservedFor") or []
            uid = pod["metadata"]["uid"]
            if len(reserved) >= MAX_RESERVED_FOR or any(entry["uid"] == uid for entry in reserved):
                continue
            entry = {"resource": "pods", "name": pod["metadata"]["name"], "uid": uid}
            write_status(
                self._env.store, RESOURCE_CLAIMS, claim, {**claim["status"], "reservedFor": [*reserved, entry]}
            )

    # -- claims ------------------------------------------------------------------------------------------------

    def _sync_claim(self, key: Key) -> None:
        claim = self._env.store.get(RESOURCE_CLAIMS, *key)
        if claim is None:
            return
        reserved = (claim.get("status") or {}).get("reservedFor") or []
        left = [entry for entry in reserved if self._still_needs(key[0], entry)]
        if len(left) < len(reserved) or (not left and "deletionTimestamp" in claim["metadata"]):
            claim = self._release(claim, left)
        if not left and self._env.store.get(RESOURCE_CLAIMS, *key) is not None:
            self._drop_generated(key, claim)

    def _still_needs(self, namespace: str, entry: Object) -> bool:
        if entry.get("apiGroup") or entry.get("resource") != "pods":
            return True
        pod = self._env.store.get(PODS, namespace, entry["name"])
        return pod is not None and pod["metadata"]["uid"] == entry["uid"] and not _is_done(pod)

    def _release(self, claim: Object, left: list[Object]) -> Object:
        """Keep the reservations ``left``; with the last one the allocation and its finalizer go too."""
        status = {key: value for key, value in (claim.get("status") or {}).items() if key != "reservedFor"}
        if left:
            status["reservedFor"] = left
            return write_status(self._env.store, RESOURCE_CLAIMS, claim, status)
        finalizers = claim["metadata"].get("finalizers") or []
        if FINALIZER not in finalizers:
            return write_status(self._env.store, RESOURCE_CLAIMS, claim, status)
        status.pop("allocation", None)
        claim = write_status(self._env.store, RESOURCE_CLAIMS, claim, status)
        kept = [finalizer for finalizer in finalizers if finalizer != FINALIZER]
        # Through the registry: a claim that only waited for this finalizer is deleted.
        return self._env.registry.update(
            RESOURCE_CLAIMS, {**claim, "metadata": {**claim["metadata"], "finalizers": kept}}
        )

    def _drop_generated(self, key: Key, claim: Object) -> None:
        """A claim made for a pod that has ended is of no use to anybody."""
        owner = controller_of(claim)
        if owner is None or owner["kind"] != "Pod" or "deletionTimestamp" in claim["metadata"]:
            return
        pod = self._env.store.get(PODS, key[0], owner["name"])
        if pod is not None and (pod["metadata"]["uid"] != owner["uid"] or _is_done(pod)):
            self._env.registry.delete(RESOURCE_CLAIMS, *key)


def _is_done(pod: Object) -> bool:
    """The pod has ended, or will never run because it is deleted before it got a node."""
    return pods.is_terminal(pod) or (pods.is_terminating(pod) and not pod["spec"].get("nodeName"))


def _statuses(pod: Object) -> dict[str, str]:
    """Entry of the pod → name of its generated claim, "" where none is needed."""
    entries = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    return {entry["name"]: str(entry.get("resourceClaimName") or "") for entry in entries}


def _claim_names(pod: Object) -> Iterator[str]:
    """The claims that the pod uses, as far as they are named already."""
    generated = _statuses(pod) if pod["spec"].get("resourceClaims") else {}
    for wish in pod["spec"].get("resourceClaims") or ():
        name = wish.get("resourceClaimName") or generated.get(wish["name"], "")
        if name:
            yield name
    extended = ((pod.get("status") or {}).get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    if extended:
        yield extended


def _base_name(pod_name: str, claim_name: str) -> str:
    """The generateName of a claim: both names, cut in proportion where they are too long together."""
    full = f"{pod_name}-{claim_name}-"
    if len(full) <= _MAX_BASE:
        return full
    return (
        f"{pod_name[: len(pod_name) * _MAX_BASE // len(full)]}-{claim_name[: len(claim_name) * _MAX_BASE // len(full)]}"
    )
