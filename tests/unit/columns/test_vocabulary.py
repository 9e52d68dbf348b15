from __future__ import annotations

import numpy as np
import pytest

from kube_pyscheduler.columns.vocabulary import ABSENT, Membership, Vocabulary


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), [False, False, False, False]),
        (("b",), [False, True, False, False]),
        (("unknown",), [False, False, False, False]),
        (("a", "c", "unknown"), [True, False, True, False]),
        (("a", "a"), [True, False, False, False]),
    ],
)
def test_membership(values: tuple[str, ...], expected: list[bool]) -> None:
    vocabulary: Vocabulary[str] = Vocabulary()
    ids = np.array([vocabulary.intern(value) for value in "abc"] + [ABSENT], dtype=np.int32)
    assert Membership(vocabulary, values).take(ids).tolist() == expected


def test_membership_follows_its_vocabulary() -> None:
    vocabulary: Vocabulary[str] = Vocabulary()
    membership = Membership(vocabulary, ["late", "later"])
    assert membership.take(np.array([ABSENT], dtype=np.int32)).tolist() == [False]
    late = vocabulary.intern("late")
    assert membership.take(np.array([late, ABSENT], dtype=np.int32)).tolist() == [True, False]
    later = vocabulary.intern("later")
    other = vocabulary.intern("other")
    assert membership.take(np.array([late, later, other, ABSENT], dtype=np.int32)).tolist() == [
        True,
        True,
        False,
        False,
    ]
