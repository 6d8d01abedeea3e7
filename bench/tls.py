#!/usr/bin/env python3
"""Compares what TLS costs proxies: processor time a request on kept connections, for 1 MB, and a handshake; memory of an idle
client.

    bench/tls.py PROXY [PROXY...] [--seconds 4] [--rounds 3] [--clients 2000]

Each proxy runs the same configuration with one thread on the first processor; nginx behind it, wrk, openssl s_time and the
idle clients share the second. A certificate with a key on P-256 is made for the run. Printed are medians of rounds in which
the proxies take turns. Linux only; nothing is changed outside of a temporary folder.
"""

import argparse
import os
import re
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def memory(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read())[1]) * 1024


def wait_for(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    sys.exit(f"nothing listens on port {port}")


class Bench:
    def __init__(self, folder, arguments):
        self.folder, self.arguments = folder, arguments
        self.secure, self.origin = free_ports(2)
        path = lambda name: os.path.join(folder, name)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", "/CN=a.example", "-addext", "subjectAltName=DNS:a.example", "-keyout", path("k"), "-out", path("c")],
            check=True, capture_output=True)
        with open(path("both.pem"), "w") as both:
            both.write(open(path("c")).read() + open(path("k")).read())
        # The worker of nginx may be somebody else.
        os.chmod(folder, 0o755)
        os.mkdir(path("www"))
        with open(path("www/big"), "wb") as big:
            big.write(os.urandom(1 << 20))
        with open(path("nginx.conf"), "w") as conf:
            conf.write(f"worker_processes 1; daemon off; error_log stderr crit; pid {path('pid')};\n"
                       "events { worker_connections 4000; }\n"
                       "http { access_log off; keepalive_requests 1000000000;\n"
                       f" server {{ listen 127.0.0.1:{self.origin}; location / {{ return 200 \"a small answer\\n\"; }}\n"
                       f" location /big {{ root {path('www')}; }} }} }}\n")
        with open(path("proxy.cfg"), "w") as conf:
            conf.write("global\n nbthread 1\ndefaults\n mode http\n timeout client 60s\n timeout server 60s\n"
                       " timeout connect 5s\n http-reuse always\n"
                       f"listen l\n bind 127.0.0.1:{self.secure} ssl crt {path('both.pem')} alpn http/1.1\n"
                       f" server s 127.0.0.1:{self.origin}\n")

    def proxy(self, program):
        process = subprocess.Popen(["taskset", "-c", "0", program, "-f", os.path.join(self.folder, "proxy.cfg")],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.secure)
        return process

    def measured(self, program, run):
        """What a run costs the proxy, in microseconds for each of what the run counts."""
        process = self.proxy(program)
        try:
            before, count = cpu(process.pid), run()
            return (cpu(process.pid) - before) * 1e6 / max(count, 1)
        finally:
            process.terminate()
            process.wait()

    def wrk(self, path, connections):
        output = subprocess.run(
            ["taskset", "-c", "1", "wrk", "-t1", f"-c{connections}", f"-d{self.arguments.seconds}s",
             f"https://127.0.0.1:{self.secure}{path}"], capture_output=True, text=True).stdout
        if "Non-2xx" in output:
            sys.exit(f"{path} is not served:\n{output}")
        return int(re.search(r"(\d+) requests in", output)[1])

    def handshakes(self, *options):
        output = subprocess.run(
            ["taskset", "-c", "1", "openssl", "s_time", *options, "-time", str(self.arguments.seconds),
             "-connect", f"127.0.0.1:{self.secure}"], capture_output=True, text=True).stdout
        return int(re.findall(r"^(\d+) connections in \d+ real", output, re.M)[-1])

    def idle(self, program):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        process = self.proxy(program)
        try:
            before = memory(process.pid)
            clients = [context.wrap_socket(socket.create_connection(("127.0.0.1", self.secure)), server_hostname="a.example")
                       for _ in range(self.arguments.clients)]
            time.sleep(1)
            return (memory(process.pid) - before) / len(clients)
        finally:
            process.terminate()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("proxy", nargs="+")
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=2000)
    arguments = parser.parse_args()
    for tool in ("nginx", "wrk", "openssl", "taskset"):
        if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin"):
            sys.exit(f"{tool} is not installed")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, arguments)
        nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
        origin = subprocess.Popen(["taskset", "-c", "1", nginx, "-c", os.path.join(folder, "nginx.conf")])
        wait_for(bench.origin)
        rows = [
            ("keep-alive, 64 connections, us", lambda p: bench.measured(p, lambda: bench.wrk("/", 64))),
            ("1 MB, 8 connections, us", lambda p: bench.measured(p, lambda: bench.wrk("/big", 8))),
            ("full handshake, TLS 1.3, us", lambda p: bench.measured(p, lambda: bench.handshakes("-new", "-tls1_3"))),
            ("full handshake, TLS 1.2, us", lambda p: bench.measured(p, lambda: bench.handshakes("-new", "-tls1_2"))),
            ("resumed, TLS 1.2, us", lambda p: bench.measured(p, lambda: bench.handshakes("-reuse", "-tls1_2"))),
            ("idle client, bytes", bench.idle),
        ]
        try:
            for name, row in rows:
                found = {proxy: [] for proxy in arguments.proxy}
                for _ in range(arguments.rounds):
                    for proxy in arguments.proxy:
                        found[proxy].append(row(proxy))
                print(f"{name:34}", *(f"{os.path.basename(p)} {statistics.median(found[p]):10.1f}" for p in found), flush=True)
        finally:
            origin.terminate()
            origin.wait()


if __name__ == "__main__":
    main()
