#!/usr/bin/env python3
"""Measures what several nodes cost and how fast they agree (docs/fleet.md, docs/acme.md, docs/bgp.md).

    bench/fleet.py rules WEIR [PROXY...] [--seconds 2] [--rounds 7]
    bench/fleet.py sums WEIR [--samples 500]
    bench/fleet.py limits WEIR [--delay 0.1] [--seconds 30] [--rate 1000] [--nodes 2]
    bench/fleet.py certificates WEIR PEBBLE [--samples 20]
    bench/fleet.py addresses WEIR [--samples 20]

rules         processor time that a limit of a store and a summed table add to a request, beside a stick table of the node; proxies
              that read HAProxy's configuration are measured without the first two
sums          time from a change on one node until another one shows it in its sums
limits        requests that nodes admit together in every 10 seconds, in percent of the limit, with a delay of the store
certificates  time from a new certificate on one node until four others use it
addresses     time from the last server's end until a router (BIRD) has withdrawn the address, in milliseconds and in checks

`limits`, `rules` and `certificates` need redis-server, `addresses` bird; Pebble is built in tests/pebble. Linux only; nothing is changed
outside of a temporary folder.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from proxies import free_port, listens, serving, spent

TIMES = "    timeout connect 5s\n    timeout client 60s\n    timeout server 60s\n"
# Bounds every wait, in seconds.
PATIENCE = 60


def wait(what, happens):
    """Returns the first result of `happens` that is true."""
    deadline = time.monotonic() + PATIENCE
    while not (found := happens()):
        if time.monotonic() > deadline:
            sys.exit(f"not within {PATIENCE} seconds: {what}")
        time.sleep(0.0005)
    return found


def on(processor):
    """Returns a function that binds the child process to a processor."""
    return lambda: os.sched_setaffinity(0, {processor})


@contextlib.contextmanager
def running(command, is_ready, before=None, environment=None):
    """Runs a program without output, once it `is_ready`, and stops it afterwards."""
    devnull = subprocess.DEVNULL
    environment = {**os.environ, **(environment or {})}
    process = subprocess.Popen(command, stdin=devnull, stdout=devnull, stderr=devnull, preexec_fn=before, env=environment)
    try:
        wait(f"start of {command[0]}", lambda: process.poll() is not None or is_ready())
        if process.poll() is not None:
            sys.exit(f"{command[0]} does not start")
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def redis(folder, processor=1):
    path = os.path.join(folder, "redis")
    command = ["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder]
    return running(command, lambda: accepts(path), on(processor))


def accepts(path):
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


class Api:
    """A connection to the runtime API."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.ask("prompt")

    def ask(self, command):
        """Returns the answer, without the prompt behind it."""
        self.socket.sendall(command.encode() + b"\n")
        answer = b""
        while not answer.endswith(b"> "):
            some = self.socket.recv(65536)
            if not some:
                sys.exit(f"{self.path} has closed")
            answer += some
        return answer.decode()


@contextlib.contextmanager
def node(program, configuration, folder, name, before=None):
    """Runs a node, and yields its runtime API."""
    path = os.path.join(folder, name)
    os.makedirs(path, exist_ok=True)
    api = os.path.join(path, "api")
    text = f"global\n    localpeer {name}\n    stats socket {api} level admin\n{configuration}"
    with serving(program, text, path, lambda: accepts(api), before):
        yield Api(api)


