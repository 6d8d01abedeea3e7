#!/usr/bin/env python3
"""Compares what HTTP/2 with clients costs proxies: processor time a request, and an answer of 1 MB, to a server of HTTP/1.

    bench/h2.py WEIR PROXY [PROXY...] [--requests 40000] [--rounds 5]

Each proxy runs the same configuration with one thread on the first processor; h2load and the server, which is the first
program given, share the second. Printed are medians of rounds in which the proxies take turns. Linux only; nothing is changed
outside of a temporary folder.
"""

import argparse
import os
import statistics
import subprocess
import tempfile

from tls import cpu, free_ports

ORIGIN = """global
    nbthread 1
defaults
    mode http
    timeout client 10s
frontend origin
    bind 127.0.0.1:{port}
    http-request return status 200 content-type text/plain file {folder}/large if {{ path /large }}
    http-request return status 200 content-type text/plain string x
"""

PROXY = """global
    nbthread 1
    maxconn 1000
defaults
    mode http
    timeout client 10s
    timeout server 10s
    timeout connect 5s
frontend f
    bind 127.0.0.1:{port}
    default_backend b
backend b
    server s 127.0.0.1:{origin}
"""

# Name, path, clients, streams of each, part of the requests.
LOADS = [("small, 16 connections, 32 streams", "/", 16, 32, 1), ("1 MB, 4 connections, 4 streams", "/large", 4, 4, 100)]


def start(program, processor, text, folder, name):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(text)
    return subprocess.Popen(
        ["taskset", "-c", str(processor), program, "-db", "-f", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def load(port, path, clients, streams, requests):
    command = ["taskset", "-c", "1", "h2load", "-n", str(requests), "-c", str(clients), "-m", str(streams), "-w", "20"]
    run = subprocess.run(command + [f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True, timeout=120)
    return f" {requests} succeeded" in run.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("proxies", nargs="+")
    parser.add_argument("--requests", type=int, default=40000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    ports = free_ports(len(options.proxies) + 1)
    started = []
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "large"), "wb") as file:
            file.write(b"x" * (1 << 20))
        try:
            large = ORIGIN.format(port=ports[0], folder=folder).replace("nbthread 1", "nbthread 1\n    tune.bufsize 1100000")
            started.append(start(options.proxies[0], 1, large, folder, "origin"))
            for at, (program, port) in enumerate(zip(options.proxies, ports[1:])):
                text = PROXY.format(port=port, origin=ports[0])
                started.append(start(program, 0, text, folder, f"proxy{at}"))
            for name, path, clients, streams, part in LOADS:
                requests = max(options.requests // part, clients * streams)
                spent = [[] for _ in options.proxies]
                for turn in range(-1, options.rounds):
                    for at, port in enumerate(ports[1:]):
                        before = cpu(started[at + 1].pid)
                        # The first turn is for warming up, and for programs that are not listening yet.
                        while not load(port, path, clients, streams, requests):
                            if turn >= 0 or started[at + 1].poll() is not None:
                                raise SystemExit(f"{options.proxies[at]}: requests failed")
                        if turn >= 0:
                            spent[at].append((cpu(started[at + 1].pid) - before) / requests * 1e6)
                print(name)
                medians = [statistics.median(one) for one in spent]
                for program, median in zip(options.proxies, medians):
                    print(f"  {program}: {median:.1f} us, {median / medians[0]:.2f}")
        finally:
            for one in started:
                one.terminate()
                one.wait()


if __name__ == "__main__":
    main()
