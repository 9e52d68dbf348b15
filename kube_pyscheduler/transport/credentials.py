"""Where the API server is and who we are there: kubeconfig or in-cluster files, read by the official client's loader.

The only importer of ``kubernetes``. That package is large, so it is imported when credentials are first read.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import os
import ssl
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from kube_pyscheduler.kit.clock import Clock, RealClock
from kube_pyscheduler.kit.verbosity import Log

log = Log(__name__)

REREAD_PERIOD: Final = 60.0
"""Seconds between two readings of files. The kubelet renews a token at 80 % of its life, ten minutes at least.
Source: client-go/transport/token_source.go."""

EXPIRY_MARGIN: Final = 60.0
"""Seconds before the end of a plugin's credential at which it is asked for another one."""

_EMPTY: Final = "the token is empty"

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class CredentialsError(Exception):
    """There is no usable configuration. The message says which file and why."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where to look: as kube-scheduler, a kubeconfig, else ``master`` alone without credentials, else in-cluster.

    ``kubeconfig`` is a path or several joined by the path separator, "" for none; ``master`` replaces the server's
    address; ``service_account`` is the folder of in-cluster files.
    """

    kubeconfig: str = ""
    master: str = ""
    service_account: Path = SERVICE_ACCOUNT


@dataclass(frozen=True, slots=True)
class Access:
    """One reading of the configuration.

    ``authorization`` is the whole header, "" for none. ``expires`` is in seconds since the epoch, None if unknown.
    ``plugin``: reading again may start a program, so it is not done without need. ``proxy`` is a URL or "".
    ``digest`` changes when a certificate or key changes.
    """

    server: str
    authorization: str = ""
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    verify: bool = True
    server_name: str = ""
    proxy: str = ""
    expires: float | None = None
    plugin: bool = False
    digest: str = ""

    def ssl_context(self) -> ssl.SSLContext | None:
        """A new TLS context, None for a plain server. Raises CredentialsError. Reads files."""
        if not self.server.startswith("https:"):
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file or None)
            # Clusters sign with authorities that lack the extensions which newer Pythons insist on.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if not self.verify:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if self.cert_file:
                context.load_cert_chain(self.cert_file, self.key_file or None)
        except OSError as error:
            raise CredentialsError(f"cannot use the certificates for {self.server}: {error}") from error
        return context


def load(source: Source) -> Access:
    """Read the configuration. Blocks: reads files, may run an exec plugin. Raises CredentialsError."""
    from kubernetes.client import Configuration
    from kubernetes.config import ConfigException

    loaded = Configuration(host="")
    where = source.kubeconfig or source.master or "in-cluster configuration"
    try:
        if source.kubeconfig:
            expires, plugin, own_proxy = _load_kubeconfig(source.kubeconfig, loaded)
        elif source.master:
            expires, plugin, own_proxy = None, False, False
        else:
            expires, plugin, own_proxy = _load_in_cluster(source.service_account, loaded)
        access = Access(
            server=_server(source.master or loaded.host),
            authorization=_authorization(loaded.api_key),
            ca_file=loaded.ssl_ca_cert or "",
            cert_file=loaded.cert_file or "",
            key_file=loaded.key_file or "",
            verify=bool(loaded.verify_ssl),
            server_name=loaded.tls_server_name or "",
            proxy=_proxy(source.master or loaded.host, loaded.proxy if own_proxy else None),
            expires=expires,
            plugin=plugin,
            digest=_digest(loaded.ssl_ca_cert, loaded.cert_file, loaded.key_file),
        )
    except CredentialsError as error:
        raise CredentialsError(f"{where}: {error}") from error.__cause__
    except (ConfigException, yaml.YAMLError, OSError) as error:
        raise CredentialsError(f"{where}: {error}") from error
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise CredentialsError(f"{where}: not of the form of a kubeconfig: {error}") from error
    if plugin and not access.authorization and not access.cert_file:
        raise CredentialsError(f"{where}: the credential plugin gave neither a token nor a certificate")
    return access


