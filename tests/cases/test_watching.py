"""Public cases about lists, watches and credentials: the daemon and an API server, over a wire that fails."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kube_pyscheduler.config.load import override
from kube_pyscheduler.daemon.options import Options
from kube_pyscheduler.devserver.resources import CUSTOM_RESOURCE_DEFINITIONS
from tests.cases.stage import Stage, counter, is_binding, is_renewal, lists, play, watches
from tests.faults.proxy import Answer, Asked, Cut, Fault, Tampered, gone_line

RESET = Fault(passes=False, answer=Cut.RESET)


async def lose_everything(stage: Stage) -> None:
    """The watches break, and cannot be opened again until the history is gone."""
    stage.wire.suffer_always(lambda asked: asked.is_watch, RESET)
    await stage.world.daemons[-1].proxy.reset()


def test_bc_11_a_delete_lost_with_the_watch() -> None:
    async def story(stage: Stage) -> None:
        node = stage.add_node()
        stage.add_pod("a", cpu="4", node=node)
        await stage.start()
        stage.add_pod("b", cpu="4")
        await stage.until(lambda: "FailedScheduling" in stage.told("b"))
        await lose_everything(stage)
        stage.delete_pod("a")
        stage.world.server.store.compact()
        stage.wire.heal()
        await stage.until(lambda: len(stage.wire.of(lists("pods"))) == 3)
        # The first list is that of the start, the second one that of a new leader.
        assert await stage.until(lambda: stage.node_of("b") == node) <= 10.0

    play(story)


def test_bc_52_connections_reset_while_the_watch_is_opened() -> None:
    async def story(stage: Stage) -> None:
        stage.add_node()
        daemon = await stage.start()
        await stage.until(lambda: stage.wire.of(watches("pods")))
        before = len(stage.wire.of(watches("pods")))
        listed = len(stage.wire.of(lists("pods")))
        stage.wire.suffer(watches("pods"), *[RESET] * 20)
        await daemon.proxy.reset()
        stage.add_pod("p")
        await stage.until(lambda: stage.node_of("p"), within=700.0)
        opened = [heard.at for heard in stage.wire.of(watches("pods"))[before:]]
        assert len(opened) == 21
        pauses = [after - first for first, after in itertools.pairwise(opened)]
        assert max(pauses) <= 30.5
        assert len({round(pause, 3) for pause in pauses if pause > 15.0}) > 5
        assert len(stage.wire.of(lists("pods"))) == listed

    play(story)


COMPACTED = {"code": 500, "message": "etcdserver: mvcc: required revision has been compacted"}


def error_line(**status: Any) -> bytes:
    return json.dumps({"type": "ERROR", "object": {"kind": "Status", "metadata": {}, **status}}).encode() + b"\n"


@pytest.mark.parametrize(
    "expired",
    [error_line(code=410), gone_line(), error_line(**COMPACTED), Fault(passes=False, answer=Answer(410, "Expired"))],
    ids=["410 and nothing else", "410 in the stream", "compacted", "410 for the request"],
)
def test_bc_53_an_expired_version(expired: bytes | Fault) -> None:
    async def story(stage: Stage) -> None:
        stage.add_node(cpu="1")
        daemon = await stage.start()
        assert daemon.scheduler is not None
        stage.add_pod("waits", cpu="2")
        await stage.until(lambda: "FailedScheduling" in stage.told("waits"))
        await asyncio.sleep(5.0)
        listed = len(stage.wire.of(lists("pods")))
        if isinstance(expired, Fault):
            stage.wire.suffer(watches("pods"), expired)
            await daemon.proxy.reset()
        else:
            endings = iter([Tampered([expired], end=Cut.RESET)])
            stage.wire.tamper(watches("pods"), lambda lines: next(endings, Tampered(lines)))
        stage.add_pod("small", cpu="500m")
        await stage.until(lambda: stage.node_of("small"))
        await asyncio.sleep(30.0)
        assert len(stage.wire.of(lists("pods"))) == listed + 1
        versions = [heard.asked.query["resourceVersion"] for heard in stage.wire.of(watches("pods"))]
        assert all(version.isdecimal() and int(version) > 0 for version in versions)
        (waits,) = daemon.scheduler.queue
        assert waits.attempts == 1

    play(story)


def token_options(folder: Path) -> Any:
    def change(options: Options) -> Options:
        user = {"name": "u", "user": {"tokenFile": str(folder / "token")}}
        cluster = {"name": "c", "cluster": {"server": options.master}}
        context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
        document = {"clusters": [cluster], "users": [user], "contexts": [context], "current-context": "x"}
        path = folder / "kubeconfig"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **document}))
        return replace(options, config=override(options.config, {}, {"kubeconfig": str(path)}), master="")

    return change


LIFE = 90.0
"""Seconds for which the server takes a token; there is a new one every minute."""


def test_bc_55_the_token_rotates(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        stage.add_node(cpu="64")
        given = {"token-0": stage.loop.time()}
        refused: list[Asked] = []

        def is_stale(asked: Asked) -> bool:
            is_over = stage.loop.time() > given[asked.token] + LIFE
            if is_over:
                refused.append(asked)
            return is_over

        (tmp_path / "token").write_text("token-0")
        daemon = stage.daemon(options=token_options(tmp_path))
        stage.wire.suffer_always(is_stale, Fault(passes=False, answer=Answer(401, "Unauthorized")))
        await daemon.start()
        await stage.until(lambda: stage.world.leader is daemon)
        for rotation in range(1, 11):
            for number in range(6):
                stage.add_pod(f"p-{rotation}-{number}")
                await asyncio.sleep(10.0)
            token = f"token-{rotation}"
            given[token] = stage.loop.time()
            (tmp_path / "token").write_text(token)
        assert all(stage.node_of(pod["metadata"]["name"]) for pod in stage.world.pods())
        assert counter(daemon, "scheduler_schedule_attempts_total", result="error") == 0
        assert counter(daemon, "scheduler_schedule_attempts_total", result="scheduled") == 60
        assert stage.world.leader is daemon
        for which in (is_binding, is_renewal, lambda asked: asked.is_watch):
            assert len({heard.asked.token for heard in stage.wire.of(which)}) > 5
        # A refusal is answered by reading the file once and trying once more.
        assert len(refused) <= 10

    play(story, tokens=[f"token-{number}" for number in range(11)])


def test_bc_56_peerings_of_operators_do_not_matter() -> None:
    async def story(stage: Stage) -> None:
        stage.add_node()
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"plural": "clusterkopfpeerings", "kind": "ClusterKopfPeering"}
        definition = {
            "metadata": {"name": "clusterkopfpeerings.kopf.dev"},
            "spec": {"group": "kopf.dev", "scope": "Cluster", "names": names, "versions": [version]},
        }
        stage.registry.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
        peer = {"priority": 1000, "lifetime": 10**6, "lastseen": "2100-01-01T00:00:00"}
        peering = {"metadata": {"name": "default"}, "status": {"another-operator": peer}}
        served = stage.registry.table.by_path("kopf.dev", "v1", "clusterkopfpeerings")
        assert served is not None
        stage.registry.create(served, peering)
        await stage.start()
        stage.add_pod("p")
        await stage.until(lambda: stage.node_of("p"), within=2.0)
        assert not stage.wire.of(lambda asked: "kopf" in asked.path)

    play(story)


def test_bc_82_a_pod_whose_addition_was_never_told() -> None:
    def is_told(line: bytes) -> bool:
        event = json.loads(line)
        return (event["type"], event["object"]["metadata"].get("name")) != ("ADDED", "unheard-of")

    async def story(stage: Stage) -> None:
        stage.add_node()
        daemon = await stage.start()
        stage.wire.tamper(watches("pods"), lambda lines: Tampered([line for line in lines if is_told(line)]))
        stage.add_pod("unheard-of")
        stage.add_pod("heard-of")
        await stage.until(lambda: stage.node_of("heard-of"))
        await asyncio.sleep(60.0)
        assert not stage.node_of("unheard-of")
        await stage.until(lambda: stage.node_of("unheard-of"), within=320.0)
        assert counter(daemon, "scheduler_cache_differences_total", what="watch_behind") == 1
        assert counter(daemon, "scheduler_lost_pods_total") == 1

    play(story)


def test_a_watch_that_looks_alive_and_says_nothing_is_given_up_after_some_bookmarks_should_have_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.faults.proxy.KEEPALIVE", 1e6)

    async def story(stage: Stage) -> None:
        stage.add_node()
        await stage.start()
        endings = iter([Tampered([], end=Cut.SILENT)])
        stage.wire.tamper(watches("pods"), lambda lines: next(endings, Tampered(lines)))
        stage.add_pod("p")
        assert await stage.until(lambda: stage.node_of("p"), within=160.0) > 140.0

    play(story)
