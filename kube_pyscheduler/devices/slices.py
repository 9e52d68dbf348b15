"""ResourceSlices as the search for devices sees them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from weakref import WeakValueDictionary

import msgspec

from kube_pyscheduler.cel.errors import EvaluationError
from kube_pyscheduler.cel.reads import Path
from kube_pyscheduler.cel.selector import Selector, Subject, subject_of
from kube_pyscheduler.objects.resource import Device, ResourceSlice

PoolId = tuple[str, str]
"""(driver, pool)."""

_encode = msgspec.json.Encoder(order="sorted").encode


class Column:
    """What the devices of a slice say, in order. There is one of them for equal values, compared by identity."""

    __slots__ = ("__weakref__",)


class Columns:
    """All columns in use."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[Hashable, Column] = WeakValueDictionary()

    def of(self, values: Hashable) -> Column:
        """The column with these values."""
        column = self._known.get(values)
        if column is None:
            column = self._known[values] = Column()
        return column


class DeviceInfo:
    """One device. ``pool``: the pool it belongs to."""

    __slots__ = ("_answers", "_subject", "device", "pool", "slice")

    def __init__(self, device: Device, source: SliceInfo) -> None:
        self.device = device
        self.slice = source
        self.pool = source.pool_id
        self._subject: Subject | None = None
        self._answers: dict[Selector, bool | EvaluationError] = {}

    @property
    def name(self) -> str:
        return self.device.name

    def __str__(self) -> str:
        return f"{self.pool[0]}/{self.pool[1]}/{self.device.name}"

    def is_selected(self, selector: Selector) -> bool:
        """Whether the selector matches; evaluated once. Raises EvaluationError."""
        answer = self._answers.get(selector)
        if answer is None:
            if self._subject is None:
                self._subject = subject_of(self.device, self.pool[0])
            try:
                answer = selector.matches(self._subject)
            except EvaluationError as error:
                answer = error
            self._answers[selector] = answer
        if isinstance(answer, EvaluationError):
            raise answer
        return answer


class SliceInfo:
    """One slice, with what its devices say in columns.

    Slices whose devices say the same about certain attributes share the columns of these, so selectors that read
    nothing else are asked about one of them only.
    """

    def __init__(self, source: ResourceSlice, columns: Columns) -> None:
        spec = source.spec
        self.name = source.name
        self.spec = spec
        self.pool_id: PoolId = (spec.driver, spec.pool.name)
        self.generation = spec.pool.generation
        self.count = spec.pool.resource_slice_count
        self.devices = tuple([DeviceInfo(device, self) for device in spec.devices])
        said = [
            (each.capacity, each.consumes_counters, each.taints, each.allow_multiple_allocations)
            for each in spec.devices
        ]
        self.traits = columns.of((spec.driver, _encode(said)))
        """Everything about the devices that matters besides their attributes."""
        self._all_columns = columns
        self._columns: dict[Path, Column] = {}

    @property
    def local_node(self) -> str:
        """The only node that may use the slice, "" where it is shared."""
        return "" if self.spec.shared_counters else self.spec.node_name or ""

    @cached_property
    def everything(self) -> Column:
        """All that selectors and constraints may read."""
        return self._all_columns.of(_encode([(device.attributes, device.capacity) for device in self.spec.devices]))

    def column(self, path: Path) -> Column:
        """One attribute or capacity."""
        column = self._columns.get(path)
        if column is None:
            kind, domain, identifier = path
            # Names without a domain are in the driver's; where both forms are there, both count.
            plain = identifier if domain == self.spec.driver else ""
            name = f"{domain}/{identifier}"
            said: Sequence[Mapping[str, object]] = [getattr(device, kind) for device in self.spec.devices]
            values = [each.get(name) for each in said]
            if plain:
                values += [each.get(plain) for each in said]
            column = self._columns[path] = self._all_columns.of((kind, *values))
        return column
