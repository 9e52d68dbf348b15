"""What every object carries: names, owners, versions."""

from __future__ import annotations

from typing import Annotated

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""Integers as the API has them: what does not fit is unreadable, before it meets a column of such numbers."""


class Struct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Base of all decoded structs: immutable, camelCase on the wire, unknown fields dropped.

    ``gc=False``: the structs form trees, never cycles, so the collector need not walk them.
    """


class OwnerReference(Struct, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool = False


class ObjectMeta(Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if any."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


class Object(Struct, frozen=True):
    """An object with metadata."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def key(self) -> str:
        """``namespace/name``, or the name alone where there is no namespace."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name

    def check(self) -> None:
        """Raise ValueError where the object decodes but makes no sense. Called once, by the decoder."""


def is_older(version: str, than: str) -> bool:
    """Whether one resourceVersion is certainly older than another one of its kind. Only decimal ones can be compared.

    Source: KEP-5504, comparable resource versions.
    """
    return version.isdecimal() and than.isdecimal() and int(version) < int(than)
