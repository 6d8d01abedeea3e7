#!/usr/bin/env python3
"""Measures the cost of statistics of a proxy with very many servers: durations of `show stat`, of the Prometheus exporter, of the
statistics page and of the JSON API, and the latency of requests that are served at the same time, next to their latency alone.

    bench/many_servers.py                  10,000 servers in 100 backends, Weir and HAProxy
    bench/many_servers.py --servers 1000 --only weir
    WEIR=target/debug/weir HAPROXY=/path/to/haproxy bench/many_servers.py

Each kind of query is repeated for some seconds while `weir load` sends requests at a fixed rate. The proxy has
one thread and one processor; the load, the origin and the reader of the statistics have another one. If the kernel permits it, all of
them have real-time priorities, so that other programs of the machine do not interfere: the load and the origin above the proxy,
the reader below it. Rounds alternate between the proxies and between the queries; medians of the rounds are printed, so that a pause of the
machine of some milliseconds (by a hypervisor) affects one round, not a row. Traffic stays on 127.0.0.1.
"""
import argparse, collections, contextlib, os, shutil, signal, statistics, subprocess, sys, tempfile, time
from proxies import processor
from restarts import PATIENCE, ROOT, connect, free_port, wait_for
from reloads import ask, summary

# Number of queries without other load, to measure their processor time.
ALONE = 10
# Warm-up in seconds before each measurement.
WARM = 0.5
# Real-time priorities.
READER, PROXY, CLIENT = 1, 2, 3

HEAD = """global
    nbthread 1
    stats socket {folder}/{name} level admin
defaults
    mode http
    timeout client 20s
    timeout server 20s
    timeout connect 5s
frontend web
    bind 127.0.0.1:{port}
    default_backend app
backend app
    server origin 127.0.0.1:{origin}
frontend stats
    bind 127.0.0.1:{stats}
    http-request use-service prometheus-exporter if {{ path /metrics }}
    stats enable
    stats uri /stats
    {dashboard}
"""


def place(processors, priority):
    """Binds this process to the first or the last processor, with a priority if permitted."""
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {allowed[processors]})
    if priority:
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))


def start(arguments, processors, priority, **more):
    return subprocess.Popen(arguments, preexec_fn=lambda: place(processors, priority), **more)


def get(port, path):
    with connect(port) as stream:
        stream.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
        told = bytearray()
        while more := stream.recv(1 << 20):
            told += more
    if not told.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"{path}: {bytes(told[:200])}")
    return told


def percentile(found, wanted):
    return next(value for place, value in found["last_byte"] if place >= wanted) / 1000


