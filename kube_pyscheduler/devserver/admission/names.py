"""Rules for names, labels and other identifiers.

Source: staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go.
"""

from __future__ import annotations

import re
from functools import lru_cache

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
DNS_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
QUALIFIED_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation "
    "is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


@lru_cache(maxsize=4096)
def label_name(name: str) -> str:
    """What is wrong with a DNS-1123 label, or ""."""
    if len(name) > 63:
        return _too_long(63)
    return "" if _LABEL.fullmatch(name) else LABEL_RULE


@lru_cache(maxsize=4096)
def subdomain(name: str) -> str:
    """What is wrong with a DNS-1123 subdomain, or ""."""
    if len(name) > 253:
        return _too_long(253)
    return "" if _SUBDOMAIN.fullmatch(name) else SUBDOMAIN_RULE


def dns_1035(name: str) -> str:
    """What is wrong with a DNS-1035 label (Service names), or ""."""
    if len(name) > 63:
        return _too_long(63)
    return "" if _DNS_1035.fullmatch(name) else DNS_1035_RULE


def path_segment(name: str) -> str:
    """What is wrong with a name that only has to fit into a path (RBAC objects, CSI nodes…), or ""."""
    if name in (".", ".."):
        return f"may not be '{name}'"
    for char in "/%":
        if char in name:
            return f"may not contain '{char}'"
    return ""


@lru_cache(maxsize=4096)
def qualified(key: str) -> str:
    """What is wrong with a label key or resource name such as "example.com/gpu", or ""."""
    prefix, slash, name = key.rpartition("/")
    if slash:
        if not prefix:
            return "prefix part must be non-empty"
        if why := subdomain(prefix):
            return f"prefix part {why}"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return f"name part {_too_long(63)}"
    return "" if _QUALIFIED.fullmatch(name) else QUALIFIED_RULE


@lru_cache(maxsize=4096)
def label_value(value: str) -> str:
    """What is wrong with a label's value, or ""."""
    if len(value) > 63:
        return _too_long(63)
    return "" if _LABEL_VALUE.fullmatch(value) else VALUE_RULE
