"""The Lease resource of an API server, in memory, with faults on demand."""

import copy
from typing import Any

import msgspec

from kube_pyscheduler.transport.errors import AlreadyExists, Conflict, NotFound
from kube_pyscheduler.transport.requests import Request


class LeaseAPI:
    """One lease with optimistic concurrency.

    ``fail`` is raised instead of answering; with ``lose_answers`` writes are done but answered by ``fail``.
    """

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.requests: list[Request] = []
        self.deadlines: list[float] = []
        self.fail: Exception | None = None
        self.lose_answers = False
        self._version = 0

    async def send(self, request: Request, *, deadline: float = 30.0) -> bytes:
        self.requests.append(request)
        self.deadlines.append(deadline)
        if self.fail is not None and not self.lose_answers:
            raise self.fail
        answer = self._do(request)
        if self.fail is not None:
            raise self.fail
        return answer

    def count(self, method: str) -> int:
        return sum(request.method == method for request in self.requests)

    def change(self, **spec: Any) -> None:
        """Somebody else writes."""
        assert self.lease is not None
        self._store({**self.lease, "spec": {**self.lease["spec"], **spec}})

    def _do(self, request: Request) -> bytes:
        if request.method == "GET":
            if self.lease is None:
                raise NotFound(404, "NotFound", "no such lease")
            return msgspec.json.encode(self.lease)
        lease = msgspec.json.decode(request.body or b"")
        if request.method == "POST":
            if self.lease is not None:
                raise AlreadyExists(409, "AlreadyExists", "there is one")
        elif self.lease is None:
            raise NotFound(404, "NotFound", "no such lease")
        elif lease["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise Conflict(409, "Conflict", "the object has been modified")
        return self._store(lease)

    def _store(self, lease: dict[str, Any]) -> bytes:
        self._version += 1
        self.lease = copy.deepcopy(lease)
        self.lease["metadata"]["resourceVersion"] = str(self._version)
        return msgspec.json.encode(self.lease)
