#!/usr/bin/env python3
"""Workloads against Squall and a peer, in alternation in one run.

    cargo xtask bench -- --squall PORT:PID --peer PORT:PID [--floor PORT:PID] [--workloads point_select,...]

For each workload and thread count it prints queries per second and server CPU microseconds per query of each server
(utime + stime from /proc), their medians over the rounds, and the ratios. `floor` is a server that answers every packet with
a canned reply on the same reactor (`cargo run --release -p mysql-protocol --example floor`): what a query costs when nothing is computed.
The load is sysbench; `select_1` is a script of our own. All servers get the same data, loaded in the same run.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import time

HERE = pathlib.Path(__file__).parent
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PROGRESS = re.compile(r"qps: ([\d.]+)")
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


def prepare(server, options):
    client = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{server.port}", "-uroot", "-e"]
    subprocess.run([*client, "DROP DATABASE IF EXISTS sbtest; CREATE DATABASE sbtest"], check=True)
    started = time.perf_counter()
    subprocess.run(server.sysbench("oltp_common", f"--tables={options.tables}", f"--table-size={options.rows}", "prepare"),
                   check=True, stdout=subprocess.DEVNULL)
    print(f"{server.label}: {options.tables} x {options.rows} rows loaded in {time.perf_counter() - started:.1f} s", flush=True)


def measure(server, workload, threads, options):
    """Queries per second and server CPU microseconds per query, the warm-up left out."""
    name, _, protocol = workload.partition(":")
    script = str(HERE / f"{name}.lua") if (HERE / f"{name}.lua").exists() else f"oltp_{name}"
    command = server.sysbench(script, f"--tables={options.tables}", f"--table-size={options.rows}", f"--threads={threads}",
                              f"--time={options.warmup + options.seconds}", "--report-interval=1",
                              f"--db-ps-mode={'disable' if protocol == 'text' else 'auto'}", "run")
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
        elif options.warmup < second <= options.warmup + options.seconds:
            queries.append(float(found.group(1)))
            cpu_after = server.cpu_seconds()
    process.wait()
    total = sum(queries)
    return (total / max(len(queries), 1), (cpu_after - cpu_before) / max(total, 1) * 1e6)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squall", required=True, metavar="PORT:PID")
    parser.add_argument("--peer", required=True, metavar="PORT:PID")
    parser.add_argument("--floor", metavar="PORT:PID")
    parser.add_argument("--workloads", default=DEFAULT)
    parser.add_argument("--threads", default="8")
    parser.add_argument("--tables", type=int, default=4)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-prepare", action="store_true")
    options = parser.parse_args([argument for argument in os.sys.argv[1:] if argument != "--"])
    squall, peer = Server("squall", options.squall), Server("peer", options.peer)
    servers = [peer, squall]
    if not options.no_prepare:
        for server in servers:
            prepare(server, options)
    if options.floor:
        servers.append(Server("floor", options.floor))
    print("| workload | threads | peer QPS | squall QPS | ratio | peer us | squall us | ratio | floor us |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for workload in options.workloads.split(","):
        for threads in options.threads.split(","):
            figures = {server.label: [] for server in servers}
            for turn in range(options.rounds):
                for server in servers if turn % 2 == 0 else reversed(servers):
                    if server.label == "floor" and not workload.startswith(("select_1", "point_select")):
                        continue
                    figures[server.label].append(measure(server, workload, threads, options))
            median = lambda label, field: statistics.median(x[field] for x in figures[label]) if figures.get(label) else float("nan")
            print(f"| {workload} | {threads} | {median('peer', 0):.0f} | {median('squall', 0):.0f} "
                  f"| {median('squall', 0) / median('peer', 0):.2f} | {median('peer', 1):.1f} | {median('squall', 1):.1f} "
                  f"| {median('squall', 1) / median('peer', 1):.2f} | {median('floor', 1):.1f} |", flush=True)


main()
