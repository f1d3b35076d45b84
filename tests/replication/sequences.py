#!/usr/bin/env python3
"""Sequences and replicas: a replica goes on behind the values that its source has given, and so do the replica's replica, a restored backup and a loaded dump.

    tests/replication/sequences.py [--squalld target/debug/squalld]
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import client, rows  # noqa: E402
from kill_loop import Server, free_port  # noqa: E402
from log_settings import expect  # noqa: E402

WAIT_SECONDS = 60


def follow(replica, port):
    rows(replica.port, f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1; START REPLICA")


def waits_for(server, sql, wanted, what):
    """Until the server answers so."""
    until = time.monotonic() + WAIT_SECONDS
    while True:
        done = subprocess.run(client(server.port, "-N", "-e", sql), capture_output=True, text=True)
        if done.stdout.strip() == wanted:
            return
        if time.monotonic() > until:
            state = rows(server.port, "SHOW REPLICA STATUS\\G")
            raise SystemExit(f"{what}: {done.stdout} {done.stderr} instead of {wanted}\n{state}")
        time.sleep(0.05)


def value(server, sql):
    return int(rows(server.port, sql)[0][0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sequences-"))
    servers = []
    try:
        for number in (1, 2, 3):
            own = folder / str(number)
            own.mkdir()
            servers.append(Server(options.squalld, own, free_port(), ["--log-bin", f"--server-id={number}"]))
        source, replica, last = servers
        rows(source.port, "CREATE DATABASE d; CREATE SEQUENCE d.s CACHE 10; CREATE SEQUENCE d.c MINVALUE 1 MAXVALUE 4 CYCLE CACHE 2")
        follow(replica, source.port)
        follow(last, replica.port)
        rows(source.port, "CREATE TABLE d.t (id BIGINT DEFAULT NEXTVAL(d.s) PRIMARY KEY, a INT); CREATE OR REPLACE SEQUENCE d.r START 7; CREATE OR REPLACE SEQUENCE d.r START 70")
        rows(source.port, "INSERT INTO d.t (a) VALUES (1), (2), (3); SELECT NEXTVAL(d.s); ALTER SEQUENCE d.s INCREMENT 5; INSERT INTO d.t (a) VALUES (4); SELECT SETVAL(d.s, 1000)")
        rows(source.port, "DO NEXTVAL(d.c), NEXTVAL(d.c), NEXTVAL(d.c), NEXTVAL(d.c), NEXTVAL(d.c); RENAME TABLE d.r TO d.r2; CREATE SEQUENCE d.gone; DROP SEQUENCE d.gone; INSERT INTO d.t VALUES (-1, 0)")
        for server, name in ((replica, "the replica"), (last, "the replica's replica")):
            waits_for(server, "SELECT COUNT(*) FROM d.t WHERE id = -1", "1", name)
            for table in ("d.s", "d.c", "d.r2", "d.t"):
                expect(f"{table} of {name}", rows(server.port, f"SELECT * FROM {table} ORDER BY 1"), rows(source.port, f"SELECT * FROM {table} ORDER BY 1"))
            expect(f"the definition of {name}", rows(server.port, "SHOW CREATE SEQUENCE d.s"), rows(source.port, "SHOW CREATE SEQUENCE d.s"))
            expect(f"a dropped sequence of {name}", rows(server.port, "SHOW FULL TABLES FROM d LIKE 'gone'"), [])
        given = value(source, "SELECT NEXTVAL(d.s)")
        behind = value(source, "SELECT next_not_cached_value FROM d.s")
        waits_for(last, "SELECT next_not_cached_value FROM d.s", str(behind), "the last reservation")
        rows(last.port, "STOP REPLICA")
        expect("the first value of a replica that became a source", value(last, "SELECT NEXTVAL(d.s)"), behind)
        expect("the next value of the source", value(source, "SELECT NEXTVAL(d.s)"), given + 5)
        identifiers = rows(replica.port, "SELECT @@gtid_executed")
        expect("transactions of source and replica", rows(source.port, "SELECT @@gtid_executed"), identifiers)
        # A backup.
        rows(source.port, f"BACKUP DATABASE TO '{folder}/backup'")
        behind = value(source, "SELECT next_not_cached_value FROM d.s")
        own = folder / "restored"
        own.mkdir()
        subprocess.run([options.squalld, f"--datadir={own}/data", f"--restore-from={folder}/backup"], check=True, capture_output=True)
        restored = Server(options.squalld, own, free_port())
        servers.append(restored)
        expect("the first value of a restored backup", value(restored, "SELECT NEXTVAL(d.s)"), behind)
        # Dumps: as a MariaDB is dumped, and as tables.
        as_tables = "CREATE DATABASE d; USE d; " + rows(source.port, "SHOW CREATE TABLE d.s")[0][1].replace("\\n", " ")
        row = ",".join(rows(source.port, "SELECT * FROM d.s")[0])
        as_tables += f"; LOCK TABLES s WRITE; INSERT INTO s VALUES ({row}); UNLOCK TABLES"
        options_of = rows(source.port, "SHOW CREATE SEQUENCE d.s")[0][1]
        as_mariadb = f"CREATE DATABASE d; USE d; {options_of}; DO SETVAL(`s`, {behind}, 0)"
        for text, name in ((as_mariadb, "a dump of a MariaDB"), (as_tables, "a dump of tables")):
            rows(restored.port, "DROP DATABASE d")
            loaded = subprocess.run(client(restored.port), input=text, capture_output=True, text=True)
            expect(f"loading {name}", loaded.stderr, "")
            expect(f"the definition in {name}", rows(restored.port, "SHOW CREATE SEQUENCE d.s"), rows(source.port, "SHOW CREATE SEQUENCE d.s"))
            expect(f"the first value after {name}", value(restored, "SELECT NEXTVAL(d.s)"), behind)
        print("sequences: replicas, a backup and dumps go on behind what was given")
    finally:
        for server in servers:
            server.process.kill()
            server.process.wait()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
