#!/usr/bin/env python3
"""kill -9 under load, in a loop: no acknowledged commit may be lost, and the server opens each time.

    tests/crash/kill_loop.py [--rounds 100] [--squalld target/release/squalld] [--slap target/release/squall-slap]

squall-slap, outside the server, writes down the id of each row whose INSERT was acknowledged. After each kill the server is
started again on the same folder and every id written down so far must be there.
"""

import argparse
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

TABLES = 2


def free_port():
    """A port that nobody listens on, below those that the kernel gives to outgoing connections: tests that run beside this one cannot take it
    between this look and the server's start, or while the server is down."""
    first_ephemeral = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(10_000, first_ephemeral)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("", port))
            except OSError:
                continue
            return port


class Server:
    def __init__(self, program, folder, port, extra=()):
        self.folder, self.port, self.extra = folder, port, extra
        started = time.perf_counter()
        log = open(folder / "log", "ab")
        before = log.tell()
        self.process = subprocess.Popen(
            [program, f"--datadir={folder / 'data'}", f"--port={port}", f"--socket={folder / 's'}", "--insecure-root", *extra],
            stdout=log, stderr=log)
        # It accepts connections while it recovers, and answers nothing.
        while b"ready for connections" not in (folder / "log").read_bytes()[before:]:
            if self.process.poll() is not None or time.perf_counter() - started > 120:
                raise SystemExit("the server did not open:\n" + (folder / "log").read_text()[-4000:])
            time.sleep(0.01)
        self.seconds = time.perf_counter() - started

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


def ids(port, table):
    command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-N", "crash", "-e", f"SELECT id FROM sbtest{table}"]
    return set(map(int, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()))


def acknowledged(file):
    known = {table: set() for table in range(1, TABLES + 1)}
    # The last line may be cut short by the end of the load generator.
    for line in file.read_text().splitlines():
        fields = line.split()
        if len(fields) == 2:
            known[int(fields[0])].add(int(fields[1]))
    return known


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--squalld", default="target/release/squalld")
    parser.add_argument("--slap", default="target/release/squall-slap")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chance = random.Random(options.seed)
    folder, port = pathlib.Path(tempfile.mkdtemp()), free_port()
    written = folder / "acknowledged"
    written.touch()
    load = [options.slap, f"--port={port}", "--create-schema=crash", f"--tables={TABLES}", "--table-size=100", "--concurrency=8",
            "--workload=insert", "--timer-length=60", f"--acknowledged={written}", "--silent"]
    server = Server(options.squalld, folder, port)
    subprocess.run([*load[:-5], "--workload=select1", "--timer-length=1", "--prepare", "--silent"], check=True)
    slowest = 0.0
    for turn in range(1, options.rounds + 1):
        slap = subprocess.Popen([*load, f"--set-random-seed={turn}"], stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.05, 0.6))
        server.kill()
        slap.wait()
        server = Server(options.squalld, folder, port)
        slowest = max(slowest, server.seconds)
        for table, known in acknowledged(written).items():
            missing = known - ids(port, table)
            if missing:
                raise SystemExit(f"round {turn}: table {table} lost {len(missing)} acknowledged rows, first {min(missing)}; kept in {folder}")
        if turn % 10 == 0:
            total = sum(map(len, acknowledged(written).values()))
            print(f"{turn} kills, {total} acknowledged rows all there, slowest start {slowest:.2f} s", flush=True)
    server.process.terminate()
    server.process.wait()
    shutil.rmtree(folder)
    print(f"{options.rounds} passed, 0 failed")


if __name__ == "__main__":
    main()
