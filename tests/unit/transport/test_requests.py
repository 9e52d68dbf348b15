import json
from typing import Any

from kube_pyscheduler.objects.kinds import (
    CSI_NODE,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    RESOURCE_CLAIM,
)
from kube_pyscheduler.objects.meta import ObjectMeta
from kube_pyscheduler.objects.storage import PersistentVolumeClaim
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.requests import Request


def body(request: Request) -> Any:
    return json.loads(request.body or b"null")


def test_paths_of_kinds() -> None:
    assert requests.list_page(POD).path == "/api/v1/pods"
    assert requests.list_page(POD_DISRUPTION_BUDGET).path == "/apis/policy/v1/poddisruptionbudgets"
    assert requests.get(NODE, "ignored", "n1").path == "/api/v1/nodes/n1"
    assert requests.get(CSI_NODE, "", "n1").path == "/apis/storage.k8s.io/v1/csinodes/n1"
    assert requests.get(POD_DISRUPTION_BUDGET, "ns", "b").path == "/apis/policy/v1/namespaces/ns/poddisruptionbudgets/b"


def test_names_cannot_leave_their_place() -> None:
    assert requests.get_pod("a/b", "../c?d=e").path == "/api/v1/namespaces/a%2Fb/pods/..%2Fc%3Fd%3De"
    assert requests.get(NODE, "", "x y\r\n").path == "/api/v1/nodes/x%20y%0D%0A"


def test_a_list_without_limit_asks_for_everything() -> None:
    assert requests.list_page(POD).query == ""


def test_patches() -> None:
    claim = PersistentVolumeClaim(metadata=ObjectMeta(name="c", namespace="ns"))
    request = requests.patch(PERSISTENT_VOLUME_CLAIM, claim, {"metadata": {"annotations": {"a": "b"}}})
    assert (request.method, request.path) == ("PATCH", "/api/v1/namespaces/ns/persistentvolumeclaims/c")
    assert request.content_type == "application/merge-patch+json"
    assert body(request) == {"metadata": {"annotations": {"a": "b"}}}
    assert requests.patch(PERSISTENT_VOLUME_CLAIM, claim, {}, subresource="status").path.endswith("/c/status")


def test_the_status_of_a_pod_is_patched_by_uid_and_merged() -> None:
    request = requests.patch_pod_status("ns", "p", "u", {"nominatedNodeName": None})
    assert request.path == "/api/v1/namespaces/ns/pods/p/status"
    assert request.content_type == "application/strategic-merge-patch+json"
    assert body(request) == {"metadata": {"uid": "u"}, "status": {"nominatedNodeName": None}}


def test_a_deletion_is_for_one_uid() -> None:
    request = requests.delete_pod("ns", "p", "u")
    assert request.method == "DELETE"
    assert body(request)["preconditions"] == {"uid": "u"}


def test_objects_are_made_in_their_namespace_and_deleted_by_uid() -> None:
    request = requests.create(RESOURCE_CLAIM, "ns", {"metadata": {"generateName": "a-"}})
    assert (request.method, request.path) == ("POST", "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims")
    assert body(request) == {"metadata": {"generateName": "a-"}}
    assert requests.create(NODE, "ignored", {}).path == "/api/v1/nodes"
    request = requests.delete(RESOURCE_CLAIM, "ns", "c", "u")
    assert (request.method, request.path) == ("DELETE", "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c")
    assert body(request)["preconditions"] == {"uid": "u"}


def test_what_may_be_repeated() -> None:
    repeatable = [requests.list_page(POD), requests.get_pod("ns", "p"), requests.delete_pod("ns", "p", "u")]
    repeatable += [requests.patch_pod_status("ns", "p", "u", {}), requests.create_event("ns", b"{}")]
    repeatable.append(requests.delete(NODE, "", "n", "u"))
    once = [
        requests.bind_pod("ns", "p", "u", "n"),
        requests.create(NODE, "", {}),
        requests.create_lease("ns", {}),
        requests.update_lease("ns", "l", {}),
    ]
    assert all(request.idempotent for request in repeatable)
    assert not any(request.idempotent for request in once)


def test_reviews() -> None:
    assert body(requests.token_review("t"))["spec"] == {"token": "t"}
    review = requests.subject_access_review(
        user="u", uid="1", groups=["g"], extra={"k": ["v"]}, path="/metrics", verb="get"
    )
    assert body(review)["spec"] == {
        "user": "u",
        "uid": "1",
        "groups": ["g"],
        "extra": {"k": ["v"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }
