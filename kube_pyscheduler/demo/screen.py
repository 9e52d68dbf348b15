"""What is seen while the demonstration runs: a picture that moves on a terminal, plain lines everywhere else."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kube_pyscheduler.demo.picture import Load, Picture, app_of, why_waiting
from kube_pyscheduler.kit.clock import Clock

RECENT_LINES = 8
_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red", "bright_cyan", "bright_magenta", "bright_green")
_BAR = 12
"""Cells of a bar of use."""


class Screen:
    """Tells of every pod that gets a node or a reason to wait. A context manager.

    Times are seconds since its construction.
    """

    def __init__(self, console: Console, clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._began = clock.monotonic()
        self._told: dict[str, str] = {}
        self._recent: deque[Text] = deque(maxlen=RECENT_LINES)
        self._colours: dict[str, str] = {}
        self._picture = Picture([], [], [])
        self._live = Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal else None

    @property
    def moves(self) -> bool:
        return self._live is not None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """One line about what happens."""
        self._tell(Text(text))

    def show(self, picture: Picture) -> None:
        """Tell what is new."""
        self._picture = picture
        for pod in picture.pods:
            news = pod.spec.node_name or why_waiting(pod)
            if news and self._told.get(pod.name) != news:
                self._told[pod.name] = news
                line = Text("  ")
                line.append(pod.name, style=self._colour(app_of(pod)))
                line.append(f" → {news}" if pod.spec.node_name else f" waits: {news}")
                self._tell(line)
        self._refresh()

    def _tell(self, line: Text) -> None:
        stamped = Text(f"{self._clock.monotonic() - self._began:5.1f}s  ", style="dim").append_text(line)
        if self._live is None:
            self._console.print(stamped, soft_wrap=True)
        else:
            self._recent.append(stamped)
            self._refresh()

    def _refresh(self) -> None:
        if self._live is not None:
            self._live.update(self._render())

    def _render(self) -> RenderableType:
        parts: list[RenderableType] = []
        if self._picture.nodes:
            parts.append(self._node_table())
            parts.append(self._legend())
        lines = [line.copy() for line in self._recent]
        for line in lines:
            line.truncate(self._console.width, overflow="ellipsis")
        return Group(*parts, *lines)

    def _node_table(self) -> Table:
        picture = self._picture
        title = f"{picture.bound} of {len(picture.pods)} pods have a node"
        table = Table("node", "zone", "CPU", "pods", title=title, title_justify="left", expand=False)
        for load in picture.loads():
            name = Text(load.node.name)
            if load.remarks:
                name.append(f" {load.remarks}", style="dim")
            table.add_row(name, load.zone, _bar(load), self._blocks(load))
        return table

    def _blocks(self, load: Load) -> Text:
        blocks = Text()
        for pod in load.pods:
            blocks.append("■ ", style=self._colour(app_of(pod)))
        return blocks

    def _legend(self) -> Text:
        legend = Text()
        for app, colour in self._colours.items():
            legend.append("■ ", style=colour).append(f"{app}  ")
        return legend

    def _colour(self, app: str) -> str:
        if app not in self._colours:
            self._colours[app] = _COLOURS[len(self._colours) % len(_COLOURS)]
        return self._colours[app]


def _bar(load: Load) -> Text:
    """How much of the node's CPU is asked for."""
    allocatable = load.allocatable.get("cpu", 0)
    filled = round(_BAR * load.used.get("cpu", 0) / allocatable) if allocatable else 0
    filled = min(filled, _BAR)
    return Text("█" * filled, style="green").append("░" * (_BAR - filled), style="dim")
