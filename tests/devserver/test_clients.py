"""Other real clients: the official Python client and kopf."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import kopf
import pytest
from kubernetes import client, config, watch

from kube_pyscheduler.devserver.app import DevServer, serve
from kube_pyscheduler.devserver.kubeconfig import write_kubeconfig
from kube_pyscheduler.devserver.resources import CUSTOM_RESOURCE_DEFINITIONS
from tests.devserver.test_custom_resources import definition


@pytest.fixture
def core(server: DevServer, tmp_path: Path) -> Any:
    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, server.url, server.token)
    configuration = client.Configuration()
    load: Any = config.load_kube_config
    load(str(path), client_configuration=configuration)
    return client.CoreV1Api(client.ApiClient(configuration))


async def test_the_official_python_client(core: Any) -> None:
    def use() -> None:
        pod = client.V1Pod(
            metadata=client.V1ObjectMeta(name="a", labels={"x": "1"}),
            spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="nginx:1")]),
        )
        created = core.create_namespaced_pod("default", pod)
        assert created.status.phase == "Pending"
        target = client.V1ObjectReference(kind="Node", name="n")
        body = client.V1Binding(metadata=client.V1ObjectMeta(name="a"), target=target)
        core.create_namespaced_pod_binding("a", "default", body, _preload_content=False)
        assert core.read_namespaced_pod("a", "default").spec.node_name == "n"
        with pytest.raises(client.ApiException) as refused:
            core.create_namespaced_pod("default", pod)
        assert refused.value.status == 409
        core.patch_namespaced_pod("a", "default", {"metadata": {"labels": {"y": "2"}}})
        [listed] = core.list_pod_for_all_namespaces(label_selector="y=2", limit=5).items
        assert listed.metadata.labels == {"x": "1", "y": "2"}
        watching: Any = watch.Watch
        events = watching().stream(core.list_namespaced_pod, "default", timeout_seconds=5)
        first = next(events)
        assert (first["type"], first["object"].metadata.name) == ("ADDED", "a")
        core.delete_namespaced_pod("a", "default", grace_period_seconds=0)
        assert next(events)["type"] == "DELETED"
        events.close()
        core.api_client.close()

    await asyncio.to_thread(use)


def run_operator(url: str, registry: kopf.OperatorRegistry, ready: threading.Event, stop: threading.Event) -> None:
    """An operator on a thread and loop of its own, as the daemon has it."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True

    @kopf.on.login(registry=registry)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=url)

    asyncio.run(
        kopf.operator(
            registry=registry,
            settings=settings,
            standalone=True,
            namespaces=["default"],
            ready_flag=ready,
            stop_flag=stop,
        )
    )


async def test_kopf_follows_custom_resources(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    server = await serve()
    server.registry.create(CUSTOM_RESOURCE_DEFINITIONS, definition())
    widgets = server.context.table.by_kind("example.com/v1", "Widget")
    assert widgets is not None
    loop = asyncio.get_running_loop()
    seen: asyncio.Queue[tuple[str | None, str]] = asyncio.Queue()
    registry = kopf.OperatorRegistry()

    @kopf.on.event("example.com", "v1", "widgets", registry=registry)
    def follow(type: str | None, name: str, **_: Any) -> None:
        loop.call_soon_threadsafe(seen.put_nowait, (type, name))

    ready, stop = threading.Event(), threading.Event()
    thread = threading.Thread(target=run_operator, args=(server.url, registry, ready, stop))
    thread.start()
    try:
        server.registry.create(widgets, {"metadata": {"name": "w", "namespace": "default"}})
        async with asyncio.timeout(10):
            assert (await seen.get())[1] == "w"
            server.registry.delete(widgets, "default", "w")
            while (await seen.get()) != ("DELETED", "w"):
                pass
    finally:
        stop.set()
        await asyncio.to_thread(thread.join, 10)
        await server.stop()
    assert not thread.is_alive()
