"""What becomes of a configuration that is read again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kube_pyscheduler.config.files import ConfigFiles
from kube_pyscheduler.config.load import load_config_file
from kube_pyscheduler.config.render import render
from kube_pyscheduler.daemon import reloading
from kube_pyscheduler.daemon.reloading import Configuration, InForce, Reloader, configuration
from kube_pyscheduler.framework.interfaces import CycleContext, Filter, Plugin
from kube_pyscheduler.framework.profile import build_profiles
from kube_pyscheduler.framework.status import Status
from kube_pyscheduler.plugins import IN_TREE
from tests.unit.daemon.cluster import eventually
from tests.unit.daemon.running import HEADER
from tests.unit.scheduler.world import World
from tests.unit.scheduling_queue.builders import SCHEDULER, START, make_pod
from tests.unit.scripted_server import logged


class Theirs(Filter):
    """Cannot be made, or not be prepared, as its arguments say."""

    name = "Theirs"

    def __init__(self, args: Any) -> None:
        self._args = args or {}
        if self._args.get("fails") == "made":
            raise KeyError("no such thing")

    def prepare(self, ctx: CycleContext) -> None:
        if self._args.get("fails") == "prepared":
            raise OSError("no disk")

    def filter(self, ctx: CycleContext, pod: Any, node: Any) -> Status | None:
        return None


def theirs(**args: str) -> str:
    """A profile with the plugin."""
    return (
        f"profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: Theirs}}]}}}}, "
        f"pluginConfig: [{{name: Theirs, args: {args}}}]}}]"
    )


class Reloaded:
    """A reloader over a file, and a scheduler without a cluster."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.write("")
        registry = {**IN_TREE, Theirs.name: Theirs}
        files = ConfigFiles(lambda read: load_config_file(path, SCHEDULER, read))
        config = files.load()
        self._in_force = InForce(configuration(config, build_profiles(config.profiles, registry)))
        self.world = World(self.now.profiles[SCHEDULER])
        self.reloader = Reloader(files, registry, self._in_force, self.world.scheduler, self.world.clock)

    @property
    def now(self) -> Configuration:
        return self._in_force.now

    def write(self, text: str) -> None:
        self._path.write_text(HEADER + text)

    def reload(self, text: str) -> None:
        self.write(text)
        self.reloader.reload()

    def plugin(self, name: str) -> Plugin:
        return self.now.profiles[SCHEDULER].plugins[name]


@pytest.fixture
async def reloaded(tmp_path: Path) -> Reloaded:
    return Reloaded(tmp_path / "config.yaml")


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("]", [("", "not YAML: ")]),
        (
            "parallelism: 0\nprofiles: [{plugins: {score: {enabled: [{name: A, weight: -1}]}}, unknown: 1}]",
            [
                ("profiles[0].unknown", "unknown field"),
                ("parallelism", "Invalid value: 0"),
                ("profiles[0].plugins.score.enabled[0].weight", "Invalid value: -1"),
            ],
        ),
        (
            "profiles: [{schedulerName: a, plugins: {filter: {enabled: [{name: A}]}}}, "
            "{schedulerName: b, plugins: {score: {enabled: [{name: B}]}}}]",
            [
                ("profiles[0].plugins.filter.enabled[0]", 'plugin "A" is not registered'),
                ("profiles[1].plugins.score.enabled[0]", 'plugin "B" is not registered'),
            ],
        ),
        (theirs(fails="made"), [("profiles[0].pluginConfig", 'initializing plugin "Theirs"')]),
    ],
)
async def test_all_that_is_wrong_is_said_and_nothing_changes(
    reloaded: Reloaded, caplog: pytest.LogCaptureFixture, text: str, problems: list[tuple[str, str]]
) -> None:
    before = reloaded.now
    reloaded.reload(text)
    said = [record.fields for record in caplog.records if record.message == "Invalid configuration"]  # type: ignore[attr-defined]
    assert [fields["path"] for fields in said] == [path for path, _ in problems]
    for fields, (_, problem) in zip(said, problems, strict=True):
        assert problem in fields["problem"]
    assert caplog.records[-1].message == "Cannot use the configuration, going on with the old one"
    assert (reloaded.now.digest, reloaded.now.profiles) == (before.digest, before.profiles)
    assert reloaded.reloader.counts == {"success": 0, "failure": 1}
    assert list(reloaded.reloader.last_times) == ["failure"]


