#!/usr/bin/env python3
"""Measures what `busy-polling` gains and costs: the latency of one keep-alive connection, and the processor time of the proxy.

    bench/busy_polling.py WEIR [PROXY...] [--seconds 2] [--rounds 5] [--pauses 0,1ms] [--json FILE]

WEIR is the program that is measured first, and its `load` and `origin` are the client and the server; other proxies read HAProxy's
configuration. In each round each proxy runs with and without `busy-polling`, with one thread on the first processor; client and server
have the second one. A request follows its answer, after one of the pauses. Printed are medians of the rounds: the latency of half and
of 99 % of the requests in microseconds, the former also of the best round, the proxy's processor time as a share of one processor, the
same without any request (idle), and the processor time of a request without `busy-polling`. Linux only; nothing is changed outside of a temporary folder.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from proxies import free_port, listens, serving, spent

CONFIGURATION = """global
    nbthread 1
{polling}defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen proxy
    bind 127.0.0.1:{port}
    http-reuse always
    server origin 127.0.0.1:{origin}
"""
# Without requests a proxy is observed for this time.
IDLE_SECONDS = 0.5


def on(processor):
    """Returns a function that binds the child process to a processor."""
    return lambda: os.sched_setaffinity(0, {processor})


def load(weir, port, pause, seconds):
    """Returns the summary of one client."""
    command = [weir, "load", "-c", "1", "-A", "-d", f"{seconds}s", "--json", "-q"]
    if pause != "0":
        command += ["-T", pause]
    done = subprocess.run(
        [*command, f"http://127.0.0.1:{port}/?s=64"], stdout=subprocess.PIPE, check=True, preexec_fn=on(1), timeout=600
    )
    summary = json.loads(done.stdout.splitlines()[-1])
    if not summary["answers"] or summary["answers"] != summary["status_2xx"]:
        sys.exit(f"not all requests succeeded: {summary['answers']} answers, {summary['status_2xx']} with status 200")
    return summary


def percentile(summary, percent):
    return next(micros for place, micros in summary["last_byte"] if place >= percent)


def measure(options, program, polling, origin):
    """Returns the figures of one proxy by pause."""
    port = free_port()
    text = CONFIGURATION.format(polling="    busy-polling\n" if polling else "", port=port, origin=origin)
    rows = {}
    with tempfile.TemporaryDirectory() as folder, serving(program, text, folder, lambda: listens(port), on(0)) as proxy:
        load(options.weir, port, "0", 0.2)
        before = spent(proxy.pid)
        time.sleep(IDLE_SECONDS)
        idle = (spent(proxy.pid) - before) / IDLE_SECONDS
        for pause in options.pauses.split(","):
            before, begin = spent(proxy.pid), time.monotonic()
            summary = load(options.weir, port, pause, options.seconds)
            used, elapsed = spent(proxy.pid) - before, time.monotonic() - begin
            rows[pause] = {
                "p50": percentile(summary, 50),
                "p99": percentile(summary, 99),
                "rate": summary["answers"] / summary["length"],
                "share": used / elapsed,
                "idle": idle,
                "request": used / summary["answers"] * 1e6,
            }
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weir")
    parser.add_argument("proxies", nargs="*")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pauses", default="0,1ms")
    parser.add_argument("--json", help="writes every round to this file")
    options = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("two processors are needed: a polling proxy would take that of its client")
    origin = free_port()
    server = subprocess.Popen(
        [options.weir, "origin", "--threads", "1", "-L", f"127.0.0.1:{origin}"],
        stdout=subprocess.DEVNULL,
        preexec_fn=on(1),
    )
    rounds = []
    try:
        while not listens(origin):
            if server.poll() is not None:
                sys.exit("the origin does not start")
            time.sleep(0.002)
        for number in range(options.rounds):
            for program in [options.weir, *options.proxies]:
                # The order alternates, so that a machine that slows down favours neither.
                for polling in (False, True) if number % 2 == 0 else (True, False):
                    for pause, row in measure(options, program, polling, origin).items():
                        rounds.append({"program": program, "polling": polling, "pause": pause, **row})
    finally:
        server.terminate()
        server.wait()
    if options.json:
        with open(options.json, "w", encoding="ascii") as out:
            json.dump(rounds, out, indent=1)
    print("| proxy | pause | busy-polling | p50, µs | lowest | p99, µs | requests/s | processor | idle | CPU of a request, µs |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for program in [options.weir, *options.proxies]:
        for pause in options.pauses.split(","):
            for polling in (False, True):
                same = [r for r in rounds if (r["program"], r["pause"], r["polling"]) == (program, pause, polling)]
                names = [name for name in same[0] if name not in ("program", "pause", "polling")]
                middle = {name: statistics.median(row[name] for row in same) for name in names}
                lowest = min(row["p50"] for row in same)
                request = "—" if polling else f"{middle['request']:.1f}"
                print(
                    f"| {program} | {pause} | {'yes' if polling else 'no'} | {middle['p50']:.0f} | {lowest:.0f} | {middle['p99']:.0f} | "
                    f"{middle['rate']:,.0f} | {middle['share']:.0%} | {middle['idle']:.0%} | {request} |"
                )


if __name__ == "__main__":
    main()
