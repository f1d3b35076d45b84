#!/usr/bin/env python3
"""Where a replica stops and goes on: START REPLICA UNTIL, sql_replica_skip_counter, SOURCE_POS_WAIT.

    tests/replication/positions.py [--squalld target/debug/squalld]
"""

import argparse
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import rows  # noqa: E402
from log_settings import expect, fails, follow, start  # noqa: E402
from parallel import executed, stopped  # noqa: E402


def ids(server):
    return [int(row[0]) for row in rows(server.port, "SELECT id FROM d.t ORDER BY id")]


def place(source):
    """Where the log is after what was done, and the number of the last transaction."""
    file, offset = rows(source.port, "SHOW BINARY LOG STATUS")[0][:2]
    return file, int(offset), int(rows(source.port, "SELECT @@gtid_executed")[0][0].split("-")[-1])


def until(source, replica):
    uuid = rows(source.port, "SELECT @@server_uuid")[0][0]
    places = []
    for number in range(1, 9):
        rows(source.port, f"INSERT INTO d.t VALUES ({number})")
        places.append(place(source))
    number = [each[2] for each in places]
    for condition, wanted in [
        ("SQL_AFTER_MTS_GAPS", 0),
        (f"SQL_BEFORE_GTIDS = '{uuid}:{number[1]}-{number[2]}'", 1),
        (f"SQL_AFTER_GTIDS = '{uuid}:1-{number[3]}'", 4),
        (f"SQL_AFTER_GTIDS = '{uuid}:{number[3]}'", 4),
        (f"SOURCE_LOG_FILE = '{places[5][0]}', SOURCE_LOG_POS = {places[5][1]}", 6),
        # Within a transaction: after it.
        (f"SOURCE_LOG_FILE = '{places[6][0]}', SOURCE_LOG_POS = {places[6][1] - 9}", 7),
    ]:
        rows(replica.port, f"START REPLICA UNTIL {condition}")
        expect(condition, stopped(replica)[1], "0")
        expect(condition, ids(replica), list(range(1, wanted + 1)))
        shown = rows(replica.port, "SELECT Until_Condition FROM data_dictionary.REPLICA_STATUS")[0][0]
        expect(condition, shown, condition.split()[0].replace("SOURCE_LOG_FILE", "Source"))
    fails(replica.port, "START REPLICA UNTIL SOURCE_LOG_POS = 4", 1277)
    rows(replica.port, "START REPLICA")
    executed(source, replica)
    expect("the rest", ids(replica), list(range(1, 9)))


def skip(source, replica):
    rows(replica.port, "STOP REPLICA")
    before = place(source)[2]
    for number in range(10, 16):
        rows(source.port, f"BEGIN; INSERT INTO d.t VALUES ({number}); INSERT INTO d.t VALUES ({number + 10}); COMMIT")
    rows(replica.port, "SET GLOBAL sql_replica_skip_counter = 1; START REPLICA")
    executed(source, replica)
    expect("one is passed over", ids(replica), list(range(1, 9)) + list(range(11, 16)) + list(range(21, 26)))
    expect("the counter", rows(replica.port, "SELECT @@sql_replica_skip_counter, Skip_Counter FROM data_dictionary.REPLICA_STATUS"), [["0", "0"]])
    fails(replica.port, "SET GLOBAL sql_replica_skip_counter = 1", 3017)
    # Identifier, BEGIN, and two rows with their tables, COMMIT: the eighth event is of the second transaction.
    rows(replica.port, "STOP REPLICA; SET sql_log_bin = 0; TRUNCATE d.t; SET GLOBAL sql_replica_skip_counter = 8")
    for number in range(30, 33):
        rows(source.port, f"BEGIN; INSERT INTO d.t VALUES ({number}); INSERT INTO d.t VALUES ({number + 10}); COMMIT")
    rows(replica.port, "START REPLICA")
    executed(source, replica)
    expect("two are passed over", ids(replica), [32, 42])
    # It is stored that they are here: a killed replica does not ask for them again.
    rows(replica.port, "STOP REPLICA; SET GLOBAL sql_replica_skip_counter = 1")
    rows(source.port, "INSERT INTO d.t VALUES (50)")
    rows(replica.port, "START REPLICA")
    executed(source, replica)
    stored = rows(replica.port, "SELECT gtids FROM squall_replication.channels")[0][0]
    expect("stored", int(stored.split("-")[-1]), place(source)[2])
    expect("passed over", 50 in ids(replica), False)
    expect("identifiers", place(source)[2] - before, 10)


def wait(source, replica):
    file, offset, _ = place(source)
    expect("there already", rows(replica.port, f"SELECT SOURCE_POS_WAIT('{file}', {offset})"), [["0"]])
    expect("timeout", rows(replica.port, f"SELECT SOURCE_POS_WAIT('{file}', {offset + 1}, 0.2), MASTER_POS_WAIT('{file}', 4, 0.2, '')"), [["-1", "0"]])
    for nothing in (f"'{file}', 4, 1, 'other'", f"'{file}', -4", f"NULL, 4", f"'{file}', NULL, 1"):
        expect(nothing, rows(replica.port, f"SELECT SOURCE_POS_WAIT({nothing})"), [["NULL"]])
    fails(replica.port, f"SELECT SOURCE_POS_WAIT('{file}', 4, -1)", 1210)
    rows(source.port, "INSERT INTO d.t VALUES (60)")
    file, offset, _ = place(source)
    waited = rows(replica.port, f"SELECT SOURCE_POS_WAIT('{file}', {offset}, 20)")[0][0]
    expect("the next", (waited in ("0", "1"), 60 in ids(replica)), (True, True))
    rows(replica.port, "STOP REPLICA")
    expect("no replica runs", rows(replica.port, f"SELECT SOURCE_POS_WAIT('{file}', 4)"), [["NULL"]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    options = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp())
    source = start(options.squalld, top, "source", "--log-bin", "--server-id=1")
    replica = start(options.squalld, top, "replica", "--log-bin", "--server-id=2")
    rows(source.port, "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")
    follow(source, replica)
    executed(source, replica)
    rows(replica.port, "STOP REPLICA")
    until(source, replica)
    skip(source, replica)
    wait(source, replica)
    for server in (source, replica):
        server.process.terminate()
        server.process.wait()
    print("the replica stops, goes on and waits where it is told")
    shutil.rmtree(top)


if __name__ == "__main__":
    main()
