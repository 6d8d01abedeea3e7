#!/usr/bin/env python3
"""Compares the cost of a call of a Lua function in Weir and HAProxy, in processor time per request.

    bench/lua.py WEIR HAPROXY [HAPROXY...] [--rate 2000] [--seconds 5] [--rounds 5] [--threads 2]

All programs serve the same rate of requests at the same time, each with several configurations: without Lua, with a fetch
that returns a constant, with one that reads the path and a header, with a converter, and with an action that sets a
variable; with one state for all threads, and with one for each. `weir load` generates the load. The first column is the
processor time of a request without Lua, in microseconds; the others are the additional time of the call: medians of the rounds.
Linux only; nothing is changed outside of a temporary folder.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import tempfile
import time

from proxies import free_port, listens, serving, spent

SCRIPT = """
core.register_fetches("constant", function(txn) return "x" end)
core.register_fetches("asks", function(txn) return txn.f:path() .. txn.sf:req_hdr("host") end)
core.register_converters("twice", function(text) return text .. text end)
core.register_action("sets", { "http-req" }, function(txn) txn:set_var("txn.a", "b") end)
"""

KINDS = {
    "none": "",
    "fetch": "    http-request set-header x-a %[lua.constant]\n",
    "asking": "    http-request set-header x-a %[lua.asks]\n",
    "converter": "    http-request set-header x-a %[path,lua.twice]\n",
    "action": "    http-request lua.sets\n",
}


def configuration(port, threads, keyword, script, rule):
    return (
        f"global\n    nbthread {threads}\n    tune.lua.bool-sample-conversion normal\n    {keyword} {script}\n"
        "defaults\n    mode http\n    timeout client 60s\n    timeout server 60s\n    timeout connect 60s\n"
        f"frontend web\n    bind 127.0.0.1:{port}\n{rule}    http-request return status 200 content-type text/plain string x\n"
    )


def measure(programs, keyword, rule, options):
    """Returns the processor seconds per request of each program, under the same load at the same time."""
    with contextlib.ExitStack() as stack:
        running = []
        for program in programs:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            script = os.path.join(folder, "script.lua")
            with open(script, "w", encoding="ascii") as out:
                out.write(SCRIPT)
            port = free_port()
            text = configuration(port, options.threads, keyword, script, rule)
            process = stack.enter_context(serving(program, text, folder, lambda port=port: listens(port)))
            running.append((process, port))
        rate = str(options.rate)
        count = str(options.rate * options.seconds)
        load = [options.weir, "load", "-c", "16", "-n", count, "--constant", rate]

        def under_load():
            clients = [
                subprocess.Popen([*load, f"http://127.0.0.1:{port}/a/path"], stdout=subprocess.DEVNULL)
                for _, port in running
            ]
            if any(client.wait() for client in clients):
                raise SystemExit("the load did not finish")

        under_load()
        time.sleep(0.2)
        before = [spent(process.pid) for process, _ in running]
        under_load()
        after = [spent(process.pid) for process, _ in running]
    requests = options.rate * options.seconds
    return [(last - first) / requests for first, last in zip(before, after)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weir")
    parser.add_argument("haproxy", nargs="+")
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    programs = [options.weir, *options.haproxy]
    for keyword in ("lua-load", "lua-load-per-thread"):
        found = {kind: [[] for _ in programs] for kind in KINDS}
        for _ in range(options.rounds):
            for kind, rule in KINDS.items():
                for costs, cost in zip(found[kind], measure(programs, keyword, rule, options)):
                    costs.append(cost * 1e6)
        print(keyword)
        print(f"  {'program':40}" + "".join(f"{kind:>11}" for kind in KINDS))
        for index, program in enumerate(programs):
            base = statistics.median(found["none"][index])
            row = [base] + [statistics.median(found[kind][index]) - base for kind in KINDS if kind != "none"]
            print(f"  {program[-40:]:40}" + "".join(f"{cost:11.2f}" for cost in row))


if __name__ == "__main__":
    main()
