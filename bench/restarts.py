#!/usr/bin/env python3
"""Restarts a proxy repeatedly under load and counts lost requests, for Weir and HAProxy.

Each restart is that of an operator: a new process takes over the listening sockets (-x) and signals the old one to finish
(-sf). Clients send requests at a steady rate in the meantime, half of them on new connections, half on kept ones.
A request without a complete response is lost; if the proxy has closed a kept connection before the request
was sent, the client connects again, as every client does.

    bench/restarts.py                          100 restarts under 2,000 requests a second, Weir and HAProxy
    bench/restarts.py -n 10 -r 500 --only weir
    WEIR=target/debug/weir HAPROXY=/path/to/haproxy bench/restarts.py
    bench/restarts.py --master                 reloads of a master (SIGUSR2) in place of -x and -sf

Traffic stays on 127.0.0.1; a run that hangs ends by itself. Needs nginx as the origin.
"""
import argparse, multiprocessing, os, select, shutil, signal, socket, subprocess, sys, tempfile, threading, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
THREADS = 8
PATIENCE = 30

CONFIGURATION = """global
    chroot /
    user root
    stats socket {folder}/api level admin expose-fd listeners
defaults
    mode http
    timeout client 20s
    timeout server 20s
    timeout connect 5s
    {more}
listen web
    bind 127.0.0.1:{port}
    server origin 127.0.0.1:{origin}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answer(stream):
    """Reads one response. Returns None if there was none or an incomplete one."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = stream.recv(4096)
        if not more:
            return None
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    while len(body) < length:
        more = stream.recv(4096)
        if not more:
            return None
        body += more
    return head


def connect(port):
    stream = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


def closed(stream):
    """Whether the peer has ended the connection. Nothing else may be readable between two requests."""
    return bool(select.select([stream], [], [], 0)[0])


def client(port, interval, stop, tell):
    """Sends a request every `interval` seconds, alternately on kept and new connections."""
    counts = {"answered": 0, "fresh lost": 0, "kept lost": 0}
    kept, turn, due = None, 0, time.monotonic()
    while not stop.is_set():
        due += interval
        time.sleep(max(0, due - time.monotonic()))
        turn += 1
        keeps = turn % 2 == 0
        stream = None
        try:
            if keeps:
                if kept and closed(kept):
                    kept.close()
                    kept = None
                stream = kept = kept or connect(port)
                stream.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            else:
                stream = connect(port)
                stream.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            head = answer(stream)
        except OSError as error:
            head = None
            print(f"    {'kept' if keeps else 'fresh'}: {error}", file=sys.stderr)
        if head is None or b" 200 " not in head.split(b"\r\n")[0]:
            counts["kept lost" if keeps else "fresh lost"] += 1
        else:
            counts["answered"] += 1
        if not keeps or head is None or b"connection: close" in head.lower():
            if stream:
                stream.close()
            if keeps:
                kept = None
    tell.append(counts)


def clients(port, rate, stop, queue):
    told = []
    threads = [threading.Thread(target=client, args=(port, THREADS / rate, stop, told)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    queue.put({key: sum(counts[key] for counts in told) for key in told[0]})


def wait_for(port):
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return connect(port).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def start_origin(folder):
    port = free_port()
    path = os.path.join(folder, "nginx.conf")
    with open(path, "w") as file:
        file.write(
            f"daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log /dev/null;\n"
            "events { worker_connections 4096; }\n"
            "http { access_log off; keepalive_requests 1000000;\n"
            f"  server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ return 200 'ok'; }} }} }}\n"
        )
    origin = subprocess.Popen(["nginx", "-p", folder, "-c", path], stderr=subprocess.DEVNULL)
    wait_for(port)
    return origin, port


def restart_by_successor(program, config, folder, old, log):
    arguments = [program, "-db", "-f", config, "-x", f"{folder}/api", "-sf", str(old.pid)]
    new = subprocess.Popen(arguments, stdout=log, stderr=log)
    status = old.wait(timeout=PATIENCE)
    if status != 0:
        raise SystemExit(f"{program}: the old process ended with {status}")
    return new


def reload_of_master(folder, old):
    with socket.socket(socket.AF_UNIX) as master:
        master.settimeout(PATIENCE)
        # HAProxy's master closes its socket briefly when it restarts itself.
        end = time.monotonic() + PATIENCE
        while master.connect_ex(f"{folder}/master") != 0 and time.monotonic() < end:
            time.sleep(0.01)
        master.sendall(b"reload\n")
        told = b""
        while more := master.recv(4096):
            told += more
    if not told.startswith(b"Success=1"):
        raise SystemExit(told.decode())
    return old


def measure(name, program, options, folder, origin):
    port = free_port()
    config = os.path.join(folder, f"{name}.cfg")
    with open(config, "w") as file:
        file.write(CONFIGURATION.format(folder=folder, port=port, origin=origin, more=options.option and f"option {options.option}"))
    log = open(os.path.join(folder, f"{name}.log"), "w")
    arguments = ["-W", "-S", f"{folder}/master"] if options.master else ["-db"]
    running = subprocess.Popen([program, *arguments, "-f", config], stdout=log, stderr=log)
    stop, queue = multiprocessing.Event(), multiprocessing.Queue()
    try:
        wait_for(port)
        crowd = [
            multiprocessing.Process(target=clients, args=(port, options.rate / 2, stop, queue), daemon=True)
            for _ in range(2)
        ]
        for process in crowd:
            process.start()
        began = time.monotonic()
        for _ in range(options.restarts):
            if options.master:
                running = reload_of_master(folder, running)
            else:
                running = restart_by_successor(program, config, folder, running, log)
            time.sleep(options.pause)
        took = time.monotonic() - began
        stop.set()
        counts = [queue.get(timeout=2 * PATIENCE) for _ in crowd]
    finally:
        stop.set()
        running.send_signal(signal.SIGTERM)
        running.wait(timeout=PATIENCE)
    total = {key: sum(count[key] for count in counts) for key in counts[0]}
    print(
        f"{name:8} {options.restarts} restarts in {took:.1f} s, {total['answered']} requests answered "
        f"({total['answered'] / took:.0f}/s), lost: {total['fresh lost']} on fresh connections, "
        f"{total['kept lost']} on kept ones",
        flush=True,
    )
    return total["fresh lost"] + total["kept lost"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--restarts", type=int, default=100)
    parser.add_argument("-r", "--rate", type=float, default=2000, help="requests a second")
    parser.add_argument("-p", "--pause", type=float, default=0.1, help="seconds between two restarts")
    parser.add_argument("--only", choices=["weir", "haproxy"])
    parser.add_argument("--master", action="store_true")
    parser.add_argument("--option", default="", help="an option of the proxy, such as idle-close-on-response")
    options = parser.parse_args()
    weir = os.environ.get("WEIR", os.path.join(ROOT, "target/release/weir"))
    programs = {"weir": weir, "haproxy": os.environ.get("HAPROXY", shutil.which("haproxy") or "")}
    lost = 0
    with tempfile.TemporaryDirectory() as folder:
        origin, port = start_origin(folder)
        try:
            for name, program in programs.items():
                if options.only not in (None, name):
                    continue
                if not program or not os.path.exists(program):
                    print(f"{name:8} is not there", file=sys.stderr)
                    continue
                missing = measure(name, program, options, folder, port)
                lost += missing if name == "weir" else 0
        finally:
            origin.terminate()
            origin.wait(timeout=PATIENCE)
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
