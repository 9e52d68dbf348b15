import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kube_pyscheduler.informers.factory import LIVE_PODS, Informers
from kube_pyscheduler.informers.informer import ABSENT_RETRY, BACKOFF_MAXIMUM, REFUSALS, Informer
from kube_pyscheduler.informers.reading import stays_on_its_node
from kube_pyscheduler.kit.clock import FakeClock
from kube_pyscheduler.kit.tasks import Tasks
from kube_pyscheduler.objects.kinds import CSI_DRIVER, NODE, POD
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.session import Session
from tests.unit.informers.objects import bookmark, event, malformed, pod, pod_list
from tests.unit.scripted_server import LiveWatch, ScriptedServer, Sleeps, drop, logged, reply, status

PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"


class Counts:
    """An observer."""

    def __init__(self) -> None:
        self.counted: list[tuple[str, str]] = []

    def malformed(self, kind: str) -> None:
        self.counted.append(("malformed", kind))

    def listed(self, kind: str) -> None:
        self.counted.append(("listed", kind))

    def failed(self, kind: str) -> None:
        self.counted.append(("failed", kind))


class Followed:
    """A running informer of pods and what its handler was told, as "+name version", "~…", "-name"."""

    def __init__(self, informer: Informer[Pod], sleeps: Sleeps, counts: Counts) -> None:
        self.informer = informer
        self.sleeps = sleeps
        self.counts = counts
        self.told: list[str] = []
        self._told = asyncio.Event()
        informer.add_handler(self._handle)

    def _handle(self, old: Pod | None, new: Pod | None) -> None:
        subject = new or old
        assert subject is not None
        sign = "~" if old and new else "+" if new else "-"
        self.told.append(f"{sign}{subject.name}" + (f" {new.metadata.resource_version}" if new else ""))
        if self.informer.store.get(subject.key) is old:
            self.told.append("before the store changed")
        self._told.set()

    async def hears(self, *expected: str) -> None:
        """Wait for so many notices, and expect these."""
        while len(self.told) < len(expected):
            self._told.clear()
            await self._told.wait()
        assert self.told == list(expected)
        self.told.clear()


@pytest.fixture
async def pods(session: Session) -> AsyncIterator[Followed]:
    sleeps, counts = Sleeps(), Counts()
    informer = Informer(
        Client(session), POD, salvage=stays_on_its_node, observer=counts, clock=FakeClock(), sleep=sleeps
    )
    async with Tasks() as tasks:
        followed = Followed(informer, sleeps, counts)
        tasks.start(informer.run(), name="pods", forever=True)
        yield followed


async def test_a_list_then_its_changes(server: ScriptedServer, pods: Followed) -> None:
    live = LiveWatch()
    server.script("GET", PODS, reply(200, pod_list(pod("a", 1), pod("b", 2), version=10)))
    server.script("WATCH", PODS, live)
    await pods.hears("+a 1", "+b 2")
    await pods.informer.synced.wait()
    assert pods.informer.problem == ""
    live.send(event("MODIFIED", pod("a", 11)))
    live.send(event("DELETED", pod("b", 12)))
    live.send(event("ADDED", pod("c", 13)))
    await pods.hears("~a 11", "-b", "+c 13")
    assert set(pods.informer.store.keys()) == {"ns/a", "ns/c"}


async def test_bc11_a_deletion_lost_with_the_watch_is_found_by_the_list(server: ScriptedServer, pods: Followed) -> None:
    broken = LiveWatch()
    broken.reset()
    live = LiveWatch()
    server.script("GET", PODS, reply(200, pod_list(pod("a", 1), pod("b", 2), version=10)))
    server.script("WATCH", PODS, broken, status(410, "Expired", "too old resource version"), live)
    await pods.hears("+a 1", "+b 2")
    server.script("GET", PODS, reply(200, pod_list(pod("b", 2), version=30)))
    await pods.hears("-a")
    seen = await server.saw("WATCH", PODS, 3)
    assert [watch.query["resourceVersion"] for watch in seen] == ["10", "10", "30"]


@pytest.mark.parametrize(
    "problem",
    [
        {"kind": "Status", "code": 410, "metadata": {}},
        {"kind": "Status", "code": 500, "message": "etcdserver: mvcc: required revision has been compacted"},
    ],
)
async def test_bc53_a_new_list_tells_nothing_of_what_did_not_change(
    server: ScriptedServer, pods: Followed, problem: dict[str, Any]
) -> None:
    live = LiveWatch()
    items = [pod("a", 1), pod("b", 2)]
    server.script("GET", PODS, reply(200, pod_list(*items, version=100)))
    server.script("WATCH", PODS, LiveWatch(event("ERROR", problem)), live)
    server.script("GET", PODS, reply(200, pod_list(*items, pod("c", 3), version=200)))
    await pods.hears("+a 1", "+b 2", "+c 3")
    assert server.count("GET", PODS) == 2
    assert pods.counts.counted == [("listed", "Pod"), ("failed", "Pod"), ("listed", "Pod")]
    assert [watch.query["resourceVersion"] for watch in await server.saw("WATCH", PODS, 2)] == ["100", "200"]


