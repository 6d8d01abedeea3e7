#!/usr/bin/env python3
"""Compares Weir with HAProxy and nginx on this machine: CPU of the proxy process for each request, in one run.

Every proxy gets the same configuration, nginx is the origin, wrk the client. Rounds alternate between the proxies, and
the medians are compared: on a shared machine CPU time for a request holds where throughput does not.

    bench/compare.py                          every scenario, both modes
    bench/compare.py -s ka64,close -m onecore -r 5 -t 4
    bench/compare.py -s ka64,ka1000 --floor target/release/examples/forward
    HAPROXY=/path/to/haproxy bench/compare.py another HAProxy beside the installed one

Modes: `split` puts the proxy on one core and origin and client on the other; `onecore` puts everything on one; `both`
lets everything run on both, for comparing one thread with two (`--threads`).
Traffic stays on 127.0.0.1 and every round is bounded in time. Needs wrk and nginx; strace for `--syscalls`.
"""
import argparse, json, os, re, shutil, signal, socket, statistics, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TICK = os.sysconf("SC_CLK_TCK")

# mode: cores of the proxy, cores of origin and client
CORES = {"split": ("0", "1"), "onecore": ("0", "0"), "both": ("0-1", "0-1")}

# name: (what, path, client connections, client closes, both sides close, mode)
SCENARIOS = {
    "ka64": ("keep-alive, 64 connections", "/64", 64, False, False, "http"),
    "ka1000": ("keep-alive, 1000 connections", "/64", 1000, False, False, "http"),
    "close": ("client closes, server pooled", "/64", 64, True, False, "http"),
    "closeboth": ("close on both sides", "/64", 64, True, True, "http"),
    "one": ("one connection", "/64", 1, False, False, "http"),
    "1m": ("1 MB bodies over http", "/1m", 16, False, False, "http"),
    "10m": ("10 MB bodies over http", "/10m", 8, False, False, "http"),
    "tcp1m": ("1 MB bodies over tcp", "/1m", 16, False, False, "tcp"),
    "tcp10m": ("10 MB bodies over tcp", "/10m", 8, False, False, "tcp"),
    "tcp64": ("tcp, keep-alive, 64 connections", "/64", 64, False, False, "tcp"),
    "idle": ("4,000 idle keep-alive clients", "/64", 4000, False, False, "http"),
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_port(port, process):
    end = time.time() + 10
    while time.time() < end:
        if process.poll() is not None:
            raise SystemExit(f"{process.args[0]} ended with status {process.returncode} before it listened")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise SystemExit(f"nothing listens on port {port}")


def haproxy_config(port, origin, threads, both, mode):
    close = "    option httpclose\n" if both and mode == "http" else ""
    reuse = "    http-reuse always\n" if mode == "http" else ""
    return f"""global
    maxconn 6000
    nbthread {threads}
    tune.pool-low-fd-ratio 80
    tune.pool-high-fd-ratio 90
defaults
    mode {mode}
    timeout connect 5s
    timeout client 60s
    timeout server 60s
{close}listen px
    bind 127.0.0.1:{port}
{reuse}    server origin 127.0.0.1:{origin}
"""


def nginx_proxy_config(port, origin, threads, both, mode, folder):
    head = f"""worker_processes {threads};
daemon off;
master_process {'on' if threads > 1 else 'off'};
pid {folder}/proxy.pid;
error_log {folder}/proxy.err crit;
worker_rlimit_nofile 15000;
events {{ worker_connections 7000; }}
"""
    if mode == "tcp":
        module = "/usr/lib/nginx/modules/ngx_stream_module.so"
        load = f"load_module {module};\n" if os.path.exists(module) else ""
        return load + head + f"""stream {{
  server {{ listen 127.0.0.1:{port}; proxy_pass 127.0.0.1:{origin}; }}
}}
"""
    upstream = "" if both else "keepalive 1000; keepalive_requests 1000000000;"
    connection = "proxy_http_version 1.0;" if both else 'proxy_http_version 1.1; proxy_set_header Connection "";'
    return head + f"""http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 60s;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream o {{ server 127.0.0.1:{origin}; {upstream} }}
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://o; {connection} }} }}
}}
"""


def origin_config(port, folder):
    return f"""worker_processes 1;
daemon off;
master_process off;
pid {folder}/origin.pid;
error_log {folder}/origin.err crit;
worker_rlimit_nofile 15000;
events {{ worker_connections 7000; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 60s; sendfile on; tcp_nopush on;
  client_body_temp_path {folder}/b2; proxy_temp_path {folder}/p2; fastcgi_temp_path {folder}/f2;
  uwsgi_temp_path {folder}/u2; scgi_temp_path {folder}/s2;
  open_file_cache max=10;
  server {{ listen 127.0.0.1:{port} backlog=4096; root {folder}/www; }}
}}
"""


class Proxy:
    """One proxy process under test."""

    def __init__(self, name, command, port, core):
        self.name, self.port = name, port
        self.log = tempfile.NamedTemporaryFile(delete=False)
        self.process = subprocess.Popen(
            ["taskset", "-c", core] + command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log
        )
        wait_port(port, self.process)

    def pids(self):
        """The process and its children (nginx with several workers)."""
        found = [self.process.pid]
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                stat = open(f"/proc/{pid}/stat").read()
            except OSError:
                continue
            if int(stat.rsplit(")", 1)[1].split()[1]) == self.process.pid:
                found.append(int(pid))
        return found

    def cpu(self):
        """Seconds of CPU: all, user, system."""
        total = user = system = 0.0
        for pid in self.pids():
            for task in os.listdir(f"/proc/{pid}/task"):
                total += int(open(f"/proc/{pid}/task/{task}/schedstat").read().split()[0]) / 1e9
            fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
            user += int(fields[11]) / TICK
            system += int(fields[12]) / TICK
        return total, user, system

    def anonymous(self):
        """Bytes of anonymous memory."""
        total = 0
        for pid in self.pids():
            total += int(re.search(r"RssAnon:\s+(\d+) kB", open(f"/proc/{pid}/status").read()).group(1)) * 1024
        return total

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.unlink(self.log.name)


def wrk(core, port, path, connections, seconds, close):
    command = ["taskset", "-c", core, "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s"]
    if close:
        command += ["-H", "Connection: close"]
    out = subprocess.run(command + [f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True, timeout=seconds + 60).stdout
    requests = int(re.search(r"(\d+) requests in", out).group(1))
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1))
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    errors = re.search(r"Socket errors: (.*)", out)
    return requests, rate, (f"{bad.group(1)} bad answers " if bad else "") + (errors.group(1) if errors else "")


