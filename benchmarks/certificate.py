"""A certificate for this machine's own address, made when somebody asks for it. Needs `cryptography`."""

from __future__ import annotations

import datetime
import ipaddress


def make_certificate() -> bytes:
    """Return a fresh private key and its self-signed certificate (127.0.0.1, provider.example) in PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "bardo tests")])
    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("provider.example")]
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return private + made.public_bytes(serialization.Encoding.PEM)
