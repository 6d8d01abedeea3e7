#!/usr/bin/env python3
"""Measures what `http-request auth-request` costs: the processor time of a request with it, divided by that of one without.

    bench/authorizations.py WEIR [--seconds 1.5] [--rounds 9] [--connections 1,32]

The proxy has one thread on the first processor; clients, the server of the requests and the one that decides (`weir load`, `weir origin`)
have the second one. Printed are medians of alternating rounds. Linux only; nothing is changed outside of a temporary folder.
"""

import argparse
import contextlib
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
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend proxy
    bind 127.0.0.1:{port}
    {rule}
    default_backend app
backend app
    http-reuse always
    server app 127.0.0.1:{app}
backend auth
    http-reuse always
    server auth 127.0.0.1:{auth}
"""
RULES = {"without": "", "with": "http-request auth-request auth path /check?s=0 copy remote-user"}


def on(processor):
    """Returns a function that binds the child process to a processor."""
    return lambda: os.sched_setaffinity(0, {processor})


@contextlib.contextmanager
def origin(weir):
    """Runs a server, and yields its port."""
    port = free_port()
    command = [weir, "origin", "--threads", "1", "-L", f"127.0.0.1:{port}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=on(1))
    try:
        while not listens(port):
            if process.poll() is not None:
                sys.exit("the origin does not start")
            time.sleep(0.002)
        yield port
    finally:
        process.terminate()
        process.wait()


def measure(options, rule, connections, ports):
    """Returns the microseconds of processor time of a request."""
    port = free_port()
    text = CONFIGURATION.format(port=port, rule=RULES[rule], **ports)
    with tempfile.TemporaryDirectory() as folder:
        with serving(options.weir, text, folder, lambda: listens(port), on(0)) as proxy:
            load = [options.weir, "load", "-c", connections, "-A", "--json", "-q", f"http://127.0.0.1:{port}/?s=64"]
            subprocess.run([*load, "-d", "0.3s"], stdout=subprocess.DEVNULL, check=True, preexec_fn=on(1), timeout=60)
            before = spent(proxy.pid)
            command = [*load, "-d", f"{options.seconds}s"]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True, preexec_fn=on(1), timeout=60)
            used = spent(proxy.pid) - before
    summary = json.loads(done.stdout.splitlines()[-1])
    if not summary["answers"] or summary["answers"] != summary["status_2xx"]:
        sys.exit(f"not all requests succeeded: {summary['answers']} answers, {summary['status_2xx']} with status 200")
    return used / summary["answers"] * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weir")
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--connections", default="1,32")
    options = parser.parse_args()
    found = {}
    with origin(options.weir) as app, origin(options.weir) as auth:
        for number in range(options.rounds):
            for connections in options.connections.split(","):
                # The order alternates, so that a machine that slows down favours neither.
                for rule in RULES if number % 2 == 0 else reversed(RULES):
                    used = measure(options, rule, connections, {"app": app, "auth": auth})
                    found.setdefault((connections, rule), []).append(used)
    print("| connections | without, µs | with, µs | ratio |\n|---|---|---|---|")
    for connections in options.connections.split(","):
        without, with_rule = found[(connections, "without")], found[(connections, "with")]
        ratio = statistics.median(more / less for more, less in zip(with_rule, without))
        print(f"| {connections} | {statistics.median(without):.2f} | {statistics.median(with_rule):.2f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
