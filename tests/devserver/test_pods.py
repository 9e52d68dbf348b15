"""What the server makes of pods: defaults, admission, binding, and what may change."""

from __future__ import annotations

from typing import Any

import pytest

from tests.devserver.api import NODES, PODS, STRATEGIC, Api, Object, binding, make_pod

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


async def make_node(api: Api, name: str = "n", **labels: str) -> None:
    await api.created(NODES, {"metadata": {"name": name, "labels": labels}})


async def refused(api: Api, pod: Object, code: int) -> str:
    answer = await api.post(PODS, pod)
    assert answer.status == code, answer.body
    return str(answer.body["message"])


async def test_defaults(api: Api) -> None:
    pod = await api.created(PODS, make_pod(containers=[{"name": "c", "image": "x", "ports": [{"containerPort": 80}]}]))
    spec = pod["spec"]
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["serviceAccountName"] == "default"
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    [container] = spec["containers"]
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert container["imagePullPolicy"] == "Always"
    tolerated = [(t["key"], t["effect"], t["tolerationSeconds"]) for t in spec["tolerations"]]
    assert tolerated == [
        ("node.kubernetes.io/not-ready", "NoExecute", 300),
        ("node.kubernetes.io/unreachable", "NoExecute", 300),
    ]
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert pod["metadata"]["generation"] == 1


async def test_a_general_toleration_makes_the_default_ones_needless(api: Api) -> None:
    pod = await api.created(PODS, make_pod(tolerations=[{"operator": "Exists"}]))
    assert pod["spec"]["tolerations"] == [{"operator": "Exists"}]


@pytest.mark.parametrize(
    ("resources", "qos"),
    [
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}, "Burstable"),
        ({"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}, "BestEffort"),
        ({}, "BestEffort"),
    ],
)
async def test_requests_follow_limits_and_make_the_qos_class(api: Api, resources: Object, qos: str) -> None:
    pod = await api.created(PODS, make_pod(containers=[{"name": "c", "image": "x:1", "resources": resources}]))
    given = pod["spec"]["containers"][0]["resources"]
    assert given.get("requests") == {**resources.get("limits", {}), **resources.get("requests", {})} or not resources
    assert pod["status"]["qosClass"] == qos


async def test_pod_level_requests_follow_the_containers_then_the_limits(api: Api) -> None:
    sidecar = {"name": "s", "image": "x:1", "restartPolicy": "Always", "resources": {"requests": {"cpu": "200m"}}}
    first = {"name": "i", "image": "x:1", "resources": {"requests": {"cpu": "3"}}}
    container = {"name": "c", "image": "x:1", "resources": {"requests": {"cpu": "500m"}}}
    pod = await api.created(
        PODS,
        make_pod(
            initContainers=[sidecar, first], containers=[container], resources={"limits": {"cpu": "4", "memory": "1Gi"}}
        ),
    )
    assert pod["spec"]["resources"]["requests"] == {"cpu": "3200m", "memory": "1Gi"}


