#!/usr/bin/env python3
"""Measures small requests beside many clients that read a large answer slowly.

    bench/slow_readers.py PROXY [PROXY...] [--readers 1500] [--megabytes 10] [--pace 32] [--seconds 8] [--rounds 3] [--threads 1] [--rows]

Every proxy runs in front of nginx, which serves the large answer from a file. Slow readers at 127.0.0.2 ask for it on a connection each and
read `--pace` KB a second of it, until the round ends; one that has read all of it asks again. A quiet client at 127.0.0.3 asks for two bytes every five
milliseconds, in turn on a kept and on a new connection. Printed: the quiet client's median, its 99th and 99.9th percentile and its longest
request in milliseconds, alone and beside the readers (all rounds together, in which the proxies alternate), requests that have failed, the
proxy's processor time a second, its largest memory, and the largest memory of the kernel for TCP (`/proc/net/sockstat`, the whole machine).
`--rows` prints rows of a table in Markdown.

The kernel bounds the memory of all its TCP connections (`net.ipv4.tcp_mem`) and drops packets beyond that, of whatever connection: the memory
that is printed shows whether a run comes near. Run it by `nice -n -20` on a machine that does something else as well.

Linux only; needs nginx. Nothing is changed outside of a temporary folder.
"""

import argparse
import importlib.util
import multiprocessing
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
SPEC = importlib.util.spec_from_file_location("h2_attacks", os.path.join(FOLDER, "h2_attacks.py"))
h2 = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(h2)

CONFIG = """global
    nbthread {threads}
    maxconn 8000
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen l
    bind 127.0.0.1:{port}
    server s 127.0.0.1:{server}
"""

ORIGIN = """worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
worker_rlimit_nofile 20000;
events {{ worker_connections 10000; }}
http {{
    access_log off;
    sendfile on;
    tcp_nodelay on;
    keepalive_requests 1000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} backlog=4096 sndbuf=128k;
        root {folder};
        location = /small {{ return 200 "ok"; }}
    }}
}}
"""

SLOW, QUIET = "127.0.0.2", "127.0.0.3"
LARGE = b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n"
SMALL = b"GET /small HTTP/1.1\r\nHost: a\r\n\r\n"
# Times that a reader reads in a second, and seconds after which the quiet client gives up a request.
BEATS, GIVE_UP = 2, 10
# What a reader's kernel takes before it reads, and the origin's keeps: both are on other machines in life.
WINDOW = 65536


