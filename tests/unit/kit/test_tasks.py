import asyncio

import pytest

from kube_pyscheduler.kit.tasks import Ended, TaskCrashed, Tasks


async def _fail() -> None:
    raise ZeroDivisionError("oops")


async def _return() -> int:
    return 7


async def test_results_and_names_are_those_of_the_work() -> None:
    async with Tasks() as tasks:
        task = tasks.start(_return(), name="seven")
        assert await task == 7
        assert task.get_name() == "seven"
        await asyncio.sleep(0)
        assert len(tasks) == 0


async def test_a_crash_reaches_the_owner_with_its_cause(caplog: pytest.LogCaptureFixture) -> None:
    async with Tasks() as tasks:
        tasks.start(_fail(), name="bad")
        with pytest.raises(TaskCrashed, match="bad") as caught:
            await tasks.crashed()
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "oops" in caplog.text


async def test_an_end_that_is_nobodys_mistake_reaches_the_owner_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def end() -> None:
        raise Ended("the world")

    async with Tasks() as tasks:
        tasks.start(end(), name="work", forever=True)
        with pytest.raises(TaskCrashed, match="the world"):
            await tasks.crashed()
    assert caplog.text == ""


async def test_the_first_crash_counts(caplog: pytest.LogCaptureFixture) -> None:
    async with Tasks() as tasks:
        tasks.start(_fail(), name="first")
        await asyncio.sleep(0.0)
        tasks.start(_fail(), name="second")
        await asyncio.sleep(0.0)
        with pytest.raises(TaskCrashed, match="first"):
            await tasks.crashed()


async def test_a_quiet_end_is_a_crash_only_for_what_should_run_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    async with Tasks() as tasks:
        await tasks.start(_return(), name="once")
        tasks.start(_return(), name="loop", forever=True)
        with pytest.raises(TaskCrashed, match="loop ended early"):
            await tasks.crashed()


async def test_closing_cancels_and_waits(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[str] = []

    async def linger(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(name)

    async with Tasks() as tasks:
        tasks.start(linger("a"), name="a")
        tasks.start(linger("b"), name="b", forever=True)
        await asyncio.sleep(0)
    assert sorted(ended) == ["a", "b"]
    assert len(tasks) == 0
    assert caplog.text == ""


async def test_closing_also_gets_what_is_started_meanwhile() -> None:
    tasks = Tasks()

    async def start_another() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            tasks.start(asyncio.sleep(3600), name="late")

    tasks.start(start_another(), name="early")
    await asyncio.sleep(0)
    await tasks.close()
    assert len(tasks) == 0
