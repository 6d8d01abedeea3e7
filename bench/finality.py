#!/usr/bin/env python3
"""Records for every fetch of HAProxy whether a rule on bytes waits for it.

    bench/finality.py HAPROXY TABLE

For each fetch there are proxies with `tcp-request content` or `tcp-response content` rules that use it under an inspect-delay, in
TCP and in HTTP mode, and proxies that use it in `tcp-request connection`, `tcp-request session`, `http-request` and `http-response`
rules. Clients and a server send nothing, a part of a message, or a whole one, over plain connections, TLS and HTTP/2.
A line of TABLE is a fetch with its arguments and a letter for each scene: `w` if the rule waited for the whole delay, `d` if it
was decided at once, `W` and `D` if a condition found a value, `-` if HAProxy refuses the configuration, `!` if the fetch crashes
the process. crates/engine/tests/simulated/finality reads it. Uses loopback addresses only.
"""

import argparse
import asyncio
import os
import re
import ssl
import subprocess
import sys
import tempfile

DELAY = 1000
HOST = "127.10.0.1"
BASE = 15000
ARGUMENTS = [
    "", "(a)", "(txn.a)", "(0)", "(0,4)", "(0,1)", "(t)", "(0,t)", "(0,0,t)", "(be)", "(be/s)", "(f)", "(users)", "(1.2.3.4)",
    "(::1)", "(a,b)", "(1)", "(HOME)", "(cli)",
]

# Converters that detect whether bytes belong to their protocol.
CONVERTED = [
    "req.payload(0,0),mqtt_is_valid", "req.payload(0,0),mqtt_field_value(connect,client_identifier)",
    "req.payload(0,0),mqtt_field_value(connect,flags)", "req.payload(0,0),fix_is_valid", "req.payload(0,0),fix_tag_value(35)",
    "req.payload(0,0),length", "req.payload(0,0),bytes(0,2)",
]

HTTP = b"GET /a?b=c HTTP/1.1\r\nHost: a\r\nCookie: a=b\r\n\r\n"
PART = b"GET /a?b=c HTTP/1.1\r\nHost: a\r\nCoo"
POST = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"
JUNK = b"\xff\x00junk\r\n\r\njunk\r\njunk"
MQTT = bytes.fromhex("101200044d51545404020000") + b"\x00\x06client"
ANONYMOUS = bytes.fromhex("100c00044d515454040200000000")
FIX = b"8=FIX.4.2\x019=5\x0135=0\x0110=161\x01"
RDP = bytes.fromhex("0300002b26e00000000000") + b"Cookie: mstshash=abcdefg\r\n" + bytes.fromhex("0100080001000000")


def hello():
    context = ssl.create_default_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="a.example")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def h2(method, path, ends, body=b""):
    def literal(name, value):
        return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value
    block = literal(b":method", method) + literal(b":scheme", b"http") + literal(b":path", path) + literal(b":authority", b"a")
    block += literal(b"cookie", b"a=b")
    head = frame(1, 4 | (1 if ends else 0), 1, block)
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + head + (frame(0, 0, 1, body) if body else b"")


