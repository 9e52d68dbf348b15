import asyncio
import json
import ssl
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_pyscheduler.kit.clock import FakeClock
from kube_pyscheduler.objects.kinds import POD
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.credentials import REREAD_PERIOD, Credentials, CredentialsError, Source, load
from kube_pyscheduler.transport.errors import Unauthorized
from kube_pyscheduler.transport.session import Session
from tests.unit.scripted_server import Answer, ScriptedServer, reply, status

PODS = "/api/v1/pods"
LIST = requests.list_page(POD)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Callable[..., str]:
    def write(user: dict[str, Any], server: str = "https://cluster:6443/", **cluster: Any) -> str:
        path = tmp_path / "config"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
            "users": [{"name": "u", "user": user}],
        }
        path.write_text(yaml.safe_dump(content))
        return str(path)

    return write


def _plugin(folder: Path, credential: dict[str, Any]) -> dict[str, Any]:
    """An exec user whose program prints this credential and counts its runs in the file ``runs``."""
    program = folder / "plugin"
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": credential}
    (folder / "credential").write_text(json.dumps(answer))
    program.write_text(f"#!/bin/sh\necho run >> {folder}/runs\ncat {folder}/credential\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(program)}}


def _runs(folder: Path) -> int:
    return len((folder / "runs").read_text().splitlines())


# -- one reading -------------------------------------------------------------------------------------------------------


def test_a_kubeconfig_with_a_token(kubeconfig: Callable[..., str]) -> None:
    access = load(Source(kubeconfig({"token": "abc"}, **{"tls-server-name": "api", "insecure-skip-tls-verify": True})))
    assert access.server == "https://cluster:6443"
    assert access.authorization == "Bearer abc"
    assert access.server_name == "api"
    context = access.ssl_context()
    assert context is not None
    assert context.verify_mode == ssl.CERT_NONE


def test_a_basic_password(kubeconfig: Callable[..., str]) -> None:
    assert load(Source(kubeconfig({"username": "me", "password": "pw"}))).authorization == "Basic bWU6cHc="


def test_master_replaces_the_server_and_may_lack_a_scheme(kubeconfig: Callable[..., str]) -> None:
    access = load(Source(kubeconfig({"token": "abc"}), master="127.0.0.1:8080"))
    assert (access.server, access.authorization) == ("http://127.0.0.1:8080", "Bearer abc")
    assert access.ssl_context() is None


def test_master_alone_is_anonymous() -> None:
    access = load(Source(master="http://127.0.0.1:8080/"))
    assert (access.server, access.authorization) == ("http://127.0.0.1:8080", "")


def test_inside_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "token").write_text("abc\n")
    (tmp_path / "ca.crt").write_text("some certificate")
    access = load(Source(service_account=tmp_path))
    assert access.server == "https://[fd00::1]:443"
    assert access.authorization.lower() == "bearer abc"
    assert access.ca_file == str(tmp_path / "ca.crt")
    with pytest.raises(CredentialsError, match="cannot use the certificates"):
        access.ssl_context()


def test_the_environments_proxy_and_its_exceptions(
    kubeconfig: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kubeconfig({"token": "abc"})
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert load(Source(path)).proxy == "http://proxy:3128"
    monkeypatch.setenv("NO_PROXY", "cluster")
    assert load(Source(path)).proxy == ""
    assert load(Source(kubeconfig({"token": "abc"}, **{"proxy-url": "http://own:1"}))).proxy == "http://own:1"
    with pytest.raises(CredentialsError, match="socks5://own:1"):
        load(Source(kubeconfig({"token": "abc"}, **{"proxy-url": "socks5://own:1"})))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_this_machine_is_not_reached_through_the_environments_proxy(
    kubeconfig: Callable[..., str], monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    path = kubeconfig({"token": "abc"}, f"https://{host}:6443")
    assert load(Source(path)).proxy == ""


def test_a_plugins_token(kubeconfig: Callable[..., str], tmp_path: Path) -> None:
    access = load(Source(kubeconfig(_plugin(tmp_path, {"token": "t"}))))
    assert (access.authorization, access.plugin, access.expires) == ("Bearer t", True, None)


def test_a_plugin_that_gives_nothing(
    kubeconfig: Callable[..., str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(CredentialsError, match="neither a token nor a certificate"):
        load(Source(kubeconfig(_plugin(tmp_path, {}))))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "empty"),
        ("{", "expected"),
        ("current-context: a", "contexts"),
        ("[]", "not of the form of a kubeconfig"),
        (
            "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, cluster: {}}]",
            "no server",
        ),
    ],
)
def test_a_broken_kubeconfig_says_which_file_and_why(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(CredentialsError, match=problem) as caught:
        load(Source(str(path)))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (Source("/does/not/exist"), "/does/not/exist: no such file"),
        (Source(), "not inside a cluster"),
        (Source(master="ftp://x"), "not the address of a server: ftp://x"),
    ],
)
def test_nothing_to_go_by(source: Source, problem: str) -> None:
    with pytest.raises(CredentialsError, match=problem):
        load(source)


