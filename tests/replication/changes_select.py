#!/usr/bin/env python3
"""`/1.0/changes` with SELECT alone: an account follows the tables that it may read, and sees nothing of others, whatever it asks for and whatever it loses.

    tests/replication/changes_select.py [--squalld target/debug/squalld]
"""

import argparse
import base64
import http.client
import json
import pathlib
import shutil
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import rows  # noqa: E402
from kill_loop import Server, free_port  # noqa: E402
from log_settings import expect  # noqa: E402

SECRET = "nobody may know"


class Stream:
    """A reader's connection."""

    def __init__(self, http_port, user, query):
        self.connection = http.client.HTTPConnection("127.0.0.1", http_port, timeout=20)
        login = base64.b64encode(f"{user}:pw".encode()).decode()
        self.connection.request("GET", f"/1.0/changes{query}", headers={"authorization": f"Basic {login}", "accept": "application/x-ndjson"})
        self.answer = self.connection.getresponse()
        self.said = b""

    def error(self):
        """The number of a refusal."""
        body = json.loads(self.answer.read())
        self.connection.close()
        return body["error"]["code"] if isinstance(body.get("error"), dict) else body.get("error")

    def until(self, test):
        """Events up to the first one that passes."""
        events = []
        while True:
            line = self.answer.readline()
            self.said += line
            if not line:
                raise SystemExit(f"the stream ended: {events}")
            event = json.loads(line)
            events.append(event)
            if test(event):
                return events

    def rows_until(self, key):
        """Rows up to the one with this key."""
        events = self.until(lambda event: event["op"] == "error" or event["op"] in ("insert", "update", "delete") and event["key"] == {"id": key})
        if events[-1]["op"] == "error":
            raise SystemExit(events[-1])
        return [(event["schema"], event["table"], event["op"]) for event in events if "after" in event]

    def ends_with(self, number):
        end = self.until(lambda event: event["op"] == "error")[-1]
        expect("the error that ends the stream", end["error"]["code"], number)
        self.connection.close()


def tables(*names):
    return "?heartbeat=1&tables=" + urllib.parse.quote(",".join(names))


