from __future__ import annotations

import pytest

from kube_pyscheduler.kit.duration import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15s", 15.0),
        ("1m30s", 90.0),
        ("0", 0.0),
        ("0s", 0.0),
        ("1.5h", 5400.0),
        (".5s", 0.5),
        ("1.s", 1.0),
        ("100ms", 0.1),
        ("2h0m0.25s", 7200.25),
        ("-3s", -3.0),
        ("+3s", 3.0),
        ("5µs", 5e-6),
        ("7ns", 7e-9),
    ],
)
def test_reads_what_go_reads(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds, abs=1e-12)


@pytest.mark.parametrize("text", ["", "15", "s", "1d", "1 s", "1m 30s", "--1s", "-", "1e3s", "15seconds", ".s"])
def test_refuses_what_go_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="invalid duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (15, "15s"),
        (90, "1m30s"),
        (600, "10m0s"),
        (3600, "1h0m0s"),
        (0, "0s"),
        (1.5, "1.5s"),
        (0.25, "250ms"),
        (0.0015, "1.5ms"),
        (5e-6, "5µs"),
        (-61, "-1m1s"),
    ],
)
def test_writes_as_go_writes(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
