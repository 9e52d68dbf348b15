import pytest

from kube_pyscheduler.kit.timestamps import rfc3339_micro


@pytest.mark.parametrize(
    ("wall", "expected"),
    [
        (0.0, "1970-01-01T00:00:00.000000Z"),
        (1_700_000_000.25, "2023-11-14T22:13:20.250000Z"),
        (1_699_999_999.999_999_9, "2023-11-14T22:13:20.000000Z"),
    ],
)
def test_there_are_always_six_digits(wall: float, expected: str) -> None:
    assert rfc3339_micro(wall) == expected
