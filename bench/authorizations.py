#!/usr/bin/env python3
"""Measures what forward authentication costs: the processor time of a request with it, divided by that of one without.

    bench/authorizations.py WEIR [--seconds 1.5] [--rounds 9] [--connections 1,32]
        [--nginx PROGRAM] [--haproxy PROGRAM]... [--lua FOLDER]

Weir is measured with `http-request auth-request`, and with its `cache`, whose permission is always known. nginx has its module
`auth_request`; HAProxy has haproxy-auth-request, of which FOLDER has auth-request.lua, haproxy-lua-http.lua and json.lua (docs/lua.md).

The proxy has one thread on the first processor; clients, the server of the requests and the one that decides (`weir load`, `weir origin`)
have the second one. Printed are medians of alternating rounds. Linux only; nothing is changed outside of a temporary folder.
"""

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from proxies import free_port, listens, serving, spent

CONFIGURATION = """global
    nbthread 1
    {setting}
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
NGINX = """daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_requests 1000000000;
    upstream app {{ server 127.0.0.1:{app}; keepalive 64; keepalive_requests 1000000000; }}
    upstream auth {{ server 127.0.0.1:{auth}; keepalive 64; keepalive_requests 1000000000; }}
    server {{
        listen 127.0.0.1:{port};
        proxy_http_version 1.1;
        location / {{
            {rule}
            proxy_set_header Connection "";
            proxy_pass http://app;
        }}
        location = /_check {{
            internal;
            proxy_pass_request_body off;
            proxy_set_header Connection "";
            proxy_set_header Content-Length "";
            proxy_set_header X-Original-URI $request_uri;
            proxy_pass http://auth/check?s=0;
        }}
    }}
}}
"""
ASKS = "http-request auth-request auth path /check?s=0 copy remote-user"
WEIR_RULES = {"without": "", "with": ASKS, "known": f"{ASKS} cache 1m key %[req.hdr(host)]"}
NGINX_RULES = {
    "without": "",
    "with": "auth_request /_check; auth_request_set $user $upstream_http_remote_user; proxy_set_header Remote-User $user;",
}
LUA_RULES = {
    "without": "",
    "with": "http-request lua.auth-intercept auth /check?s=0 GET * remote-user -\n"
    "    http-request deny unless { var(txn.auth_response_successful) -m bool }",
}


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


@contextlib.contextmanager
def nginx(program, text, folder, port):
    """Runs nginx with that configuration."""
    file = os.path.join(folder, "nginx.conf")
    with open(file, "w", encoding="ascii") as out:
        out.write(text)
    # It writes to its compiled-in log before it has read its configuration.
    process = subprocess.Popen([program, "-c", file], stderr=subprocess.DEVNULL, preexec_fn=on(0))
    try:
        while not listens(port):
            if process.poll() is not None:
                sys.exit("nginx does not start")
            time.sleep(0.002)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


class Proxy:
    """A proxy under test."""

    def __init__(self, name, program, rules, setting=""):
        self.name, self.program, self.rules, self.setting = name, program, rules, setting

    def serving(self, rule, folder, ports):
        """Runs it with one of its rules."""
        values = {"rule": self.rules[rule], "setting": self.setting, "folder": folder, **ports}
        if self.rules is NGINX_RULES:
            return nginx(self.program, NGINX.format(**values), folder, ports["port"])
        return serving(self.program, CONFIGURATION.format(**values), folder, lambda: listens(ports["port"]), on(0))


def proxies(options):
    """Returns the proxies of the command line."""
    found = [Proxy("Weir", options.weir, WEIR_RULES)]
    if options.nginx:
        found.append(Proxy("nginx", options.nginx, NGINX_RULES))
    for program in options.haproxy:
        version = subprocess.run([program, "-v"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[2]
        setting = f"lua-prepend-path {options.lua}/?.lua\n    lua-load {options.lua}/auth-request.lua"
        if [int(part) for part in version.split("-")[0].split(".")[:2]] >= [3, 1]:
            setting = f"tune.lua.bool-sample-conversion pre-3.1-bug\n    {setting}"
        found.append(Proxy(f"HAProxy {version.split('-')[0]}", program, LUA_RULES, setting))
    return found


def measure(options, proxy, rule, connections, ports):
    """Returns the microseconds of processor time of a request."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        with proxy.serving(rule, folder, {"port": port, **ports}) as process:
            load = [options.weir, "load", "-c", connections, "-A", "--json", "-q", f"http://127.0.0.1:{port}/?s=64"]
            subprocess.run([*load, "-d", "0.3s"], stdout=subprocess.DEVNULL, check=True, preexec_fn=on(1), timeout=60)
            before = spent(process.pid)
            command = [*load, "-d", f"{options.seconds}s"]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True, preexec_fn=on(1), timeout=60)
            used = spent(process.pid) - before
    summary = json.loads(done.stdout.splitlines()[-1])
    if not summary["answers"] or summary["answers"] != summary["status_2xx"]:
        sys.exit(f"{proxy.name}: {summary['answers']} answers, {summary['status_2xx']} with status 200")
    return used / summary["answers"] * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weir")
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--connections", default="1,32")
    parser.add_argument("--nginx")
    parser.add_argument("--haproxy", action="append", default=[])
    parser.add_argument("--lua", default="/etc/weir")
    options = parser.parse_args()
    found = {}
    tested = proxies(options)
    with origin(options.weir) as app, origin(options.weir) as auth:
        for number in range(options.rounds):
            for connections in options.connections.split(","):
                cases = [(proxy, rule) for proxy in tested for rule in proxy.rules]
                # The order alternates, so that a machine that slows down favours none.
                for proxy, rule in cases if number % 2 == 0 else reversed(cases):
                    used = measure(options, proxy, rule, connections, {"app": app, "auth": auth})
                    found.setdefault((connections, proxy.name, rule), []).append(used)
    print("| connections | proxy | without, µs | with, µs | ratio | known, µs | ratio |\n|---|---|---|---|---|---|---|")
    for connections in options.connections.split(","):
        for proxy in tested:
            without = found[(connections, proxy.name, "without")]
            cells = [f"{statistics.median(without):.2f}"]
            for rule in ("with", "known"):
                values = found.get((connections, proxy.name, rule))
                ratio = values and statistics.median(more / less for more, less in zip(values, without))
                cells += [f"{statistics.median(values):.2f}", f"{ratio:.2f}"] if values else ["", ""]
            print(f"| {connections} | {proxy.name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
