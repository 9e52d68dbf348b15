"""Devices that were found, as what is written into the status of claims.

Source: the end of Allocate, and createNodeSelector, in structured/internal/incubating/allocator_incubating.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kube_pyscheduler.devices.search import Choice, Search
from kube_pyscheduler.objects.resource import (
    AllocatedDevice,
    AllocationConfiguration,
    AllocationResult,
    DeviceAllocation,
    DeviceClaim,
)
from kube_pyscheduler.objects.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

FROM_CLASS, FROM_CLAIM = "FromClass", "FromClaim"


def allocation_of(
    number: int,
    claim: DeviceClaim,
    choices: Sequence[Choice],
    search: Search,
    node: str,
    new_share_id: Callable[[], str],
) -> AllocationResult:
    """The allocation of claim ``number`` of a search that found something on ``node``. ``new_share_id``: makes an id
    for each share of a device that others may share."""
    results = tuple([_result(choice, new_share_id) for choice in choices])
    config = (*_class_configuration(number, claim, search), *_claim_configuration(number, claim, search))
    return AllocationResult(DeviceAllocation(results, config), _node_selector(choices, node))


def _result(choice: Choice, new_share_id: Callable[[], str]) -> AllocatedDevice:
    variant, info = choice.variant, choice.device
    is_shared = choice.consumed is not None
    return AllocatedDevice(
        request=variant.full_name,
        driver=info.pool[0],
        pool=info.pool[1],
        device=info.name,
        admin_access=True if variant.admin else None,
        tolerations=variant.tolerations,
        binding_conditions=info.device.binding_conditions or (),
        binding_failure_conditions=info.device.binding_failure_conditions,
        share_id=new_share_id() if is_shared else None,
        consumed_capacity={name: str(amount) for name, amount in (choice.consumed or {}).items()},
    )


def _class_configuration(number: int, claim: DeviceClaim, search: Search) -> list[AllocationConfiguration]:
    """What the classes of the requests say, once a class, for all its requests."""
    requests: dict[str, list[str]] = {}
    classes = {}
    for place in range(len(claim.requests)):
        variant = search.variant(number, place)
        classes[variant.device_class.name] = variant.device_class
        requests.setdefault(variant.device_class.name, []).append(variant.full_name)
    return [
        AllocationConfiguration(FROM_CLASS, tuple(requests[name]), config.opaque)
        for name, device_class in classes.items()
        for config in device_class.spec.config
    ]


def _claim_configuration(number: int, claim: DeviceClaim, search: Search) -> list[AllocationConfiguration]:
    """What the claim says of all its requests, and of those that were chosen."""
    found = []
    for config in claim.config:
        said = AllocationConfiguration(FROM_CLAIM, config.requests, config.opaque)
        if not config.requests:
            found.append(said)
            continue
        for place, request in enumerate(claim.requests):
            variant = search.variant(number, place)
            if request.name in config.requests or (variant.parent and variant.full_name in config.requests):
                found.append(said)
    return found


def _node_selector(choices: Sequence[Choice], node: str) -> NodeSelector | None:
    """The nodes from which all the devices can be reached; None for all."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for choice in choices:
        device, spec = choice.device.device, choice.device.slice.spec
        chooser = device if spec.per_device_node_selection else spec
        if chooser.node_name is not None or device.binds_to_node:
            only = NodeSelectorRequirement("metadata.name", "In", (node,))
            return NodeSelector((NodeSelectorTerm(match_fields=(only,)),))
        terms = chooser.node_selector.node_selector_terms if chooser.node_selector is not None else ()
        for term in terms[:1]:
            _add(fields, term.match_fields)
            _add(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(expressions), tuple(fields)),))


def _add(known: list[NodeSelectorRequirement], requirements: Sequence[NodeSelectorRequirement]) -> None:
    for requirement in requirements:
        if all(_meaning(requirement) != _meaning(other) for other in known):
            known.append(requirement)


def _meaning(requirement: NodeSelectorRequirement) -> tuple[str, str, frozenset[str]]:
    return requirement.key, requirement.operator, frozenset(requirement.values)
