#!/usr/bin/env python3
"""What programs do that manage replicas: they find them, read where they are, move one to another source, look for transactions that only it has, and
make one the primary.

    tests/replication/manager.py [--squalld target/debug/squalld]
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
from log_settings import expect, fails, follow, start  # noqa: E402


def status(server):
    """SHOW REPLICA STATUS by name; empty for a server that follows none."""
    done = subprocess.run(client(server.port, "--column-names", "-e", "SHOW REPLICA STATUS"), capture_output=True, text=True, check=True)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return dict(zip(lines[0], lines[1])) if len(lines) > 1 else {}


def until(what, found, wanted):
    last = None
    for _ in range(150):
        last = found()
        if last == wanted:
            return
        time.sleep(0.1)
    raise SystemExit(f"{what}: {last!r} instead of {wanted!r}")


def reaches(server, executed):
    expect("wait", rows(server.port, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 20)"), [["0"]])


def executed(server):
    return rows(server.port, "SELECT @@global.gtid_executed")[0][0]


def find(source, names):
    """The replicas of a server, by what they say of themselves and by the connections that read the log."""
    until("SHOW REPLICAS", lambda: sorted(row[1] for row in rows(source.port, "SHOW REPLICAS")), names)
    dumps = rows(source.port, "SELECT COUNT(*) FROM information_schema.processlist WHERE command IN ('Binlog Dump', 'Binlog Dump GTID')")
    expect("connections that read", dumps, [[str(len(names))]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    options = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp())

    def server(number):
        return start(options.squalld, top, f"s{number}", "--log-bin", f"--server-id={number}", f"--report-host=s{number}.example", "--report-user=someone")

    first, second, third = server(1), server(2), server(3)
    asked = "SELECT @@global.hostname, @@global.report_host, @@global.server_id, @@global.server_uuid, @@global.version, @@global.version_comment, " \
            "@@global.read_only, @@global.super_read_only, @@global.binlog_format, @@global.binlog_row_image, @@global.log_bin, @@global.log_replica_updates, " \
            "@@global.gtid_mode, @@global.gtid_executed, @@global.gtid_purged, @@global.relay_log_purge, @@global.relay_log_recovery, @@global.sync_binlog"
    expect("what is asked of a server", rows(first.port, asked)[0][1:3], ["s1.example", "1"])
    rows(first.port, "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1)")
    for replica in (second, third):
        rows(replica.port, "SET GLOBAL super_read_only = ON")
        expect("read-only", rows(replica.port, "SELECT @@read_only, @@super_read_only"), [["1", "1"]])
        follow(first, replica)
        reaches(replica, executed(first))
    find(first, ["s2.example", "s3.example"])
    expect("a port", [row[2] for row in rows(first.port, "SHOW REPLICAS") if row[0] == "2"], [str(second.port)])
    # A channel that starts again replaces its connection at once.
    rows(second.port, "STOP REPLICA; START REPLICA; STOP REPLICA; START REPLICA")
    find(first, ["s2.example", "s3.example"])
    now = status(second)
    expect("status", [now[name] for name in ("Replica_IO_Running", "Replica_SQL_Running", "Source_Host", "Source_Port", "Auto_Position", "Last_IO_Errno", "Last_SQL_Errno")],
           ["Yes", "Yes", "127.0.0.1", str(first.port), "1", "0", "0"])
    expect("source", now["Source_UUID"], rows(first.port, "SELECT @@server_uuid")[0][0])
    # The third goes below the second, and back.
    fails(third.port, "CHANGE REPLICATION SOURCE TO SOURCE_PORT = 1", 3021)
    rows(third.port, "STOP REPLICA")
    follow(second, third)
    rows(first.port, "INSERT INTO d.t VALUES (2)")
    reaches(third, executed(first))
    find(second, ["s3.example"])
    until("the first's replicas", lambda: [row[0] for row in rows(first.port, "SHOW REPLICAS")], ["2"])
    # A transaction that only the third has is found, and an empty one with its identifier makes the others as if they had it.
    rows(third.port, "SET GLOBAL super_read_only = OFF; SET GLOBAL read_only = OFF; CREATE DATABASE errant; SET GLOBAL super_read_only = ON")
    strange = rows(first.port, f"SELECT GTID_SUBTRACT('{executed(third)}', @@global.gtid_executed)")[0][0]
    expect("errant", strange, rows(third.port, "SELECT @@server_uuid")[0][0] + ":1")
    rows(first.port, f"SET gtid_next = '{strange}'; BEGIN; COMMIT; SET gtid_next = 'AUTOMATIC'")
    reaches(second, strange)
    expect("errant", rows(first.port, f"SELECT GTID_SUBSET('{executed(third)}', @@global.gtid_executed)"), [["1"]])
    # The first is gone: the second, which has most, becomes the primary.
    rows(first.port, "INSERT INTO d.t VALUES (3)")
    reaches(second, executed(first))
    first.kill()
    until("the loss is seen", lambda: status(second)["Replica_IO_Running"], "Connecting")
    rows(second.port, "STOP REPLICA; RESET REPLICA ALL; SET GLOBAL super_read_only = OFF; SET GLOBAL read_only = OFF")
    expect("no source", status(second), {})
    rows(second.port, "INSERT INTO d.t VALUES (4)")
    reaches(third, executed(second))
    expect("rows", rows(third.port, "SELECT GROUP_CONCAT(id ORDER BY id) FROM d.t"), [["1,2,3,4"]])
    fails(third.port, "INSERT INTO d.t VALUES (5)", 1290)
    print("managers of replicas: found, moved, errant transaction, new primary")
    for server in (second, third):
        server.process.terminate()
        server.process.wait()
    shutil.rmtree(top)


if __name__ == "__main__":
    main()