# Name, kind of proxy, whether over TLS, and the bytes that the client sends.
HELLO = hello()
SCENES = [
    ("tcp/none", "T", False, b""),
    ("tcp/junk", "T", False, JUNK),
    ("tcp/part", "T", False, PART),
    ("tcp/http", "T", False, HTTP),
    ("tcp/hello-part", "T", False, HELLO[:60]),
    ("tcp/hello", "T", False, HELLO),
    ("tcp/mqtt", "T", False, MQTT),
    ("tcp/mqtt-part", "T", False, MQTT[:5]),
    ("tcp/mqtt-anonymous", "T", False, ANONYMOUS),
    ("tcp/fix", "T", False, FIX),
    ("tcp/fix-part", "T", False, FIX[:14]),
    ("tcp/rdp", "T", False, RDP),
    ("tcp/rdp-part", "T", False, RDP[:20]),
    ("tcp/tls/none", "T", True, b""),
    ("tcp/tls/http", "T", True, HTTP),
    ("tcp/track/none", "K", False, b""),
    ("tcp/track/junk", "K", False, JUNK),
    ("tcp/track/http", "K", False, HTTP),
    ("http/get", "H", False, HTTP),
    ("http/post", "H", False, POST),
    ("http/tls/get", "H", True, HTTP),
    ("http/h2/get", "H", False, h2(b"GET", b"/a?b=c", True)),
    ("http/h2/post", "H", False, h2(b"POST", b"/a", False, b"abc")),
    ("http/track/get", "L", False, HTTP),
    ("http/backend/get", "C", False, HTTP),
    ("answer/tcp/junk", "R", False, b"J"),
    ("answer/tcp/part", "R", False, b"P"),
    ("answer/tcp/http", "R", False, b"H"),
    ("answer/http/get", "S", False, HTTP),
    ("answer/http/body", "S", False, HTTP.replace(b"/a", b"/body")),
    ("connection/clear", "E", False, b""),
    ("connection/tls", "E", True, b""),
    ("session/clear", "Y", False, b""),
    ("session/tls", "Y", True, b""),
    ("request/get", "Q", False, HTTP),
    ("request/post", "Q", False, POST),
    ("request/tls/get", "Q", True, HTTP),
    ("request/h2/get", "Q", False, h2(b"GET", b"/a?b=c", True)),
    ("request/h2/post", "Q", False, h2(b"POST", b"/a", False, b"abc")),
    ("response/get", "A", False, HTTP),
    ("response/body", "A", False, HTTP.replace(b"/a", b"/body")),
    ("response/tls/get", "A", True, HTTP),
    ("response/h2/get", "A", False, h2(b"GET", b"/a?b=c", True)),
]
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie: a=b\r\n\r\nok"

FRONT = " bind {host}:{{port}}\n".format(host=HOST)
TLS = " bind {host}:{{tls}} ssl crt {{crt}} alpn h2,http/1.1\n".format(host=HOST)
REQUEST = f" tcp-request inspect-delay {DELAY}ms\n tcp-request content set-var(txn.f) int(1) if {{{{ {{fetch}} -m found }}}}\n tcp-request content reject\n"
TRACK = f" tcp-request inspect-delay {DELAY}ms\n tcp-request content track-sc0 {{fetch}} table t\n tcp-request content reject\n"
ANSWERED = f" tcp-response inspect-delay {DELAY}ms\n tcp-response content set-var(txn.f) int(1) if {{{{ {{fetch}} -m found }}}}\n tcp-response content reject\n"
FOUND = "set-var(txn.f) int(1) if {{ {fetch} -m found }}\n"
EARLY = (' log-format "R %f %Tt %Th %[var(sess.f)]"\n tcp-request {} set-var(sess.f) int(1) if {{{{ {{fetch}} -m found }}}}\n'
         " tcp-request content reject\n")
KINDS = {
    "T": "frontend T{i}\n mode tcp\n" + FRONT + TLS + REQUEST,
    "K": "frontend K{i}\n mode tcp\n" + FRONT + TRACK,
    "H": "frontend H{i}\n mode http\n" + FRONT + TLS + REQUEST,
    "L": "frontend L{i}\n mode http\n" + FRONT + TRACK,
    "C": "frontend C{i}\n mode http\n" + FRONT + " default_backend c{i}\nbackend c{i}\n mode http\n" + REQUEST,
    "R": "frontend R{i}\n mode tcp\n" + FRONT + " default_backend r{i}\nbackend r{i}\n mode tcp\n server s {server}\n" + ANSWERED,
    "S": "frontend S{i}\n mode http\n" + FRONT + " default_backend s{i}\nbackend s{i}\n mode http\n server s {server}\n" + ANSWERED,
    "E": "frontend E{i}\n mode tcp\n" + FRONT + TLS + EARLY.format("connection"),
    "Y": "frontend Y{i}\n mode tcp\n" + FRONT + TLS + EARLY.format("session"),
    "Q": "frontend Q{i}\n mode http\n" + FRONT + TLS + " http-request " + FOUND + " http-request deny\n",
    "A": "frontend A{i}\n mode http\n" + FRONT + TLS + " default_backend a{i}\nbackend a{i}\n mode http\n server s {server}\n"
         + " http-response " + FOUND + " http-response deny\n",
}
ORDER = "TKHLCRSEYQA"
SECURE = "THEYQA"
PORTS = len(ORDER) + len(SECURE)
COMMON = """global
 log stdout format raw local0
 maxconn 4000
 nbthread 1
defaults
 log global
 log-format "R %f %Tt %Th %[var(txn.f)]"
 timeout client 5s
 timeout server 5s
 timeout connect 5s
userlist users
 user a insecure-password b
backend t
 stick-table type string len 32 size 1k store gpc0,gpt0,http_req_cnt,server_id
backend be
 mode http
 server s 127.10.0.1:1
frontend f
 mode http
 bind 127.10.0.1:14999
"""


