#!/usr/bin/env python3
"""kill -9 while sessions draw from sequences: no value is ever given twice, whatever the cache, and the server opens each time.

    tests/crash/sequences.py [--rounds 5] [--squalld target/debug/squalld] [--seed 1]

Clients outside the server draw values, some of them in transactions that they roll back, and write down each value that they were told. Then the server is
killed. Values must differ over all clients and all kills, and those of one client and one sequence must rise between two kills.
"""

import argparse
import pathlib
import random
import shutil
import subprocess
import tempfile
import time

from kill_loop import Server, free_port

CACHES = [0, 1, 7, 1000]
CLIENTS = 4
# What each client sends at a time.
AT_ONCE = 200


def client(port, *more):
    return ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-N", "--unbuffered", *more]


def run(port, sql):
    subprocess.run(client(port, "-e", sql), check=True, capture_output=True, text=True)


def statements(rng):
    """Each answers with the number of the sequence and a value."""
    lines = []
    for _ in range(AT_ONCE):
        cache = rng.choice(CACHES)
        draw = f"SELECT {cache}, NEXTVAL(crash.s{cache});\n"
        lines.append(f"BEGIN;\n{draw}ROLLBACK;\n" if rng.random() < 0.2 else draw)
    return "".join(lines)


def values(file):
    found = []
    for line in file.read_text().splitlines(keepends=True):
        # The last line may be cut short.
        if line.endswith("\n") and line.count("\t") == 1:
            cache, value = line.split()
            found.append((int(cache), int(value)))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sequences-"))
    port = free_port()
    server = Server(options.squalld, folder, port)
    run(port, "CREATE DATABASE crash;" + "".join(f"CREATE SEQUENCE crash.s{cache} CACHE {cache};" for cache in CACHES))
    given = {cache: set() for cache in CACHES}
    for turn in range(options.rounds):
        files = [folder / f"values-{turn}-{number}" for number in range(CLIENTS)]
        clients = []
        for file in files:
            with open(file, "wb") as out:
                process = subprocess.Popen(client(port), stdin=subprocess.PIPE, stdout=out, stderr=subprocess.DEVNULL)
            clients.append(process)
        until = time.monotonic() + rng.uniform(0.5, 2)
        while time.monotonic() < until:
            for process in clients:
                process.stdin.write(statements(rng).encode())
                process.stdin.flush()
        server.kill()
        for process in clients:
            process.kill()
            process.wait()
        server = Server(options.squalld, folder, port)
        for file in files:
            last = dict.fromkeys(CACHES, 0)
            for cache, value in values(file):
                if value in given[cache]:
                    raise SystemExit(f"round {turn}: {value} of s{cache} was given twice; kept in {folder}")
                if value <= last[cache]:
                    raise SystemExit(f"round {turn}: {value} of s{cache} after {last[cache]}; kept in {folder}")
                given[cache].add(value)
                last[cache] = value
    server.process.terminate()
    server.process.wait()
    shutil.rmtree(folder)
    counts = ", ".join(f"{len(given[cache])} of cache {cache} up to {max(given[cache], default=0)}" for cache in CACHES)
    print(f"{options.rounds} kills, values: {counts}; none twice")


if __name__ == "__main__":
    main()
