#!/usr/bin/env python3
"""Measures the service that other clients get while one address opens as many requests as it can.

    bench/greedy.py PROXY [PROXY...] [--connections 2000] [--streams 100] [--seconds 6] [--only plain,maxconn,memory] [--rows]

Every proxy runs with one thread on the first processor, in front of a server that answers GET at once and never answers POST. A greedy
client at 127.0.0.2 opens the given numbers of HTTP/2 connections and of POST requests on each, whose bodies never end; if the proxy closes a
connection, it opens another one. A quiet client at 127.0.0.3 sends a GET every five milliseconds on an HTTP/1 connection, and gives up a
request after three seconds. `plain`: the server has no limit. `maxconn`: it accepts 200 requests at a time. `memory`: the server has no limit,
and the proxy has 256 MB (`-m 256`). Prints the quiet client's median and 99th percentile in milliseconds and the share of its requests that
failed, before and during the attack; the proxy's processor time per second, and its largest memory. Run it by `nice -n -20` on a machine with
other load.

Linux only; nothing is changed outside of a temporary folder.
"""

import argparse
import importlib.util
import multiprocessing
import os
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
SPEC = importlib.util.spec_from_file_location("h2_attacks", os.path.join(FOLDER, "h2_attacks.py"))
h2 = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(h2)

CONFIG = """global
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
    timeout queue 20s
    timeout http-request 20s
frontend f
    bind 127.0.0.1:{port}
    default_backend servers
backend servers
    server s 127.0.0.1:{server}{limit}
"""

KINDS = {"plain": ("", []), "maxconn": (" maxconn 200", []), "memory": ("", ["-m", "256"])}
GREEDY, QUIET = "127.0.0.2", "127.0.0.3"
GIVE_UP = 3.0
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def serve(port):
    """Answers GET requests and holds all others."""
    listener = socket.create_server(("127.0.0.1", port), backlog=4096)
    listener.setblocking(False)
    poller, connections = select.epoll(), {}
    poller.register(listener, select.EPOLLIN)
    while True:
        for descriptor, _ in poller.poll():
            if descriptor == listener.fileno():
                try:
                    connection = listener.accept()[0]
                except OSError:
                    time.sleep(0.001)
                    continue
                connection.setblocking(False)
                connections[connection.fileno()] = connection
                poller.register(connection, select.EPOLLIN)
                continue
            connection = connections[descriptor]
            try:
                got = connection.recv(65536)
                if got:
                    if got.startswith(b"GET"):
                        connection.send(ANSWER)
                    continue
            except OSError:
                pass
            poller.unregister(descriptor)
            connections.pop(descriptor).close()


def attack(port, connections, streams, until):
    """Keeps a number of connections with a number of requests each open."""
    os.nice(10)
    payload = h2.PREFACE + h2.SETTINGS + b"".join(h2.post(2 * number + 1) for number in range(streams))
    poller, opened = select.epoll(), {}
    while time.monotonic() < until:
        for _ in range(min(50, connections - len(opened))):
            one = socket.socket()
            one.bind((GREEDY, 0))
            one.settimeout(0.2)
            try:
                one.connect(("127.0.0.1", port))
                one.setblocking(False)
                one.send(payload)
                opened[one.fileno()] = one
                poller.register(one, select.EPOLLIN)
            except OSError:
                one.close()
                break
        for descriptor, event in poller.poll(0.001 if len(opened) < connections else 0.05):
            one = opened[descriptor]
            try:
                if one.recv(65536):
                    continue
            except OSError:
                pass
            poller.unregister(descriptor)
            opened.pop(descriptor).close()


def ask(one):
    """Sends a request; returns its duration in seconds, and whether the response was valid."""
    begin = time.perf_counter()
    try:
        one.sendall(b"GET /quiet HTTP/1.1\r\nHost: a\r\n\r\n")
        got = b""
        while not got.endswith(b"ok"):
            more = one.recv(65536)
            if not more or got + more < b"HTTP/1.1 200":
                return time.perf_counter() - begin, False
            got += more
    except OSError:
        return time.perf_counter() - begin, False
    return time.perf_counter() - begin, True


def connect(port):
    one = socket.socket()
    one.bind((QUIET, 0))
    one.settimeout(GIVE_UP)
    one.connect(("127.0.0.1", port))
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one


def quiet(port, seconds, look):
    """Returns the durations of requests in milliseconds, and the share of failed ones."""
    times, failed, end, one = [], 0, time.monotonic() + seconds, None
    while time.monotonic() < end:
        begin = time.perf_counter()
        try:
            one = one or connect(port)
            _, well = ask(one)
        except OSError:
            well = False
        times.append((time.perf_counter() - begin) * 1e3)
        if not well:
            failed += 1
            one = one and one.close()
        look()
        time.sleep(0.005)
    high = statistics.quantiles(times, n=100)[98] if len(times) > 1 else times[0]
    return statistics.median(times), high, failed / len(times)


def measure(program, kind, options, folder):
    limit, arguments = KINDS[kind]
    port, server_port = h2.free_ports(2)
    server = multiprocessing.Process(target=serve, args=(server_port,), daemon=True)
    server.start()
    h2.wait_for(server_port)
    path = os.path.join(folder, "proxy")
    with open(path, "w") as file:
        file.write(CONFIG.format(port=port, server=server_port, limit=limit))
    command = ["taskset", "-c", "0", program, "-db", "-f", path, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        h2.wait_for(port)
        calm = quiet(port, 1, lambda: None)
        largest = [h2.memory(process.pid)]
        until = time.monotonic() + options.seconds + 1
        attacker = multiprocessing.Process(target=attack, args=(port, options.connections, options.streams, until))
        attacker.start()
        time.sleep(0.5)
        before = h2.cpu(process.pid)
        beside = quiet(port, options.seconds, lambda: largest.append(max(largest.pop(), h2.memory(process.pid))))
        spent = (h2.cpu(process.pid) - before) / options.seconds
        attacker.join()
        if process.poll() is not None:
            raise SystemExit(f"{program} has ended")
        return calm, beside, spent, largest[0]
    finally:
        process.terminate()
        process.wait()
        server.terminate()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("proxies", nargs="+")
    parser.add_argument("--connections", type=int, default=2000)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--rows", action="store_true")
    options = parser.parse_args()
    os.sched_setaffinity(0, {1})
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.only.split(","):
            for program in options.proxies:
                calm, beside, spent, largest = measure(program, kind, options, folder)
                name = os.path.basename(program)
                shown = [f"{calm[0]:.1f}", f"{calm[1]:.1f}", f"{beside[0]:.1f}", f"{beside[1]:.1f}"]
                shown += [f"{beside[2] * 100:.0f} %", f"{spent * 100:.0f} %", f"{largest >> 20} MB"]
                if options.rows:
                    print(f"| {kind} | {name} | " + " | ".join(shown) + " |", flush=True)
                else:
                    print(
                        f"{kind:8} {name:10} quiet before: 50 % {shown[0]} ms, 99 % {shown[1]} ms; beside:"
                        f" 50 % {shown[2]} ms, 99 % {shown[3]} ms, {shown[4]} failed; {shown[5]} of a processor, {shown[6]}",
                        flush=True,
                    )


if __name__ == "__main__":
    sys.exit(main())
