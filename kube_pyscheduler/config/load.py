"""YAML (or JSON) to a configuration that is complete and checked, or a ConfigError with everything that is wrong.

Nothing is taken silently: unknown fields and duplicate keys are errors, as they are to kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import yaml

from kube_pyscheduler.config import legacy, policy
from kube_pyscheduler.config.args import ARGS
from kube_pyscheduler.config.decode import decode_struct
from kube_pyscheduler.config.defaults import complete, complete_args, default_plugins
from kube_pyscheduler.config.errors import ConfigError, Problem, Problems
from kube_pyscheduler.config.merge import POINTS, PointPlugins, merge_plugins
from kube_pyscheduler.config.schema import (
    API_VERSION,
    DEFAULT_NAME,
    KIND,
    RANDOM,
    ROUND_ROBIN,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
)
from kube_pyscheduler.config.validate import (
    REMOVED_PLUGINS,
    validate,
    validate_percentage,
    validate_scheduler_names,
)
from kube_pyscheduler.config.validate_args import validate_args

ReadFile = Callable[[Path], bytes]
"""How files are read. Raises OSError."""


@dataclass(frozen=True, slots=True)
class ProfileConfig:
    """One profile, merged over the defaults. Equal to others that mean the same, wherever they stand.

    ``points``: enabled plugins by extension point as the document calls it, and under ``multiPoint``.
    ``args``: by plugin; structs of ``config.args``, or the plain value for plugins that are not ours.
    ``percentage_of_nodes_to_score``: 0 is all.
    ``path``: where the profile stands in the document, as in ``profiles[0]``.
    ``always_check_all_predicates``, ``equal_scores``: see KubeSchedulerProfile.
    """

    scheduler_name: str
    points: Mapping[str, PointPlugins]
    args: Mapping[str, Any]
    percentage_of_nodes_to_score: int = 0
    path: str = field(default="profiles[0]", compare=False)
    always_check_all_predicates: bool = False
    equal_scores: str = RANDOM


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """``settings``: everything but the profiles, with defaults. ``profiles``: at least one, in order."""

    settings: KubeSchedulerConfiguration
    profiles: tuple[ProfileConfig, ...]


def default_config(scheduler_name: str = DEFAULT_NAME) -> SchedulerConfig:
    """What runs when no configuration is given."""
    return _resolve(KubeSchedulerConfiguration(API_VERSION, KIND), scheduler_name, Problems())


def load_config_file(
    path: Path, scheduler_name: str = DEFAULT_NAME, read: ReadFile = Path.read_bytes
) -> SchedulerConfig:
    """Raises ConfigError, also where the file cannot be read."""
    return load_config(_text_of(path, read), scheduler_name, read)


def load_config(text: str, scheduler_name: str = DEFAULT_NAME, read: ReadFile = Path.read_bytes) -> SchedulerConfig:
    """``text``: one KubeSchedulerConfiguration, of today or of the time of Policy files, or one Policy.
    ``scheduler_name``: of the only profile where it names none itself. ``read``: for files that it names. Raises
    ConfigError."""
    document, problems = _document(text), Problems()
    if document.get("kind") == policy.KIND:
        return _resolve(_around(_read_policy(document, problems)), scheduler_name, problems)
    return _resolve(_read_config(document, read, problems), scheduler_name, problems)


def load_policy_file(
    path: Path, scheduler_name: str = DEFAULT_NAME, read: ReadFile = Path.read_bytes
) -> SchedulerConfig:
    """``path``: of a Policy. Raises ConfigError."""
    problems = Problems()
    profile = _read_policy(_document(_text_of(path, read)), problems)
    return _resolve(_around(profile), scheduler_name, problems)


def provider_config(provider: str, scheduler_name: str = DEFAULT_NAME) -> SchedulerConfig:
    """What an algorithm provider of Policy times stands for. Raises ConfigError."""
    problems = Problems()
    profile = legacy.provider_profile(provider, "--algorithm-provider", problems)
    return _resolve(_around(profile), scheduler_name, problems)


def load_profile(profile: Mapping[str, Any], scheduler_name: str = DEFAULT_NAME) -> ProfileConfig:
    """One entry of ``profiles`` by itself. Raises ConfigError."""
    problems = Problems()
    written = decode_struct(KubeSchedulerProfile, profile, "profiles[0]", problems)
    settings = KubeSchedulerConfiguration(API_VERSION, KIND, profiles=(written,))
    return _resolve(settings, scheduler_name, problems).profiles[0]


def override(
    config: SchedulerConfig, leader_election: Mapping[str, Any], client_connection: Mapping[str, Any]
) -> SchedulerConfig:
    """``config`` with some settings replaced, by the names of the structs' attributes. Raises ConfigError."""
    settings = msgspec.structs.replace(
        config.settings,
        leader_election=msgspec.structs.replace(config.settings.leader_election, **leader_election),
        client_connection=msgspec.structs.replace(config.settings.client_connection, **client_connection),
    )
    problems = Problems()
    validate(settings, problems)
    problems.raise_if_any()
    return SchedulerConfig(settings, config.profiles)


