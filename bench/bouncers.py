#!/usr/bin/env python3
"""Measures how long a decision about a request takes: by a list, a script with a list, an agent, and Coraza with the Core Rule Set.

    bench/bouncers.py WEIR [--requests 3000] [--rounds 5]

A client sends one request after the other over one connection, which Weir answers itself. A decision is the time of a request with it
less the median of requests without one; the rounds of all rows alternate. Both agents are built by Go from the tests' directories; their
rows are left out without it. Linux only; nothing is changed outside of a temporary folder.
"""

import argparse
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from proxies import free_port, listens, serving

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = {"agent": "../crates/weir/tests/process/spop_agent", "coraza": "../tests/coraza"}

# 10,000 networks of documentation and others that are not the client's.
LIST = "".join(f"10.{number >> 8}.{number & 255}.0/24 ban\n" for number in range(10000))
SCRIPT = """local map
core.register_init(function() map = Map.new("%s/list.map", Map._ip) end)
core.register_action("allow", { "http-req" }, function(txn)
    txn:set_var("req.remediation", map:lookup(txn.f:src()))
end, 0)
"""
ENGINE = """[e]
spoe-agent agent
    messages request
    option var-prefix e
    option set-on-error error
    timeout processing 5s
    use-backend agents
spoe-message request
    args %s
    event on-frontend-http-request
"""
ADDRESS = "src-ip=src src-port=src_port"
WHOLE = (
    "src-ip=src src-port=src_port dst-ip=dst dst-port=dst_port method=method path=path query=query version=req.ver "
    "headers=req.hdrs body=req.body"
)
RULES = "Include @coraza.conf-recommended\nSecRuleEngine On\nInclude @crs-setup.conf.example\nInclude @owasp_crs/*.conf\n"
ENDS = "http-request return status 200 content-type text/plain string ok"
ROWS = {
    "none": "",
    "a map (`map_ip`)": "http-request deny if { src,map_ip(%s/list.map) -m str ban }",
    "a script with a map": "http-request lua.allow\n http-request deny if { var(req.remediation) -m str ban }",
    "an agent that is asked about the address": "filter spoe engine e config %s/agent.cfg",
    "Coraza with the Core Rule Set": "filter spoe engine e config %s/coraza.cfg",
}
AGENTS = {"an agent that is asked about the address": "agent", "Coraza with the Core Rule Set": "coraza"}


def built(name, folder):
    """Builds an agent. Returns its program, or None."""
    program = os.path.join(folder, name)
    command = ["go", "build", "-buildvcs=false", "-mod=readonly", "-o", program, "."]
    with contextlib.suppress(FileNotFoundError):
        if subprocess.run(command, cwd=os.path.join(HERE, MODULES[name]), check=False, timeout=600).returncode == 0:
            return program
    print(f"{name} cannot be built: its row is left out", file=sys.stderr)
    return None


@contextlib.contextmanager
def running(name, program, folder):
    """Runs an agent until the end."""
    path = os.path.join(folder, f"{name}.socket")
    arguments = [os.path.join(folder, "rules.conf")] if name == "coraza" else []
    process = subprocess.Popen([program, path, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        while not os.path.exists(path):
            if process.poll() is not None:
                sys.exit(f"{name} does not start")
            time.sleep(0.01)
        yield
    finally:
        process.terminate()
        process.wait()


def configuration(port, row, folder):
    """Returns the configuration of a row."""
    rule = ROWS[row] % folder if "%s" in ROWS[row] else ROWS[row]
    # Without a row that uses it, no script is loaded.
    script = f"lua-load {folder}/allow.lua" if "lua." in rule else ""
    path = f"{folder}/{AGENTS.get(row, 'agent')}.socket"
    return (
        f"global\n nbthread 1\n tune.lua.bool-sample-conversion normal\n {script}\ndefaults\n mode http\n timeout connect 5s\n"
        f" timeout client 60s\n timeout server 60s\nfrontend f\n bind 127.0.0.1:{port}\n option http-buffer-request\n {rule}\n"
        f" http-request deny deny_status 503 if {{ var(txn.e.error) -m found }}\n {ENDS}\n"
        f"backend agents\n mode spop\n server a {path}\n"
    )


def measure(weir, row, folder, requests):
    """Returns the microseconds of each request."""
    port = free_port()
    head = b"GET /products?id=7&page=2 HTTP/1.1\r\nhost: www.example.com\r\nuser-agent: Mozilla/5.0\r\naccept: */*\r\n\r\n"
    with serving(weir, configuration(port, row, folder), folder, lambda: listens(port)):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            took = []
            for number in range(requests + 200):
                before = time.perf_counter_ns()
                client.sendall(head)
                answer = client.recv(4096)
                if number >= 200:
                    took.append((time.perf_counter_ns() - before) / 1000)
                if not answer.startswith(b"HTTP/1.1 200 "):
                    sys.exit(f"{row}: {answer[:200]}")
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weir")
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as agents:
        for name, text in {
            "list.map": LIST,
            "allow.lua": SCRIPT % folder,
            "agent.cfg": ENGINE % ADDRESS,
            "coraza.cfg": ENGINE % WHOLE,
            "rules.conf": RULES,
        }.items():
            with open(os.path.join(folder, name), "w", encoding="ascii") as out:
                out.write(text)
        there = {name for name in MODULES if (program := built(name, folder)) and agents.enter_context(running(name, program, folder)) is None}
        rows = [row for row in ROWS if AGENTS.get(row) in {None, *there}]
        found = {row: [] for row in rows}
        for number in range(options.rounds):
            for row in rows if number % 2 == 0 else reversed(rows):
                found[row] += measure(options.weir, row, folder, options.requests)
    base = statistics.median(found["none"])
    print("| decision by | median, µs | 99th percentile, µs |\n|---|---|---|")
    print(f"| none (the whole request) | {base:.0f} | {statistics.quantiles(found['none'], n=100)[98]:.0f} |")
    for row in rows[1:]:
        took = [time - base for time in found[row]]
        print(f"| {row} | {statistics.median(took):.0f} | {statistics.quantiles(took, n=100)[98]:.0f} |")


if __name__ == "__main__":
    main()
