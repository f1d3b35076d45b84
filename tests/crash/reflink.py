#!/usr/bin/env python3
"""A backup on a file system that lets files share blocks writes no pages, is whole, and is not changed by the server's later writes.

    tests/crash/reflink.py [--squalld target/debug/squalld]

It makes an XFS or Btrfs file system in a file and mounts it. Without the tools or the right to do that it says that it was left out.
"""

import argparse
import pathlib
import shutil
import subprocess
import tempfile
import threading

from kill_loop import Server, free_port

ROWS = 4000
FILE_BYTES = 1200 << 20


def client(port, *more):
    return ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-N", *more]


def query(port, sql):
    done = subprocess.run(client(port, "-e", sql), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{sql}\n{done.stderr}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def mounted(kind, folder):
    """The folder of a new file system, or nothing."""
    image, place = folder / f"{kind}.img", folder / kind
    if not shutil.which(f"mkfs.{kind}"):
        print(f"{kind}: left out, there is no mkfs.{kind}")
        return None
    with open(image, "wb") as file:
        file.truncate(FILE_BYTES)
    place.mkdir()
    for command in ([f"mkfs.{kind}", "-q", image], ["mount", "-o", "loop", image, place]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"{kind}: left out, {command[0]}: {done.stderr.strip()}")
            return None
    return place


def used_bytes(place):
    subprocess.run(["sync", "-f", place], check=True)
    return shutil.disk_usage(place).used


def check(program, place):
    own = place / "own"
    own.mkdir()
    server = Server(program, own, free_port(), ("--json-server-port=0",))
    try:
        query(server.port, "SET cte_max_recursion_depth = 100000; CREATE DATABASE b; CREATE TABLE b.t (i INT PRIMARY KEY, v LONGTEXT, n INT NOT NULL DEFAULT 0, KEY (n)); "
              f"INSERT INTO b.t (i, v) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) SELECT i, REPEAT(CHAR(65 + i % 26), 10000) FROM n; DO SLEEP(7)")
        before = used_bytes(place)
        stops = threading.Event()

        def change():
            at = 0
            while not stops.is_set():
                at += 1
                query(server.port, f"UPDATE b.t SET v = REPEAT('q', 9000), n = n + 1 WHERE i BETWEEN {at % ROWS} AND {at % ROWS + 5}")

        changer = threading.Thread(target=change)
        changer.start()
        query(server.port, f"BACKUP DATABASE TO '{place / 'backup'}'")
        stops.set()
        changer.join()
        pages = (place / "backup" / "space").stat().st_size
        added = used_bytes(place) - before
        log = sum(file.stat().st_size for file in (place / "backup").glob("wal-*"))
        print(f"  {pages >> 20} MiB of pages and {log >> 20} MiB of log in the backup, {added >> 20} MiB more used")
        if added > pages // 2 + 2 * log + (48 << 20):
            raise SystemExit("the pages were written")
        # What comes later is not in it.
        query(server.port, "UPDATE b.t SET v = 'later'; DO SLEEP(6)")
    finally:
        server.kill()
    restored = place / "restored"
    restored.mkdir()
    done = subprocess.run([program, f"--datadir={restored / 'data'}", f"--restore-from={place / 'backup'}"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    server = Server(program, restored, free_port(), ("--json-server-port=0",))
    try:
        found = query(server.port, "SELECT COUNT(*), MIN(LENGTH(v)) >= 9000 FROM b.t")[0]
        verdict = query(server.port, "CHECK TABLE b.t")[-1][3]
        if found != [str(ROWS), "1"] or verdict != "OK":
            raise SystemExit(f"{found}, {verdict}")
    finally:
        server.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="squall-reflink-"))
    try:
        for kind in ("xfs", "btrfs"):
            place = mounted(kind, folder)
            if place is None:
                continue
            try:
                check(str(pathlib.Path(options.squalld).resolve()), place)
            finally:
                subprocess.run(["umount", "-l", place], check=False)
            print(f"{kind}: ok")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
