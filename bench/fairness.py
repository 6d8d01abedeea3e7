#!/usr/bin/env python3
"""Compares the latency of a quiet client next to clients that send bursts of requests, all of which the proxy answers
itself.

    bench/fairness.py PROXY [PROXY...] [--seconds 4] [--rounds 3] [--only costly,small,resets,storm,…] [--processor N]

`costly`: ten clients whose requests take a millisecond or more each (a search of quadratic cost in a header). `small`: twenty
whose requests take microseconds. `resets`: 2,500 connections per second that send a request and reset the connection at once; `storm`: the
same at the maximum rate; `served-resets`, `served-storm`: the same with responses of a server. With `--processor` everything runs on one
processor, which the proxy shares with its clients. The quiet client has one connection and sends a request every two milliseconds. Each round
restarts every proxy with one thread. Prints the latencies of the quiet client and the rate of the others.
Linux only; nothing is changed outside of a temporary folder.
"""

import argparse
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

BUSY_BYTES = 15_000
KINDS = {
    "costly": (
        10,
        2000,
        "http-request return status 200 content-type text/plain lf-string"
        " \"%[req.hdr(x-a),regsub('.*b|a',z,g),length]\"",
    ),
    "small": (20, 0, 'http-request return status 200 content-type text/plain string "ok"'),
    "resets": (2500, 0, 'http-request return status 200 content-type text/plain string "ok"'),
    "storm": (1_000_000, 0, 'http-request return status 200 content-type text/plain string "ok"'),
    "served-resets": (2500, 0, "server s 127.0.0.1:{server}"),
    "served-storm": (1_000_000, 0, "server s 127.0.0.1:{server}"),
}
RESETS = {"resets", "storm", "served-resets", "served-storm"}


def configuration(port, rule):
    return (
        "global\n    nbthread 1\ndefaults\n    mode http\n    timeout client 20s\n    timeout server 20s\n    timeout connect 5s\n"
        f"listen f\n    bind 127.0.0.1:{port}\n    {rule}\n"
    )


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def connect(port):
    for _ in range(500):
        try:
            found = socket.create_connection(("127.0.0.1", port), timeout=20)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return found
        except OSError:
            time.sleep(0.02)
    raise SystemExit("the proxy does not listen")


def request(path, length=0):
    header = f"x-a: {'a' * length}\r\n" if length else ""
    return f"GET {path} HTTP/1.1\r\nhost: a\r\n{header}\r\n".encode()


def keep_busy(port, clients, length, until):
    """Sends bursts until the time is over, each after the previous one was answered; returns the rate of requests."""
    one = request("/busy", length)
    burst = one * max(1, BUSY_BYTES // len(one))
    depth = len(burst) // len(one)
    sockets = [connect(port) for _ in range(clients)]
    sockets[0].sendall(one)
    size = len(sockets[0].recv(65536))
    poll, by, left, answered = select.epoll(), {}, {}, 0
    for found in sockets:
        found.setblocking(False)
        by[found.fileno()], left[found.fileno()] = found, size * depth
        poll.register(found.fileno(), select.EPOLLIN)
        found.send(burst)
    begun = time.time()
    while time.time() < until:
        for number, _ in poll.poll(0.1):
            received = len(by[number].recv(1 << 20))
            if received == 0:
                raise SystemExit("a connection was closed")
            answered += received / size
            left[number] -= received
            if left[number] <= 0:
                left[number] += size * depth
                by[number].send(burst)
    return answered / (time.time() - begun)


def serve(listener):
    """Answers every request."""
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
    poll, by = select.epoll(), {}
    listener.setblocking(False)
    poll.register(listener, select.EPOLLIN)
    while True:
        for number, _ in poll.poll():
            try:
                if number == listener.fileno():
                    one = listener.accept()[0]
                    by[one.fileno()] = one
                    poll.register(one, select.EPOLLIN)
                elif by[number].recv(65536):
                    by[number].send(answer)
                    continue
                else:
                    by.pop(number).close()
            except BlockingIOError:
                pass
            except OSError:
                by.pop(number).close()


def reset(port, rate, until):
    """Opens connections at a rate, sends a request and resets each; returns the actual rate."""
    one, begun, count = request("/busy"), time.time(), 0
    while time.time() < until:
        due = int((time.time() - begun) * rate)
        for _ in range(min(due - count, 20)):
            with socket.socket() as found:
                found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                try:
                    found.connect(("127.0.0.1", port))
                    found.send(one)
                except OSError:
                    pass
            count += 1
        if count >= due:
            time.sleep(0.001)
    return count / (time.time() - begun)


def measure(port, until):
    found, waits = connect(port), []
    while time.time() < until:
        begun = time.perf_counter()
        found.sendall(request("/quiet"))
        if not found.recv(65536):
            raise SystemExit("the quiet client's connection was closed")
        waits.append((time.perf_counter() - begun) * 1000)
        time.sleep(0.002)
    return sorted(waits)


def run(proxy, kind, seconds, folder):
    clients, length, rule = KINDS[kind]
    port, path = free_port(), os.path.join(folder, "proxy.cfg")
    listener = socket.create_server(("127.0.0.1", 0), backlog=1000)
    server = os.fork()
    if server == 0:
        serve(listener)
    with open(path, "w") as file:
        file.write(configuration(port, rule.replace("{server}", str(listener.getsockname()[1]))))
    listener.close()
    process = subprocess.Popen([proxy, "-f", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        connect(port).close()
        until = time.time() + seconds + 1
        reader, writer = os.pipe()
        busy = os.fork()
        if busy == 0:
            rate = reset(port, clients, until) if kind in RESETS else keep_busy(port, clients, length, until)
            os.write(writer, f"{rate:.0f}".encode())
            os._exit(0)
        time.sleep(0.5)
        waits = measure(port, until - 0.3)
        os.waitpid(busy, 0)
        os.close(writer)
        return waits, os.read(reader, 64).decode() or "none"
    finally:
        process.terminate()
        process.wait()
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("proxies", nargs="+", metavar="PROXY")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--processor", type=int)
    arguments = parser.parse_args()
    if arguments.processor is not None:
        os.sched_setaffinity(0, {arguments.processor})
    folder = tempfile.mkdtemp()
    try:
        for kind in arguments.only.split(","):
            for number in range(arguments.rounds):
                for proxy in arguments.proxies:
                    waits, rate = run(proxy, kind, arguments.seconds, folder)
                    at = lambda share: waits[min(len(waits) - 1, int(len(waits) * share))]
                    print(
                        f"{kind} round {number + 1} {os.path.basename(proxy):14} quiet: {len(waits)} answers,"
                        f" p50 {at(0.5):.2f} ms, p90 {at(0.9):.2f} ms, p99 {at(0.99):.2f} ms, longest {waits[-1]:.2f} ms;"
                        f" others: {rate} requests a second",
                        flush=True,
                    )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
