#!/usr/bin/env python3
"""Records the SNI of HAProxy's health checks, and which certificates they accept.

    bench/check_names.py HAPROXY TABLE

A line of TABLE contains the lines of a backend (separated by `;`), the options of its server, the SNI of its checks (`-`: none),
and whether they passed. The server's certificate is for `a.example`. crates/engine/tests/simulated/check_names reads it. Uses
loopback addresses only.
"""

import argparse
import asyncio
import os
import ssl
import subprocess
import tempfile

HOST = "127.10.0.4"
SEND = "option httpchk;http-check send hdr host "
RULES = [
    "",
    "option httpchk",
    SEND + "a.example",
    SEND + "b.example:8443",
    SEND + "192.0.2.1",
    SEND + "[2001:db8::1]:443",
    SEND + "%[str(a.example)]",
    "option httpchk GET / HTTP/1.1 a.example",
    "option httpchk GET / HTTP/1.1 a.example;http-check send hdr host b.example",
    "option httpchk;http-check connect ssl;http-check send hdr host a.example",
    "option httpchk;http-check connect ssl sni b.example;http-check send hdr host a.example",
    "option httpchk;http-check connect default;http-check send hdr host a.example",
    "option httpchk;http-check connect ssl sni a.example;http-check send hdr host b.example",
    "option tcp-check;tcp-check connect ssl",
    "option tcp-check;tcp-check connect ssl sni a.example",
    "option tcp-check;tcp-check connect default",
]
NAMES = [
    "", "check-sni a.example", "check-sni b.example", "check-sni-auto", "no-check-sni-auto", "sni str(a.example)", "sni str(b.example)",
    "no-sni-auto", "no-check-sni-auto check-sni a.example", "sni str(b.example) check-sni a.example", "no-sni-auto no-check-sni-auto",
    "sni req.hdr(host)",
]
VERIFY = ["verify none"] + ["verify required ca-file ca.pem" + host for host in ("", " verifyhost a.example", " verifyhost b.example")]


def openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)


def certificates(folder):
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3"]
    openssl(folder, "req", "-x509", *curve, "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem")
    openssl(folder, "req", "-x509", *curve, "-subj", "/CN=a.example", "-addext", "subjectAltName=DNS:a.example", "-addext",
            "basicConstraints=critical,CA:FALSE", "-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", "a.key", "-out", "a.pem")


async def listen(folder, asked):
    """A TLS server that answers every request and records the SNI of its clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(folder, "a.pem"), os.path.join(folder, "a.key"))
    context.sni_callback = lambda _, name, __: asked.add(name)

    async def serve(reader, writer):
        try:
            if await reader.read(1000):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
            writer.close()
        except (OSError, asyncio.CancelledError):
            pass
    return await asyncio.start_server(serve, HOST, 0, ssl=context)


async def states(path):
    """Returns for every backend whether its server is up, after all of them have been checked."""
    while True:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"show servers state\n")
        text = (await reader.read(-1)).decode()
        writer.close()
        rows = [line.split(" ") for line in text.splitlines() if " s " in line and not line.startswith("#")]
        if all(row[11] != "0" for row in rows):
            return {row[1]: row[5] == "2" for row in rows}
        await asyncio.sleep(0.5)


async def record(program, folder, rows):
    asked = [set() for _ in rows]
    servers = [await listen(folder, own) for own in asked]
    socket = os.path.join(folder, "s")
    text = f"global\n nbthread 1\n stats socket {socket}\ndefaults\n mode http\n" + "".join(
        f" timeout {name} 9s\n" for name in ("connect", "check", "client", "server"))
    for at, ((rules, own), server) in enumerate(zip(rows, servers)):
        port = server.sockets[0].getsockname()[1]
        lines = "".join(f" {line}\n" for line in rules.split(";") if line)
        own = own.replace("ca.pem", os.path.join(folder, "ca.pem"))
        text += f"backend b{at}\n{lines} server s {HOST}:{port} ssl check init-state down rise 1 fall 1 inter 2s {own}\n"
    config = os.path.join(folder, "a.cfg")
    with open(config, "w") as out:
        out.write(text)
    process = subprocess.Popen([program, "-db", "-f", config], stderr=subprocess.DEVNULL)
    try:
        # Each has been checked more than once by then.
        await asyncio.sleep(5)
        passed = await states(socket)
    finally:
        process.terminate()
        process.wait()
        for server in servers:
            server.close()
    names = [",".join(sorted(str(name or "-") for name in own)) for own in asked]
    return [(name, "up" if passed[f"b{at}"] else "down") for at, name in enumerate(names)]


async def run(options):
    rows = [(rules, (names + " " + verify).strip()) for rules in RULES for names in NAMES for verify in VERIFY]
    with tempfile.TemporaryDirectory() as folder, open(options.table, "w") as out:
        certificates(folder)
        out.write("# rules\toptions\tname\tstate\n")
        for begin in range(0, len(rows), 96):
            batch = rows[begin:begin + 96]
            for row, found in zip(batch, await record(options.haproxy, folder, batch)):
                out.write("\t".join(row + found) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("haproxy")
    parser.add_argument("table")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
