#!/usr/bin/env python3
"""Data many times larger than the buffer pool.

    benches/larger_than_memory.py --squalld target/fast/squalld --dir DIR [--size-mb 10240] [--pool-mb 256] [--step load|sysbench|reads|transactions]

`load` fills sysbench's table (index on k) with --size-mb of rows through LOAD DATA. `sysbench` runs oltp_read_write over all rows, uniformly. `reads` compares the pages
that the server reads in a second under oltp_point_select and select_random_points (ten rows a statement) with the rate of fio on the same file, with pages of
the same size, past the page cache, with as many threads, in alternation. `transactions` updates --update-rows in one transaction that rolls back and once more in one that commits; a snapshot
taken before must see the old rows throughout. Concurrently, a reader and a writer of single rows record their longest wait. Without --step all run, one after the
other; with it the directory is kept for the next step. --column c changes 120 bytes of each row, k four bytes and an index entry.

Fails when a wait is longer than --stall-ms, when rows differ, when the server's memory exceeds the pool plus --beyond-mb, or when fewer than 80 % of the device's reads
are reached; --report turns the limits off. Needs `mariadb` or `mysql`, sysbench, fio, and PyMySQL.
"""

import argparse
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import pymysql

# Bytes of the file for each row, with the index entry.
ROW_BYTES = 302
PAGE_BYTES = 16384


class Server:
    def __init__(self, options):
        self.options, self.data = options, pathlib.Path(options.dir) / "data"
        self.process = None

    def start(self):
        log = open(pathlib.Path(self.options.dir) / "server.log", "ab")
        command = [self.options.squalld, f"--datadir={self.data}", f"--port={self.options.port}", "--insecure-root", "--local-infile=1",
                   f"--innodb-buffer-pool-size={self.options.pool_mb}M"]
        started = time.perf_counter()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        while time.perf_counter() - started < 600:
            try:
                return self.connect().close() or time.perf_counter() - started
            except pymysql.Error:
                assert self.process.poll() is None, "the server ended"
                time.sleep(0.1)
        raise RuntimeError("the server does not answer")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def connect(self, autocommit=True):
        return pymysql.connect(host="127.0.0.1", port=self.options.port, user="root", autocommit=autocommit)

    def statistic(self, name):
        sql = f"SELECT statistic_value FROM data_dictionary.engine_statistics WHERE engine = 'Squall' AND statistic_name = '{name}'"
        return int(query(self.connect(), sql)[0][0])

    def memory_mb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) >> 10


