"""Host ports in use, by protocol and port."""

from __future__ import annotations

from kube_pyscheduler.columns.pod_info import HostPort

ANY_ADDRESS = "0.0.0.0"


class HostPorts:
    """(protocol, port) → row → host address → pods that use it."""

    def __init__(self) -> None:
        self._used: dict[tuple[str, int], dict[int, dict[str, int]]] = {}

    def change(self, row: int, ports: tuple[HostPort, ...], times: int) -> None:
        """Take (+) or give back (−) ports on a row, as many times as ``times`` says."""
        for address, protocol, port in ports:
            rows = self._used.setdefault((protocol, port), {})
            addresses = rows.setdefault(row, {})
            addresses[address] = addresses.get(address, 0) + times
            if addresses[address] <= 0:
                del addresses[address]
            if not addresses:
                del rows[row]
            if not rows:
                del self._used[protocol, port]

    def take_away(self, row: int, ports: tuple[HostPort, ...]) -> list[tuple[HostPort, int]]:
        """Free ports on a row, whoever else uses them. Returns how many used those that were in use.

        Source: HostPortInfo.Remove in kube-scheduler/framework/types.go, which keeps sets.
        """
        freed = []
        for host_port in ports:
            address, protocol, port = host_port
            uses = self._used.get((protocol, port), {}).get(row, {}).get(address, 0)
            if uses:
                self.change(row, (host_port,), -uses)
                freed.append((host_port, uses))
        return freed

    def rows_using(self, protocol: str, port: int) -> dict[int, dict[str, int]]:
        """Rows where the port is in use, with the addresses. Not to be changed."""
        return self._used.get((protocol, port), {})


def conflicts(address: str, used: dict[str, int]) -> bool:
    """Whether a port wanted on ``address`` collides with its uses: the any-address collides with all.

    Source: HostPortInfo.CheckConflict in kube-scheduler/framework/types.go.
    """
    return bool(used) and (address == ANY_ADDRESS or ANY_ADDRESS in used or address in used)
