"""The functions that Kubernetes adds to CEL, with their types and how they are computed.

What is declared here is what the checker knows. Not declared, and so refused when an expression is compiled: times and
durations, ``format``, URLs, IP addresses and CIDRs, formats of names, authorisation.
Source: baseOpts in apiserver/pkg/cel/environment/base.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from kube_pyscheduler.cel import kubernetes, lists, regex, text
from kube_pyscheduler.cel.values import NONE, Optional, UInt, type_of

Kind = tuple[str, tuple["Kind", ...]]
"""A type: its name and its parameters. Names of one capital letter are parameters of the signature."""

_TOKENS = re.compile(r"[\w.@]+|[(),]")
_SHORT = {"Quantity": "kubernetes.Quantity", "Semver": "kubernetes.Semver", "optional": "optional_type"}


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function. ``target`` is the type it is a member of, None for global functions."""

    function: str
    id: str
    target: Kind | None
    args: tuple[Kind, ...]
    result: Kind
    compute: Callable[..., Any]

    def accepts(self, values: tuple[Any, ...]) -> bool:
        """Whether it takes these values, the target first."""
        kinds = self.args if self.target is None else (self.target, *self.args)
        return len(kinds) == len(values) and all(_is_of(value, kind) for value, kind in zip(values, kinds, strict=True))


def _is_of(value: Any, kind: Kind) -> bool:
    """Source: defaultIsAssignableRuntimeType in common/types/types.go of cel-go, which looks at first elements."""
    name, parameters = kind
    if name in ("dyn", "any") or (len(name) == 1 and name.isupper()):
        return True
    if type_of(value) != name:
        return False
    return name != "list" or not value or _is_of(value[0], parameters[0])


def _kind(tokens: Iterator[str], ahead: list[str]) -> Kind:
    name = next(tokens)
    ahead[:] = [next(tokens, "")]
    parameters = []
    if ahead[0] == "(":
        while ahead[0] != ")":
            parameters.append(_kind(tokens, ahead))
        ahead[:] = [next(tokens, "")]
    return _SHORT.get(name, name), tuple(parameters)


def parse_kind(words: str) -> Kind:
    """A type as signatures write it: ``list(A)``."""
    return _kind(iter(_TOKENS.findall(words)), [])


_SIGNATURE = re.compile(r"(?:([\w()]+)::)?([^\s(:]+)\((.*)\) -> ([\w()]+)")


def _overload(signature: str, name: str, compute: Callable[..., Any]) -> Overload:
    match = _SIGNATURE.fullmatch(signature)
    assert match is not None, signature
    target, function, args, result = match.groups()
    kinds = tuple([parse_kind(arg) for arg in args.split(", ")]) if args else ()
    return Overload(function, name, parse_kind(target) if target else None, kinds, parse_kind(result), compute)


ORDERED = ("int", "uint", "double", "bool", "string", "bytes")
SUMMED: tuple[tuple[str, Any], ...] = (("int", 0), ("uint", UInt(0)), ("double", 0.0))
_CROSS = tuple(permutations(("int", "uint", "double"), 2))
COMPARISONS = {"_<_": "less", "_<=_": "less_equals", "_>_": "greater", "_>=_": "greater_equals"}


def _sum_from(zero: Any) -> Callable[[Any], Any]:
    return lambda items: lists.total(zero, items)


def _all() -> Iterator[Overload]:
    for operator, name in COMPARISONS.items():
        for left, right in (*((kind, kind) for kind in ORDERED), *_CROSS):
            yield _overload(f"{operator}({left}, {right}) -> bool", f"{name}_{left}_{right}", _unused)
    for kind in ORDERED:
        yield _overload(f"list({kind})::isSorted() -> bool", f"list_{kind}_is_sorted_bool", lists.is_sorted)
        yield _overload(f"list({kind})::max() -> {kind}", f"list_{kind}_max_{kind}", lists.greatest)
        yield _overload(f"list({kind})::min() -> {kind}", f"list_{kind}_min_{kind}", lists.least)
    for kind, zero in SUMMED:
        yield _overload(f"list({kind})::sum() -> {kind}", f"list_{kind}_sum_{kind}", _sum_from(zero))
    for signature, name, compute in _TABLE:
        yield _overload(signature, name, compute)


def _unused(*_values: Any) -> Any:
    raise AssertionError("operators are not computed by overload")


def _nonzero(value: Any) -> Optional:
    return Optional(True, value) if value or type_of(value).startswith("kubernetes.") else NONE


