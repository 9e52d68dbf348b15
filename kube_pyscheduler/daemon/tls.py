"""The certificate of the secure port: given files, a pair in a directory, or one made on the spot and kept in memory.

Files are read again when they change; connections that are open keep what they have.
"""

from __future__ import annotations

import datetime
import os
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kube_pyscheduler.kit.verbosity import Log

log = Log(__name__)

PAIR_NAME = "kube-scheduler"
"""Base name of the files in ``--cert-dir``. Source: PairName in cmd/kube-scheduler/app/options/options.go."""

RELOAD_SECONDS = 10.0
"""Pause between two looks at the files. Upstream watches them, and looks once a minute besides."""

SELF_SIGNED_DAYS = 365
"""Source: GenerateSelfSignedCertKey in client-go/util/cert/cert.go."""

VERSIONS = {
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
"""Values of ``--tls-min-version``. Older ones are refused: OpenSSL does not speak them any more by default."""

CIPHERS = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
}
"""Go's names of the suites before TLS 1.3 → OpenSSL's. Those of 1.3 cannot be chosen, there or here."""

CIPHERS_1_3 = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})


_USAGE = x509.KeyUsage(
    digital_signature=True,
    key_encipherment=True,
    key_cert_sign=True,
    content_commitment=False,
    data_encipherment=False,
    key_agreement=False,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


class CertificateError(Exception):
    """There is no usable certificate, or an option is none of ours."""


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """``cert_file`` and ``key_file``: given together, or not at all. ``cert_dir``: where the pair is otherwise, made if
    missing; None: in memory. ``client_ca_file``: who may prove who they are by a certificate. ``min_version`` and
    ``cipher_suites``: Go's names; empty means the usual."""

    cert_file: Path | None = None
    key_file: Path | None = None
    cert_dir: Path | None = None
    client_ca_file: Path | None = None
    min_version: str = ""
    cipher_suites: Sequence[str] = ()


class ServingCertificate:
    """``context`` for the listener. Call ``refresh`` now and then. Raises CertificateError when made."""

    def __init__(self, options: TlsOptions, names: Sequence[str] = ("localhost", "127.0.0.1")) -> None:
        """``names``: host names and addresses that a certificate made here is for."""
        if (options.cert_file is None) != (options.key_file is None):
            raise CertificateError("--tls-cert-file and --tls-private-key-file must be given together")
        self.context = _context(options)
        self._files: tuple[Path, Path] | None = None
        self._client_ca = options.client_ca_file
        if options.cert_file is not None and options.key_file is not None:
            self._files = (options.cert_file, options.key_file)
        elif options.cert_dir is not None:
            self._files = _pair_in(options.cert_dir, names)
        else:
            with _file_of(self_signed(names)) as path:
                self.context.load_cert_chain(path)
        self._seen = self._state()
        self._load()

    def refresh(self) -> bool:
        """Read the files again if they changed; what cannot be used leaves the old certificate in force."""
        state = self._state()
        if state == self._seen:
            return False
        self._seen = state
        try:
            self._load()
        except CertificateError as error:
            log.error("Cannot use the changed serving certificate, going on with the old one", problem=str(error))
            return False
        log.info(1, "Loaded the changed serving certificate")
        return True

    def _load(self) -> None:
        if self._files is not None:
            cert, key = self._files
            try:
                # A new context first: half a pair must not end up in the live one.
                for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self.context):
                    context.load_cert_chain(cert, key, password=_refuse_password)
            except OSError as error:
                raise CertificateError(f"cannot use the certificate {cert} with the key {key}: {error}") from error
        if self._client_ca is not None:
            try:
                self.context.load_verify_locations(self._client_ca)
            except OSError as error:
                raise CertificateError(f"cannot use the authorities in {self._client_ca}: {error}") from error

    def _state(self) -> tuple[tuple[int, int], ...]:
        paths = [*(self._files or ()), *([self._client_ca] if self._client_ca else [])]
        return tuple(_identity(path) for path in paths)


def _refuse_password() -> str:
    """Asked for by OpenSSL, which would ask the terminal otherwise."""
    raise OSError("the key is encrypted")


def _identity(path: Path) -> tuple[int, int]:
    """Changes with the content; mounted Secrets are swapped through symbolic links, which ``stat`` follows."""
    try:
        stat = path.stat()
    except OSError:
        return (0, 0)
    return (stat.st_ino, stat.st_mtime_ns)


def _context(options: TlsOptions) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    if options.min_version and options.min_version not in VERSIONS:
        raise CertificateError(f"--tls-min-version: {options.min_version} is none of {', '.join(VERSIONS)}")
    context.minimum_version = VERSIONS[options.min_version or "VersionTLS12"]
    unknown = [suite for suite in options.cipher_suites if suite not in CIPHERS and suite not in CIPHERS_1_3]
    if unknown:
        raise CertificateError(
            f"--tls-cipher-suites: {', '.join(unknown)} not supported; there are {', '.join(CIPHERS)}"
        )
    chosen = [CIPHERS[suite] for suite in options.cipher_suites if suite in CIPHERS]
    if chosen:
        context.set_ciphers(":".join(chosen))
    if options.client_ca_file is not None:
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _pair_in(folder: Path, names: Sequence[str]) -> tuple[Path, Path]:
    """The pair in ``folder``; made there if neither file exists."""
    cert, key = folder / f"{PAIR_NAME}.crt", folder / f"{PAIR_NAME}.key"
    if not cert.exists() and not key.exists():
        pem = self_signed(names)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            key.touch(mode=0o600)
            key.write_bytes(pem[pem.index(b"-----BEGIN PRIVATE KEY") :])
            cert.write_bytes(pem[: pem.index(b"-----BEGIN PRIVATE KEY")])
        except OSError as error:
            raise CertificateError(f"cannot write a serving certificate to {folder}: {error}") from error
    return cert, key


def self_signed(names: Sequence[str]) -> bytes:
    """A certificate for ``names`` and its key, both PEM, in this order. RSA, because chosen cipher suites may ask for
    it. Source: GenerateSelfSignedCertKey in client-go/util/cert/cert.go."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    now = datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{names[0]}@{int(now.timestamp())}")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # An hour ago, because clocks differ.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=SELF_SIGNED_DAYS))
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_USAGE, critical=True)
        # Who trusts it as an authority may insist on this one, as Python does from 3.13 on.
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + private


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@contextmanager
def _file_of(content: bytes) -> Iterator[str]:
    """A path to ``content`` for as long as it is needed: OpenSSL reads keys from files only. Kept in memory where the
    system can, because the file system of a container may be read-only."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("serving-certificate")
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file.name
