from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kube_pyscheduler.cli import main as cli
from kube_pyscheduler.cli.feature_gates import problems_of
from kube_pyscheduler.config.defaults import V1_36_PLUGINS
from kube_pyscheduler.plugins import IN_TREE

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def check(path: Path, text: str, *more: str) -> int:
    path.write_text(HEADER + text)
    with pytest.raises(SystemExit) as caught:
        cli.main(["check-config", *more, str(path)])
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_a_good_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    assert check(path, "profiles: [{schedulerName: a}, {schedulerName: b}]") == 0
    assert capsys.readouterr().out == f"{path}: good, with profiles a, b\n"


def test_a_bad_file_and_all_that_is_wrong_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    assert check(path, "parallelism: 0\nprofiles: [{plugins: {filter: {enabled: [{}]}}}]") == 1
    assert capsys.readouterr().err.splitlines() == [
        f"Error: {path} cannot be used:",
        "parallelism: Invalid value: 0: should be an integer value greater than zero",
        "profiles[0].plugins.filter.enabled[0].name: Required value",
    ]


def test_a_plugin_that_is_not_registered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    assert check(path, "profiles: [{plugins: {score: {enabled: [{name: NodeAffinity}, {name: X}]}}}]") == 1
    assert 'profiles[0].plugins.score.enabled[1]: plugin "X" is not registered' in capsys.readouterr().err


def test_the_whole_configuration_can_be_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tmp_path / "config.yaml", "parallelism: 8", "--print") == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    assert printed["parallelism"] == 8
    assert printed["leaderElection"]["leaseDuration"] == "15s"


def test_every_default_plugin_is_registered() -> None:
    assert {plugin.name for plugin in V1_36_PLUGINS} <= set(IN_TREE)


@pytest.mark.parametrize(
    ("gate", "problem"),
    [
        ("SomethingElse=true", ""),
        ("kube:SidecarContainers=true", ""),
        ("AllAlpha=false", ""),
        ("OpportunisticBatching=false", ""),
        ("AllAlpha=true", "feature gate AllAlpha=true is not supported"),
        ("AllBeta=false", "feature gate AllBeta=false is not supported"),
        ("SidecarContainers=false", "feature gate SidecarContainers=false is not supported"),
        ("SidecarContainers", "missing or invalid value of feature gate SidecarContainers"),
        ("SidecarContainers=maybe", "missing or invalid value of feature gate SidecarContainers"),
    ],
)
def test_feature_gates_that_would_change_decisions_are_refused(gate: str, problem: str) -> None:
    found = problems_of([gate])
    assert len(found) == bool(problem)
    assert "".join(found).startswith(problem)