# Fetches of HAProxy's internal state, of another protocol, and one that needs a list of groups.
UNSUITABLE = ("internal.", "quic_", "http_auth_group")


def fetches(program):
    listed = subprocess.run([program, "-dKsmp", "-q", "-c", "-f", "/dev/null"], capture_output=True, text=True).stdout
    found = re.findall(r"^\[[^\]]*\] ([^:\s(]+)(\(.*\))?:", listed, re.M)
    return [(name, bool(signature) and not signature.startswith("([")) for name, signature in found if not name.startswith(UNSUITABLE)]


def section(kind, number, fetch, crt, server):
    first = BASE + PORTS * number
    port, tls = first + ORDER.index(kind), first + len(ORDER) + SECURE.index(kind) if kind in SECURE else 0
    return KINDS[kind].format(i=number, fetch=fetch, port=port, tls=tls, crt=crt, server=server), port, tls


def refused(program, folder, crt, wanted):
    """Returns those of the wanted pairs of a number and a kind of proxy that the program refuses, each with its fetch, by the
    lines in its messages. It does not report all of them at once."""
    text, owners, begin = [COMMON], {}, COMMON.count("\n")
    for number, kind, fetch in wanted:
        text.append(section(kind, number, fetch, crt, "127.10.0.1:1")[0])
        end = begin + text[-1].count("\n")
        owners.update((line, (number, kind)) for line in range(begin + 1, end + 1))
        begin = end
    path = os.path.join(folder, "try.cfg")
    with open(path, "w") as out:
        out.write("".join(text))
    told = subprocess.run([program, "-c", "-f", path], capture_output=True, text=True).stderr
    found = {owners.get(int(line)) for line in re.findall(r"^\[ALERT\].*parsing \[[^]]*:(\d+)\]", told, re.M)}
    return found - {None}


def without_refused(program, folder, crt, wanted):
    """Returns those wanted that the program accepts; it reports fifty errors at a time."""
    while wrong := refused(program, folder, crt, wanted):
        wanted = [(number, kind, fetch) for number, kind, fetch in wanted if (number, kind) not in wrong]
    return wanted


def choose(program, folder, crt, wanted):
    """Returns every fetch with the first arguments that the program accepts, and the kinds of proxies in which it is accepted."""
    chosen = {}
    for place, arguments in enumerate(ARGUMENTS):
        left = [name for name, needs in wanted if name not in chosen and (place > 0 or not needs)]
        tried = [(number, ORDER[0], name + arguments) for number, name in enumerate(left)]
        chosen.update((left[number], fetch) for number, _, fetch in without_refused(program, folder, crt, tried))
    chosen = [chosen[name] for name, _ in wanted if name in chosen] + CONVERTED
    tried = [(number, kind, fetch) for number, fetch in enumerate(chosen) for kind in ORDER]
    kinds = {(number, kind) for number, kind, _ in without_refused(program, folder, crt, tried)}
    return [(fetch, [kind for kind in ORDER if (number, kind) in kinds]) for number, fetch in enumerate(chosen)]