def query(connection, sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


class Result:
    """Printed figures and their limits."""

    def __init__(self, options):
        self.options, self.failures = options, []

    def say(self, text):
        print(text, flush=True)

    def check(self, holds, text):
        self.say(f"{'ok' if holds else 'MISSED'}: {text}")
        if not holds:
            self.failures.append(text)


def write_rows(path, first, rows):
    """Rows as LOAD DATA takes them."""
    numbers = random.Random(1)
    texts = ["".join(numbers.choices("0123456789", k=120)) for _ in range(997)]
    pads = ["".join(numbers.choices("0123456789", k=60)) for _ in range(991)]
    with open(path, "w", buffering=1 << 20) as out:
        for number in range(first, first + rows):
            out.write(f"{number}\t{number * 7919 % rows}\t{texts[number % 997]}\t{pads[number % 991]}\n")


def load(server, options, result):
    connection = server.connect()
    query(connection, "CREATE DATABASE sbtest")
    query(connection, "CREATE TABLE sbtest.sbtest1 (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL DEFAULT 0, "
          "c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', KEY k_1 (k)) CHARSET latin1")
    query(connection, "CREATE TABLE sbtest.beside (id INT PRIMARY KEY, a INT NOT NULL)")
    pipe = pathlib.Path(options.dir) / "rows"
    os.mkfifo(pipe)
    started = time.perf_counter()
    writer = threading.Thread(target=write_rows, args=(pipe, 1, options.rows))
    writer.start()
    client = [options.client, "--no-defaults", "-h127.0.0.1", f"-P{options.port}", "-uroot", "--local-infile=1", "-e",
              f"LOAD DATA LOCAL INFILE '{pipe}' INTO TABLE sbtest.sbtest1"]
    subprocess.run(client, check=True)
    writer.join()
    pipe.unlink()
    seconds = time.perf_counter() - started
    size_mb = (server.data / "storage/space").stat().st_size >> 20
    result.say(f"load: {options.rows} rows, {size_mb} MB of pages, {seconds:.0f} s, memory {server.memory_mb()} MB")


def sysbench(options, script, threads, seconds, *more):
    command = ["sysbench", script, "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={options.port}", "--mysql-user=root",
               "--mysql-db=sbtest", "--tables=1", f"--table-size={options.rows}", f"--threads={threads}", f"--time={seconds}",
               "--rand-type=uniform", *more, "run"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    number = lambda pattern: float(re.search(pattern, text)[1])
    return {"tps": number(r"transactions:.*\((\S+) per sec"), "qps": number(r"queries:.*\((\S+) per sec"), "max_ms": number(r"max:\s+(\S+)"),
            "p95_ms": number(r"95th percentile:\s+(\S+)")}


def run_sysbench(server, options, result):
    seen = sysbench(options, "oltp_read_write", options.threads, options.seconds)
    result.say(f"oltp_read_write: {seen['tps']:.0f} tps, p95 {seen['p95_ms']} ms, memory {server.memory_mb()} MB")
    names = ("page_read_max", "write_batch_max", "flush_max")
    longest = ", ".join(f"{name} {server.statistic(name + '_microseconds') / 1000:.0f} ms" for name in names)
    result.check(seen["max_ms"] <= options.stall_ms, f"longest transaction {seen['max_ms']:.0f} ms ({longest})")


def device_reads(server, options):
    command = ["fio", "--name=reads", f"--filename={server.data}/storage/space", "--rw=randread", f"--bs={PAGE_BYTES}", "--direct=1", "--ioengine=psync",
               "--thread", f"--numjobs={options.threads}", "--group_reporting", f"--runtime={options.read_seconds}", "--time_based", "--readonly",
               "--output-format=terse"]
    line = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip().splitlines()[-1]
    return float(line.split(";")[7])


def server_reads(server, options, script):
    before = server.statistic("pages_read_total")
    seen = sysbench(options, script, options.threads, options.read_seconds)
    return (server.statistic("pages_read_total") - before) / options.read_seconds, seen


def run_reads(server, options, result):
    shares = {"oltp_point_select": [], "select_random_points": []}
    for _ in range(options.rounds):
        device = device_reads(server, options)
        for script, of_script in shares.items():
            reads, seen = server_reads(server, options, script)
            of_script.append(reads / device)
            result.say(f"depth {options.threads}: device {device:.0f} reads/s, server {reads:.0f} reads/s for {seen['qps']:.0f} {script}/s, "
                       f"{100 * reads / device:.0f} %, longest {seen['max_ms']:.0f} ms")
    for script, of_script in shares.items():
        share = sorted(of_script)[len(of_script) // 2]
        result.check(share >= 0.8, f"{script}: median {100 * share:.0f} % of the device's reads")


class Concurrent:
    """A reader and a writer of single rows, and the longest that each waited."""

    def __init__(self, server, options):
        self.server, self.options, self.is_over, self.longest = server, options, False, [0.0, 0.0]
        self.counts = [0, 0]
        self.failures = []
        self.threads = [threading.Thread(target=self.run, args=(which,)) for which in (0, 1)]

    def run(self, which):
        numbers, connection = random.Random(which), self.server.connect()
        try:
            while not self.is_over:
                sql = (f"SELECT c FROM sbtest.sbtest1 WHERE id = {numbers.randint(1, self.options.rows)}",
                       f"REPLACE INTO sbtest.beside VALUES ({numbers.randint(1, 1000)}, 1)")[which]
                started = time.perf_counter()
                query(connection, sql)
                self.longest[which] = max(self.longest[which], time.perf_counter() - started)
                self.counts[which] += 1
        except pymysql.Error as error:
            self.failures.append(error)

    def __enter__(self):
        [thread.start() for thread in self.threads]
        return self

    def __exit__(self, *_):
        self.is_over = True
        [thread.join() for thread in self.threads]


def run_transactions(server, options, result):
    update = {"k": "k = k + 1", "c": "c = REVERSE(c)", "kc": "k = k + 1, c = REVERSE(c)"}[options.column]
    change = f"UPDATE sbtest.sbtest1 SET {update} WHERE id <= {options.update_rows}"
    look = f"SELECT COUNT(*), SUM(k), SUM(CRC32(c)) FROM sbtest.sbtest1 FORCE INDEX (PRIMARY) WHERE id <= {options.update_rows + 1000}"
    old, writer = server.connect(autocommit=False), server.connect(autocommit=False)
    query(old, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
    before = query(old, look)

    def step(name, body):
        started = time.perf_counter()
        body()
        result.say(f"{name}: {time.perf_counter() - started:.1f} s, memory {server.memory_mb()} MB")

    def looks_old():
        result.check(query(old, look) == before, "the old snapshot sees the old rows")

    with Concurrent(server, options) as concurrent:
        for end in (writer.rollback, writer.commit):
            step(f"update of {options.update_rows} rows", lambda: query(writer, change))
            step("look from before", looks_old)
            step(end.__name__, end)
            step("look from before", looks_old)
            if end == writer.rollback:
                result.check(query(server.connect(), look) == before, "after the rollback all is as before")
        old.rollback()
        after = query(server.connect(), look)[0]
        if "k" in options.column:
            result.check(after[1] == before[0][1] + options.update_rows, "the commit is whole")
    result.check(not concurrent.failures, f"{concurrent.counts[0]} reads and {concurrent.counts[1]} concurrent changes without an error {concurrent.failures}")
    for name, longest in zip(("read", "change"), concurrent.longest):
        result.check(longest * 1000 <= options.stall_ms, f"longest {name} of a single row concurrently {longest * 1000:.0f} ms")


STEPS = {"load": load, "sysbench": run_sysbench, "reads": run_reads, "transactions": run_transactions}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", required=True)
    parser.add_argument("--client", default="mariadb")
    parser.add_argument("--dir", required=True)
    parser.add_argument("--port", type=int, default=4200)
    parser.add_argument("--size-mb", type=int, default=10240)
    parser.add_argument("--pool-mb", type=int, default=256)
    parser.add_argument("--update-rows", type=int, default=5_000_000)
    parser.add_argument("--column", choices=["k", "c", "kc"], default="k")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--read-seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stall-ms", type=int, default=1000)
    parser.add_argument("--beyond-mb", type=int, default=192, help="memory of the server besides pages")
    parser.add_argument("--report", action="store_true", help="do not fail")
    parser.add_argument("--step", choices=list(STEPS), help="only this")
    options = parser.parse_args()
    options.rows = options.size_mb * (1 << 20) // ROW_BYTES
    options.update_rows = min(options.update_rows, options.rows // 2)
    pathlib.Path(options.dir).mkdir(parents=True, exist_ok=True)
    server, result = Server(options), Result(options)
    result.say(f"start: {server.start():.1f} s")
    try:
        for name in [options.step] if options.step else STEPS:
            STEPS[name](server, options, result)
        peak = server.memory_mb()
        result.check(peak <= options.pool_mb + options.beyond_mb, f"peak memory {peak} MB with a pool of {options.pool_mb} MB")
    finally:
        server.stop()
    if not options.step:
        shutil.rmtree(server.data)
    sys.exit(bool(result.failures) and not options.report)


if __name__ == "__main__":
    main()
