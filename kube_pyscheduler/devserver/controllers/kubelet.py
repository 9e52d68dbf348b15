"""Hollow kubelets: they report what the kubelets of real nodes would, and run nothing.

A bound pod runs, ends by itself or for ever, and when it is deleted goes at the end of its grace. A node that has no
room for a pod refuses it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

from kube_pyscheduler.devserver.controllers import pod_status, pods
from kube_pyscheduler.devserver.controllers.capacity import NodeUse, requests_of
from kube_pyscheduler.devserver.controllers.environment import Environment
from kube_pyscheduler.devserver.controllers.events import WARNING
from kube_pyscheduler.devserver.controllers.writing import write_status
from kube_pyscheduler.devserver.options import DeleteOptions
from kube_pyscheduler.devserver.resources import NODES, PODS, Resource
from kube_pyscheduler.devserver.store import ADDED, Change, Key, Object, Subscriber

RUN_SECONDS_ANNOTATION = "devserver.kube-pyscheduler/run-seconds"
"""Of a pod: its containers exit by themselves after that many seconds; "inf" is never."""
EXIT_CODE_ANNOTATION = "devserver.kube-pyscheduler/exit-code"
"""Of a pod that exits by itself: with what; 0 unless said."""
COMPONENT = "kubelet"
_NEVER = math.inf


class _Life:
    """A pod on its node: the monotonic times at which it starts, ends by itself, and must be gone.

    ``generation`` is that of the pod whose requests are counted.
    """

    __slots__ = ("ends_at", "generation", "gone_at", "node", "starts_at", "uid")

    def __init__(self, pod: Object, starts_at: float) -> None:
        self.uid: str = pod["metadata"]["uid"]
        self.node: str = pod["spec"]["nodeName"]
        self.generation: int = pod["metadata"].get("generation", 0)
        self.starts_at = starts_at
        self.ends_at = _NEVER
        self.gone_at = _NEVER


class HollowKubelets:
    """The kubelets of all nodes."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._lives: dict[Key, _Life] = {}
        self._uses: dict[str, NodeUse] = defaultdict(NodeUse)
        self._homeless: dict[str, set[Key]] = defaultdict(set)
        """Pods that are bound to a node of that name, which does not exist."""
        self._addresses = 0

    def subscriptions(self) -> Iterable[tuple[Resource, Subscriber]]:
        yield NODES, self._follow_node
        yield PODS, self._follow_pod

    def _follow_node(self, change: Change) -> None:
        if change.kind == ADDED:
            name = change.new.key[1]
            self._env.agenda.soon(self._register, name)
            for key in self._homeless.pop(name, ()):
                self._env.agenda.soon(self._sync, key)

    def _follow_pod(self, change: Change) -> None:
        key = change.new.key
        if change.new.obj["spec"].get("nodeName") or key in self._lives:
            self._env.agenda.soon(self._sync, key)

    # -- pods --------------------------------------------------------------------------------------------------

    def _sync(self, key: Key) -> None:
        """Bring one pod to where it should be by now, and come back when the next thing is due."""
        pod = self._env.store.get(PODS, *key)
        life = self._lives.get(key)
        if life is not None and (pod is None or pod["metadata"]["uid"] != life.uid):
            self._forget(key, life)
            life = None
        if pod is None or not pod["spec"].get("nodeName"):
            return
        if pods.is_terminal(pod):
            if life is not None:
                self._forget(key, life)
            if pods.is_terminating(pod):
                self._remove(pod)
            return
        node = self._env.store.get(NODES, "", pod["spec"]["nodeName"])
        if node is None:
            # Nobody is there to run or to stop it; what is being deleted goes, as the pod garbage collector sees to.
            if pods.is_terminating(pod):
                self._remove(pod)
            else:
                self._homeless[pod["spec"]["nodeName"]].add(key)
            return
        if life is None:
            life = self._admit(key, pod, node)
        elif life.generation != pod["metadata"].get("generation", 0):
            life.generation = pod["metadata"].get("generation", 0)
            self._uses[life.node].take(life.uid, requests_of(pod))
        if life is not None:
            self._advance(key, life, pod, node)

    def _admit(self, key: Key, pod: Object, node: Object) -> _Life | None:
        env = self._env
        use = self._uses[pod["spec"]["nodeName"]]
        amounts = requests_of(pod)
        life = _Life(pod, env.clock.monotonic() + env.settings.start_seconds)
        # A pod that ran before we came is counted, but not judged.
        refusal = use.why_not(node, amounts) if pods.phase(pod) == "Pending" else None
        if refusal is not None:
            reason, message = refusal
            write_status(env.store, PODS, pod, pod_status.rejected(pod, reason, message, env.registry.now()))
            env.events.write(COMPONENT, pod, WARNING, reason, message)
            return None
        use.take(life.uid, amounts)
        self._lives[key] = life
        if pods.phase(pod) == "Running":
            self._plan_end(life, pod)
        return life

    def _advance(self, key: Key, life: _Life, pod: Object, node: Object) -> None:
        now = self._env.clock.monotonic()
        if pods.is_terminating(pod):
            stopping = self._stopping_seconds(pod) if pods.phase(pod) == "Running" else 0.0
            life.gone_at = min(life.gone_at, now + stopping)
        if now >= life.gone_at:
            self._forget(key, life)
            self._remove(pod)
            return
        if pods.phase(pod) == "Pending" and not pods.is_terminating(pod) and now >= life.starts_at:
            pod = self._start(pod, node)
            self._plan_end(life, pod)
        if pods.phase(pod) == "Running" and now >= life.ends_at:
            self._forget(key, life)
            exit_code = self._annotated(pod, EXIT_CODE_ANNOTATION) or 0
            status = pod_status.finished(pod, exit_code=int(exit_code), now=self._env.registry.now())
            write_status(self._env.store, PODS, pod, status)
            return
        due = min((at for at in (life.starts_at, life.ends_at, life.gone_at) if at > now), default=_NEVER)
        if due < _NEVER:
            self._env.agenda.later(due - now, self._sync, key)

    def _start(self, pod: Object, node: Object) -> Object:
        self._addresses += 1
        number = self._addresses
        status = pod_status.running(
            pod,
            host_ip=_address(node),
            pod_ip=f"10.{128 + (number >> 16) % 64}.{number >> 8 & 255}.{number & 255}",
            now=self._env.registry.now(),
        )
        return write_status(self._env.store, PODS, pod, status)

    def _plan_end(self, life: _Life, pod: Object) -> None:
        seconds = self._annotated(pod, RUN_SECONDS_ANNOTATION)
        if seconds is None and pod["spec"].get("restartPolicy") != "Always":
            seconds = self._env.settings.run_seconds
        if seconds is not None:
            life.ends_at = self._env.clock.monotonic() + seconds

    def _annotated(self, pod: Object, annotation: str) -> float | None:
        """The number in an annotation; None without one, and for one that can't be read, of which an Event tells."""
        text = (pod["metadata"].get("annotations") or {}).get(annotation)
        if text is None:
            return None
        try:
            return float(text)
        except ValueError:
            message = f"annotation {annotation} must be a number, not {text!r}"
            self._env.events.write(COMPONENT, pod, WARNING, "InvalidAnnotation", message)
            return None

    def _stopping_seconds(self, pod: Object) -> float:
        grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        stop = self._env.settings.stop_seconds
        return grace if stop is None else min(grace, stop)

    def _forget(self, key: Key, life: _Life) -> None:
        del self._lives[key]
        use = self._uses[life.node]
        use.release(life.uid)
        if not len(use):
            del self._uses[life.node]

    def _remove(self, pod: Object) -> None:
        metadata = pod["metadata"]
        options = DeleteOptions(grace_seconds=0, uid=metadata["uid"])
        self._env.registry.delete(PODS, metadata["namespace"], metadata["name"], options)

    # -- nodes -------------------------------------------------------------------------------------------------

    def _register(self, name: str) -> None:
        """A node that reports nothing about itself yet becomes Ready and gets an address."""
        node = self._env.store.get(NODES, "", name)
        if node is None or (node.get("status") or {}).get("conditions"):
            return
        now = self._env.registry.now()
        status = dict(node.get("status") or {})
        status["conditions"] = [
            {
                "type": kind,
                "status": "True" if kind == "Ready" else "False",
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }
            for kind, reason, message in _NODE_CONDITIONS
        ]
        status.setdefault("addresses", _addresses(name))
        status.setdefault("nodeInfo", _NODE_INFO)
        write_status(self._env.store, NODES, node, status)


_NODE_CONDITIONS = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "KubeletReady", "kubelet is posting ready status"),
)
_NODE_INFO = {
    "architecture": "amd64",
    "operatingSystem": "linux",
    "osImage": "hollow",
    "kernelVersion": "hollow",
    "containerRuntimeVersion": "hollow://1",
    "kubeletVersion": "v1.36.0",
    "kubeProxyVersion": "",
    "machineID": "",
    "systemUUID": "",
    "bootID": "",
}


def _addresses(name: str) -> list[Object]:
    """An address made from the name, from the block for documentation and benchmarks (RFC 2544)."""
    number = sum(ord(char) * 31**index for index, char in enumerate(name)) % (2 * 65536)
    ip = f"198.{18 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"
    return [{"type": "InternalIP", "address": ip}, {"type": "Hostname", "address": name}]


def _address(node: Object) -> str:
    for entry in (node.get("status") or {}).get("addresses") or ():
        if entry.get("type") == "InternalIP":
            return str(entry["address"])
    return str(_addresses(node["metadata"]["name"])[0]["address"])