async def test_bc52_failures_are_retried_for_ever_with_growing_capped_delays(
    server: ScriptedServer, pods: Followed
) -> None:
    server.script("GET", PODS, reply(200, pod_list(pod("a", 1), version=10)))
    server.script("WATCH", PODS, *[drop] * 20, LiveWatch(event("ADDED", pod("b", 11))))
    await pods.hears("+a 1", "+b 11")
    delays = pods.sleeps.delays
    assert len(delays) >= 10
    assert 0.8 <= delays[0] <= 1.6
    assert all(0.5 * BACKOFF_MAXIMUM <= delay <= BACKOFF_MAXIMUM for delay in delays[6:])
    assert server.count("GET", PODS) == 1


async def test_progress_calms_the_backoff(server: ScriptedServer, pods: Followed) -> None:
    first, second = LiveWatch(bookmark(11)), LiveWatch(bookmark(12))
    first.reset()
    second.reset()
    server.script("GET", PODS, reply(200, pod_list(version=10)))
    server.script("WATCH", PODS, first, second)
    await server.saw("WATCH", PODS, 3)
    assert all(delay <= 1.6 for delay in pods.sleeps.delays)


async def test_lists_whose_watches_expire_at_once_do_not_calm_it(server: ScriptedServer, pods: Followed) -> None:
    for version in range(6):
        server.script("GET", PODS, reply(200, pod_list(version=version + 1)))
        server.script("WATCH", PODS, status(410, "Expired"))
    await server.saw("GET", PODS, 7)
    assert pods.sleeps.delays[5] >= BACKOFF_MAXIMUM / 2


async def test_the_servers_wish_for_a_pause_is_heard(server: ScriptedServer, pods: Followed) -> None:
    server.script("GET", PODS, reply(200, pod_list(version=10)))
    server.script("WATCH", PODS, status(429, "TooManyRequests", Retry_After="7"))
    await server.saw("WATCH", PODS, 2)
    assert pods.sleeps.delays == [7.0]


async def test_a_new_list_on_request_takes_the_place_of_a_watch_that_says_nothing(
    server: ScriptedServer, pods: Followed
) -> None:
    server.script("GET", PODS, reply(200, pod_list(pod("a", 1), pod("b", 2), version=10)))
    server.script("WATCH", PODS, LiveWatch(), LiveWatch(event("ADDED", pod("d", 31))))
    await pods.hears("+a 1", "+b 2")
    await server.saw("WATCH", PODS)
    listing = asyncio.ensure_future(pods.informer.relist())
    await server.saw("GET", PODS, 2)
    assert not listing.done()
    server.script("GET", PODS, reply(200, pod_list(pod("b", 2), pod("c", 20), version=30)))
    await listing
    assert set(pods.informer.store.keys()) >= {"ns/b", "ns/c"}
    await pods.hears("-a", "+c 20", "+d 31")


async def test_a_new_list_on_request_does_not_wait_for_the_end_of_a_pause(
    server: ScriptedServer, session: Session
) -> None:
    pausing = asyncio.Event()

    async def for_ever(_seconds: float) -> None:
        pausing.set()
        await asyncio.Event().wait()

    informer = Informer(Client(session), POD, sleep=for_ever)
    async with Tasks() as tasks:
        tasks.start(informer.run(), name="pods", forever=True)
        server.script("GET", PODS, status(500, "InternalError"), reply(200, pod_list(pod("a", 1), version=10)))
        await pausing.wait()
        await informer.relist()
        assert set(informer.store.keys()) == {"ns/a"}


async def test_recreated_under_its_name(server: ScriptedServer, pods: Followed) -> None:
    server.script("GET", PODS, reply(200, pod_list(pod("a", 1, uid="u1"))))
    server.script("WATCH", PODS, LiveWatch(event("MODIFIED", pod("a", 11, uid="u2"))))
    await pods.hears("+a 1", "-a", "+a 11")


