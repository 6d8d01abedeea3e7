#!/usr/bin/env python3
"""Records at which level of a stats socket HAProxy permits each command of its runtime API.

    bench/levels.py HAPROXY COMMANDS TABLE

Every line of COMMANDS is sent over sockets of the levels `user`, `operator` and `admin` to a HAProxy with at least one object of each kind.
A line of TABLE is a command and the lowest level at which it is not denied. crates/engine/tests/simulated/levels reads it. COMMANDS may be an
older TABLE. Uses loopback addresses and a temporary folder only.
"""

import argparse
import os
import socket
import subprocess
import tempfile
import time

LEVELS = ["user", "operator", "admin"]
CONFIGURATION = """global
 stats socket {folder}/user level user
 stats socket {folder}/operator level operator
 stats socket {folder}/admin level admin
defaults
 mode http
 timeout client 3s
 timeout server 3s
 timeout connect 1s
resolvers r
 nameserver n 127.10.0.4:1
cache c
 total-max-size 1
ring rr
 size 1000
frontend f
 bind unix@{folder}/front
 use_backend %[path,map({folder}/a.map,b)]
 acl x path -f {folder}/a.acl
 http-request track-sc0 src table t
 http-request cache-use c
backend b
 server s 127.10.0.4:1 check
backend t
 stick-table type string size 10 store gpc0
"""
# A command that is denied without the usual message: its output cannot be generated below its level.
DENIED = ("Permission denied", "Can't allocate memory!")


def ask(folder, level, command):
    with socket.socket(socket.AF_UNIX) as api:
        api.settimeout(3)
        api.connect(os.path.join(folder, level))
        api.sendall(command.encode() + b"\n")
        api.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while len(answer) < 200_000 and (piece := api.recv(65536)):
                answer += piece
        except OSError:
            pass
    return answer.decode(errors="replace")


def record(options):
    with open(options.commands) as lines:
        commands = [line.rstrip("\n").split("\t")[0] for line in lines if line.strip() and not line.startswith("#")]
    with tempfile.TemporaryDirectory() as folder:
        for name in ["a.map", "a.acl"]:
            with open(os.path.join(folder, name), "w") as out:
                out.write("k v\n")
        config = os.path.join(folder, "haproxy.cfg")
        with open(config, "w") as out:
            out.write(CONFIGURATION.format(folder=folder))
        process = subprocess.Popen([options.haproxy, "-db", "-f", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(100):
                try:
                    ask(folder, "admin", "show version")
                    break
                except OSError:
                    time.sleep(0.1)
            rows = []
            for command in commands:
                answers = [ask(folder, level, command) for level in LEVELS]
                if "Unknown" not in answers[2]:
                    denied = [any(word in answer for word in DENIED) for answer in answers]
                    rows.append((command, LEVELS[denied.index(False)]))
        finally:
            process.terminate()
            process.wait()
    with open(options.table, "w") as out:
        out.write("# command\tlowest level\n")
        out.writelines(f"{command}\t{level}\n" for command, level in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("haproxy")
    parser.add_argument("commands")
    parser.add_argument("table")
    record(parser.parse_args())


if __name__ == "__main__":
    main()