def idle_memory(proxy, count):
    """Bytes of anonymous memory for each idle keep-alive client that has had one answer."""
    request = b"GET /64 HTTP/1.1\r\nHost: bench\r\n\r\n"
    before = proxy.anonymous()
    clients = []
    for _ in range(count):
        client = socket.create_connection(("127.0.0.1", proxy.port), 10)
        client.sendall(request)
        data = b""
        while b"\r\n\r\n" not in data or len(data.split(b"\r\n\r\n", 1)[1]) < 64:
            piece = client.recv(4096)
            if not piece:
                raise SystemExit(f"{proxy.name} closed an idle client")
            data += piece
        clients.append(client)
    after = proxy.anonymous()
    for client in clients:
        client.close()
    return (after - before) / count


def count_calls(proxy, core, scenario, seconds=2):
    """System calls for each request: reads and writes, and epoll_wait apart."""
    _, path, connections, close, _, _ = SCENARIOS[scenario]
    out = tempfile.NamedTemporaryFile(delete=False).name
    tracer = subprocess.Popen(["strace", "-c", "-f", "-o", out] + sum([["-p", str(pid)] for pid in proxy.pids()], []),
                              stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    requests, _, _ = wrk(core, proxy.port, path, connections, seconds, close)
    tracer.send_signal(signal.SIGINT)
    tracer.wait(10)
    calls = {}
    for line in open(out):
        fields = line.split()
        if len(fields) >= 5 and re.match(r"[\d.]+$", fields[0]) and fields[-1] != "total":
            calls[fields[-1]] = int(fields[3]) / max(requests, 1)
    os.unlink(out)
    return calls


def proxies(args, folder, origin, scenario, core):
    """Starts every proxy for a scenario."""
    _, _, _, _, both, mode = SCENARIOS[scenario]
    started = []
    candidates = [("weir", args.weir), ("haproxy", args.haproxy), ("haproxy2", os.environ.get("HAPROXY")), ("nginx", args.nginx)]
    if args.floor and scenario.startswith(("ka", "tcp")):
        candidates.append(("floor", args.floor))
    for name, program in candidates:
        if not program or (args.only and name not in args.only.split(",")):
            continue
        port = free_port()
        config = f"{folder}/{name}.cfg"
        if name == "floor":
            os.environ["FORWARD_BODY"] = "64"
            command = [program, "copy" if mode == "tcp" else "proxy", str(port), str(origin)]
        elif name == "nginx":
            open(config, "w").write(nginx_proxy_config(port, origin, args.threads, both, mode, folder))
            command = [program, "-p", folder, "-c", config]
        else:
            open(config, "w").write(haproxy_config(port, origin, args.threads, both, mode))
            command = [program, "-db", "-f", config]
        try:
            started.append(Proxy(label(name, program), command, port, core))
        except SystemExit as error:
            print(f"# {name} left out: {error}", file=sys.stderr)
    return started


def label(name, program):
    if name.startswith("haproxy"):
        out = subprocess.run([program, "-v"], capture_output=True, text=True).stdout
        found = re.search(r"version (\d+\.\d+)", out)
        return f"haproxy {found.group(1)}" if found else name
    return name


def measure(args, folder, origin, scenario, mode):
    what, path, connections, close, _, _ = SCENARIOS[scenario]
    proxy_core, client_core = CORES[mode]
    started = proxies(args, folder, origin, scenario, proxy_core)
    rows = {proxy.name: [] for proxy in started}
    extra = {}
    try:
        if scenario == "idle":
            for _ in range(2):
                for proxy in started:
                    rows[proxy.name].append(idle_memory(proxy, connections))
            # The first round warms pools up; what each further client costs is what counts.
            return what, {name: {"bytes": values[0]} for name, values in rows.items()}
        for proxy in started:
            wrk(client_core, proxy.port, path, connections, 1, close)
        for number in range(args.rounds):
            for proxy in started if number % 2 == 0 else reversed(started):
                total, user, system = proxy.cpu()
                requests, rate, errors = wrk(client_core, proxy.port, path, connections, args.time, close)
                total2, user2, system2 = proxy.cpu()
                if errors:
                    print(f"# {proxy.name} {scenario}: {errors}", file=sys.stderr)
                each = 1e6 / max(requests, 1)
                rows[proxy.name].append(((total2 - total) * each, (user2 - user) * each, (system2 - system) * each, rate))
        if args.syscalls and shutil.which("strace"):
            for proxy in started:
                extra[proxy.name] = count_calls(proxy, client_core, scenario)
    finally:
        for proxy in started:
            proxy.stop()
    result = {}
    for name, values in rows.items():
        cpu, user, system, rate = (statistics.median(column) for column in zip(*values))
        result[name] = {"cpu_us": cpu, "user_us": user, "system_us": system, "rate": rate, "calls": extra.get(name)}
    return what, result


def print_table(scenario, mode, what, result):
    print(f"\n{scenario} ({mode}): {what}")
    ours = result.get("weir")
    for name, row in result.items():
        if "bytes" in row:
            print(f"  {name:14} {row['bytes']:8.0f} bytes of anonymous memory a client")
            continue
        ratio = f"  {row['cpu_us'] / ours['cpu_us']:5.2f} x weir" if ours and name != "weir" else ""
        print(f"  {name:14} {row['cpu_us']:8.2f} µs CPU a request ({row['user_us']:.1f} user, {row['system_us']:.1f} system)"
              f"  {row['rate']:9.0f} requests/s{ratio}")
        if row.get("calls"):
            calls = sorted(row["calls"].items(), key=lambda item: -item[1])
            print("                 calls a request: " + ", ".join(f"{name} {count:.2f}" for name, count in calls[:8]))
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-s", "--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("-m", "--modes", default="split,onecore")
    parser.add_argument("-r", "--rounds", type=int, default=5)
    parser.add_argument("-t", "--time", type=int, default=3, help="seconds of a round")
    parser.add_argument("--threads", type=int, default=1, help="worker threads of each proxy")
    parser.add_argument("--weir", default=f"{ROOT}/target/release/weir")
    parser.add_argument("--haproxy", default=shutil.which("haproxy"))
    parser.add_argument("--nginx", default=shutil.which("nginx"))
    parser.add_argument("--floor", help="also run that build of crates/rt/examples/forward.rs: it forwards, and nothing else")
    parser.add_argument("--only", help="weir,haproxy,haproxy2,nginx: leave the others out")
    parser.add_argument("--syscalls", action="store_true", help="also count system calls (a run under strace)")
    parser.add_argument("--json", help="write the figures there, too")
    args = parser.parse_args()
    for tool in ("wrk", "nginx"):
        if not shutil.which(tool):
            raise SystemExit(f"{tool} is not installed")
    folder = tempfile.mkdtemp(prefix="weir-bench-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    os.mkdir(f"{folder}/www")
    os.chmod(folder, 0o755)
    for name, size in (("64", 64), ("1m", 1 << 20), ("10m", 10 << 20)):
        with open(f"{folder}/www/{name}", "wb") as file:
            file.write(b"x" * size)
    port = free_port()
    open(f"{folder}/origin.cfg", "w").write(origin_config(port, folder))
    figures = {}
    try:
        for mode in args.modes.split(","):
            origin = Proxy("origin", ["nginx", "-p", folder, "-c", f"{folder}/origin.cfg"], port, CORES[mode][1])
            try:
                for scenario in args.scenarios.split(","):
                    what, result = measure(args, folder, port, scenario, mode)
                    figures[f"{scenario} {mode}"] = result
                    print_table(scenario, mode, what, result)
            finally:
                origin.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
