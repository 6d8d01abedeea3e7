#!/usr/bin/env python3
"""Opens WebTransport sessions through Weir between other implementations, and compares what their streams and datagrams carry.

  bench/webtransport_interop.py target/release/weir
  bench/webtransport_interop.py target/release/weir --only aioquic --size 5000000

The server is aioquic's, and returns what it receives: on a bidirectional stream there, of a unidirectional one on one of its own. It opens a
bidirectional stream itself. Clients: aioquic, Chromium. What is not installed is skipped with a notice. Traffic stays on loopback. The exit
code is 1 if something differs.
"""

import sys

sys.dont_write_bytecode = True

import argparse
import asyncio
import base64
import hashlib
import multiprocessing
import os
import queue
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOOPBACK = "127.0.0.1"
GREETING = b"from the server"
# Seconds until a session has to have ended.
PATIENCE = 60

CONFIG = """global
    nbthread 2
    expose-experimental-directives
    log {log} local0
defaults
    mode http
    log global
    option httplog
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend clients
    bind quic4@127.0.0.1:{h3} ssl crt {certificate} webtransport
    default_backend servers
backend servers
    server s quic4@127.0.0.1:{server} ssl verify none webtransport
"""

# A page that opens a session, compares what returns, and sends the result to its server.
PAGE = """<!doctype html><script>
const size = %(size)d, hash = Uint8Array.from(atob("%(hash)s"), byte => byte.charCodeAt(0));
async function all(readable) {
    const pieces = [], reader = readable.getReader();
    for (;;) {
        const {value, done} = await reader.read();
        if (done) return new Uint8Array(await new Blob(pieces).arrayBuffer());
        pieces.push(value);
    }
}
async function send(writable, bytes) {
    const writer = writable.getWriter();
    await writer.write(bytes);
    await writer.close();
}
function same(one, other) {
    return one.length === other.length && one.every((byte, at) => byte === other[at]);
}
async function run() {
    const options = {serverCertificateHashes: [{algorithm: "sha-256", value: hash}]};
    const session = new WebTransport("https://127.0.0.1:%(port)d/echo", options);
    await session.ready;
    const body = Uint8Array.from({length: size}, (_, at) => at %% 251);
    const incoming = session.incomingBidirectionalStreams.getReader();
    const greeting = (await incoming.read()).value;
    send(greeting.writable, new Uint8Array([1]));
    if (new TextDecoder().decode(await all(greeting.readable)) !== "%(greeting)s") return "greeting";
    const both = await session.createBidirectionalStream();
    const [, echoed] = await Promise.all([send(both.writable, body), all(both.readable)]);
    if (!same(echoed, body)) return "bidirectional " + echoed.length;
    const returning = session.incomingUnidirectionalStreams.getReader();
    await send(await session.createUnidirectionalStream(), body);
    const returned = await all((await returning.read()).value);
    if (!same(returned, body)) return "unidirectional " + returned.length;
    const datagrams = session.datagrams.readable.getReader(), writer = session.datagrams.writable.getWriter();
    await writer.write(new Uint8Array([7, 8, 9]));
    if (!same((await datagrams.read()).value, new Uint8Array([7, 8, 9]))) return "datagram";
    session.close({closeCode: 9, reason: "bye"});
    await session.closed;
    return "whole";
}
run().catch(error => "failed: " + error).then(result => fetch("/", {method: "POST", body: result}));
</script>"""


def pattern(size):
    return bytes(at % 251 for at in range(size))


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]


def open_both(http, session):
    """Opens a bidirectional stream. aioquic would read what returns on it as frames of a request."""
    from aioquic.h3.connection import FrameType

    number = http.create_webtransport_stream(session)
    with http._get_or_create_stream(number) as stream:
        stream.frame_type, stream.session_id = FrameType.WEBTRANSPORT_STREAM, session
    return number


