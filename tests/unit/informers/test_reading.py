import json
from typing import Any

import msgspec
import pytest

from kube_pyscheduler.informers.reading import Reader, identify, stays_on_its_node
from kube_pyscheduler.informers.store import Identity, Writer
from kube_pyscheduler.objects.kinds import POD
from kube_pyscheduler.objects.pod import Pod
from tests.unit.informers.objects import malformed, pod
from tests.unit.scripted_server import logged


class Pods:
    """A reader of pods with its store and its counter."""

    def __init__(self) -> None:
        self.malformed = 0
        self.writer: Writer[Pod] = Writer()
        self.reader = Reader(POD, self.writer.store, salvage=stays_on_its_node, malformed=self._count)

    def _count(self) -> None:
        self.malformed += 1

    def read(self, obj: Any) -> Pod | Identity:
        """Read, and store what was read."""
        got = self.reader.read(_raw(obj))
        if isinstance(got, Pod):
            self.writer.apply(got)
        return got


def _raw(obj: Any) -> msgspec.Raw:
    return msgspec.Raw(obj if isinstance(obj, bytes) else json.dumps(obj).encode())


@pytest.fixture
def pods() -> Pods:
    return Pods()


def test_a_good_object(pods: Pods) -> None:
    got = pods.read(pod("p", 3, node="n1"))
    assert isinstance(got, Pod)
    assert (got.key, got.spec.node_name, pods.malformed) == ("ns/p", "n1", 0)


def test_null_is_absent(pods: Pods) -> None:
    got = pods.read({**pod(), "spec": {"tolerations": None, "containers": None, "priority": None}, "status": None})
    assert isinstance(got, Pod)
    assert pods.malformed == 0


def test_an_unbound_malformed_pod_is_left_out_and_counted(pods: Pods, caplog: pytest.LogCaptureFixture) -> None:
    assert pods.read(malformed(pod("p", 3))) == Identity("ns/p", "uid-p", "3")
    assert pods.malformed == 1
    assert "ns/p" in logged(caplog)[0]


def test_a_bound_malformed_pod_stays_on_its_node(pods: Pods) -> None:
    request = {"name": "c", "resources": {"requests": {"cpu": "2", "memory": {"no": "quantity"}}}}
    got = pods.read(malformed(pod("p", 3, node="n1", containers=[request])))
    assert isinstance(got, Pod)
    assert got.spec.node_name == "n1"
    assert got.spec.containers[0].resources.requests == {"cpu": "2"}
    assert pods.malformed == 1


def test_a_pod_that_turns_malformed_on_its_node_keeps_its_last_good_version(pods: Pods) -> None:
    pods.read(pod("p", 3, node="n1"))
    assert pods.read(malformed(pod("p", 4, node="n1"))) == Identity("ns/p", "uid-p", "4")


def test_a_pod_that_turns_malformed_by_its_binding_is_charged_where_it_is(pods: Pods) -> None:
    pods.read(pod("p", 3))
    got = pods.read(malformed(pod("p", 4, node="n1")))
    assert isinstance(got, Pod)
    assert got.spec.node_name == "n1"


def test_what_was_salvaged_is_no_good_version(pods: Pods) -> None:
    pods.read(malformed(pod("p", 3, node="n1", priority=1)))
    got = pods.read(malformed(pod("p", 4, node="n1", priority=2)))
    assert isinstance(got, Pod)
    assert got.spec.priority == 2


def test_a_good_version_ends_the_salvage(pods: Pods) -> None:
    pods.read(malformed(pod("p", 3, node="n1")))
    pods.read(pod("p", 4, node="n1"))
    assert isinstance(pods.read(malformed(pod("p", 5, node="n1"))), Identity)


def test_the_good_version_of_a_predecessor_is_not_ours(pods: Pods) -> None:
    pods.read(pod("p", 3, uid="u1", node="n1"))
    got = pods.read(malformed(pod("p", 4, uid="u2", node="n1")))
    assert isinstance(got, Pod)
    assert got.uid == "u2"


DEEP = b'{"metadata": {"name": "p"}, "spec": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize("raw", [b"5", b"[]", b'"text"', b'{"metadata": 5}', b'{"metadata": {"name": 5}}', b"{", DEEP])
def test_what_is_no_object_at_all(pods: Pods, raw: bytes) -> None:
    assert pods.read(raw) == Identity("", "", "")
    assert pods.malformed == 1


def test_identity_of_an_object_whose_metadata_is_partly_unreadable() -> None:
    raw = {"metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "7", "labels": "none"}}
    assert identify(_raw(raw)) == Identity("ns/p", "u", "7")
    assert identify(_raw({"metadata": {"name": "p", "uid": 5, "resourceVersion": None}})) == Identity("p", "", "")
