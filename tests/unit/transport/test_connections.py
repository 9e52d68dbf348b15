"""Against servers that speak bytes, so that every odd answer can be given."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from kube_pyscheduler.transport import connections as module
from kube_pyscheduler.transport.connections import Connections, Reply, Stale
from kube_pyscheduler.transport.errors import NetworkError

Streams = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


class RawServer:
    """Answers the n-th request of every connection with the n-th of ``answers``; None closes the connection."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = answers
        self.connections = 0
        self.requests = 0
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            for answer in self.answers:
                await reader.readuntil(b"\r\n\r\n")
                self.requests += 1
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
            else:
                await reader.read()
        writer.close()

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.close()


@contextlib.asynccontextmanager
async def connected(server: RawServer) -> AsyncIterator[Connections]:
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    host, port = listening.sockets[0].getsockname()[:2]
    opened = Connections(host, port, tls=None)
    try:
        yield opened
    finally:
        await opened.close()
        server.hang_up()
        listening.close()
        await listening.wait_closed()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - what happens is the kernel's, not ours to signal
        await asyncio.sleep(0)


async def test_requests_one_after_another_share_a_connection() -> None:
    server = RawServer(OK, OK, OK)
    async with connected(server) as connections:
        for _ in range(3):
            assert await connections.send(REQUEST, 5.0) == Reply(200, b"hi", None)
    assert server.connections == 1


async def test_requests_at_the_same_time_do_not() -> None:
    server = RawServer(OK, OK)
    async with connected(server) as connections:
        replies = await asyncio.gather(*(connections.send(REQUEST, 5.0) for _ in range(3)))
        assert {reply.body for reply in replies} == {b"hi"}
        assert server.connections == 3
        await connections.send(REQUEST, 5.0)
    assert server.connections == 3


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", Reply(204, b"")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Reply(200, b"")),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n3\r\nyou\r\n0\r\n\r\n",
            Reply(200, b"hiyou"),
        ),
        (b"HTTP/1.1 429 Slow\r\nretry-after: 7\r\nContent-Length: 0\r\n\r\n", Reply(429, b"", 7.0)),
        (b"HTTP/1.1 503 No\r\nRetry-After: Fri, 31 Dec 1999\r\nContent-Length: 0\r\n\r\n", Reply(503, b"")),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, Reply(200, b"hi")),
    ],
)
async def test_answers(answer: bytes, expected: Reply) -> None:
    async with connected(RawServer(answer, OK)) as connections:
        assert await connections.send(REQUEST, 5.0) == expected
        assert await connections.send(REQUEST, 5.0) == Reply(200, b"hi")


async def test_an_answer_may_come_byte_by_byte_and_be_long() -> None:
    body = b"x" * 300_000
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n"

    async def dribble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for byte in head:
            writer.write(bytes([byte]))
            await writer.drain()
        writer.write(body)
        await reader.read()
        writer.close()

    server = RawServer()
    server.serve = dribble  # type: ignore[method-assign]
    async with connected(server) as connections:
        assert (await connections.send(REQUEST, 5.0)).body == body


async def test_a_connection_that_the_server_closes_after_its_answer_is_not_used_again() -> None:
    server = RawServer(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", OK)
    async with connected(server) as connections:
        for _ in range(2):
            assert (await connections.send(REQUEST, 5.0)).body == b"hi"
    assert server.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nhi",
    ],
)
async def test_what_is_no_http_answer(answer: bytes) -> None:
    async with connected(RawServer(answer, OK)) as connections:
        with pytest.raises(NetworkError, match="not an HTTP answer") as caught:
            await connections.send(REQUEST, 5.0)
        assert caught.value.sent


@pytest.mark.parametrize("answer", [None, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi"])
async def test_a_connection_that_ends_too_early_leaves_the_fate_open(answer: bytes | None) -> None:
    server = RawServer(answer)
    async with connected(server) as connections:
        request = asyncio.ensure_future(connections.send(REQUEST, 5.0))
        await until(lambda: server.requests == 1)
        server.hang_up()
        with pytest.raises(NetworkError) as caught:
            await request
        assert caught.value.sent
        assert not isinstance(caught.value, Stale)


async def test_a_kept_connection_that_was_closed_is_stale() -> None:
    server = RawServer(OK, None)
    async with connected(server) as connections:
        await connections.send(REQUEST, 5.0)
        with pytest.raises(Stale):
            await connections.send(REQUEST, 5.0)
        await connections.send(REQUEST, 5.0, fresh=True)
    assert server.connections == 2


async def test_a_kept_connection_that_is_known_to_be_closed_is_not_used() -> None:
    server = RawServer(OK, OK)
    async with connected(server) as connections:
        await connections.send(REQUEST, 5.0)
        server.hang_up()
        await until(lambda: not connections._open)
        await connections.send(REQUEST, 5.0)
    assert server.connections == 2


async def test_a_connection_that_was_idle_for_long_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    server = RawServer(OK, OK)
    async with connected(server) as connections:
        await connections.send(REQUEST, 5.0)
        monkeypatch.setattr(module, "KEEP_IDLE", -1.0)
        await connections.send(REQUEST, 5.0)
    assert server.connections == 2


async def test_a_deadline_ends_the_connection_too() -> None:
    server = RawServer(b"", OK)
    async with connected(server) as connections:
        with pytest.raises(NetworkError, match="no answer within") as caught:
            await connections.send(REQUEST, 0.05)
        assert caught.value.sent
        await until(lambda: not connections._open)


async def test_giving_up_ends_the_connection_so_that_no_answer_goes_astray() -> None:
    server = RawServer(b"", OK)
    async with connected(server) as connections:
        request = asyncio.ensure_future(connections.send(REQUEST, 5.0))
        await until(lambda: server.requests == 1)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        await until(lambda: not connections._open)


async def test_an_unasked_answer_ends_the_connection() -> None:
    server = RawServer(OK + b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n", OK)
    async with connected(server) as connections:
        assert (await connections.send(REQUEST, 5.0)).status == 200
        assert (await connections.send(REQUEST, 5.0)).status == 200
    assert server.connections == 2


async def test_closing_fails_what_is_on_its_way() -> None:
    server = RawServer(b"")
    async with connected(server) as connections:
        request = asyncio.ensure_future(connections.send(REQUEST, 5.0))
        await until(lambda: server.requests == 1)
        await connections.close()
        with pytest.raises(NetworkError, match="the session was closed"):
            await request


async def test_a_refused_connection_was_certainly_not_sent_on() -> None:
    with pytest.raises(NetworkError, match=r"cannot connect to 127\.0\.0\.1:1") as caught:
        await Connections("127.0.0.1", 1, tls=None).send(REQUEST, 5.0)
    assert not caught.value.sent
