"""What selectors look at."""

from __future__ import annotations

import pytest

from kube_pyscheduler.cel.selector import Selector, compiled

MODEL = ("attributes", "gpu.example.com", "model")
INDEX = ("attributes", "gpu.example.com", "index")
MEMORY = ("capacity", "gpu.example.com", "memory")


@pytest.mark.parametrize(
    ("expression", "paths"),
    [
        ("device.driver == 'a' && !device.allowMultipleAllocations", set()),
        ("device.attributes['gpu.example.com'].model == 'a'", {MODEL}),
        ("device.attributes['gpu.example.com']['model'] == 'a'", {MODEL}),
        ("device.attributes['gpu.example.com'].?model.orValue('') == 'a'", {MODEL}),
        ("device.attributes[?'gpu.example.com'].?model.orValue('') == 'a'", {MODEL}),
        ("has(device.attributes['gpu.example.com'].model)", {MODEL}),
        ("'model' in device.attributes['gpu.example.com']", {MODEL}),
        ("device.capacity['gpu.example.com'].memory.compareTo(quantity('1')) > 0", {MEMORY}),
        ("cel.bind(a, device.attributes['gpu.example.com'], a.model == 'a' && a.index == 1)", {MODEL, INDEX}),
        ("[1, 2].exists(i, i == device.attributes['gpu.example.com'].index)", {INDEX}),
        ("{'a': device.attributes['gpu.example.com'].index} != {}", {INDEX}),
        ("true ? device.attributes['gpu.example.com'].model == 'a' : false", {MODEL}),
    ],
)
def test_what_is_looked_up_by_name(expression: str, paths: set[tuple[str, str, str]]) -> None:
    known = compiled(expression)
    assert isinstance(known, Selector)
    assert not known.reads.everything
    assert known.reads.paths == paths


@pytest.mark.parametrize(
    "expression",
    [
        "device.attributes.exists(domain, domain == 'x')",
        "device.attributes['gpu.example.com'].all(k, v, v != '')",
        "device.attributes[device.driver].model == 'a'",
        "device.attributes['gpu.example.com'][device.driver] == 'a'",
        "size(device.capacity) == 0",
        "cel.bind(d, device, d.driver == 'a')",
        "cel.bind(a, device.attributes, a['gpu.example.com'].model == 'a')",
        "cel.bind(a, device.attributes['gpu.example.com'], [1].exists(a, a == 1) && a.size() == 1)",
        "'gpu.example.com' in device.attributes",
    ],
)
def test_what_is_looked_at_as_a_whole(expression: str) -> None:
    known = compiled(expression)
    assert isinstance(known, Selector)
    assert known.reads.everything