class Reader:
    """A client that reads slowly."""

    def __init__(self, port):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WINDOW)
        self.socket.settimeout(30)
        self.socket.bind((SLOW, 0))
        self.socket.connect(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.ask()

    def ask(self):
        self.socket.send(LARGE)
        self.head, self.left = b"", None

    def read(self, most):
        """Reads up to so many bytes. False: the connection has ended."""
        try:
            data = self.socket.recv(most)
        except BlockingIOError:
            return True
        if not data:
            return False
        if self.left is None:
            self.head += data
            if b"\r\n\r\n" not in self.head:
                return True
            head, data = self.head.split(b"\r\n\r\n", 1)
            self.left = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        self.left -= len(data)
        if self.left == 0:
            self.ask()
        return True


def read_slowly(port, options, ready, stop, lost):
    """Opens all readers, and lets each of them read its part of a second now and then."""
    readers = [Reader(port) for _ in range(options.readers)]
    ready.set()
    most, due = options.pace * 1024 // BEATS, time.monotonic()
    pieces = 20
    while not stop.is_set():
        for piece in range(pieces):
            for at in range(piece, len(readers), pieces):
                if not readers[at].read(most):
                    lost.value += 1
                    readers[at] = Reader(port)
            due += 1 / BEATS / pieces
            time.sleep(max(0, due - time.monotonic()))


def tcp_memory():
    """Bytes that the kernel holds for TCP connections."""
    for line in open("/proc/net/sockstat"):
        if line.startswith("TCP:"):
            return int(line.split()[line.split().index("mem") + 1]) * 4096
    return 0


def ask(kept, port):
    """Sends a request, on a new connection unless one is kept. Returns the connection."""
    connection = kept or socket.create_connection(("127.0.0.1", port), GIVE_UP, (QUIET, 0))
    connection.settimeout(GIVE_UP)
    connection.sendall(SMALL)
    got = b""
    while not got.endswith(b"\r\n\r\nok"):
        more = connection.recv(4096)
        if not more:
            raise OSError("the connection has ended")
        got += more
    return connection


def quiet(port, seconds, look):
    """Times of requests in milliseconds, and how many have failed."""
    times, failed, kept, turn = [], 0, None, 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        turn += 1
        begin = time.perf_counter()
        try:
            if turn % 2:
                kept = ask(kept, port)
            else:
                ask(None, port).close()
        except OSError:
            failed, kept = failed + 1, None
        times.append((time.perf_counter() - begin) * 1e3)
        if turn % 20 == 0 or times[-1] > 20:
            look()
        time.sleep(0.005)
    return times, failed


class Proxy:
    """A program and all that was found of it."""

    def __init__(self, program):
        self.program, self.alone, self.beside = program, [], []
        self.failed, self.lost, self.spent, self.held, self.kernel = 0, 0, 0.0, 0, 0

    def run(self, folder, server, options):
        (port,) = h2.free_ports(1)
        path = os.path.join(folder, "proxy.cfg")
        with open(path, "w") as file:
            file.write(CONFIG.format(port=port, server=server, threads=options.threads))
        process = subprocess.Popen([self.program, "-db", "-f", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            h2.wait_for(port)
            self.measure(process, port, options)
            if process.poll() is not None:
                sys.exit(f"{self.program} has ended")
        finally:
            process.terminate()
            process.wait()

    def look(self, process):
        self.held = max(self.held, h2.memory(process.pid))
        self.kernel = max(self.kernel, tcp_memory())

    def measure(self, process, port, options):
        self.alone += quiet(port, options.seconds / 4, lambda: None)[0]
        ready, stop, lost = multiprocessing.Event(), multiprocessing.Event(), multiprocessing.Value("Q", 0)
        readers = multiprocessing.Process(target=read_slowly, args=(port, options, ready, stop, lost))
        readers.start()
        before, begin = h2.cpu(process.pid), time.monotonic()
        # The first of them read while the last ones connect.
        times, failed = quiet(port, options.seconds, lambda: self.look(process))
        while not ready.is_set():
            more, failures = quiet(port, 1, lambda: self.look(process))
            times, failed = times + more, failed + failures
        self.spent += (h2.cpu(process.pid) - before) / (time.monotonic() - begin) / options.rounds
        stop.set()
        readers.join()
        self.beside += times
        self.failed += failed
        self.lost += lost.value

    def figures(self):
        return [*percentiles(self.alone), *percentiles(self.beside)]


def percentiles(times):
    times = sorted(times)
    return [times[min(len(times) - 1, int(len(times) * part))] for part in (0.5, 0.99, 0.999, 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("proxies", nargs="+", metavar="PROXY")
    parser.add_argument("--readers", type=int, default=1500)
    parser.add_argument("--megabytes", type=int, default=10)
    parser.add_argument("--pace", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", action="store_true")
    options = parser.parse_args()
    if not shutil.which("nginx"):
        sys.exit("needs nginx")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        (server,) = h2.free_ports(1)
        with open(os.path.join(folder, "large"), "wb") as file:
            file.truncate(options.megabytes << 20)
        with open(os.path.join(folder, "nginx.conf"), "w") as file:
            file.write(ORIGIN.format(folder=folder, port=server))
        command = ["nginx", "-p", folder, "-c", os.path.join(folder, "nginx.conf"), "-g", "daemon off;"]
        origin = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            h2.wait_for(server)
            proxies = [Proxy(program) for program in options.proxies]
            for _ in range(options.rounds):
                for proxy in proxies:
                    proxy.run(folder, server, options)
        finally:
            origin.terminate()
            origin.wait()
    for proxy in proxies:
        show(proxy, options.rows)


def show(proxy, rows):
    figures, cells = proxy.figures(), []
    for name, part in (("alone", figures[:4]), ("beside", figures[4:])):
        cells.append(", ".join(f"{value:.1f}" for value in part) if rows else f"{name} " + " / ".join(f"{value:7.1f}" for value in part))
    rest = [f"{proxy.failed}", f"{proxy.spent * 100:.0f} %", f"{proxy.held / 1e6:.0f} MB", f"{proxy.kernel / 1e6:.0f} MB"]
    if rows:
        print("| " + " | ".join([os.path.basename(proxy.program), *cells, *rest]) + " |")
        return
    print(f"{proxy.program}: {cells[0]} ms, {cells[1]} ms (50, 99, 99.9 %, longest), {rest[0]} failed, readers lost {proxy.lost}")
    print(f"    processor {rest[1]}, memory {rest[2]}, kernel {rest[3]}")


if __name__ == "__main__":
    main()
