#!/usr/bin/env python3
"""Workloads against Squall and a peer, in alternation in one run.

    cargo xtask bench -- --peer PORT:PID [--profile fast] [--layers] [--workloads point_select,...]
    cargo xtask bench -- --peer PORT:PID --squall PORT:PID [--floor PORT:PID]

For each workload and thread count it prints queries per second and server CPU microseconds per query of each server
(utime + stime from /proc), their medians over the rounds, and the ratios. Without `--squall` it builds Squall and the floor server
and runs them itself. The floor answers every packet with a canned reply on the same reactor, and writes one block durably for each
commit: the cost of a query without computation. `--layers` adds Squall's time by layer, from `perf`. The load is sysbench; `select_1` is our own script. Both
servers get the same data, loaded in the same run.
"""

import argparse
import os
import pathlib
import re
import socket
import statistics
import subprocess
import tempfile
import time

import layers

HERE = pathlib.Path(__file__).parent
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PROGRESS = re.compile(r"qps: ([\d.]+)")
# The workloads that the floor can answer.
CANNED = ("select_1", "point_select", "insert", "update_", "write_only")
DEFAULT = "select_1,select_1:text,point_select,point_select:text"


class Server:
    def __init__(self, label, address):
        port, pid = address.split(":")
        self.label, self.port, self.pid = label, port, int(pid)

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def sysbench(self, script, *more):
        return ["sysbench", script, "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={self.port}",
                "--mysql-user=root", "--mysql-db=sbtest", "--mysql-ssl=off", *more]


