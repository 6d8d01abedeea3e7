#!/usr/bin/env python3
"""Records what a listening address makes of the first bytes of a connection: HTTP/1, HTTP/2, or an error.

    bench/protocols.py PROGRAM TABLE [--compare]

Listening addresses differ in TLS, `proto`, `option disable-h2-upgrade` and in TCP mode with `switch-mode`; clients differ in the
protocols that they offer by ALPN, and in what they send first. A line of TABLE is an address, the client's ALPN, the scene and its
bytes (`|` between parts that are sent one after the other, `$` for the end of the client's direction); then `h2`, statuses of HTTP/1 or
`-` for the answer, `now`, `late` for the moment of the end (`late`: not before `timeout http-request`; `open`: the client had to end it),
and the log line's termination state, status, version and request, or `-` where there is no line.
crates/engine/tests/simulated/protocols/ reads it. With --compare, lines of TABLE that PROGRAM answers otherwise are printed. Uses
loopback addresses only.
"""

import argparse
import asyncio
import re
import ssl
import subprocess
import sys
import tempfile

from proxies import free_port, listens

LIMIT = 1000
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\0\0\0\4\0\0\0\0\0"
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"

CONFIGURATION = """
global
    log 127.0.0.1:{log} local0
defaults
    mode http
    log global
    log-format "%ci %ts %ST %HV %{{+Q}}r"
    error-log-format "%ci %ts %ST %HV %{{+Q}}r"
    timeout client 10s
    timeout connect 10s
    timeout server 10s
    timeout http-request {limit}ms
"""

TLS = "ssl crt {folder}/crt alpn h2,http/1.1"
SWITCH = "mode tcp\n    tcp-request content switch-mode http"

# Name, `bind` options, other lines.
ADDRESSES = [
    ("clear", "", ""),
    ("clear/h1", "proto h1", ""),
    ("clear/h2", "proto h2", ""),
    ("clear/off", "", "option disable-h2-upgrade"),
    ("clear/off/h2", "proto h2", "option disable-h2-upgrade"),
    ("clear/probes", "", "option http-ignore-probes"),
    ("clear/probes/h2", "proto h2", "option http-ignore-probes"),
    ("tls", TLS, ""),
    ("tls/h1", f"{TLS} proto h1", ""),
    ("tls/h2", f"{TLS} proto h2", ""),
    ("tls/off", TLS, "option disable-h2-upgrade"),
    ("switch", "", f"{SWITCH} if TRUE"),
    ("switch/h1", "", f"{SWITCH} proto h1 if TRUE"),
    ("switch/h2", "", f"{SWITCH} proto h2 if TRUE"),
]


def broken(at):
    return PREFACE[:at] + b"x" + PREFACE[at + 1:]


