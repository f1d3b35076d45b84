#!/usr/bin/env python3
"""What settings do to the log, and what a replica makes of it: no checksums, compressed transactions, the server where a transaction began, waiting for
transactions, gtid_purged.

    tests/replication/log_settings.py [--squalld target/debug/squalld]
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import client, decode, rows  # noqa: E402
from kill_loop import Server, free_port  # noqa: E402


def expect(what, found, wanted):
    if found != wanted:
        raise SystemExit(f"{what}: {found!r} instead of {wanted!r}")


def fails(port, sql, number):
    done = subprocess.run(client(port, "-e", sql), capture_output=True, text=True)
    if f"ERROR {number} " not in done.stderr:
        raise SystemExit(f"{sql}: {done.stderr or done.stdout!r} instead of error {number}")


def start(squalld, top, name, *extra):
    folder = top / name
    folder.mkdir()
    return Server(squalld, folder, free_port(), list(extra))


def follow(source, replica):
    rows(replica.port, f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {source.port}, SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, "
                       "SOURCE_CONNECT_RETRY = 1; START REPLICA")


def same(source, replicas):
    executed = rows(source.port, "SELECT @@gtid_executed")[0][0]
    everything = rows(source.port, "SELECT * FROM logged.t ORDER BY id")
    for replica in replicas:
        expect("wait", rows(replica.port, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 20)"), [["0"]])
        expect("rows", rows(replica.port, "SELECT * FROM logged.t ORDER BY id"), everything)
    return executed


def events(server, log):
    return [(event[2], event[3]) for event in rows(server.port, f"SHOW BINLOG EVENTS IN '{log}'")]


def texts(source):
    """The texts of statements that change rows are theirs, and definitions are logged beside them."""
    rows(source.port, "FLUSH BINARY LOGS")
    log = rows(source.port, "SHOW BINARY LOG STATUS")[0][0]
    statements = ["CREATE TABLE logged.v (a INT, b INT)", "INSERT INTO logged.v VALUES (1, 1)", "SAVEPOINT s", "INSERT INTO logged.v VALUES (2, 2)", "ALTER TABLE logged.v MODIFY a BIGINT",
                  "CREATE TABLE logged.w AS SELECT a FROM logged.v", "UPDATE logged.v SET b = 3 WHERE a = 1", "TRUNCATE TABLE logged.w", "DROP TABLE logged.v, logged.w"]
    rows(source.port, "SET binlog_rows_query_log_events = ON; " + "; ".join(statements))
    found = [event[5] for event in rows(source.port, f"SHOW BINLOG EVENTS IN '{log}'") if event[2] in ("Query", "Rows_query")]
    expect("texts of statements", [text.split(" /* xid")[0] for text in found if text != "BEGIN"],
           [statements[0], "# " + statements[1], "# " + statements[3], statements[4], "CREATE TABLE `logged`.`w` (\\n  `a` bigint DEFAULT NULL\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci", "# " + statements[5],
            "# " + statements[6], statements[7], "DROP TABLE `logged`.`v`,`logged`.`w`"])


def waits(source):
    """An UPDATE by key that finds its row locked was logged before, and is logged anew: with its text and its identifier."""
    log = rows(source.port, "SHOW BINARY LOG STATUS")[0][0]
    # The last of all in a set.
    gtid = "ffffffff-ffff-ffff-ffff-ffffffffffff:77"
    locking = threading.Thread(target=rows, args=(source.port, "BEGIN; SELECT id FROM logged.t WHERE id = 1 FOR UPDATE; SELECT SLEEP(1.5); COMMIT"))
    locking.start()
    time.sleep(0.7)
    update = "UPDATE logged.t SET t = 'waited' WHERE id = 1"
    rows(source.port, f"SET binlog_rows_query_log_events = ON; SET gtid_next = '{gtid}'; {update}")
    locking.join()
    expect("the identifier", rows(source.port, f"SELECT GTID_SUBSET('{gtid}', @@gtid_executed)"), [["1"]])
    found = [event[2] for event in rows(source.port, f"SHOW BINLOG EVENTS IN '{log}'") if event[2] != "Rows_query" or event[5].endswith(update)]
    expect("the text", found[-6:], ["Gtid", "Query", "Rows_query", "Table_map", "Update_rows", "Xid"])


def images(source, replicas):
    """Each value of a new row is logged, also NULL, where columns are not in the order in which rows are stored: a replica would take the default."""
    rows(source.port, "CREATE TABLE logged.n (id INT PRIMARY KEY, t TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP, b BLOB); ALTER TABLE logged.n ADD COLUMN c INT DEFAULT 5 AFTER id")
    for at, image in enumerate(("FULL", "MINIMAL", "NOBLOB")):
        rows(source.port, f"SET binlog_row_image = {image}; INSERT INTO logged.n VALUES ({at}, NULL, NULL, NULL), ({at + 10}, 1, '2001-01-01', 'b'); UPDATE logged.n SET c = NULL WHERE id = {at + 10}; "
                          f"INSERT INTO logged.n SELECT id + 20, c, t, b FROM logged.n WHERE id = {at}; REPLACE INTO logged.n VALUES ({at}, 7, NULL, NULL)")
    same(source, replicas)
    everything = rows(source.port, "SELECT * FROM logged.n ORDER BY id")
    expect("NULLs", [row[:3] for row in everything], [[str(at + more), value, time] for more, value, time in ((0, "7", "NULL"), (10, "NULL", "2001-01-01 00:00:00"), (20, "NULL", "NULL")) for at in range(3)])
    for replica in replicas:
        expect("rows of all images", rows(replica.port, "SELECT * FROM logged.n ORDER BY id"), everything)


def identifiers(source, replica):
    """An identifier is used once: 1837 for what comes after its transaction, also after statements that are transactions of their own; a replica logs each once."""
    uuid = "ffffffff-ffff-ffff-ffff-ffffffffff00"
    first = ["CREATE USER once@localhost", "CREATE TABLE logged.o (a INT)", "INSERT INTO logged.o VALUES (1)", "BEGIN; INSERT INTO logged.o VALUES (2); COMMIT", "DROP TABLE logged.o", "DROP USER once@localhost"]
    for number, statement in enumerate(first, 1):
        fails(source.port, f"SET gtid_next = '{uuid}:{number}'; {statement}; CREATE TABLE logged.after (a INT)", 1837)
    # After a ROLLBACK it may be given again, which a replica does that repeats a transaction; it has to be.
    again = f"SET gtid_next = '{uuid}:9'; BEGIN; INSERT INTO logged.t VALUES (900, 'undone'); ROLLBACK"
    fails(source.port, f"{again}; INSERT INTO logged.t VALUES (900, 'not given')", 1837)
    fails(source.port, f"SET gtid_next = '{uuid}:9'; INSERT INTO logged.t VALUES (1, 'there is one')", 1062)
    rows(source.port, f"{again}; SET gtid_next = '{uuid}:9'; INSERT INTO logged.t VALUES (900, 'given again')")
    expect("the last is executed", rows(source.port, f"SELECT GTID_SUBSET('{uuid}:9', @@gtid_executed)"), [["1"]])
    same(source, [replica])
    for server in (source, replica):
        found = [event[5] for (log, *_) in rows(server.port, "SHOW BINARY LOGS") for event in rows(server.port, f"SHOW BINLOG EVENTS IN '{log}'") if event[2] == "Gtid"]
        expect("identifiers that are in the log twice", sorted({one for one in found if found.count(one) > 1}), [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    options = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp())
    source = start(options.squalld, top, "source", "--log-bin", "--server-id=1", "--binlog-checksum=NONE")
    logged = start(options.squalld, top, "logged", "--log-bin", "--server-id=2")
    unlogged = start(options.squalld, top, "unlogged", "--server-id=3")
    last = start(options.squalld, top, "last", "--server-id=4")
    rows(source.port, "CREATE DATABASE logged; CREATE TABLE logged.t (id INT PRIMARY KEY, t LONGTEXT)")
    rows(source.port, "INSERT INTO logged.t VALUES (1, 'one'), (2, 'two')")
    follow(source, logged)
    follow(source, unlogged)
    # A replica of a replica: what began at 1 is logged as that of 1.
    follow(logged, last)
    replicas = [logged, unlogged, last]
    same(source, replicas)
    begun = {number for kind, number in events(logged, "binlog.000001") if kind in ("Gtid", "Query", "Write_rows", "Table_map", "Xid")}
    expect("servers where the replica's transactions began", begun, {"1"})
    decode([str(top / "source" / "data" / "binary-log" / "binlog.000001")])
    # Another kind of checksum begins a file, also for those who are reading.
    rows(source.port, "SET GLOBAL binlog_checksum = CRC32; INSERT INTO logged.t VALUES (3, 'three')")
    same(source, replicas)
    rows(source.port, "SET GLOBAL binlog_checksum = NONE; INSERT INTO logged.t VALUES (4, 'four')")
    same(source, replicas)
    # One event holds the whole transaction.
    rows(source.port, "FLUSH BINARY LOGS")
    log = rows(source.port, "SHOW BINARY LOG STATUS")[0][0]
    rows(source.port, "SET binlog_transaction_compression = ON; BEGIN; INSERT INTO logged.t SELECT id + 10, REPEAT('x', 100000) FROM logged.t; "
                      "UPDATE logged.t SET t = CONCAT(t, 'y') WHERE id < 13; DELETE FROM logged.t WHERE id = 14; COMMIT; "
                      "INSERT INTO logged.t VALUES (20, 'x'); CREATE TABLE logged.u (a INT)")
    executed = same(source, replicas)
    expect("events", [kind for kind, _ in events(source, log)],
           ["Format_desc", "Previous_gtids", "Gtid", "Transaction_payload", "Gtid", "Transaction_payload", "Gtid", "Query"])
    size = [int(found[1]) for found in rows(source.port, "SHOW BINARY LOGS") if found[0] == log][0]
    if size > 5000:
        raise SystemExit(f"400 KB of the same letter take {size} bytes in the log")
    texts(source)
    waits(source)
    images(source, replicas)
    identifiers(source, logged)
    executed = same(source, replicas)
    # After a restart the log goes on as it was.
    source.process.terminate()
    source.process.wait()
    source = Server(options.squalld, source.folder, source.port, source.extra)
    rows(source.port, "INSERT INTO logged.t VALUES (30, 'after a restart')")
    executed = same(source, replicas)
    # Waiting.
    uuid = executed.split(":")[0]
    expect("a wait that ends", rows(unlogged.port, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{uuid}:1000', 0.1)"), [["1"]])
    for arguments, number in [("NULL", 1772), ("'x'", 1772), ("'', -1", 1210), ("'', NULL", 1210), ("", 1582)]:
        fails(source.port, f"SELECT WAIT_FOR_EXECUTED_GTID_SET({arguments})", number)
    # What is executed cannot be added.
    fails(source.port, f"SET GLOBAL gtid_purged = '+{uuid}:2'", 3546)
    fails(source.port, f"SET GLOBAL gtid_purged = '{executed}'", 3546)
    other = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-20"
    rows(source.port, f"SET GLOBAL gtid_purged = '+{other}'")
    expect("purged", rows(source.port, "SELECT @@gtid_purged"), [[other]])
    fails(source.port, "SET GLOBAL gtid_purged = ''", 3546)
    print(f"settings of the log: {executed.rsplit(':', 1)[1]} transactions, {len(replicas)} replicas are as their source")
    for server in [source, *replicas]:
        server.process.terminate()
        server.process.wait()
    shutil.rmtree(top)


if __name__ == "__main__":
    main()
