from __future__ import annotations

import asyncio
import os
import signal

import pytest

from kube_pyscheduler.daemon.signals import DEBUG_SIGNAL, RELOAD_SIGNAL, call_on, stop_on_signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_asks_to_stop_and_a_second_one_ends_at_once(number: signal.Signals) -> None:
    exit_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    with stop_on_signals(exit_code.set_result) as stop:
        os.kill(os.getpid(), number)
        await stop.wait()
        assert not exit_code.done()
        os.kill(os.getpid(), number)
        assert await exit_code == 1


async def test_afterwards_signals_mean_what_they_meant_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_signals():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) in (before, signal.SIG_DFL)


@pytest.mark.parametrize("number", [DEBUG_SIGNAL, RELOAD_SIGNAL])
async def test_other_signals_call_back_every_time(number: signal.Signals) -> None:
    calls: asyncio.Queue[int] = asyncio.Queue()
    with call_on(number, lambda: calls.put_nowait(1)):
        for _ in range(2):
            os.kill(os.getpid(), number)
            await calls.get()
