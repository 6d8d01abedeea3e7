#!/usr/bin/env python3
"""Exchanges bodies between Weir and other implementations of HTTP/3, and compares them byte by byte.

  bench/h3_interop.py target/release/weir
  bench/h3_interop.py target/release/weir --loss 5 --rebind 0.5      over a relay that loses datagrams and changes ports
  bench/h3_interop.py target/release/weir --sizes 0,100000000 --only ngtcp2,aioquic-server

Clients of Weir: curl with ngtcp2 (curl-cffi), aioquic, ngtcp2's own client (Debian's ngtcp2-client), quic-go, Chromium. Servers of Weir:
aioquic, quic-go, and an HAProxy with QUIC (--haproxy PROGRAM). Each size is fetched, and sent to an origin that returns it. What is not installed is
skipped with a notice; quic-go needs Go and its module. Traffic stays on loopback. The exit code is 1 if a body differs.
"""

import sys

sys.dont_write_bytecode = True

import argparse
import asyncio
import base64
import contextlib
import http.client
import http.server
import multiprocessing
import os
import random
import select
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.request

FOLDER = os.path.dirname(os.path.abspath(__file__))
LOOPBACK = "127.0.0.1"

CONFIG = """global
    nbthread 2
    expose-experimental-directives
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend clients
    bind quic4@127.0.0.1:{h3} ssl crt {certificate} alpn h3
    bind 127.0.0.1:{plain}
    default_backend origin
backend origin
    server s 127.0.0.1:{origin}
frontend to-servers
    bind 127.0.0.1:{h1}
    default_backend servers
backend servers
    server s quic4@127.0.0.1:{server} ssl verify none alpn h3
"""

HAPROXY = """defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend f
    bind quic4@127.0.0.1:{port} ssl crt {certificate} alpn h3
    default_backend b
backend b
    server s 127.0.0.1:{origin}
"""


