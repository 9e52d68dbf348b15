"""Nominator: who is promised what, and whose word is newer."""

from __future__ import annotations

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.scheduling_queue.nominator import Nominator
from tests.unit.scheduling_queue.builders import make_pod, relabelled, with_status


def test_a_promise_counts_at_once_and_moves() -> None:
    nominator = Nominator()
    info = PodInfo(make_pod())
    assert nominator.nominate(info, "n1") == ""
    assert nominator.nominated_on("n1") == [info]
    assert nominator.nominate(info, "n2") == "n1"
    assert (nominator.nodes(), nominator.nominated_on("n1")) == (["n2"], [])
    assert nominator.drop(info.uid) == "n2"
    assert (len(nominator), nominator.nodes()) == (0, [])


def test_promising_the_same_node_again_gives_nothing_up() -> None:
    nominator = Nominator()
    info = PodInfo(make_pod())
    nominator.nominate(info, "n1")
    assert nominator.nominate(info, "n1") == ""
    assert nominator.nominated_on("n1") == [info]


def test_a_pod_brings_the_promise_in_its_status() -> None:
    nominator = Nominator()
    info = PodInfo(make_pod(nominated="n1"))
    nominator.adopt(info)
    assert nominator.node_of(info.uid) == "n1"


def test_an_update_that_does_not_know_our_promise_keeps_it() -> None:
    nominator = Nominator()
    pod = make_pod()
    nominator.nominate(PodInfo(pod), "n1")
    newer = relabelled(pod, a="b")
    assert nominator.follow(pod, PodInfo(newer)) == ""
    assert [info.pod for info in nominator.nominated_on("n1")] == [newer]


def test_an_update_that_still_has_the_old_promise_does_not_bring_it_back() -> None:
    nominator = Nominator()
    pod = make_pod(nominated="n1")
    nominator.adopt(PodInfo(pod))
    assert nominator.nominate(PodInfo(pod), "") == "n1"
    newer = relabelled(pod, a="b")
    nominator.follow(pod, PodInfo(newer))
    nominator.adopt(PodInfo(newer))
    assert len(nominator) == 0
    cleared = with_status(newer, nominated_node_name="")
    nominator.follow(newer, PodInfo(cleared))
    again = with_status(cleared, nominated_node_name="n1")
    nominator.follow(cleared, PodInfo(again))
    assert nominator.node_of(pod.uid) == "n1"


def test_a_change_of_status_wins_over_what_we_said_before() -> None:
    nominator = Nominator()
    pod = make_pod(nominated="n1")
    nominator.adopt(PodInfo(pod))
    moved = with_status(pod, nominated_node_name="n2")
    assert nominator.follow(pod, PodInfo(moved)) == "n1"
    cleared = with_status(moved, nominated_node_name="")
    assert nominator.follow(moved, PodInfo(cleared)) == "n2"
    assert nominator.follow(cleared, PodInfo(relabelled(cleared, a="b"))) == ""
    assert len(nominator) == 0


def test_our_own_patch_coming_back_gives_nothing_up() -> None:
    nominator = Nominator()
    pod = make_pod()
    nominator.nominate(PodInfo(pod), "n1")
    assert nominator.follow(pod, PodInfo(with_status(pod, nominated_node_name="n1"))) == ""
    assert nominator.node_of(pod.uid) == "n1"
