#!/usr/bin/env python3
"""Measures the cost of many small backends, each with two servers and a line in a map of hosts, by their number: the start, `-c`, memory per
backend, a reload in place, commands of the runtime API, memory over many reloads, and very many additions and removals.

    bench/many_backends.py                       1,000, 4,000 and 10,000 backends, Weir and HAProxy
    bench/many_backends.py --sizes 1000 --only weir
    bench/many_backends.py --churn 100000        this many backends, and as many servers, are added and removed as well
    WEIR=target/debug/weir HAPROXY=/path/to/haproxy bench/many_backends.py

Processor time is that of the proxy alone, of all its threads; for a reload it includes processes that it started and that have ended.
No requests are sent. Traffic stays on 127.0.0.1.
"""
import argparse, contextlib, os, resource, shutil, signal, socket, subprocess, sys, tempfile, time
from proxies import free_port, memory, spent
from reloads import ask, children
from restarts import PATIENCE, ROOT, wait_for

CONFIGURATION = """global
    {way}
    nbthread 1
    maxconn 1000
    stats socket {folder}/api level admin
    {mode}
defaults base
    mode http
    balance roundrobin
    timeout client 20s
    timeout server 20s
    timeout connect 5s
frontend web from base
    bind 127.0.0.1:{port}
    use_backend %[req.hdr(host),lower,map({folder}/hosts.map,none)]
backend none from base
"""

BACKEND = """backend site{number} from base
    server a 127.0.0.1:9 weight {weight}
    server b 127.0.0.1:9
"""

# Number of commands of each kind, and number per connection.
COMMANDS, BATCH = 200, 20


class Site:
    """Writes a configuration with many backends into a separate folder."""

    def __init__(self, folder, name, size, way):
        self.folder, self.port, self.size, self.way = os.path.join(folder, f"{name}{size}"), free_port(), size, way
        os.makedirs(self.folder)
        self.file, self.api, self.master = (os.path.join(self.folder, part) for part in ("site.cfg", "api", "master"))
        self.mode = "expose-experimental-directives" if name == "haproxy" else ""
        self.write()

    def write(self, weight=1, more=False):
        """Writes the files, with another weight of one server, or with an additional backend before all others."""
        with open(os.path.join(self.folder, "hosts.map"), "w", encoding="ascii") as out:
            out.writelines(f"www{number}.example site{number}\n" for number in range(self.size))
        with open(self.file, "w", encoding="ascii") as out:
            out.write(CONFIGURATION.format(folder=self.folder, port=self.port, way=self.way, mode=self.mode))
            numbers = ["more"] * more + list(range(self.size))
            out.writelines(BACKEND.format(number=number, weight=1 if number else weight) for number in numbers)

    @contextlib.contextmanager
    def serving(self, program, *flags):
        with open(os.path.join(self.folder, "log"), "w", encoding="utf-8") as log:
            process = subprocess.Popen([program, *flags, "-f", self.file], stdout=log, stderr=log)
        try:
            wait_for(self.port)
            # Addresses are bound before the process is ready to serve.
            self.ask("show version")
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=PATIENCE)

    def ask(self, line):
        """Returns the answers to commands that are separated by `;`."""
        return ask(self.api, line)


