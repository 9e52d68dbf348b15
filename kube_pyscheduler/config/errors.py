"""What is wrong with a configuration: every problem, each with the path of its field."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Problem:
    """``path``: as in ``profiles[0].plugins.score.enabled[1]``; "" is the document itself."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(ValueError):
    """A configuration that cannot be used. ``problems`` has all of them, in the order of the document."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


@dataclass(slots=True)
class Problems:
    """Collects problems so that all are reported at once."""

    found: list[Problem] = field(default_factory=list)

    def add(self, path: str, message: str) -> None:
        self.found.append(Problem(path, message))

    def invalid(self, path: str, value: object, why: str) -> None:
        """A value that is readable and not allowed."""
        self.add(path, f"Invalid value: {_quoted(value)}: {why}")

    def required(self, path: str, why: str = "") -> None:
        self.add(path, f"Required value: {why}" if why else "Required value")

    def unsupported(self, path: str, value: object, supported: tuple[str, ...]) -> None:
        self.add(path, f"Unsupported value: {_quoted(value)}: supported values: {', '.join(map(_quoted, supported))}")

    def duplicate(self, path: str, value: object) -> None:
        self.add(path, f"Duplicate value: {_quoted(value)}")

    def forbidden(self, path: str, why: str) -> None:
        self.add(path, f"Forbidden: {why}")

    def raise_if_any(self) -> None:
        """Raises ConfigError."""
        if self.found:
            raise ConfigError(self.found)


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def child(path: str, name: str) -> str:
    """The path of a field of ``path``."""
    return f"{path}.{name}" if path else name
