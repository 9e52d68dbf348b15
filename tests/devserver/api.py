"""A small HTTP client for the tests: paths in, (status, JSON) out, watches as lines."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp

from kube_pyscheduler.devserver.app import DevServer

Object = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


class Answer(NamedTuple):
    status: int
    body: Any
    headers: Any


class Watch:
    """The events of one open watch, in order."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> Object:
        """The next event; fails when the stream ends."""
        line = await self._response.content.readline()
        assert line, "the watch ended"
        event: Object = json.loads(line)
        return event

    async def names(self, count: int) -> list[tuple[str, str]]:
        """(type, name) of the next events."""
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]

    async def rest(self) -> list[Object]:
        """The events until the server ends the stream."""
        return [json.loads(line) async for line in self._response.content]


class Api:
    def __init__(self, server: DevServer, session: aiohttp.ClientSession, token: str | None = None) -> None:
        self.server = server
        self._session = session
        self._headers = {"Authorization": f"Bearer {server.token if token is None else token}"}
        if token == "":
            self._headers = {}

    def as_(self, token: str) -> Api:
        """The same server with another token; "" for none."""
        return Api(self.server, self._session, token)

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        query: dict[str, str] | None = None,
    ) -> Answer:
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        given = {"Content-Type": "application/json"} if data is not None else {}
        async with self._session.request(
            method,
            self.server.url + path,
            data=None if data is None else io.BytesIO(data),
            params=query,
            headers={**self._headers, **given, **(headers or {})},
        ) as response:
            text = await response.read()
            is_json = "json" in response.headers.get("Content-Type", "")
            return Answer(response.status, json.loads(text) if is_json and text else text, response.headers)

    async def get(self, path: str, **query: str) -> Answer:
        return await self.call("GET", path, query=query)

    async def post(self, path: str, body: Any, **query: str) -> Answer:
        return await self.call("POST", path, body, query=query)

    async def put(self, path: str, body: Any, **query: str) -> Answer:
        return await self.call("PUT", path, body, query=query)

    async def patch(self, path: str, body: Any, kind: str = MERGE, **query: str) -> Answer:
        return await self.call("PATCH", path, body, headers={"Content-Type": kind}, query=query)

    async def delete(self, path: str, body: Any = None, **query: str) -> Answer:
        return await self.call("DELETE", path, body, query=query)

    async def created(self, path: str, body: Object) -> Object:
        """The object that a creation, which must succeed, made."""
        answer = await self.post(path, body)
        assert answer.status == 201, answer.body
        obj: Object = answer.body
        return obj

    @asynccontextmanager
    async def watch(self, path: str, *, accept: str = "application/json", **query: str) -> AsyncIterator[Watch]:
        async with self._session.get(
            self.server.url + path,
            params={"watch": "true", **query},
            headers={**self._headers, "Accept": accept},
        ) as response:
            assert response.status == 200, await response.text()
            yield Watch(response)


def make_pod(name: str = "a", **spec: Any) -> Object:
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "nginx:1"}], **spec},
    }


def binding(name: str, node: str, **metadata: str) -> Object:
    return {
        "kind": "Binding",
        "apiVersion": "v1",
        "metadata": {"name": name, **metadata},
        "target": {"kind": "Node", "name": node},
    }
