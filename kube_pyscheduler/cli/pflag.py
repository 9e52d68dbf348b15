"""Flags as kube-scheduler's users write them, on top of click.

``--x=true``, ``--x`` and ``--x=false`` for switches; ``--v=2``, ``-v=2``, ``-v2`` and ``-v 2``; underscores for
hyphens; and the words of pflag for what is wrong. Source: github.com/spf13/pflag and component-base/cli/flag.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import click

from kube_pyscheduler.kit.duration import parse_duration

T = TypeVar("T")


class FlagError(click.UsageError):
    """A flag that is unknown, incomplete or unreadable; said as pflag says it."""


class Value(click.ParamType, Generic[T]):  # type: ignore[type-arg]  # click 8.2's is not generic
    """A type whose refusals sound like pflag's."""

    def parse(self, text: str) -> T:
        """Raises ValueError."""
        raise NotImplementedError

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except ValueError as error:
            flag = param.opts[0] if param is not None else ""
            raise FlagError(f'invalid argument "{value}" for "{flag}" flag: {error}', ctx) from error


class Bool(Value[bool]):
    name = "bool"

    def parse(self, text: str) -> bool:
        if text in ("1", "t", "T", "true", "TRUE", "True"):
            return True
        if text in ("0", "f", "F", "false", "FALSE", "False"):
            return False
        raise ValueError("neither true nor false")


class VersionSwitch(Bool):
    """``raw`` asks for the version too. Source: component-base/version/verflag/verflag.go."""

    def parse(self, text: str) -> bool:
        return text == "raw" or super().parse(text)


class Int(Value[int]):
    name = "int"

    def __init__(self, low: int = -(2**31), high: int = 2**31 - 1) -> None:
        self._low = low
        self._high = high

    def parse(self, text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ValueError("not an integer") from None
        if not self._low <= number <= self._high:
            raise ValueError(f"not between {self._low} and {self._high}")
        return number


class Float(Value[float]):
    name = "float"

    def parse(self, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise ValueError("not a number") from None


class Duration(Value[float]):
    """Seconds."""

    name = "duration"

    def parse(self, text: str) -> float:
        return parse_duration(text)


class Text(Value[str]):
    name = "string"

    def parse(self, text: str) -> str:
        return text


class Texts(Value[list[str]]):
    """Separated by commas."""

    name = "strings"

    def parse(self, text: str) -> list[str]:
        return [part for part in text.split(",") if part]


class PflagGroup(click.Group):
    """A command whose own flags are read as pflag reads them, also when it is called without a subcommand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, normalise(args, {p.opts[0]: p for p in self.get_params(ctx) if p.opts}, ctx))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None:
            raise FlagError(f'unknown command "{args[0]}" for "{ctx.command_path}"', ctx)
        return super().resolve_command(ctx, args)


def normalise(args: Sequence[str], known: dict[str, click.Parameter], ctx: click.Context | None = None) -> list[str]:
    """``args`` with every flag as ``--name=value``, up to the first word that is no flag. Empty words are dropped.

    Raises FlagError for flags that are not ``known`` (``--name`` → its parameter) and for those without their value."""
    out: list[str] = []
    rest = [arg for arg in args if arg]
    while rest:
        arg = rest.pop(0)
        if arg in ("-h", "--help"):
            out.append("--help")
            continue
        if arg == "--" or not arg.startswith("-") or arg == "-":
            return [*out, arg, *rest]
        name, value = _split(arg, known, ctx)
        parameter = known.get(name)
        if parameter is None:
            raise FlagError(f"unknown flag: {name}", ctx)
        if value is None:
            if isinstance(parameter.type, Bool):
                value = "true"
            elif rest:
                value = rest.pop(0)
            else:
                raise FlagError(f"flag needs an argument: {arg}", ctx)
        out.append(f"{name}={value}")
    return out


def _split(arg: str, known: dict[str, click.Parameter], ctx: click.Context | None) -> tuple[str, str | None]:
    """Long name and value of one flag; None where the value is not part of the word."""
    if arg.startswith("--"):
        name, equals, value = arg.partition("=")
        return "--" + name[2:].replace("_", "-"), value if equals else None
    name, value = f"--{arg[1]}", arg[2:]
    if name not in known:
        raise FlagError(f"unknown shorthand flag: '{arg[1]}' in {arg}", ctx)
    return name, value.removeprefix("=") if value else None
