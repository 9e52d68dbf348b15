from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kube_pyscheduler.demo.scenario import DEFAULT_FOLDER, ScenarioError, load_scenario


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DEFAULT_FOLDER, tmp_path / "demo"))


def test_the_files_of_the_checkout() -> None:
    scenario = load_scenario(DEFAULT_FOLDER)
    kinds = {obj["kind"] for _, objects in scenario.workloads for obj in objects}
    assert {"Deployment", "StatefulSet", "DaemonSet", "Job", "Pod"} <= kinds
    namespace = scenario.expectations.namespace
    created = {obj["metadata"]["name"]: obj for _, objects in scenario.workloads for obj in objects}
    assert created[namespace]["kind"] == "Namespace"
    assert scenario.expectations.waiting.keys() <= created.keys()
    assert len(scenario.expectations.separation) == 3


def test_every_pod_is_for_this_scheduler_and_lives_in_the_namespace() -> None:
    scenario = load_scenario(DEFAULT_FOLDER)
    for _, objects in scenario.workloads:
        for obj in objects:
            if obj["kind"] in ("Namespace", "PriorityClass"):
                continue
            assert obj["metadata"]["namespace"] == scenario.expectations.namespace
            spec = obj["spec"]["template"]["spec"] if "template" in obj["spec"] else obj["spec"]
            if "containers" in spec:
                assert spec["schedulerName"] == "kube-pyscheduler"


def test_a_folder_without_a_demo(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="does not hold a demo"):
        load_scenario(tmp_path)


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("workloads/10-shop.yaml", "kind: [", "10-shop.yaml"),
        ("workloads/10-shop.yaml", "just: text", "document 1 is not a Kubernetes object"),
        ("expectations.yaml", "waiting: {}", "namespace"),
        ("expectations.yaml", "{namespace: a, wating: {}}", "wating"),
        ("expectations.yaml", "", "expectations.yaml"),
    ],
)
def test_a_bad_file_is_named(folder: Path, file: str, text: str, problem: str) -> None:
    (folder / file).write_text(text)
    with pytest.raises(ScenarioError, match=problem):
        load_scenario(folder)


def test_missing_expectations_are_named(folder: Path) -> None:
    (folder / "expectations.yaml").unlink()
    with pytest.raises(ScenarioError, match="No such file"):
        load_scenario(folder)