async def test_a_plugin_that_cannot_prepare_is_refused(reloaded: Reloaded, caplog: pytest.LogCaptureFixture) -> None:
    scheduler = reloaded.world.scheduler
    scheduler.start()
    digest = reloaded.now.digest
    reloaded.reload(theirs(fails="prepared"))
    assert "OSError: no disk" in "\n".join(logged(caplog))
    assert reloaded.now.digest == digest
    assert reloaded.reloader.counts == {"success": 0, "failure": 1}
    reloaded.world.node()
    reloaded.world.apply(make_pod())
    await reloaded.world.binder.called.wait()
    await scheduler.stop()
    assert reloaded.world.bound == {"p": "n1"}


async def test_a_file_that_is_gone_is_refused_until_it_is_back(reloaded: Reloaded, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").unlink()
    reloaded.reloader.reload()
    assert reloaded.reloader.counts == {"success": 0, "failure": 1}
    reloaded.reload(theirs())
    assert reloaded.reloader.counts == {"success": 1, "failure": 1}
    assert reloaded.plugin("Theirs")


async def test_what_needs_a_restart_is_said_in_one_line_and_the_rest_is_done(
    reloaded: Reloaded, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    digest = reloaded.now.digest
    text = (
        "leaderElection: {leaseDuration: 40s, resourceName: other}\nclientConnection: {qps: 3}\n"
        "delayCacheUntilActive: true\n"
    )
    reloaded.reload(f"{text}podInitialBackoffSeconds: 7\npodMaxBackoffSeconds: 60\n{theirs()}")
    (said,) = [record for record in caplog.records if "need a restart" in record.message]
    assert said.fields["settings"] == [  # type: ignore[attr-defined]
        "leaderElection.leaseDuration",
        "leaderElection.resourceName",
        "clientConnection.qps",
        "delayCacheUntilActive",
    ]
    shown = render(reloaded.now.config)
    assert shown["leaderElection"]["resourceName"] == "kube-pyscheduler"
    assert (shown["clientConnection"]["qps"], shown["delayCacheUntilActive"]) == (50, False)
    assert (shown["podInitialBackoffSeconds"], shown["podMaxBackoffSeconds"]) == (7, 60)
    assert shown["profiles"][0]["plugins"]["multiPoint"]["enabled"][-1] == {"name": "Theirs"}
    assert reloaded.plugin("Theirs")
    assert reloaded.now.digest != digest
    queue = reloaded.world.scheduler.queue
    queue.add(make_pod(), START)
    queued = queue.pop(START)
    assert queued is not None
    queue.add_unschedulable(queued, START)
    assert queued.backoff_expiration == START + 7


async def test_a_file_that_says_the_same_disturbs_nobody(reloaded: Reloaded, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    before = reloaded.now
    reloaded.reload("# only more words\nparallelism: 16\n")
    assert caplog.records[-1].message == "The configuration says the same as before"
    assert (reloaded.now.digest, reloaded.now.profiles) == (before.digest, before.profiles)
    assert reloaded.reloader.counts == {"success": 1, "failure": 0}


async def test_plugins_keep_what_they_know_while_their_arguments_are_the_same(reloaded: Reloaded) -> None:
    reloaded.reload(theirs(a="1"))
    first, fit = reloaded.plugin("Theirs"), reloaded.plugin("NodeResourcesFit")
    reloaded.reload(theirs(a="2"))
    assert reloaded.plugin("Theirs") is not first
    assert reloaded.plugin("NodeResourcesFit") is fit


async def test_it_is_read_again_when_it_changes_or_somebody_asks(
    reloaded: Reloaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reloading, "LOOK_SECONDS", 0.0)
    watching = asyncio.create_task(reloaded.reloader.watch())
    reloaded.write(theirs())
    await eventually(lambda: "Theirs" in reloaded.now.profiles[SCHEDULER].plugins)
    assert reloaded.reloader.counts["success"] == 1
    monkeypatch.setattr(reloading, "LOOK_SECONDS", None)
    reloaded.reloader.ask()
    await eventually(lambda: reloaded.reloader.counts["success"] == 2)
    watching.cancel()
    await asyncio.wait([watching])
    assert watching.cancelled()
