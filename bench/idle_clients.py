#!/usr/bin/env python3
"""Counts the heap of an idle client by massif: clients connect one after the other, each gets one answer, and then all are idle.

    bench/idle_clients.py PROGRAM [--nginx NGINX] [--proxy PROXY...] [--clients 500,1500] [--http1] [--tls] [--fields] [--tree FILE]

For each number of clients a proxy with one thread runs under massif in front of `weir origin` of PROGRAM. Printed: bytes of the heap with
either number, and for each further client, without and with the administration of the C library as massif estimates it. The tables of a
worker grow by doubling, so both numbers decide their share. `--nginx` counts nginx too, `--proxy` other proxies that read HAProxy's
configuration. Clients speak HTTP/2 by prior knowledge, or HTTP/1 with `--http1`; with `--tls` over TLS 1.3. The fields of their requests
are those of `weir load`, never indexed; with `--fields` those of a browser, which the decoder of HPACK has to keep. `--tree` writes
massif's snapshot of the last run of PROGRAM, for a build with symbols.

Needs valgrind with vgdb, and openssl with `--tls`. Linux only; nothing is changed outside of a temporary folder.
"""

import argparse
import os
import re
import resource
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time

from proxies import free_port

CONFIGURATION = """global
    maxconn 6000
    nbthread 1
    tune.pool-low-fd-ratio 80
    tune.pool-high-fd-ratio 90
defaults
    mode http
    timeout connect 5s
    timeout client 1200s
    timeout server 1200s
listen proxy
    bind 127.0.0.1:{port}{bind}
    http-reuse always
    server origin 127.0.0.1:{origin}
"""

NGINX = """worker_processes 1;
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log crit;
worker_rlimit_nofile 20000;
events {{ worker_connections 7000; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 1200s;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream origin {{ server 127.0.0.1:{origin}; keepalive 1000; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port}{listen} backlog=4096;
    {certificate}
    http2_max_concurrent_streams 128;
    location / {{ proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}
}}
"""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, HEADERS, RST_STREAM, GOAWAY = 4, 1, 3, 7
ACK = END_STREAM = 1
END_HEADERS = 4

# GET http://127.0.0.1:8000/?s=64
PLAIN = b"\x82\x86\x01\x0e127.0.0.1:8000\x04\x06/?s=64"
FIELDS = (
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"),
    ("accept-language", "en-US,en;q=0.5"),
    ("accept-encoding", "gzip, deflate, br"),
)


def indexed(name, value):
    """A literal field that the decoder adds to its table (RFC 7541, section 6.2.1)."""
    return b"\x40" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


class Client:
    """A connection that has had one answer."""

    def __init__(self, port, options, tls):
        self.received = b""
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname="bench.test")
        if options.http1:
            self.ask_http1()
        else:
            self.ask_http2(PLAIN + b"".join(indexed(*field) for field in FIELDS if options.fields))

    def need(self, count):
        while len(self.received) < count:
            more = self.socket.recv(65536)
            if not more:
                sys.exit("the proxy has closed a connection")
            self.received += more

    def take(self, count):
        self.need(count)
        taken, self.received = self.received[:count], self.received[count:]
        return taken

    def ask_http1(self):
        self.socket.sendall(b"GET /?s=64 HTTP/1.1\r\nhost: 127.0.0.1:8000\r\n\r\n")
        while b"\r\n\r\n" not in self.received:
            self.need(len(self.received) + 1)
        head = self.take(self.received.index(b"\r\n\r\n") + 4)
        self.take(int(re.search(rb"(?i)content-length: *(\d+)", head).group(1)))

    def ask_http2(self, block):
        settings = struct.pack(">HI", 2, 0)
        request = frame(HEADERS, END_STREAM | END_HEADERS, 1, block)
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0, settings) + request)
        while True:
            head = self.take(9)
            length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            payload = self.take(length)
            if kind == SETTINGS and not flags & ACK:
                self.socket.sendall(frame(SETTINGS, ACK, 0))
            if kind in (RST_STREAM, GOAWAY):
                sys.exit(f"the proxy has refused a request: {payload.hex()}")
            if head[5:] == b"\0\0\0\1" and kind <= HEADERS and flags & END_STREAM:
                return


def listens(port):
    """Whether a socket listens at a port of the loopback address, without connecting to it."""
    wanted = f"0100007F:{port:04X}"
    with open("/proc/net/tcp", encoding="ascii") as table:
        return any(line.split()[1] == wanted and line.split()[3] == "0A" for line in list(table)[1:])


