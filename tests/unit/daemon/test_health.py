from __future__ import annotations

from kube_pyscheduler.daemon.health import Answer, Check, Health


def health(problem: str = "") -> Health:
    return Health({"livez": (), "readyz": (Check("informer-sync", lambda: problem), Check("shutdown", lambda: ""))})


def test_ok_is_all_that_is_said_while_all_is_well() -> None:
    assert health().answer("readyz") == Answer(200, "ok")


def test_verbose_lists_the_checks() -> None:
    assert health().answer("readyz", verbose=True) == Answer(
        200, "[+]informer-sync ok\n[+]shutdown ok\nreadyz check passed\n"
    )


def test_a_failure_is_named_and_its_reason_kept() -> None:
    assert health("nodes: no route to host").answer("readyz") == Answer(
        500, "[-]informer-sync failed: reason withheld\n[+]shutdown ok\nreadyz check failed\n"
    )


def test_checks_can_be_excluded() -> None:
    answer = health("bad").answer("readyz", verbose=True, exclude=["informer-sync", "nonsense"])
    assert answer.status == 200
    assert answer.text.splitlines() == [
        "[+]informer-sync excluded: ok",
        "[+]shutdown ok",
        'warn: some health checks cannot be excluded: no matches for "nonsense"',
        "readyz check passed",
    ]


def test_a_group_without_checks_pings() -> None:
    assert health().answer("livez", verbose=True).text == "[+]ping ok\nlivez check passed\n"


def test_one_check_says_why() -> None:
    assert health("bad").answer_one("readyz", "informer-sync") == Answer(500, "internal server error: bad\n")
    assert health().answer_one("readyz", "informer-sync") == Answer(200, "ok")
    assert health().answer_one("readyz", "ping").status == 404
