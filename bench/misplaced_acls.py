#!/usr/bin/env python3
"""Records what HAProxy warns of conditions whose ACLs are not available at their place.

    bench/misplaced_acls.py HAPROXY

Checks a configuration for each row of crates/weir/tests/process/check_order/misplaced_acls.tsv, whose first two columns have the kind
of a proxy and its lines, separated by ';', and writes the third: the warnings that name a line, separated by ';', lines counted from
that of the proxy. A test compares them with Weir's.
"""
import argparse
import pathlib
import re
import subprocess
import tempfile

TABLE = pathlib.Path(__file__).resolve().parent.parent / "crates/weir/tests/process/check_order/misplaced_acls.tsv"
DEFAULTS = "defaults\n mode http\n timeout client 5s\n timeout server 5s\n timeout connect 5s\n"
BACKEND = "backend app\n stick-table type ip size 1k\n server s 127.0.0.1:1\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("haproxy")
    haproxy = pathlib.Path(parser.parse_args().haproxy).resolve()
    first = (DEFAULTS + BACKEND).count("\n") + 1
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for row in TABLE.read_text().splitlines():
            kind, lines = row.split("\t")[:2]
            text = "".join(f" {line}\n" for line in lines.split(";"))
            bind = "" if kind == "backend" else " bind 127.0.0.1:1\n"
            pathlib.Path(folder, "x.cfg").write_text(f"{DEFAULTS}{BACKEND}{kind} p\n{text}{bind}")
            command = [haproxy, "-c", "-f", "x.cfg"]
            said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stderr
            # A quote may be left of the message before.
            found = re.findall(r"^'?\[WARNING\]\s+\(\d+\) : (.*x\.cfg:\d+.*)$", said, re.M)
            found = [re.sub(r"x\.cfg:(\d+)", lambda at: f"x.cfg:+{int(at[1]) - first}", line) for line in found]
            rows.append(f"{kind}\t{lines}\t{';'.join(found)}\n")
    TABLE.write_text("".join(rows))


main()
