"""Writes ``kube-pyscheduler.yaml``: the chart with its default values, for clusters without Helm.

Run ``make manifests`` after a change of the chart; the tests compare.
"""

from __future__ import annotations

from pathlib import Path

from helm_python import Chart

HERE = Path(__file__).parent
CHART = HERE.parent / "charts" / "kube-pyscheduler"
MANIFEST = HERE / "kube-pyscheduler.yaml"
NAME = "kube-pyscheduler"

HEADER = f"""\
# kube-pyscheduler as a second scheduler: kubectl apply -f kube-pyscheduler.yaml
# Made from charts/kube-pyscheduler by `make manifests`; change the chart, not this file.
apiVersion: v1
kind: Namespace
metadata:
  name: {NAME}
"""


def rendered() -> str:
    """All objects of the chart with its default values, as one YAML stream."""
    parts = Chart.load(CHART).render(name=NAME, namespace=NAME)
    documents = [text.strip() for path, text in sorted(parts.items()) if path.endswith(".yaml") and text.strip()]
    stream = "\n---\n".join([HEADER.strip(), *documents])
    # The manifest is not managed by Helm, and carries no chart version.
    kept = [
        line
        for line in stream.splitlines()
        if not line.strip().startswith(("helm.sh/chart:", "app.kubernetes.io/managed-by:", "checksum/settings:"))
    ]
    return "\n".join(kept).replace("      annotations:\n    spec:", "    spec:") + "\n"


if __name__ == "__main__":
    MANIFEST.write_text(rendered(), encoding="utf-8")
