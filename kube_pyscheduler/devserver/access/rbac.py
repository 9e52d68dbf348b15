"""Authorization by Roles and bindings.

Source: plugin/pkg/auth/authorizer/rbac/rbac.go and pkg/registry/rbac/validation/rule.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kube_pyscheduler.devserver.access.users import MASTERS, User
from kube_pyscheduler.devserver.resources import Resource, builtin
from kube_pyscheduler.devserver.selectors import matches_label_selector
from kube_pyscheduler.devserver.store import Object, Store

ROLES = builtin("roles.rbac.authorization.k8s.io")
ROLE_BINDINGS = builtin("rolebindings.rbac.authorization.k8s.io")
CLUSTER_ROLES = builtin("clusterroles.rbac.authorization.k8s.io")
CLUSTER_ROLE_BINDINGS = builtin("clusterrolebindings.rbac.authorization.k8s.io")

Rule = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a user wants to do: with a resource, or, when ``path`` is set, with a path that is none."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """``reason`` says which binding allows it, or why there is none."""

    allowed: bool
    reason: str = ""


class Authorizer:
    """Answers from the RBAC objects of a store; with ``enforce`` False every known user may do everything."""

    def __init__(self, store: Store, *, enforce: bool) -> None:
        self._store = store
        self.enforce = enforce

    def decide(self, user: User, attributes: Attributes) -> Decision:
        if not self.enforce:
            return Decision(True, "RBAC is not enforced")
        if MASTERS in user.groups:
            return Decision(True)
        for why, rule in self.rules(user, attributes.namespace):
            if _covers(rule, attributes):
                return Decision(True, f"RBAC: allowed by {why} to {_described(user)}")
        return Decision(False)

    def rules(self, user: User, namespace: str) -> Iterator[tuple[str, Rule]]:
        """The rules that hold for a user, cluster-wide ones and those of a namespace, with what grants them."""
        for binding in self._store.list_objects(CLUSTER_ROLE_BINDINGS):
            if _applies(binding, user, ""):
                yield from self._granted(binding, "ClusterRoleBinding", "")
        if namespace:
            for binding in self._store.list_objects(ROLE_BINDINGS, namespace):
                if _applies(binding, user, namespace):
                    yield from self._granted(binding, "RoleBinding", namespace)

    def _granted(self, binding: Object, kind: str, namespace: str) -> Iterator[tuple[str, Rule]]:
        reference, name = binding["roleRef"], binding["metadata"]["name"]
        shown = f"{name}/{namespace}" if namespace else name
        why = f'{kind} "{shown}" of {reference["kind"]} "{reference["name"]}"'
        resource: Resource = ROLES if reference["kind"] == "Role" else CLUSTER_ROLES
        role = self._store.get(resource, namespace if resource is ROLES else "", reference["name"])
        if role is not None:
            for rule in self._role_rules(role):
                yield why, rule

    def _role_rules(self, role: Object) -> Iterator[Rule]:
        selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors")
        if not selectors:
            yield from role.get("rules") or ()
            return
        for other in self._store.list_objects(CLUSTER_ROLES):
            labels = other["metadata"].get("labels") or {}
            if other is not role and any(matches_label_selector(selector, labels) for selector in selectors):
                yield from self._role_rules(other)


def _described(user: User) -> str:
    return f'User "{user.name}"'


def _applies(binding: Object, user: User, namespace: str) -> bool:
    for subject in binding.get("subjects") or ():
        match subject.get("kind"):
            case "User":
                found = subject["name"] == user.name
            case "Group":
                found = subject["name"] in user.groups
            case "ServiceAccount":
                owner = subject.get("namespace") or namespace
                found = user.name == f"system:serviceaccount:{owner}:{subject['name']}"
            case _:
                found = False
        if found:
            return True
    return False


def _covers(rule: Rule, attributes: Attributes) -> bool:
    verbs = rule.get("verbs") or ()
    if "*" not in verbs and attributes.verb not in verbs:
        return False
    if attributes.path:
        return any(_matches_path(pattern, attributes.path) for pattern in rule.get("nonResourceURLs") or ())
    groups = rule.get("apiGroups") or ()
    if "*" not in groups and attributes.group not in groups:
        return False
    if not _matches_resource(rule.get("resources") or (), attributes):
        return False
    names = rule.get("resourceNames") or ()
    return not names or attributes.name in names


def _matches_resource(resources: Any, attributes: Attributes) -> bool:
    wanted = attributes.resource
    if attributes.subresource:
        wanted += "/" + attributes.subresource
        if "*/" + attributes.subresource in resources:
            return True
    return "*" in resources or wanted in resources


def _matches_path(pattern: str, path: str) -> bool:
    if pattern == "*":
        return True
    if pattern.endswith("*"):
        return path.startswith(pattern[:-1])
    return pattern == path