def percentiles(values):
    values = sorted(values)
    return values[len(values) // 2], values[min(len(values) - 1, len(values) * 99 // 100)], values[-1]


RULES = {
    "none": "",
    "stick table": "    http-request track-sc0 src table cluster/clients\n"
    "    http-request deny deny_status 429 if { sc_http_req_rate(0) gt 2000000000 }\n",
    "summed table": "    http-request track-sc0 src table cluster/clients\n"
    "    http-request deny deny_status 429 if { src,table_http_req_rate(cluster/clients.agg) gt 2000000000 }\n",
    "store": "    http-request deny deny_status 429 if { src,exceeds(fleet/requests) }\n",
}
WEIRS_OWN = ("summed table", "store")


def rule_sections(rule, folder, port, origin):
    text = f"    nbthread 1\ndefaults\n    mode http\n{TIMES}"
    if "table" in rule:
        table = "type ip size 100k expire 1h store http_req_rate(10s)"
        text += f"peers cluster\n    peer one 127.0.0.1:{free_port()}\n    table clients {table}\n"
        text += f"    table clients.agg {table}\n" if rule == "summed table" else ""
    if rule == "store":
        text += f"store fleet\n    server redis unix@{folder}/redis\n"
        text += "    limit requests rate 1000000 period 1s\n"
    return text + f"frontend f\n    bind 127.0.0.1:{port}\n{RULES[rule]}    default_backend b\n" + (
        f"backend b\n    http-reuse always\n    server origin 127.0.0.1:{origin}\n"
    )


def measure_rules(options):
    origin = free_port()
    command = [options.weir, "origin", "--threads", "1", "-L", f"127.0.0.1:{origin}"]
    found = {}
    with tempfile.TemporaryDirectory() as folder, redis(folder), running(command, lambda: listens(origin), on(1)):
        for number in range(options.rounds):
            rows = [
                (program, rule)
                for program in [options.weir, *options.proxies]
                for rule in RULES
                if program == options.weir or rule not in WEIRS_OWN
            ]
            # The order alternates, so that a machine that slows down favours none.
            for program, rule in rows if number % 2 == 0 else reversed(rows):
                port = free_port()
                text = f"global\n    localpeer one\n{rule_sections(rule, folder, port, origin)}"
                with serving(program, text, folder, lambda: listens(port), on(0)) as proxy:
                    load = [options.weir, "load", "-c", "32", "-A", "--json", "-q", f"http://127.0.0.1:{port}/?s=64"]
                    subprocess.run([*load, "-d", "0.5s"], stdout=subprocess.DEVNULL, check=True, preexec_fn=on(1))
                    before = spent(proxy.pid)
                    done = subprocess.run(
                        [*load, "-d", f"{options.seconds}s"], stdout=subprocess.PIPE, check=True, preexec_fn=on(1)
                    )
                    used = spent(proxy.pid) - before
                summary = json.loads(done.stdout.splitlines()[-1])
                if not summary["answers"] or summary["answers"] != summary["status_2xx"]:
                    sys.exit(f"{program}, {rule}: {summary['answers']} answers, {summary['status_2xx']} with status 200")
                found.setdefault((program, rule), []).append(used / summary["answers"] * 1e6)
    print("| proxy | rule | processor time of a request, µs | more than without a rule, µs |\n|---|---|---|---|")
    for (program, rule), times in found.items():
        base = found[(program, "none")]
        more = statistics.median(one - without for one, without in zip(times, base))
        print(f"| {program} | {rule} | {statistics.median(times):.2f} | {more:.2f} |")


def measure_sums(options):
    ports = {"one": free_port(), "two": free_port()}
    table = "type string len 20 size 100k expire 1h store gpc0"
    sections = f"defaults\n    mode http\n{TIMES}peers cluster\n"
    sections += "".join(f"    peer {name} 127.0.0.1:{port}\n" for name, port in ports.items())
    sections += f"    table t {table}\n    table t.agg {table}\n"
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        one, two = (stack.enter_context(node(options.weir, sections, folder, name)) for name in ports)

        def change(key):
            """Returns the milliseconds until the other node knows a change."""
            begin = time.monotonic()
            one.ask(f"set table cluster/t key {key} data.gpc0 7")
            wait("the sum", lambda: "gpc0=7" in two.ask(f"show table cluster/t.agg key {key}"))
            return (time.monotonic() - begin) * 1e3

        change("first")
        half, most, worst = percentiles([change(f"k{number}") for number in range(options.samples)])
    print(f"sums, ms: 50 % {half:.2f}, 99 % {most:.2f}, longest {worst:.2f} ({options.samples} changes)")


class Relay:
    """Forwards connections to a UNIX socket, each byte half of the delay later in each direction."""

    def __init__(self, listen, path, delay):
        self.path, self.delay = path, delay / 2
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(listen)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client = self.listener.accept()[0]
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.path)
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self.copy, args=(source, sink), daemon=True).start()

    def copy(self, source, sink):
        late = []
        ready = threading.Condition()

        def send():
            while True:
                with ready:
                    while not late:
                        ready.wait()
                    due, some = late.pop(0)
                time.sleep(max(0, due - time.monotonic()))
                try:
                    sink.sendall(some)
                except OSError:
                    return

        threading.Thread(target=send, daemon=True).start()
        while some := source.recv(65536):
            with ready:
                late.append((time.monotonic() + self.delay, some))
                ready.notify()


