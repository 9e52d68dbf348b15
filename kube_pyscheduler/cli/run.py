"""``kube-pyscheduler`` without a subcommand: from flags to the daemon."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click
import yaml

from kube_pyscheduler.cli import feature_gates
from kube_pyscheduler.cli.flags import REFUSED, WITHOUT_EFFECT
from kube_pyscheduler.config.decode import Duration
from kube_pyscheduler.config.errors import ConfigError
from kube_pyscheduler.config.files import ConfigFiles
from kube_pyscheduler.config.load import (
    ReadFile,
    SchedulerConfig,
    default_config,
    load_config_file,
    load_policy_file,
    override,
    provider_config,
    with_equal_scores,
)
from kube_pyscheduler.config.render import render
from kube_pyscheduler.daemon import logs
from kube_pyscheduler.daemon.authn import ALWAYS_ALLOWED, GuardOptions
from kube_pyscheduler.daemon.options import Endpoint, Options
from kube_pyscheduler.daemon.tls import TlsOptions
from kube_pyscheduler.daemon.version import DECIDES_AS, VERSION
from kube_pyscheduler.kit.verbosity import Log

log = Log(__name__)

Given = Mapping[str, Any]
"""Flags by parameter name; None where a flag was not given and the configuration decides."""

VERSION_LINE = f"kube-pyscheduler {VERSION} (decides as Kubernetes {DECIDES_AS})"

_LEADER_ELECTION = {
    "leader_elect": "leader_elect",
    "leader_elect_lease_duration": "lease_duration",
    "leader_elect_renew_deadline": "renew_deadline",
    "leader_elect_retry_period": "retry_period",
    "leader_elect_resource_lock": "resource_lock",
    "leader_elect_resource_name": "resource_name",
    "leader_elect_resource_namespace": "resource_namespace",
}
_CLIENT_CONNECTION = {"kubeconfig": "kubeconfig", "kube_api_qps": "qps", "kube_api_burst": "burst"}
"""Flag → setting. With ``--config`` the latter count only where the file says nothing: they are deprecated."""

_SOURCES = ("config", "policy_config_file", "algorithm_provider")
"""Flags that say where the profiles come from."""


def run(given: Given) -> int:
    """Print the version, write the configuration, or schedule until told to stop. Returns the exit code."""
    if given["version"]:
        click.echo(VERSION_LINE)
        return 0
    _refuse(given)
    logs.set_up(given["v"], _log_format(given))
    try:
        options = to_options(given)
    except ConfigError as error:
        raise click.ClickException(f"invalid configuration:\n{error}") from error
    if given["write_config_to"]:
        return _write(options.config, Path(given["write_config_to"]))
    _say_what_has_no_effect(given)
    from kube_pyscheduler.daemon.app import main

    return main(options)


def to_options(given: Given) -> Options:
    """Raises ConfigError."""
    files = ConfigFiles(partial(_config, given))
    return Options(
        config=files.load(),
        files=files if given["config"] or given["policy_config_file"] else None,
        master=given["master"],
        plain=Endpoint(given["address"], given["port"]),
        secure=Endpoint(given["bind_address"], given["secure_port"]),
        share_port=given["permit_port_sharing"],
        tls=TlsOptions(
            cert_file=_path(given["tls_cert_file"]),
            key_file=_path(given["tls_private_key_file"]),
            cert_dir=_path(given["cert_dir"]),
            client_ca_file=_path(given["client_ca_file"]),
            min_version=given["tls_min_version"],
            cipher_suites=_flat(given["tls_cipher_suites"]),
        ),
        guard=GuardOptions(
            token_seconds=given["authentication_token_webhook_cache_ttl"],
            allowed_seconds=given["authorization_webhook_cache_authorized_ttl"],
            denied_seconds=given["authorization_webhook_cache_unauthorized_ttl"],
            always_allowed=_flat(given["authorization_always_allow_paths"]) or ALWAYS_ALLOWED,
        ),
        authentication_kubeconfig=given["authentication_kubeconfig"],
        authorization_kubeconfig=given["authorization_kubeconfig"],
        disabled_metrics=frozenset(_flat(given["disabled_metrics"])),
        flush_seconds=given["pod_max_in_unschedulable_pods_duration"],
    )


def _config(given: Given, read: ReadFile) -> SchedulerConfig:
    """The file or the defaults, with the flags that count besides.

    Source: ApplyTo in cmd/kube-scheduler/app/options/options.go."""
    connection = _settings(given, _CLIENT_CONNECTION)
    sources = [f"--{flag.replace('_', '-')}" for flag in _SOURCES if given[flag]]
    if len(sources) > 1:
        raise click.ClickException(f"{' and '.join(sources)} cannot be used together")
    if given["config"]:
        config = load_config_file(Path(given["config"]), given["scheduler_name"], read)
        # Only the kubeconfig can be left open by a file; upstream would take the pod's service account then.
        in_file = config.settings.client_connection.kubeconfig
        connection = {"kubeconfig": connection["kubeconfig"]} if not in_file and "kubeconfig" in connection else {}
    elif given["policy_config_file"]:
        config = load_policy_file(Path(given["policy_config_file"]), given["scheduler_name"], read)
    elif given["algorithm_provider"]:
        config = provider_config(given["algorithm_provider"], given["scheduler_name"])
    else:
        config = default_config(given["scheduler_name"])
    if given["equal_scores"]:
        config = with_equal_scores(config, given["equal_scores"])
    return override(config, _settings(given, _LEADER_ELECTION), connection)


def _settings(given: Given, names: Mapping[str, str]) -> dict[str, Any]:
    durations = ("lease_duration", "renew_deadline", "retry_period")
    return {
        setting: Duration(given[flag]) if setting in durations else given[flag]
        for flag, setting in names.items()
        if given[flag] is not None
    }


def _refuse(given: Given) -> None:
    for flag, why in REFUSED:
        if given[_parameter(flag.name)]:
            raise click.ClickException(f"--{flag.name} is not supported: {why}")
    problems = feature_gates.problems_of(_flat(given["feature_gates"]))
    if problems:
        raise click.ClickException("\n".join(problems))


def _say_what_has_no_effect(given: Given) -> None:
    for flag, why in WITHOUT_EFFECT:
        if given[_parameter(flag.name)] not in (None, ()):
            log.info(1, "A flag has no effect here", flag=f"--{flag.name}", reason=why)
    if given["config"]:
        in_file = load_config_file(Path(given["config"])).settings.client_connection.kubeconfig
        for name in _CLIENT_CONNECTION:
            if given[name] is not None and (name != "kubeconfig" or in_file):
                spelt = f"--{name.replace('_', '-')}"
                log.info(0, "A flag has no effect here", flag=spelt, reason="the file of --config decides")


def _log_format(given: Given) -> logs.LogFormat:
    name = given["log_format"] or given["logging_format"] or "text"
    if name not in ("text", "json"):
        raise click.ClickException(f'unsupported log format "{name}": there are text and json')
    return "json" if name == "json" else "text"


def _write(config: SchedulerConfig, path: Path) -> int:
    try:
        path.write_text(yaml.safe_dump(render(config), sort_keys=False), encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from error
    return 0


def _flat(lists: tuple[list[str], ...]) -> list[str]:
    return [item for items in lists for item in items]


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def _parameter(flag: str) -> str:
    return flag.replace("-", "_")
