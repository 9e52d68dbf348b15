from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from kube_pyscheduler.daemon.metrics import Metrics
from kube_pyscheduler.scheduler.ports import Observer

PROFILE = "kube-pyscheduler"


def samples(metrics: Metrics) -> list[Sample]:
    body, content_type = metrics.expose()
    assert content_type.startswith("text/plain; version=0.0.4")
    return [sample for family in text_string_to_metric_families(body.decode()) for sample in family.samples]


def value(metrics: Metrics, name: str, **labels: str) -> float:
    (found,) = (sample.value for sample in samples(metrics) if sample.name == name and sample.labels == labels)
    return found


def names(metrics: Metrics) -> set[str]:
    return {sample.name for sample in samples(metrics)}


def test_it_is_the_schedulers_observer() -> None:
    observer: Observer = Metrics()
    observer.attempt(PROFILE, "scheduled", 0.003)


def test_an_attempt_is_counted_and_timed() -> None:
    metrics = Metrics()
    metrics.attempt(PROFILE, "scheduled", 0.003)
    metrics.attempt(PROFILE, "scheduled", 20)
    metrics.attempt(PROFILE, "unschedulable", 0.001)
    labels = {"result": "scheduled", "profile": PROFILE}
    assert value(metrics, "scheduler_schedule_attempts_total", **labels) == 2
    duration = "scheduler_scheduling_attempt_duration_seconds"
    assert value(metrics, f"{duration}_count", **labels) == 2
    assert value(metrics, f"{duration}_sum", **labels) == pytest.approx(20.003)
    assert value(metrics, f"{duration}_bucket", le="0.002", **labels) == 0
    assert value(metrics, f"{duration}_bucket", le="0.004", **labels) == 1
    assert value(metrics, f"{duration}_bucket", le="16.384", **labels) == 1
    assert value(metrics, f"{duration}_bucket", le="+Inf", **labels) == 2
    assert value(metrics, f"{duration}_bucket", le="0.001", result="unschedulable", profile=PROFILE) == 1


def test_a_scheduled_pod_is_filed_under_its_attempts() -> None:
    metrics = Metrics()
    metrics.scheduled(1, 0.02, False)
    metrics.scheduled(15, 100, True)
    metrics.scheduled(99, 200, False)
    metrics.scheduled(2, None, False)
    sli = "scheduler_pod_scheduling_sli_duration_seconds_count"
    assert value(metrics, sli, attempts="1") == 1
    assert value(metrics, sli, attempts="15+") == 2
    assert not any(sample.labels.get("attempts") == "2" for sample in samples(metrics))
    assert value(metrics, "scheduler_pod_scheduling_attempts_count") == 4
    assert value(metrics, "scheduler_pod_scheduling_attempts_bucket", le="1") == 1
    assert value(metrics, "scheduler_pod_scheduled_after_flush_total") == 1


def test_everything_else_has_kube_schedulers_labels() -> None:
    metrics = Metrics()
    metrics.algorithm(0.5)
    metrics.extension_point(PROFILE, "Filter", "Success", 0.0002)
    metrics.plugin("NodeName", "Filter", "Success", 0.00001)
    metrics.queue_incoming("active", "PodAdd", 3)
    metrics.hint("NodeName", "NodeAdd", "Queue", 0.00002)
    metrics.event_handled("NodeAdd", 0.05)
    metrics.permit_wait("rejected", 1)
    metrics.preemption_attempted()
    metrics.preemption(3)
    assert value(metrics, "scheduler_scheduling_algorithm_duration_seconds_sum") == 0.5
    point = {"extension_point": "Filter", "status": "Success", "profile": PROFILE}
    assert value(metrics, "scheduler_framework_extension_point_duration_seconds_bucket", le="0.0002", **point) == 1
    plugin = {"plugin": "NodeName", "extension_point": "Filter", "status": "Success"}
    assert value(metrics, "scheduler_plugin_execution_duration_seconds_bucket", le="1e-05", **plugin) == 1
    assert value(metrics, "scheduler_queue_incoming_pods_total", queue="active", event="PodAdd") == 3
    hint = {"plugin": "NodeName", "event": "NodeAdd", "hint": "Queue"}
    assert value(metrics, "scheduler_queueing_hint_execution_duration_seconds_count", **hint) == 1
    assert value(metrics, "scheduler_event_handling_duration_seconds_sum", event="NodeAdd") == 0.05
    assert value(metrics, "scheduler_permit_wait_duration_seconds_count", result="rejected") == 1
    assert value(metrics, "scheduler_preemption_attempts_total") == 1
    assert value(metrics, "scheduler_preemption_victims_sum") == 3


def test_what_only_we_count() -> None:
    metrics = Metrics()
    metrics.conflict("bound_elsewhere")
    metrics.lost_pod()
    metrics.malformed("Pod")
    metrics.listed("Node")
    metrics.failed("Node")
    assert value(metrics, "scheduler_conflicts_total", kind="bound_elsewhere") == 1
    assert value(metrics, "scheduler_lost_pods_total") == 1
    assert value(metrics, "scheduler_malformed_objects_total", kind="Pod") == 1
    assert value(metrics, "scheduler_informer_lists_total", kind="Node") == 1
    assert value(metrics, "scheduler_informer_failures_total", kind="Node") == 1


def test_rows_of_first_passes_are_told_apart() -> None:
    metrics = Metrics()
    for rows in (700, 3, 0):
        metrics.decided(rows, 100)
    assert value(metrics, "scheduler_decisions_total") == 3
    assert value(metrics, "scheduler_rows_judged_total") == 703
    assert value(metrics, "scheduler_rows_filled_total") == 700


def test_metrics_without_labels_are_there_before_anything_happens() -> None:
    before = names(Metrics())
    assert {
        "scheduler_preemption_attempts_total",
        "scheduler_scheduling_algorithm_duration_seconds_count",
        "scheduler_pod_scheduling_attempts_count",
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
    } <= before
    assert "scheduler_schedule_attempts_total" not in before


def test_bc_62_gauges_are_read_at_every_scrape() -> None:
    metrics = Metrics()
    pending: dict[tuple[str, ...], float] = {("active",): 0.0, ("unschedulable",): 4.0}
    metrics.pull("scheduler_pending_pods", lambda: pending)
    assert value(metrics, "scheduler_pending_pods", queue="unschedulable") == 4
    assert value(metrics, "scheduler_pending_pods", queue="active") == 0
    pending["unschedulable",] = 3.0
    assert value(metrics, "scheduler_pending_pods", queue="unschedulable") == 3


def test_only_known_gauges_can_be_pulled() -> None:
    with pytest.raises(KeyError):
        Metrics().pull("scheduler_made_up", dict)


def test_metrics_can_be_disabled() -> None:
    metrics = Metrics(disabled={"scheduler_preemption_attempts_total", "scheduler_cache_size"})
    metrics.preemption(1)
    metrics.pull("scheduler_cache_size", lambda: {("nodes",): 1.0})
    assert not {"scheduler_preemption_attempts_total", "scheduler_cache_size"} & names(metrics)
    assert "scheduler_preemption_victims_count" in names(metrics)


def test_help_says_how_stable_a_metric_is() -> None:
    text = Metrics().expose()[0].decode()
    assert "# HELP scheduler_preemption_victims [STABLE] Number of selected preemption victims\n" in text
    assert "# TYPE scheduler_preemption_victims histogram\n" in text


def test_open_metrics_is_spoken_on_demand() -> None:
    body, content_type = Metrics().expose("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")
