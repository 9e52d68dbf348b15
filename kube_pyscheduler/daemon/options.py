"""What the daemon is told at its start."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from kube_pyscheduler.config.files import ConfigFiles
from kube_pyscheduler.config.load import SchedulerConfig
from kube_pyscheduler.daemon.authn import GuardOptions
from kube_pyscheduler.daemon.tls import TlsOptions

SECURE_PORT = 10259
"""Source: DefaultKubeSchedulerPort in pkg/scheduler/apis/config/types.go."""

PLAIN_PORT = 10251
"""Where kube-scheduler served in the clear until v1.22. We still do, for this machine only unless told otherwise."""

FLUSH_SECONDS = 300.0
"""How long a pod may wait for an event before it is tried anyway. Source: DefaultPodMaxInUnschedulablePodsDuration in
pkg/scheduler/backend/queue/scheduling_queue.go."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """``port`` 0: not served."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Options:
    """``files``: what ``config`` was loaded from, to be read again when they change; None where there are none.
    ``master``: address of the API server, instead of the kubeconfig's. ``authentication_kubeconfig`` and
    ``authorization_kubeconfig``: for the reviews of those who read the secure port; "" is the scheduler's own way."""

    config: SchedulerConfig
    files: ConfigFiles | None = None
    master: str = ""
    plain: Endpoint = Endpoint("127.0.0.1", PLAIN_PORT)
    secure: Endpoint = Endpoint("0.0.0.0", SECURE_PORT)
    share_port: bool = False
    tls: TlsOptions = field(default_factory=TlsOptions)
    guard: GuardOptions = field(default_factory=GuardOptions)
    authentication_kubeconfig: str = ""
    authorization_kubeconfig: str = ""
    disabled_metrics: Collection[str] = ()
    flush_seconds: float = FLUSH_SECONDS
