from __future__ import annotations

import asyncio
import ssl
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from kube_pyscheduler.daemon.tls import CIPHERS, CertificateError, ServingCertificate, TlsOptions, self_signed


@asynccontextmanager
async def listening(context: ssl.SSLContext) -> AsyncIterator[int]:
    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def served_by(context: ssl.SSLContext, *, trust: bytes | None = None, **options: ssl.TLSVersion) -> bytes:
    """The certificate a client gets; ``trust``: PEM that it must verify against."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if trust is None:
        client.check_hostname = False
        client.verify_mode = ssl.CERT_NONE
    else:
        client.load_verify_locations(cadata=trust.decode())
        client.verify_flags |= ssl.VERIFY_X509_STRICT
    if "maximum" in options:
        client.maximum_version = options["maximum"]
    async with listening(context) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname="localhost")
        certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        assert isinstance(certificate, bytes)
        return certificate


def write_pair(folder: Path, pem: bytes, name: str = "tls") -> tuple[Path, Path]:
    cert, key = folder / f"{name}.crt", folder / f"{name}.key"
    split = pem.index(b"-----BEGIN PRIVATE KEY")
    cert.write_bytes(pem[:split])
    key.write_bytes(pem[split:])
    return cert, key


def der(pem: bytes) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem[: pem.index(b"-----BEGIN PRIVATE KEY")].decode())


async def test_without_files_a_certificate_is_made_for_localhost() -> None:
    certificate = x509.load_der_x509_certificate(await served_by(ServingCertificate(TlsOptions()).context))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


async def test_a_client_can_verify_what_was_made(tmp_path: Path) -> None:
    pem = self_signed(("localhost",))
    certificate = ServingCertificate(TlsOptions(*write_pair(tmp_path, pem)))
    assert await served_by(certificate.context, trust=pem) == der(pem)


async def test_given_files_are_served_and_read_again_when_they_change(tmp_path: Path) -> None:
    old, new = self_signed(("localhost",)), self_signed(("localhost",))
    cert, key = write_pair(tmp_path, old)
    certificate = ServingCertificate(TlsOptions(cert, key))
    assert await served_by(certificate.context) == der(old)
    assert not certificate.refresh()
    for path in write_pair(tmp_path, new, "new"):
        path.rename(tmp_path / f"tls{path.suffix}")
    assert certificate.refresh()
    assert await served_by(certificate.context) == der(new)


async def test_what_cannot_be_used_leaves_the_old_certificate(tmp_path: Path) -> None:
    pem = self_signed(("localhost",))
    cert, key = write_pair(tmp_path, pem)
    certificate = ServingCertificate(TlsOptions(cert, key))
    other = tmp_path / "other.key"
    other.write_bytes(self_signed(("localhost",)))
    other.rename(key)
    assert not certificate.refresh()
    key.unlink()
    assert not certificate.refresh()
    assert await served_by(certificate.context) == der(pem)


def test_no_terminal_is_asked_for_the_password_of_a_key(tmp_path: Path) -> None:
    pem = self_signed(("localhost",))
    cert, key = write_pair(tmp_path, pem)
    secret = serialization.BestAvailableEncryption(b"secret")
    clear = serialization.load_pem_private_key(key.read_bytes(), None)
    key.write_bytes(
        clear.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, secret)
    )
    with pytest.raises(CertificateError, match="the key is encrypted"):
        ServingCertificate(TlsOptions(cert, key))


async def test_a_directory_gets_a_pair_once(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    first = await served_by(ServingCertificate(TlsOptions(cert_dir=folder)).context)
    assert stat.S_IMODE((folder / "kube-scheduler.key").stat().st_mode) == 0o600
    assert await served_by(ServingCertificate(TlsOptions(cert_dir=folder)).context) == first


async def test_the_oldest_version_and_the_suites_can_be_chosen() -> None:
    context = ServingCertificate(TlsOptions(min_version="VersionTLS13")).context
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        await served_by(context, maximum=ssl.TLSVersion.TLSv1_2)
    suites = ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256")
    chosen = ServingCertificate(TlsOptions(cipher_suites=suites)).context
    old_style = [cipher["name"] for cipher in chosen.get_ciphers() if cipher["protocol"] != "TLSv1.3"]
    assert old_style == ["ECDHE-RSA-AES256-GCM-SHA384"]
    assert await served_by(chosen, maximum=ssl.TLSVersion.TLSv1_2)


def test_all_suites_that_can_be_named_exist() -> None:
    assert ServingCertificate(TlsOptions(cipher_suites=tuple(CIPHERS))).context.get_ciphers()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (TlsOptions(cert_file=Path("a")), "must be given together"),
        (
            TlsOptions(cert_file=Path("/nowhere/a"), key_file=Path("/nowhere/b")),
            "cannot use the certificate /nowhere/a with the key /",
        ),
        (TlsOptions(min_version="VersionTLS10"), "VersionTLS10 is none of VersionTLS12, VersionTLS13"),
        (TlsOptions(cipher_suites=["TLS_RSA_WITH_RC4_128_SHA"]), "TLS_RSA_WITH_RC4_128_SHA not supported"),
        (TlsOptions(client_ca_file=Path("/nowhere/ca")), "cannot use the authorities in /nowhere/ca: .*No such file"),
        (TlsOptions(cert_dir=Path("/proc/nowhere")), "cannot write a serving certificate"),
    ],
)
def test_what_cannot_be_served_is_said(options: TlsOptions, problem: str) -> None:
    with pytest.raises(CertificateError, match=problem):
        ServingCertificate(options)