def measure_limits(options):
    window = 10
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        stack.enter_context(redis(folder, 0))
        Relay(f"{folder}/relay", f"{folder}/redis", options.delay)
        ports = [free_port() for _ in range(options.nodes)]
        apis = []
        for number, port in enumerate(ports):
            text = f"store fleet\n    server redis unix@{folder}/relay\n"
            text += f"    limit requests rate {options.rate} period 1s burst {options.rate // 10}\n"
            text += f"defaults\n    mode http\n{TIMES}frontend f\n    bind 127.0.0.1:{port}\n"
            text += "    http-request deny deny_status 429 if { src,exceeds(fleet/requests) }\n    http-request return status 200\n"
            apis.append(stack.enter_context(node(options.weir, text, folder, f"n{number}")))
        for api in apis:
            wait("all nodes", lambda api=api: f"state UP nodes {options.nodes}" in api.ask("show store"))

        def admitted():
            return [int(api.ask("show store").split(" admitted ")[1].split()[0]) for api in apis]

        # Each node is asked for twice its share.
        rate = str(2 * options.rate // options.nodes)
        load = ["load", "-c", "8", "-R", rate, "-d", f"{options.seconds}s", "-q"]
        clients = [subprocess.Popen([options.weir, *load, f"http://127.0.0.1:{port}/"], stdout=subprocess.DEVNULL) for port in ports]
        wait("requests at all nodes", lambda: all(admitted()))
        begin = time.monotonic()
        points = []
        while any(client.poll() is None for client in clients):
            points.append((time.monotonic() - begin, sum(admitted())))
            time.sleep(0.1)
        # The last second is that of clients that end.
        points = [point for point in points if point[0] < options.seconds - 1]
    errors = []
    for at, (first, before) in enumerate(points):
        for last, after in points[at:]:
            if last - first >= window:
                limit = options.rate * (last - first)
                errors.append(((after - before) / limit - 1, (after - before - options.rate // 10) / limit - 1))
    print(
        f"{options.nodes} nodes, {options.rate} a second, store delayed by {options.delay * 1e3:.0f} ms, windows of {window} s and more: "
        f"at least {min(error[0] for error in errors) * 100:+.2f} % of the limit, "
        f"at most {max(error[1] for error in errors) * 100:+.2f} % beyond limit and burst"
    )


def pebble(options, folder):
    """Returns a context in which Pebble runs and validates everything, and its directory."""
    port, management = free_port(), free_port()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2", "-keyout"]
        + [f"{folder}/ca.key", "-out", f"{folder}/ca.pem", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    settings = {
        "listenAddress": f"127.0.0.1:{port}",
        "managementListenAddress": f"127.0.0.1:{management}",
        "certificate": f"{folder}/ca.pem",
        "privateKey": f"{folder}/ca.key",
        "httpPort": free_port(),
        "tlsPort": free_port(),
        "retryAfter": {"authz": 1, "order": 1},
        "profiles": {"default": {"description": "d", "validityPeriod": 7776000}},
    }
    with open(f"{folder}/pebble.json", "w", encoding="ascii") as out:
        json.dump({"pebble": settings}, out)
    environment = {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_VA_ALWAYS_VALID": "1", "PEBBLE_WFE_NONCEREJECT": "0"}
    command = [options.pebble, "-config", f"{folder}/pebble.json"]
    return running(command, lambda: listens(port), None, environment), f"https://127.0.0.1:{port}/dir"


def measure_certificates(options):
    nodes = 5
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        stack.enter_context(redis(folder, 0))
        server, directory = pebble(options, folder)
        stack.enter_context(server)
        apis, names = [], []
        for number in range(nodes):
            name = f"{folder}/c{number}.pem"
            text = (
                f"    httpclient.ssl.ca-file {folder}/ca.pem\n    httpclient.resolvers.disabled on\n"
                f"    expose-experimental-directives\n    cluster-secret secret\n"
                f"store fleet\n    server redis unix@{folder}/redis\n"
                f"acme default\n    directory {directory}\n    keytype ECDSA\n    curves P-256\n    shared-store fleet\n"
                f"crt-store\n    load crt {name} acme default domains a.example\n"
                f"frontend f\n    mode http\n{TIMES.splitlines()[1]}\n    bind 127.0.0.1:{free_port()} ssl crt {name}\n"
            )
            apis.append(stack.enter_context(node(options.weir, text, folder, f"n{number}")))
            names.append(name)

        def serial(number):
            shown = apis[number].ask(f"show ssl cert {names[number]}")
            return "Pebble" in shown and shown.split("Serial: ")[1].split()[0]

        for number in range(nodes):
            wait("the first certificate", lambda number=number: serial(number))
        delays = []
        for _ in range(options.samples):
            former = serial(0)
            wait("one certificate", lambda former=former: all(serial(number) == former for number in range(nodes)))
            apis[0].ask(f"acme renew {names[0]}")
            wait("the next certificate", lambda former=former: serial(0) not in (False, former))
            begin, left = time.monotonic(), set(range(1, nodes))
            while left:
                left -= {number for number in left if serial(number) == serial(0)}
                if time.monotonic() - begin > PATIENCE:
                    sys.exit("a certificate is not delivered")
            delays.append((time.monotonic() - begin) * 1e3)
    half, _, worst = percentiles(delays)
    print(f"a certificate on all {nodes} nodes, ms: 50 % {half:.0f}, longest {worst:.0f} ({options.samples} certificates)")


def measure_addresses(options):
    interval = 0.1
    router, port = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        control = f"{folder}/bird.ctl"
        with open(f"{folder}/bird.conf", "w", encoding="ascii") as out:
            out.write(
                "router id 10.0.0.254;\nprotocol device {}\nprotocol bgp weir {\n"
                f" local 127.0.0.1 port {router} as 65000;\n neighbor 127.0.0.2 as 65001;\n multihop 2;\n passive;\n"
                " ipv4 { import all; export none; };\n}\n"
            )
        stack.enter_context(running(["bird", "-f", "-c", f"{folder}/bird.conf", "-s", control], lambda: accepts(control)))
        text = (
            f"defaults\n    mode http\n{TIMES}backend app\n    option httpchk GET /\n"
            f"    server one 127.0.0.1:{port} check inter {interval * 1e3:.0f} rise 1 fall 1 init-state down\n"
            "bgp edge\n    local-as 65001\n    router-id 10.0.0.1\n"
            f"    neighbor tor 127.0.0.1 as 65000 port {router} source 127.0.0.2 multihop 2\n"
            "    announce 203.0.113.10/32 if { nbsrv(app) ge 1 }\n"
        )
        stack.enter_context(node(options.weir, text, folder, "edge"))

        def bird(command):
            """Returns the answer of the router; its last line has a status code and a space."""
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(control)
                answers = client.makefile("rw", encoding="ascii")
                greeting = answers.readline()
                answers.write(f"{command}\n")
                answers.flush()
                answer = ""
                while line := answers.readline():
                    answer += line
                    if line[:4].isdigit() and line[4:5] == " " and line != greeting:
                        return answer
            sys.exit("the router has closed")

        def has_route():
            return "203.0.113.10/32" in bird("show route 203.0.113.10/32")

        command = [options.weir, "origin", "-L", f"127.0.0.1:{port}"]
        delays = []
        for _ in range(options.samples):
            with running(command, lambda: listens(port)) as server:
                wait("the route", has_route)
                server.kill()
                server.wait()
                begin = time.monotonic()
                wait("the withdrawal", lambda: not has_route())
                delays.append((time.monotonic() - begin) * 1e3)
    half, _, worst = percentiles(delays)
    print(
        f"withdrawn after the last server's end, ms: 50 % {half:.0f}, longest {worst:.0f}; "
        f"in checks of {interval * 1e3:.0f} ms: {half / interval / 1e3:.1f}, {worst / interval / 1e3:.1f} ({options.samples} times)"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(dest="part", required=True)
    rules = parts.add_parser("rules")
    sums, limits = parts.add_parser("sums"), parts.add_parser("limits")
    certificates, addresses = parts.add_parser("certificates"), parts.add_parser("addresses")
    for part in (rules, sums, limits, certificates, addresses):
        part.add_argument("weir")
    rules.add_argument("proxies", nargs="*")
    rules.add_argument("--seconds", type=float, default=2)
    rules.add_argument("--rounds", type=int, default=7)
    sums.add_argument("--samples", type=int, default=500)
    limits.add_argument("--delay", type=float, default=0.1)
    limits.add_argument("--seconds", type=float, default=30)
    limits.add_argument("--rate", type=int, default=1000)
    limits.add_argument("--nodes", type=int, default=2)
    certificates.add_argument("pebble")
    certificates.add_argument("--samples", type=int, default=20)
    addresses.add_argument("--samples", type=int, default=20)
    options = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin"
    measures = {
        "rules": measure_rules,
        "sums": measure_sums,
        "limits": measure_limits,
        "certificates": measure_certificates,
        "addresses": measure_addresses,
    }
    measures[options.part](options)


if __name__ == "__main__":
    main()