def serve(ready, port, certificate):
    """Runs the server, which prints the end of each session."""
    from aioquic.asyncio import QuicConnectionProtocol, serve as listen
    from aioquic.h3.connection import H3_ALPN, H3Connection
    from aioquic.h3.events import DatagramReceived, DataReceived, HeadersReceived, WebTransportStreamDataReceived
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.events import ProtocolNegotiated

    class Server(QuicConnectionProtocol):
        http, received = None, None

        def quic_event_received(self, event):
            if isinstance(event, ProtocolNegotiated):
                self.http, self.received = H3Connection(self._quic, enable_webtransport=True), {}
            for found in self.http.handle_event(event) if self.http else []:
                self.answer(found)
            self.transmit()

        def answer(self, event):
            if isinstance(event, HeadersReceived):
                fields = dict(event.headers)
                assert fields[b":protocol"] == b"webtransport", fields
                self.http.send_headers(event.stream_id, [(b":status", b"200"), (b"sec-webtransport-http3-draft", b"draft02")])
                stream = open_both(self.http, event.stream_id)
                self._quic.send_stream_data(stream, GREETING, end_stream=True)
            elif isinstance(event, DataReceived) and event.stream_ended:
                self.http.send_data(event.stream_id, b"", end_stream=True)
            elif isinstance(event, DatagramReceived):
                self.http.send_datagram(event.stream_id, event.data)
            elif isinstance(event, WebTransportStreamDataReceived):
                if event.stream_id % 4 == 0:
                    self._quic.send_stream_data(event.stream_id, event.data, end_stream=event.stream_ended)
                elif event.stream_id % 4 == 2:
                    self.received[event.stream_id] = self.received.get(event.stream_id, b"") + event.data
                    if event.stream_ended:
                        stream = self.http.create_webtransport_stream(event.session_id, is_unidirectional=True)
                        self._quic.send_stream_data(stream, self.received.pop(event.stream_id), end_stream=True)

    async def run():
        settings = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN, max_datagram_frame_size=65536)
        settings.load_cert_chain(certificate, certificate)
        await listen(LOOPBACK, port, configuration=settings, create_protocol=Server)
        ready.set()
        await asyncio.Event().wait()

    asyncio.run(run())


def aioquic(case):
    """Runs a session of aioquic's client. Returns the difference that it found."""
    from aioquic.asyncio import QuicConnectionProtocol, connect
    from aioquic.h3.connection import H3_ALPN, H3Connection
    from aioquic.h3.events import DatagramReceived, DataReceived, HeadersReceived, WebTransportStreamDataReceived
    from aioquic.quic.configuration import QuicConfiguration

    class Client(QuicConnectionProtocol):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            self.http = H3Connection(self._quic, enable_webtransport=True)
            self.status, self.streams, self.ended, self.datagrams = None, {}, set(), []
            self.changed = asyncio.Event()

        def quic_event_received(self, event):
            for found in self.http.handle_event(event):
                if isinstance(found, HeadersReceived):
                    self.status = dict(found.headers)[b":status"]
                elif isinstance(found, DatagramReceived):
                    self.datagrams.append(found.data)
                elif isinstance(found, WebTransportStreamDataReceived):
                    self.streams[found.stream_id] = self.streams.get(found.stream_id, b"") + found.data
                if getattr(found, "stream_ended", False):
                    self.ended.add(found.stream_id)
            self.changed.set()

        async def until(self, is_done):
            while not is_done():
                self.changed.clear()
                self.transmit()
                await asyncio.wait_for(self.changed.wait(), PATIENCE)

        def only(self, kind):
            """Returns the stream of that kind which has ended."""
            return next((number for number in self.ended if number % 4 == kind and number in self.streams), None)

        async def exchange(self):
            session, body = self._quic.get_next_available_stream_id(), pattern(case.size)
            head = [(b":method", b"CONNECT"), (b":scheme", b"https"), (b":authority", b"localhost"), (b":path", b"/echo")]
            self.http.send_headers(session, [*head, (b":protocol", b"webtransport"), (b"sec-webtransport-http3-draft02", b"1")])
            await self.until(lambda: self.status)
            if self.status != b"200":
                return f"status {self.status}"
            await self.until(lambda: self.only(1) is not None)
            if self.streams[self.only(1)] != GREETING:
                return "greeting"
            both = open_both(self.http, session)
            self._quic.send_stream_data(both, body, end_stream=True)
            await self.until(lambda: both in self.ended)
            if self.streams[both] != body:
                return f"bidirectional {len(self.streams[both])}"
            one = self.http.create_webtransport_stream(session, is_unidirectional=True)
            self._quic.send_stream_data(one, body, end_stream=True)
            await self.until(lambda: self.only(3) is not None)
            if self.streams[self.only(3)] != body:
                return f"unidirectional {len(self.streams[self.only(3)])}"
            self.http.send_datagram(session, b"one")
            await self.until(lambda: self.datagrams)
            if self.datagrams != [b"one"]:
                return f"datagrams {self.datagrams}"
            # CLOSE_WEBTRANSPORT_SESSION.
            self.http.send_data(session, b"\x68\x43\x04\0\0\0\x09", end_stream=True)
            await self.until(lambda: session in self.ended)
            return None

    async def run():
        settings = QuicConfiguration(
            is_client=True, alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE, max_datagram_frame_size=65536
        )
        async with connect(LOOPBACK, case.h3, configuration=settings, create_protocol=Client) as client:
            return await client.exchange()

    return asyncio.run(run())


