"""The few requests that a demonstration sends to the API server."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final, Self

import msgspec

from kube_pyscheduler.objects.kinds import NODE, PERSISTENT_VOLUME_CLAIM, POD, Kind
from kube_pyscheduler.objects.meta import Object as Typed
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.storage import PersistentVolumeClaim
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.credentials import Credentials, Source
from kube_pyscheduler.transport.errors import APIError, NetworkError
from kube_pyscheduler.transport.requests import Request
from kube_pyscheduler.transport.session import Session

USER_AGENT: Final = "kube-pyscheduler-demo"

Object = dict[str, Any]


class _Raws(msgspec.Struct):
    items: list[msgspec.Raw] = []


class ClusterApi:
    """Creates objects of any kind and lists those that the demo shows. A context manager."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._client = Client(session)
        self._plurals: dict[tuple[str, str], tuple[str, bool]] = {}

    @classmethod
    async def of(cls, kubeconfig: str) -> ClusterApi:
        """Raises CredentialsError."""
        return cls(Session(await Credentials.read(Source(kubeconfig)), user_agent=USER_AGENT))

    async def __aenter__(self) -> Self:
        await self._session.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def is_ready(self) -> bool:
        try:
            await self._client.send(Request("GET", "/readyz"), deadline=2.0)
        except (APIError, NetworkError):
            return False
        return True

    async def create(self, obj: Object) -> None:
        """Raises APIError."""
        await self._client.send(Request("POST", await self._path_for(obj), body=msgspec.json.encode(obj)))

    async def get(self, obj: Object) -> Object:
        """The current state of an object that was created. Raises APIError."""
        path = f"{await self._path_for(obj)}/{obj['metadata']['name']}"
        found: Object = msgspec.json.decode(await self._client.send(Request("GET", path)))
        return found

    async def pods(self, namespace: str) -> list[Pod]:
        return await self._list(POD, namespace)

    async def nodes(self) -> list[Node]:
        return await self._list(NODE)

    async def claims(self, namespace: str) -> list[PersistentVolumeClaim]:
        return await self._list(PERSISTENT_VOLUME_CLAIM, namespace)

    async def _list(self, kind: Kind[Any], namespace: str = "") -> list[Any]:
        root, _, plural = kind.path.rpartition("/")
        path = f"{root}/namespaces/{namespace}/{plural}" if namespace else kind.path
        raws = msgspec.json.decode(await self._client.send(Request("GET", path)), type=_Raws)
        decoded: list[Typed] = [kind.decoder.decode(raw) for raw in raws.items]
        return sorted(decoded, key=lambda obj: obj.key)

    async def _path_for(self, obj: Object) -> str:
        """Where objects of that kind are created."""
        version = obj["apiVersion"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        plural, namespaced = await self._plural_of(root, obj["kind"])
        if not namespaced:
            return f"{root}/{plural}"
        return f"{root}/namespaces/{obj['metadata'].get('namespace', 'default')}/{plural}"

    async def _plural_of(self, root: str, kind: str) -> tuple[str, bool]:
        """Asks the server what it serves there, once. Raises LookupError for a kind that it does not."""
        if (root, kind) not in self._plurals:
            served = msgspec.json.decode(await self._client.send(Request("GET", root)))
            for entry in served["resources"]:
                if "/" not in entry["name"]:
                    self._plurals[root, entry["kind"]] = (entry["name"], entry["namespaced"])
        if (root, kind) not in self._plurals:
            raise LookupError(f"the server does not know {kind} at {root}")
        return self._plurals[root, kind]
