import json
from typing import Any

import msgspec
import pytest

from kube_pyscheduler.informers.reflector import ListPage
from kube_pyscheduler.objects.kinds import KINDS, NAMESPACE, POD, Kind
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.errors import Gone, NotFound
from kube_pyscheduler.transport.requests import Request
from tests.contract.cluster import Cluster, refused


async def page_of(client: Client, request: Request) -> dict[str, Any]:
    page: dict[str, Any] = json.loads(await client.send(request))
    return page


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.plural)
async def test_every_kind_we_follow_is_served_where_we_look(client: Client, kind: Kind[Any]) -> None:
    page = msgspec.json.decode(await client.send(requests.list_page(kind, limit=1)), type=ListPage)
    assert page.metadata.resource_version


async def test_pages_are_one_list_as_of_its_beginning(cluster: Cluster) -> None:
    for number in range(5):
        await cluster.create_pod(f"p{number}")
    page = await page_of(cluster.client, requests.list_page(POD, limit=2))
    version = page["metadata"]["resourceVersion"]
    await cluster.create_pod("late")
    names: list[str] = []
    while True:
        assert page["metadata"]["resourceVersion"] == version
        assert len(page["items"]) <= 2
        names += [
            item["metadata"]["name"] for item in page["items"] if item["metadata"]["namespace"] == cluster.namespace
        ]
        token = page["metadata"].get("continue")
        if not token:
            break
        page = await page_of(cluster.client, requests.list_page(POD, limit=2, continue_token=token))
    assert sorted(names) == ["p0", "p1", "p2", "p3", "p4"]


async def test_finished_pods_can_be_left_out(cluster: Cluster) -> None:
    for name in ("done", "live"):
        await cluster.create_pod(name)
    await cluster.client.send(
        Request(
            "PATCH",
            f"{cluster.pods}/done/status",
            body=json.dumps({"status": {"phase": "Succeeded"}}).encode(),
            content_type=requests.MERGE_PATCH,
        )
    )
    selector = "status.phase!=Succeeded,status.phase!=Failed"
    page = await page_of(cluster.client, requests.list_page(POD, field_selector=selector))
    names = [item["metadata"]["name"] for item in page["items"] if item["metadata"]["namespace"] == cluster.namespace]
    assert names == ["live"]


async def test_items_of_a_list_carry_what_identifies_them(cluster: Cluster) -> None:
    await cluster.create_pod("p")
    page = await page_of(cluster.client, requests.list_page(POD))
    (item,) = [item for item in page["items"] if item["metadata"]["namespace"] == cluster.namespace]
    assert item["metadata"]["uid"]
    assert item["metadata"]["resourceVersion"].isdecimal()


async def test_a_kind_that_is_not_served_is_not_found(client: Client) -> None:
    error = await refused(client.send(Request("GET", "/apis/nowhere.example.com/v1/things")))
    assert isinstance(error, NotFound)


async def test_a_list_at_a_forgotten_version_is_gone(client: Client) -> None:
    """A young server still knows its first version, and answers with the state of then."""
    try:
        page = await page_of(client, Request("GET", NAMESPACE.path, "resourceVersion=1&resourceVersionMatch=Exact"))
    except Gone as error:
        answer = (error.code, error.reason)
    else:
        answer = (200, page["metadata"]["resourceVersion"])
    assert answer in ((410, "Expired"), (200, "1"))


async def test_an_unreadable_continue_token_is_an_error_of_ours(client: Client) -> None:
    error = await refused(client.send(requests.list_page(NAMESPACE, limit=2, continue_token="%%%")))
    assert error.code == 400
