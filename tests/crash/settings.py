#!/usr/bin/env python3
"""kill -9 under SET PERSIST of several variables, in a loop: all of a statement's values are kept, or none.

    tests/crash/settings.py [--rounds 100] [--squalld target/release/squalld] [--seed 1]

A connection gives four variables the next number, one statement after the other. After a kill the server is started again on the same folder: then the four have one number,
which is no smaller than the last that was acknowledged and no larger than the last that was sent.
"""

import argparse
import pathlib
import random
import shutil
import subprocess
import tempfile
import threading
import time

from kill_loop import Server, free_port

VARIABLES = ["eq_range_index_dive_limit", "cte_max_recursion_depth", "net_retry_count", "lock_wait_timeout"]


def client(port, *more):
    return ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-N", *more]


def query(port, sql):
    done = subprocess.run(client(port, "-e", sql), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{sql}\n{done.stderr}")
    return [line.split("\t") for line in done.stdout.splitlines()]


class Setter:
    """Sends statements until the server is gone; knows the last number that was sent, and the last that was acknowledged."""

    def __init__(self, port, number):
        self.sent = self.acknowledged = number
        self.client = subprocess.Popen(client(port, "--unbuffered"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            while True:
                number = self.sent + 1
                self.sent = number
                values = ", ".join(f"{name} = {number}" for name in VARIABLES)
                self.client.stdin.write(f"SET PERSIST {values};\nSELECT {number};\n")
                self.client.stdin.flush()
                line = self.client.stdout.readline()
                if not line:
                    return
                self.acknowledged = int(line)
        except (BrokenPipeError, ValueError):
            pass

    def join(self):
        self.thread.join()
        self.client.kill()
        self.client.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--squalld", default="target/release/squalld")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chance = random.Random(options.seed)
    folder, port = pathlib.Path(tempfile.mkdtemp()), free_port()
    server = Server(options.squalld, folder, port)
    query(port, "SET PERSIST " + ", ".join(f"{name} = 1" for name in VARIABLES))
    number = 1
    started = time.perf_counter()
    for round_number in range(1, options.rounds + 1):
        setter = Setter(port, number)
        time.sleep(chance.uniform(0.02, 0.3))
        server.kill()
        setter.join()
        server = Server(options.squalld, folder, port)
        names = ", ".join(f"'{name}'" for name in VARIABLES)
        kept = query(port, f"SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.persisted_variables WHERE VARIABLE_NAME IN ({names})")
        used = query(port, "SELECT " + ", ".join(f"@@GLOBAL.{name}" for name in VARIABLES))[0]
        values = {int(value) for _, value in kept} | {int(value) for value in used}
        if len(kept) != len(VARIABLES) or len(values) != 1:
            raise SystemExit(f"round {round_number}: half a statement is kept: {kept}, in use: {used}")
        found = values.pop()
        if not setter.acknowledged <= found <= setter.sent:
            raise SystemExit(f"round {round_number}: {found} is kept, {setter.acknowledged} was acknowledged and {setter.sent} sent")
        number = found
    server.kill()
    shutil.rmtree(folder)
    print(f"{options.rounds} kills, {number - 1} statements, all or none of each, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
