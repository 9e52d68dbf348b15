"""How expressions fail; the texts are those of cel-go."""

from __future__ import annotations


class CompileError(Exception):
    """The expression is none, or not one that devices can be selected with."""


class EvaluationError(Exception):
    """The expression cannot be evaluated for these values."""


NO_SUCH_OVERLOAD = "no such overload"


class StepsExhausted(EvaluationError):
    """The expression takes too long."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")
