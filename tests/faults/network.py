"""A network within one process: what is written on one side arrives on the other, in order, at the same moment.

Real sockets would do as well, but when how much of a long answer arrives is the kernel's affair, and differs from run
to run.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

Address = tuple[str, int]
ProtocolFactory = Callable[[], asyncio.BaseProtocol]

FIRST_PORT = 40_000


class Network:
    """Who listens where."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._listeners: dict[Address, ProtocolFactory] = {}
        self._next_port = FIRST_PORT

    def listen(self, factory: ProtocolFactory, host: str, port: int) -> Listener:
        if not port:
            self._next_port += 1
            port = self._next_port
        address = (host, port)
        if address in self._listeners:
            raise OSError(98, "address already in use")
        self._listeners[address] = factory
        return Listener(self, address)

    def silence(self, address: Address) -> None:
        """Nobody listens there any more."""
        self._listeners.pop(address, None)

    def check(self, address: Address) -> None:
        """Raises ConnectionRefusedError where nobody listens."""
        if address not in self._listeners:
            raise ConnectionRefusedError(111, f"Connect call failed {address}")

    def connect(self, factory: ProtocolFactory, address: Address) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        self.check(address)
        near, far = factory(), self._listeners[address]()
        self._next_port += 1
        ours = ("127.0.0.1", self._next_port)
        client = End(self._loop, near, {"sockname": ours, "peername": address})
        server = End(self._loop, far, {"sockname": address, "peername": ours})
        client.peer, server.peer = server, client
        far.connection_made(server)
        near.connection_made(client)
        return client, near


class Listener(asyncio.AbstractServer):
    """What ``create_server`` returns."""

    def __init__(self, network: Network, address: Address) -> None:
        self._network = network
        self._address = address

    @property
    def sockets(self) -> tuple[Listener, ...]:
        return (self,)

    def getsockname(self) -> Address:
        return self._address

    async def start_serving(self) -> None:
        return None

    async def serve_forever(self) -> None:
        await asyncio.Event().wait()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def is_serving(self) -> bool:
        return True

    def close(self) -> None:
        self._network.silence(self._address)

    async def wait_closed(self) -> None:
        return None


class End(asyncio.Transport):
    """One end of a connection. It never has to wait before it writes."""

    peer: End

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: Any, extra: dict[str, Any]) -> None:
        super().__init__(extra)
        self._loop = loop
        self._protocol = protocol
        self._arrived: deque[bytes] = deque()
        self._is_paused = False
        self._has_ended = False
        self._is_closing = False
        self._is_lost = False

    # What the owner calls

    def write(self, data: Any) -> None:
        if data and not self._is_closing:
            self._loop.call_soon(self.peer._receive, bytes(data))

    def writelines(self, pieces: Iterable[Any]) -> None:
        self.write(b"".join(pieces))

    def can_write_eof(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        return None

    def is_reading(self) -> bool:
        return not self._is_paused

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self._loop.call_soon(self._deliver)

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._loop.call_soon(self.peer._end)
            self._loop.call_soon(self._lose, None)

    def abort(self) -> None:
        if not self._is_lost:
            self._is_closing = True
            self._loop.call_soon(self.peer._lose, ConnectionResetError(104, "Connection reset by peer"))
            self._loop.call_soon(self._lose, None)

    def get_protocol(self) -> Any:
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    # What the peer causes

    def _receive(self, data: bytes) -> None:
        self._arrived.append(data)
        self._deliver()

    def _end(self) -> None:
        self._has_ended = True
        self._deliver()

    def _deliver(self) -> None:
        while self._arrived and not self._is_paused and not self._is_lost:
            self._protocol.data_received(self._arrived.popleft())
        if self._has_ended and not (self._arrived or self._is_paused or self._is_closing):
            self._has_ended = False
            if not self._protocol.eof_received():
                self.close()

    def _lose(self, error: Exception | None) -> None:
        if not self._is_lost:
            self._is_lost = self._is_closing = True
            self._protocol.connection_lost(error)
