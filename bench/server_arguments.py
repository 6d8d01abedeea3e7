#!/usr/bin/env python3
"""Records what HAProxy says first about a server with broken arguments.

    bench/server_arguments.py HAPROXY

Checks a configuration for each row of crates/weir/tests/process/check_order/server_arguments.tsv, whose first column has the
arguments, and writes the other two: the exit code, and the first warning or alert (empty: there is none). A test compares them with
Weir's.
"""
import argparse
import pathlib
import re
import subprocess
import tempfile

TABLE = pathlib.Path(__file__).resolve().parent.parent / "crates/weir/tests/process/check_order/server_arguments.tsv"
CONFIGURATION = """defaults
 mode http
 timeout client 5s
 timeout server 5s
 timeout connect 5s
backend b
 server s 127.0.0.1:80 ARGUMENTS
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("haproxy")
    haproxy = pathlib.Path(parser.parse_args().haproxy).resolve()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for line in TABLE.read_text().splitlines():
            arguments = line.split("\t")[0]
            pathlib.Path(folder, "x.cfg").write_text(CONFIGURATION.replace("ARGUMENTS", arguments))
            done = subprocess.run([haproxy, "-c", "-f", "x.cfg"], cwd=folder, capture_output=True, check=False)
            said = done.stderr.replace(b"\0", b"").decode()
            first = re.search(r"^\[(WARNING|ALERT)\]\s+\(\d+\) : (.*)$", said, re.M)
            rows.append(f"{arguments}\t{done.returncode}\t{f'{first[1]} {first[2]}' if first else ''}\n")
    TABLE.write_text("".join(rows))


main()