async def test_host_network_makes_host_ports(api: Api) -> None:
    container = {"name": "c", "image": "x:1", "ports": [{"containerPort": 80}]}
    pod = await api.created(PODS, make_pod(hostNetwork=True, containers=[container]))
    assert pod["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


async def test_priority_comes_from_the_class(api: Api) -> None:
    await api.created(CLASSES, {"metadata": {"name": "high"}, "value": 100, "preemptionPolicy": "Never"})
    high = await api.created(PODS, make_pod("a", priorityClassName="high"))
    assert (high["spec"]["priority"], high["spec"]["preemptionPolicy"]) == (100, "Never")
    system = await api.created(PODS, make_pod("b", priorityClassName="system-node-critical"))
    assert system["spec"]["priority"] == 2_000_001_000
    assert "no PriorityClass with name x was found" in await refused(api, make_pod("c", priorityClassName="x"), 403)
    assert "must not be provided" in await refused(api, make_pod("d", priority=7), 403)
    await api.created(CLASSES, {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True})
    usual = await api.created(PODS, make_pod("e"))
    assert (usual["spec"]["priorityClassName"], usual["spec"]["priority"]) == ("usual", 5)
    second = await api.post(CLASSES, {"metadata": {"name": "other"}, "value": 6, "globalDefault": True})
    assert second.status == 403
    assert (await api.patch(f"{CLASSES}/high", {"value": 101})).status == 422
    too_high = await api.post(CLASSES, {"metadata": {"name": "higher"}, "value": 1_000_000_001})
    assert too_high.status == 422
    assert (await api.post(CLASSES, {"metadata": {"name": "system-mine"}, "value": 1})).status == 422


async def test_label_keys_become_part_of_the_selectors(api: Api) -> None:
    term = {
        "labelSelector": {"matchLabels": {"app": "a"}},
        "topologyKey": ZONE,
        "matchLabelKeys": ["hash", "absent"],
        "mismatchLabelKeys": ["tenant"],
    }
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
        "matchLabelKeys": ["hash"],
    }
    pod = make_pod(
        affinity={
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]
            },
        },
        topologySpreadConstraints=[constraint],
    )
    pod["metadata"]["labels"] = {"hash": "1", "tenant": "t"}
    spec = (await api.created(PODS, pod))["spec"]
    merged = [
        {"key": "hash", "operator": "In", "values": ["1"]},
        {"key": "tenant", "operator": "NotIn", "values": ["t"]},
    ]
    [required] = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    [preferred] = spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert required["labelSelector"] == {"matchLabels": {"app": "a"}, "matchExpressions": merged}
    assert preferred["podAffinityTerm"]["labelSelector"]["matchExpressions"] == merged
    assert spec["topologySpreadConstraints"][0]["labelSelector"] == {"matchExpressions": merged[:1]}


async def test_limit_ranges_and_runtime_classes(api: Api) -> None:
    limits = [{"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}]
    await api.created("/api/v1/namespaces/default/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits}})
    runtime = {
        "metadata": {"name": "vm"},
        "handler": "vm",
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"vm": "1"}, "tolerations": [{"key": "vm", "operator": "Exists"}]},
    }
    await api.created("/apis/node.k8s.io/v1/runtimeclasses", runtime)
    spec = (await api.created(PODS, make_pod(runtimeClassName="vm")))["spec"]
    assert spec["containers"][0]["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"vm": "1"}
    assert {"key": "vm", "operator": "Exists"} in spec["tolerations"]
    assert "not found" in await refused(api, make_pod("b", runtimeClassName="x"), 403)


async def test_a_missing_service_account_is_refused(api: Api) -> None:
    assert "error looking up service account" in await refused(api, make_pod(serviceAccountName="x"), 403)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"containers": []}, "spec.containers"),
        ({"containers": [{"name": "c"}]}, "spec.containers[0].image"),
        ({"containers": [{"name": "C", "image": "x"}]}, "spec.containers[0].name"),
        ({"containers": [{"name": "c", "image": "x"}] * 2}, "spec.containers[1].name"),
        ({"restartPolicy": "Sometimes"}, "spec.restartPolicy"),
        ({"nodeSelector": {"a b": "c"}}, "spec.nodeSelector"),
        ({"tolerations": [{"operator": "Equal", "value": "x"}]}, "spec.tolerations[0].operator"),
        ({"tolerations": [{"key": "a", "operator": "Exists", "effect": "No"}]}, "spec.tolerations[0].effect"),
        ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, "spec.schedulingGates[1].name"),
        ({"schedulingGates": [{"name": "a"}], "nodeName": "n"}, "spec.nodeName"),
        (
            {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
            "spec.topologySpreadConstraints[0].maxSkew",
        ),
        (
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ""}]}}},
            "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
        ),
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]
                        }
                    }
                }
            },
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
            ".matchExpressions[0].values",
        ),
        (
            {"containers": [{"name": "c", "image": "x", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]},
            "spec.containers[0].volumeMounts[0].name",
        ),
        (
            {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"example.com/gpu": "1"}}}]},
            "spec.containers[0].resources.limits",
        ),
        (
            {
                "containers": [
                    {"name": "c", "image": "x", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}
                ]
            },
            "spec.containers[0].resources.requests",
        ),
    ],
)
async def test_invalid_specs(api: Api, spec: dict[str, Any], field: str) -> None:
    answer = await api.post(PODS, make_pod(**spec))
    assert answer.status == 422, answer.body
    assert answer.body["details"]["causes"][0]["field"] == field


