#!/usr/bin/env python3
"""Replication filters: what they leave out is not there, what they rewrite is elsewhere, and the identifiers of all transactions are executed.

    tests/replication/filters.py [--squalld target/debug/squalld]
"""

import argparse
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import rows  # noqa: E402
from log_settings import expect, fails, start  # noqa: E402
from kill_loop import Server  # noqa: E402

CHANGES = """
CREATE DATABASE a; CREATE DATABASE b; CREATE DATABASE w1;
USE a; CREATE TABLE t (id INT PRIMARY KEY); CREATE TABLE u (id INT PRIMARY KEY); CREATE TABLE v1 (id INT PRIMARY KEY); CREATE TABLE made AS SELECT 1 AS id;
INSERT INTO t VALUES (1), (2); INSERT INTO u VALUES (1); INSERT INTO v1 VALUES (1); DELETE FROM t WHERE id = 1;
BEGIN; INSERT INTO t VALUES (3); INSERT INTO u VALUES (3); COMMIT; ALTER TABLE u ADD COLUMN n INT; CREATE USER someone;
USE b; CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (7);
USE w1; CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (9); CREATE TABLE gone (id INT); DROP TABLE gone;
"""


def tables(server):
    found = rows(server.port, "SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ('a', 'b', 'c', 'w1') ORDER BY 1")
    return {name: [row[0] for row in rows(server.port, f"SELECT id FROM {name} ORDER BY id")] for (name,) in found}


ALL = {"a.made": ["1"], "a.t": ["2", "3"], "a.u": ["1", "3"], "a.v1": ["1"], "b.t": ["7"], "w1.t": ["9"]}
# The rules, and what the replica has then.
CASES = [
    ("REPLICATE_DO_DB = (a)", {name: ALL[name] for name in ALL if name[0] == "a"}),
    ("REPLICATE_IGNORE_DB = (a, w1)", {"b.t": ["7"]}),
    ("REPLICATE_DO_TABLE = (a.t, b.t)", {"a.t": ["2", "3"], "b.t": ["7"]}),
    ("REPLICATE_IGNORE_TABLE = (a.u, a.made)", {name: ALL[name] for name in ("a.t", "a.v1", "b.t", "w1.t")}),
    ("REPLICATE_WILD_DO_TABLE = ('a.v%', 'w_.%')", {"a.v1": ["1"], "w1.t": ["9"]}),
    ("REPLICATE_WILD_IGNORE_TABLE = ('a.%')", {"b.t": ["7"], "w1.t": ["9"]}),
    ("REPLICATE_REWRITE_DB = ((a, c)), REPLICATE_DO_DB = (c)", {"c" + name[1:]: ALL[name] for name in ALL if name[0] == "a"}),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    options = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp())
    source = start(options.squalld, top, "source", "--log-bin", "--server-id=1")
    rows(source.port, CHANGES)
    executed = rows(source.port, "SELECT @@gtid_executed")[0][0]
    expect("the source", tables(source), ALL)
    for number, (rules, wanted) in enumerate(CASES):
        replica = start(options.squalld, top, f"replica{number}", "--log-bin", f"--server-id={2 + number}")
        fails(replica.port, f"CHANGE REPLICATION FILTER {rules} FOR CHANNEL 'none'", 3074)
        # A statement about a schema itself is not rewritten, nor is it like a pattern of some tables or one of the tables named.
        if "REWRITE" in rules:
            rows(replica.port, "SET sql_log_bin = 0; CREATE DATABASE c")
        if "WILD_DO" in rules:
            rows(replica.port, "SET sql_log_bin = 0; CREATE DATABASE a")
        rows(replica.port, f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {source.port}, SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1")
        of_channel = " FOR CHANNEL ''" if number % 2 else ""
        rows(replica.port, f"CHANGE REPLICATION FILTER {rules}{of_channel}; START REPLICA")
        waited = rows(replica.port, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 20)")
        status = rows(replica.port, "SELECT Last_Error, Replicate_Do_DB, Replicate_Ignore_DB, Replicate_Do_Table, Replicate_Ignore_Table, Replicate_Wild_Do_Table, "
                                    "Replicate_Wild_Ignore_Table, Replicate_Rewrite_DB FROM data_dictionary.REPLICA_STATUS")[0]
        expect(f"{rules}: {status}", waited, [["0"]])
        expect(rules, tables(replica), wanted)
        shown = rows(replica.port, "SELECT FILTER_NAME, FILTER_RULE, CONFIGURED_BY, COUNTER > 0 FROM performance_schema.replication_applier_filters ORDER BY FILTER_NAME")
        by = "CHANGE_REPLICATION_FILTER" + ("_FOR_CHANNEL" if of_channel else "")
        expect(f"{rules} shown", [(row[2], row[3]) for row in shown], [(by, "1")] * (rules.count("REPLICATE_")))
        expect(f"{rules} in the status", sorted(filter(None, status)), sorted(row[1] for row in shown))
        everywhere = rows(replica.port, "SELECT COUNT(*) FROM performance_schema.replication_applier_global_filters")
        expect(f"{rules} for all", everywhere, [["0" if of_channel else str(len(shown))]])
        fails(replica.port, f"CHANGE REPLICATION FILTER {rules}", 3017)
        # They are kept.
        replica.process.terminate()
        replica.process.wait()
        replica = Server(options.squalld, replica.folder, replica.port, replica.extra)
        kept = rows(replica.port, "SELECT FILTER_NAME, FILTER_RULE FROM performance_schema.replication_applier_filters ORDER BY FILTER_NAME")
        expect(f"{rules} after a restart", kept, [row[:2] for row in shown])
        rows(replica.port, "STOP REPLICA; CHANGE REPLICATION FILTER REPLICATE_DO_DB = (), REPLICATE_IGNORE_DB = ()")
        fails(replica.port, "CHANGE REPLICATION FILTER REPLICATE_DO_TABLE = (t)", 1210)
        replica.process.terminate()
        replica.process.wait()
    source.process.terminate()
    source.process.wait()
    print(f"{len(CASES)} sets of filters: the replica has what they let pass")
    shutil.rmtree(top)


if __name__ == "__main__":
    main()
