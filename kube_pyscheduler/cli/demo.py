"""``kube-pyscheduler demo``: a small cluster, realistic workloads, the real daemon."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType

import click

from kube_pyscheduler.demo.demo import DemoOptions, run
from kube_pyscheduler.demo.scenario import DEFAULT_FOLDER
from kube_pyscheduler.demo.summary import make_console


@click.command()
@click.option("--keep", is_flag=True, help="Stay up in the end, to look around with kubectl; Ctrl-C ends it.")
@click.option(
    "--files",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_FOLDER,
    help="Folder with cluster.yaml, expectations.yaml and workloads/*.yaml.  [default: deploy/demo of the checkout]",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=60,
    show_default=True,
    help="Seconds until all pods must be where they belong.",
)
def demo(keep: bool, folder: Path, timeout: float) -> None:
    """Show the scheduler at work on a cluster of its own.

    Starts the embedded API server and the daemon, creates workloads, and prints where every pod went or why it waits.
    Exits with 1 when something is not as expected.
    """
    signal.signal(signal.SIGTERM, _as_interrupt)
    console = make_console()
    options = DemoOptions(folder=folder, keep=keep, settle_seconds=timeout)
    try:
        code = run(options, console)
    except KeyboardInterrupt:
        console.print("Stopped.")
        code = 0 if keep else 130
    sys.exit(code)


def _as_interrupt(_number: int, _frame: FrameType | None) -> None:
    """SIGTERM ends the demo as Ctrl-C does: in order."""
    signal.raise_signal(signal.SIGINT)
