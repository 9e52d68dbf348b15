"""The daemon's flags: kube-scheduler's, and a few of our own.

Every flag of kube-scheduler v1.36 is here, so that its manifests start as they are. Some have nothing to act on here
and are taken without effect; what would silently change who may do what, or how pods are placed, is refused instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from kube_pyscheduler.cli.pflag import Bool, Duration, Float, Int, Text, Texts, Value, VersionSwitch
from kube_pyscheduler.config.schema import DEFAULT_NAME
from kube_pyscheduler.daemon.options import FLUSH_SECONDS, PLAIN_PORT, SECURE_PORT
from kube_pyscheduler.kit.duration import format_duration

PORT = Int(0, 65535)


@dataclass(frozen=True, slots=True)
class Flag:
    """``default`` None: what the configuration says. ``many``: given several times, the values add up."""

    name: str
    type: Value[Any]
    help: str
    default: Any = None
    many: bool = False

    def option(self, *, hidden: bool = False) -> click.Option:
        return click.Option(
            [f"--{self.name}"],
            type=self.type,
            help=f"{self.help} (default {self._shown_default()})" if self._shown_default() else self.help,
            default=self.default,
            multiple=self.many,
            hidden=hidden,
        )

    def _shown_default(self) -> str:
        if isinstance(self.default, bool):
            return str(self.default).lower()
        if isinstance(self.type, Duration) and self.default is not None:
            return format_duration(self.default)
        return "" if self.default is None else str(self.default)


FLAGS = (
    Flag("config", Text(), "File with a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1)."),
    Flag("policy-config-file", Text(), "File with a scheduler Policy, as kube-scheduler took up to 1.22."),
    Flag("algorithm-provider", Text(), "DefaultProvider or ClusterAutoscalerProvider, as up to 1.22."),
    Flag("equal-scores", Text(), "Which of several best nodes is taken: Random, or RoundRobin as up to 1.15."),
    Flag("kubeconfig", Text(), "How to reach the API server; without it, as a pod of the cluster."),
    Flag("master", Text(), "Address of the API server, instead of the kubeconfig's.", ""),
    Flag("scheduler-name", Text(), "The spec.schedulerName of our pods, where --config names none.", DEFAULT_NAME),
    Flag("write-config-to", Text(), "Write the configuration in force to this file, and exit."),
    Flag("leader-elect", Bool(), "Hold a Lease while scheduling, so that several replicas may run. (default true)"),
    Flag("leader-elect-lease-duration", Duration(), "How long a lease holds that is not renewed. (default 15s)"),
    Flag("leader-elect-renew-deadline", Duration(), "How long to try to renew before giving up. (default 10s)"),
    Flag("leader-elect-retry-period", Duration(), "Pause between two tries. (default 2s)"),
    Flag("leader-elect-resource-lock", Text(), "Kind of the lock; only leases are supported."),
    Flag("leader-elect-resource-name", Text(), f"Name of the Lease. (default {DEFAULT_NAME})"),
    Flag("leader-elect-resource-namespace", Text(), "Namespace of the Lease. (default kube-system)"),
    Flag("bind-address", Text(), "Address of the secure port.", "0.0.0.0"),
    Flag("secure-port", PORT, "Port for health and metrics over TLS; 0 switches it off.", SECURE_PORT),
    Flag("address", Text(), "Address of the plain port.", "127.0.0.1"),
    Flag("port", PORT, "Port for health and metrics in the clear; 0 switches it off.", PLAIN_PORT),
    Flag("permit-port-sharing", Bool(), "Let other processes listen on the same ports.", False),
    Flag("tls-cert-file", Text(), "Certificate of the secure port; one is made where none is given."),
    Flag("tls-private-key-file", Text(), "Its key."),
    Flag("cert-dir", Text(), "Directory of the pair kube-scheduler.crt and .key, made there if missing."),
    Flag("tls-min-version", Text(), "VersionTLS12 or VersionTLS13.", ""),
    Flag("tls-cipher-suites", Texts(), "Cipher suites by Go's names, separated by commas.", many=True),
    Flag("client-ca-file", Text(), "Whoever shows a certificate of these authorities is its common name."),
    Flag("authentication-kubeconfig", Text(), "Kubeconfig for TokenReviews, if not the scheduler's own.", ""),
    Flag("authentication-token-webhook-cache-ttl", Duration(), "How long a TokenReview holds.", 10.0),
    Flag("authorization-kubeconfig", Text(), "Kubeconfig for SubjectAccessReviews, if not the scheduler's own.", ""),
    Flag("authorization-webhook-cache-authorized-ttl", Duration(), "How long a permission holds.", 10.0),
    Flag("authorization-webhook-cache-unauthorized-ttl", Duration(), "How long a refusal holds.", 10.0),
    Flag("authorization-always-allow-paths", Texts(), "Paths that need no token. (default: health)", many=True),
    Flag("kube-api-qps", Float(), "Requests a second to the API server. (default 50)"),
    Flag("kube-api-burst", Int(), "Requests at once. (default 100)"),
    Flag("pod-max-in-unschedulable-pods-duration", Duration(), "Retry pods after so long.", FLUSH_SECONDS),
    Flag("disabled-metrics", Texts(), "Metrics that are not exposed.", many=True),
    Flag("feature-gates", Texts(), "Name=true or Name=false, by commas; as in v1.36 only.", many=True),
    Flag("v", Int(0), "Verbosity of the log, up to 10.", 0),
    Flag("log-format", Text(), "text or json. (default text)"),
    Flag("logging-format", Text(), "The same."),
    Flag("version", VersionSwitch(), "Print the version, and exit."),
)  # fmt: skip

_NO_PROFILER = "there is no profiling endpoint"
_JSON_ONLY = "requests are JSON"
_NO_HTTP2 = "HTTP/2 is not served"
_NO_LOOKUP = "the cluster's authentication ConfigMap is not read"
_NO_PROXY = "requests of authenticating proxies are not trusted"
_UNBUFFERED = "log lines are written at once, to stderr"
_FILES_ONLY = "policies are read from files only"

WITHOUT_EFFECT: tuple[tuple[Flag, str], ...] = (
    (Flag("profiling", Bool(), ""), _NO_PROFILER),
    (Flag("contention-profiling", Bool(), ""), _NO_PROFILER),
    (Flag("kube-api-content-type", Text(), ""), _JSON_ONLY),
    (Flag("disable-http2-serving", Bool(), ""), _NO_HTTP2),
    (Flag("http2-max-streams-per-connection", Int(), ""), _NO_HTTP2),
    (Flag("permit-address-sharing", Bool(), ""), "addresses may always be used again"),
    (Flag("tls-curve-preferences", Texts(), "", many=True), "curves are chosen by OpenSSL"),
    (Flag("authentication-skip-lookup", Bool(), ""), _NO_LOOKUP),
    (Flag("authentication-tolerate-lookup-failure", Bool(), ""), _NO_LOOKUP),
    (Flag("requestheader-client-ca-file", Text(), ""), _NO_PROXY),
    (Flag("requestheader-username-headers", Texts(), "", many=True), _NO_PROXY),
    (Flag("requestheader-uid-headers", Texts(), "", many=True), _NO_PROXY),
    (Flag("requestheader-group-headers", Texts(), "", many=True), _NO_PROXY),
    (Flag("requestheader-extra-headers-prefix", Texts(), "", many=True), _NO_PROXY),
    (Flag("requestheader-allowed-names", Texts(), "", many=True), _NO_PROXY),
    (Flag("show-hidden-metrics-for-version", Text(), ""), "no metrics are hidden"),
    (Flag("log-flush-frequency", Duration(), ""), _UNBUFFERED),
    (Flag("log-json-info-buffer-size", Text(), ""), _UNBUFFERED),
    (Flag("log-json-split-stream", Bool(), ""), _UNBUFFERED),
    (Flag("log-text-info-buffer-size", Text(), ""), _UNBUFFERED),
    (Flag("log-text-split-stream", Bool(), ""), _UNBUFFERED),
    (Flag("vmodule", Text(), ""), "the verbosity is that of --v everywhere"),
    (Flag("use-legacy-policy-config", Bool(), ""), _FILES_ONLY),
    (Flag("policy-configmap-namespace", Text(), ""), _FILES_ONLY),
)
"""Flags that are accepted, and why they change nothing."""

REFUSED: tuple[tuple[Flag, str], ...] = (
    (Flag("tls-sni-cert-key", Text(), "", many=True), "there is one certificate for all names"),
    (Flag("allow-metric-labels", Text(), "", many=True), "labels cannot be chosen"),
    (Flag("allow-metric-labels-manifest", Text(), ""), "labels cannot be chosen"),
    (Flag("policy-configmap", Text(), ""), f"{_FILES_ONLY}: mount it, and use --policy-config-file"),
    (Flag("emulated-version", Texts(), "", many=True), "pods are scheduled as by Kubernetes v1.36 only"),
    (Flag("min-compatibility-version", Texts(), "", many=True), "pods are scheduled as by Kubernetes v1.36 only"),
)
"""Flags that are known and cannot be honoured."""


def options() -> list[click.Parameter]:
    """All flags; those without effect are not in the help."""
    hidden = [flag for flag, _ in (*WITHOUT_EFFECT, *REFUSED)]
    return [*(flag.option() for flag in FLAGS), *(flag.option(hidden=True) for flag in hidden)]