# Name, parts with which the client sends bytes, and whether it closes its direction then.
SCENES = [
    ("silence", [], False),
    ("end", [], True),
    ("request", [REQUEST], False),
    ("request-in-pieces", [REQUEST[:1], REQUEST[1:]], False),
    ("request-begun", [REQUEST[:2]], False),
    ("post-begun", [b"P"], False),
    ("post-in-pieces", [b"P", b"OST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"], False),
    ("preface", [PREFACE + SETTINGS], False),
    ("preface-alone", [PREFACE], False),
    ("preface-in-pieces", [PREFACE[:9], PREFACE[9:20], PREFACE[20:] + SETTINGS], False),
    ("hello", [bytes.fromhex("16030100c8010000c40303") + b"\1" * 20], False),
    ("junk", [b"\xff\x00junk"], False),
    ("blank-preface", [b"\r\n" + PREFACE + SETTINGS], False),
    ("lf-preface", [b"PRI * HTTP/2.0\n\nSM\n\n" + SETTINGS], False),
    ("wide-preface", [b"PRI  *  HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS], False),
    ("preface-later", [REQUEST, PREFACE + SETTINGS], False),
    *[(f"cut-{at}", [PREFACE[:at]], False) for at in range(1, 24)],
    *[(f"cut-{at}-end", [PREFACE[:at]], True) for at in (1, 14, 23)],
    *[(f"broken-{at}", [broken(at)], False) for at in range(24)],
]


def shown(parts, ends):
    def escaped(part):
        return "".join(chr(byte) if 32 <= byte < 127 and byte not in b"\\|$" else f"\\x{byte:02x}" for byte in part)
    return "|".join([escaped(part) for part in parts] + ["$"] * ends) or "-"


async def scene(address, port, secure, alpn, parts, ends):
    """What was answered to a client at `address`, and when the connection has ended."""
    context = None
    if secure:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if alpn != "-":
            context.set_alpn_protocols([alpn])
    loop = asyncio.get_running_loop()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, local_addr=(address, 0))
    except OSError as failed:
        return f"refused {failed}", "-"
    answer, begun = b"", loop.time()
    try:
        for number, part in enumerate(parts):
            if number:
                await asyncio.sleep(0.1)
            writer.write(part)
            await writer.drain()
        if ends and writer.can_write_eof():
            writer.write_eof()
        elif ends:
            return "?", "?"
        while True:
            data = await asyncio.wait_for(reader.read(65536), 2 * LIMIT / 1000 - (loop.time() - begun))
            if not data:
                break
            answer += data
        when = "now" if loop.time() - begun < 0.75 * LIMIT / 1000 else "late"
    except asyncio.TimeoutError:
        when = "open"
    except OSError:
        when = "now" if loop.time() - begun < 0.75 * LIMIT / 1000 else "late"
    writer.close()
    statuses = [part[:3].decode() for part in answer.split(b"HTTP/1.")[1:] for part in [part[2:]]]
    kind = "h2" if answer[3:4] == b"\4" else "+".join(statuses) or ("other" if answer else "-")
    return kind, when


class Lines(asyncio.DatagramProtocol):
    """Log lines by the client's address."""

    def __init__(self):
        self.lines = {}

    def datagram_received(self, data, _):
        address, rest = data.decode().split("]: ", 1)[1].strip().split(" ", 1)
        self.lines.setdefault(address, []).append(rest)


def certificate(folder):
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=a"]
    subprocess.run([*made, "-keyout", f"{folder}/key", "-out", f"{folder}/pem"], check=True, stderr=subprocess.DEVNULL)
    with open(f"{folder}/crt", "w", encoding="ascii") as out:
        for name in ("key", "pem"):
            with open(f"{folder}/{name}", encoding="ascii") as part:
                out.write(part.read())


async def record(program):
    with tempfile.TemporaryDirectory() as folder:
        certificate(folder)
        lines = Lines()
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: lines, local_addr=("127.0.0.1", 0))
        text = CONFIGURATION.format(log=transport.get_extra_info("sockname")[1], limit=LIMIT)
        ports = {}
        for name, options, more in ADDRESSES:
            ports[name] = free_port()
            text += f"frontend {name.replace('/', '-')}\n    bind 127.0.0.1:{ports[name]} {options.format(folder=folder)}\n"
            text += f"    {more}\n    default_backend b\n"
        text += "backend b\n    http-request return status 204\n"
        with open(f"{folder}/cfg", "w", encoding="ascii") as out:
            out.write(text)
        with open(f"{folder}/err", "wb") as err:
            process = subprocess.Popen([program, "-db", "-f", f"{folder}/cfg"], stdout=err, stderr=err)
        try:
            while not all(listens(port) for port in ports.values()):
                if process.poll() is not None:
                    with open(f"{folder}/err", encoding="utf-8", errors="replace") as err:
                        sys.exit(err.read())
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.3)
            rows, running = [], []
            for name, options, _ in ADDRESSES:
                secure = "ssl" in options
                for alpn in ["h2", "http/1.1", "-"] if secure else ["-"]:
                    for title, parts, ends in SCENES:
                        if secure and (ends or re.fullmatch(r"(cut|broken)-.*[124-9]", title)):
                            continue
                        address = f"127.5.{len(rows) // 250}.{len(rows) % 250 + 1}"
                        rows.append((name, alpn, title, shown(parts, ends)))
                        running.append(scene(address, ports[name], secure, alpn, parts, ends))
            answers = []
            for at in range(0, len(running), 60):
                answers += await asyncio.gather(*running[at:at + 60])
            await asyncio.sleep(0.5)
        finally:
            process.terminate()
            process.wait()
        table = {}
        for number, (row, (kind, when)) in enumerate(zip(rows, answers)):
            written = lines.lines.get(f"127.5.{number // 250}.{number % 250 + 1}", [])
            table[row] = "\t".join([kind, when, " | ".join(written) or "-"])
        return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("table")
    parser.add_argument("--compare", action="store_true")
    options = parser.parse_args()
    found = asyncio.run(record(options.program))
    if not options.compare:
        with open(options.table, "w", encoding="ascii") as out:
            out.write("# What HAProxy makes of the first bytes of a connection (bench/protocols.py).\n")
            out.writelines("\t".join([*row, answer]) + "\n" for row, answer in found.items())
        return
    with open(options.table, encoding="ascii") as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            *row, answer = line.rstrip("\n").split("\t", 4)
            if found.get(tuple(row)) != answer:
                print("\t".join(row), f"\n    table {answer}\n    found {found.get(tuple(row))}")


if __name__ == "__main__":
    main()
