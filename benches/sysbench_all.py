#!/usr/bin/env python3
"""Every script that comes with sysbench: prepare, run and cleanup, at several thread counts, prepared statements and text.

    python3 benches/sysbench_all.py --port 3306 [--time 30] [--threads 1,8,64] [--modes auto,disable] [--scripts oltp_insert,...]

A check, not a measurement: it fails when a command fails, when a statement fails with anything but a deadlock (1213, which
sysbench is set to ignore and retry), when a run does nothing, or when cleanup leaves tables behind. The server must run with
root reachable on 127.0.0.1 without a password.
"""

import argparse
import pathlib
import re
import subprocess
import sys

SCRIPTS = pathlib.Path("/usr/share/sysbench")
SCHEMA = "sbcheck"
IGNORED = re.compile(r"ignored errors:\s+(\d+)")
RECONNECTS = re.compile(r"reconnects:\s+(\d+)")
TRANSACTIONS = re.compile(r"transactions:\s+(\d+)")
# bulk_insert counts rows as events and reports no transactions.
EVENTS = re.compile(r"total number of events:\s+(\d+)")


class Failure(Exception):
    pass


def bundled():
    names = [path.stem for path in SCRIPTS.glob("*.lua")]
    return sorted(name for name in names if name.startswith(("oltp_", "select_random_", "bulk_")) and name != "oltp_common")


def sysbench(options, script, mode, command, threads, *more):
    line = ["sysbench", script, "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={options.port}",
            "--mysql-user=root", f"--mysql-db={SCHEMA}", "--mysql-ssl=off", "--mysql-ignore-errors=1213",
            f"--db-ps-mode={mode}", f"--threads={threads}", *more, command]
    done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=options.time + 300)
    if done.returncode != 0 or "FATAL" in done.stdout or "ERROR" in done.stdout:
        tail = "\n    ".join(done.stdout.strip().splitlines()[-8:])
        raise Failure(f"{command} ends with {done.returncode}:\n    {tail}")
    return done.stdout


def query(options, text):
    client = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{options.port}", "-uroot", "-N", "-e", text]
    return subprocess.run(client, check=True, stdout=subprocess.PIPE, text=True).stdout.split()


def number(pattern, report):
    found = pattern.search(report)
    return int(found.group(1)) if found else 0


def run(options, script, mode, threads, tables):
    report = sysbench(options, script, mode, "run", threads, *tables, f"--time={options.time}", "--events=0",
                      "--rand-type=uniform")
    done = number(EVENTS, report) if script == "bulk_insert" else number(TRANSACTIONS, report)
    if done == 0:
        raise Failure("a run did nothing")
    if number(RECONNECTS, report):
        raise Failure("connections were lost")
    return done, number(IGNORED, report)


def check(options, script, mode):
    """All thread counts; bulk_insert, whose tables are one for each thread and keep their rows, is prepared for each."""
    counts = [int(threads) for threads in options.threads.split(",")]
    is_bulk = script == "bulk_insert"
    tables = [] if is_bulk else [f"--table-size={options.rows}"]
    if script.startswith("oltp_"):
        tables.append(f"--tables={options.tables}")
    for group in [[threads] for threads in counts] if is_bulk else [counts]:
        sysbench(options, script, mode, "prepare", group[0] if is_bulk else 1, *tables)
        for threads in group:
            done, ignored = run(options, script, mode, threads, tables)
            print(f"ok {script} {mode} threads={threads}: {done} done, {ignored} deadlocks", flush=True)
        sysbench(options, script, mode, "cleanup", group[0] if is_bulk else 1, *tables)
        left = query(options, f"SHOW TABLES FROM {SCHEMA}")
        if left:
            raise Failure(f"cleanup leaves {left}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--time", type=int, default=30)
    parser.add_argument("--threads", default="1,8,64")
    parser.add_argument("--modes", default="auto,disable")
    parser.add_argument("--scripts", default=",".join(bundled()))
    parser.add_argument("--tables", type=int, default=4)
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    failed = 0
    for script in options.scripts.split(","):
        for mode in options.modes.split(","):
            query(options, f"DROP DATABASE IF EXISTS {SCHEMA}; CREATE DATABASE {SCHEMA}")
            try:
                check(options, script, mode)
            except (Failure, subprocess.SubprocessError) as failure:
                failed += 1
                print(f"FAILED {script} {mode}: {failure}", flush=True)
    query(options, f"DROP DATABASE IF EXISTS {SCHEMA}")
    print(f"{failed} of the scripts and modes failed" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
