"""Reading bodies into the shape of their kind: JSON, quantities, protobuf."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest

from kube_pyscheduler.devserver.errors import StatusError
from kube_pyscheduler.devserver.schema import protobuf
from kube_pyscheduler.devserver.schema.normalise import read_object
from kube_pyscheduler.devserver.schema.quantities import canonical
from kube_pyscheduler.devserver.schema.types import type_of


def read(obj: dict[str, Any], kind: str = "Pod", *, strict: bool = False) -> tuple[dict[str, Any], list[str]]:
    found = type_of("", "v1", kind)
    assert found is not None
    return read_object(obj, found, kind, "v1", strict=strict)


def test_nulls_empty_maps_and_unknown_fields_are_dropped() -> None:
    clean, messages = read(
        {
            "metadata": {"name": "a", "labels": {}, "annotations": None},
            "spec": {"nodeSelector": {}, "tolerations": [], "foo": 1, "volumes": [{"name": "v", "emptyDir": {}}]},
        }
    )
    assert clean == {"metadata": {"name": "a"}, "spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    assert messages == ['unknown field "spec.foo"']


def test_null_in_a_map_is_the_zero_value() -> None:
    requests = {"requests": {"cpu": None, "memory": "1Gi"}}
    clean, _ = read({"spec": {"nodeSelector": {"a": None}, "containers": [{"name": "c", "resources": requests}]}})
    assert clean["spec"]["nodeSelector"] == {"a": ""}
    assert clean["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "0", "memory": "1Gi"}


def test_unknown_fields_are_refused_when_strict() -> None:
    with pytest.raises(StatusError) as refused:
        read({"spec": {"containers": [{"nam": "a"}]}}, strict=True)
    assert refused.value.code == 400
    assert 'strict decoding error: unknown field "spec.containers[0].nam"' in refused.value.message


@pytest.mark.parametrize(
    "spec",
    [
        {"priority": "high"},
        {"containers": {}},
        {"containers": ["a"]},
        {"nodeSelector": {"a": 1}},
        {"hostNetwork": "true"},
        {"nodeName": 7},
        {"priority": True},
        {"containers": [{"resources": {"requests": {"cpu": "lots"}}}]},
        {"containers": [{"resources": {"requests": {"cpu": ["1"]}}}]},
        {"affinity": []},
    ],
)
def test_wrong_types_are_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(StatusError) as refused:
        read({"spec": spec})
    assert refused.value.code == 400
    assert 'Pod in version "v1" cannot be handled as a Pod' in refused.value.message


def test_numbers_are_read_as_quantities_and_whole_floats_as_integers() -> None:
    clean, _ = read({"spec": {"priority": 5.0, "overhead": {"cpu": 1, "memory": 0.5}}})
    assert clean["spec"] == {"priority": 5, "overhead": {"cpu": "1", "memory": "500m"}}


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("1500", "1500"),
        ("1000000", "1M"),
        ("1e3", "1e3"),
        ("12e6", "12e6"),
        ("1Ki", "1Ki"),
        ("512", "512"),
        ("0", "0"),
        ("-1Gi", "-1Gi"),
        ("1.5Gi", "1536Mi"),
        ("100u", "1m"),
        ("0.1Ki", "102400m"),
    ],
)
def test_quantities_are_stored_in_canonical_form(written: str, stored: str) -> None:
    assert canonical(written) == stored


# -- protobuf: a tiny encoder, so that the bytes are readable here --------------------------------------------------


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


def test_protobuf_reads_strings_maps_lists_embedded_structs_and_special_types() -> None:
    metadata = field(1, "p") + field(2, "") + field(11, field(1, "a") + field(2, "1")) + field(8, b"")
    limits = field(1, "cpu") + field(2, field(1, "500m"))
    port = field(2, 0) + field(3, 80) + field(4, "TCP")
    probe = field(1, field(2, field(1, "/x") + field(2, field(1, 1) + field(2, 0) + field(3, "http")))) + field(2, 7)
    container = field(1, "c") + field(2, "nginx") + field(6, port) + field(8, field(1, limits)) + field(10, probe)
    volume = field(1, "v") + field(2, field(6, field(1, "s")))
    spec = field(1, volume) + field(2, container) + field(4, 0) + field(25, -5)
    pod = protobuf.decode(envelope("v1", "Pod", field(1, metadata) + field(2, spec) + field(3, b"")))
    assert pod == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "p", "labels": {"a": "1"}},
        "spec": {
            "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
            "containers": [
                {
                    "name": "c",
                    "image": "nginx",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "resources": {"limits": {"cpu": "500m"}},
                    "livenessProbe": {"httpGet": {"path": "/x", "port": "http"}, "initialDelaySeconds": 7},
                }
            ],
            "terminationGracePeriodSeconds": 0,
            "priority": -5,
        },
        "status": {},
    }


def test_protobuf_reads_times_bytes_and_wrapped_lists() -> None:
    secret = protobuf.decode(envelope("v1", "Secret", field(2, field(1, "k") + field(2, b"\x00\xff"))))
    assert secret["data"] == {"k": base64.b64encode(b"\x00\xff").decode()}
    spec = field(1, "me") + field(2, 15) + field(4, field(1, 60) + field(2, 5000))
    lease = protobuf.decode(envelope("coordination.k8s.io/v1", "Lease", field(2, spec)))
    assert lease["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "renewTime": "1970-01-01T00:01:00.000005Z",
    }
    extra = field(1, "scopes") + field(2, field(1, "a") + field(1, "b"))
    review = protobuf.decode(
        envelope("authorization.k8s.io/v1", "SubjectAccessReview", field(2, field(3, "u") + field(5, extra)))
    )
    assert review["spec"] == {"user": "u", "extra": {"scopes": ["a", "b"]}}


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"k8s\x00",
        b"k8s\x00\xff\xff",
        envelope("v1", "Nothing", b""),
        envelope("v1", "Pod", field(1, field(1, "p"))[:-1]),
        envelope("v1", "Pod", field(1, 5)),
        envelope("v1", "Pod", field(2, field(2, field(1, b"\xff")))),
        envelope("v1", "Pod", struct.pack("<B", 2 << 3 | 7)),
    ],
)
def test_damaged_protobuf_is_refused(body: bytes) -> None:
    with pytest.raises(protobuf.ProtobufError):
        protobuf.decode(body)
