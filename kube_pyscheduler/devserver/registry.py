"""Typed operations on stored objects: what the API server does between HTTP and storage.

The HTTP verbs, the in-process controllers and the seed all write through this class; they read from ``store``.
An object given to it is copied, so it may share parts with stored ones and be used again; an object returned is
the stored one: never change it (see ``store``).
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable
from typing import Any

from kube_pyscheduler.devserver import binding, errors
from kube_pyscheduler.devserver.admission.metadata import check_metadata, check_metadata_update
from kube_pyscheduler.devserver.admission.pod_defaults import qos_class
from kube_pyscheduler.devserver.admission.pod_updates import check_resize, resized
from kube_pyscheduler.devserver.admission.rules import Rules, rules_for
from kube_pyscheduler.devserver.deletion import Deletion, finished
from kube_pyscheduler.devserver.options import STRICT, WARN, DeleteOptions, WriteOptions
from kube_pyscheduler.devserver.patching.apply import apply, track_update
from kube_pyscheduler.devserver.problems import Problems
from kube_pyscheduler.devserver.resources import NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS, Resource, ResourceTable
from kube_pyscheduler.devserver.schema.normalise import read_object
from kube_pyscheduler.devserver.schema.types import ANY_TYPE, STRUCT, Type, builtin_type, type_of
from kube_pyscheduler.devserver.store import Object, Store, copy_object
from kube_pyscheduler.devserver.times import timestamp
from kube_pyscheduler.kit.clock import Clock, RealClock

_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Source: staging/src/k8s.io/apimachinery/pkg/util/rand/rand.go."""
_SYSTEM_METADATA = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "generateName",
)
_DEFAULTS = WriteOptions()