async def test_one_malformed_object_harms_no_other(
    server: ScriptedServer, pods: Followed, caplog: pytest.LogCaptureFixture
) -> None:
    live = LiveWatch(event("ADDED", malformed(pod("x", 11))), event("ADDED", pod("c", 12)))
    server.script("GET", PODS, reply(200, pod_list(pod("a", 1), malformed(pod("b", 2)), pod("d", 3))))
    server.script("WATCH", PODS, live)
    await pods.hears("+a 1", "+d 3", "+c 12")
    assert [what for what, _ in pods.counts.counted if what == "malformed"] == ["malformed"] * 2
    assert [text for text in logged(caplog) if "ns/b" in text]
    assert [text for text in logged(caplog) if "ns/x" in text]


async def test_a_malformed_version_leaves_the_last_good_one_also_in_a_list(
    server: ScriptedServer, pods: Followed
) -> None:
    live = LiveWatch(event("MODIFIED", malformed(pod("a", 11, node="n1"))), event("ERROR", {"code": 410}))
    server.script("GET", PODS, reply(200, pod_list(pod("a", 1, node="n1"))))
    server.script("WATCH", PODS, live, LiveWatch(event("DELETED", malformed(pod("a", 31)))))
    server.script("GET", PODS, reply(200, pod_list(malformed(pod("a", 11, node="n1")), pod("b", 12), version=30)))
    await pods.hears("+a 1", "+b 12", "-a")


async def test_a_malformed_successor_removes_its_predecessor(server: ScriptedServer, pods: Followed) -> None:
    server.script("GET", PODS, reply(200, pod_list(pod("a", 1, uid="u1"), pod("b", 1, uid="u1"))))
    server.script(
        "WATCH", PODS, LiveWatch(event("MODIFIED", malformed(pod("a", 11, uid="u2"))), event("ERROR", {"code": 410}))
    )
    server.script("GET", PODS, reply(200, pod_list(malformed(pod("b", 12, uid="u2")), version=30)))
    await pods.hears("+a 1", "+b 1", "-a", "-b")


async def test_a_bound_malformed_pod_is_charged_and_stays(server: ScriptedServer, pods: Followed) -> None:
    bad = malformed(pod("a", 1, node="n1"))
    server.script("GET", PODS, reply(200, pod_list(bad)))
    server.script("WATCH", PODS, LiveWatch(event("ERROR", {"code": 410})))
    server.script("GET", PODS, reply(200, pod_list(bad, pod("b", 2), version=30)))
    await pods.hears("+a 1", "+b 2")
    stored = pods.informer.store.get("ns/a")
    assert stored is not None
    assert stored.spec.node_name == "n1"


async def test_a_handler_that_fails_stops_nobody(
    server: ScriptedServer, pods: Followed, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(old: Pod | None, new: Pod | None) -> None:
        raise ZeroDivisionError

    after: list[str] = []
    pods.informer.add_handler(fail)
    pods.informer.add_handler(lambda old, new: after.append("told"))
    server.script("GET", PODS, reply(200, pod_list(pod("a", 1), pod("b", 2))))
    await pods.hears("+a 1", "+b 2")
    await pods.informer.synced.wait()
    assert after == ["told", "told"]
    assert "ZeroDivisionError" in caplog.text


async def test_a_long_list_lets_others_run(server: ScriptedServer, pods: Followed) -> None:
    server.script("GET", PODS, reply(200, pod_list(*(pod(f"p{number}", 1) for number in range(2_000)))))
    longest = 0
    gap = 0

    def one_more(old: Pod | None, new: Pod | None) -> None:
        nonlocal gap, longest
        gap += 1
        longest = max(longest, gap)

    pods.informer.add_handler(one_more)
    while not pods.informer.synced.is_set():
        gap = 0
        await asyncio.sleep(0)
    assert len(pods.informer.store) == 2_000
    assert longest <= 200


async def test_what_goes_wrong_is_kept_as_the_problem(server: ScriptedServer, pods: Followed) -> None:
    assert pods.informer.problem == "not listed yet"
    server.script("GET", PODS, status(403, "Forbidden", "pods is forbidden"))
    await server.saw("GET", PODS, 2)
    assert "pods is forbidden" in pods.informer.problem
    assert not pods.informer.synced.is_set()


async def test_stopping_closes_the_watch(server: ScriptedServer, session: Session) -> None:
    informer = Informer(Client(session), POD)
    server.script("GET", PODS, reply(200, pod_list()))
    server.script("WATCH", PODS, LiveWatch())
    async with Tasks() as tasks:
        tasks.start(informer.run(), name="pods", forever=True)
        await server.saw("WATCH", PODS)
    assert len(tasks) == 0


# -- optional kinds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "asked_again"),
    [(status(404, "NotFound", "no such path"), 0), (status(403, "Forbidden", "no such path"), REFUSALS - 1)],
)
async def test_an_optional_kind_that_is_absent_or_hidden_is_said_once_and_counts_as_empty(
    server: ScriptedServer, session: Session, caplog: pytest.LogCaptureFixture, answer: Any, asked_again: int
) -> None:
    sleeps = Sleeps()
    informer = Informer(Client(session), CSI_DRIVER, optional=True, sleep=sleeps)
    async with Tasks() as tasks:
        tasks.start(informer.run(), name="drivers", forever=True)
        server.script("GET", DRIVERS, *[answer] * (asked_again + 3))
        await informer.synced.wait()
        await server.saw("GET", DRIVERS, asked_again + 4)
        assert all(delay < 10.0 for delay in sleeps.delays[:asked_again])
        assert sleeps.delays[asked_again:] == [ABSENT_RETRY] * 3
        assert len([text for text in logged(caplog) if "no such path" in text]) == 1
        server.script(
            "GET", DRIVERS, reply(200, {"metadata": {"resourceVersion": "5"}, "items": [{"metadata": {"name": "d"}}]})
        )
        await server.saw("WATCH", DRIVERS)
    assert set(informer.store.keys()) == {"d"}
    assert informer.problem == ""