# -- renewing ----------------------------------------------------------------------------------------------------------


def _guarded(valid: set[str]) -> Answer:
    """Answers 401 to a token that is not in ``valid``."""

    async def answer(request: Any) -> Any:
        token = request.headers["Authorization"].removeprefix("Bearer ")
        refused = status(401, "Unauthorized", "token expired")
        return await (reply(200, {"items": []}) if token in valid else refused)(request)

    return answer


async def test_bc55_ten_rotations_without_one_failed_request(
    kubeconfig: Callable[..., str], tmp_path: Path, server: ScriptedServer
) -> None:
    token = tmp_path / "token"
    token.write_text("token-0")
    clock = FakeClock()
    credentials = await Credentials.read(Source(kubeconfig({"tokenFile": str(token)}, server.url)), clock=clock)
    valid = {"token-0"}
    server.script("GET", PODS, *[_guarded(valid)] * 100)
    async with Session(credentials, user_agent="test") as session:
        client = Client(session)
        for rotation in range(1, 11):
            valid.clear()
            valid.add(f"token-{rotation}")
            token.write_text(f"token-{rotation}")
            clock.advance(REREAD_PERIOD * (rotation % 2))
            await asyncio.gather(*(client.send(LIST) for _ in range(3)))


async def test_bc55_a_401_means_one_reading_and_one_more_try(
    kubeconfig: Callable[..., str], tmp_path: Path, server: ScriptedServer
) -> None:
    source = Source(kubeconfig(_plugin(tmp_path, {"token": "stale"}), server.url))
    credentials = await Credentials.read(source, clock=FakeClock())
    server.script("GET", PODS, *[_guarded(set())] * 2)
    async with Session(credentials, user_agent="test") as session:
        with pytest.raises(Unauthorized, match="token expired"):
            await Client(session).send(LIST)
    assert server.count("GET", PODS) == 2
    assert _runs(tmp_path) == 2


async def test_a_watch_is_reopened_with_the_fresh_token(
    kubeconfig: Callable[..., str], tmp_path: Path, server: ScriptedServer
) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    credentials = await Credentials.read(Source(kubeconfig({"tokenFile": str(token)}, server.url)), clock=FakeClock())
    token.write_text("new")
    server.script("WATCH", PODS, *[_guarded({"new"})] * 2)
    async with Session(credentials, user_agent="test") as session:
        stream = await Client(session).open_watch(requests.watch(POD, version="1", timeout=300), idle=60.0)
        stream.close()
    assert [seen.headers["Authorization"] for seen in server.seen] == ["Bearer old", "Bearer new"]


async def test_files_are_read_again_after_a_minute_without_holding_up_a_request(
    kubeconfig: Callable[..., str], tmp_path: Path
) -> None:
    clock = FakeClock()
    token = tmp_path / "token"
    token.write_text("one")
    credentials = await Credentials.read(Source(kubeconfig({"tokenFile": str(token)})), clock=clock)
    assert not credentials.due
    token.write_text("two")
    clock.advance(REREAD_PERIOD)
    assert credentials.due
    await credentials.renew()
    assert credentials.access.authorization == "Bearer two"
    assert not credentials.due


async def test_a_plugin_runs_again_only_near_the_end_of_its_credential(
    kubeconfig: Callable[..., str], tmp_path: Path
) -> None:
    clock = FakeClock(start=1_700_000_000.0)  # 2023-11-14T22:13:20Z
    user = _plugin(tmp_path, {"token": "t", "expirationTimestamp": "2023-11-14T23:13:20Z"})
    credentials = await Credentials.read(Source(kubeconfig(user)), clock=clock)
    clock.advance(3_000.0)
    assert not credentials.due
    clock.advance(540.0)
    assert credentials.due


@pytest.mark.parametrize("content", ["", " \n", None], ids=["empty", "blank", "missing"])
async def test_a_token_file_that_is_just_being_written_leaves_the_old_token(
    kubeconfig: Callable[..., str], tmp_path: Path, content: str | None
) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    credentials = await Credentials.read(Source(kubeconfig({"tokenFile": str(token)})), clock=FakeClock())
    token.unlink()
    if content is not None:
        token.write_text(content)
    await credentials.renew()
    assert credentials.access.authorization == "Bearer old"
    token.write_text("new")
    await credentials.renew()
    assert credentials.access.authorization == "Bearer new"


async def test_what_cannot_be_read_again_stays_as_it_was(
    kubeconfig: Callable[..., str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = kubeconfig({"token": "abc"})
    credentials = await Credentials.read(Source(path), clock=FakeClock())
    await asyncio.to_thread(Path(path).unlink)
    await credentials.renew()
    assert credentials.access.authorization == "Bearer abc"
    assert "Cannot renew the credentials" in caplog.text
