#!/usr/bin/env python3
"""Records the warnings of HAProxy and their order.

    bench/check_order.py HAPROXY

Checks crates/weir/tests/process/check_order/order.cfg and writes warnings.txt beside it, which a test compares with Weir's
warnings. Values that depend on the machine are replaced: process IDs, folders, and measured times.
"""
import argparse
import pathlib
import re
import subprocess
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "crates/weir/tests/process/check_order"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("haproxy")
    haproxy = pathlib.Path(parser.parse_args().haproxy).resolve()
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder, "empty.lua")
        script.write_text("")
        text = (FOLDER / "order.cfg").read_text().replace("SCRIPT", str(script))
        pathlib.Path(folder, "order.cfg").write_text(text)
        command = [haproxy, "-c", "-L", "here", "-f", "order.cfg"]
        said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stderr
    lines = re.findall(r"^'?\[WARNING\]\s+\(\d+\) : (.*)$", said, re.M)
    lines = [re.sub(r"takes \d+ milliseconds", "takes # milliseconds", line) for line in lines]
    (FOLDER / "warnings.txt").write_text("".join(f"{line}\n" for line in lines))


main()