async def test_binding_gives_the_node_its_labels_and_the_condition(api: Api) -> None:
    await make_node(api, "n", **{ZONE: "z", REGION: "r", "other": "x"})
    pod = await api.created(PODS, make_pod())
    await api.patch(f"{PODS}/a/status", {"status": {"nominatedNodeName": "m"}})
    answer = await api.post(f"{PODS}/a/binding", binding("a", "n", uid=pod["metadata"]["uid"]))
    assert answer.status == 201
    assert answer.body == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    bound = (await api.get(f"{PODS}/a")).body
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["labels"] == {ZONE: "z", REGION: "r"}
    assert bound["metadata"]["generation"] == 1
    assert "nominatedNodeName" not in bound["status"]
    [condition] = bound["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    assert condition["lastTransitionTime"]


async def test_binding_replaces_the_condition_of_an_earlier_refusal(api: Api) -> None:
    await api.created(PODS, make_pod())
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}
    await api.patch(f"{PODS}/a/status", {"status": {"conditions": [unschedulable]}}, STRATEGIC)
    await api.post(f"{PODS}/a/binding", binding("a", "nowhere"))
    [condition] = (await api.get(f"{PODS}/a")).body["status"]["conditions"]
    assert condition["status"] == "True"
    assert "reason" not in condition


async def test_a_pod_that_cannot_be_bound(api: Api) -> None:
    absent = await api.post(f"{PODS}/x/binding", binding("x", "n"))
    assert (absent.status, absent.body["reason"]) == (404, "NotFound")
    await api.created(PODS, make_pod())
    other = await api.post(f"{PODS}/a/binding", binding("a", "n", uid="other"))
    assert (other.status, other.body["reason"]) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: other" in other.body["message"]
    stale = await api.post(f"{PODS}/a/binding", binding("a", "n", resourceVersion="1"))
    assert stale.status == 409
    assert (await api.post(f"{PODS}/a/binding", binding("b", "n"))).status == 400
    assert (await api.post(f"{PODS}/a/binding", {**binding("a", ""), "target": {}})).status == 500
    assert (await api.post(f"{PODS}/a/binding", binding("a", "n"))).status == 201
    again = await api.post(f"{PODS}/a/binding", binding("a", "m"))
    assert again.status == 409
    assert again.body["message"] == (
        'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n"'
    )
    await api.delete(f"{PODS}/a")
    late = await api.post(f"{PODS}/a/binding", binding("a", "m"))
    assert "pod a is being deleted, cannot be assigned to a host" in late.body["message"]


async def test_a_gated_pod_waits(api: Api) -> None:
    pod = await api.created(PODS, make_pod(schedulingGates=[{"name": "x"}, {"name": "y"}]))
    [condition] = pod["status"]["conditions"]
    assert (condition["reason"], condition["status"]) == ("SchedulingGated", "False")
    gated = await api.post(f"{PODS}/a/binding", binding("a", "n"))
    assert (gated.status, gated.body["reason"]) == (409, "Conflict")
    assert "pod a has non-empty .spec.schedulingGates" in gated.body["message"]
    added = await api.patch(f"{PODS}/a", {"spec": {"schedulingGates": [{"name": "z"}]}})
    assert added.status == 422
    narrowed = await api.patch(f"{PODS}/a", {"spec": {"nodeSelector": {"a": "b"}}})
    assert narrowed.status == 200
    assert (await api.patch(f"{PODS}/a", {"spec": {"nodeSelector": {"a": "c"}}})).status == 422
    opened = await api.patch(f"{PODS}/a", {"spec": {"schedulingGates": []}})
    assert "schedulingGates" not in opened.body["spec"]
    assert opened.body["metadata"]["generation"] == 3
    assert (await api.patch(f"{PODS}/a", {"spec": {"nodeSelector": {"x": "y"}}})).status == 422


