#!/usr/bin/env python3
"""Compares what a datagram and its answer cost: the processor time of Weir's `udp-lb`, nginx's stream module and Envoy.

    bench/datagrams.py WEIR [--nginx nginx] [--envoy envoy] [--seconds 2] [--rounds 5] [--flows 32]

Each proxy has one thread on the first processor; client and server have the second one. "known": a round trip of 100 bytes on one of
`--flows` flows. "new": each datagram begins a flow, which ends with its answer (Envoy: after a second). Printed are medians of alternating
rounds in microseconds, and Weir's share. Linux only; nothing is changed outside of a temporary folder. A proxy that is not installed is
left out.
"""

import argparse
import contextlib
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from proxies import free_port, spent

WEIR = """global
    nbthread 1
    maxconn 9000
udp-lb u
    dgram-bind 127.0.0.1:{port}
    timeout client 60s
    {responses}
    server s 127.0.0.1:{server}
"""
NGINX = """daemon off; master_process off; pid {folder}/pid; error_log {folder}/log;
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
events {{ worker_connections 15000; }}
stream {{ server {{ listen 127.0.0.1:{port} udp; proxy_timeout 60s; {responses} proxy_pass 127.0.0.1:{server}; }} }}
"""
ENVOY = """static_resources:
  listeners:
  - address: {{ socket_address: {{ protocol: UDP, address: 127.0.0.1, port_value: {port} }} }}
    listener_filters:
    - name: envoy.filters.udp_listener.udp_proxy
      typed_config:
        '@type': type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig
        stat_prefix: u
        idle_timeout: {idle}
        matcher:
          on_no_match:
            action:
              name: route
              typed_config:
                '@type': type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.Route
                cluster: s
  clusters:
  - name: s
    type: STATIC
    load_assignment:
      cluster_name: s
      endpoints:
      - lb_endpoints:
        - endpoint: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {server} }} }} }}
"""
CONTENTS = b"x" * 100


def on(processor):
    """Returns a function that binds the child process to a processor."""
    return lambda: os.sched_setaffinity(0, {processor})


def command(proxy, mode, folder, port, server, options):
    """Writes the configuration of a proxy. Returns its command."""
    is_new = mode == "new"
    values = {"port": port, "server": server, "folder": folder}
    path = os.path.join(folder, "configuration")
    if proxy == "weir":
        text, line = WEIR.format(responses="proxy-responses 1" if is_new else "", **values), [options.weir, "-db", "-f", path]
    elif proxy == "nginx":
        text = NGINX.format(responses="proxy_responses 1;" if is_new else "", **values)
        line = [options.nginx, "-c", path, "-p", folder]
    else:
        text = ENVOY.format(idle="1s" if is_new else "60s", **values)
        line = [options.envoy, "-c", path, "--concurrency", "1", "--use-dynamic-base-id", "-l", "off"]
        path += ".yaml"
        line[2] = path
    with open(path, "w", encoding="ascii") as out:
        out.write(text)
    return line


@contextlib.contextmanager
def echo():
    """Runs a server that sends each datagram back, and yields its port."""
    port = free_port(socket.SOCK_DGRAM)
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {1})
        own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        own.bind(("127.0.0.1", port))
        while True:
            contents, sender = own.recvfrom(2048)
            own.sendto(contents, sender)
    try:
        yield port
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def client(port):
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.settimeout(1)
    own.connect(("127.0.0.1", port))
    return own


def answers(own):
    """Sends a datagram; returns whether it is answered."""
    try:
        own.send(CONTENTS)
        return own.recv(2048) == CONTENTS
    except OSError:
        return False


def exchange(port, mode, options, seconds):
    """Sends datagrams for a time, one at a time on each flow. Returns the number of answers."""
    clients = [client(port) for _ in range(options.flows)]
    done, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        if mode == "new":
            for own in clients:
                own.close()
            clients = [client(port) for _ in range(options.flows)]
        for own in clients:
            own.send(CONTENTS)
        for own in clients:
            try:
                if own.recv(2048) != CONTENTS:
                    sys.exit("an answer is not what was sent")
            except TimeoutError:
                continue
            done += 1
    for own in clients:
        own.close()
    return done


def measure(proxy, mode, options):
    """Returns the microseconds of processor time of a datagram and its answer."""
    port = free_port(socket.SOCK_DGRAM)
    with tempfile.TemporaryDirectory() as folder, echo() as server:
        line = command(proxy, mode, folder, port, server, options)
        with open(os.path.join(folder, "output"), "wb") as log:
            process = subprocess.Popen(line, stdout=log, stderr=log, preexec_fn=on(0))
        try:
            for _ in range(100):
                with client(port) as probe:
                    probe.settimeout(0.1)
                    if answers(probe):
                        break
                time.sleep(0.05)
            else:
                with open(os.path.join(folder, "output"), encoding="utf-8", errors="replace") as log:
                    sys.exit(f"{proxy} does not answer: {log.read()[-500:]}")
            exchange(port, mode, options, 0.2)
            before = spent(process.pid)
            done = exchange(port, mode, options, options.seconds)
            return (spent(process.pid) - before) / done * 1e6
        finally:
            process.terminate()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weir")
    parser.add_argument("--nginx", default="/usr/sbin/nginx")
    parser.add_argument("--envoy", default=shutil.which("envoy"))
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--flows", type=int, default=32)
    options = parser.parse_args()
    os.sched_setaffinity(0, {1})
    rivals = [name for name in ("nginx", "envoy") if (path := getattr(options, name)) and os.path.exists(path)]
    for mode in ("known", "new"):
        found = {proxy: [] for proxy in ["weir", *rivals]}
        for _ in range(options.rounds):
            for proxy, values in found.items():
                values.append(measure(proxy, mode, options))
        medians = {proxy: statistics.median(values) for proxy, values in found.items()}
        shares = [f"{medians['weir'] / medians[rival]:.2f} of {rival}'s" for rival in rivals]
        shown = ", ".join(f"{proxy} {value:.1f} µs" for proxy, value in medians.items())
        print(f"{mode}: {shown}; {', '.join(shares)}", flush=True)


if __name__ == "__main__":
    main()