async def test_a_server_that_has_just_started_hides_nothing(server: ScriptedServer, session: Session) -> None:
    informer = Informer(Client(session), CSI_DRIVER, optional=True, sleep=Sleeps())
    async with Tasks() as tasks:
        tasks.start(informer.run(), name="drivers", forever=True)
        server.script("GET", DRIVERS, *[status(403, "Forbidden")] * (REFUSALS - 1))
        await server.saw("GET", DRIVERS, REFUSALS)
        assert not informer.synced.is_set()
        page = {"metadata": {"resourceVersion": "5"}, "items": [{"metadata": {"name": "d"}}]}
        server.script("GET", DRIVERS, reply(200, page))
        await informer.synced.wait()
    assert set(informer.store.keys()) == {"d"}


async def test_a_kind_that_is_no_longer_served_is_empty_one_that_is_hidden_stays(
    server: ScriptedServer, session: Session
) -> None:
    informer = Informer(Client(session), CSI_DRIVER, optional=True, sleep=Sleeps())
    page = reply(200, {"metadata": {"resourceVersion": "5"}, "items": [{"metadata": {"name": "d"}}]})
    async with Tasks() as tasks:
        tasks.start(informer.run(), name="drivers", forever=True)
        server.script("GET", DRIVERS, page)
        server.script("WATCH", DRIVERS, status(410, "Expired"))
        server.script("GET", DRIVERS, status(403, "Forbidden"))
        await server.saw("GET", DRIVERS, 3)
        assert set(informer.store.keys()) == {"d"}
        server.script("GET", DRIVERS, status(404, "NotFound"))
        await server.saw("GET", DRIVERS, 4)
        assert len(informer.store) == 0


async def test_a_required_kind_that_is_absent_is_waited_for(server: ScriptedServer, session: Session) -> None:
    informer = Informer(Client(session), CSI_DRIVER, sleep=Sleeps())
    async with Tasks() as tasks:
        tasks.start(informer.run(), name="drivers", forever=True)
        server.script("GET", DRIVERS, status(404, "NotFound"))
        await server.saw("GET", DRIVERS, 2)
        assert not informer.synced.is_set()


# -- all kinds ---------------------------------------------------------------------------------------------------------


async def test_first_lists_are_handed_out_in_the_order_of_the_kinds(server: ScriptedServer, session: Session) -> None:
    informers = Informers(Client(session), [NODE, POD])
    told: list[str] = []

    def note(old: Any, new: Any) -> None:
        told.append(new.name)

    informers.of(POD).add_handler(note)
    informers.of(NODE).add_handler(note)
    async with Tasks() as tasks:
        informers.start(tasks)
        server.script("GET", PODS, reply(200, pod_list(pod("p"))))
        await server.saw("GET", PODS)
        await server.saw("GET", NODES)
        server.script(
            "GET", NODES, reply(200, {"metadata": {"resourceVersion": "1"}, "items": [{"metadata": {"name": "n"}}]})
        )
        await informers.synced()
    assert told == ["n", "p"]


async def test_only_live_pods_are_followed(server: ScriptedServer, session: Session) -> None:
    informers = Informers(Client(session), [NODE, POD])
    async with Tasks() as tasks:
        informers.start(tasks)
        server.script("GET", PODS, reply(200, pod_list()))
        server.script("GET", NODES, reply(200, {"metadata": {"resourceVersion": "1"}}))
        (watch,) = await server.saw("WATCH", PODS)
        (plain,) = await server.saw("GET", NODES)
    assert watch.query["fieldSelector"] == LIVE_PODS
    assert "fieldSelector" not in plain.query