async def test_the_older_path_of_bindings(api: Api) -> None:
    await api.created(PODS, make_pod())
    assert (await api.post("/api/v1/namespaces/default/bindings", binding("a", "n"))).status == 201
    assert (await api.get(f"{PODS}/a")).body["spec"]["nodeName"] == "n"


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ({"containers": [{"name": "c", "image": "nginx:2"}]}, True),
        ({"activeDeadlineSeconds": 5}, True),
        ({"nodeName": "n"}, False),
        ({"priority": 7}, False),
        ({"schedulerName": "x"}, False),
        ({"nodeSelector": {"a": "b"}}, False),
    ],
)
async def test_what_may_change_in_a_spec(api: Api, change: Object, allowed: bool) -> None:
    await api.created(PODS, make_pod())
    answer = await api.patch(f"{PODS}/a", {"spec": change}, STRATEGIC)
    assert answer.status == (200 if allowed else 422), answer.body


async def test_tolerations_may_only_be_added(api: Api) -> None:
    pod = await api.created(PODS, make_pod())
    more = [*pod["spec"]["tolerations"], {"key": "x", "operator": "Exists"}]
    added = await api.patch(f"{PODS}/a", {"spec": {"tolerations": more}})
    assert added.body["spec"]["tolerations"] == more
    assert (await api.patch(f"{PODS}/a", {"spec": {"tolerations": pod["spec"]["tolerations"]}})).status == 422


async def test_resizing(api: Api) -> None:
    container = {"name": "c", "image": "x:1", "resources": {"requests": {"cpu": "1"}}}
    await api.created(PODS, make_pod(containers=[container]))
    bigger = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}, "image": "y:1"}]}}
    assert (await api.patch(f"{PODS}/a", bigger, STRATEGIC)).status == 422
    resized = await api.patch(f"{PODS}/a/resize", bigger, STRATEGIC)
    [after] = resized.body["spec"]["containers"]
    assert (after["resources"]["requests"], after["image"]) == ({"cpu": "2"}, "x:1")
    assert resized.body["metadata"]["generation"] == 2
    other = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"ephemeral-storage": "1Gi"}}}]}}
    assert (await api.patch(f"{PODS}/a/resize", other, STRATEGIC)).status == 422
    guaranteed = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"memory": "1Gi"}}
    class_change = {"spec": {"containers": [{"name": "c", "resources": guaranteed}]}}
    assert (await api.patch(f"{PODS}/a/resize", class_change, STRATEGIC)).status == 422


async def test_status_keeps_what_the_kubelet_may_not_touch(api: Api) -> None:
    await api.created(PODS, make_pod())
    status = {"status": {"phase": "Running", "qosClass": None}, "spec": {"nodeName": "x"}}
    answer = await api.patch(f"{PODS}/a/status", status)
    assert answer.body["status"] == {"phase": "Running", "qosClass": "BestEffort"}
    assert "nodeName" not in answer.body["spec"]


@pytest.mark.parametrize("what", ["log", "exec", "attach", "portforward"])
async def test_what_needs_a_real_kubelet_is_refused_clearly(api: Api, what: str) -> None:
    await api.created(PODS, make_pod())
    answer = await api.get(f"{PODS}/a/{what}")
    assert (answer.status, answer.body["reason"]) == (501, "NotImplemented")
    assert "containers of this server do not run" in answer.body["message"]
