"""The real kubectl against a server of the test."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from kube_pyscheduler.devserver.app import DevServer
from kube_pyscheduler.devserver.kubeconfig import write_kubeconfig

BINARY = Path(sys.executable).with_name("kubectl")


class Output(NamedTuple):
    code: int
    out: str
    err: str


class Kubectl:
    """Runs kubectl with a kubeconfig and caches of its own."""

    def __init__(self, server: DevServer, directory: Path) -> None:
        self._config = directory / "kubeconfig"
        self._cache = directory / "cache"
        write_kubeconfig(self._config, server.url, server.token, server.authority)

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            BINARY,
            "--kubeconfig",
            self._config,
            "--cache-dir",
            self._cache,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(self, *arguments: str, given: str = "") -> Output:
        process = await self.start(*arguments)
        out, err = await process.communicate(given.encode())
        assert process.returncode is not None
        return Output(process.returncode, out.decode(), err.decode())

    async def __call__(self, *arguments: str, given: str = "") -> str:
        """What a command, which must succeed, prints."""
        output = await self.run(*arguments, given=given)
        assert output.code == 0, (arguments, output)
        return output.out

    async def refused(self, *arguments: str, given: str = "") -> str:
        """What a command, which must fail, complains of."""
        output = await self.run(*arguments, given=given)
        assert output.code != 0, (arguments, output)
        return output.err

    async def json(self, *arguments: str) -> Any:
        return json.loads(await self(*arguments, "-o", "json"))


def columns(table: str) -> list[list[str]]:
    """The words of each line of a printed table."""
    return [line.split() for line in table.splitlines()]