async def serve(reader, writer):
    try:
        asked = await reader.read(1000)
        if asked == b"J":
            writer.write(JUNK)
        elif asked == b"P":
            writer.write(ANSWER[:30])
        elif b"/body" in asked:
            writer.write(ANSWER[:-1])
        else:
            writer.write(ANSWER)
        await asyncio.sleep(3)
    except OSError:
        pass
    finally:
        writer.close()


async def ask(port, tls, data):
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        reader, writer = await asyncio.open_connection(HOST, port, ssl=context, server_hostname="a.example" if tls else None)
        writer.write(data)
        async with asyncio.timeout(4):
            while await reader.read(10000):
                pass
        writer.close()
    except (OSError, TimeoutError, ssl.SSLError):
        pass


class Program:
    """HAProxy with its log; it is restarted if it has crashed."""

    def __init__(self, program, config, log, port):
        self.program, self.config, self.log, self.port, self.process = program, config, log, port, None

    async def start(self):
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen([self.program, "-db", "-f", self.config], stdout=out, stderr=subprocess.DEVNULL)
        self.read = 0
        while True:
            try:
                (await asyncio.open_connection(HOST, self.port))[1].close()
                return
            except OSError:
                await asyncio.sleep(0.2)

    async def ask(self, places, data, found):
        """Sends a scene's bytes to the ports of some fetches, and records their letters. Returns False if the program has ended."""
        await asyncio.gather(*(ask(*place, data) for place in places.values()))
        await asyncio.sleep(0.3)
        if self.process.poll() is not None:
            await self.start()
            return False
        with open(self.log) as lines:
            lines.seek(self.read)
            new = lines.read()
            self.read += len(new)
        for number, took, shaken, value in re.findall(r"^R \w(\d+)\S* \+?(-?\d+) (-?\d+) (\S+)$", new, re.M):
            letter = "w" if int(took) - max(int(shaken), 0) >= DELAY - 100 else "d"
            found[int(number)] = letter.upper() if value == "1" else letter
        return True

    def end(self):
        self.process.terminate()
        self.process.wait()


async def record(options):
    with tempfile.TemporaryDirectory() as folder:
        crt = os.path.join(folder, "a.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=a",
                        "-keyout", crt + ".key", "-out", crt, "-days", "3"], check=True, capture_output=True)
        os.chmod(crt + ".key", 0o600)
        chosen = choose(options.haproxy, folder, crt, fetches(options.haproxy))
        server = await asyncio.start_server(serve, HOST, 0, backlog=1000)
        address = f"{HOST}:{server.sockets[0].getsockname()[1]}"
        text, ports = COMMON, {}
        for number, (fetch, kinds) in enumerate(chosen):
            for kind in kinds:
                own, *ports[kind, number] = section(kind, number, fetch, crt, address)
                text += own
        config, log = os.path.join(folder, "all.cfg"), os.path.join(folder, "log")
        with open(config, "w") as out:
            out.write(text)
        program = Program(options.haproxy, config, log, list(ports.values())[-1][0])
        table = {number: [] for number in range(len(chosen))}
        try:
            await program.start()
            for name, kind, tls, data in SCENES:
                asked = [number for number in table if (kind, number) in ports]
                found = {}
                for begin in range(0, len(asked), 150):
                    batch = asked[begin:begin + 150]
                    places = {number: (ports[kind, number][1 if tls else 0], tls) for number in batch}
                    if await program.ask(places, data, found):
                        continue
                    # One of the fetches has crashed the process: each is tested separately.
                    for number, place in places.items():
                        if not await program.ask({number: place}, data, found):
                            found[number] = "!"
                for number in table:
                    table[number].append(found.get(number, "?" if (kind, number) in ports else "-"))
                print(name, "".join(sorted({cell for row in table.values() for cell in row[-1]})), file=sys.stderr)
        finally:
            program.end()
    with open(options.table, "w") as out:
        out.write("# fetch\t" + " ".join(name for name, *_ in SCENES) + "\n")
        for number, (fetch, _) in enumerate(chosen):
            out.write(fetch + "\t" + "".join(table[number]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("haproxy")
    parser.add_argument("table")
    asyncio.run(record(parser.parse_args()))


if __name__ == "__main__":
    main()
