"""What the server serves: /version, /api, /apis and the lists of resources, plain and aggregated.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/discovery.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from aiohttp import web

from kube_pyscheduler.devserver import errors
from kube_pyscheduler.devserver.http.answers import object_answer
from kube_pyscheduler.devserver.http.negotiation import accepted
from kube_pyscheduler.devserver.resources import (
    STATUS_VERBS,
    SUBRESOURCE_KINDS,
    SUBRESOURCE_VERBS,
    Resource,
    ResourceTable,
)

Object = dict[str, Any]

VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.0",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
AGGREGATED = frozenset({"APIGroupDiscoveryList"})
_HEALTH = frozenset({"healthz", "livez", "readyz"})


class Discovery:
    """Answers the paths that are no resources."""

    def __init__(self, table: ResourceTable) -> None:
        self._table = table

    def answer(self, request: web.Request, segments: list[str]) -> web.Response:
        if segments[0] in _HEALTH:
            return web.Response(text="ok")
        match segments:
            case ["version"]:
                return object_answer(VERSION)
            case ["api"] | ["apis"]:
                return self._root(request, segments[0])
            case ["api", version]:
                return object_answer(self._resources("", version))
            case ["apis", group]:
                return object_answer(self._group(group))
            case ["apis", group, version]:
                return object_answer(self._resources(group, version))
            case [""]:
                return object_answer({"paths": self._paths()})
        raise errors.no_such_path()

    def _paths(self) -> list[str]:
        versions = {f"/apis/{r.api_version}" if r.group else f"/api/{r.version}" for r in self._table}
        groups = {f"/apis/{r.group}" for r in self._table if r.group}
        fixed = {"/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"}
        return sorted(versions | groups | fixed)

    def _root(self, request: web.Request, root: str) -> web.Response:
        form = accepted(request.headers.get("Accept"), AGGREGATED)
        if form.form:
            if form.version != "v2":
                raise errors.not_acceptable(("application/json",))
            body = self._aggregated(core=root == "api")
            answer = object_answer(body)
            answer.headers["Content-Type"] = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        elif root == "api":
            answer = object_answer({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
        else:
            groups = [self._group(group) for group in self._groups() if group]
            for entry in groups:
                del entry["kind"], entry["apiVersion"]
            answer = object_answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        answer.headers["Vary"] = "Accept"
        return answer

    def _groups(self) -> dict[str, list[str]]:
        """Group → its versions, the preferred one first; groups in the order of the table."""
        groups: dict[str, list[str]] = {}
        for resource in self._table:
            versions = groups.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)
        for versions in groups.values():
            versions.sort(key=_version_rank)
        return groups

    def _group(self, group: str) -> Object:
        versions = self._groups().get(group)
        if not versions or not group:
            raise errors.no_such_path()
        entries = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
        return {
            "kind": "APIGroup",
            "apiVersion": "v1",
            "name": group,
            "versions": entries,
            "preferredVersion": entries[0],
        }

    def _of(self, group: str, version: str) -> list[Resource]:
        return [r for r in self._table if r.group == group and r.version == version]

    def _resources(self, group: str, version: str) -> Object:
        found = self._of(group, version)
        if not found:
            raise errors.no_such_path()
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": found[0].api_version,
            "resources": [entry for resource in found for entry in _entries(resource)],
        }

    def _aggregated(self, *, core: bool) -> Object:
        items = [
            {
                "metadata": {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None},
                "versions": [
                    {
                        "version": version,
                        "resources": [_aggregated_entry(resource) for resource in self._of(group, version)],
                        "freshness": "Current",
                    }
                    for version in versions
                ],
            }
            for group, versions in self._groups().items()
            if core == (not group)
        ]
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }


def _version_rank(version: str) -> tuple[int, str]:
    """Stable versions before beta before alpha."""
    return (2 if "alpha" in version else 1 if "beta" in version else 0, version)


def _subresources(resource: Resource) -> Iterator[tuple[str, tuple[str, str, str], Iterable[str]]]:
    own = (resource.group, resource.version, resource.kind)
    for name in resource.subresources:
        kind = SUBRESOURCE_KINDS.get(name, own)
        yield name, kind, SUBRESOURCE_VERBS.get(name, STATUS_VERBS)


def _entries(resource: Resource) -> Iterator[Object]:
    entry: Object = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    yield entry
    for name, (group, version, kind), verbs in _subresources(resource):
        entry = {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": kind,
            "verbs": list(verbs),
        }
        if group and group != resource.group:
            entry["group"] = group
            entry["version"] = version
        yield entry


def _response_kind(group: str, version: str, kind: str) -> Object:
    return {"group": group, "version": version, "kind": kind}


def _aggregated_entry(resource: Resource) -> Object:
    entry: Object = {
        "resource": resource.plural,
        "responseKind": _response_kind(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [
            {"subresource": name, "responseKind": _response_kind(*kind), "verbs": list(verbs)}
            for name, kind, verbs in _subresources(resource)
        ]
    return entry
