#!/usr/bin/env python3
"""Compares the cost of many certificates in Weir and HAProxy: start, memory, and handshakes for the last one.

    bench/names.py WEIR HAPROXY [HAPROXY...] [--names 10000] [--rounds 3] [--handshakes 300]

Generates one self-signed certificate per name (a P-256 key for each hundred), and a crt-list with all of them. Every
program is started with it in alternating rounds. Measures the time and the processor time until a handshake for the last
name returns its certificate, the resident memory then, and the processor time of further such handshakes, next to
that with a single certificate. Prints medians of the rounds. Needs Python's `cryptography`. Linux only; nothing is changed outside
of a temporary folder.
"""

import argparse
import datetime
import os
import shutil
import socket
import ssl
import statistics
import sys
import tempfile
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from proxies import free_port, memory, serving, spent

BEGIN = datetime.datetime(2020, 1, 1)
END = datetime.datetime(2100, 1, 1)


def name(number):
    return f"site-{number}.example.org"


def make(folder, names):
    """Writes the certificates, and lists of all of them and of the last one."""
    for number in range(names):
        if number % 100 == 0:
            key = ec.generate_private_key(ec.SECP256R1())
            secret = key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name(number))])
        certificate = (
            x509.CertificateBuilder()
            .subject_name(own)
            .issuer_name(own)
            .public_key(key.public_key())
            .serial_number(number + 1)
            .not_valid_before(BEGIN)
            .not_valid_after(END)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name(number))]), critical=False)
            .sign(key, hashes.SHA256())
        )
        with open(os.path.join(folder, f"{number}.pem"), "wb") as out:
            out.write(certificate.public_bytes(serialization.Encoding.PEM) + secret)
    for file, numbers in (("all.list", range(names)), ("one.list", [names - 1])):
        with open(os.path.join(folder, file), "w", encoding="ascii") as out:
            out.writelines(f"{folder}/{number}.pem {name(number)}\n" for number in numbers)


def configuration(port, list_of):
    return (
        "global\n    nbthread 1\n    maxconn 100\ndefaults\n    mode http\n    timeout connect 5s\n"
        "    timeout client 5s\n    timeout server 5s\nlisten proxy\n"
        f"    bind 127.0.0.1:{port} ssl crt-list {list_of} no-tls-tickets\n    http-request return status 200\n"
    )


def shake(port, wanted):
    """Performs a handshake; returns False if nothing listens yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(("127.0.0.1", port), 30) as raw:
            with context.wrap_socket(raw, server_hostname=wanted) as secure:
                shown = secure.getpeercert(True)
    except ConnectionRefusedError:
        return False
    if wanted.encode() not in shown:
        sys.exit(f"another certificate than that of {wanted}")
    return True


def run(program, folder, file, options):
    """Returns seconds and processor seconds to the first handshake, memory in KB, and microseconds of processor time per handshake."""
    port, wanted = free_port(), name(options.names - 1)
    began = time.monotonic()
    text = configuration(port, os.path.join(folder, file))
    with serving(program, text, folder, lambda: shake(port, wanted)) as process:
        started, processor = time.monotonic() - began, spent(process.pid)
        resident = memory(process.pid, "VmRSS")
        before = spent(process.pid)
        for _ in range(options.handshakes):
            shake(port, wanted)
        each = (spent(process.pid) - before) / max(options.handshakes, 1)
        return started, processor, resident, each * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--names", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--handshakes", type=int, default=300)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="weir-names-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    try:
        make(folder, options.names)
        found = {(program, file): [] for program in options.programs for file in ("all.list", "one.list")}
        for _ in range(options.rounds):
            for (program, file), rounds in found.items():
                rounds.append(run(program, folder, file, options))
        print("| program | names | start, s | processor, s | memory, MB | a handshake, µs of processor time |")
        print("|---|---|---|---|---|---|")
        for (program, file), rounds in found.items():
            started, processor, resident, each = (statistics.median(column) for column in zip(*rounds))
            names = f"{options.names:,}" if file == "all.list" else "1"
            print(
                f"| {os.path.basename(program)} | {names} | {started:.2f} | {processor:.2f} | {resident / 1024:.1f} | {each:.0f} |"
            )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
