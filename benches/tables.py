#!/usr/bin/env python3
"""Many tables, and the memory of an idle server: figures and whether they meet their limits.

    benches/tables.py --squalld target/fast/squalld --directory /tmp/tables [--tables 50000]

Prints the resident size of an idle server, the time to create the tables and to restart with them, SHOW TABLES, memory for each
closed table (without the pages of the buffer pool, whose number does not depend on their contents), the first point
select on a table, and one on a random table that was used before against one that is hot. Needs PyMySQL. Ends with status 1 when a limit is missed.
"""

import argparse
import random
import shutil
import subprocess
import sys
import threading
import time

import pymysql

TOUCHED = 2000
ROUNDS = 3
CREATORS = 4


class Server:
    """One run of squalld."""

    def __init__(self, options):
        begun = time.time()
        self.port = options.port
        log = open(options.directory + ".log", "a")
        command = [options.squalld, f"--datadir={options.directory}", f"--port={options.port}"]
        self.process = subprocess.Popen(command + ["--insecure-root"], stdout=log, stderr=log)
        while True:
            try:
                self.connection = pymysql.connect(host="127.0.0.1", port=options.port, user="root")
                self.cursor = self.connection.cursor()
                self.cursor.execute("SELECT 1 FROM information_schema.schemata LIMIT 1")
                break
            except pymysql.Error:
                if self.process.poll() is not None:
                    sys.exit("squalld ended: see " + options.directory + ".log")
                time.sleep(0.01)
        self.start_seconds = time.time() - begun

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            line = next(line for line in status if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024

    def private_bytes(self):
        """Memory of the process without pages."""
        self.cursor.execute("SELECT bytes FROM data_dictionary.memory_by_owner WHERE owner = 'pages'")
        return self.resident_bytes() - sum(row[0] for row in self.cursor.fetchall())

    def timed(self, *statements):
        begun = time.perf_counter()
        for statement in statements:
            self.cursor.execute(statement)
            self.cursor.fetchall()
        return time.perf_counter() - begun

    def create(self, schema, statements):
        """Runs statements on a few connections at a time and says how long that took."""

        def run(mine):
            connection = pymysql.connect(host="127.0.0.1", port=self.port, user="root", database=schema)
            with connection.cursor() as cursor:
                for statement in mine:
                    cursor.execute(statement)
            connection.close()

        parts = [statements[at::CREATORS] for at in range(CREATORS)]
        threads = [threading.Thread(target=run, args=(part,)) for part in parts]
        begun = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - begun

    def stop(self):
        self.connection.close()
        self.process.terminate()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--squalld", default="target/fast/squalld")
    parser.add_argument("--directory", required=True)
    parser.add_argument("--port", type=int, default=4399)
    parser.add_argument("--tables", type=int, default=10_000)
    options = parser.parse_args()
    count, missed = options.tables, []

    def report(name, value, limit, unit):
        met = value <= limit
        print(f"{name}: {value:.2f} {unit}, limit {limit:.2f}: {'met' if met else 'MISSED'}", flush=True)
        if not met:
            missed.append(name)

    shutil.rmtree(options.directory, ignore_errors=True)
    server = Server(options)
    time.sleep(1)
    idle = server.private_bytes()
    report("idle server", server.resident_bytes() / 2**20, 60, "MiB")
    server.timed("CREATE DATABASE many")
    create = "CREATE TABLE t{} (id INT PRIMARY KEY, a INT, b VARCHAR(40), KEY (a))"
    seconds = server.create("many", [create.format(at) for at in range(count)])
    server.timed("USE many")
    report(f"create {count} tables", seconds, 60 * count / 50_000, "s")
    touched = list(range(0, count, max(1, count // TOUCHED)))
    server.timed(*(f"INSERT INTO t{at} VALUES (1, 1, 'x')" for at in touched))
    server.stop()

    server = Server(options)
    report("restart", server.start_seconds, 5, "s")
    time.sleep(1)
    report("memory of a closed table", (server.private_bytes() - idle) / count / 1000, 2, "kB")
    server.timed("USE many")
    report("SHOW TABLES", server.timed("SHOW TABLES"), 0.5, "s")
    chooser = random.Random(1)
    select = "SELECT b FROM t{} WHERE id = 1"
    hot = [select.format(touched[1])] * 3000
    first = server.timed(*(select.format(at) for at in touched)) / len(touched)
    print(f"first select on a table after the start: {first * 1e6:.0f} us", flush=True)
    ratios = []
    for _ in range(ROUNDS):
        cold = [select.format(chooser.choice(touched)) for _ in hot]
        hot_seconds = server.timed(*hot)
        ratios.append(server.timed(*cold) / hot_seconds)
    report("random table against a hot one", sorted(ratios)[ROUNDS // 2], 1.3, "times")
    server.stop()
    shutil.rmtree(options.directory)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
