from __future__ import annotations

import click
import pytest

from kube_pyscheduler.cli.pflag import Bool, Duration, FlagError, Float, Int, Text, Texts, Value, normalise

KNOWN: dict[str, click.Parameter] = {
    "--leader-elect": click.Option(["--leader-elect"], type=Bool()),
    "--config": click.Option(["--config"], type=Text()),
    "--v": click.Option(["--v"], type=Int()),
}


@pytest.mark.parametrize(
    ("args", "normal"),
    [
        (["--leader-elect"], ["--leader-elect=true"]),
        (["--leader-elect=false"], ["--leader-elect=false"]),
        (["--leader_elect"], ["--leader-elect=true"]),
        (["--leader-elect", "demo", "--keep"], ["--leader-elect=true", "demo", "--keep"]),
        (["--config", "a=b"], ["--config=a=b"]),
        (["--config="], ["--config="]),
        (["--config", "--v"], ["--config=--v"]),
        (["--v=2"], ["--v=2"]),
        (["--v", "-1"], ["--v=-1"]),
        (["-v=2"], ["--v=2"]),
        (["-v", "2"], ["--v=2"]),
        (["-v2"], ["--v=2"]),
        (["-h"], ["--help"]),
        (["", "--v=2", ""], ["--v=2"]),
        (["devserver", "-x", "--foo"], ["devserver", "-x", "--foo"]),
    ],
)
def test_flags_are_read_as_pflag_reads_them(args: list[str], normal: list[str]) -> None:
    assert normalise(args, KNOWN) == normal


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["--foo"], "unknown flag: --foo"),
        (["--foo_bar=1"], "unknown flag: --foo-bar"),
        (["-x"], "unknown shorthand flag: 'x' in -x"),
        (["--v=2", "--config"], "flag needs an argument: --config"),
        (["-v"], "flag needs an argument: -v"),
    ],
)
def test_what_is_wrong_is_said_as_pflag_says_it(args: list[str], problem: str) -> None:
    with pytest.raises(FlagError) as caught:
        normalise(args, KNOWN)
    assert caught.value.message == problem


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (Bool(), "T", True),
        (Bool(), "0", False),
        (Int(), "-3", -3),
        (Float(), "50", 50.0),
        (Duration(), "1m30s", 90.0),
        (Texts(), "a,,b", ["a", "b"]),
    ],
)
def test_values_are_converted(type_: Value[object], text: str, value: object) -> None:
    assert type_.convert(text, None, None) == value


@pytest.mark.parametrize(
    ("type_", "text"),
    [(Bool(), "yes"), (Int(), "1.5"), (Int(0, 65535), "65536"), (Float(), "fast"), (Duration(), "15")],
)
def test_values_that_cannot_be_read_name_the_flag(type_: Value[object], text: str) -> None:
    option = click.Option(["--flag"], type=type_)
    with pytest.raises(FlagError, match=f'invalid argument "{text}" for "--flag" flag: '):
        type_.convert(text, option, None)
