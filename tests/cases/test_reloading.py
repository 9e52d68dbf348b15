"""Public cases about a configuration that changes while the daemon runs."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import pytest

from kube_pyscheduler.config.files import ConfigFiles
from kube_pyscheduler.config.load import load_config_file, override
from kube_pyscheduler.daemon.options import Options
from kube_pyscheduler.daemon.reloading import LOOK_SECONDS
from kube_pyscheduler.scheduling_queue.priority_queue import EVENT_RELOAD
from tests.cases.stage import Stage, counter, is_binding, play
from tests.faults.ledger import Ledger
from tests.faults.proxy import Answer, Fault
from tests.faults.world import SCHEDULER, Daemon

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
TAINT = {"key": "example.com/reserved", "value": "", "effect": "NoSchedule"}
UNTAINTED = "{plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}}"
SOON = LOOK_SECONDS + 5.0
"""When a change of the file must have had its effect: a look, a backoff, a binding."""

REFUSED = Fault(delay=20.0, passes=False, answer=Answer(422, "Invalid"))

RELOADS = "scheduler_config_automatic_reloads_total"


class ConfigFile:
    """The file of ``--config``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("{}")

    def write(self, *profiles: str, settings: str = "") -> None:
        self.path.write_text(f"{HEADER}{settings}\nprofiles: [{', '.join(profiles)}]\n")

    def options(self, options: Options) -> Options:
        """The options of a daemon that is started with the file."""
        files = ConfigFiles(
            lambda read: override(load_config_file(self.path, SCHEDULER, read), {}, {"qps": -1.0}),
        )
        return dataclasses.replace(options, config=files.load(), files=files)


@pytest.fixture
def file(tmp_path: Path) -> ConfigFile:
    return ConfigFile(tmp_path / "config.yaml")


def hash_of(daemon: Daemon) -> str:
    """The label of the configuration in force."""
    assert daemon._daemon is not None
    found = [family for family in daemon._daemon._metrics.collect() if family.name == "scheduler_config_info"]
    return str(found[0].samples[0].labels["hash"])


def attempts(daemon: Daemon, name: str) -> int:
    """Of a waiting pod; -1 for one that does not wait."""
    assert daemon.scheduler is not None
    return next((queued.attempts for queued in daemon.scheduler.queue if queued.pod.name == name), -1)


async def refused(stage: Stage, daemon: Daemon, name: str) -> None:
    await stage.until(lambda: "FailedScheduling" in stage.told(name))
    await asyncio.sleep(1.0)
    assert attempts(daemon, name) == 1


def test_bc_77_a_reload_changes_what_decides_and_a_broken_file_changes_nothing(file: ConfigFile) -> None:
    async def story(stage: Stage) -> None:
        stage.add_node(taints=[TAINT])
        daemon = await stage.start(options=file.options)
        stage.add_pod("p")
        await refused(stage, daemon, "p")
        first = hash_of(daemon)

        file.write(UNTAINTED)
        assert await stage.until(lambda: stage.node_of("p")) <= SOON
        second = hash_of(daemon)
        assert second != first
        assert (counter(daemon, RELOADS, status="success"), counter(daemon, RELOADS, status="failure")) == (1, 0)

        file.write("{plugins: {multiPoint: {enabled: [{name: Nobody}]}}}")
        await stage.until(lambda: counter(daemon, RELOADS, status="failure") == 1, SOON)
        stage.add_pod("q")
        assert await stage.until(lambda: stage.node_of("q")) <= 2.0
        await asyncio.sleep(10 * LOOK_SECONDS)
        assert hash_of(daemon) == second
        assert (counter(daemon, RELOADS, status="success"), counter(daemon, RELOADS, status="failure")) == (1, 1)

        file.write("{}")
        await stage.until(lambda: counter(daemon, RELOADS, status="success") == 2, SOON)
        assert hash_of(daemon) == first
        stage.add_pod("r")
        await refused(stage, daemon, "r")

    play(story)


def test_bc_77_a_weight_changes_while_running(file: ConfigFile) -> None:
    def profile(**weights: int) -> str:
        """Pods go where they would rather be, and where little is left."""
        scores = ", ".join(f"{{name: {name}, weight: {weight}}}" for name, weight in weights.items())
        args = "{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}"
        return f"{{plugins: {{score: {{enabled: [{scores}], disabled: [{{name: '*'}}]}}}}, pluginConfig: [{args}]}}"

    async def story(stage: Stage) -> None:
        full, free = stage.add_node(0), stage.add_node(1)
        stage.add_pod("there", cpu="3", node=full)
        there = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [free]}]}
        rather = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": there}]}

        async def chosen(name: str) -> str:
            stage.add_pod(name, affinity={"nodeAffinity": rather})
            await stage.until(lambda: stage.node_of(name))
            return stage.node_of(name)

        file.write(profile(NodeResourcesFit=1, NodeAffinity=10))
        daemon = await stage.start(options=file.options)
        assert await chosen("p") == free
        file.write(profile(NodeResourcesFit=10, NodeAffinity=1))
        await stage.until(lambda: counter(daemon, RELOADS, status="success") == 1, SOON)
        assert await chosen("q") == full

    play(story)


