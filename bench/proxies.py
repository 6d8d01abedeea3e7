"""Common functions of comparisons of proxies: ports, start and end of a proxy, and its resource usage."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(type=kind) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def spent(process):
    """Returns the exact processor seconds of its threads, without terminated ones."""
    total = 0
    for thread in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{thread}/schedstat", encoding="ascii") as stat:
            total += int(stat.read().split()[0])
    return total / 1e9


def processor(process):
    """Returns the processor seconds of the process, including terminated threads."""
    with open(f"/proc/{process}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(process, kind):
    """Returns kilobytes of a kind, by its name in /proc."""
    with open(f"/proc/{process}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(kind))


@contextlib.contextmanager
def serving(program, configuration, folder, is_ready, before=None):
    """Runs a proxy with that configuration; yields it once it `is_ready`, and stops it afterwards."""
    config = os.path.join(folder, "proxy.cfg")
    with open(config, "w", encoding="ascii") as out:
        out.write(configuration)
    deadline = time.monotonic() + 300
    with open(os.path.join(folder, "log"), "wb") as log:
        process = subprocess.Popen([program, "-db", "-f", config], stdout=log, stderr=log, preexec_fn=before)
    try:
        while not is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                with open(os.path.join(folder, "log"), encoding="utf-8", errors="replace") as log:
                    sys.exit(f"{program} does not start: {log.read()[-500:]}")
            time.sleep(0.002)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