def check(program, site):
    """Returns the processor seconds of `-c`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, "-c", "-f", site.file], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cost(process, site, lines, expected):
    """Returns milliseconds of processor time per command."""
    began = spent(process.pid)
    for at in range(0, len(lines), BATCH):
        told = site.ask(";".join(lines[at : at + BATCH]))
        if expected not in told:
            raise SystemExit(f"{lines[at]}: {told[-300:]}")
    return (spent(process.pid) - began) * 1000 / len(lines)


def commands(process, site):
    """Measures the cost of each kind of command."""
    names = [f"new{number}" for number in range(COMMANDS)]
    servers = [f"{name}/s{server}" for name in names for server in range(2)]
    hosts = os.path.join(site.folder, "hosts.map")
    rows = [
        ("add backend", [f"add backend {name} from base" for name in names], "New backend registered"),
        ("add server", [f"add server {server} 127.0.0.1:9" for server in servers], "New server registered"),
        ("enable server", [f"enable server {server}" for server in servers], ""),
        ("publish backend", [f"publish backend {name}" for name in names], "Backend published"),
        ("add map", [f"add map {hosts} {name}.example {name}" for name in names], ""),
        ("set map", [f"set map {hosts} {name}.example none" for name in names], ""),
        ("del map", [f"del map {hosts} {name}.example" for name in names], ""),
        ("unpublish backend", [f"unpublish backend {name}" for name in names], "Backend unpublished"),
        ("disable server", [f"disable server {server}" for server in servers], ""),
        ("del server", [f"del server {server}" for server in servers], "Server deleted"),
        ("del backend", [f"del backend {name}" for name in names], "Backend deleted"),
    ]
    return {what: cost(process, site, lines, expected) for what, lines, expected in rows}


# Number of backends that are added at run time to measure their memory.
GROWTH = 1000


def growth(process, site):
    """Returns the memory in bytes of a backend with two servers that commands add."""
    before = memory(process.pid, "VmRSS")
    for at in range(0, GROWTH, BATCH):
        names = [f"grown{number}" for number in range(at, at + BATCH)]
        site.ask(";".join(f"add backend {name} from base;add server {name}/s 127.0.0.1:9;add server {name}/t 127.0.0.1:9" for name in names))
    return (memory(process.pid, "VmRSS") - before) * 1024 / GROWTH


def churn(process, site, count):
    """Adds and removes backends with one server each, then servers of one backend; returns processor time and memory of each half."""
    rows = []
    for half in range(2):
        began = spent(process.pid)
        for at in range(0, count // 2, BATCH // 2):
            numbers = range(half * count // 2 + at, half * count // 2 + at + BATCH // 2)
            make = [f"add backend t{n} from base;add server t{n}/s 127.0.0.1:9" for n in numbers]
            told = site.ask(";".join(make))
            told += site.ask(";".join(f"del server t{n}/s;del backend t{n}" for n in numbers))
            if told.count("Backend deleted") < len(numbers):
                raise SystemExit(f"additions and removals of backends end at {numbers[0]}: {told[-300:]}")
        rows.append(("backends", spent(process.pid) - began, memory(process.pid, "VmRSS")))
    for half in range(2):
        began = spent(process.pid)
        for at in range(0, count // 2, BATCH):
            numbers = range(half * count // 2 + at, half * count // 2 + at + BATCH)
            told = site.ask(";".join(f"add server site0/t{n} 127.0.0.1:9" for n in numbers))
            told += site.ask(";".join(f"del server site0/t{n}" for n in numbers))
            if told.count("Server deleted") < len(numbers):
                raise SystemExit(f"additions and removals of servers end at {numbers[0]}: {told[-300:]}")
        rows.append(("servers", spent(process.pid) - began, memory(process.pid, "VmRSS")))
    for what, used, resident in rows:
        print(f"    {count // 2} {what} added and removed: {used * 2000 / count:.3f} ms each, then {resident} kB", flush=True)


def used(master):
    """Returns the processor seconds of a master and of its workers, including terminated ones."""
    total = 0
    for pid in [master, *children(master)]:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        total += sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")
    return total


# The changes of the reloads, in turn.
CHANGES = [("weight", {"weight": 2}), ("backend added", {"weight": 2, "more": True}), ("backend removed", {"weight": 2}), ("weight", {})]


def reloads(program, site, count):
    """Reloads with one change each; returns the change, processor seconds, kilobytes of the workers after it, and whether it was in place."""
    rows = []
    with site.serving(program, "-W", "-S", site.master) as process:
        for number in range(count):
            what, change = CHANGES[number % len(CHANGES)]
            site.write(**change)
            began = used(process.pid)
            told = ask(site.master, "reload")
            if not told.startswith("Success=1"):
                raise SystemExit(told)
            time.sleep(0.2)
            resident = sum(memory(worker, "VmRSS") for worker in children(process.pid))
            rows.append((what, used(process.pid) - began, resident, "Reloaded in place" in told))
    return rows


def measure(name, program, options, folder):
    way = "reload in-place" if name == "weir" else ""
    empty = Site(folder, name, 0, way)
    with empty.serving(program, "-db") as process:
        nothing = memory(process.pid, "VmRSS")
    for size in options.sizes:
        site = Site(folder, name, size, way)
        with site.serving(program, "-db") as process:
            began, resident = spent(process.pid), memory(process.pid, "VmRSS")
            each = (resident - nothing) * 1024 / size
            print(f"{name}, {size} backends: -c {check(program, site):.2f} s, start {began:.2f} s of processor, "
                  f"{resident} kB, {each:.0f} bytes for a backend", flush=True)
            found = commands(process, site)
            print("    " + ", ".join(f"{what} {value:.3f} ms" for what, value in found.items()), flush=True)
            if options.churn and size == options.sizes[0]:
                churn(process, site, options.churn)
        # In a process of its own: what was removed in another one would be used again.
        with site.serving(program, "-db") as process:
            print(f"    {growth(process, site):.0f} bytes for a backend with two servers that is added", flush=True)
        found = reloads(program, site, options.reloads)
        kind = "in place" if all(row[3] for row in found) else "by a new worker"
        print(f"    reloads {kind}: " + ", ".join(f"{row[0]} {row[1]:.2f} s" for row in found), flush=True)
        print("    memory after them: " + ", ".join(f"{row[2]}" for row in found) + " kB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=lambda text: [int(word) for word in text.split(",")], default=[1000, 4000, 10000])
    parser.add_argument("--reloads", type=int, default=20)
    parser.add_argument("--churn", type=int, default=0)
    parser.add_argument("--only", choices=["weir", "haproxy"])
    options = parser.parse_args()
    weir = os.environ.get("WEIR", os.path.join(ROOT, "target/release/weir"))
    programs = {"weir": weir, "haproxy": os.environ.get("HAPROXY", shutil.which("haproxy") or "")}
    with tempfile.TemporaryDirectory() as folder:
        for name, program in programs.items():
            if program and options.only in (None, name):
                measure(name, program, options, folder)


if __name__ == "__main__":
    main()
