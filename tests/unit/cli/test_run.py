from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_pyscheduler.cli import main as cli
from kube_pyscheduler.cli.run import to_options
from kube_pyscheduler.config.decode import Duration
from kube_pyscheduler.config.errors import ConfigError
from kube_pyscheduler.config.load import load_config_file
from kube_pyscheduler.daemon.options import Endpoint, Options

KUBEADM = (
    "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
    "--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
    "--bind-address=127.0.0.1",
    "--kubeconfig=/etc/kubernetes/scheduler.conf",
    "--leader-elect=true",
)
"""The static pod that kubeadm writes."""

HARDENED = (
    *KUBEADM,
    "--profiling=false",
    "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "--tls-min-version=VersionTLS12",
    "--requestheader-client-ca-file=/etc/kubernetes/pki/front-proxy-ca.crt",
    "--requestheader-allowed-names=",
    "--client-ca-file=/etc/kubernetes/pki/ca.crt",
    "--feature-gates=RotateKubeletServerCertificate=true,NodeDeclaredFeatures=true",
    "--kube-api-content-type=application/vnd.kubernetes.protobuf",
    "--logging-format=json",
    "--log-flush-frequency=5s",
    "--vmodule=",
    "-v",
    "2",
)


def given(*args: str) -> dict[str, Any]:
    return cli.kube_pyscheduler.make_context("kube-pyscheduler", list(args)).params


def options(*args: str) -> Options:
    return to_options(given(*args))


def fails(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    with pytest.raises(SystemExit) as caught:
        cli.main(args)
    assert caught.value.code == 1
    return capsys.readouterr().err


def write(path: Path, text: str) -> str:
    path.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" + text)
    return str(path)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    for args in (["--version"], ["--version=true"], ["--version=raw"]):
        with pytest.raises(SystemExit) as caught:
            cli.main(args)
        assert caught.value.code == 0
        line = capsys.readouterr().out
        assert re.fullmatch(r"kube-pyscheduler v\d+\.\d+\.\d+ \(decides as Kubernetes v1\.36\)\n", line)


def test_a_bare_start_does_not_compete_with_the_clusters_scheduler() -> None:
    bare = options()
    assert [profile.scheduler_name for profile in bare.config.profiles] == ["kube-pyscheduler"]
    assert bare.config.settings.leader_election.resource_name == "kube-pyscheduler"
    assert bare.config.settings.leader_election.leader_elect
    assert (bare.plain, bare.secure) == (Endpoint("127.0.0.1", 10251), Endpoint("0.0.0.0", 10259))
    assert bare.flush_seconds == 300


@pytest.mark.parametrize("args", [KUBEADM, HARDENED])
def test_stock_manifests_are_taken(args: tuple[str, ...]) -> None:
    stock = options(*args)
    assert stock.secure == Endpoint("127.0.0.1", 10259)
    assert stock.config.settings.client_connection.kubeconfig == "/etc/kubernetes/scheduler.conf"
    assert stock.authentication_kubeconfig == "/etc/kubernetes/scheduler.conf"


def test_flags_reach_the_settings() -> None:
    made = options(
        "--scheduler-name=mine",
        "--leader-elect=false",
        "--leader-elect-lease-duration=30s",
        "--leader-elect-resource-name=my-lease",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--master=https://10.0.0.1:6443",
        "--port=0",
        "--address=::",
        "--authorization-always-allow-paths=/healthz",
        "--authorization-webhook-cache-authorized-ttl=1m",
        "--disabled-metrics=a,b",
        "--disabled-metrics=c",
        "--pod-max-in-unschedulable-pods-duration=1m30s",
        "--permit-port-sharing",
    )
    settings = made.config.settings
    assert made.config.profiles[0].scheduler_name == "mine"
    assert not settings.leader_election.leader_elect
    assert settings.leader_election.lease_duration == Duration(30)
    assert settings.leader_election.resource_name == "my-lease"
    assert (settings.client_connection.qps, settings.client_connection.burst) == (1000, 2000)
    assert made.master == "https://10.0.0.1:6443"
    assert made.plain == Endpoint("::", 0)
    assert made.guard.always_allowed == ["/healthz"]
    assert made.guard.allowed_seconds == 60
    assert made.disabled_metrics == {"a", "b", "c"}
    assert made.flush_seconds == 90
    assert made.share_port


def test_with_a_file_leader_election_flags_count_and_deprecated_ones_do_not(tmp_path: Path) -> None:
    file = write(
        tmp_path / "config.yaml",
        "leaderElection: {leaderElect: true, resourceName: of-the-file}\n"
        "clientConnection: {kubeconfig: /of/the/file, qps: 7}\n"
        "profiles: [{schedulerName: of-the-file}]\n",
    )
    made = options(
        f"--config={file}",
        "--leader-elect=false",
        "--kubeconfig=/of/the/flag",
        "--kube-api-qps=9",
        "--scheduler-name=x",
    ).config
    assert not made.settings.leader_election.leader_elect
    assert made.settings.leader_election.resource_name == "of-the-file"
    assert made.settings.client_connection.kubeconfig == "/of/the/file"
    assert made.settings.client_connection.qps == 7
    assert made.profiles[0].scheduler_name == "of-the-file"


def test_a_file_is_read_again_with_the_same_flags(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    write(file, "leaderElection: {resourceName: first}\n")
    made = options(f"--config={file}", "--leader-elect=false", "--kubeconfig=/of/the/flag", "--scheduler-name=mine")
    assert made.files is not None
    assert not made.files.have_changed()
    write(file, "leaderElection: {resourceName: second}\nparallelism: 3\n")
    assert made.files.have_changed()
    again = made.files.load()
    assert again.settings.leader_election.resource_name == "second"
    assert not again.settings.leader_election.leader_elect
    assert again.settings.client_connection.kubeconfig == "/of/the/flag"
    assert again.settings.parallelism == 3
    assert again.profiles == made.config.profiles
    assert options("--algorithm-provider=DefaultProvider").files is None


def test_flags_fill_in_the_kubeconfig_and_the_name_that_a_file_leaves_open(tmp_path: Path) -> None:
    file = write(tmp_path / "config.yaml", "clientConnection: {qps: 7}\n")
    made = options(f"--config={file}", "--kubeconfig=/of/the/flag", "--kube-api-qps=9", "--scheduler-name=mine").config
    assert made.settings.client_connection.kubeconfig == "/of/the/flag"
    assert made.settings.client_connection.qps == 7
    assert made.profiles[0].scheduler_name == "mine"


def test_flags_are_validated_together_with_the_file() -> None:
    with pytest.raises(ConfigError, match=r"leaderElection\.leaseDuration"):
        options("--leader-elect-lease-duration=5s")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--foo"], "Error: unknown flag: --foo\n"),
        (["--leader-elect=perhaps"], 'Error: invalid argument "perhaps" for "--leader-elect" flag'),
        (["--secure-port=70000"], 'Error: invalid argument "70000" for "--secure-port" flag'),
        (["--leader-elect-retry-period=2"], 'Error: invalid argument "2" for "--leader-elect-retry-period" flag'),
        (["--config"], "Error: flag needs an argument: --config\n"),
        (["something"], 'Error: unknown command "something" for "kube-pyscheduler"\n'),
        (["--config=/nowhere/x.yaml"], "Error: invalid configuration:\ncannot read /nowhere/x.yaml"),
        (["--leader-elect-resource-lock=endpoints"], "Error: invalid configuration:\nleaderElection.resourceLock"),
        (["--log-format=xml"], 'Error: unsupported log format "xml"'),
        (["--tls-sni-cert-key=a,b"], "Error: --tls-sni-cert-key is not supported: "),
        (["--emulated-version=1.34"], "Error: --emulated-version is not supported: "),
        (["--feature-gates=GangScheduling=true"], "Error: feature gate GangScheduling=true is not supported: "),
        (["--write-config-to=/nowhere/x.yaml"], "Error: cannot write /nowhere/x.yaml: No such file or directory\n"),
    ],
)
def test_what_cannot_be_done_ends_with_1_and_a_sentence(
    capsys: pytest.CaptureFixture[str], args: list[str], message: str
) -> None:
    assert fails(capsys, *args).startswith(message)


