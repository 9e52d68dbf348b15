"""The flags of Policy times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_pyscheduler.cli import main as cli
from kube_pyscheduler.cli.run import to_options
from kube_pyscheduler.config.load import SchedulerConfig, load_config_file
from kube_pyscheduler.framework.profile import Profile, build_profile
from kube_pyscheduler.plugins import IN_TREE

POLICY = (
    '{"kind": "Policy", "apiVersion": "v1", "predicates": [], "priorities": [{"name": "EqualPriority", "weight": 2}]}'
)


def config(*args: str) -> SchedulerConfig:
    return to_options(cli.kube_pyscheduler.make_context("kube-pyscheduler", list(args)).params).config


def profile(config: SchedulerConfig) -> Profile:
    return build_profile(config.profiles[0], IN_TREE)


def fails(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    with pytest.raises(SystemExit) as caught:
        cli.main(args)
    assert caught.value.code == 1
    return capsys.readouterr().err


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("flag", ["--policy-config-file", "--config"])
def test_a_policy_file(tmp_path: Path, flag: str) -> None:
    given = config(flag, write(tmp_path / "policy.cfg", POLICY), "--scheduler-name", "classic")
    (only,) = given.profiles
    assert only.scheduler_name == "classic"
    assert ("EqualPriority", 2) in [(plugin.name, weight) for plugin, weight in profile(given).score]


def test_a_policy_file_goes_with_the_flags_of_its_time(tmp_path: Path) -> None:
    given = config(
        f"--policy-config-file={write(tmp_path / 'policy.cfg', POLICY)}",
        "--use-legacy-policy-config=true",
        "--leader-elect=false",
        "--kubeconfig=/etc/kubernetes/scheduler.conf",
        "--kube-api-qps=7",
    )
    assert not given.settings.leader_election.leader_elect
    assert given.settings.client_connection.kubeconfig == "/etc/kubernetes/scheduler.conf"
    assert given.settings.client_connection.qps == 7


def test_an_algorithm_provider() -> None:
    args: Any = config("--algorithm-provider=ClusterAutoscalerProvider").profiles[0].args["NodeResourcesFit"]
    assert args.scoring_strategy.type == "MostAllocated"
    assert config("--algorithm-provider=DefaultProvider").profiles == config().profiles


def test_equal_scores_of_all_profiles(tmp_path: Path) -> None:
    header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    file = write(tmp_path / "config.yaml", header + "profiles: [{schedulerName: a, equalScores: RoundRobin}]")
    assert profile(config(f"--config={file}")).takes_turns
    assert not profile(config(f"--config={file}", "--equal-scores=Random")).takes_turns
    assert profile(config("--equal-scores=RoundRobin")).takes_turns
    assert not profile(config()).takes_turns


def test_a_policy_can_be_written_as_a_configuration(tmp_path: Path) -> None:
    target = tmp_path / "config.yaml"
    source = write(tmp_path / "policy.cfg", POLICY)
    with pytest.raises(SystemExit) as caught:
        cli.main([f"--policy-config-file={source}", "--equal-scores=RoundRobin", f"--write-config-to={target}"])
    assert caught.value.code == 0
    written = yaml.safe_load(target.read_text())
    assert written["kind"] == "KubeSchedulerConfiguration"
    again = profile(load_config_file(target))
    assert ("EqualPriority", 2) in [(plugin.name, weight) for plugin, weight in again.score]
    assert again.takes_turns


def test_what_cannot_be_done_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "policy.cfg", POLICY)
    both = fails(capsys, f"--config={file}", f"--policy-config-file={file}")
    assert both == "Error: --config and --policy-config-file cannot be used together\n"
    assert "mount it, and use --policy-config-file" in fails(capsys, "--policy-configmap=policy")
    assert 'Unsupported value: "Best"' in fails(capsys, "--algorithm-provider=Best")
    assert 'equalScores: Unsupported value: "First"' in fails(capsys, "--equal-scores=First")
    broken = write(tmp_path / "broken.cfg", POLICY.replace("EqualPriority", "EqualPriorty"))
    text = fails(capsys, f"--policy-config-file={broken}")
    assert 'priorities[0].name: Unsupported value: "EqualPriorty"' in text
    assert '"EqualPriority"' in text


def test_check_config_takes_policies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "policy.cfg", POLICY)
    with pytest.raises(SystemExit) as caught:
        cli.main(["check-config", file])
    assert caught.value.code == 0
    assert "good" in capsys.readouterr().out