_TABLE: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("quantity(string) -> Quantity", "string_to_quantity", kubernetes.quantity),
    ("isQuantity(string) -> bool", "is_quantity_string", kubernetes.is_quantity),
    ("sign(Quantity) -> int", "quantity_sign", kubernetes.sign),
    ("Quantity::isGreaterThan(Quantity) -> bool", "quantity_is_greater_than", kubernetes.is_greater_than),
    ("Quantity::isLessThan(Quantity) -> bool", "quantity_is_less_than", kubernetes.is_less_than),
    ("Quantity::compareTo(Quantity) -> int", "quantity_compare_to", kubernetes.compare_to),
    ("Quantity::asApproximateFloat() -> double", "quantity_get_float", lambda amount: amount.as_float()),
    ("Quantity::asInteger() -> int", "quantity_get_int", kubernetes.as_integer),
    ("Quantity::isInteger() -> bool", "quantity_is_integer", kubernetes.is_integer),
    ("Quantity::add(Quantity) -> Quantity", "quantity_add", kubernetes.add),
    ("Quantity::add(int) -> Quantity", "quantity_add_int", kubernetes.add),
    ("Quantity::sub(Quantity) -> Quantity", "quantity_sub", kubernetes.sub),
    ("Quantity::sub(int) -> Quantity", "quantity_sub_int", kubernetes.sub),
    ("semver(string) -> Semver", "string_to_semver", kubernetes.semver),
    ("semver(string, bool) -> Semver", "string_bool_to_semver", kubernetes.semver),
    ("isSemver(string) -> bool", "is_semver_string", kubernetes.is_semver),
    ("isSemver(string, bool) -> bool", "is_semver_string_bool", kubernetes.is_semver),
    ("Semver::isGreaterThan(Semver) -> bool", "semver_is_greater_than", kubernetes.is_greater_than),
    ("Semver::isLessThan(Semver) -> bool", "semver_is_less_than", kubernetes.is_less_than),
    ("Semver::compareTo(Semver) -> int", "semver_compare_to", kubernetes.compare_to),
    ("Semver::major() -> int", "semver_major", lambda version: version.major),
    ("Semver::minor() -> int", "semver_minor", lambda version: version.minor),
    ("Semver::patch() -> int", "semver_patch", lambda version: version.patch),
    ("string::find(string) -> string", "string_find_string", regex.find),
    ("string::findAll(string) -> list(string)", "string_find_all_string", regex.find_all),
    ("string::findAll(string, int) -> list(string)", "string_find_all_string_int", regex.find_all),
    ("list(A)::indexOf(A) -> int", "list_a_index_of_int", lists.index_of),
    ("list(A)::lastIndexOf(A) -> int", "list_a_last_index_of_int", lists.last_index_of),
    ("string::charAt(int) -> string", "string_char_at_int", text.char_at),
    ("string::indexOf(string) -> int", "string_index_of_string", text.index_of),
    ("string::indexOf(string, int) -> int", "string_index_of_string_int", text.index_of),
    ("string::lastIndexOf(string) -> int", "string_last_index_of_string", text.last_index_of),
    ("string::lastIndexOf(string, int) -> int", "string_last_index_of_string_int", text.last_index_of),
    ("string::lowerAscii() -> string", "string_lower_ascii", text.lower_ascii),
    ("string::upperAscii() -> string", "string_upper_ascii", text.upper_ascii),
    ("string::replace(string, string) -> string", "string_replace_string_string", text.replace),
    ("string::replace(string, string, int) -> string", "string_replace_string_string_int", text.replace),
    ("string::split(string) -> list(string)", "string_split_string", text.split),
    ("string::split(string, int) -> list(string)", "string_split_string_int", text.split),
    ("string::substring(int) -> string", "string_substring_int", text.substring),
    ("string::substring(int, int) -> string", "string_substring_int_int", text.substring),
    ("string::trim() -> string", "string_trim", text.trim),
    ("list(string)::join() -> string", "list_join", text.join),
    ("list(string)::join(string) -> string", "list_join_string", text.join),
    ("strings.quote(string) -> string", "strings_quote", text.quote),
)

OVERLOADS: dict[str, Overload] = {overload.id: overload for overload in _all()}
"""By id: what is declared to the checker."""

EXTENSIONS: dict[str, Callable[..., Any]] = {
    "list_slice": lists.slice_of,
    "list_flatten": lists.flatten,
    "list_flatten_int": lists.flatten,
    "list_range": lists.number_range,
    "list_reverse": lists.reverse,
    "list_distinct": lists.distinct,
    **{f"list_{kind}_sort": lists.sort for kind in ORDERED},
    **{f"list_{kind}_sortByAssociatedKeys": lists.sort_by for kind in ORDERED},
    "list_first": lists.first,
    "list_last": lists.last,
    "optional_of": lambda value: Optional(True, value),
    "optional_ofNonZeroValue": _nonzero,
    "optional_none": lambda: NONE,
    "optional_unwrap": lambda items: [item.value for item in items if item.present],
    "optional_unwrapOpt": lambda items: [item.value for item in items if item.present],
    "list_sets_contains_list": lists.includes_all,
    "list_sets_equivalent_list": lists.equivalent,
    "list_sets_intersects_list": lists.intersect,
}
"""By id: what the checker's own extensions declare."""
