#!/usr/bin/env python3
"""What it costs to ask a proxy with very many servers how they are: times of `show stat`, of the exporter for Prometheus, of the
statistics page and of the JSON API, and how long requests take that are served meanwhile.

    bench/many_servers.py                  10,000 servers in 100 backends, Weir and HAProxy
    bench/many_servers.py --servers 1000 --only weir
    WEIR=target/debug/weir HAPROXY=/path/to/haproxy bench/many_servers.py

Each kind of question is asked one after the other for some seconds while `weir load` sends requests at a fixed rate. Traffic stays
on 127.0.0.1.
"""
import argparse, json, os, shutil, signal, socket, statistics, subprocess, sys, tempfile, time
from proxies import processor
from restarts import PATIENCE, ROOT, connect, free_port, wait_for
from reloads import ask, summary

# Questions that are asked alone, for their processor time.
ALONE = 10

HEAD = """global
    nbthread 2
    stats socket {folder}/api level admin
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


def get(port, path):
    with connect(port) as stream:
        stream.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
        told = bytearray()
        while more := stream.recv(1 << 20):
            told += more
    if not told.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"{path}: {bytes(told[:200])}")
    return told


def cost(pid, question):
    """Seconds of processor time of the proxy for one question, while nothing else is asked of it."""
    before = processor(pid)
    for _ in range(ALONE):
        question()
    return (processor(pid) - before) / ALONE


def percentile(found, wanted):
    return next(value for place, value in found["last_byte"] if place >= wanted) / 1000


def measure(name, program, weir, options, folder, origin):
    port, stats = free_port(), free_port()
    config = os.path.join(folder, f"{name}.cfg")
    each = options.servers // options.backends
    with open(config, "w") as file:
        dashboard = "stats dashboard" if name == "weir" else ""
        file.write(HEAD.format(folder=folder, port=port, stats=stats, origin=origin, dashboard=dashboard))
        for backend in range(options.backends):
            file.write(f"backend b{backend}\n")
            file.writelines(f"    server s{server} 127.0.0.1:{origin}\n" for server in range(each))
    log = open(os.path.join(folder, f"{name}.log"), "w")
    began = time.monotonic()
    running = subprocess.Popen([program, "-db", "-f", config], stdout=log, stderr=log)
    try:
        wait_for(port)
        print(f"{name}: {options.servers} servers, serves after {time.monotonic() - began:.2f} s", flush=True)
        questions = [
            ("nothing", None),
            ("show stat", lambda: ask(f"{folder}/api", "show stat")),
            ("exporter", lambda: get(stats, "/metrics")),
            ("page", lambda: get(stats, "/stats")),
        ]
        if name == "weir":
            questions.append(("/api/v1", lambda: get(stats, "/stats/api/v1/servers")))
        for what, question in questions:
            alone = f"{cost(running.pid, question) * 1000:5.0f} ms of processor" if question else " " * 21
            load = [weir, "load", "-c", "8", "--constant", str(options.rate), "-d", str(options.time), "-q", "--json"]
            load = subprocess.Popen([*load, f"http://127.0.0.1:{port}/"], stdout=subprocess.PIPE, text=True)
            times, size, end = [], 0, time.monotonic() + options.time
            while question and time.monotonic() < end:
                asked = time.monotonic()
                size = len(question())
                times.append(time.monotonic() - asked)
                time.sleep(0.05)
            found = summary(load)
            took = f"{statistics.median(times) * 1000:6.0f} ms, {max(times) * 1000:6.0f} ms at most, {size:9} bytes" if times else " " * 42
            print(
                f"    {what:10} {alone}, {took}; requests: p50 {percentile(found, 50):6.2f} ms, p99 {percentile(found, 99):7.2f} ms, "
                f"p99.9 {percentile(found, 99.9):7.2f} ms",
                flush=True,
            )
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(timeout=PATIENCE)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=10_000)
    parser.add_argument("--backends", type=int, default=100)
    parser.add_argument("-r", "--rate", type=float, default=1000, help="requests a second")
    parser.add_argument("-t", "--time", type=float, default=10, help="seconds for each kind of question")
    parser.add_argument("--only", choices=["weir", "haproxy"])
    options = parser.parse_args()
    weir = os.environ.get("WEIR", os.path.join(ROOT, "target/release/weir"))
    programs = {"weir": weir, "haproxy": os.environ.get("HAPROXY", shutil.which("haproxy") or "")}
    origin = free_port()
    server = subprocess.Popen([weir, "origin", "-L", f"127.0.0.1:{origin}", "--threads", "1"], stdout=subprocess.DEVNULL)
    try:
        wait_for(origin)
        with tempfile.TemporaryDirectory() as folder:
            for name, program in programs.items():
                if options.only in (None, name):
                    measure(name, program, weir, options, folder, origin)
    finally:
        server.terminate()


if __name__ == "__main__":
    main()
