#!/usr/bin/env python3
"""Measures what clients see when one of four servers dies, hangs or resets connections under load.

    bench/failures.py WEIR [HAPROXY]... [--seconds N] [--clients N]

The programs serve the same configuration, one after the other, under the same load of kept and new connections;
in the middle of each run one server is killed, stopped (it accepts connections and does not respond) or resets every connection. Prints
the number of requests, and the number of those that did not get the server's response, by what the client saw instead.
"""

import argparse
import asyncio
import collections
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"

CONFIGURATION = """
global
    nbthread 4
    stats socket {folder}/cli level admin
defaults
    mode http
    timeout client 5s
    timeout connect 300ms
    timeout server 500ms
    retries 3
    option redispatch
    {options}
listen l
    bind 127.0.0.1:{port}
    balance roundrobin
{servers}
"""

RULES = {
    "retries alone": "",
    "retry-on all": "retry-on all-retryable-errors",
    "checks": "default-server check inter 200ms fall 2 rise 1",
    "eject-outliers": "eject-outliers errors 30 window 1s min-requests 10 time 10s",
}


def serve(port):
    """A server in a separate process. After SIGUSR1 it resets all connections."""
    resetting = False

    def reset(*_):
        nonlocal resetting
        resetting = True

    signal.signal(signal.SIGUSR1, reset)

    async def connection(reader, writer):
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                if resetting:
                    raw = writer.get_extra_info("socket")
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    writer.transport.abort()
                    return
                await asyncio.sleep(0.002)
                writer.write(ANSWER)
        except (OSError, asyncio.IncompleteReadError):
            pass
        writer.close()

    async def main():
        server = await asyncio.start_server(connection, "127.0.0.1", port, backlog=1024)
        await server.serve_forever()

    asyncio.run(main())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def client(port, until, kept, seen):
    """Sends requests repeatedly, over one connection or over a new one each time."""
    reader = writer = None
    while time.monotonic() < until:
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(REQUEST)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
            status = head.split(b" ", 2)[1].decode()
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(length)
            seen[status] += 1
            ends = b"connection: close" in head.lower()
        except asyncio.TimeoutError:
            seen["silence"] += 1
            ends = True
        except (OSError, asyncio.IncompleteReadError):
            seen["closed"] += 1
            ends = True
        if ends or not kept:
            writer and writer.close()
            writer = None
    writer and writer.close()


async def load(port, seconds, clients, strike):
    seen = collections.Counter()
    until = time.monotonic() + seconds
    tasks = [asyncio.create_task(client(port, until, number % 2 == 0, seen)) for number in range(clients)]
    await asyncio.sleep(seconds / 3)
    strike()
    await asyncio.gather(*tasks)
    return seen


def run(program, options, event, arguments):
    ports = [free_port() for _ in range(4)]
    servers = [subprocess.Popen([sys.executable, __file__, "--serve", str(port)]) for port in ports]
    with tempfile.TemporaryDirectory() as folder:
        front = free_port()
        lines = "".join(f"    server s{number} 127.0.0.1:{port}\n" for number, port in enumerate(ports, 1))
        text = CONFIGURATION.format(folder=folder, port=front, servers=lines, options=options)
        with open(f"{folder}/cfg", "w", encoding="ascii") as file:
            file.write(text)
        with open(os.devnull, "wb") as null:
            subject = subprocess.Popen([program, "-f", f"{folder}/cfg"], stdout=null, stderr=null)
        try:
            for port in [*ports, front]:
                wait_for(port)
            strike = {
                "killed": servers[0].kill,
                "hangs": lambda: servers[0].send_signal(signal.SIGSTOP),
                "resets": lambda: servers[0].send_signal(signal.SIGUSR1),
            }[event]
            return asyncio.run(load(front, arguments.seconds, arguments.clients, strike))
        finally:
            subject.kill()
            subject.wait()
            for server in servers:
                server.send_signal(signal.SIGCONT)
                server.kill()
                server.wait()


def wait_for(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nobody listens at port {port}")


def main():
    if sys.argv[1:2] == ["--serve"]:
        return serve(int(sys.argv[2]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--clients", type=int, default=32)
    arguments = parser.parse_args()
    print("| Rules | One of four | Program | Requests | Not answered by a server |\n|---|---|---|---|---|")
    for rules, options in RULES.items():
        for event in ["killed", "hangs", "resets"]:
            for program in arguments.programs:
                name = os.path.basename(program)
                if options.startswith("eject") and "weir" not in name:
                    continue
                seen = run(program, options, event, arguments)
                failed = ", ".join(f"{count} × {what}" for what, count in sorted(seen.items()) if what != "200")
                print(f"| {rules} | {event} | {name} | {sum(seen.values())} | {failed or 'none'} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