def chromium(case):
    """Runs a session of Chromium. Returns the difference that it found."""
    der = subprocess.run(["openssl", "x509", "-in", case.certificate, "-outform", "der"], check=True, capture_output=True)
    encoded = base64.b64encode(hashlib.sha256(der.stdout).digest()).decode()
    page = PAGE % {"size": case.size, "hash": encoded, "port": case.h3, "greeting": GREETING.decode()}

    results = queue.Queue()

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def do_POST(self):
            results.put(self.rfile.read(int(self.headers["content-length"])).decode())
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer((LOOPBACK, 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(dir=case.folder, ignore_cleanup_errors=True) as profile:
        arguments = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
        arguments += ["--disable-dev-shm-usage", f"http://{LOOPBACK}:{server.server_port}/"]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        browser = subprocess.Popen(arguments, start_new_session=True, **quiet)
        try:
            result = results.get(timeout=PATIENCE)
        except queue.Empty:
            result = "no result"
        finally:
            os.killpg(browser.pid, signal.SIGKILL)
            browser.wait()
    server.shutdown()
    return None if result == "whole" else result


class Case:
    """A server, Weir in front of it, and the certificate of both."""

    def __init__(self, options, folder):
        self.folder, self.size = folder, options.size
        self.certificate, key = os.path.join(folder, "pair.pem"), os.path.join(folder, "key.pem")
        # Browsers accept certificates by their hash for two weeks at most.
        make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "10"]
        make += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        subprocess.run([*make, "-keyout", key, "-out", self.certificate], check=True, capture_output=True)
        with open(key) as source, open(self.certificate, "a") as target:
            target.write(source.read())
        self.h3, port = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)
        self.log = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.log.bind((LOOPBACK, 0))
        ready = multiprocessing.Event()
        self.server = multiprocessing.Process(target=serve, args=(ready, port, self.certificate), daemon=True)
        self.server.start()
        ready.wait(PATIENCE)
        path = os.path.join(folder, "weir.cfg")
        with open(path, "w") as file:
            log = f"{LOOPBACK}:{self.log.getsockname()[1]}"
            file.write(CONFIG.format(h3=self.h3, server=port, certificate=self.certificate, log=log))
        self.weir = subprocess.Popen([options.weir, "-f", path], stdin=subprocess.DEVNULL)
        time.sleep(1)

    def end(self):
        self.weir.kill()
        self.weir.wait()
        self.server.kill()
        self.server.join()
        self.log.close()


def line(case):
    """Returns the next line about a request."""
    case.log.settimeout(5)
    try:
        while True:
            found = case.log.recv(4096).decode()
            if "HTTP/3.0" in found:
                return found.partition("]: ")[2].strip()
    except TimeoutError:
        return "no line in the log"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weir")
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--only", default="aioquic,chromium")
    options = parser.parse_args()
    try:
        __import__("aioquic")
    except ImportError:
        return print("skipped: aioquic is not installed")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        case = Case(options, folder)
        try:
            for name, run in [("aioquic", aioquic), ("chromium", chromium)]:
                if name not in options.only.split(","):
                    continue
                if name == "chromium" and shutil.which("chromium") is None:
                    print("chromium: skipped, it is not installed")
                    continue
                difference = run(case)
                failed |= difference is not None
                print(f"{name}: {difference or 'whole'}; {line(case)}", flush=True)
        finally:
            case.end()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
