#!/usr/bin/env python3
"""Records which bytes restart a timeout of HAProxy.

    bench/progress.py HAPROXY TABLE

A row is a state that waits for more bytes, and a peer that sends data at once and then a piece every 50 ms, with a timeout of
200 ms. A line of TABLE contains the state, the name of the row, the bytes that are sent at once, the pieces, and the result: the status
and the termination state of the log line, or its message about a failed connection, and `late` if that was at the timeout,
`whole` if not. For the client of the process (`process`), the status and length of its response are recorded. Bytes are escaped; units of
TLS are records with their type (`23:` is payload, `22:` a handshake message), `~` before one sends it byte by byte.
crates/engine/tests/simulated/progress reads it. Needs Python's `cryptography`. Uses loopback addresses only.
"""

import argparse
import asyncio
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time

from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

HOST = "127.10.0.2"
BASE = 15000
EVERY = 0.05
PIECES = 20
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n"
POST_CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def each(text):
    return [bytes([byte]) for byte in text]


def often(piece):
    return [piece] * PIECES


# The payload of a chunk of sixteen bytes, followed by the end of the body.
PAYLOAD = each(b"a" * 16) + [b"\r\n0\r\n\r\n"]


def record(kind, content):
    """A FastCGI record."""
    return bytes([1, kind, 0, 1]) + len(content).to_bytes(2, "big") + b"\0\0" + content


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def block(*fields):
    return b"".join(b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value for name, value in fields)


SETTINGS = frame(4, 0, 0, b"")
HEAD_2 = frame(1, 4, 1, block((b":status", b"200")))
LONG_2 = frame(1, 4, 1, block((b":status", b"200"), (b"x", b"a" * 20)))
PING = frame(6, 0, 0, b"\1" * 8)
BEGUN_2 = frame(0, 0, 1, b"a" * 30)
POST_2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS + frame(1, 4, 1, block(
    (b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"a"), (b"content-length", b"20")))


class Unit:
    """A TLS record, which is sealed when it is sent."""

    def __init__(self, kind, content, slow=False):
        self.kind, self.content, self.slow = kind, content, slow


def data(content, slow=False):
    return Unit(23, content, slow)


UPDATE = Unit(22, b"\x18\0\0\1\0")
ASKING_UPDATE = Unit(22, b"\x18\0\0\1\1")


def server_rows():
    yield "status line", b"", each(b"HTTP/1.1 200 OK and so on")
    yield "fields of a head", b"HTTP/1.1 200 OK\r\n", often(b"a: b\r\n")
    yield "interim head", b"", each(b"HTTP/1.1 103 Early Hints\r\nLink")
    yield "chunk extension", CHUNKED + b"2\r\nok\r\n", each(b"1;aaaaaaaaaaaaaaaaaaaaaaaa")
    yield "chunk size", CHUNKED + b"2\r\nok\r\n", each(b"00000000000000")
    yield "trailer", CHUNKED + b"2\r\nok\r\n0\r\n", each(b"x: aaaaaaaaaaaaaaaaaaaaaaa")
    yield "trailers", CHUNKED + b"2\r\nok\r\n0\r\n", often(b"a: b\r\n")
    yield "chunk payload", CHUNKED + b"10\r\n", PAYLOAD
    yield "chunks", CHUNKED, often(b"1\r\na\r\n") + [b"0\r\n\r\n"]
    yield "length", SIZED, often(b"a")


def fcgi_rows():
    head = b"Status: 200 OK\r\n\r\n"
    yield "head in records", b"", [record(6, byte) for byte in each(b"Status: 200 OK\r\nX: aaaaaaa")]
    yield "record of a head", b"", each(record(6, head))
    yield "standard error", b"", often(record(7, b"a\n"))
    whole = record(6, b"a" * 30)
    yield "record of a body", record(6, head) + whole[:10], each(whole[10:])
    yield "standard error in a body", record(6, head), often(record(7, b"a\n"))
    yield "records of a body", record(6, head), often(record(6, b"a")) + [record(6, b"") + record(3, b"\0" * 8)]


def h2_server_rows():
    yield "head", SETTINGS, each(LONG_2[:20])
    yield "pings before the head", SETTINGS, often(PING)
    yield "pings in the body", SETTINGS + HEAD_2, often(PING)
    yield "empty frames of payload", SETTINGS + HEAD_2, often(frame(0, 0, 1, b""))
    yield "padding", SETTINGS + HEAD_2, often(frame(0, 8, 1, b"\3abc"))
    yield "frame of payload", SETTINGS + HEAD_2 + BEGUN_2[:12], each(BEGUN_2[12:])
    yield "frames of payload", SETTINGS + HEAD_2, often(frame(0, 0, 1, b"a")) + [frame(0, 1, 1, b"")]


