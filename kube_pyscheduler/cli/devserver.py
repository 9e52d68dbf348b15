"""``kube-pyscheduler devserver``: the embedded API server as a process of its own."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import click

from kube_pyscheduler.devserver.app import DevServer, serve
from kube_pyscheduler.devserver.errors import StatusError
from kube_pyscheduler.devserver.kubeconfig import write_kubeconfig
from kube_pyscheduler.devserver.seed import SeedError, seed_file, seed_nodes


@click.command()
@click.option("--nodes", type=click.IntRange(min=0), default=0, show_default=True, help="Create this many nodes.")
@click.option(
    "--seed",
    "seeds",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="Create the objects of this Kubernetes YAML file; may be given several times.",
)
@click.option(
    "--kubeconfig-out", type=click.Path(dir_okay=False, path_type=Path), help="Write a kubeconfig for this server."
)
@click.option("--address", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port; 0 takes a free one.")
def devserver(nodes: int, seeds: tuple[Path, ...], kubeconfig_out: Path | None, address: str, port: int) -> None:
    """Run an in-memory Kubernetes API server for demos, tests and benchmarks."""
    asyncio.run(_run(nodes, seeds, kubeconfig_out, address, port))


async def _run(nodes: int, seeds: tuple[Path, ...], kubeconfig_out: Path | None, address: str, port: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = await serve(address=address, port=port)
    try:
        _prepare(server, nodes, seeds)
        if kubeconfig_out is not None:
            write_kubeconfig(kubeconfig_out, server.url, server.token)
        click.echo(server.url)
        await stop.wait()
    finally:
        await server.stop()


def _prepare(server: DevServer, nodes: int, seeds: tuple[Path, ...]) -> None:
    seed_nodes(server.registry, nodes)
    for path in seeds:
        try:
            seed_file(server.registry, server.context.table, path)
        except SeedError as error:
            raise click.ClickException(str(error)) from error
        except StatusError as error:
            raise click.ClickException(f"{path}: {error.message}") from error
