"""Jobs: pods that run to their end, as many as have to complete.

Ended pods are counted once and remembered while the server runs, instead of by finalizers. Pod failure and success
policies, backoff limits per index and pod replacement policies are not honoured.
Source: pkg/controller/job/job_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from kube_pyscheduler.devserver.controllers import job_indexes, pods
from kube_pyscheduler.devserver.controllers.environment import Environment
from kube_pyscheduler.devserver.controllers.owned_pods import OwnedPods, PodSet, controller_of
from kube_pyscheduler.devserver.controllers.replica_sets import BATCH
from kube_pyscheduler.devserver.controllers.writing import (
    pod_from_template,
    with_condition,
    without_zeros,
    write_status,
)
from kube_pyscheduler.devserver.options import DeleteOptions
from kube_pyscheduler.devserver.resources import JOBS, PODS, Resource
from kube_pyscheduler.devserver.store import DELETED, Change, Key, Object, Subscriber
from kube_pyscheduler.devserver.times import parse_time

FIRST_BACKOFF_SECONDS = 10.0
"""Wait after the first failure; doubles with each. Source: DefaultJobPodFailureBackOff."""
LAST_BACKOFF_SECONDS = 600.0


class _Tally:
    """The pods of one Job that have ended, by UID; None or the completion index for each."""

    __slots__ = ("failed", "last_failure", "succeeded")

    def __init__(self) -> None:
        self.succeeded: dict[str, int | None] = {}
        self.failed: dict[str, int | None] = {}
        self.last_failure = 0.0


class Jobs:
    """The controller of all Jobs."""

    def __init__(self, env: Environment, owned: OwnedPods) -> None:
        self._env = env
        self._owned = owned
        self._tallies: dict[str, _Tally] = {}
        owned.listen("Job", self._follow_pod)

    def subscriptions(self) -> Iterable[tuple[Resource, Subscriber]]:
        yield JOBS, self._follow

    def _follow(self, change: Change) -> None:
        if change.kind == DELETED:
            self._tallies.pop(change.new.obj["metadata"]["uid"], None)
        else:
            self._env.agenda.soon(self._sync, change.new.key)

    def _follow_pod(self, key: Key, pod: Object) -> None:
        job = self._env.store.get(JOBS, *key)
        owner = controller_of(pod)
        if job is None or owner is None or owner["uid"] != job["metadata"]["uid"]:
            return
        tally, uid = self._tally(job), pod["metadata"]["uid"]
        if pods.phase(pod) == "Succeeded":
            tally.succeeded.setdefault(uid, job_indexes.index_of(pod))
        elif pods.phase(pod) == "Failed" and uid not in tally.failed:
            tally.failed[uid] = job_indexes.index_of(pod)
            tally.last_failure = self._env.clock.monotonic()
        self._env.agenda.soon(self._sync, key)

    def _sync(self, key: Key) -> None:
        job = self._env.store.get(JOBS, *key)
        if job is None or pods.is_terminating(job):
            return
        group = self._owned.of(job)
        tally = self._tally(job)
        if _finished(job):
            self._expire(key, job)
            return
        verdict = self._verdict(key, job, tally)
        if verdict is None and not job["spec"]["suspend"]:
            self._fill(key, job, group, tally)
        elif verdict is not None or job["spec"]["suspend"]:
            self._stop(key, group)
        self._report(job, tally, verdict)

    def _tally(self, job: Object) -> _Tally:
        return self._tallies.setdefault(job["metadata"]["uid"], _Tally())

    def _verdict(self, key: Key, job: Object, tally: _Tally) -> tuple[str, str, str] | None:
        """How the Job has ended: the type, reason and message of a condition; None while it goes on."""
        spec = job["spec"]
        started = job["status"].get("startTime")
        limit = spec.get("activeDeadlineSeconds")
        if limit is not None and started and not spec["suspend"]:
            left = parse_time(started) + limit - self._env.clock.now()
            if left <= 0:
                return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
            self._env.agenda.later(left, self._sync, key)
        if len(tally.failed) > spec["backoffLimit"]:
            return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        completions = spec.get("completions")
        if completions is None:
            # A work queue: the first success says that there is no work left.
            done = bool(tally.succeeded) and self._owned.of(job).active == 0
        else:
            done = self._completed(job, tally) >= completions
        if done:
            return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
        return None

    def _completed(self, job: Object, tally: _Tally) -> int:
        if job["spec"]["completionMode"] == "Indexed":
            return len(set(tally.succeeded.values()))
        return len(tally.succeeded)

    def _fill(self, key: Key, job: Object, group: PodSet, tally: _Tally) -> None:
        spec = job["spec"]
        wanted = spec["parallelism"]
        completions = spec.get("completions")
        if completions is not None:
            wanted = min(wanted, completions - self._completed(job, tally))
        elif tally.succeeded:
            wanted = min(wanted, group.active)
        missing = wanted - group.active
        if missing > 0:
            self._create(key, job, group, tally, missing)
        for pod in group.select(pods.is_active)[: max(0, -missing)]:
            self._env.registry.delete(PODS, key[0], pod["metadata"]["name"])

    def _create(self, key: Key, job: Object, group: PodSet, tally: _Tally, missing: int) -> None:
        if tally.failed:
            backoff = min(FIRST_BACKOFF_SECONDS * 2 ** min(len(tally.failed) - 1, 10), LAST_BACKOFF_SECONDS)
            left = tally.last_failure + backoff - self._env.clock.monotonic()
            if left > 0:
                self._env.agenda.later(left, self._sync, key)
                return
        pod = pod_from_template(job["spec"]["template"], job)
        if job["spec"]["completionMode"] == "Indexed":
            done = set(tally.succeeded.values())
            taken = {job_indexes.index_of(p) for p in group.pods.values() if not pods.is_terminal(p)}
            free = [i for i in range(job["spec"]["completions"]) if i not in done and i not in taken]
            made = [job_indexes.indexed(pod, job["metadata"]["name"], i) for i in free[: min(missing, BATCH)]]
        else:
            made = [pod] * min(missing, BATCH)
        for new in made:
            self._env.registry.create(PODS, new)
        if missing > BATCH:
            self._env.agenda.soon(self._sync, key)

    def _stop(self, key: Key, group: PodSet) -> None:
        for pod in group.select(pods.is_active):
            self._env.registry.delete(PODS, key[0], pod["metadata"]["name"])

    def _expire(self, key: Key, job: Object) -> None:
        """Delete a finished Job when its time to live is over."""
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is None:
            return
        ended = max(parse_time(c["lastTransitionTime"]) for c in job["status"]["conditions"] if c["type"] in _END_TYPES)
        left = ended + ttl - self._env.clock.now()
        if left > 0:
            self._env.agenda.later(left, self._sync, key)
            return
        self._env.registry.delete(JOBS, *key, DeleteOptions(propagation="Foreground", uid=job["metadata"]["uid"]))

    def _report(self, job: Object, tally: _Tally, verdict: tuple[str, str, str] | None) -> None:
        now = self._env.registry.now()
        group = self._owned.of(job)
        suspended = job["spec"]["suspend"]
        started = job["status"].get("startTime") or ("" if suspended else now)
        status: Object = {
            "active": group.active,
            "ready": group.ready,
            "terminating": group.terminating,
            "succeeded": len(tally.succeeded),
            "failed": len(tally.failed),
            "startTime": started,
            "uncountedTerminatedPods": {},
        }
        if job["spec"]["completionMode"] == "Indexed":
            status["completedIndexes"] = job_indexes.as_text(i for i in tally.succeeded.values() if i is not None)
        conditions = job["status"].get("conditions")
        if suspended or any(c["type"] == "Suspended" for c in conditions or ()):
            state = ("True", "JobSuspended", "Job suspended") if suspended else ("False", "JobResumed", "Job resumed")
            conditions = with_condition(conditions, _condition("Suspended", *state), now)
        if verdict is not None:
            kind, reason, message = verdict
            first = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
            for name in (first, kind):
                conditions = with_condition(conditions, _condition(name, "True", reason, message), now)
            if kind == "Complete":
                status["completionTime"] = now
        if conditions:
            status["conditions"] = conditions
        kept = without_zeros(status, "ready", "terminating", "uncountedTerminatedPods")
        write_status(self._env.store, JOBS, job, kept)


_END_TYPES = ("Complete", "Failed")


def _finished(job: Object) -> bool:
    conditions = job["status"].get("conditions") or ()
    return any(c["type"] in _END_TYPES and c["status"] == "True" for c in conditions)


def _condition(kind: str, status: str, reason: str, message: str) -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message}
