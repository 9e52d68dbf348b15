"""ControllerRevisions: the templates that a StatefulSet or DaemonSet had, so that ``kubectl rollout`` can show them.

Source: pkg/controller/history/controller_history.go.
"""

from __future__ import annotations

from kube_pyscheduler.devserver.controllers.environment import Environment
from kube_pyscheduler.devserver.controllers.writing import controller_reference, template_hash
from kube_pyscheduler.devserver.resources import builtin
from kube_pyscheduler.devserver.store import Object

CONTROLLER_REVISIONS = builtin("controllerrevisions.apps")
HASH_LABEL = "controller-revision-hash"


class Revisions:
    """Keeps the revisions of the objects of one kind."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._known: dict[str, tuple[int, str]] = {}
        """UID of an owner → its generation and the hash of its template, to look only when something changed."""

    def current_hash(self, owner: Object) -> str:
        """The hash of the owner's template; its ControllerRevision is made, or made the latest, if need be."""
        uid, generation = owner["metadata"]["uid"], owner["metadata"].get("generation", 0)
        known = self._known.get(uid)
        if known is not None and known[0] == generation:
            return known[1]
        found = template_hash(owner["spec"]["template"])
        self._record(owner, found)
        self._known[uid] = (generation, found)
        return found

    def template(self, owner: Object, revision_hash: str) -> Object:
        """The template of that hash; the current one where it is no longer known."""
        name = f"{owner['metadata']['name']}-{revision_hash}"
        revision = self._env.store.get(CONTROLLER_REVISIONS, owner["metadata"]["namespace"], name)
        if revision is None:
            return dict(owner["spec"]["template"])
        return {k: v for k, v in revision["data"]["spec"]["template"].items() if k != "$patch"}

    def forget(self, owner: Object) -> None:
        self._known.pop(owner["metadata"]["uid"], None)

    def _record(self, owner: Object, revision_hash: str) -> None:
        metadata = owner["metadata"]
        revisions = sorted(self._of(owner), key=lambda revision: int(revision["revision"]))
        latest = int(revisions[-1]["revision"]) if revisions else 0
        name = f"{metadata['name']}-{revision_hash}"
        present = next((r for r in revisions if r["metadata"]["name"] == name), None)
        if present is not None:
            if present["revision"] != latest:
                self._env.registry.update(CONTROLLER_REVISIONS, {**present, "revision": latest + 1})
            return
        template = owner["spec"]["template"]
        labels = {**(template["metadata"].get("labels") or {}), HASH_LABEL: revision_hash}
        self._env.registry.create(
            CONTROLLER_REVISIONS,
            {
                "metadata": {
                    "name": name,
                    "namespace": metadata["namespace"],
                    "labels": labels,
                    "ownerReferences": [controller_reference(owner)],
                },
                "data": {"spec": {"template": {**template, "$patch": "replace"}}},
                "revision": latest + 1,
            },
        )
        for old in revisions[: max(0, len(revisions) - owner["spec"]["revisionHistoryLimit"])]:
            self._env.registry.delete(CONTROLLER_REVISIONS, metadata["namespace"], old["metadata"]["name"])

    def _of(self, owner: Object) -> list[Object]:
        uid = owner["metadata"]["uid"]
        return [
            revision
            for revision in self._env.store.list_objects(CONTROLLER_REVISIONS, owner["metadata"]["namespace"])
            if any(reference["uid"] == uid for reference in revision["metadata"].get("ownerReferences") or ())
        ]