def with_equal_scores(config: SchedulerConfig, choice: str) -> SchedulerConfig:
    """``config`` with every profile choosing like that among the best nodes. Raises ConfigError."""
    problems = Problems()
    _validate_equal_scores(choice, "equalScores", problems)
    problems.raise_if_any()
    profiles = tuple(replace(profile, equal_scores=choice) for profile in config.profiles)
    return SchedulerConfig(config.settings, profiles)


def _text_of(path: Path, read: ReadFile) -> str:
    try:
        return read(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([Problem("", f"cannot read {path}: {error}")]) from error


def _document(text: str) -> Mapping[str, Any]:
    try:
        document = yaml.load(text, Loader=_StrictLoader)
    except yaml.YAMLError as error:
        raise ConfigError([Problem("", f"not YAML: {error}")]) from error
    if not isinstance(document, Mapping):
        raise ConfigError([Problem("", f"expected a {KIND} object")])
    return document


def _read_config(document: Mapping[str, Any], read: ReadFile, problems: Problems) -> KubeSchedulerConfiguration:
    if document.get("kind") == KIND and document.get("apiVersion") in legacy.API_VERSIONS:
        return legacy.read_legacy(document, partial(_policy_in, read), problems)
    _check_header(document, problems)
    return decode_struct(KubeSchedulerConfiguration, document, "", problems)


def _read_policy(document: Mapping[str, Any], problems: Problems) -> KubeSchedulerProfile:
    version, kind = document.get("apiVersion"), document.get("kind")
    if version not in policy.API_VERSIONS:
        problems.unsupported("apiVersion", version or "", policy.API_VERSIONS)
    if kind != policy.KIND:
        problems.unsupported("kind", kind or "", (policy.KIND,))
    return policy.read_policy(document, problems)


def _policy_in(read: ReadFile, path: str) -> KubeSchedulerProfile:
    """The profile that the Policy in a file stands for. Raises ConfigError."""
    problems = Problems()
    profile = _read_policy(_document(_text_of(Path(path), read)), problems)
    problems.raise_if_any()
    return profile


def _around(profile: KubeSchedulerProfile) -> KubeSchedulerConfiguration:
    return KubeSchedulerConfiguration(API_VERSION, KIND, profiles=(profile,))


def _check_header(document: Mapping[str, Any], problems: Problems) -> None:
    version, kind = document.get("apiVersion"), document.get("kind")
    if version != API_VERSION:
        problems.unsupported("apiVersion", version or "", (API_VERSION,))
    if kind != KIND:
        problems.unsupported("kind", kind or "", (KIND,))


def _resolve(settings: KubeSchedulerConfiguration, scheduler_name: str, problems: Problems) -> SchedulerConfig:
    """Defaults and validation; ``problems`` has what decoding found."""
    settings = complete(settings)
    validate(settings, problems)
    written = settings.profiles or (KubeSchedulerProfile(),)
    if len(written) == 1 and written[0].scheduler_name is None:
        written = (msgspec.structs.replace(written[0], scheduler_name=scheduler_name),)
    validate_scheduler_names(written, problems)
    profiles = tuple(
        _resolve_profile(profile, settings, f"profiles[{index}]", problems) for index, profile in enumerate(written)
    )
    _check_queue_sort(profiles, problems)
    problems.raise_if_any()
    return SchedulerConfig(msgspec.structs.replace(settings, profiles=written), profiles)


def _resolve_profile(
    profile: KubeSchedulerProfile, settings: KubeSchedulerConfiguration, path: str, problems: Problems
) -> ProfileConfig:
    validate_percentage(profile.percentage_of_nodes_to_score, f"{path}.percentageOfNodesToScore", problems)
    _validate_equal_scores(profile.equal_scores, f"{path}.equalScores", problems)
    for point, attribute in POINTS.items():
        for index, plugin in enumerate(getattr(profile.plugins, attribute).enabled):
            where = f"{path}.plugins.{point}.enabled[{index}]"
            if not plugin.name:
                problems.required(f"{where}.name")
            elif plugin.name in REMOVED_PLUGINS:
                problems.invalid(where, plugin.name, f"was removed before {API_VERSION}")
            if plugin.weight < 0:
                problems.invalid(f"{where}.weight", plugin.weight, "must not be negative")
    percentage = profile.percentage_of_nodes_to_score
    if percentage is None:
        percentage = settings.percentage_of_nodes_to_score or 0
    return ProfileConfig(
        scheduler_name=profile.scheduler_name or "",
        points=merge_plugins(default_plugins(), profile.plugins, f"{path}.plugins"),
        args=_resolve_args(profile.plugin_config, f"{path}.pluginConfig", problems),
        percentage_of_nodes_to_score=percentage,
        path=path,
        always_check_all_predicates=profile.always_check_all_predicates,
        equal_scores=profile.equal_scores,
    )


def _validate_equal_scores(choice: str, path: str, problems: Problems) -> None:
    if choice not in (RANDOM, ROUND_ROBIN):
        problems.unsupported(path, choice, (RANDOM, ROUND_ROBIN))


def _resolve_args(configs: tuple[PluginConfig, ...], path: str, problems: Problems) -> dict[str, Any]:
    """Arguments of all plugins that have some: those given, and the defaults of the others."""
    args: dict[str, Any] = {}
    for index, config in enumerate(configs):
        where = f"{path}[{index}]"
        if not config.name:
            problems.required(f"{where}.name")
        elif config.name in REMOVED_PLUGINS:
            problems.invalid(where, config.name, f"was removed before {API_VERSION}")
        elif config.name in args:
            problems.duplicate(where, config.name)
        else:
            args[config.name] = _read_args(config, f"{where}.args", problems)
    for name, cls in ARGS.items():
        args.setdefault(name, cls())
    return args


def _read_args(config: PluginConfig, path: str, problems: Problems) -> Any:
    cls = ARGS.get(config.name)
    if cls is None:
        return config.args
    value = config.args
    if isinstance(value, Mapping):
        for field, right in (("apiVersion", API_VERSION), ("kind", f"{config.name}Args")):
            if value.get(field, right) != right:
                problems.unsupported(f"{path}.{field}", value[field], (right,))
        value = {key: item for key, item in value.items() if key not in ("apiVersion", "kind")}
    args = complete_args(decode_struct(cls, value, path, problems))
    validate_args(args, path, problems)
    return args


def _check_queue_sort(profiles: tuple[ProfileConfig, ...], problems: Problems) -> None:
    """There is one queue, so all profiles must order it alike.

    Source: validateCommonQueueSort in pkg/scheduler/apis/config/validation/validation.go."""
    first = profiles[0]
    names = [use.name for use in first.points["queueSort"].enabled]
    if len(names) > 1:
        path = f"{first.path}.plugins.queueSort.enabled"
        problems.invalid(path, len(names), "only one queue sort plugin can be enabled")
    for profile in profiles[1:]:
        mine = profile.points["queueSort"]
        if [use.name for use in mine.enabled] != names or mine.disabled != first.points["queueSort"].disabled:
            problems.add(f"{profile.path}.plugins.queueSort", "must be the same for all profiles")
        for name in names:
            if profile.args.get(name) != first.args.get(name):
                problems.add(f"{profile.path}.pluginConfig", f"args of {name} must be the same for all profiles")


class _StrictLoader(yaml.SafeLoader):
    """Refuses keys that appear twice, and reads dates as the text they are."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f'key "{key_node.value}" is given twice', key_node.start_mark
                )
            seen.add(key_node.value)
        return super().construct_mapping(node, deep)


_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
