"""The server as a process of its own."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import aiohttp
import pytest
import yaml

pytestmark = pytest.mark.process

START = "from kube_pyscheduler.cli.devserver import devserver; devserver()"


async def start(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        START,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def url_of(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode().strip()
    assert line.startswith("http"), (await process.communicate())[1].decode()
    return line


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_tells_its_url_and_ends_with_open_watches(
    tmp_path: Path, session: aiohttp.ClientSession, number: signal.Signals
) -> None:
    seed = tmp_path / "seed.yaml"
    seed.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}")
    config = tmp_path / "kubeconfig"
    process = await start("--nodes", "3", "--seed", str(seed), "--kubeconfig-out", str(config))
    url = await url_of(process)
    written = yaml.safe_load(config.read_text())
    assert written["clusters"][0]["cluster"] == {"server": url}
    assert config.stat().st_mode & 0o077 == 0
    async with session.get(f"{url}/api/v1/nodes") as response:
        assert len((await response.json())["items"]) == 3
    async with session.get(f"{url}/api/v1/namespaces/default/configmaps/c") as response:
        assert response.status == 200
    async with session.get(f"{url}/api/v1/nodes?watch=true") as response:
        assert await response.content.readline()
        process.send_signal(number)
        assert await process.wait() == 0
    assert (await process.communicate())[1] == b""


async def test_tokens_and_tls(tmp_path: Path, session: aiohttp.ClientSession) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("t,jane,1\n")
    config = tmp_path / "kubeconfig"
    process = await start("--tls", "--rbac", "--token-file", str(tokens), "--kubeconfig-out", str(config))
    url = await url_of(process)
    assert url.startswith("https://")
    admin = yaml.safe_load(config.read_text())["users"][0]["user"]["token"]
    for token, status in (("t", 403), (admin, 200), ("x", 401)):
        headers = {"Authorization": f"Bearer {token}"}
        async with session.get(f"{url}/api/v1/nodes", headers=headers, ssl=False) as response:
            assert response.status == status
    process.terminate()
    assert await process.wait() == 0
    await process.communicate()


async def test_what_cannot_be_used_is_told(tmp_path: Path) -> None:
    seed = tmp_path / "seed.yaml"
    seed.write_text("kind: Pod")
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("t\n")
    for arguments, problem in (
        (("--seed", str(seed)), "document 1 is not a Kubernetes object"),
        (("--token-file", str(tokens)), "tokens.csv:1: expected token,user,uid"),
        (("--address", "192.0.2.1"), "can't listen on 192.0.2.1:0"),
        (("--kubeconfig-out", str(tmp_path / "absent" / "file")), "can't write the kubeconfig"),
        (("--nodes", "-1"), "Invalid value"),
    ):
        process = await start(*arguments)
        _, complaint = await process.communicate()
        assert process.returncode in (1, 2)
        assert problem in complaint.decode()
        assert "Traceback" not in complaint.decode()
