"""Small objects as a server sends them."""

from typing import Any


def pod(
    name: str = "p", version: int | str = 1, *, uid: str = "", node: str | None = None, **spec: Any
) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": str(version)},
        "spec": {"nodeName": node, "containers": [], **spec},
    }


def malformed(obj: dict[str, Any]) -> dict[str, Any]:
    """The same object with tolerations of a wrong type."""
    return {**obj, "spec": {**obj["spec"], "tolerations": "all"}}


def event(kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": obj}


def bookmark(version: int | str) -> dict[str, Any]:
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)}})


def pod_list(*pods: dict[str, Any], version: int | str = 10, continue_token: str = "") -> dict[str, Any]:
    return {
        "kind": "PodList",
        "metadata": {"resourceVersion": str(version), "continue": continue_token},
        "items": list(pods),
    }
