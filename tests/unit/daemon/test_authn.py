from __future__ import annotations

import datetime
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kube_pyscheduler.daemon.authn import Access, DelegatingGuard, ExpiringCache, GuardOptions, User
from kube_pyscheduler.daemon.health import Health
from kube_pyscheduler.daemon.metrics import Metrics
from kube_pyscheduler.daemon.serving import Listener, make_app
from kube_pyscheduler.daemon.tls import ServingCertificate, TlsOptions
from kube_pyscheduler.kit.clock import FakeClock

READER = User("system:serviceaccount:monitoring:prometheus", "u-1", ("system:serviceaccounts",), {"pod": ["p"]})
WRITER = User("somebody")
ROOT = User("root", groups=("system:masters",))


class Reviews:
    """What an API server would say: it knows three tokens, and lets one user read metrics."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.accesses: list[tuple[User, str, str]] = []
        self.broken = False
        self.allowed = True

    async def token(self, token: str) -> User | None:
        self.tokens.append(token)
        if self.broken:
            raise ConnectionError("no route to host")
        return {"reader": READER, "writer": WRITER, "root": ROOT}.get(token)

    async def access(self, user: User, verb: str, path: str) -> Access:
        self.accesses.append((user, verb, path))
        if self.broken:
            raise ConnectionError("no route to host")
        if self.allowed and user.name in (READER.name, "certified") and (verb, path) == ("get", "/metrics"):
            return Access(True)
        return Access(False, "no RBAC rule")


class Secure:
    """A guarded server and a client of it."""

    def __init__(self, reviews: Reviews, clock: FakeClock, session: aiohttp.ClientSession) -> None:
        self.reviews = reviews
        self.clock = clock
        self._session = session

    async def get(self, path: str, token: str = "", header: str = "") -> tuple[int, Any]:
        headers = {"Authorization": header or f"Bearer {token}"} if token or header else {}
        async with self._session.get(path, headers=headers) as response:
            if response.content_type == "application/json":
                return response.status, await response.json()
            return response.status, await response.text()


@asynccontextmanager
async def secure(
    options: GuardOptions | None = None, tls: TlsOptions | None = None, client: ssl.SSLContext | None = None
) -> AsyncIterator[Secure]:
    reviews, clock = Reviews(), FakeClock()
    guard = DelegatingGuard(reviews.token, reviews.access, clock, options or GuardOptions())
    listener = Listener(make_app(Health({"healthz": (), "readyz": ()}), Metrics(), guard=guard))
    host, port = await listener.start("127.0.0.1", 0, tls=ServingCertificate(tls or TlsOptions()).context)
    if client is None:
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    try:
        connector = aiohttp.TCPConnector(ssl=client)
        async with aiohttp.ClientSession(f"https://{host}:{port}", connector=connector) as session:
            yield Secure(reviews, clock, session)
    finally:
        await listener.stop()


async def test_a_token_that_may_reads_metrics() -> None:
    async with secure() as server:
        status, text = await server.get("/metrics", "reader")
        assert status == 200
        assert "scheduler_" in text
        assert server.reviews.accesses == [(READER, "get", "/metrics")]


@pytest.mark.parametrize("header", ["", "Bearer nobody", "Bearer ", "Basic cmVhZGVy", "reader"])
async def test_without_a_good_token_it_is_401(header: str) -> None:
    async with secure() as server:
        status, body = await server.get("/metrics", header=header)
        assert status == 401
        assert (body["kind"], body["reason"], body["code"]) == ("Status", "Unauthorized", 401)
        assert server.reviews.accesses == []


async def test_a_token_that_may_not_is_403_with_a_reason() -> None:
    async with secure() as server:
        status, body = await server.get("/metrics", "writer")
        assert status == 403
        assert body["message"] == 'forbidden: User "somebody" cannot get path "/metrics": no RBAC rule'
        assert (body["kind"], body["reason"], body["code"]) == ("Status", "Forbidden", 403)


async def test_rights_are_per_path() -> None:
    async with secure() as server:
        assert (await server.get("/configz", "reader"))[0] == 403
        assert (await server.get("/nowhere", "root"))[0] == 404


async def test_superusers_may_do_anything() -> None:
    async with secure() as server:
        assert (await server.get("/metrics", "root"))[0] == 200
        assert server.reviews.accesses == []


@pytest.mark.parametrize("path", ["/healthz", "/healthz/ping", "/readyz", "/readyz?verbose"])
async def test_health_needs_no_token(path: str) -> None:
    async with secure() as server:
        assert (await server.get(path))[0] == 200
        assert server.reviews.tokens == []


async def test_health_can_be_guarded_too() -> None:
    async with secure(GuardOptions(always_allowed=["/readyz"])) as server:
        assert (await server.get("/healthz"))[0] == 401
        assert (await server.get("/readyz"))[0] == 200
        assert (await server.get("/readyz/ping"))[0] == 401


async def test_answers_are_kept_for_ten_seconds() -> None:
    async with secure() as server:
        for _ in range(3):
            assert (await server.get("/metrics", "reader"))[0] == 200
            assert (await server.get("/metrics", "nobody"))[0] == 401
        assert server.reviews.tokens == ["reader", "nobody"]
        assert len(server.reviews.accesses) == 1
        server.reviews.allowed = False
        server.clock.advance(9.9)
        assert (await server.get("/metrics", "reader"))[0] == 200
        server.clock.advance(0.2)
        assert (await server.get("/metrics", "reader"))[0] == 403
        server.reviews.allowed = True
        assert (await server.get("/metrics", "reader"))[0] == 403
        server.clock.advance(10)
        assert (await server.get("/metrics", "reader"))[0] == 200


async def test_an_api_server_that_does_not_answer_lets_nobody_in_and_is_asked_again() -> None:
    async with secure() as server:
        server.reviews.broken = True
        assert (await server.get("/metrics", "reader"))[0] == 401
        server.reviews.broken = False
        assert (await server.get("/metrics", "reader"))[0] == 200
        server.clock.advance(11)
        assert (await server.get("/nowhere", "reader"))[0] == 403
        server.reviews.broken = True
        assert await server.get("/metrics/resources", "reader") == (
            500,
            'Internal Server Error: "/metrics/resources"\n',
        )


def test_the_cache_is_bounded() -> None:
    cache: ExpiringCache[int] = ExpiringCache(FakeClock(), size=2)
    for key in range(3):
        cache.put(key, key, 10)
    assert [cache.get(key) for key in range(3)] == [None, 1, 2]


async def test_a_client_certificate_counts_as_well(tmp_path: Path) -> None:
    ca_file, client_file = _authority_and_client(tmp_path)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_cert_chain(client_file)
    tls = TlsOptions(client_ca_file=ca_file)
    async with secure(tls=tls, client=client) as server:
        assert (await server.get("/metrics"))[0] == 200
        user, _, _ = server.reviews.accesses[0]
        assert user == User("certified", groups=("team", "system:authenticated"))
    async with secure(tls=tls) as server:
        assert (await server.get("/metrics"))[0] == 401
        assert (await server.get("/metrics", "reader"))[0] == 200


def _authority_and_client(folder: Path) -> tuple[Path, Path]:
    """Files of a certificate authority, and of a certificate with its key that it signed for ``certified``."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "team"),
            x509.NameAttribute(NameOID.COMMON_NAME, "certified"),
        ]
    )
    ca = _certificate(ca_name, ca_key, ca_name, ca_key).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    leaf = _certificate(name, key, ca_name, ca_key).add_extension(
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
    )
    ca_file, client_file = folder / "ca.crt", folder / "client.pem"
    ca_file.write_bytes(ca.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    client_file.write_bytes(leaf.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM) + private)
    return ca_file, client_file


def _certificate(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, issuer: x509.Name, issuer_key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