class Proxy:
    """A running proxy and its measurements."""

    def __init__(self, name, program, options, folder, origin):
        self.name, self.port, stats = name, free_port(), free_port()
        config = os.path.join(folder, f"{name}.cfg")
        each = options.servers // options.backends
        with open(config, "w") as file:
            dashboard = "stats dashboard" if name == "weir" else ""
            file.write(HEAD.format(folder=folder, name=name, port=self.port, stats=stats, origin=origin, dashboard=dashboard))
            for backend in range(options.backends):
                file.write(f"backend b{backend}\n")
                file.writelines(f"    server s{server} 127.0.0.1:{origin}\n" for server in range(each))
        with open(os.path.join(folder, f"{name}.log"), "w") as log:
            self.process = start([program, "-db", "-f", config], 0, options.priorities and PROXY, stdout=log, stderr=log)
        wait_for(self.port)
        self.questions = {
            "nothing": None,
            "show stat": lambda: ask(f"{folder}/{name}", "show stat"),
            "exporter": lambda: get(stats, "/metrics"),
            "page": lambda: get(stats, "/stats"),
        }
        if name == "weir":
            self.questions["/api/v1"] = lambda: get(stats, "/stats/api/v1/servers")
        self.found = {what: collections.defaultdict(list) for what in self.questions}

    def cost(self, question):
        """Returns milliseconds of processor time per query without other load."""
        before = processor(self.process.pid)
        for _ in range(ALONE):
            question()
        return (processor(self.process.pid) - before) / ALONE * 1000

    def load(self, weir, options, seconds):
        arguments = [weir, "load", "-c", "8", "-A", "--constant", str(options.rate), "-d", str(seconds), "-q", "--json"]
        arguments.append(f"http://127.0.0.1:{self.port}/")
        return start(arguments, -1, options.priorities and CLIENT, stdout=subprocess.PIPE, text=True)

    def measure(self, weir, options, what):
        found, question = self.found[what], self.questions[what]
        if question:
            found["cost"].append(self.cost(question))
        summary(self.load(weir, options, WARM))
        load = self.load(weir, options, options.time)
        end = time.monotonic() + options.time
        while question and time.monotonic() < end:
            asked = time.monotonic()
            found["size"].append(len(question()))
            found["took"].append((time.monotonic() - asked) * 1000)
            time.sleep(0.05)
        told = summary(load)
        for wanted in (50, 99, 99.9):
            found[wanted].append(percentile(told, wanted))
        found["answers"].append(told["answers"])

    def print(self):
        print(f"{self.name}: requests of each row: {sum(self.found['nothing']['answers'])}")
        for what, found in self.found.items():
            middle = {key: statistics.median(values) for key, values in found.items()}
            text = " " * 63
            if self.questions[what]:
                text = f"{middle['cost']:5.0f} ms of processor, {middle['took']:5.0f} ms, {max(found['took']):5.0f} ms at most, {middle['size']:9.0f} bytes"
            above = middle[99.9] - statistics.median(self.found["nothing"][99.9])
            print(
                f"    {what:10} {text}; requests: p50 {middle[50]:6.2f} ms, p99 {middle[99]:6.2f} ms, p99.9 {middle[99.9]:6.2f} ms "
                f"({above:+.2f}; rounds {', '.join(f'{value:.1f}' for value in sorted(found[99.9]))})",
                flush=True,
            )

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=PATIENCE)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=10_000)
    parser.add_argument("--backends", type=int, default=100)
    parser.add_argument("-r", "--rate", type=float, default=1000, help="requests a second")
    parser.add_argument("-t", "--time", type=float, default=4, help="seconds for each kind of question in each round")
    parser.add_argument("-n", "--rounds", type=int, default=7)
    parser.add_argument("--only", choices=["weir", "haproxy"])
    parser.add_argument("--ask", action="append", help="only this kind of question (several times: these)")
    parser.add_argument("--no-priorities", dest="priorities", action="store_false")
    options = parser.parse_args()
    weir = os.environ.get("WEIR", os.path.join(ROOT, "target/release/weir"))
    programs = {"weir": weir, "haproxy": os.environ.get("HAPROXY", shutil.which("haproxy") or "")}
    origin = free_port()
    running = start([weir, "origin", "-L", f"127.0.0.1:{origin}", "--threads", "1"], -1, options.priorities and CLIENT, stdout=subprocess.DEVNULL)
    proxies = []
    try:
        wait_for(origin)
        with tempfile.TemporaryDirectory() as folder:
            for name, program in programs.items():
                if options.only in (None, name):
                    proxies.append(Proxy(name, program, options, folder, origin))
            place(-1, options.priorities and READER)
            for _ in range(options.rounds):
                for what in ["nothing", "show stat", "exporter", "page", "/api/v1"]:
                    for proxy in proxies:
                        if what in proxy.questions and (not options.ask or what in [*options.ask, "nothing"]):
                            proxy.measure(weir, options, what)
                proxies.reverse()
            for proxy in proxies:
                proxy.found = {what: found for what, found in proxy.found.items() if found["answers"]}
                proxy.print()
    finally:
        for proxy in proxies:
            proxy.end()
        running.terminate()


if __name__ == "__main__":
    main()