def wait_for(port, process, name):
    deadline = time.monotonic() + 300
    while not listens(port):
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"{name} does not start")
        time.sleep(0.02)


def end(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def certificate(folder):
    """Writes a P-256 certificate and its key."""
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=bench.test"]
    made += ["-days", "3650", "-keyout", f"{folder}/bench.key", "-out", f"{folder}/bench.crt"]
    subprocess.run(made, check=True, stderr=subprocess.DEVNULL)
    with open(f"{folder}/bench.pem", "w", encoding="ascii") as out:
        for part in ("crt", "key"):
            with open(f"{folder}/bench.{part}", encoding="ascii") as read:
                out.write(read.read())


def client_tls(options):
    """Returns how clients use TLS; None: they do not."""
    if not options.tls:
        return None
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["http/1.1" if options.http1 else "h2"])
    return context


def command(program, is_nginx, options, folder, port, origin):
    """Writes the configuration of a proxy, and returns its command line."""
    path = f"{folder}/proxy.cfg"
    if is_nginx:
        listen = (" ssl" if options.tls else "") + ("" if options.http1 else " http2")
        keys = f"ssl_certificate {folder}/bench.crt; ssl_certificate_key {folder}/bench.key; ssl_protocols TLSv1.3;" if options.tls else ""
        text = NGINX.format(folder=folder, port=port, origin=origin, listen=listen, certificate=keys)
        line = [program, "-p", folder, "-c", path]
    else:
        bind = f" ssl crt {folder}/bench.pem alpn h2,http/1.1" if options.tls else ""
        text = CONFIGURATION.format(port=port, origin=origin, bind=bind)
        line = [program, "-db", "-f", path]
    with open(path, "w", encoding="ascii") as out:
        out.write(text)
    return line


def heap(program, is_nginx, options, clients):
    """Returns the heap of a proxy with that many idle clients, and its administration, in bytes."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with tempfile.TemporaryDirectory() as folder:
        if options.tls:
            certificate(folder)
        port, origin = free_port(), free_port()
        line = command(program, is_nginx, options, folder, port, origin)
        massif = ["valgrind", "--tool=massif", "--threshold=0.01", f"--massif-out-file={folder}/massif"]
        server = subprocess.Popen([options.program, "origin", "-L", f"127.0.0.1:{origin}"], **quiet)
        proxy = subprocess.Popen([*massif, *line], **quiet)
        try:
            wait_for(origin, server, "the origin")
            wait_for(port, proxy, program)
            tls = client_tls(options)
            connections = [Client(port, options, tls) for _ in range(clients)]
            # The proxy has returned to its wait after the last answer.
            time.sleep(1)
            snapshot = options.tree if options.tree and program == options.program else f"{folder}/snapshot"
            subprocess.run(["vgdb", f"--pid={proxy.pid}", "detailed_snapshot", snapshot], check=True, **quiet)
            for connection in connections:
                connection.socket.close()
        finally:
            end(proxy)
            end(server)
        with open(snapshot, encoding="utf-8", errors="replace") as lines:
            text = lines.read()
    return tuple(int(re.search(rf"^mem_heap_{part}=(\d+)", text, re.M).group(1)) for part in ("B", "extra_B"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--nginx")
    parser.add_argument("--proxy", nargs="*", default=[])
    parser.add_argument("--clients", default="500,1500")
    parser.add_argument("--tree")
    for switch in ("--http1", "--tls", "--fields"):
        parser.add_argument(switch, action="store_true")
    options = parser.parse_args()
    try:
        few, many = map(int, options.clients.split(","))
        if not 0 < few < many <= 5000:
            raise ValueError
    except ValueError:
        parser.error("--clients: two numbers, the smaller one first, at most 5000")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(20000, most), most))
    except (ValueError, OSError) as error:
        sys.exit(f"the number of descriptors cannot be raised: {error}")
    programs = [(options.program, False), *((proxy, False) for proxy in options.proxy)]
    if options.nginx:
        programs.append((options.nginx, True))
    for program, is_nginx in programs:
        first, last = (heap(program, is_nginx, options, clients) for clients in (few, many))
        each, rest = ((last[part] - first[part]) / (many - few) for part in (0, 1))
        print(f"{program}: {first[0]:,} bytes with {few} clients, {last[0]:,} with {many}; each further one {each:,.0f}, {each + rest:,.0f} allocated")


if __name__ == "__main__":
    main()
