"""The console script: the daemon when called bare, as kube-scheduler is, or one of the subcommands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

import click

from kube_pyscheduler.cli.flags import options
from kube_pyscheduler.cli.pflag import FlagError, PflagGroup

_SUBCOMMANDS = {
    "check-config": ("check_config", "check_config"),
    "demo": ("demo", "demo"),
    "devserver": ("devserver", "devserver"),
}
"""Name → (module of this package, command); imported only when called, so that the daemon starts without them."""


class Main(PflagGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(name for name in _SUBCOMMANDS if self.get_command(ctx, name) is not None)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module, name = _SUBCOMMANDS.get(cmd_name, ("", ""))
        if not module or find_spec(f"kube_pyscheduler.cli.{module}") is None:
            return None
        command = getattr(import_module(f"kube_pyscheduler.cli.{module}"), name)
        assert isinstance(command, click.Command)
        return command


def _daemon(**given: object) -> int:
    if click.get_current_context().invoked_subcommand is not None:
        return 0
    from kube_pyscheduler.cli.run import run

    return run(given)


kube_pyscheduler = Main(
    name="kube-pyscheduler",
    help="Assign pods to nodes, deciding as kube-scheduler v1.36 does. Takes kube-scheduler's flags.",
    params=options(),
    callback=_daemon,
    invoke_without_command=True,
)


def main(args: Sequence[str] | None = None) -> None:
    """Exits with 0, with 1 for what cannot be done, with 2 for wrong use of a subcommand."""
    try:
        code = kube_pyscheduler.main(args, prog_name="kube-pyscheduler", standalone_mode=False)
    except FlagError as error:
        click.echo(f"Error: {error.format_message()}", err=True)
        sys.exit(1)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)