@pytest.mark.parametrize("fault", [Fault(delay=20.0), REFUSED])
def test_bc_77_pods_in_flight_finish_with_the_plugins_they_started_with(file: ConfigFile, fault: Fault) -> None:
    async def story(stage: Stage) -> None:
        stage.add_node()
        file.write(f"{{plugins: {{multiPoint: {{enabled: [{{name: {Ledger.name}}}]}}}}}}")
        daemon = await stage.start(options=file.options)
        stage.wire.suffer(is_binding, fault)
        stage.add_pod("p")
        await stage.until(lambda: stage.wire.of(is_binding))
        file.write("{}")
        await stage.until(lambda: counter(daemon, RELOADS, status="success") == 1, SOON)
        stage.add_pod("q")
        await stage.until(lambda: stage.node_of("q"), 2.0)
        assert [entry.split()[0] for entry in daemon.ledger.open_entries()] == [stage.pod("p")["metadata"]["uid"]]
        await stage.until(lambda: stage.node_of("p"))
        await asyncio.sleep(2.0)
        assert list(daemon.ledger.open_entries()) == []

    play(story)


def test_bc_77_profiles_come_and_go_and_their_pods_with_them(file: ConfigFile) -> None:
    async def story(stage: Stage) -> None:
        stage.add_node()
        file.write("{schedulerName: old}")
        daemon = await stage.start(options=file.options)
        scheduler = daemon.scheduler
        assert scheduler is not None
        stage.add_pod("small", schedulerName="new")
        stage.add_pod("big", cpu="90", schedulerName="old")
        await refused(stage, daemon, "big")
        stage.wire.suffer(is_binding, REFUSED)
        stage.add_pod("flying", schedulerName="old")
        await stage.until(lambda: stage.wire.of(is_binding))

        file.write("{schedulerName: new}")
        await stage.until(lambda: stage.node_of("small"), SOON)
        assert stage.told("small") == ["Scheduled"]
        await asyncio.sleep(60.0)
        assert list(scheduler.queue) == []
        assert len(scheduler.queue.in_flight) == 0
        stage.add_node(1, cpu="100")
        await asyncio.sleep(10.0)
        assert not stage.node_of("big")
        assert not stage.node_of("flying")

        file.write("{schedulerName: new}", "{schedulerName: old}")
        await stage.until(lambda: stage.node_of("big") and stage.node_of("flying"), SOON)

    play(story)


def test_bc_77_only_the_pods_of_profiles_that_changed_are_tried_again(file: ConfigFile) -> None:
    async def story(stage: Stage) -> None:
        stage.add_node(taints=[TAINT])
        file.write("{schedulerName: one}", "{schedulerName: two}")
        daemon = await stage.start(options=file.options)
        for name in ("one", "two"):
            stage.add_pod(name, schedulerName=name)
            await refused(stage, daemon, name)
        # The same with other words.
        file.write("{schedulerName: two}", "{schedulerName: one, plugins: {}}")
        await stage.until(lambda: counter(daemon, RELOADS, status="success") == 1, SOON)
        await asyncio.sleep(10.0)
        assert (attempts(daemon, "one"), attempts(daemon, "two")) == (1, 1)
        file.write("{schedulerName: two}", UNTAINTED.replace("{", "{schedulerName: one, ", 1))
        await stage.until(lambda: stage.node_of("one"), SOON)
        await asyncio.sleep(10.0)
        assert attempts(daemon, "two") == 1
        moved = sum(
            counter(daemon, "scheduler_queue_incoming_pods_total", event=EVENT_RELOAD.label, queue=queue)
            for queue in ("active", "backoff", "unschedulable")
        )
        assert moved == 1

    play(story)


def test_bc_77_who_stands_by_reloads_too(file: ConfigFile) -> None:
    async def story(stage: Stage) -> None:
        stage.add_node(taints=[TAINT])
        leader = await stage.start(name="leader", options=file.options)
        follower = stage.daemon("follower", file.options)
        await follower.start()
        await asyncio.sleep(5.0)
        file.write(UNTAINTED)
        await stage.until(
            lambda: hash_of(leader) == hash_of(follower) and counter(follower, RELOADS, status="success"), SOON
        )
        await leader.crash()
        stage.add_pod("p")
        await stage.until(lambda: stage.node_of("p"))
        assert stage.world.leader is follower

    play(story)


def test_bc_77_a_mounted_config_map_changes_by_a_link(tmp_path: Path) -> None:
    def generation(number: int) -> Path:
        folder = tmp_path / f"..{number}"
        folder.mkdir()
        return folder

    def point_to(folder: Path) -> None:
        fresh = tmp_path / "..data_tmp"
        fresh.symlink_to(folder.name)
        fresh.rename(tmp_path / "..data")

    (tmp_path / "config.yaml").symlink_to("..data/config.yaml")
    point_to(generation(1))
    file = ConfigFile(tmp_path / "config.yaml")

    async def story(stage: Stage) -> None:
        stage.add_node(taints=[TAINT])
        daemon = await stage.start(options=file.options)
        stage.add_pod("p")
        await refused(stage, daemon, "p")
        second = generation(2)
        ConfigFile(second / "config.yaml").write(UNTAINTED)
        point_to(second)
        assert await stage.until(lambda: stage.node_of("p")) <= SOON

    play(story)
