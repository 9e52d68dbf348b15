"""The chart, rendered and linted by the real Helm engine, and the manifests made from it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from helm_python import Chart, HelmValuesError
from helm_python.chart import lint

from deploy.render import CHART, MANIFEST, NAME, rendered
from kube_pyscheduler.config.load import load_config
from kube_pyscheduler.framework.profile import build_profiles
from kube_pyscheduler.plugins import IN_TREE


def objects(values: dict[str, Any] | None = None) -> dict[str, list[dict[str, Any]]]:
    """What the chart makes, by kind."""
    made: dict[str, list[dict[str, Any]]] = {}
    for path, text in Chart.load(CHART).render(values, name=NAME, namespace="scheduling").items():
        if path.endswith(".yaml"):
            for document in yaml.safe_load_all(text):
                if document:
                    made.setdefault(document["kind"], []).append(document)
    return made


def test_lint_finds_nothing() -> None:
    report = lint(CHART, strict=True, kube_version="v1.36.0")
    assert report["errors"] == []
    assert [message for message in report["messages"] if message["severity"] > 1] == []


def test_the_plain_manifest_is_the_chart() -> None:
    assert MANIFEST.read_text(encoding="utf-8") == rendered(), "run `make manifests`"


@pytest.mark.parametrize(
    "values",
    [
        {"replicaCount": "two"},
        {"leaderElection": {"leaseDuration": "soon"}},
        {"logging": {"format": "xml"}},
        {"unknown": 1},
        {"service": {"port": 0}},
    ],
)
def test_the_schema_refuses_wrong_values(values: dict[str, Any]) -> None:
    with pytest.raises(HelmValuesError):
        Chart.load(CHART).validate_schema(values)


@pytest.mark.parametrize(
    "values",
    [
        None,
        {"schedulerName": "other", "leaderElection": {"enabled": False}},
        {
            "profiles": [
                {
                    "schedulerName": "packing",
                    "pluginConfig": [
                        {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
                    ],
                }
            ]
        },
    ],
)
def test_the_configuration_it_writes_loads(values: dict[str, Any] | None) -> None:
    text = objects(values)["ConfigMap"][0]["data"]["config.yaml"]
    config = load_config(text)
    profiles = build_profiles(config.profiles, IN_TREE)
    expected = {"kube-pyscheduler"}
    if values:
        expected = {"packing"} if "profiles" in values else {"other"}
    assert set(profiles) == expected


def test_only_settings_that_are_not_read_again_restart_the_pods() -> None:
    def template(**values: Any) -> Any:
        return objects(values)["Deployment"][0]["spec"]["template"]

    assert template(schedulerName="other", profiles=[{"schedulerName": "a"}]) == template()
    assert template(leaderElection={"leaseDuration": "20s"}) != template()
    assert template(clientConnection={"qps": 7}) != template()


def test_probes_ask_the_https_port_and_the_pod_runs_without_privileges() -> None:
    template = objects()["Deployment"][0]["spec"]["template"]["spec"]
    container = template["containers"][0]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["scheme"] == "HTTPS"
        assert container[probe]["httpGet"]["port"] == "https"
    assert {"name": "https", "containerPort": 10259, "protocol": "TCP"} in container["ports"]
    assert template["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_bc_85_scrapers_are_sent_to_https_on_10259_alone() -> None:
    made = objects({"serviceMonitor": {"enabled": True}})
    assert [port["port"] for port in made["Service"][0]["spec"]["ports"]] == [10259]
    assert "--port=0" in made["Deployment"][0]["spec"]["template"]["spec"]["containers"][0]["args"]
    endpoint = made["ServiceMonitor"][0]["spec"]["endpoints"][0]
    assert (endpoint["port"], endpoint["scheme"]) == ("https", "https")


def test_a_single_replica_has_no_disruption_budget() -> None:
    assert "PodDisruptionBudget" in objects()
    assert "PodDisruptionBudget" not in objects({"replicaCount": 1})


def test_rights_are_never_wildcards() -> None:
    made = objects()
    for role in (*made["ClusterRole"], *made["Role"]):
        for rule in role["rules"]:
            assert "*" not in (*rule.get("apiGroups", ()), *rule.get("resources", ()), *rule["verbs"])
