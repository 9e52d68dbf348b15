"""Verbosity levels on logging levels."""

from __future__ import annotations

import logging

import pytest

from kube_pyscheduler.kit.verbosity import Log, level


def test_a_higher_verbosity_shows_more(caplog: pytest.LogCaptureFixture) -> None:
    log = Log("kube_pyscheduler.test")
    with caplog.at_level(level(4), logger="kube_pyscheduler.test"):
        assert log.v(4)
        assert not log.v(5)
        log.info(4, "seen", pod="d/p")
        log.info(5, "unseen", pod="d/p")
    assert [(record.message, record.fields) for record in caplog.records] == [("seen", {"pod": "d/p"})]
    assert caplog.records[0].filename == "test_verbosity.py"


def test_errors_carry_their_exception(caplog: pytest.LogCaptureFixture) -> None:
    log = Log("kube_pyscheduler.test")
    problem = ValueError("broken")
    log.error("failed", problem, plugin="x")
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert record.exc_info[1] is problem
    assert record.fields == {"plugin": "x"}


def test_levels_stay_between_info_and_debug() -> None:
    assert [level(-1), level(0), level(10), level(99)] == [20, 20, 10, 10]
