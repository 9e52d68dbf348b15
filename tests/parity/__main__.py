"""``python -m tests.parity DIR``: see README.md beside this file."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from tests.parity.compare import BROKEN
from tests.parity.corpus_files import read_cases
from tests.parity.runner import Result, Runner


def summary(results: Iterable[Result]) -> dict[str, Any]:
    """Counts in all and by family."""
    families: dict[str, dict[str, Any]] = {}
    for result in results:
        family = families.setdefault(result.case["family"], {"cases": 0, "exact": 0, "filter_exact": 0, "failing": []})
        family["cases"] += 1
        family["exact"] += not result.wrong
        family["filter_exact"] += result.filter_exact
        if result.wrong:
            family["failing"].append(result.case["id"])
    for family in families.values():
        family["failing"].sort()
    return {
        "cases": sum(family["cases"] for family in families.values()),
        "exact": sum(family["exact"] for family in families.values()),
        "families": dict(sorted(families.items())),
    }


def show(counts: dict[str, Any]) -> None:
    """The summary as a table."""
    table = Table("family", "cases", "exact", "filter exact", "failing")
    for name, family in counts["families"].items():
        failing = family["failing"]
        text = " ".join(failing[:6]) + (f" … {len(failing) - 6} more" if len(failing) > 6 else "")
        table.add_row(name, str(family["cases"]), str(family["exact"]), str(family["filter_exact"]), text)
    table.add_row("all", str(counts["cases"]), str(counts["exact"]), "", "")
    Console(width=140).print(table)


def show_case(result: Result) -> None:
    """Each key that differs, as expected and as we have it."""
    if BROKEN in result.got:
        click.echo(f"{result.case['id']}: {result.got[BROKEN]}")
        return
    for key in result.wrong:
        click.echo(f"{result.case['id']}: {key}")
        click.echo(f"  expected {json.dumps(result.case['expected'][key], sort_keys=True)}")
        click.echo(f"  got      {json.dumps(result.got.get(key), sort_keys=True)}")


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--family", help="Only this family.")
@click.option("--case", "case_id", help="Only this case, with all its differences.")
@click.option("--json", "as_json", is_flag=True, help="Counts as JSON instead of a table.")
@click.option("--dump", type=click.Path(dir_okay=False, path_type=Path), help="Write {id, got} of each case, by id.")
@click.option("--seed", default=0, show_default=True, help="Of the order in which objects arrive.")
@click.option("--shuffle", is_flag=True, help="Run the cases in an order drawn from the seed.")
def main(
    directory: Path,
    family: str | None,
    case_id: str | None,
    as_json: bool,
    dump: Path | None,
    seed: int,
    shuffle: bool,
) -> None:
    """Compare our verdicts on the cases in DIRECTORY with those of kube-scheduler; exits 0 if all are exact."""
    try:
        cases = list(read_cases(directory, family, case_id))
    except (OSError, ValueError, KeyError) as error:
        raise click.ClickException(f"cannot read the cases: {error}") from error
    if not cases:
        raise click.ClickException("no such case")
    if shuffle:
        random.Random(seed).shuffle(cases)
    results = list(Runner(seed).run(cases))
    if dump is not None:
        by_id = sorted(results, key=lambda result: str(result.case["id"]))
        lines = [json.dumps({"id": result.case["id"], "got": result.got}, sort_keys=True) for result in by_id]
        dump.write_text("\n".join(lines) + "\n", encoding="utf-8")
    counts = summary(results)
    if as_json:
        click.echo(json.dumps(counts))
    else:
        show(counts)
        if case_id is not None:
            for result in results:
                show_case(result)
    sys.exit(0 if counts["exact"] == counts["cases"] else 1)


if __name__ == "__main__":
    main()
