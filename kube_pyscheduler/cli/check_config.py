"""``kube-pyscheduler check-config``: would the daemon start with this file?"""

from __future__ import annotations

from pathlib import Path

import click
import yaml

from kube_pyscheduler.config.errors import ConfigError
from kube_pyscheduler.config.load import load_config_file
from kube_pyscheduler.config.render import render
from kube_pyscheduler.framework.profile import build_profiles
from kube_pyscheduler.framework.registry import RegistryError, with_third_party
from kube_pyscheduler.plugins import IN_TREE


@click.command("check-config")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--print", "show", is_flag=True, help="Print the configuration with all defaults.")
def check_config(file: Path, show: bool) -> None:
    """Check a KubeSchedulerConfiguration, and say everything that is wrong with it."""
    try:
        config = load_config_file(file)
        profiles = build_profiles(config.profiles, with_third_party(IN_TREE))
    except ConfigError as error:
        raise click.ClickException(f"{file} cannot be used:\n{error}") from error
    except RegistryError as error:
        raise click.ClickException(str(error)) from error
    if show:
        click.echo(yaml.safe_dump(render(config), sort_keys=False), nl=False)
    else:
        click.echo(f"{file}: good, with profiles {', '.join(profiles)}")
