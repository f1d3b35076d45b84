#!/usr/bin/env python3
"""Squall follows MariaDB: all column types and forms of events, definitions, XA, by identifiers and by file, with kill -9 of the replica under load.

    tests/replication/mariadb.py [--squalld target/debug/squalld] [--rounds 2] [--seed 1]

It starts the MariaDB that it finds (mariadbd, mariadb-install-db). Without one it says that it is left out.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import rows  # noqa: E402
from kill_loop import Server, free_port  # noqa: E402

# What is read of each table: exactly what is stored. Documents are compared as values.
TYPES = """id INT UNSIGNED PRIMARY KEY, t1 TINYINT, t1u TINYINT UNSIGNED, t2 SMALLINT UNSIGNED, t3 MEDIUMINT, t3u MEDIUMINT UNSIGNED, t8 BIGINT, t8u BIGINT UNSIGNED,
  f FLOAT, d DOUBLE, n DECIMAL(30,10), b1 BIT(1), b2 BIT(64), c CHAR(20), cl CHAR(20) CHARACTER SET latin1, v VARCHAR(100), vl VARCHAR(300) CHARACTER SET latin1,
  vu VARCHAR(30) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin, bi BINARY(8), vb VARBINARY(300), tt TINYTEXT, t TEXT, lt LONGTEXT CHARACTER SET ucs2, bl MEDIUMBLOB, e ENUM('a','b','ü'),
  s SET('x','y','z'), y YEAR, da DATE, ti TIME, ti1 TIME(1), ti3 TIME(3), ti6 TIME(6), dt DATETIME, dt2 DATETIME(2), dt4 DATETIME(4), dt6 DATETIME(6), ts TIMESTAMP NULL, ts3 TIMESTAMP(3) NULL, ts6 TIMESTAMP(6) NULL,
  j JSON, g GEOMETRY, p POINT, INDEX (v)"""
TEXTS = {"c", "cl", "v", "vl", "vu", "tt", "t", "lt"}
BYTES = {"bi", "vb", "bl", "b1", "b2", "g", "p"}


STARTED = time.perf_counter()


class Mariadb:
    def __init__(self, folder, port, options):
        self.folder, self.port = folder, port
        user = ["--user=root"] if os.geteuid() == 0 else []
        subprocess.run(["mariadb-install-db", "--no-defaults", *user, f"--datadir={folder / 'data'}", "--auth-root-authentication-method=normal", "--skip-test-db"],
                       check=True, capture_output=True)
        self.process = subprocess.Popen(
            ["mariadbd", "--no-defaults", *user, f"--datadir={folder / 'data'}", f"--port={port}", "--bind-address=127.0.0.1", f"--socket={folder / 's'}",
             f"--log-error={folder / 'errors'}", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M", "--character-set-server=utf8mb4", *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(300):
            done = subprocess.run(["mariadb-admin", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "ping"], capture_output=True)
            if done.returncode == 0:
                return
            time.sleep(0.1)
        raise SystemExit("MariaDB did not start:\n" + (folder / "errors").read_text()[-3000:])

    def stop(self):
        self.process.terminate()
        self.process.wait()


def expect(what, found, wanted):
    if found != wanted:
        raise SystemExit(f"{what}: {found!r} instead of {wanted!r}")
    print(f"ok: {what} ({time.perf_counter() - STARTED:.1f} s)")


def status(replica):
    names = ["Last_Errno", "Last_Error", "Last_IO_Errno", "Last_IO_Error", "Replica_SQL_Running"]
    return rows(replica.port, f"SELECT {', '.join(names)} FROM data_dictionary.REPLICA_STATUS")[0]


def position(replica):
    return rows(replica.port, "SHOW STATUS LIKE 'Gtid_slave_pos'")[0][1]


def caught_up(source, replica):
    """Waits until the replica is where the source is."""
    wanted = rows(source.port, "SELECT @@gtid_binlog_pos")[0][0]
    for _ in range(300):
        if position(replica) == wanted:
            return wanted
        number, text = status(replica)[:2]
        if number != "0":
            raise SystemExit(f"the replica stopped: {number} {text}")
        time.sleep(0.05)
    raise SystemExit(f"the replica is at {position(replica)}, the source at {wanted}: {status(replica)}")


def stopped(replica):
    """Waits until the channel stopped by itself; its error."""
    for _ in range(300):
        found = status(replica)
        if found[4] == "No":
            return (found[0], found[1]) if found[0] != "0" else (found[2], found[3])
        time.sleep(0.05)
    raise SystemExit("the replica goes on")


def content(port, table):
    """Each row as texts that both servers write alike."""
    columns = [row[0] for row in rows(port, f"SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'd' AND TABLE_NAME = '{table}' ORDER BY ORDINAL_POSITION")]

    def expression(name):
        if name in TEXTS:
            return f"HEX(CONVERT({name} USING utf8mb4))"
        if name in BYTES:
            return f"HEX({name})"
        return f"HEX({name})" if name == "j" else name

    found = rows(port, f"SET time_zone = '+00:00'; SELECT {', '.join(map(expression, columns))} FROM d.{table}")
    if "j" in columns:
        at = columns.index("j")
        for row in found:
            if row[at] != "NULL":
                row[at] = json.dumps(json.loads(bytes.fromhex(row[at])), sort_keys=True)
    return columns, sorted(found)


def same(what, source, replica):
    caught_up(source, replica)
    tables = [sorted(row[0] for row in rows(server.port, "SHOW TABLES FROM d")) for server in (source, replica)]
    expect(f"{what}: tables", tables[1], tables[0])
    for table in tables[0]:
        of_source, of_replica = content(source.port, table), content(replica.port, table)
        if of_source != of_replica:
            for left, right in zip(of_source[1], of_replica[1]):
                for name, one, other in zip(of_source[0], left, right):
                    if one != other:
                        print(f"  {table}.{name}: {one} at the source, {other} at the replica")
            raise SystemExit(f"{what}: {table} differs, {len(of_source[1])} and {len(of_replica[1])} rows")
    print(f"ok: {what}: rows")


class Values:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def text(self, most, letters="abcXYZ éüß_ %"):
        return "'" + "".join(self.random.choice(letters) for _ in range(self.random.randint(0, most))) + "'"

    def moment(self, first, last, digits):
        n = self.random.randint
        fraction = f".{n(0, 10**digits - 1):0{digits}}" if digits else ""
        return f"'{n(first, last):04}-{n(1, 12):02}-{n(1, 28):02} {n(4, 23):02}:{n(0, 59):02}:{n(0, 59):02}{fraction}'"

    def time(self, digits):
        n = self.random.randint
        fraction = f".{n(0, 10**digits - 1):0{digits}}" if digits else ""
        return f"'{self.random.choice(['', '-'])}{n(0, 837)}:{n(0, 59):02}:{n(0, 59):02}{fraction}'"

    def row(self, number):
        n, u = self.random.randint, self.random.uniform
        bytes_of = lambda most: f"x'{self.random.randbytes(n(0, most)).hex()}'"  # noqa: E731
        values = [n(-128, 127), n(0, 255), n(0, 65535), n(-8388608, 8388607), n(0, 16777215), n(-2**63, 2**63 - 1), n(0, 2**64 - 1),
                  n(-1000, 1000) / 8, repr(u(-1e200, 1e200)), f"{u(-1e15, 1e15):.10f}", n(0, 1), n(0, 2**64 - 1), self.text(20), self.text(20, "abé ü"), self.text(60), self.text(200, "aéü ß"),
                  self.text(20), bytes_of(8), bytes_of(300), self.text(60), self.text(400), self.text(90, "aß日本"), bytes_of(700), n(1, 3),
                  n(0, 7), n(1901, 2155), f"'{n(1, 9999):04}-{n(1, 12):02}-{n(1, 28):02}'", self.time(0), self.time(1), self.time(3), self.time(6), self.moment(1000, 9999, 0), self.moment(1, 9999, 2),
                  self.moment(1000, 9999, 4), self.moment(1000, 9999, 6), self.moment(1971, 2037, 0), self.moment(1971, 2037, 3), self.moment(1971, 2037, 6),
                  "'" + json.dumps({"a": n(0, 9), "b": ["x" * n(0, 90), None, True, n(0, 9) / 4]}) + "'", f"POINT({n(-9, 9)},{n(-9, 9)})", f"POINT({n(-9, 9)},2.5)"]
        return f"({number}, " + ", ".join("NULL" if self.random.random() < 0.1 else str(value) for value in values) + ")"


def forms(source, replica, seed):
    """Every type in every form that events have."""
    values = Values(seed)
    setup = "SET time_zone = '+00:00', NAMES utf8mb4; "
    settings = ["SET GLOBAL mysql56_temporal_format = {old}", "SET GLOBAL log_bin_compress = {packed}", "SET GLOBAL log_bin_compress_min_len = 10"]
    number = 0
    rows(source.port, "CREATE DATABASE d")
    for old in ("ON", "OFF"):
        rows(source.port, settings[0].format(old=old))
        rows(source.port, f"CREATE TABLE d.types_{old} ({TYPES})")
        rows(source.port, f"CREATE TABLE d.keyless_{old} AS SELECT * FROM d.types_{old}")
        for metadata in ("NO_LOG", "MINIMAL", "FULL"):
            for image, packed in (("FULL", "OFF"), ("MINIMAL", "ON"), ("NOBLOB", "ON")):
                context = f"{setup}SET GLOBAL binlog_row_metadata = {metadata}, binlog_row_image = {image}; SET GLOBAL log_bin_compress = {packed}; {settings[2]};"
                rows(source.port, context)
                several = ", ".join(values.row(number + at) for at in range(4))
                table = f"d.types_{old}"
                rows(source.port, f"{setup}INSERT INTO {table} VALUES {several}; INSERT INTO d.keyless_{old} SELECT * FROM {table} WHERE id >= {number}; "
                                  f"UPDATE {table} SET c = 'changed', t = NULL, ti3 = '-00:00:00.5' WHERE id = {number}; DELETE FROM {table} WHERE id = {number + 1}; "
                                  f"UPDATE d.keyless_{old} SET v = 'changed', j = '[1, {number}]' WHERE id % 2 = 0; DELETE FROM d.keyless_{old} WHERE id = {number + 1}")
                number += 4
        same(f"mysql56_temporal_format = {old}", source, replica)
    rows(source.port, "SET GLOBAL mysql56_temporal_format = ON, binlog_row_metadata = NO_LOG, binlog_row_image = FULL; SET GLOBAL log_bin_compress = OFF")


def definitions(source, replica):
    rows(source.port, """
        CREATE TABLE d.a (id INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(20), c INT AS (LENGTH(b)) STORED, UNIQUE (b)) COMMENT 'from MariaDB';
        ALTER TABLE d.a ADD COLUMN e DATETIME DEFAULT CURRENT_TIMESTAMP, ADD INDEX (e);
        INSERT INTO d.a (b, e) VALUES ('one', NULL), ('two', '2020-01-01'), ('three', '2021-01-01');
        CREATE VIEW d.seen AS SELECT id, b FROM d.a WHERE id > 1;
        CREATE TABLE d.copied ENGINE=InnoDB AS SELECT id, b FROM d.a;
        CREATE TRIGGER d.told AFTER INSERT ON d.a FOR EACH ROW INSERT INTO d.copied VALUES (new.id, new.b);
        INSERT INTO d.a (b) VALUES ('four');
        CREATE PROCEDURE d.p(x INT) INSERT INTO d.copied VALUES (x, 'called');
        CALL d.p(77);
        TRUNCATE d.copied;
        DROP TABLE IF EXISTS d.copied, d.gone;
        CREATE TABLE d.parents (id INT PRIMARY KEY);
        CREATE TABLE d.children (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES d.parents (id) ON DELETE CASCADE);
        INSERT INTO d.parents VALUES (1), (2);
        INSERT INTO d.children VALUES (10, 1), (20, 2);
        DELETE FROM d.parents WHERE id = 1;
        RENAME TABLE d.parents TO d.elders;
        SET @was = @@sql_mode, sql_mode = 'ANSI_QUOTES,NO_AUTO_CREATE_USER,EMPTY_STRING_IS_NULL';
        CREATE TABLE d."quoted" (a INT DEFAULT 7);
        SET sql_mode = @was;
        DROP TRIGGER d.told;
    """)
    rows(source.port, "INSERT INTO d.quoted VALUES (1); BEGIN; INSERT INTO d.quoted VALUES (2); SAVEPOINT s; INSERT INTO d.quoted VALUES (3); ROLLBACK TO s; INSERT INTO d.quoted VALUES (4); COMMIT")
    for number, end in enumerate(("COMMIT", "ROLLBACK")):
        rows(source.port, f"XA START 'x{number}'; INSERT INTO d.quoted VALUES (1{number}); XA END 'x{number}'; XA PREPARE 'x{number}'; XA {end} 'x{number}'")
    same("definitions and XA", source, replica)
    expect("the procedure", rows(replica.port, "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'd'"), [["p"]])


def load(port, seed, own, stop):
    chance, number = random.Random(f"{seed} {own}"), 0
    while not stop.is_set():
        text = []
        for _ in range(20):
            number += 1
            key = chance.randrange(200)
            text.append(f"BEGIN; REPLACE INTO d.load{own} VALUES ({key}, {number}, '{'x' * chance.randrange(50)}'); UPDATE d.shared SET n = n + 1 WHERE id = {key % 5}; COMMIT;")
            text.append(f"UPDATE d.keyless SET n = n + 1 WHERE id = {key % 7};" if number % 9 == 0 else f"DELETE FROM d.load{own} WHERE id = {key + 1};")
        subprocess.run(["mariadb", "--no-defaults", "--force", "-h127.0.0.1", f"-P{port}", "-uroot"], input="\n".join(text), text=True, capture_output=True)
        time.sleep(0.1)


def kills(source, replica, options, restart):
    rows(source.port, "CREATE TABLE d.shared (id INT PRIMARY KEY, n INT); INSERT INTO d.shared VALUES (0,0),(1,0),(2,0),(3,0),(4,0); CREATE TABLE d.keyless (id INT, n INT); INSERT INTO d.keyless SELECT id, 0 FROM d.shared")
    rows(source.port, "".join(f"CREATE TABLE d.load{own} (id INT PRIMARY KEY, n INT, t TEXT);" for own in range(2)))
    stop, chance = threading.Event(), random.Random(options.seed)
    threads = [threading.Thread(target=load, args=(source.port, options.seed, own, stop)) for own in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(options.rounds):
            time.sleep(0.3 + chance.random())
            replica.kill()
            replica = restart()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    same(f"{options.rounds} times kill -9", source, replica)
    return replica


def by_file(source, replica):
    rows(replica.port, "STOP REPLICA")
    file, offset = rows(source.port, "SHOW MASTER STATUS")[0][:2]
    rows(replica.port, f"CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 0, SOURCE_LOG_FILE = '{file}', SOURCE_LOG_POS = {offset}")
    rows(source.port, "INSERT INTO d.quoted VALUES (20); FLUSH LOGS; INSERT INTO d.quoted VALUES (21)")
    rows(replica.port, "START REPLICA")
    same("by file and position", source, replica)
    known = caught_up(source, replica)
    rows(replica.port, "STOP REPLICA")
    rows(replica.port, f"CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1, GTID_SLAVE_POS = '{known}'")
    rows(source.port, "INSERT INTO d.quoted VALUES (22)")
    rows(replica.port, "START REPLICA")
    same("by identifiers again", source, replica)


def sequences(source, replica):
    """A sequence is repeated with its reserved values, and goes on behind them."""
    rows(source.port, "CREATE SEQUENCE d.numbers START 7 CACHE 100; SELECT NEXTVAL(d.numbers)")
    rows(source.port, "CREATE TABLE d.drawn (a BIGINT DEFAULT NEXTVAL(d.numbers), b INT); INSERT INTO d.drawn (b) VALUES (1), (2)")
    caught_up(source, replica)
    expect("drawn values", rows(replica.port, "SELECT * FROM d.drawn ORDER BY a"), rows(source.port, "SELECT * FROM d.drawn ORDER BY a"))
    row = "SELECT next_not_cached_value, start_value, cache_size FROM d.numbers"
    expect("the row of a sequence", rows(replica.port, row), rows(source.port, row))
    expect("the next value", rows(replica.port, "SELECT NEXTVAL(d.numbers)")[0][0], "107")
    rows(source.port, "DROP TABLE d.drawn; DROP SEQUENCE d.numbers")
    caught_up(source, replica)


def of_mariadb(source, replica):
    """Types that only MariaDB has, and tables that keep history with the times of their rows."""
    rows(source.port, "CREATE TABLE d.addresses (u UUID PRIMARY KEY DEFAULT uuid(), a INET6, b INET4); INSERT INTO d.addresses (a, b) VALUES ('::1', '10.0.0.1'), ('2001:db8::7', NULL); "
                      "INSERT INTO d.addresses VALUES ('123e4567-e89b-12d3-a456-426655440000', '::ffff:1.2.3.4', '255.255.255.255'); UPDATE d.addresses SET b = '10.0.0.2' WHERE a = '::1'")
    rows(source.port, "CREATE TABLE d.versioned (a INT PRIMARY KEY, b INT) WITH SYSTEM VERSIONING; INSERT INTO d.versioned VALUES (1, 1), (2, 2), (3, 3); UPDATE d.versioned SET b = b + 10 WHERE a < 3; "
                      "DELETE FROM d.versioned WHERE a = 1; REPLACE INTO d.versioned VALUES (3, 4)")
    same("types and history of MariaDB", source, replica)
    history = "SELECT a, b, row_start, row_end FROM d.versioned FOR SYSTEM_TIME ALL ORDER BY a, row_start, row_end"
    expect("the times of rows", rows(replica.port, history), rows(source.port, history))
    rows(source.port, "DELETE HISTORY FROM d.versioned; DROP TABLE d.addresses")
    caught_up(source, replica)
    expect("DELETE HISTORY", rows(replica.port, history), rows(source.port, history))
    rows(source.port, "DROP TABLE d.versioned")
    caught_up(source, replica)


def periods(source, replica):
    """Rows that are cut, and those that must not overlap."""
    rows(source.port, "CREATE TABLE d.rates (room INT, price INT, a DATE, b DATE, PERIOD FOR p (a, b), PRIMARY KEY (room, p WITHOUT OVERLAPS)); "
                      "CREATE TABLE d.both_times (room INT NOT NULL, a TIMESTAMP(3), b TIMESTAMP(3), PERIOD FOR p (a, b), UNIQUE (room, p WITHOUT OVERLAPS)) WITH SYSTEM VERSIONING; "
                      "INSERT INTO d.rates VALUES (1, 1, '2026-01-01', '2027-01-01'), (2, 1, '2026-01-01', '2026-06-01'), (2, 2, '2026-06-01', '2027-01-01'); "
                      "INSERT INTO d.both_times (room, a, b) SELECT room, a, b FROM d.rates")
    for table in ("rates", "both_times"):
        rows(source.port, f"UPDATE d.{table} FOR PORTION OF p FROM '2026-03-01' TO '2026-07-01' SET room = room + 10; "
                          f"DELETE FROM d.{table} FOR PORTION OF p FROM '2026-05-01' TO '2026-08-01'; "
                          f"UPDATE d.{table} SET a = a + INTERVAL 5 DAY, b = b + INTERVAL 5 DAY ORDER BY a DESC; DELETE FROM d.{table} WHERE room = 1; "
                          f"INSERT INTO d.{table} (room, a, b) VALUES (1, '2026-01-01', '2026-12-01')")
    same("periods", source, replica)
    history = "SELECT *, row_start, row_end FROM d.both_times FOR SYSTEM_TIME ALL ORDER BY room, row_start, row_end, a"
    expect("both kinds of time", rows(replica.port, history), rows(source.port, history))
    rows(source.port, "ALTER TABLE d.rates DROP PRIMARY KEY, DROP PERIOD FOR p; DROP TABLE d.both_times; ALTER TABLE d.rates ADD PERIOD FOR q (a, b), ADD UNIQUE (room, q WITHOUT OVERLAPS)")
    same("periods that are altered", source, replica)
    rows(source.port, "DROP TABLE d.rates")
    caught_up(source, replica)


def refused(source, replica):
    """What only MariaDB knows is named; it can be passed over."""
    rows(source.port, "CREATE TABLE d.by_key (a INT PRIMARY KEY) PARTITION BY KEY (a) PARTITIONS 3; CREATE TABLE d.by_hash (a INT PRIMARY KEY) PARTITION BY HASH (a) PARTITIONS 3; "
                      "INSERT INTO d.by_key VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9); INSERT INTO d.by_hash SELECT a FROM d.by_key; ALTER TABLE d.by_hash TRUNCATE PARTITION p1; "
                      "CREATE TABLE d.below (a INT) PARTITION BY RANGE (a) SUBPARTITION BY KEY (a) SUBPARTITIONS 2 (PARTITION p0 VALUES LESS THAN (5), PARTITION p1 VALUES LESS THAN (50)); "
                      "INSERT INTO d.below SELECT a FROM d.by_key; ALTER TABLE d.below TRUNCATE PARTITION p0; "
                      "CREATE TABLE d.outside (a INT PRIMARY KEY)")
    same("partitions by hash", source, replica)
    rows(source.port, "CREATE TABLE d.by_time (a INT) WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME (PARTITION p0 HISTORY, PARTITION pn CURRENT)")
    rows(source.port, "INSERT INTO d.by_time VALUES (1), (2), (3); UPDATE d.by_time SET a = 20 WHERE a = 2; DELETE FROM d.by_time WHERE a = 3")
    same("partitions by the times of rows", source, replica)
    for statement, named in [
        ("CREATE TABLE d.versioned (a INT) WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME INTERVAL 1 DAY AUTO", "AUTO"),
        ("ALTER TABLE d.by_key TRUNCATE PARTITION p1", "TRUNCATE PARTITION"),
        ("SET sql_mode = 'ANSI_QUOTES'; ALTER TABLE d.\"by_key\" EXCHANGE PARTITION p1 WITH TABLE d.outside", "EXCHANGE PARTITION"),
    ]:
        before = position(replica)
        rows(source.port, statement)
        number, text = stopped(replica)
        expect(f"{statement} is refused", (number, named in text), ("1235", True))
        expect("it is not passed over by itself", position(replica), before)
        rows(replica.port, "SET GLOBAL sql_replica_skip_counter = 1; START REPLICA")
        caught_up(source, replica)
    rows(source.port, "SET binlog_format = STATEMENT; INSERT INTO d.quoted VALUES (30)")
    number, text = stopped(replica)
    expect("a statement instead of rows is refused", (number, "binlog_format must be ROW" in text), ("1235", True))
    rows(replica.port, "SET GLOBAL sql_replica_skip_counter = 1; START REPLICA")
    caught_up(source, replica)
    rows(source.port, "SET sql_log_bin = 0; DELETE FROM d.quoted WHERE a = 30; DROP TABLE IF EXISTS d.versioned")
    # A channel that runs again takes what names no partition by key.
    rows(source.port, "ALTER TABLE d.by_key TRUNCATE PARTITION ALL; INSERT INTO d.by_key VALUES (1), (2), (3); DROP TABLE d.outside")
    # The replica goes on after the whole of it.
    rows(source.port, "INSERT INTO d.quoted VALUES (31)")
    same("after what was passed over", source, replica)
    rows(replica.port, "STOP REPLICA")
    rows(replica.port, "CHANGE REPLICATION SOURCE TO GTID_SLAVE_POS = '3-7-99999999'")
    rows(replica.port, "START REPLICA")
    expect("a position that the source has not", stopped(replica)[0], "1236")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    missing = [name for name in ("mariadbd", "mariadb-install-db") if shutil.which(name) is None]
    if missing:
        print(f"LEFT OUT: there is no MariaDB ({', '.join(missing)}): nothing of following MariaDB was tested")
        return
    print(f"seed {options.seed}")
    top = pathlib.Path(tempfile.mkdtemp())
    (top / "source").mkdir()
    (top / "replica").mkdir()
    source = Mariadb(top / "source", free_port(), ["--log-bin=log", "--binlog-format=ROW", "--server-id=7", "--gtid-domain-id=3"])
    port = free_port()

    def restart():
        return Server(options.squalld, top / "replica", port, ["--log-bin", "--server-id=2"])

    replica = None
    try:
        replica = restart()
        rows(source.port, "SET sql_log_bin = 0; CREATE USER follower@'127.0.0.1' IDENTIFIED BY 'pass word'; GRANT REPLICATION SLAVE ON *.* TO follower@'127.0.0.1'")
        rows(replica.port, f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {source.port}, SOURCE_USER = 'follower', SOURCE_PASSWORD = 'pass word', "
                           "SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1")
        rows(replica.port, "START REPLICA")
        forms(source, replica, options.seed)
        definitions(source, replica)
        replica = kills(source, replica, options, restart)
        by_file(source, replica)
        own = rows(replica.port, "SELECT @@server_uuid, @@gtid_executed")[0]
        expect("its transactions have identifiers of this server", own[1].startswith(own[0] + ":1-"), True)
        sequences(source, replica)
        of_mariadb(source, replica)
        periods(source, replica)
        refused(source, replica)
    finally:
        source.stop()
        if replica is not None:
            replica.process.terminate()
            replica.process.wait()
    shutil.rmtree(top)


if __name__ == "__main__":
    main()
