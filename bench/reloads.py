#!/usr/bin/env python3
"""Reloads a master repeatedly under load, in place and by new workers, and counts lost requests.

While the configuration changes and is reloaded, `weir load` sends requests at a fixed rate, half of them on kept connections,
half on new ones; some downloads continue from the first reload to the last, and WebSocket tunnels are idle. At the end each
tunnel has to echo, and a stick table and the counters are compared with their earlier contents.

    bench/reloads.py                     1,000 reloads under 2,000 requests a second: Weir in place, Weir and HAProxy otherwise
    bench/reloads.py -n 20 -r 500 --only in-place
    WEIR=target/debug/weir HAPROXY=/path/to/haproxy bench/reloads.py

Traffic stays on 127.0.0.1.
"""
import argparse, json, multiprocessing, os, shutil, signal, socket, subprocess, sys, tempfile, time
from restarts import PATIENCE, ROOT, connect, free_port, wait_for

KEYS = 1000
QUIET = 10

CONFIGURATION = """global
    {way}
    nbthread 2
    stats socket {folder}/api level admin expose-fd listeners
defaults
    mode http
    timeout client 1h
    timeout server 1h
    timeout tunnel 1h
    timeout connect 5s
backend keys
    stick-table type string len 16 size 100k expire 1h store http_req_cnt
frontend web
    bind 127.0.0.1:{port}
    http-request track-sc0 req.hdr(x-key) table keys if {{ req.hdr(x-key) -m found }}
    http-response set-header x-reload {number}
    use_backend long if {{ path_beg /long }}
    default_backend app
backend long
    server origin 127.0.0.1:{slow}
backend app
    server origin 127.0.0.1:{origin}
    {more}
"""


