"""Container images on nodes: who has which, and how large they are."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kube_pyscheduler.columns.arrays import RowIndex
from kube_pyscheduler.objects.node import ContainerImage


class ImageState:
    """One image name. ``size``: bytes, as the first node that had it said. ``generation`` grows with every change."""

    __slots__ = ("_index", "generation", "rows", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: set[int] = set()
        self.generation = 0
        self._index: RowIndex | None = None

    def add(self, row: int) -> None:
        self.rows.add(row)
        self._changed()

    def discard(self, row: int) -> None:
        self.rows.discard(row)
        self._changed()

    def row_index(self) -> RowIndex:
        """The rows that have the image."""
        if self._index is None:
            self._index = np.fromiter(self.rows, dtype=np.int64, count=len(self.rows))
        return self._index

    def _changed(self) -> None:
        self.generation += 1
        self._index = None


class Images:
    """Image states by name, as written by nodes (names are compared as they are).

    A state lives as long as some node has the image; its size is the one it was created with.
    Source: addNodeImageStates in pkg/scheduler/backend/cache/cache.go.
    """

    def __init__(self) -> None:
        self._states: dict[str, ImageState] = {}
        self._by_row: dict[int, tuple[ContainerImage, ...]] = {}

    def get(self, name: str) -> ImageState | None:
        return self._states.get(name)

    def set_row(self, row: int, images: tuple[ContainerImage, ...]) -> None:
        """Row ``row`` has these images now; () when its node is gone."""
        if self._by_row.get(row, ()) == images:
            return
        self._remove(row, self._by_row.pop(row, ()))
        if images:
            self._by_row[row] = images
            for name, size in self._named(images):
                state = self._states.get(name)
                if state is None:
                    state = self._states[name] = ImageState(size)
                state.add(row)

    def _remove(self, row: int, images: tuple[ContainerImage, ...]) -> None:
        for name, _size in self._named(images):
            state = self._states.get(name)
            if state is None:
                continue
            state.discard(row)
            if not state.rows:
                del self._states[name]

    @staticmethod
    def _named(images: tuple[ContainerImage, ...]) -> Iterable[tuple[str, int]]:
        for image in images:
            for name in image.names:
                yield name, image.size_bytes