def pattern(size):
    """Returns the body of that size."""
    block = bytes((at * 131 + size) & 255 for at in range(min(size, 65536)))
    return (block * (size // max(1, len(block)) + 1))[:size]


# A page that exchanges a body with the origin, compares it, and has the result as its title.
PAGE = """<!doctype html><title>waiting</title><script>
const size = SIZE, sends = SENDS;
const body = new Uint8Array(size);
for (let at = 0; at < size; at++) body[at] = (at % 65536) * 131 + size;
(async () => {
  const answer = await fetch("/" + size, sends ? { method: "POST", body } : {});
  const received = new Uint8Array(await answer.arrayBuffer());
  const is_whole = received.length === size && received.every((byte, at) => byte === body[at]);
  const protocols = new Set(performance.getEntriesByType("resource").map((entry) => entry.nextHopProtocol));
  document.title = (is_whole ? "whole" : "differs") + " over " + [...protocols];
})().catch((error) => { document.title = "failed: " + error; });
</script>"""


class Server(http.server.ThreadingHTTPServer):
    """A server that is silent about connections that end early."""

    def handle_error(self, *_):
        pass


class Origin(http.server.BaseHTTPRequestHandler):
    """Answers GET /SIZE with the body of that size, GET /page/get/SIZE and /page/post/SIZE with a page that exchanges it, and POST with the
    body of the request."""

    protocol_version = "HTTP/1.1"

    def answer(self, body, kind="application/octet-stream"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        folder, size = self.path.rsplit("/", 1)
        if folder.startswith("/page/"):
            page = PAGE.replace("SIZE", size).replace("SENDS", str(folder.endswith("post")).lower())
            return self.answer(page.encode(), "text/html")
        return self.answer(pattern(int(size)))

    def do_POST(self):
        length = self.headers.get("content-length")
        if length is not None or "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.answer(self.rfile.read(int(length or 0)))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return self.answer(b"".join(pieces))

    def log_message(self, *_):
        pass


def serve_origin(ready):
    server = Server((LOOPBACK, 0), Origin)
    ready.send(server.server_port)
    server.serve_forever()


def datagram_socket():
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    # An error of a socket that is readable may have been reported by the last send.
    made.setblocking(False)
    return made


# Ports of clients that a relay keeps, former ones included.
MOST_PORTS = 64


def relay(ready, target, loss, rebind):
    """Passes datagrams on: `loss` percent are lost, and a client gets another port every `rebind` seconds."""
    chance = random.Random(1)
    front = datagram_socket()
    front.bind((LOOPBACK, 0))
    ready.send(front.getsockname()[1])
    behind, owners = {}, {}
    while True:
        while len(owners) > MOST_PORTS:
            oldest = next(iter(owners))
            del owners[oldest]
            oldest.close()
        for one in select.select([front, *owners], [], [])[0]:
            try:
                data, peer = one.recvfrom(65536)
            except (ConnectionRefusedError, BlockingIOError):
                continue
            if chance.random() * 100 < loss:
                continue
            if one is not front:
                with contextlib.suppress(BlockingIOError):
                    front.sendto(data, owners[one])
                continue
            passed, since = behind.get(peer, (None, 0))
            if passed is None or (rebind and time.monotonic() - since > rebind):
                passed = datagram_socket()
                passed.connect((LOOPBACK, target))
                behind[peer], owners[passed] = (passed, time.monotonic()), peer
            try:
                passed.send(data)
            except (ConnectionRefusedError, BlockingIOError):
                pass


def start(run, *arguments):
    """Starts a function in a process of its own, which sends its port first. Returns both."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=run, args=(theirs, *arguments), daemon=True)
    process.start()
    return process, ours.recv()


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as made:
        made.bind((LOOPBACK, 0))
        return made.getsockname()[1]


def skipped(name, reason):
    print(f"SKIPPED: {name}: {reason}", flush=True)


# Clients: each returns a function of (url, body or None) that returns the answer's body, or None if it is missing.


def curl(_):
    try:
        from curl_cffi import CurlHttpVersion, requests
    except ImportError:
        return skipped("curl", "curl-cffi is not installed")
    session = requests.Session()

    def exchange(url, body):
        method = "GET" if body is None else "POST"
        only = CurlHttpVersion.V3ONLY
        return session.request(method, url, data=body, http_version=only, verify=False, timeout=600).content

    return exchange


def aioquic_client(_):
    try:
        from aioquic.asyncio.client import connect
        from aioquic.asyncio.protocol import QuicConnectionProtocol
        from aioquic.h3.connection import H3_ALPN, H3Connection
        from aioquic.h3.events import DataReceived
        from aioquic.quic.configuration import QuicConfiguration
    except ImportError:
        return skipped("aioquic", "it is not installed")

    class Client(QuicConnectionProtocol):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            self.http, self.body, self.end = H3Connection(self._quic), [], asyncio.get_event_loop().create_future()

        def quic_event_received(self, event):
            for one in self.http.handle_event(event):
                if isinstance(one, DataReceived):
                    self.body.append(one.data)
                if getattr(one, "stream_ended", False) and not self.end.done():
                    self.end.set_result(None)

        async def exchange(self, port, path, body):
            number = self._quic.get_next_available_stream_id()
            fields = [(b":method", b"GET" if body is None else b"POST"), (b":scheme", b"https")]
            fields += [(b":authority", f"localhost:{port}".encode()), (b":path", path.encode())]
            if body is not None:
                fields.append((b"content-length", str(len(body)).encode()))
            self.http.send_headers(number, fields, end_stream=not body)
            if body:
                self.http.send_data(number, body, True)
            self.transmit()
            await self.end
            return b"".join(self.body)

    async def run(url, body):
        settings = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE)
        port, path = url.split(":")[2].split("/")
        async with connect(LOOPBACK, int(port), configuration=settings, create_protocol=Client) as client:
            return await client.exchange(port, "/" + path, body)

    return lambda url, body: asyncio.run(run(url, body))


def by_command(folder, url, body, arguments):
    """Runs a client that writes the answer into a folder, under the last part of the path. `arguments` returns its command line
    for that folder and for the options that name the body of a request."""
    options, results = [] if body is None else ["-m", "POST"], tempfile.mkdtemp(dir=folder)
    if body:
        options += ["-d", os.path.join(folder, "sent")]
        with open(options[-1], "wb") as file:
            file.write(body)
    subprocess.run(arguments(results, options), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=600)
    answer = os.path.join(results, url.rsplit("/", 1)[1])
    data = None
    if os.path.exists(answer):
        with open(answer, "rb") as file:
            data = file.read()
    shutil.rmtree(results)
    return data


def ngtcp2(folder):
    program = shutil.which("gtlsclient")
    if program is None:
        return skipped("ngtcp2", "gtlsclient is not installed (ngtcp2-client)")

    def exchange(url, body):
        port = url.split(":")[2].split("/")[0]
        common = [program, "-q", "--exit-on-all-streams-close"]
        arguments = lambda results, options: [*common, f"--download={results}", *options, LOOPBACK, port, url]
        return by_command(folder, url, body, arguments)

    return exchange


def quic_go_program(folder):
    program = os.path.join(folder, "quic-go")
    if os.path.exists(program):
        return program
    if shutil.which("go") is None:
        return skipped("quic-go", "Go is not installed")
    source = os.path.join(FOLDER, "quic_go")
    done = subprocess.run(["go", "build", "-o", program, "."], cwd=source, capture_output=True, text=True, check=False)
    return program if done.returncode == 0 else skipped("quic-go", done.stderr.strip().splitlines()[-1])


def quic_go(folder):
    program = quic_go_program(folder)
    if program is None:
        return None
    return lambda url, body: by_command(
        folder, url, body, lambda results, options: [program, "get", url, results, *options]
    )


def chromium(folder):
    program = shutil.which("chromium")
    if program is None:
        return skipped("chromium", "it is not installed")
    key = subprocess.run(
        f"openssl x509 -in {folder}/pair.pem -noout -pubkey | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary",
        shell=True, check=True, capture_output=True,
    ).stdout  # fmt: skip

    def exchange(url, body):
        port, size = url.split(":")[2].split("/")
        with tempfile.TemporaryDirectory(dir=folder) as profile:
            arguments = [program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--dump-dom"]
            arguments += ["--virtual-time-budget=3600000", "--disable-dev-shm-usage", "--host-resolver-rules=MAP localhost 127.0.0.1"]
            arguments += [f"--origin-to-force-quic-on=localhost:{port}"]
            arguments += [f"--ignore-certificate-errors-spki-list={base64.b64encode(key).decode()}"]
            arguments += [f"https://localhost:{port}/page/{'get' if body is None else 'post'}/{size}"]
            done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=600)
        title = done.stdout.partition("<title>")[2].partition("</title>")[0]
        if title == "whole over h3":
            return pattern(int(size))
        raise OSError(title or done.stderr.strip()[-300:])

    return exchange


# Servers: each starts one at a UDP port that forwards to the origin, and returns its process.


def command_server(arguments):
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def aioquic_server_process(ready, port, certificate):
    from aioquic.asyncio import serve
    from aioquic.asyncio.protocol import QuicConnectionProtocol
    from aioquic.h3.connection import H3_ALPN, H3Connection
    from aioquic.h3.events import DataReceived, HeadersReceived
    from aioquic.quic.configuration import QuicConfiguration

    class Server(QuicConnectionProtocol):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            self.http, self.requests = None, {}

        def quic_event_received(self, event):
            if self.http is None:
                self.http = H3Connection(self._quic)
            for one in self.http.handle_event(event):
                if isinstance(one, HeadersReceived):
                    self.requests[one.stream_id] = (dict(one.headers), [])
                if isinstance(one, DataReceived):
                    self.requests[one.stream_id][1].append(one.data)
                if getattr(one, "stream_ended", False):
                    self.answer(one.stream_id, *self.requests.pop(one.stream_id))

        def answer(self, number, fields, pieces):
            is_get = fields[b":method"] == b"GET"
            body = pattern(int(fields[b":path"].rsplit(b"/", 1)[1])) if is_get else b"".join(pieces)
            self.http.send_headers(number, [(b":status", b"200"), (b"content-length", str(len(body)).encode())])
            self.http.send_data(number, body, True)
            self.transmit()

    async def run():
        settings = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
        settings.load_cert_chain(certificate, certificate)
        await serve(LOOPBACK, port, configuration=settings, create_protocol=Server)
        ready.send(port)
        await asyncio.Event().wait()

    asyncio.run(run())


def aioquic_server(case):
    try:
        import aioquic  # noqa: F401
    except ImportError:
        return skipped("aioquic-server", "aioquic is not installed")
    return start(aioquic_server_process, case.server, case.certificate)[0]


def quic_go_server(case):
    program = quic_go_program(case.folder)
    return program and command_server([program, "serve", f"{LOOPBACK}:{case.server}", case.certificate])


def haproxy(case):
    if case.options.haproxy is None:
        return skipped("haproxy", "--haproxy is not given")
    path = os.path.join(case.folder, "haproxy.cfg")
    with open(path, "w") as file:
        file.write(HAPROXY.format(port=case.server, certificate=case.certificate, origin=case.origin))
    return command_server([case.options.haproxy, "-db", "-f", path])


CLIENTS = {"curl": curl, "aioquic": aioquic_client, "ngtcp2": ngtcp2, "quic-go": quic_go, "chromium": chromium}
SERVERS = {"aioquic-server": aioquic_server, "quic-go-server": quic_go_server, "haproxy": haproxy}


class Case:
    """Weir with its origin."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.certificate = os.path.join(folder, "pair.pem")
        key = os.path.join(folder, "key.pem")
        make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        make += ["-subj", "/CN=localhost", "-keyout", key, "-out", self.certificate]
        subprocess.run(make, check=True, capture_output=True)
        with open(key) as source, open(self.certificate, "a") as target:
            target.write(source.read())
        self.origin_process, self.origin = start(serve_origin)
        self.server = free_port(socket.SOCK_DGRAM)
        self.h3 = free_port(socket.SOCK_DGRAM)
        self.h1, self.plain = free_port(socket.SOCK_STREAM), free_port(socket.SOCK_STREAM)
        server = self.server
        if options.loss or options.rebind:
            self.relay_to_server, server = start(relay, self.server, options.loss, options.rebind)
        text = CONFIG.format(
            h3=self.h3, plain=self.plain, h1=self.h1, origin=self.origin, server=server, certificate=self.certificate
        )
        path = os.path.join(folder, "weir.cfg")
        with open(path, "w") as file:
            file.write(text)
        self.weir = subprocess.Popen([options.program, "-db", "-f", path])
        self.until(lambda: self.fetch(self.plain, None, 0) == b"")
        self.port = self.h3
        if options.loss or options.rebind:
            self.relay_to_weir, self.port = start(relay, self.h3, options.loss, options.rebind)

    def until(self, reached):
        """Waits until an exchange succeeds."""
        fault = None
        for _ in range(200):
            try:
                if reached():
                    return
            except (OSError, http.client.HTTPException) as error:
                fault = error
            if self.weir.poll() is not None:
                sys.exit("Weir has ended")
            time.sleep(0.05)
        sys.exit(f"no answer: {fault}")

    def fetch(self, port, body, size):
        url = f"http://{LOOPBACK}:{port}/{size}"
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=600) as answer:
            return answer.read()

    def client(self, exchange, size, body):
        return exchange(f"https://{LOOPBACK}:{self.port}/{size}", body)

    def end(self):
        self.weir.send_signal(signal.SIGTERM)
        self.weir.wait()
        self.origin_process.terminate()


def check(name, exchange, sizes):
    """Exchanges each size in both directions; returns whether all bodies are whole."""
    whole = True
    for size in sizes:
        body, begin, results = pattern(size), time.monotonic(), []
        for sent in (None, body):
            try:
                results.append(exchange(size, sent) == body)
            except Exception as error:  # Of any client's library.
                print(f"{name}: {error!r}"[:400], flush=True)
                results.append(False)
        words = [f"{way} {'whole' if result else 'DIFFERS'}" for way, result in zip(("answer", "request"), results)]
        print(f"{name:16} {size:>10} bytes: {', '.join(words)}  ({time.monotonic() - begin:.1f} s)", flush=True)
        whole = whole and all(results)
    return whole


def run(case, name, sizes):
    """Checks one client or server; returns whether all bodies are whole."""
    if name in CLIENTS:
        exchange = CLIENTS[name](case.folder)
        return not exchange or check(name, lambda size, body: case.client(exchange, size, body), sizes)
    server = SERVERS[name](case)
    if not server:
        return True
    try:
        case.until(lambda: case.fetch(case.h1, None, 0) == b"")
        return check(name, lambda size, body: case.fetch(case.h1, body, size), sizes)
    finally:
        server.terminate()
        (getattr(server, "join", None) or server.wait)()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--sizes", default="0,1,1000,65536,1000000,100000000")
    parser.add_argument("--loss", type=float, default=0, help="per cent of datagrams that are lost")
    parser.add_argument("--rebind", type=float, default=0, help="seconds after which a client gets another port")
    parser.add_argument("--only", help="names, separated by commas: " + ", ".join([*CLIENTS, *SERVERS]))
    parser.add_argument("--haproxy", help="an HAProxy with QUIC")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else [*CLIENTS, *SERVERS]
    sizes = [int(size) for size in options.sizes.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        case = Case(options, folder)
        try:
            whole = all([run(case, name, sizes) for name in names])
        finally:
            case.end()
    sys.exit(not whole)


if __name__ == "__main__":
    main()