def body_rows():
    yield "chunk extension", POST_CHUNKED + b"2\r\nok\r\n", each(b"1;aaaaaaaaaaaaaaaaaaaaaaaa")
    yield "chunk size", POST_CHUNKED + b"2\r\nok\r\n", each(b"00000000000000")
    yield "trailers", POST_CHUNKED + b"2\r\nok\r\n0\r\n", often(b"a: b\r\n")
    yield "chunk payload", POST_CHUNKED + b"10\r\n", PAYLOAD
    yield "length", POST, often(b"a")


def h2_client_rows():
    begun = frame(0, 0, 1, b"a" * 20)
    yield "pings", POST_2, often(PING)
    yield "windows", POST_2, often(frame(8, 0, 1, b"\0\0\0\1"))
    yield "empty frames", POST_2, often(frame(0, 0, 1, b""))
    yield "frame of payload", POST_2 + begun[:12], each(begun[12:])
    yield "frames of payload", POST_2, often(frame(0, 0, 1, b"a")) + [frame(0, 1, 1, b"")]


def request_head_rows():
    yield "nothing", b"", []
    yield "request line", b"", each(b"GET /aaaaaaaaaaaaaaaaaaaaaaaaaaa")
    yield "fields", b"GET / HTTP/1.1\r\n", often(b"a: b\r\n")
    yield "empty lines", b"", often(b"\r\n")


def without_payload(before, rest):
    """Returns records without data of the message that `before` begins, and one that is sent slowly."""
    before = [data(before)] if before else []
    yield "empty records", before, often(data(b""))
    yield "key updates", before, often(UPDATE)
    yield "key updates that ask for one", before, often(ASKING_UPDATE)
    yield "half a record", before, [data(rest, slow=True)]


