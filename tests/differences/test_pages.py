"""The pages say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kube_pyscheduler.config.policy_names import (
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    MANDATORY_PREDICATES,
    PREDICATES,
    PRIORITIES,
)
from kube_pyscheduler.plugins import IN_TREE

ROOT = Path(__file__).parents[2]
DIFFERENCES = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
POLICIES = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
ENTRIES = [entry for entry in re.split(r"\n(?=- |#|\*\*|\n)", DIFFERENCES) if entry.startswith("- ")]


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry[4:40] for entry in ENTRIES])
def test_every_difference_names_tests_that_there_are(entry: str) -> None:
    named = re.findall(r"`(tests/[^`]+)::(test_[^`]+)`", entry)
    assert named
    for file, test in named:
        assert re.search(rf"^(async )?def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_there_are_differences_of_both_kinds() -> None:
    assert len(ENTRIES) > 20
    assert re.findall("^## .*$", DIFFERENCES, re.MULTILINE) == [
        "## Deliberate differences",
        "## Same as v1.36, against its documentation",
    ]


def rows(heading: str) -> list[list[str]]:
    """Cells of the rows of the first table under a heading, without those of its head."""
    section = POLICIES.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith(("| ", "|-"))]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_table_of_predicates() -> None:
    found: dict[str, tuple[str, ...]] = {}
    defaults: dict[str, str] = {}
    for names, _versions, default, plugins, *_rest in rows("Predicates"):
        for name in names.split(", "):
            found[name] = tuple(plugins.replace("*", "").split(", "))
            defaults[name] = default
    assert found == PREDICATES
    assert list(found) == list(PREDICATES)
    for name in PREDICATES:
        mandatory, usual = name in MANDATORY_PREDICATES, name in DEFAULT_PREDICATES or name == "MaxCSIVolumeCount"
        assert defaults[name] == ("always" if mandatory else "yes" if usual else "")


def test_the_table_of_priorities() -> None:
    table = {
        name: (plugin.replace("*", ""), default) for name, _versions, default, plugin, *_rest in rows("Priorities")
    }
    assert {name: plugin for name, (plugin, _default) in table.items() if not name.startswith("any")} == PRIORITIES
    assert {name: int(default) for name, (_plugin, default) in table.items() if default} == DEFAULT_PRIORITIES


def test_classic_plugins_are_bold() -> None:
    bold = set(
        re.findall(r"\*\*(\w+)\*\*", "".join(cells[3] for t in ("Predicates", "Priorities") for cells in rows(t)))
    )
    classic = {
        name
        for name, make in IN_TREE.items()
        if type(make(None)).__module__.startswith(
            ("kube_pyscheduler.plugins.classic.", "kube_pyscheduler.plugins.node_resources.strategies")
        )
    }
    assert bold == classic