def test_the_configuration_in_force_can_be_written_and_loaded_again(tmp_path: Path) -> None:
    out = tmp_path / "out.yaml"
    file = write(
        tmp_path / "in.yaml",
        "profiles: [{schedulerName: a, plugins: {score: {disabled: [{name: ImageLocality}], "
        "enabled: [{name: NodeAffinity, weight: 9}]}}, pluginConfig: [{name: Theirs, args: {x: [1]}}]}]",
    )
    with pytest.raises(SystemExit) as caught:
        cli.main([f"--config={file}", f"--write-config-to={out}", "--leader-elect-retry-period=3s"])
    assert caught.value.code == 0
    written = yaml.safe_load(out.read_text())
    assert written["leaderElection"]["retryPeriod"] == "3s"
    assert {"name": "Theirs", "args": {"x": [1]}} in written["profiles"][0]["pluginConfig"]
    first, again = load_config_file(Path(file)).profiles[0], load_config_file(out).profiles[0]
    assert dict(again.args) == dict(first.args)
    for point, plugins in first.points.items():
        assert [(use.name, use.weight) for use in again.points[point].enabled] == [
            (use.name, use.weight) for use in plugins.enabled
        ]
        assert again.points[point].disabled == plugins.disabled


def test_help_names_the_flags_and_the_subcommands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    for word in ("--kubeconfig", "--leader-elect", "check-config", "devserver", "default 10259"):
        assert word in text
    assert "--vmodule" not in text
