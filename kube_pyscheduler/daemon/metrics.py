"""Prometheus metrics under kube-scheduler's names; the only user of prometheus_client.

``Metrics`` is the observer of the scheduler and of the informers. What can be read off somebody's state (queue
lengths, cache sizes) is asked for at scrape time, so it cannot drift from the truth.

Source of names, texts, labels and buckets: pkg/scheduler/metrics/metrics.go and component-base/metrics/prometheus.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from kube_pyscheduler.daemon.series import Counter, Histogram, Labels, exponential_buckets

MAX_ATTEMPTS_LABEL = 15
"""From so many attempts on they share one label. Source: getAttemptsLabel in pkg/scheduler/schedule_one.go."""

_MILLISECONDS = exponential_buckets(0.001, 2, 15)
_TENTHS_OF_MILLISECONDS = exponential_buckets(0.0001, 2, 12)
_REQUEST_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_FINE = exponential_buckets(0.00001, 1.5, 20)

Gauge = Callable[[], Mapping[Labels, float]]
"""Current values by label values; ``{(): value}`` where there are no labels."""

_PULLED: dict[str, tuple[tuple[str, ...], str]] = {
    "scheduler_pending_pods": (
        ("queue",),
        "[STABLE] Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' means "
        "number of pods in backoffQ; 'unschedulable' means number of pods in unschedulablePods that the scheduler "
        "attempted to schedule and failed; 'gated' is the number of unschedulable pods that the scheduler never "
        "attempted to schedule because they are gated.",
    ),
    "scheduler_unschedulable_pods": (
        ("plugin", "profile"),
        "[BETA] The number of unschedulable pods broken down by plugin name. A pod will increment the gauge for all "
        "plugins that caused it to not schedule and so this metric have meaning only when broken down by plugin.",
    ),
    "scheduler_inflight_events": (
        ("event",),
        "[ALPHA] Number of events currently tracked in the scheduling queue.",
    ),
    "scheduler_cache_size": (
        ("type",),
        "[ALPHA] Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
    ),
    "scheduler_goroutines": (
        ("operation",),
        "[BETA] Number of running goroutines split by the work they do such as binding.",
    ),
    "leader_election_master_status": (
        ("name",),
        "[ALPHA] Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates "
        "master. 'name' is the string used to identify the lease. Please make sure to group by name.",
    ),
    "scheduler_config_info": (
        ("hash",),
        "Always 1; the label identifies the configuration in force.",
    ),
    "scheduler_config_automatic_reloads_total": (
        ("status",),
        "How often the configuration was read again, by whether it could be used.",
    ),
    "scheduler_config_automatic_reload_last_timestamp_seconds": (
        ("status",),
        "When that happened last, by whether it could be used.",
    ),
    "scheduler_build_info": (
        ("version", "decides_as"),
        "Always 1; the labels say which version runs, and as which version of Kubernetes it decides.",
    ),
    "scheduler_event_loop_lag_seconds": (
        (),
        "How late the event loop ran a timer, lately.",
    ),
    "scheduler_events_total": (
        ("result",),
        "Event objects: written, dropped because too many were waiting, or failed to be written.",
    ),
}
"""Those that end in ``_total`` are counters that somebody else keeps."""


class Metrics:
    """Counts what it is told; ``pull`` adds gauges; ``expose`` writes it all down.

    ``disabled``: names of metrics that are not exposed.
    """

    def __init__(self, disabled: Collection[str] = ()) -> None:
        self._attempts = Counter(
            "scheduler_schedule_attempts_total",
            "[STABLE] Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be "
            "scheduled, while 'error' means an internal scheduler problem.",
            ("result", "profile"),
        )
        self._attempt_seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "[STABLE] Scheduling attempt latency in seconds (scheduling algorithm + binding)",
            ("result", "profile"),
            _MILLISECONDS,
        )
        self._algorithm_seconds = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "[ALPHA] Scheduling algorithm latency in seconds",
            (),
            _MILLISECONDS,
        )
        self._event_seconds = Histogram(
            "scheduler_event_handling_duration_seconds",
            "[ALPHA] Event handling latency in seconds.",
            ("event",),
            _TENTHS_OF_MILLISECONDS,
        )
        self._victims = Histogram(
            "scheduler_preemption_victims",
            "[STABLE] Number of selected preemption victims",
            (),
            exponential_buckets(1, 2, 7),
        )
        self._preemptions = Counter(
            "scheduler_preemption_attempts_total",
            "[STABLE] Total preemption attempts in the cluster till now",
        )
        self._sli_seconds = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "[BETA] E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might "
            "involve multiple scheduling attempts.",
            ("attempts",),
            exponential_buckets(0.01, 2, 20),
        )
        self._pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "[STABLE] Number of attempts to successfully schedule a pod.",
            (),
            exponential_buckets(1, 2, 5),
        )
        self._after_flush = Counter(
            "scheduler_pod_scheduled_after_flush_total",
            "[ALPHA] Number of pods that were successfully scheduled after being flushed from unschedulablePods due to "
            "timeout. This metric helps detect potential queueing hint misconfigurations or event handling issues.",
        )
        self._point_seconds = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "[STABLE] Latency for running all plugins of a specific extension point.",
            ("extension_point", "status", "profile"),
            _TENTHS_OF_MILLISECONDS,
        )
        self._plugin_seconds = Histogram(
            "scheduler_plugin_execution_duration_seconds",
            "[ALPHA] Duration for running a plugin at a specific extension point.",
            ("plugin", "extension_point", "status"),
            _FINE,
        )
        self._hint_seconds = Histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "[ALPHA] Duration for running a queueing hint function of a plugin.",
            ("plugin", "event", "hint"),
            _FINE,
        )
        self._incoming = Counter(
            "scheduler_queue_incoming_pods_total",
            "[STABLE] Number of pods added to scheduling queues by event and queue type.",
            ("queue", "event"),
        )
        self._permit_seconds = Histogram(
            "scheduler_permit_wait_duration_seconds",
            "[BETA] Duration of waiting on permit.",
            ("result",),
            _MILLISECONDS,
        )
        self._decisions = Counter(
            "scheduler_decisions_total",
            "Decisions about a pod, whatever came of them.",
        )
        self._rows_judged = Counter(
            "scheduler_rows_judged_total",
            "Rows of the node table that were judged for decisions, instead of taking an answer that is still good.",
        )
        self._rows_filled = Counter(
            "scheduler_rows_filled_total",
            "Those of them in decisions that judged every node, as for the first pod of a template.",
        )
        self._conflicts = Counter(
            "scheduler_conflicts_total",
            "Decisions of others that collided with ours: a pod bound elsewhere, a node filled over its allocatable.",
            ("kind",),
        )
        self._lost_pods = Counter(
            "scheduler_lost_pods_total",
            "Pending pods that were in no queue and were taken in again.",
        )
        self._differences = Counter(
            "scheduler_cache_differences_total",
            "Differences between what the scheduler keeps and what the API server has, found by comparing with fresh "
            "lists.",
            ("what",),
        )
        self._malformed = Counter(
            "scheduler_malformed_objects_total",
            "Objects of the API server that could not be read.",
            ("kind",),
        )
        self._lists = Counter(
            "scheduler_informer_lists_total",
            "How often all objects of a kind were listed.",
            ("kind",),
        )
        self._failures = Counter(
            "scheduler_informer_failures_total",
            "Lists and watches that failed.",
            ("kind",),
        )
        self._requests = Counter(
            "rest_client_requests_total",
            "[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.",
            ("code", "method", "host"),
        )
        self._request_seconds = Histogram(
            "rest_client_request_duration_seconds",
            "[ALPHA] Request latency in seconds. Broken down by verb, and host.",
            ("verb", "host"),
            _REQUEST_SECONDS,
        )
        self._series: tuple[Counter | Histogram, ...] = tuple(
            value for value in vars(self).values() if isinstance(value, Counter | Histogram)
        )
        self._gauges: dict[str, Gauge] = {}
        self._disabled = frozenset(disabled)
        self._registry = CollectorRegistry(auto_describe=False)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)
        self._registry.register(self)

    # -- the scheduler's observer ------------------------------------------------------------------------------------

    def attempt(self, profile: str, result: str, seconds: float) -> None:
        key = (result, profile)
        self._attempts[key] += 1
        self._attempt_seconds.observe(key, seconds)

    def algorithm(self, seconds: float) -> None:
        self._algorithm_seconds.observe((), seconds)

    def decided(self, rows_judged: int, nodes: int) -> None:
        self._decisions[()] += 1
        self._rows_judged[()] += rows_judged
        if nodes and rows_judged >= nodes:
            self._rows_filled[()] += rows_judged

    def extension_point(self, profile: str, point: str, status: str, seconds: float) -> None:
        self._point_seconds.observe((point, status, profile), seconds)

    def plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        self._plugin_seconds.observe((plugin, point, status), seconds)

    def scheduled(self, attempts: int, sli_seconds: float | None, flushed: bool) -> None:
        if sli_seconds is not None:
            label = str(attempts) if attempts < MAX_ATTEMPTS_LABEL else f"{MAX_ATTEMPTS_LABEL}+"
            self._sli_seconds.observe((label,), sli_seconds)
        self._pod_attempts.observe((), attempts)
        if flushed:
            self._after_flush.add(())

    def queue_incoming(self, queue: str, event: str, count: int = 1) -> None:
        self._incoming[queue, event] += count

    def hint(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        self._hint_seconds.observe((plugin, event, hint), seconds)

    def event_handled(self, event: str, seconds: float) -> None:
        self._event_seconds.observe((event,), seconds)

    def permit_wait(self, result: str, seconds: float) -> None:
        self._permit_seconds.observe((result,), seconds)

    def preemption_attempted(self) -> None:
        self._preemptions.add(())

    def preemption(self, victims: int) -> None:
        self._victims.observe((), victims)

    def conflict(self, kind: str) -> None:
        self._conflicts.add((kind,))

    def lost_pod(self) -> None:
        self._lost_pods.add(())

    def difference(self, what: str) -> None:
        self._differences.add((what,))

    # -- the informers' observer -------------------------------------------------------------------------------------

    def malformed(self, kind: str) -> None:
        self._malformed.add((kind,))

    def listed(self, kind: str) -> None:
        self._lists.add((kind,))

    def failed(self, kind: str) -> None:
        self._failures.add((kind,))

    # -- the connections' observer -----------------------------------------------------------------------------------

    def request(self, code: str, method: str, host: str, seconds: float) -> None:
        self._requests[code, method, host] += 1
        self._request_seconds.observe((method, host), seconds)

    # -- publishing --------------------------------------------------------------------------------------------------

    def pull(self, name: str, gauge: Gauge) -> None:
        """Ask ``gauge`` for the values of ``name``, one of the gauges this module knows, at every scrape."""
        if name not in _PULLED:
            raise KeyError(name)
        self._gauges[name] = gauge

    def expose(self, accept: str = "") -> tuple[bytes, str]:
        """All metrics in the format that an Accept header asks for, and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    def collect(self) -> Iterator[Metric]:
        """For prometheus_client."""
        for series in self._series:
            if series.name not in self._disabled:
                yield _counter(series) if isinstance(series, Counter) else _histogram(series)
        for name, gauge in self._gauges.items():
            if name not in self._disabled:
                labels, help_ = _PULLED[name]
                make = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
                family = make(name, help_, labels=labels)
                for key, value in gauge().items():
                    family.add_metric(key, value)
                yield family


def _counter(series: Counter) -> Metric:
    family = CounterMetricFamily(series.name, series.help, labels=series.labels)
    for key, value in series.items():
        family.add_metric(key, value)
    return family


def _histogram(series: Histogram) -> Metric:
    family = HistogramMetricFamily(series.name, series.help, labels=series.labels)
    for key in series:
        buckets, total = series.cumulative(key)
        family.add_metric(key, buckets, total)
    return family
