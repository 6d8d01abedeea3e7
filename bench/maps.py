#!/usr/bin/env python3
"""Compares the processor time and memory that Weir and HAProxy need to load a map.

    bench/maps.py WEIR HAPROXY [HAPROXY...] [--entries 1000000] [--rounds 5]

Every program is started with a configuration that uses the map, and with the same one without it, in alternating
rounds. Once it listens, its user and system time and its anonymous memory are read; the cost of the map is the difference
of the medians. Memory is read again a second later, without what the program has freed by then.
Linux only; nothing is changed outside of a temporary folder.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time

from proxies import free_port, listens, memory, serving

TICK = os.sysconf("SC_CLK_TCK")


def mixed(number):
    """Returns a different number for each index, without order."""
    number = (number ^ (number >> 16)) * 0x85EBCA6B & 0xFFFFFFFF
    number = (number ^ (number >> 13)) * 0xC2B2AE35 & 0xFFFFFFFF
    return number ^ (number >> 16)


def address(number):
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def network(number):
    bits = 20 + number % 13
    return f"{address(mixed(number) >> (32 - bits) << (32 - bits))}/{bits}"


def path(number):
    own = mixed(number)
    turned = ((own << 4 * part | own >> (32 - 4 * part)) & 0xFFFFFFFF for part in range(number % 8 + 1))
    return "".join(f"/{part:x}" for part in turned)


# Each kind: the expression, the format of a key, and its share of the entries.
KINDS = {
    "str": ("req.hdr(host),map_str", lambda number: f"site-{number}.example.org", 1),
    "beg": ("path,map_beg", path, 1),
    "ip": ("src,map_ip", network, 1),
    "ip6": ("src,map_ip", lambda number: f"2001:db8:{mixed(number) >> 16:x}:{mixed(number) & 0xffff:x}::/64", 1),
    "end": ("path,map_end", lambda number: f"-{mixed(number):x}.html", 1),
    "int": ("src_port,map_int", lambda number: str(number), 1),
    "reg": ("path,map_reg", lambda number: f"^/dir{number}/[a-z]+$", 1000),
}


def configuration(port, expression, file):
    rule = f"    http-request set-header X-Found %[{expression}({file},none)]\n" if file else ""
    return (
        "global\n    nbthread 1\n    maxconn 100\ndefaults\n    mode http\n    timeout connect 5s\n"
        "    timeout client 5s\n    timeout server 5s\nlisten proxy\n"
        f"    bind 127.0.0.1:{port}\n{rule}    http-request return status 200\n"
    )


def spent(process):
    """Returns processor seconds, including those of terminated threads."""
    with open(f"/proc/{process}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def start(program, folder, expression, file):
    """Returns processor seconds until it listens, and its memory in kilobytes then."""
    port = free_port()
    with serving(program, configuration(port, expression, file), folder, lambda: listens(port)) as process:
        time.sleep(1)
        return spent(process.pid), memory(process.pid, "RssAnon")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="weir-maps-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    try:
        print("| map, entries | program | loading, s | times Weir | memory, MB | times Weir |\n|---|---|---|---|---|---|")
        for kind in options.kinds.split(","):
            measure(kind, options, folder)
    finally:
        shutil.rmtree(folder)


def measure(kind, options, folder):
    expression, key, share = KINDS[kind]
    entries = options.entries // share
    file = os.path.join(folder, f"{kind}.map")
    with open(file, "w", encoding="ascii") as out:
        out.writelines(f"{key(number)} backend-{number % 1000}\n" for number in range(entries))
    found = {program: ([], []) for program in options.programs}
    for _ in range(options.rounds):
        for program in options.programs:
            found[program][0].append(start(program, folder, expression, file))
            found[program][1].append(start(program, folder, expression, None))
    first = None
    for program, rounds in found.items():
        with_map, without = ([statistics.median(column) for column in zip(*some)] for some in rounds)
        cost = [max(loaded - bare, 1e-9) for loaded, bare in zip(with_map, without)]
        first = first or cost
        print(
            f"| {kind}, {entries:,} | {os.path.basename(program)} | {cost[0]:.2f} | {cost[0] / first[0]:.2f} "
            f"| {cost[1] / 1024:.1f} | {cost[1] / first[1]:.2f} |",
            flush=True,
        )
    os.remove(file)


if __name__ == "__main__":
    main()