def tls_server_rows():
    yield from without_payload(b"", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    yield "head in records", [], [data(byte) for byte in each(b"HTTP/1.1 200 OK and so on")]
    for name, before, pieces in without_payload(SIZED, b"a" * 20):
        yield name + " in a body", before, pieces
    yield "records of a body", [data(SIZED)], often(data(b"a"))
    yield "records between empty ones", [data(SIZED)], [unit for _ in range(PIECES) for unit in (data(b""), data(b"a"))]


def tls_client_rows():
    yield from without_payload(POST, b"a" * 20)
    yield "records of a body", [data(POST)], often(data(b"a"))
    yield "records between empty ones", [data(POST)], [unit for _ in range(PIECES) for unit in (data(b""), data(b"a"))]


def tls_h2_client_rows():
    yield from without_payload(POST_2, frame(0, 1, 1, b"a" * 20))
    yield "records of a frame", [data(POST_2)], [data(byte) for byte in each(frame(0, 1, 1, b"a" * 20))]
    yield "frames of payload", [data(POST_2)], often(data(frame(0, 0, 1, b"a"))) + [data(frame(0, 1, 1, b""))]


def tls_head_rows():
    yield from without_payload(b"GET / HTTP/1.1\r\n", b"Host: a\r\n\r\n")


def tls_idle_rows():
    yield from without_payload(GET, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")


def tls_tunnel_rows():
    yield from without_payload(b"hello", b"a" * 20)
    yield "records of payload", [data(b"hello")], often(data(b"a"))


def hello_rows():
    """Returns the start of a ClientHello or a ServerHello, whose records are longer."""
    yield "one record", b"", each(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 20)
    yield "a message in records", b"", often(b"\x16\x03\x01\0\1\x01")
    yield "empty records", b"", often(b"\x16\x03\x01\0\0")


def server_hello_rows():
    yield "one record", b"", each(b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03" + b"\0" * 20)
    yield "empty records", b"", often(b"\x16\x03\x03\0\0")


def proxy_rows():
    yield "nothing", b"", []
    yield "begun", b"PROXY TC", []
    yield "version 1", b"", each(b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n")
    long = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x20" + bytes([192, 0, 2, 7, 198, 51, 100, 1, 18, 103, 1, 187]) + b"\4\0\x11" + b"\0" * 17
    yield "version 2", b"", each(long)
    yield "fields of version 2", long[:28], each(long[28:])


def netscaler_rows():
    yield "nothing", b"", []
    yield "begun", b"\0\0\0\x4d", []
    yield "header", b"", each(b"\0\0\0\x4d\0\0\0\x28" + bytes([0x45, 0, 0, 0x28]) + b"\0" * 20)


def socks_rows():
    yield "answer", b"", each(b"\0\x5a\0\0\0\0\0\0")


WAITS = " http-request wait-for-body time 9s\n"
BUFFERS = " option http-buffer-request\n"
LIMIT = " timeout client 200ms\n"
BODY = LIMIT + " timeout http-request 9s\n"

# State, slow side, its protocol, lines of the section, options of `bind` and `server`, and rows.
PLACES = [
    ("server", "S", "", " timeout server 200ms\n", "", "", server_rows),
    ("server/fcgi", "S", "", " timeout server 200ms\n use-fcgi-app a\n", "", "proto fcgi", fcgi_rows),
    ("server/fcgi/mpxs", "S", "", " timeout server 200ms\n use-fcgi-app b\n", "", "proto fcgi", fcgi_rows),
    ("server/h2", "S", "", " timeout server 200ms\n", "", "proto h2", h2_server_rows),
    ("server/tls", "S", "tls", " timeout server 200ms\n", "", "ssl verify none alpn http/1.1", tls_server_rows),
    ("server/tunnel/tls", "S", "tls", " mode tcp\n timeout server 200ms\n", "", "ssl verify none", tls_tunnel_rows),
    ("connecting/tls", "S", "", " timeout connect 200ms\n", "", "ssl verify none", server_hello_rows),
    ("connecting/socks4", "S", "", " timeout connect 200ms\n", "", "socks4 {server}", socks_rows),
    ("client", "C", "", BODY, "", "", body_rows),
    ("client/waits", "C", "", BODY + WAITS, "", "", body_rows),
    ("client/buffers", "C", "", BODY + BUFFERS, "", "", body_rows),
    ("client/h2", "C", "", LIMIT, "", "", h2_client_rows),
    ("client/tls", "C", "tls", BODY, "tls", "", tls_client_rows),
    ("client/tls/waits", "C", "tls", BODY + WAITS, "tls", "", tls_client_rows),
    ("client/tls/h2", "C", "h2", BODY, "tls", "", tls_h2_client_rows),
    ("client/tunnel/tls", "C", "tls", " mode tcp\n" + LIMIT, "tls", "", tls_tunnel_rows),
    ("head", "C", "", " timeout http-request 200ms\n", "", "", request_head_rows),
    ("head/client", "C", "", LIMIT, "", "", request_head_rows),
    ("head/tls", "C", "tls", " timeout http-request 200ms\n", "tls", "", tls_head_rows),
    ("idle/tls", "C", "tls", " timeout http-keep-alive 200ms\n http-request return status 200\n", "tls", "", tls_idle_rows),
    ("accepting/tls", "C", "", " timeout client-hs 200ms\n", "tls", "", hello_rows),
    ("accepting/proxy", "C", "", " timeout client-hs 200ms\n", "accept-proxy", "", proxy_rows),
    ("accepting/netscaler", "C", "", " timeout client-hs 200ms\n", "accept-netscaler-cip 77", "", netscaler_rows),
]

COMMON = """global
 log stdout format raw local0
 nbthread 1
 lua-load {lua}
defaults
 mode http
 log global
 log-format "R %f %ST %tsc %Ta %B"
 retries 0
 timeout client 10s
 timeout server 10s
 timeout connect 10s
fcgi-app a
 docroot /w
fcgi-app b
 docroot /w
 option mpxs-conns
"""

# The HTTP client of the process, with one server of the first state for each.
LUA = """core.register_task(function()
  core.msleep(500)
  for at, port in ipairs({{{ports}}}) do
    core.register_task(function()
      local answer = core.httpclient():get{{url = "http://{host}:" .. port .. "/", timeout = 200}}
      core.log(core.info, "R H" .. at .. " " .. tostring(answer and answer.status) .. " " .. tostring(answer and #(answer.body or "")))
    end)
  end
end)
"""


def expand(secret, label, length, algorithm):
    """HKDF-Expand-Label without a context (RFC 8446, section 7.1), of one block."""
    label = b"tls13 " + label
    mac = hmac.HMAC(secret, algorithm)
    mac.update(length.to_bytes(2, "big") + bytes([len(label)]) + label + b"\0" + b"\1")
    return mac.finalize()[:length]


class Sealer:
    """Seals TLS 1.3 records with a traffic secret."""

    def __init__(self, suite, secret):
        self.algorithm = hashes.SHA384() if suite.endswith("SHA384") else hashes.SHA256()
        self.aead, self.length = {
            "TLS_AES_128_GCM_SHA256": (AESGCM, 16), "TLS_AES_256_GCM_SHA384": (AESGCM, 32),
            "TLS_CHACHA20_POLY1305_SHA256": (ChaCha20Poly1305, 32)}[suite]
        self.use(secret)

    def use(self, secret):
        self.secret, self.count = secret, 0
        self.key = self.aead(expand(secret, b"key", self.length, self.algorithm))
        self.iv = expand(secret, b"iv", 12, self.algorithm)

    def seal(self, unit):
        inner = unit.content + bytes([unit.kind])
        header = b"\x17\x03\x03" + (len(inner) + 16).to_bytes(2, "big")
        nonce = (int.from_bytes(self.iv, "big") ^ self.count).to_bytes(12, "big")
        self.count += 1
        sealed = header + self.key.encrypt(nonce, inner, header)
        if unit.kind == 22 and unit.content[:1] == b"\x18":
            self.use(expand(self.secret, b"traffic upd", self.algorithm.digest_size, self.algorithm))
        return sealed


async def shake(reader, writer, serves, crt, protocol):
    """Performs a TLS 1.3 handshake. Returns the sealer of records, and whether data followed the handshake."""
    with tempfile.TemporaryDirectory() as folder:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if serves else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.keylog_filename = os.path.join(folder, "keys")
        if serves:
            context.load_cert_chain(crt, crt + ".key")
            context.num_tickets = 0
        else:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if protocol == "h2":
                context.set_alpn_protocols(["h2"])
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        own = context.wrap_bio(incoming, outgoing, server_side=serves)
        while True:
            try:
                own.do_handshake()
                break
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
                more = await reader.read(20000)
                if not more:
                    raise ConnectionError("no handshake")
                incoming.write(more)
        writer.write(outgoing.read())
        with open(context.keylog_filename) as keys:
            name = ("SERVER" if serves else "CLIENT") + "_TRAFFIC_SECRET_0"
            secret = re.search(rf"^{name} \w+ (\w+)$", keys.read(), re.M).group(1)
        return Sealer(own.cipher()[0], bytes.fromhex(secret)), incoming.pending > 0


async def drip(reader, writer, sealer, first, pieces):
    """Sends the bytes of a row until the connection ends. Returns the seconds until then."""
    begun, ended = time.monotonic(), []

    async def wait():
        try:
            while await reader.read(10000):
                pass
        except OSError:
            pass
        ended.append(time.monotonic() - begun)

    waiting = asyncio.ensure_future(wait())
    try:
        if isinstance(first, list):
            first = b"".join(sealer.seal(unit) for unit in first)
        writer.write(first)
        for piece in pieces:
            parts = [piece]
            if isinstance(piece, Unit):
                parts = [sealer.seal(piece)]
                parts = each(parts[0]) if piece.slow else parts
            for part in parts:
                await asyncio.sleep(EVERY)
                writer.write(part)
                await writer.drain()
        await asyncio.wait_for(waiting, 3)
    except OSError:
        await asyncio.wait([waiting], timeout=3)
    except asyncio.TimeoutError:
        pass
    waiting.cancel()
    writer.close()
    return ended[0] if ended else None


def rows():
    return [(place, row) for place in PLACES for row in place[6]()]


async def slow_server(crt, place, row, results, key):
    async def serve(reader, writer):
        try:
            sealer = None
            if place[2] == "tls":
                sealer, asked = await shake(reader, writer, True, crt, place[2])
                if not asked:
                    await reader.read(10000)
            else:
                await reader.read(10000)
            results[key] = await drip(reader, writer, sealer, row[1], row[2])
        except (OSError, ssl.SSLError):
            writer.close()
    return await asyncio.start_server(serve, HOST, 0)


async def prompt_server(reader, writer):
    """Answers each complete request; echoes data that is not a request."""
    seen, answered = b"", False
    try:
        while more := await reader.read(10000):
            seen += more
            if not answered and (seen.endswith(b"\r\n0\r\n\r\n") or seen.endswith(b"a" * 20) or seen == GET):
                answered = True
                writer.write(OK)
    except (OSError, asyncio.CancelledError):
        pass
    writer.close()


async def slow_client(port, crt, place, row, results, key):
    try:
        reader, writer = await asyncio.open_connection(HOST, port)
        sealer = None
        if place[2]:
            sealer, _ = await shake(reader, writer, False, crt, place[2])
        results[key] = await drip(reader, writer, sealer, row[1], row[2])
    except (OSError, ssl.SSLError) as error:
        print(place[0], row[0], error, file=sys.stderr)


async def prompt_client(port, data):
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(data)
    try:
        await asyncio.wait_for(reader.read(-1), 5)
    except (OSError, asyncio.TimeoutError):
        pass
    writer.close()


def escaped(content):
    if isinstance(content, list):
        return " ".join(escaped(part) for part in content) or "-"
    if isinstance(content, Unit):
        return ("~" if content.slow else "") + f"{content.kind}:" + escaped(content.content)
    return "".join(chr(byte) if 33 <= byte < 127 and byte != 92 else f"\\x{byte:02x}" for byte in content)


def outcome(said, took):
    return f"{said} " + ("whole" if took is None or took > 0.7 else "late")


async def run(options):
    with tempfile.TemporaryDirectory() as folder:
        crt, log = os.path.join(folder, "a.pem"), os.path.join(folder, "log")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=a",
                        "-keyout", crt + ".key", "-out", crt, "-days", "3"], check=True, capture_output=True)
        os.chmod(crt + ".key", 0o600)
        prompt = await asyncio.start_server(prompt_server, HOST, 0)
        prompt = prompt.sockets[0].getsockname()[1]
        results, listeners, ports = {}, [], []
        all = rows()
        text = COMMON.format(lua=os.path.join(folder, "a.lua"))
        for at, (place, row) in enumerate(all):
            server = prompt
            if place[1] == "S":
                listeners.append(await slow_server(crt, place, row, results, at))
                server = listeners[-1].sockets[0].getsockname()[1]
            bind = f"ssl crt {crt} alpn h2,http/1.1" if place[4] == "tls" else place[4]
            server = f"{HOST}:{server}"
            text += f"listen F{at}\n bind {HOST}:{BASE + at} {bind}\n{place[3]} server s {server} {place[5].format(server=server)}\n"
        process_rows = list(server_rows())
        for at, row in enumerate(process_rows):
            listeners.append(await slow_server(crt, PLACES[0], row, results, f"H{at + 1}"))
            ports.append(str(listeners[-1].sockets[0].getsockname()[1]))
        with open(os.path.join(folder, "a.lua"), "w") as out:
            out.write(LUA.format(host=HOST, ports=", ".join(ports)))
        config = os.path.join(folder, "a.cfg")
        with open(config, "w") as out:
            out.write(text)
        with open(log, "wb") as out:
            process = subprocess.Popen([options.haproxy, "-db", "-f", config], stdout=out, stderr=subprocess.DEVNULL)
        try:
            for _ in range(100):
                try:
                    (await asyncio.open_connection(HOST, BASE + len(all) - 1))[1].close()
                    break
                except OSError:
                    await asyncio.sleep(0.1)
            for begin in range(0, len(all), 40):
                tasks = []
                for at in range(begin, min(begin + 40, len(all))):
                    place, row = all[at]
                    if place[1] == "S":
                        tasks.append(prompt_client(BASE + at, b"hello" if "tunnel" in place[0] else GET))
                    else:
                        tasks.append(slow_client(BASE + at, crt, place, row, results, at))
                await asyncio.gather(*tasks)
            await asyncio.sleep(1)
        finally:
            process.terminate()
            process.wait()
        with open(log) as lines:
            logged = lines.read()
    found = {name: (said, int(took) / 1000) for name, said, took in re.findall(r"R (F\d+)~? (\S+ \S+) (\d+) \d+$", logged, re.M)}
    failed = dict(re.findall(r"\] (F\d+)/1: (.*)$", logged, re.M))
    client = dict(re.findall(r"R (H\d+) (.*)$", logged, re.M))
    with open(options.table, "w") as out:
        out.write("# place\trow\tat once\tpieces\toutcome\n")
        def write(place, row, ended):
            out.write("\t".join([place, row[0], escaped(row[1]), escaped(row[2]), ended]) + "\n")

        for at, (place, row) in enumerate(all):
            said, took = found.get(f"F{at}", (failed.get(f"F{at}", "none"), results.get(at)))
            # The log line of an idle connection is that of its request.
            write(place[0], row, outcome(said, results.get(at) if place[0] == "idle/tls" else took))
        for at, row in enumerate(process_rows, 1):
            write("process", row, outcome(client.get(f"H{at}", "none"), results.get(f"H{at}")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("haproxy")
    parser.add_argument("table")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