def slow_origin(port):
    """Answers /long/tunnel with a tunnel that echoes, all other requests with a body that grows by one piece every 50 ms until a
    connection sends `end`."""
    import asyncio

    ending = asyncio.Event()

    async def serve(reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"GET /end"):
                ending.set()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            elif b"/tunnel" in head:
                writer.write(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
                             b"sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
                while data := await reader.read(1024):
                    writer.write(data)
            else:
                writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
                while not ending.is_set():
                    writer.write(b"10\r\n0123456789abcdef\r\n")
                    await writer.drain()
                    await asyncio.sleep(0.05)
                writer.write(b"0\r\n\r\n")
            await writer.drain()
            writer.close()
        except (OSError, asyncio.IncompleteReadError):
            pass

    async def main():
        async with await asyncio.start_server(serve, "127.0.0.1", port, backlog=1024) as server:
            await server.serve_forever()

    asyncio.run(main())


def download(port, queue):
    with connect(port) as stream:
        stream.sendall(b"GET /long/download HTTP/1.1\r\nhost: x\r\n\r\n")
        tail, total = b"", 0
        try:
            while more := stream.recv(65536):
                total, tail = total + len(more), (tail + more)[-7:]
                if tail.endswith(b"\r\n0\r\n\r\n"):
                    break
        except OSError:
            pass
        queue.put(tail.endswith(b"0\r\n\r\n"))


def tunnel(port):
    stream = connect(port)
    stream.sendall(
        b"GET /long/tunnel HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
        b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    data = b""
    while b"\r\n\r\n" not in data:
        data += stream.recv(4096)
    assert data.startswith(b"HTTP/1.1 101"), data
    return stream


def echoes(stream):
    try:
        stream.sendall(b"still there")
        return stream.recv(64) == b"still there"
    except OSError:
        return False


def ask(path, line):
    with socket.socket(socket.AF_UNIX) as api:
        api.settimeout(PATIENCE)
        end = time.monotonic() + PATIENCE
        while api.connect_ex(path) != 0 and time.monotonic() < end:
            time.sleep(0.01)
        api.sendall(line.encode() + b"\n")
        told = b""
        while more := api.recv(65536):
            told += more
    return told.decode()


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def resident(pid):
    """Returns the memory of the master's workers in kilobytes, and their number."""
    total, workers = 0, children(pid)
    for worker in workers:
        try:
            with open(f"/proc/{worker}/status") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
        except OSError:
            pass
    return total, len(workers)


def load(weir, port, rate, fresh, seconds=None):
    arguments = [weir, "load", "-c", "8", "--constant", str(rate), "-q", "--json"]
    arguments += ["-r", "1"] if fresh else []
    arguments += ["-d", str(seconds)] if seconds else []
    return subprocess.Popen([*arguments, f"http://127.0.0.1:{port}/"], stdout=subprocess.PIPE, text=True)


def summary(process):
    out, _ = process.communicate(timeout=PATIENCE)
    return json.loads(out.strip().splitlines()[-1])


def failed(found):
    errors = sum(value for key, value in found.items() if key.startswith("error_"))
    return errors + found["status_5xx"] + found["status_4xx"]


def percentile(founds):
    return max(found["last_byte_p99"] for found in founds) / 1000


def sessions(folder):
    rows = [row.split(",") for row in ask(f"{folder}/api", "show stat").splitlines()]
    return next(int(row[7]) for row in rows if row[:2] == ["web", "FRONTEND"])


def measure(name, program, weir, way, options, origin, slow):
    folder = tempfile.mkdtemp()
    port = free_port()
    config = os.path.join(folder, "service.cfg")

    def write(number):
        # A different server each time: by its name, its weight or the interval of its checks.
        more = "server other%d 127.0.0.1:%d weight %d check inter %ds" % (number, origin, 1 + number % 9, 1 + number % 5)
        more = more if number % 2 else ""
        text = CONFIGURATION.format(
            way=way, folder=folder, port=port, origin=origin, slow=slow, number=number, more=more
        )
        with open(config, "w") as file:
            file.write(text)

    write(0)
    log = open(os.path.join(folder, "log"), "w")
    master = subprocess.Popen([program, "-W", "-S", f"{folder}/master", "-f", config], stdout=log, stderr=log)
    tunnels, downloads, loads = [], [], []
    queue = multiprocessing.Queue()
    try:
        wait_for(port)
        with connect(port) as stream:
            for key in range(KEYS):
                stream.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nx-key: k%d\r\n\r\n" % key)
                while not stream.recv(65536):
                    raise SystemExit("the proxy has closed")
        quiet = [load(weir, port, options.rate / 2, fresh, QUIET) for fresh in (False, True)]
        quiet = percentile([summary(one) for one in quiet])
        tunnels = [tunnel(port) for _ in range(options.tunnels)]
        downloads = [multiprocessing.Process(target=download, args=(port, queue)) for _ in range(options.downloads)]
        for process in downloads:
            process.start()
        loads = [load(weir, port, options.rate / 2, fresh) for fresh in (False, True)]
        time.sleep(1)
        before, sessions_before = resident(master.pid), sessions(folder)
        began, slowest, most = time.monotonic(), 0, before
        in_place = 0
        for number in range(1, options.reloads + 1):
            write(number)
            asked = time.monotonic()
            told = ask(f"{folder}/master", "reload")
            if not told.startswith("Success=1"):
                raise SystemExit(told)
            in_place += "Reloaded in place" in told
            slowest = max(slowest, time.monotonic() - asked)
            most = max(most, resident(master.pid))
            time.sleep(options.pause)
        took = time.monotonic() - began
        time.sleep(1)
        after = resident(master.pid)
        for one in loads:
            one.send_signal(signal.SIGINT)
        found = [summary(one) for one in loads]
        kept_sessions = sessions(folder) >= sessions_before
        entries = ask(f"{folder}/api", "show table keys").count("http_req_cnt=1")
        alive = sum(echoes(stream) for stream in tunnels)
        with connect(slow) as stream:
            stream.sendall(b"GET /end HTTP/1.1\r\n\r\n")
            stream.recv(100)
        whole = sum(queue.get(timeout=PATIENCE) for _ in downloads)
    finally:
        for one in [*loads, *downloads]:
            if isinstance(one, multiprocessing.Process) or one.poll() is None:
                one.terminate()
        master.send_signal(signal.SIGTERM)
        master.wait(timeout=PATIENCE)
    requests = sum(one["answers"] for one in found)
    lost = sum(failed(one) for one in found)
    reconnects = found[0]["connections"] - 8
    print(
        f"{name}: {options.reloads} reloads ({in_place} in place) in {took:.0f} s, the slowest took {slowest * 1000:.0f} ms\n"
        f"    {requests} requests answered, {lost} failed; p99 {quiet:.1f} ms quiet, {percentile(found):.1f} ms during\n"
        f"    kept connections closed: {reconnects}, tunnels alive: {alive} of {len(tunnels)}, "
        f"downloads whole: {whole} of {len(downloads)}\n"
        f"    table entries: {entries} of {KEYS}, counters {'kept' if kept_sessions else 'begun anew'}\n"
        f"    workers' memory: {before[0]} kB before, {after[0]} kB after ({after[1]} processes), {most[0]} kB at most",
        flush=True,
    )
    shutil.rmtree(folder)
    return lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--reloads", type=int, default=1000)
    parser.add_argument("-r", "--rate", type=float, default=2000, help="requests a second")
    parser.add_argument("-p", "--pause", type=float, default=0.05, help="seconds between two reloads")
    parser.add_argument("--tunnels", type=int, default=100)
    parser.add_argument("--downloads", type=int, default=4)
    parser.add_argument("--only", choices=["in-place", "new-worker", "haproxy"])
    options = parser.parse_args()
    weir = os.environ.get("WEIR", os.path.join(ROOT, "target/release/weir"))
    haproxy = os.environ.get("HAPROXY", shutil.which("haproxy") or "")
    rows = [("in-place", weir, "reload in-place"), ("new-worker", weir, ""), ("haproxy", haproxy, "")]
    lost = 0
    for name, program, way in rows:
        if options.only not in (None, name):
            continue
        if not program or not os.path.exists(program):
            print(f"{name} is not there", file=sys.stderr)
            continue
        origin, slow = free_port(), free_port()
        servers = [
            subprocess.Popen([weir, "origin", "-L", f"127.0.0.1:{origin}", "--threads", "1"], stdout=subprocess.DEVNULL),
            multiprocessing.Process(target=slow_origin, args=(slow,), daemon=True),
        ]
        servers[1].start()
        try:
            wait_for(origin)
            wait_for(slow)
            missing = measure(name, program, weir, way, options, origin, slow)
            lost += missing if name == "in-place" else 0
        finally:
            for server in servers:
                server.terminate()
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
