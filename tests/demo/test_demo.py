"""The demonstration as a person runs it: its own process, the real daemon, real kubectl."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kube_pyscheduler.demo.scenario import DEFAULT_FOLDER

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

BIN = Path(sys.executable).parent


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """Where the demo keeps its files."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


@asynccontextmanager
async def demo(temporary: Path, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A running demo that keeps its files below ``temporary``."""
    process = await asyncio.create_subprocess_exec(
        BIN / "kube-pyscheduler",
        "demo",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await process.communicate()


async def outcome(temporary: Path, *arguments: str) -> tuple[int, str]:
    async with demo(temporary, *arguments) as process:
        output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


async def read_until(process: asyncio.subprocess.Process, words: str) -> str:
    assert process.stdout is not None
    async for line in process.stdout:
        if words in line.decode():
            return line.decode()
    raise AssertionError(f"the demo ended without saying {words!r}")


def files_of(temporary: Path) -> list[Path]:
    return list(temporary.iterdir())


def children_of(temporary: Path) -> list[int]:
    """Processes that were told of a file below the folder: the API server and the daemon."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(temporary).encode() in command:
                found.append(int(entry.name))
    return found


async def test_it_ends_by_itself_with_a_readable_summary(temporary: Path) -> None:
    code, output = await outcome(temporary)
    assert code == 0, output
    assert "Not as expected" not in output
    for words in ("asks-too-much", "8 Insufficient cpu", "redis-master-1 on worker-", "decisions in", "--keep"):
        assert words in output, words
    assert output.count("apart") == 3
    assert children_of(temporary) == []
    assert files_of(temporary) == []


async def test_it_stays_up_for_kubectl_until_ctrl_c(temporary: Path) -> None:
    async with demo(temporary, "--keep") as process:
        command = (await read_until(process, "get pods -o wide")).split()
        kubectl = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        listed, _ = await kubectl.communicate()
        assert b"redis-master-0" in listed
        assert len(children_of(temporary)) == 2
        process.send_signal(signal.SIGINT)
        await process.communicate()
    assert process.returncode == 0
    assert children_of(temporary) == []


async def test_it_stops_its_children_when_it_is_ended_in_the_middle(temporary: Path) -> None:
    async with demo(temporary) as process:
        await read_until(process, "Creating 10-shop.yaml")
        process.send_signal(signal.SIGTERM)
        await process.communicate()
    assert process.returncode == 130
    assert children_of(temporary) == []


async def test_it_fails_and_says_why_when_something_is_not_as_expected(tmp_path: Path, temporary: Path) -> None:
    folder = Path(shutil.copytree(DEFAULT_FOLDER, tmp_path / "demo"))
    for file in (folder / "workloads").iterdir():
        if file.name not in ("00-namespace.yaml", "90-waiting.yaml"):
            file.unlink()
    text = (folder / "expectations.yaml").read_text()
    (folder / "expectations.yaml").write_text(text.split("separation:")[0].replace("asks-too-much", "somebody-else"))
    code, output = await outcome(temporary, f"--files={folder}", "--timeout=1")
    assert code == 1
    assert "Not as expected: somebody-else: there is no such pod" in output
    assert "Not as expected: asks-too-much should run but waits: 0/12 nodes are available" in output
    assert "The last words of the scheduler" in output
    assert children_of(temporary) == []


async def test_a_child_that_fails_is_told_with_its_last_words(tmp_path: Path, temporary: Path) -> None:
    folder = Path(shutil.copytree(DEFAULT_FOLDER, tmp_path / "demo"))
    (folder / "cluster.yaml").write_text("apiVersion: v1\nkind: Nothing\nmetadata: {name: a}\n")
    code, output = await outcome(temporary, f"--files={folder}")
    assert code == 1
    assert "apiserver ended with code 1. Its last words:" in output
    assert "Nothing is not a kind this server knows" in output


async def test_a_refused_object_is_told(tmp_path: Path, temporary: Path) -> None:
    folder = Path(shutil.copytree(DEFAULT_FOLDER, tmp_path / "demo"))
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: bad, namespace: kube-pyscheduler-demo}\nspec: {containers: []}\n"
    (folder / "workloads" / "05-bad.yaml").write_text(pod)
    code, output = await outcome(temporary, f"--files={folder}")
    assert code == 1
    assert 'The API server refused: Pod "bad" is invalid' in output
    assert children_of(temporary) == []


async def test_a_missing_folder_is_told(tmp_path: Path, temporary: Path) -> None:
    code, output = await outcome(temporary, f"--files={tmp_path / 'nowhere'}")
    assert code == 1
    assert "does not hold a demo" in output