def _load_kubeconfig(paths: str, into: Any) -> tuple[float | None, bool, bool]:
    """Fill ``into``; when the credentials expire, whether a plugin gives them, whether a proxy is named."""
    from kubernetes.config import kube_config

    loaders: Any = kube_config
    present = [path for path in paths.split(os.pathsep) if path and Path(path).expanduser().is_file()]
    if not present:
        raise CredentialsError("no such file")
    config = loaders.KubeConfigMerger(os.pathsep.join(present)).config
    # Without a base path, relative file names are relative to the file that names them.
    loader = loaders.KubeConfigLoader(config_dict=config, config_base_path=None)
    loader.load_and_set(into)
    user_name = loader.current_context["context"].get("user")
    user = config["users"].get_with_name(user_name, safe=True) if user_name else None
    plugin = user is not None and ("exec" in user["user"] or "auth-provider" in user["user"])
    if user is not None and "tokenFile" in user["user"] and not _authorization(into.api_key):
        # As it is for a moment while somebody writes it; without a token we would be somebody else.
        raise CredentialsError(_EMPTY)
    expiry = getattr(loader, "expiry", None)
    return expiry.timestamp() if expiry else None, plugin, hasattr(loader, "proxy")


def _load_in_cluster(folder: Path, into: Any) -> tuple[float | None, bool, bool]:
    from kubernetes.config import incluster_config

    loaders: Any = incluster_config
    if not os.environ.get(loaders.SERVICE_HOST_ENV_NAME):
        raise CredentialsError("not inside a cluster: name a kubeconfig or the address of the API server")
    loader = loaders.InClusterConfigLoader(token_filename=str(folder / "token"), cert_filename=str(folder / "ca.crt"))
    loader.load_and_set(into)
    return None, False, False


def _server(address: str) -> str:
    """The server's URL without a trailing slash. A scheme may be missing, as in ``--master 127.0.0.1:8080``."""
    if not address:
        raise CredentialsError("the current context's cluster names no server")
    url = address if "://" in address else f"http://{address}"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CredentialsError(f"not the address of a server: {address}")
    return url.rstrip("/")


def _authorization(keys: dict[str, str]) -> str:
    """The Authorization header. The loaders say ``BearerToken`` since version 36, ``authorization`` before."""
    header = (keys.get("BearerToken") or keys.get("authorization") or "").strip()
    if header.lower() == "bearer":
        raise CredentialsError(_EMPTY)
    return header


def _proxy(server: str, configured: str | None) -> str:
    """The proxy for ``server``: the configured one, else the environment's unless that excludes the server or the
    server is on this machine. Source: useProxy in golang.org/x/net/http/httpproxy/proxy.go."""
    if configured is None:
        parts = urlsplit(server)
        if _is_here(parts.hostname or ""):
            return ""
        proxies = urllib.request.getproxies()
        configured = proxies.get(parts.scheme) or proxies.get("all") or ""
        if configured and parts.hostname and urllib.request.proxy_bypass(parts.netloc):
            return ""
    if configured and urlsplit(configured).scheme not in ("http", "https"):
        raise CredentialsError(f"a proxy must be http:// or https://, not {configured}")
    return configured


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _digest(*files: str | None) -> str:
    digest = hashlib.sha256()
    for file in files:
        content = Path(file).read_bytes() if file else b""
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


class Credentials:
    """The current reading, renewed in a thread: once a minute for files, near their end for a plugin's, after a 401."""

    def __init__(self, source: Source, access: Access, clock: Clock) -> None:
        self._source = source
        self.clock = clock
        self._reading: asyncio.Task[None] | None = None
        self.access = access
        self._read_at = clock.monotonic()
        self._due_at = self._next_reading()

    @classmethod
    async def read(cls, source: Source, *, clock: Clock | None = None) -> Credentials:
        """The first reading. Raises CredentialsError."""
        return cls(source, await asyncio.to_thread(load, source), clock or RealClock())

    @property
    def due(self) -> bool:
        """Whether it is time to read again."""
        return self.clock.monotonic() >= self._due_at

    async def renew(self, *, not_read_since: float | None = None) -> None:
        """Read again; what cannot be read stays as it was. Concurrent calls share one reading.

        With ``not_read_since`` (monotonic seconds) nothing is done if there was a reading later than that: after a 401
        it is the time at which the refused request was built.
        """
        if self._reading is None:
            if not_read_since is not None and self._read_at > not_read_since:
                return
            self._reading = asyncio.create_task(self._read_again(), name="credentials")
        await asyncio.shield(self._reading)

    async def _read_again(self) -> None:
        try:
            self.access = await asyncio.to_thread(load, self._source)
        except CredentialsError as error:
            log.error("Cannot renew the credentials, going on with the old ones", problem=str(error))
        finally:
            self._reading = None
            self._read_at = self.clock.monotonic()
            self._due_at = self._next_reading()

    def _next_reading(self) -> float:
        access = self.access
        if access.expires is not None:
            remaining = access.expires - self.clock.now()
            return self._read_at + max(REREAD_PERIOD, remaining - EXPIRY_MARGIN)
        return float("inf") if access.plugin else self._read_at + REREAD_PERIOD