def processor_times():
    """Ticks of all processors: those that the hypervisor took, and all."""
    times = [int(time) for time in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return times[7], sum(times)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def start(directory, options):
    """Builds and starts Squall and its floor: both servers, both processes."""
    root = HERE.parent
    cargo = ["cargo", "build", "--quiet", "--profile", options.profile]
    subprocess.run([*cargo, "-p", "server", "--bin", "squalld"], cwd=root, check=True)
    subprocess.run([*cargo, "-p", "mysql-protocol", "--example", "floor"], cwd=root, check=True)
    built = root / "target" / options.profile
    ports = {"squall": free_port(), "floor": free_port()}
    commands = {
        "squall": [built / "squalld", f"--datadir={directory}/data", f"--port={ports['squall']}", "--insecure-root"],
        "floor": [built / "examples" / "floor", str(ports["floor"]), "0", f"{directory}/floor"],
    }
    processes = {}
    for label, command in commands.items():
        log = open(f"{directory}/{label}.log", "w")
        processes[label] = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + 30
        while socket.socket().connect_ex(("127.0.0.1", ports[label])) != 0:
            if processes[label].poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{label} does not start: {pathlib.Path(log.name).read_text()}")
            time.sleep(0.1)
    servers = [Server(label, f"{ports[label]}:{processes[label].pid}") for label in commands]
    return servers, list(processes.values())


def prepare(server, options):
    client = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{server.port}", "-uroot", "-e"]
    subprocess.run([*client, "DROP DATABASE IF EXISTS sbtest; CREATE DATABASE sbtest"], check=True)
    started = time.perf_counter()
    subprocess.run(server.sysbench("oltp_common", f"--tables={options.tables}", f"--table-size={options.rows}", "prepare"),
                   check=True, stdout=subprocess.DEVNULL)
    print(f"{server.label}: {options.tables} x {options.rows} rows loaded in {time.perf_counter() - started:.1f} s", flush=True)


def measure(server, workload, threads, options, record_to=None):
    """Queries per second and server CPU microseconds per query, the warm-up left out."""
    name, _, protocol = workload.partition(":")
    script = str(HERE / f"{name}.lua") if (HERE / f"{name}.lua").exists() else f"oltp_{name}"
    command = server.sysbench(script, f"--tables={options.tables}", f"--table-size={options.rows}", f"--threads={threads}",
                              f"--time={options.warmup + options.seconds}", "--report-interval=1",
                              f"--db-ps-mode={'disable' if protocol == 'text' else 'auto'}", "run")
    recording = None
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    second, queries, cpu_before, cpu_after = 0, [], 0.0, 0.0
    for line in process.stdout:
        found = PROGRESS.search(line)
        if not found:
            if "FATAL" in line:
                print(f"{server.label}: {line.strip()}")
            continue
        second += 1
        if second == options.warmup:
            cpu_before = server.cpu_seconds()
            if record_to:
                recording = layers.record(server.pid, max(options.seconds - 1, 1), record_to)
        elif options.warmup < second <= options.warmup + options.seconds:
            queries.append(float(found.group(1)))
            cpu_after = server.cpu_seconds()
    process.wait()
    if recording:
        recording.wait()
    total = sum(queries)
    return (total / max(len(queries), 1), (cpu_after - cpu_before) / max(total, 1) * 1e6)


def print_layers(workload, threads, servers, options, directory):
    """One more run of Squall and the floor under the profiler: shares are of its own time, which the profiler lengthens a little."""
    columns = {}
    for server in servers:
        path = f"{directory}/{server.label}.perf"
        # A recording fails when a thread ends while it begins.
        for _ in range(3):
            _, cost = measure(server, workload, threads, options, record_to=path)
            columns[server.label] = {layer: share * cost for layer, share in layers.shares(path)}
            if columns[server.label]:
                break
    names = sorted(columns["squall"], key=lambda layer: -columns["squall"][layer])
    total = sum(columns["squall"].values()) or 1
    print(f"\n{workload}, {threads} threads, by layer:\n\n| layer | squall us | share | floor us |\n| --- | --- | --- | --- |")
    for name in names:
        own = columns["squall"][name]
        floor = columns.get("floor", {}).get(name, 0)
        if own / total > 0.004 or floor / total > 0.004:
            print(f"| {name} | {own:.2f} | {own / total:.1%} | {floor:.2f} |")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squall", metavar="PORT:PID", help="a running one; without it one is built and started")
    parser.add_argument("--peer", required=True, metavar="PORT:PID")
    parser.add_argument("--floor", metavar="PORT:PID")
    parser.add_argument("--profile", default="release", help="cargo profile of the build")
    parser.add_argument("--layers", action="store_true", help="also profile Squall and the floor")
    parser.add_argument("--workloads", default=DEFAULT)
    parser.add_argument("--threads", default="8")
    parser.add_argument("--tables", type=int, default=4)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-prepare", action="store_true")
    options = parser.parse_args([argument for argument in os.sys.argv[1:] if argument != "--"])
    directory = tempfile.TemporaryDirectory(prefix="squall-bench-")
    processes = []
    if options.squall:
        own = [Server("squall", options.squall)]
        own += [Server("floor", options.floor)] if options.floor else []
    else:
        own, processes = start(directory.name, options)
    # The processor, its SMT mode, DSCR, governor and hypervisor: the figures mean little without them.
    subprocess.run(["cargo", "run", "--quiet", "-p", "squall-slap", "--", "--machine"], cwd=HERE.parent, check=True)
    before = processor_times()
    try:
        compare(own, Server("peer", options.peer), options, directory.name)
        stolen, ticks = (now - then for now, then in zip(processor_times(), before))
        print(f"\nStolen during the run: {100 * stolen / max(ticks, 1):.1f} % of the processors' time")
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def compare(own, peer, options, directory):
    servers = [peer, own[0]]
    if not options.no_prepare:
        for server in servers:
            prepare(server, options)
    servers += own[1:]
    print("| workload | threads | peer QPS | squall QPS | ratio | floor QPS | peer us | squall us | ratio | floor us |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for workload in options.workloads.split(","):
        for threads in options.threads.split(","):
            figures = {server.label: [] for server in servers}
            for turn in range(options.rounds):
                for server in servers if turn % 2 == 0 else reversed(servers):
                    if server.label == "floor" and not workload.startswith(CANNED):
                        continue
                    figures[server.label].append(measure(server, workload, threads, options))
            median = lambda label, field: statistics.median(x[field] for x in figures[label]) if figures.get(label) else float("nan")
            print(f"| {workload} | {threads} | {median('peer', 0):.0f} | {median('squall', 0):.0f} "
                  f"| {median('squall', 0) / median('peer', 0):.2f} | {median('floor', 0):.0f} | {median('peer', 1):.1f} | {median('squall', 1):.1f} "
                  f"| {median('squall', 1) / median('peer', 1):.2f} | {median('floor', 1):.1f} |", flush=True)

    if options.layers:
        for workload in options.workloads.split(","):
            profiled = own if workload.startswith(("select_1", "point_select")) else own[:1]
            print_layers(workload, options.threads.split(",")[0], profiled, options, directory)


main()