def refusals(http_port, port):
    """What is refused at the start."""
    cases = [
        ("reader", "", 1227), ("reader", "?schema=d", 1227), ("reader", tables("d.hidden"), 1142), ("reader", tables("d.t", "d.hidden"), 1142),
        ("reader", tables("mysql.user"), 1227), ("reader", tables("d.none"), 1142), ("reader", tables("d.t") + "&from=snapshot", 1227), ("reader", "/s", 1227),
        # A view is no table; of some columns is not all of the table; what a view reads is its definer's.
        ("reader", tables("d.v"), 1347), ("of_columns", tables("d.t"), 1142), ("of_all_columns", tables("d.t"), 1142), ("of_view", tables("d.hidden"), 1142),
        ("of_view", tables("d.t"), 1142), ("nobody", tables("d.t"), 1142), ("inserter", tables("d.t"), 1142),
        # Everything but one schema.
        ("but_one", tables("d.t"), 1142), ("but_one", tables("squall_replication.channels"), 1227), ("role_off", tables("d.t"), 1142),
    ]
    for user, query, number in cases:
        expect(f"{user} {query}", Stream(http_port, user, query).error(), number)
    expect("POST ack", rows(port, "SELECT CONFIRMED_GTID_SET FROM data_dictionary.CHANGE_STREAMS WHERE STREAM_NAME = 's'") != [], True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    options = parser.parse_args()
    folder, port, http_port = pathlib.Path(tempfile.mkdtemp()), free_port(), free_port()
    server = Server(options.squalld, folder, port, ("--log-bin", "--plugin-add=json_server", f"--json-server-port={http_port}", "--partial-revokes=ON"))
    try:
        rows(port, "CREATE DATABASE d; CREATE DATABASE e; CREATE TABLE d.t (id INT PRIMARY KEY, a VARCHAR(40)); CREATE TABLE d.hidden (id INT PRIMARY KEY, a VARCHAR(40));"
                   "CREATE TABLE e.t (id INT PRIMARY KEY, a VARCHAR(40)); CREATE VIEW d.v AS SELECT * FROM d.t; CREATE VIEW d.hv AS SELECT * FROM d.hidden;"
                   "CREATE CHANGE STREAM s FOR ALL TABLES")
        grants = {"reader": "SELECT ON d.t, SELECT ON d.v, SELECT ON e.*", "of_columns": "SELECT (id) ON d.t", "of_all_columns": "SELECT (id, a) ON d.t",
                  "of_view": "SELECT ON d.hv", "nobody": "", "inserter": "INSERT ON d.t", "but_one": "SELECT ON *.*", "role_off": "", "by_role": "", "owner": "SELECT ON d.t"}
        for user, given in grants.items():
            rows(port, f"CREATE USER {user} IDENTIFIED BY 'pw'")
            for one in given.split(", SELECT ON "):
                one = one if one.startswith(("SELECT", "INSERT")) else f"SELECT ON {one}"
                if given:
                    rows(port, f"GRANT {one} TO {user}")
        rows(port, "REVOKE SELECT ON d.* FROM but_one; CREATE ROLE r; GRANT SELECT ON d.t TO r; GRANT r TO role_off, by_role; SET DEFAULT ROLE r TO by_role")
        refusals(http_port, port)
        follow(http_port, port)
        losses(http_port, port)
        print("readers with SELECT alone follow their tables, and see nothing of others")
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def follow(http_port, port):
    """Of transactions with rows of many tables come those of the reader's."""
    before = rows(port, "SELECT @@gtid_executed")[0][0]
    reader, role = Stream(http_port, "reader", tables("d.t", "e.t")), Stream(http_port, "by_role", tables("d.t"))
    rows(port, f"BEGIN; INSERT INTO d.hidden VALUES (1, '{SECRET}'); INSERT INTO d.t VALUES (1, 'a'); INSERT INTO e.t VALUES (1, 'a'); COMMIT;"
               f"INSERT INTO d.hidden VALUES (2, '{SECRET}'); UPDATE d.t, d.hidden SET t.a = 'b', hidden.a = CONCAT('{SECRET}', 2) WHERE t.id = hidden.id;"
               # Statements about several tables, and those that have what is in others.
               f"CREATE TABLE d.other (id INT PRIMARY KEY DEFAULT 7 COMMENT '{SECRET}'); ALTER TABLE d.t ADD COLUMN b INT; DROP TABLE d.other, e.t; "
               f"CREATE TABLE e.t (id INT PRIMARY KEY, a VARCHAR(40)) AS SELECT * FROM d.hidden WHERE id = 2; DROP TABLE e.t; "
               f"CREATE TABLE e.moved (id INT PRIMARY KEY, a VARCHAR(40)); INSERT INTO e.moved VALUES (3, '{SECRET}'); "
               "CREATE TABLE e.t (id INT PRIMARY KEY, a VARCHAR(40)); INSERT INTO e.t VALUES (9, 'end'); INSERT INTO d.t VALUES (9, 'end', 5)")
    came = reader.rows_until(9) + reader.rows_until(9)
    # The row of CREATE TABLE .. AS SELECT is one of e.t, which the account may read.
    wanted = [("d", "t", "insert"), ("e", "t", "insert"), ("d", "t", "update"), ("e", "t", "insert"), ("e", "t", "insert"), ("d", "t", "insert")]
    expect("rows", came, wanted)
    secret = [line for line in reader.said.splitlines() if SECRET.encode() in line]
    expect("the row that was copied to the reader's table is all", len(secret), 1)
    for word in (b"hidden", b"other", b"moved", b"CREATE", b"DROP"):
        expect(word, word in reader.said, False)
    ddl = [event for event in map(json.loads, reader.said.splitlines()) if event["op"] == "ddl"]
    expect("definitions", {table for event in ddl for table in map(tuple, event["tables"])}, {("d", "t"), ("e", "t")})
    expect("texts", {event["sql"] for event in ddl}, {""})
    expect("rows by a role", role.rows_until(9), [("d", "t", "insert"), ("d", "t", "update"), ("d", "t", "insert")])
    expect("nothing of others", SECRET.encode() in role.said, False)
    # From a place in the log.
    again = Stream(http_port, "reader", tables("d.t") + "&from=" + urllib.parse.quote(before.replace("\\n", "")))
    expect("rows from a place", again.rows_until(9), [("d", "t", "insert"), ("d", "t", "update"), ("d", "t", "insert")])
    expect("nothing of others", SECRET.encode() in again.said, False)


def losses(http_port, port):
    """What is lost in the middle ends the stream before the next row."""
    cases = [("owner", "REVOKE SELECT ON d.t FROM owner", "GRANT SELECT ON d.t TO owner", 1142),
             ("by_role", "REVOKE r FROM by_role", "GRANT r TO by_role", 1142),
             ("owner", "DROP USER owner", "CREATE USER owner IDENTIFIED BY 'pw'; GRANT SELECT ON *.* TO owner", 1142),
             ("owner", "REVOKE SELECT ON d.* FROM owner", "GRANT SELECT ON d.* TO owner", 1142),
             ("owner", "DROP USER owner; CREATE USER owner IDENTIFIED BY 'pw'", "DO 0", 1142)]
    for number, (user, loss, back, error) in enumerate(cases, 100):
        stream = Stream(http_port, user, tables("d.t"))
        rows(port, f"INSERT INTO d.t VALUES ({number}, 'seen', 0)")
        expect("a row before the loss", stream.rows_until(number), [("d", "t", "insert")])
        rows(port, f"{loss}; INSERT INTO d.t VALUES ({number + 1000}, '{SECRET}', 0); UPDATE d.t SET a = '{SECRET}' WHERE id = {number}")
        stream.ends_with(error)
        expect(f"nothing after {loss}", SECRET.encode() in stream.said, False)
        rows(port, f"DELETE FROM d.t WHERE id > 99; {back}")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
