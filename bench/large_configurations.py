#!/usr/bin/env python3
"""Measures the start with very large configurations: the time until the process serves, its processor time, and its memory.

    bench/large_configurations.py                   100,000 servers, and a map of a million entries; Weir and HAProxy
    bench/large_configurations.py --servers 10000 --entries 100000 --only weir
    WEIR=target/release/weir HAPROXY=/path/to/haproxy bench/large_configurations.py

Every start is repeated; the medians are printed. Only one request is sent, which shows that the process serves.
"""
import argparse, os, shutil, signal, statistics, subprocess, tempfile, time
from proxies import memory, processor
from restarts import PATIENCE, ROOT, connect, free_port, wait_for

HEAD = """global
    nbthread 2
    maxconn 1000
defaults
    mode http
    timeout client 20s
    timeout server 20s
    timeout connect 5s
frontend web
    bind 127.0.0.1:{port}
"""


def request(port):
    with connect(port) as stream:
        stream.sendall(b"GET /k7 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        answer = stream.recv(4096)
    if not answer.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"no answer: {answer[:200]}")


def servers(folder, count, port):
    """Returns lines of that number of servers, a hundred per backend."""
    lines = [HEAD.format(port=port), "    http-request return status 200\n"]
    for backend in range(max(count // 100, 1)):
        lines.append(f"backend b{backend}\n")
        lines.extend(f"    server s{server} 127.0.0.1:9\n" for server in range(min(count, 100)))
    return "".join(lines)


def entries(folder, count, port):
    """Writes a map with that number of entries."""
    name = os.path.join(folder, "large.map")
    with open(name, "w") as file:
        file.writelines(f"/k{entry} value{entry}\n" for entry in range(count))
    return HEAD.format(port=port) + f"    http-request return status 200 hdr x-value %[path,map_str({name})]\n"


def measure(what, program, name, make, count, options, folder):
    found = []
    for _ in range(options.rounds):
        port = free_port()
        config = os.path.join(folder, f"{name}.cfg")
        with open(config, "w") as file:
            file.write(make(folder, count, port))
        log = open(os.path.join(folder, f"{name}.log"), "w")
        began = time.monotonic()
        running = subprocess.Popen([program, "-db", "-f", config], stdout=log, stderr=log)
        try:
            wait_for(port)
            request(port)
            found.append((time.monotonic() - began, processor(running.pid), memory(running.pid, "VmRSS"), memory(running.pid, "VmHWM")))
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(timeout=PATIENCE)
    took, used, now, most = (statistics.median(column) for column in zip(*found))
    print(
        f"{name:8} {count:9} {what}: serves after {took:6.2f} s, {used:6.2f} s of processor, {now / 1024:7.0f} MiB, "
        f"{most / 1024:7.0f} MiB at most",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=100_000)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=["weir", "haproxy"])
    options = parser.parse_args()
    weir = os.environ.get("WEIR", os.path.join(ROOT, "target/release/weir"))
    programs = {"weir": weir, "haproxy": os.environ.get("HAPROXY", shutil.which("haproxy") or "")}
    with tempfile.TemporaryDirectory() as folder:
        for what, make, count in (("servers", servers, options.servers), ("entries of a map", entries, options.entries)):
            for name, program in programs.items():
                if program and options.only in (None, name):
                    measure(what, program, name, make, count, options, folder)


if __name__ == "__main__":
    main()
