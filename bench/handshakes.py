#!/usr/bin/env python3
"""Measures the effect of a storm of TLS handshakes on plain requests that the same thread serves.

    bench/handshakes.py WEIR HAPROXY [HAPROXY...] [--clients 64] [--rate 500] [--seconds 5] [--rounds 3]

The first program also generates the load (`weir load`). Each proxy has one thread on a processor of its own, and two listeners without
servers. A client sends requests to the plain one at a constant rate; latencies count from the time when a request is due. During the storm
other clients perform handshakes with the other one as fast as they can, without resumption. Prints medians of the rounds, which alternate.
Needs Python's `cryptography`. Linux only, two processors; nothing is changed outside of a temporary folder.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time

from names import make
from proxies import free_port, listens, serving


def configuration(plain, secure, folder):
    return (
        "global\n    nbthread 1\n    maxconn 2000\ndefaults\n    mode http\n    timeout connect 5s\n"
        "    timeout client 5s\n    timeout server 5s\nfrontend plain\n"
        f"    bind 127.0.0.1:{plain}\n    http-request return status 200\nfrontend secure\n"
        f"    bind 127.0.0.1:{secure} ssl crt {folder}/0.pem\n    http-request return status 200\n"
    )


def pinned(processor, urgent=False):
    """Binds a child process to a processor; raises the priority of the one that measures, if permitted."""

    def before():
        try:
            os.sched_setaffinity(0, [processor])
            if urgent:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        except OSError:
            pass

    return before


def load(weir, arguments, urgent=False):
    return subprocess.Popen(
        [weir, "load", "-q", "--json", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=pinned(1, urgent),
    )


def measure(program, folder, options, storm):
    """Returns the latency of the plain requests at 50 % and 99 % in microseconds, and handshakes per second."""
    plain, secure = free_port(), free_port()
    text = configuration(plain, secure, folder)
    are_open = lambda: listens(plain) and listens(secure)
    weir, others = options.programs[0], None
    with serving(program, text, folder, are_open, pinned(0)):
        try:
            if storm:
                limits = ["-c", str(options.clients), "-d", str(options.seconds + 2)]
                others = load(weir, [*limits, "--handshakes", f"https://127.0.0.1:{secure}/"])
                time.sleep(1)
            asked = ["-c", "2", "-d", str(options.seconds), "--constant", str(options.rate)]
            asking = load(weir, [*asked, f"http://127.0.0.1:{plain}/"], urgent=True)
            found = json.loads(asking.communicate()[0])
            made = json.loads(others.communicate()[0]) if others else None
            return report(found, made)
        finally:
            if others and others.poll() is None:
                others.kill()
                others.wait()


def report(found, made):
    times = dict(found["last_byte"])
    rate = made["handshakes"] / made["length"] if made else 0
    return times[50.0], times[99.0], rate


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="weir-handshakes-")
    try:
        make(folder, 1)
        found = {(program, storm): [] for program in options.programs for storm in (False, True)}
        for _ in range(options.rounds):
            for (program, storm), rounds in found.items():
                rounds.append(measure(program, folder, options, storm))
        print("| program | | 50 %, µs | 99 %, µs | handshakes a second |\n|---|---|---|---|---|")
        for (program, storm), rounds in found.items():
            half, most, made = (statistics.median(column) for column in zip(*rounds))
            kind, made = ("storm", f"{made:,.0f}") if storm else ("quiet", "")
            print(f"| {os.path.basename(program)} | {kind} | {half:,.0f} | {most:,.0f} | {made} |")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
