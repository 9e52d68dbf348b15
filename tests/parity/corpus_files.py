"""Reading case files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Case = dict[str, Any]


def read_cases(directory: Path, family: str | None = None, case_id: str | None = None) -> Iterator[Case]:
    """The cases of all ``*.jsonl.gz`` files of a directory, in file order. Raises OSError, ValueError."""
    files = sorted(directory.glob("*.jsonl.gz"))
    if not files:
        raise FileNotFoundError(f"no *.jsonl.gz files in {directory}")
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                case = json.loads(line)
                if family is not None and case["family"] != family:
                    continue
                if case_id is not None and case["id"] != case_id:
                    continue
                yield case
