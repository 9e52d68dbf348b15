"""From encoded objects to what the store shall hold, so that one malformed object harms no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import msgspec

from kube_pyscheduler.informers.store import Identity, Store
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.objects.decode import NOT_JSON, DecodeError, key_of
from kube_pyscheduler.objects.kinds import Kind
from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.objects.pod import Pod

T = TypeVar("T", bound=Object)
log = Log(__name__)

SalvageRule = Callable[[Any, Any], bool]
"""``(good, readable) -> bool``: whether what is readable of an object is to be used, given its last good version if we
have one. Where it says no, the last good version stays, or the object is left out."""

_METADATA: Final = msgspec.json.Decoder(Object)


class Reader(Generic[T]):
    """Reads the objects of one kind. ``malformed`` is called for every one that does not decode."""

    def __init__(
        self, kind: Kind[T], store: Store[T], *, salvage: SalvageRule | None, malformed: Callable[[], None]
    ) -> None:
        self._kind = kind
        self._store = store
        self._salvage = salvage
        self._malformed = malformed
        self._salvaged: dict[str, T] = {}
        """What the store holds that is not a good version."""

    def read(self, raw: msgspec.Raw) -> T | Identity:
        """The object to store; only its identity where its last good version (if any) is to stay."""
        try:
            obj: T = self._kind.decoder.decode(raw)
        except DecodeError as error:
            return self._unreadable(raw, error)
        if self._salvaged:
            self._salvaged.pop(obj.key, None)
        return obj

    def _unreadable(self, raw: msgspec.Raw, error: DecodeError) -> T | Identity:
        self._malformed()
        identity = identify(raw)
        readable = self._readable(raw)
        fields = {"kind": self._kind.name, "object": error.key, "problem": error.problem}
        if readable is None:
            log.error("Malformed object skipped", **fields)
            return identity
        log.error("Malformed object used as far as it is readable", **fields)
        self._salvaged[readable.key] = readable
        return readable

    def _readable(self, raw: msgspec.Raw) -> T | None:
        if self._salvage is None:
            return None
        try:
            readable: T | None = self._kind.decoder.salvage(raw)
        except DecodeError:
            return None
        if readable is None:
            return None
        held = self._store.get(readable.key)
        if held is not None and (
            held.metadata.uid != readable.metadata.uid or self._salvaged.get(readable.key) is held
        ):
            held = None
        return readable if self._salvage(held, readable) else None


def identify(raw: msgspec.Raw) -> Identity:
    """The identity of an object, also of one that does not decode."""
    try:
        obj = _METADATA.decode(raw)
        meta = obj.metadata
        return Identity(obj.key, meta.uid, meta.resource_version)
    except NOT_JSON:
        pass
    try:
        value = msgspec.json.decode(raw)
    except NOT_JSON:
        return Identity("", "", "")
    metadata = value.get("metadata") if isinstance(value, dict) else None
    fields = metadata if isinstance(metadata, dict) else {}
    uid, version = (text if isinstance(text := fields.get(name), str) else "" for name in ("uid", "resourceVersion"))
    return Identity(key_of(value), uid, version)


def stays_on_its_node(good: Pod | None, readable: Pod) -> bool:
    """The salvage rule of pods: a bound pod uses its node even if not all of it can be read, so what is readable is
    used, unless a good version of it on that node is known."""
    node = readable.spec.node_name
    return node != "" and (good is None or good.spec.node_name != node)
