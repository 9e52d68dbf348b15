"""The canonical text of a quantity, which the server stores whatever the client wrote.

Source: CanonicalizeBytes in staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go.
"""

from __future__ import annotations

from functools import lru_cache

from kube_pyscheduler.objects.quantity import parse_milli

_BINARY = (("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))
_DECIMAL = (("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3))


@lru_cache(maxsize=16384)
def canonical(text: str | float) -> str:
    """The quantity in canonical form, rounded up to milli-units: "0.5" is "500m", "1024Mi" is "1Gi".

    Raises ``objects.quantity.QuantityError`` when it is not a quantity.
    """
    milli = parse_milli(text)
    units, fraction = divmod(milli, 1000)
    if fraction:
        return f"{milli}m"
    if units == 0:
        return "0"
    written = str(text)
    if written.endswith("i") and abs(units) >= 1024:
        for suffix, power in _BINARY:
            if units % (1 << power) == 0:
                return f"{units >> power}{suffix}"
        return str(units)
    if written[-1] not in "EPTGMk" and "e" in written.lower():
        exponent = 0
        while units % 1000 == 0:
            units //= 1000
            exponent += 3
        return f"{units}e{exponent}" if exponent else str(units)
    for suffix, power in _DECIMAL:
        if units % 10**power == 0:
            return f"{units // 10**power}{suffix}"
    return str(units)
