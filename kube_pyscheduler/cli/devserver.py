"""``kube-pyscheduler devserver``: the embedded API server as a process of its own."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from kube_pyscheduler.devserver.access.tokens import TokenFileError, read_token_file
from kube_pyscheduler.devserver.access.users import User
from kube_pyscheduler.devserver.app import DevServer, serve
from kube_pyscheduler.devserver.controllers.environment import Settings as ControllerSettings
from kube_pyscheduler.devserver.kubeconfig import write_kubeconfig
from kube_pyscheduler.devserver.seed import SeedError, seed_file, seed_nodes

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_CONTROLLERS = ("nodes", "kubelet", "workloads", "disruption", "volumes", "resource-claims")
_SECONDS = click.FloatRange(min=0)


@dataclass(frozen=True, slots=True)
class _Settings:
    nodes: int
    seeds: tuple[Path, ...]
    kubeconfig: Path | None
    address: str
    port: int
    tokens: dict[str, User]
    rbac: bool
    tls: bool
    controllers: ControllerSettings


@click.command()
@click.option("--nodes", type=click.IntRange(min=0), default=0, show_default=True, help="Create this many nodes.")
@click.option(
    "--seed",
    "seeds",
    type=_FILE,
    multiple=True,
    help="Create the objects of this Kubernetes YAML file; may be given several times.",
)
@click.option(
    "--kubeconfig-out", type=click.Path(dir_okay=False, path_type=Path), help="Write a kubeconfig for this server."
)
@click.option("--address", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port; 0 takes a free one.")
@click.option("--token-file", type=_FILE, help='Static tokens, CSV lines token,user,uid[,"group1,group2"].')
@click.option("--tls", is_flag=True, help="Serve HTTPS with a fresh certificate; a token is then always needed.")
@click.option("--rbac", is_flag=True, help="Let Roles and bindings decide what users may do.")
@click.option(
    "--without",
    type=click.Choice([*_CONTROLLERS, "all"]),
    multiple=True,
    help="Leave out these controllers, or all; may be given several times.",
)
@click.option("--start-seconds", type=_SECONDS, default=0, show_default=True, help="Bound pods run after this time.")
@click.option(
    "--run-seconds",
    type=_SECONDS,
    default=10,
    show_default=True,
    help="Pods whose restartPolicy is not Always end by themselves after this time.",
)
@click.option("--stop-seconds", type=_SECONDS, help="Deleted pods stop in this time.  [default: their grace period]")
@click.option("--provision-seconds", type=_SECONDS, default=0, show_default=True, help="Volumes are made in this time.")
def devserver(
    nodes: int,
    seeds: tuple[Path, ...],
    kubeconfig_out: Path | None,
    address: str,
    port: int,
    token_file: Path | None,
    rbac: bool,
    tls: bool,
    without: tuple[str, ...],
    start_seconds: float,
    run_seconds: float,
    stop_seconds: float | None,
    provision_seconds: float,
) -> None:
    """Run an in-memory Kubernetes API server for demos, tests and benchmarks.

    Prints its URL when it is ready; SIGTERM or SIGINT ends it.
    """
    try:
        tokens = read_token_file(token_file) if token_file else {}
    except TokenFileError as error:
        raise click.ClickException(str(error)) from error
    running = {name.replace("-", "_"): not {name, "all"} & set(without) for name in _CONTROLLERS}
    controllers = ControllerSettings(
        **running,
        start_seconds=start_seconds,
        run_seconds=run_seconds,
        stop_seconds=stop_seconds,
        provision_seconds=provision_seconds,
    )
    settings = _Settings(nodes, seeds, kubeconfig_out, address, port, tokens, rbac, tls, controllers)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_run(settings))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's, where it is installed; it is faster."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _run(settings: _Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        server = await serve(
            address=settings.address,
            port=settings.port,
            tokens=settings.tokens,
            rbac=settings.rbac,
            tls=settings.tls,
            controllers=settings.controllers,
        )
    except OSError as error:
        raise click.ClickException(f"can't listen on {settings.address}:{settings.port}: {error}") from error
    try:
        _prepare(server, settings)
        click.echo(server.url)
        await stop.wait()
    finally:
        await server.stop()


def _prepare(server: DevServer, settings: _Settings) -> None:
    seed_nodes(server.registry, settings.nodes)
    for path in settings.seeds:
        try:
            seed_file(server.registry, path)
        except SeedError as error:
            raise click.ClickException(str(error)) from error
    if settings.kubeconfig is not None:
        try:
            write_kubeconfig(settings.kubeconfig, server.url, server.token, server.authority)
        except OSError as error:
            raise click.ClickException(f"can't write the kubeconfig: {error}") from error
