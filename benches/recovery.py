#!/usr/bin/env python3
"""Recovery after kill -9, per gigabyte of log, of Squall and of a peer in one run.

    benches/recovery.py --squalld target/release/squalld --peer mariadbd --dir DIR [--log-mb 1024] [--rows 1000000] [--step load|recover]

`--step load` ends with the kill and keeps the directories, `--step recover` continues from there: the load is long and may share the machine,
the measured recovery may not. Each server gets its own data directory under DIR and a pool of --pool-mb. Rows have a payload of 32 to 200 bytes; transactions of 1,000
rows give each row another payload of its length, until the log after the last checkpoint has --log-mb; checkpoints are delayed
(`recovery_time_target_sec`, a large log file). Then kill -9, start, and the time until a query on the table is answered. Printed: seconds,
seconds and megabytes a second per gigabyte, peak resident memory, and for Squall the values of `data_dictionary.recovery_progress` on the
socket during recovery. Files are dropped from the page cache before the start. The data directories are removed at the end. Needs the `mariadb` or `mysql` client,
and PyMySQL: polling for the server's start must not take processor time from it.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pymysql

MB = 1 << 20


class Server:
    def __init__(self, options, name, port):
        self.options, self.name, self.port = options, name, port
        self.dir = pathlib.Path(options.dir) / name
        self.known = pathlib.Path(options.dir) / f"{name}.json"
        self.process = None

    def start(self):
        log = open(self.dir.parent / f"{self.name}.log", "ab")
        self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def query(self, sql, check=True):
        client = [self.options.client, "--no-defaults", "-h127.0.0.1", f"-P{self.port}", "-uroot", "-N", "-B", "-e", sql]
        done = subprocess.run(client, capture_output=True, text=True)
        if check and done.returncode:
            raise RuntimeError(f"{self.name}: {sql[:80]}: {done.stderr}")
        return done.stdout if done.returncode == 0 else None

    def ask(self, sql):
        """Rows, or None while the server does not answer. Without TLS: preparing it takes the client longer than 20 ms of a processor."""
        try:
            connection = pymysql.connect(host="127.0.0.1", port=self.port, user="root", connect_timeout=5, ssl_disabled=True)
        except (pymysql.Error, OSError):
            return None
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetchall()
        except pymysql.Error:
            return None
        finally:
            connection.close()

    def wait(self, sql, seconds=900):
        """Seconds until `sql` is answered."""
        started = time.perf_counter()
        while self.query(sql, check=False) is None:
            if self.process.poll() is not None or time.perf_counter() - started > seconds:
                raise RuntimeError(f"{self.name} does not answer")
            time.sleep(0.02)
        return time.perf_counter() - started

    def peak_mb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) >> 10

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Squall(Server):
    def command(self):
        return [self.options.squalld, f"--datadir={self.dir}", f"--port={self.port}", "--insecure-root",
                f"--innodb-buffer-pool-size={self.options.pool_mb}M", "--recovery-time-target-sec=86400"]

    def init(self):
        pass

    def log_bytes(self):
        sql = "SELECT statistic_value FROM data_dictionary.engine_statistics WHERE statistic_name = 'kept_bytes'"
        return int(self.query(sql).split()[0])

    def progress(self):
        rows = self.ask("SELECT PHASE, PERCENT, PAGES_DONE, PAGES_TOTAL, ETA_SEC FROM data_dictionary.recovery_progress")
        return " ".join(map(str, rows[0])) if rows else None


class Peer(Server):
    def command(self):
        return [self.options.peer, "--no-defaults", "--user=root", f"--datadir={self.dir}", "--bind-address=127.0.0.1",
                f"--port={self.port}", f"--socket={self.dir}/s.sock", f"--pid-file={self.dir}/pid",
                f"--innodb-buffer-pool-size={self.options.pool_mb}M", "--innodb-flush-method=O_DIRECT",
                "--innodb-flush-log-at-trx-commit=1", "--skip-log-bin", "--performance-schema=OFF",
                f"--innodb-log-file-size={self.options.log_mb * 3 // 2 + 256}M", "--innodb-max-dirty-pages-pct=99"]

    def init(self):
        subprocess.run(["mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={self.dir}",
                        "--auth-root-authentication-method=normal", "--skip-test-db"], check=True, capture_output=True)

    def log_bytes(self):
        return int(self.query("SHOW GLOBAL STATUS LIKE 'Innodb_checkpoint_age'").split()[1])

    def progress(self):
        return None


def load(server, rows):
    server.query("CREATE DATABASE bench; CREATE TABLE bench.t (id INT PRIMARY KEY, c VARBINARY(200) NOT NULL)")
    server.query("INSERT INTO bench.t VALUES (0, REPEAT('a', 32))")
    have = 1
    while have < rows:
        step = min(have, rows - have, 50_000)
        server.query(f"INSERT INTO bench.t SELECT id + {have}, REPEAT('a', 32 + (id + {have}) % 169) FROM bench.t WHERE id < {step}")
        have += step


def grow_log(server, rows, log_mb):
    number = 0
    while server.log_bytes() < log_mb * MB:
        statements = []
        for _ in range(200):
            number += 1
            first = number * 7919 * 1000 % rows
            statements.append(f"UPDATE bench.t SET c = REPEAT(CHAR(97 + {number} % 26), 32 + id % 169) "
                              f"WHERE id >= {first} AND id < {first + 1000}")
        server.query("; ".join(statements))


CHECK = "SELECT COUNT(*), MIN(c), MAX(c), SUM(LENGTH(c)), SUM(CRC32(c)) FROM bench.t"


def prepare(server, options):
    """Leaves a data directory as after a crash, and the rows that must be found in it."""
    server.dir.mkdir(parents=True)
    server.init()
    server.start()
    server.wait("SELECT 1")
    load(server, options.rows)
    grow_log(server, options.rows, options.log_mb)
    known = {"log_bytes": server.log_bytes(), "expected": server.query(CHECK)}
    server.kill()
    server.known.write_text(json.dumps(known))
    print(f"{server.name}: {known['log_bytes'] / MB:.0f} MB of log", flush=True)


def forget_pages(folder):
    """Both servers read from the device, whatever their load left in the page cache."""
    for file in folder.rglob("*"):
        if file.is_file():
            handle = os.open(file, os.O_RDONLY)
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)


def measure(server, options):
    known = json.loads(server.known.read_text())
    log_bytes, expected = known["log_bytes"], known["expected"]
    forget_pages(server.dir)
    started = time.perf_counter()
    server.start()
    seen = []
    while server.ask("SELECT c FROM bench.t WHERE id = 7") is None:
        # Not at each poll: the test waits for the row.
        if time.perf_counter() - started > 0.25 * (len(seen) + 1):
            seen.append(server.progress())
        if server.process.poll() is not None:
            raise RuntimeError(f"{server.name} ended")
        time.sleep(0.02)
    seconds = time.perf_counter() - started
    cpu, peak = server.cpu_seconds(), server.peak_mb()
    assert server.query(CHECK) == expected, "rows differ"
    gigabytes = log_bytes / (1 << 30)
    print(f"{server.name}: {gigabytes:.2f} GB of log, {seconds:.2f} s, {seconds / gigabytes:.2f} s/GB, "
          f"{log_bytes / MB / seconds:.0f} MB/s, {cpu:.2f} s CPU, peak {peak} MB", flush=True)
    for line in filter(None, seen):
        print("   ", line)
    server.kill()
    server.known.unlink()
    shutil.rmtree(server.dir)
    return seconds / gigabytes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", required=True)
    parser.add_argument("--peer", help="mariadbd; left out: Squall alone")
    parser.add_argument("--client", default="mariadb")
    parser.add_argument("--dir", required=True)
    parser.add_argument("--port", type=int, default=4200)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--log-mb", type=int, default=1024)
    parser.add_argument("--pool-mb", type=int, default=1024)
    parser.add_argument("--step", choices=["load", "recover"], help="only this")
    options = parser.parse_args()
    servers = [Squall(options, "squall", options.port)]
    if options.peer:
        servers.append(Peer(options, "peer", options.port + 1))
    if options.step != "recover":
        for server in servers:
            prepare(server, options)
    if options.step != "load":
        squall, *peer = [measure(server, options) for server in servers]
        if peer:
            print(f"per gigabyte, peer to Squall: {peer[0] / squall:.1f}")


if __name__ == "__main__":
    main()