class Registry:
    """Creates, changes, binds and deletes objects by the rules of their kind."""

    def __init__(self, store: Store, table: ResourceTable, *, clock: Clock | None = None) -> None:
        self.store = store
        self.table = table
        self.clock = clock or RealClock()
        self._deletion = Deletion(store, self.clock)

    def now(self) -> str:
        """The current time as metav1.Time."""
        return timestamp(self.clock.now())

    # -- create ------------------------------------------------------------------------------------------------

    def create(self, resource: Resource, obj: Object, options: WriteOptions = _DEFAULTS) -> Object:
        """Store a new object, completed and checked; metadata.namespace must be set where the kind has one.

        403, 404 (the namespace), 409, 422.
        """
        obj = self._read(resource, obj, options)
        metadata = obj.setdefault("metadata", {})
        if metadata.get("resourceVersion"):
            raise errors.internal("resourceVersion should not be set on objects to be created")
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"):
            metadata.pop(key, None)
        self._name(resource, metadata)
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = self.now()
        self._check_namespace(resource, metadata)
        rules = self._rules(resource)
        rules.default(obj)
        rules.admit(self.store, obj)
        if rules.generation:
            metadata["generation"] = 1
        if rules.first_status is not None:
            status = rules.first_status(obj)
            obj.pop("status", None)
            if status is not None:
                obj["status"] = status
        problems = Problems()
        check_metadata(resource, metadata, problems)
        rules.check(obj, problems)
        _refuse(resource, metadata["name"], problems)
        if options.dry_run:
            if self.store.get(resource, metadata.get("namespace", ""), metadata["name"]) is not None:
                raise errors.already_exists(resource.key, metadata["name"])
            return {"kind": resource.kind, "apiVersion": resource.api_version, **obj}
        created = self.store.create(resource, obj).obj
        if resource is NAMESPACES:
            self._furnish(metadata["name"])
        return created

    def _name(self, resource: Resource, metadata: dict[str, Any]) -> None:
        if metadata.get("name"):
            return
        if not metadata.get("generateName"):
            problems = Problems()
            problems.required("metadata.name", "name or generateName is required")
            _refuse(resource, "", problems)
        prefix, namespace = metadata["generateName"][:58], metadata.get("namespace", "")
        while True:
            metadata["name"] = prefix + "".join(secrets.choice(_SUFFIX_ALPHABET) for _ in range(5))
            if self.store.get(resource, namespace, metadata["name"]) is None:
                return

    def _check_namespace(self, resource: Resource, metadata: dict[str, Any]) -> None:
        if not resource.namespaced:
            return
        name = metadata.get("namespace", "")
        namespace = self.store.get(NAMESPACES, "", name)
        if namespace is None:
            raise errors.not_found("namespaces", name)
        if namespace["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {name} because it is being terminated"
            raise errors.StatusError(
                403,
                "Forbidden",
                f'{resource.key} "{metadata["name"]}" is forbidden: {why}',
                resource=resource.key,
                name=metadata["name"],
                causes=[
                    errors.Cause("NamespaceTerminating", f"namespace {name} is being terminated", "metadata.namespace")
                ],
            )

    def _furnish(self, namespace: str) -> None:
        """Every namespace has a ServiceAccount "default", as the controller of a cluster would make."""
        self.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default", "namespace": namespace}})

    # -- update ------------------------------------------------------------------------------------------------

    def modify(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        change: Callable[[Object], Object],
        *,
        subresource: str = "",
        options: WriteOptions = _DEFAULTS,
    ) -> Object:
        """Replace an object by ``change(current)``, which must not change its argument. 404 and as ``update``."""
        current = self.store.get(resource, namespace, name)
        if current is None:
            raise errors.not_found(resource.key, name)
        changed = change(current)
        metadata = changed.get("metadata")
        if not isinstance(metadata, dict):
            raise errors.bad_request("metadata must be an object")
        if metadata.get("name") != name or metadata.get("namespace", "") != namespace:
            raise errors.bad_request("the name and the namespace of an object can't be changed")
        return self.update(resource, changed, subresource=subresource, options=options)

    def update(
        self, resource: Resource, obj: Object, *, subresource: str = "", options: WriteOptions = _DEFAULTS
    ) -> Object:
        """Replace an object, or the part of it that a subresource ("status", "resize", …) covers.

        A metadata.resourceVersion or uid in ``obj`` must be the current one, else 409. 404, 422. An object that was
        only waiting for its last finalizer to go is deleted.
        """
        name, namespace = obj["metadata"].get("name", ""), obj["metadata"].get("namespace", "")
        current = self.store.get(resource, namespace, name)
        if current is None:
            raise errors.not_found(resource.key, name)
        given = obj["metadata"].get("managedFields")
        obj = self._read(resource, obj, options)
        if current["metadata"].get("managedFields") and given != [{}]:
            obj = track_update(
                current,
                obj,
                self._type(resource),
                manager=options.field_manager,
                api_version=resource.api_version,
                now=self.now(),
                subresource=subresource,
            )
        else:
            obj["metadata"].pop("managedFields", None)
        return self._replace(resource, obj, current, subresource, options)

    def _replace(
        self, resource: Resource, obj: Object, current: Object, subresource: str, options: WriteOptions
    ) -> Object:
        """Check and store a new state of an object; ``obj`` is this method's own."""
        name, namespace = current["metadata"]["name"], current["metadata"].get("namespace", "")
        rules = self._rules(resource)
        self._check_version(resource, rules, obj["metadata"], current["metadata"])
        problems = Problems()
        match subresource:
            case "status":
                new = self._with_status(resource, rules, obj, current)
            case "resize":
                new = resized(obj, current)
                rules.default(new)
                check_resize(new, current, problems)
                if qos_class(new["spec"]) != qos_class(current["spec"]):
                    problems.invalid(
                        "spec", qos_class(new["spec"]), "Pod QOS Class may not change as a result of resizing"
                    )
            case "ephemeralcontainers":
                ephemeral = obj["spec"].get("ephemeralContainers") or []
                new = {**copy_object(current), "spec": {**current["spec"], "ephemeralContainers": ephemeral}}
                rules.default(new)
            case "finalize":
                new = {
                    **current,
                    "spec": {**current.get("spec", {}), "finalizers": (obj.get("spec") or {}).get("finalizers", [])},
                }
            case _:
                new = self._with_spec(resource, rules, obj, current)
                rules.check(new, problems)
                rules.check_update(new, current, problems)
        check_metadata(resource, new["metadata"], problems)
        check_metadata_update(new["metadata"], current["metadata"], problems)
        _refuse(resource, name, problems)
        if rules.generation and _desired(new) != _desired(current):
            new["metadata"] = {**new["metadata"], "generation": current["metadata"].get("generation", 0) + 1}
        new["metadata"] = {**new["metadata"], "resourceVersion": current["metadata"]["resourceVersion"]}
        if options.dry_run:
            return new
        if finished(resource, new):
            self.store.delete(resource, namespace, name)
            return new
        return self.store.update(resource, new).obj

    def put(self, resource: Resource, obj: Object, options: WriteOptions = _DEFAULTS) -> tuple[Object, bool]:
        """Replace an object, or create it where its kind allows that; the object, and whether it was created."""
        metadata = obj["metadata"]
        name, namespace = metadata.get("name", ""), metadata.get("namespace", "")
        absent = self.store.get(resource, namespace, name) is None
        if not absent or not self._rules(resource).create_on_update:
            return self.update(resource, obj, options=options), False
        if metadata.get("uid"):
            raise errors.conflict(
                resource.key,
                name,
                f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: ",
            )
        return self.create(resource, {**obj, "metadata": {**metadata, "resourceVersion": ""}}, options), True

    def apply(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Object,
        *,
        force: bool,
        subresource: str = "",
        options: WriteOptions,
    ) -> tuple[Object, bool]:
        """Server-side apply by ``options.field_manager``; the object, and whether it was created.

        409 when fields of other managers would change, unless ``force``; otherwise as ``create`` and ``update``.
        """
        current = self.store.get(resource, namespace, name)
        if current is None and subresource:
            raise errors.not_found(resource.key, name)
        applied = apply(
            current,
            self._read_part(resource, body, options),
            self._type(resource),
            manager=options.field_manager,
            api_version=resource.api_version,
            now=self.now(),
            force=force,
            read=lambda obj: self._read_part(resource, obj, WriteOptions()),
            subresource=subresource,
        )
        if current is None:
            return self.create(resource, applied, options), True
        obj = self._read(resource, applied, WriteOptions())
        return self._replace(resource, obj, current, subresource, options), False

    def _check_version(self, resource: Resource, rules: Rules, given: dict[str, Any], current: dict[str, Any]) -> None:
        version = given.get("resourceVersion") or "0"
        if version == "0":
            if not rules.unconditional_update:
                problems = Problems()
                problems.invalid("metadata.resourceVersion", 0, "must be specified for an update")
                raise errors.invalid(resource.plural, resource.group, current["name"], problems.causes)
        elif version != current["resourceVersion"]:
            raise errors.conflict(resource.key, current["name"], errors.STALE)
        uid = given.get("uid") or current["uid"]
        if uid != current["uid"]:
            raise errors.conflict(
                resource.key,
                current["name"],
                f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current['uid']}",
            )

    def _with_spec(self, resource: Resource, rules: Rules, obj: Object, current: Object) -> Object:
        """The given object with the metadata and status that an update can't touch."""
        _carry_metadata(obj["metadata"], current["metadata"])
        if "status" in resource.subresources:
            obj.pop("status", None)
            if "status" in current:
                obj["status"] = copy_object(current["status"])
        rules.default(obj)
        rules.carry_over(obj, current)
        return obj

    def _with_status(self, resource: Resource, rules: Rules, obj: Object, current: Object) -> Object:
        """The current object with the given status; core kinds take labels and annotations too."""
        metadata = {**current["metadata"], "managedFields": obj["metadata"].get("managedFields") or []}
        if not metadata["managedFields"]:
            del metadata["managedFields"]
        if not resource.group:
            metadata = obj["metadata"]
            _carry_metadata(metadata, current["metadata"])
            for key in ("ownerReferences", "finalizers"):
                metadata.pop(key, None)
                if key in current["metadata"]:
                    metadata[key] = current["metadata"][key]
        new = {**current, "metadata": metadata, "status": obj.get("status") or {}}
        if resource is PODS and "qosClass" in (current.get("status") or {}):
            new["status"].setdefault("qosClass", current["status"]["qosClass"])
        if resource is NODES:
            rules.default(new)
        return new

    # -- the rest ----------------------------------------------------------------------------------------------

    def delete(
        self, resource: Resource, namespace: str, name: str, options: DeleteOptions | None = None
    ) -> tuple[Object, bool]:
        """Delete an object; the object, and whether it is gone (else it waits for grace or finalizers). 404, 409."""
        return self._deletion.delete(resource, namespace, name, options or DeleteOptions())

    def bind(self, namespace: str, name: str, body: Object, *, dry_run: bool = False) -> Object:
        """Assign a pod to the node of a Binding; the pod. 404, 409."""
        return binding.bind(self.store, namespace, name, body, self.now(), dry_run=dry_run)

    def _rules(self, resource: Resource) -> Rules:
        return rules_for(resource, custom=self._type(resource) is ANY_TYPE)

    def _type(self, resource: Resource) -> Type:
        return type_of(resource.group, resource.version, resource.kind) or ANY_TYPE

    def _read(self, resource: Resource, obj: Object, options: WriteOptions) -> Object:
        """A clean copy of the object in the shape of its kind, complete in its parts."""
        clean = self._read_part(resource, obj, options)
        kind = self._type(resource)
        for part in ("metadata", "spec", "status"):
            # Go writes these structs even when they are empty.
            if kind is not ANY_TYPE and part in kind.fields and kind.fields[part].form == STRUCT:
                clean.setdefault(part, {})
        return clean

    def _read_metadata(self, resource: Resource, metadata: Any) -> Any:
        """Clean metadata of a kind whose own shape is not known."""
        given, any_kind = {"metadata": metadata or {}}, builtin_type("", "v1", "ConfigMap")
        return read_object(given, any_kind, resource.kind, resource.version, strict=False)[0]["metadata"]

    def _read_part(self, resource: Resource, obj: Object, options: WriteOptions) -> Object:
        """A clean copy of an object that may hold a part of its kind's fields only."""
        kind = self._type(resource)
        if kind is ANY_TYPE:
            return {**copy_object(obj), "metadata": self._read_metadata(resource, obj.get("metadata"))}
        strict = options.field_validation == STRICT
        clean, messages = read_object(obj, kind, resource.kind, resource.version, strict=strict)
        if options.field_validation == WARN:
            options.warnings.extend(messages)
        return clean


def _carry_metadata(new: dict[str, Any], current: dict[str, Any]) -> None:
    for key in _SYSTEM_METADATA:
        new.pop(key, None)
        if key in current:
            new[key] = current[key]


def _desired(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


def _refuse(resource: Resource, name: str, problems: Problems) -> None:
    if problems:
        raise errors.invalid(resource.kind, resource.group, name, problems.causes)
