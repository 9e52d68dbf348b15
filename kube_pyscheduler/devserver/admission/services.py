"""Defaults, addresses and ports of Services.

Source: SetDefaults_Service in pkg/apis/core/v1/defaults.go and pkg/registry/core/service/storage.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from kube_pyscheduler.devserver.problems import Problems
from kube_pyscheduler.devserver.resources import builtin
from kube_pyscheduler.devserver.store import Store

Object = dict[str, Any]

SERVICES = builtin("services")
CLUSTER_NETWORK = ipaddress.ip_network("10.96.0.0/12")
NODE_PORTS = range(30000, 32768)


def default_service(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    kind = spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port")
    if kind != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def admit_service(store: Store, obj: Object) -> None:
    """Give a new Service a cluster address and node ports."""
    spec = obj["spec"]
    if spec["type"] == "ExternalName":
        return
    used = [other["spec"] for other in store.list_objects(SERVICES)]
    if not spec.get("clusterIP"):
        taken = {other.get("clusterIP") for other in used}
        spec["clusterIP"] = next(str(ip) for ip in CLUSTER_NETWORK.hosts() if str(ip) not in taken)
    spec["clusterIPs"] = [spec["clusterIP"]]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        ports = {port.get("nodePort") for other in used for port in other.get("ports") or ()}
        for port in spec.get("ports") or ():
            if not port.get("nodePort"):
                port["nodePort"] = next(number for number in NODE_PORTS if number not in ports)
            ports.add(port["nodePort"])


def keep_addresses(new: Object, old: Object) -> None:
    """An update that does not mention the allocated address keeps it."""
    for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if key in old["spec"] and new["spec"]["type"] != "ExternalName":
            new["spec"].setdefault(key, old["spec"][key])


def check_service(obj: Object, problems: Problems) -> None:
    spec = obj["spec"]
    problems.one_of("spec.type", spec["type"], ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"))
    ports = spec.get("ports") or ()
    if not ports and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
        problems.required("spec.ports")
    for index, port in enumerate(ports):
        if not 0 < port.get("port", 0) < 65536:
            problems.invalid(f"spec.ports[{index}].port", port.get("port", 0), "must be between 1 and 65535, inclusive")
        if len(ports) > 1 and not port.get("name"):
            problems.required(f"spec.ports[{index}].name")


def check_service_update(new: Object, old: Object, problems: Problems) -> None:
    before, after = old["spec"].get("clusterIP"), new["spec"].get("clusterIP")
    if before and after != before and new["spec"]["type"] != "ExternalName":
        problems.invalid("spec.clusterIPs[0]", [after], "may not change once set")
