#!/usr/bin/env python3
"""A change stream with the sink `webhook`: a receiver that refuses, hangs up and forgets to answer, and a server that is killed. What the receiver has in the
end are the rows of the tables: every transaction in order, none missing, and those that came again are told by gtid and n.

    tests/replication/webhook.py [--rounds 2] [--squalld target/debug/squalld] [--seed 1]
"""

import argparse
import hashlib
import hmac
import http.server
import json
import pathlib
import random
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import client, rows  # noqa: E402
from changes import TABLE, Copy, load, value  # noqa: E402
from kill_loop import Server, free_port  # noqa: E402
from log_settings import expect, fails  # noqa: E402

SECRET = "only these two know"


class Replayed(Copy):
    """A copy that gets some events twice."""

    def take(self, event):
        gtid, op = event.get("gtid"), event["op"]
        if gtid in self.seen or (op == "begin" and self.open and self.open[0]["gtid"] == gtid):
            return
        if "n" in event and event["n"] <= len(self.open) and self.open[0]["gtid"] == gtid:
            return
        if op == "ddl":
            self.open.append(event)
        super().take(event)
        if op == "commit":
            self.open = []

    def apply(self, event):
        if event["op"] != "ddl":
            super().apply(event)


class Receiver(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, seed, faults, certificate=None):
        super().__init__(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate / "server-cert.pem", certificate / "server-key.pem")
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.chance, self.faults, self.copies, self.requests, self.refused, self.positions = random.Random(seed), faults, {}, 0, 0, {}
        self.lock, self.wrong, self.gone = threading.Lock(), [], False
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        server = self.server
        length = int(self.headers["content-length"])
        body = self.rfile.read(length)
        # A sender that has waited too long gives up within its request.
        if server.gone or len(body) < length:
            self.close_connection = True
            return None
        with server.lock:
            server.requests += 1
            chance = server.chance.random() if server.faults else 1
            if chance < 0.1:
                server.refused += 1
                return self.answer(503, {"retry-after": "0"})
            if chance < 0.2:
                server.refused += 1
                self.close_connection = True
                return None
            try:
                self.keep(body)
            except (AssertionError, KeyError, ValueError) as error:
                server.wrong.append(repr(error)[:2000])
                return self.answer(500, {})
            # It has the batch, and the sender does not hear of it.
            if chance < 0.3:
                server.refused += 1
                return self.answer(500, {"retry-after": "0"})
            if chance < 0.4:
                server.refused += 1
                self.close_connection = True
                return None
            return self.answer(204, {})

    def answer(self, status, headers):
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        if status != 204:
            self.send_header("content-length", "0")
        self.end_headers()

    def keep(self, body):
        headers = self.headers
        assert headers["content-type"] == "application/x-ndjson" and headers["x-squall-version"] == "1", headers
        assert headers["authorization"] == "Bearer token" and headers["x-more"] == "a: b", headers
        signed = hmac.new(SECRET.encode(), headers["x-squall-timestamp"].encode() + b"." + body, hashlib.sha256).hexdigest()
        assert headers["x-squall-signature"] == f"sha256={signed}", headers
        assert abs(int(headers["x-squall-timestamp"]) - time.time()) < 30
        assert body.endswith(b"\n")
        events = [json.loads(line) for line in body.splitlines()]
        assert 1 <= len(events) <= 50, len(events)
        copy = self.server.copies.setdefault(headers["x-squall-stream"], Replayed())
        for event in events:
            copy.take(event)
        # The position is that of the last event, unless that is within a transaction.
        last = events[-1].get("position") if events[-1]["op"] in ("commit", "snapshot_end") else None
        assert headers["x-squall-position"] == last, (headers["x-squall-position"], events[-1])


def until(what, test, receiver=None):
    for _ in range(400):
        if receiver and receiver.wrong:
            raise SystemExit(f"{what}: {receiver.wrong[0]}")
        if test():
            return
        time.sleep(0.1)
    raise SystemExit(f"{what}: not within 40 seconds")


def stream(name):
    return f"FROM data_dictionary.CHANGE_STREAMS WHERE STREAM_NAME = '{name}'"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chance, folder, port = random.Random(options.seed), pathlib.Path(tempfile.mkdtemp()), free_port()
    more = ("--log-bin", "--plugin-add=webhook")
    receiver = Receiver(options.seed, True)
    url = f"http://127.0.0.1:{receiver.server_port}/hook?x=1"
    sink = f"sink = 'webhook', url = '{url}', secret = '{SECRET}', headers = 'Authorization: Bearer token\\nX-More: a: b', batch_events = 50"
    server = Server(options.squalld, folder, port, more)
    try:
        rows(port, f"CREATE DATABASE d; {TABLE}; CREATE TABLE d.u (a INT PRIMARY KEY, b TEXT); INSERT INTO d.u VALUES (1, 'a'); INSERT INTO d.t VALUES {value(chance, 1)}")
        for wrong, number in [("sink = 'none'", 1220), ("sink = 'webhook'", 1210), ("sink = 'webhook', url = 'ftp://h'", 1210), ("url = 'http://h'", 1210),
                              ("sink = 'webhook', url = 'http://h', other = 1", 1210), ("sink = 'webhook', url = 'http://h', batch_events = 0", 1210)]:
            fails(port, f"CREATE CHANGE STREAM s WITH ({wrong})", number)
        # Where rows are sent to is for those who may read them all.
        rows(port, "CREATE USER half IDENTIFIED BY 'half'; GRANT CHANGE_STREAM_ADMIN ON *.* TO half")
        for stream_options, allowed in [("sink = 'webhook', url = 'http://h'", False), ("retention_bytes = 1000000", True)]:
            done = subprocess.run(client(port, "-uhalf", "-phalf", "-e", f"CREATE CHANGE STREAM half WITH ({stream_options})"), capture_output=True, text=True)
            assert (done.returncode == 0) == allowed and ("1227" in done.stderr) != allowed, done.stderr
        rows(port, "DROP CHANGE STREAM half")
        rows(port, f"CREATE CHANGE STREAM s FOR SCHEMA d FROM SNAPSHOT WITH ({sink})")
        shown = rows(port, "SHOW CREATE CHANGE STREAM s")[0][1]
        assert SECRET not in shown and "Bearer" not in shown and url in shown, shown
        for turn in range(options.rounds):
            stop = threading.Event()
            threads = [threading.Thread(target=load, args=(port, f"{options.seed}{turn}{at}", stop)) for at in range(3)]
            for thread in threads:
                thread.start()
            time.sleep(2)
            server.kill()
            stop.set()
            for thread in threads:
                thread.join()
            server = Server(options.squalld, folder, port, more)
        # A transaction that is larger than a batch.
        rows(port, "CREATE TABLE d.w (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(9)); INSERT INTO d.w (b) WITH RECURSIVE n AS "
                   "(SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i FROM n")
        wanted = rows(port, "SELECT @@gtid_executed")[0][0].replace("\\n", "")
        until("all is delivered", lambda: rows(port, f"SELECT CONFIRMED_GTID_SET {stream('s')}") == [[wanted]], receiver)
        rows(port, f"CREATE CHANGE STREAM `fresh one` FOR SCHEMA d FROM SNAPSHOT WITH ({sink})")
        until("the snapshot", lambda: "fresh%20one" in receiver.copies and receiver.copies["fresh%20one"].position, receiver)
        first, fresh = receiver.copies["s"], receiver.copies["fresh%20one"]
        assert first.rows == fresh.rows, "the rows that came are others than those that are there"
        assert len(first.rows) > 500, len(first.rows)
        # What waits comes when the sink goes on, and not before.
        rows(port, "DROP CHANGE STREAM `fresh one`; ALTER CHANGE STREAM s WITH (paused = ON)")
        time.sleep(0.5)
        rows(port, "INSERT INTO d.u VALUES (77, 'late')")
        time.sleep(0.7)
        late = ("d", "u", json.dumps({"a": 77}))
        assert late not in first.rows, "a sink that is paused delivers"
        receiver.faults = False
        rows(port, "ALTER CHANGE STREAM s WITH (paused = OFF)")
        until("what waited", lambda: late in first.rows, receiver)
        # Nobody listens: the stream says so, and goes on when somebody does.
        receiver.gone = True
        receiver.shutdown()
        receiver.server_close()
        rows(port, "INSERT INTO d.u VALUES (78, 'later')")
        until("a failure", lambda: int(rows(port, f"SELECT DELIVERY_FAILURES {stream('s')}")[0][0]) > 0 and rows(port, f"SELECT LAST_ERROR {stream('s')}")[0][0])
        other = Receiver(options.seed, False)
        other.copies["s"] = first
        rows(port, f"ALTER CHANGE STREAM s WITH (url = 'http://127.0.0.1:{other.server_port}/')")
        until("the other receiver", lambda: ("d", "u", json.dumps({"a": 78})) in first.rows, other)
        expect("no error", rows(port, f"SELECT LAST_ERROR, SINK {stream('s')}"), [["", "webhook"]])
        # A certificate of an own authority: the one that the server made for itself.
        secure = Receiver(options.seed, False, folder / "data")
        here = sink.replace(url, f"https://127.0.0.1:{secure.server_port}/")
        rows(port, f"DROP CHANGE STREAM s; CREATE CHANGE STREAM s FOR SCHEMA d FROM SNAPSHOT WITH ({here})")
        until("a certificate that is not trusted", lambda: "certificate" in str(rows(port, f"SELECT LAST_ERROR {stream('s')}")[0][0]))
        assert "s" not in secure.copies
        authority = (folder / "data" / "ca.pem").read_text()
        rows(port, f"ALTER CHANGE STREAM s WITH (ca = '{authority}')")
        until("one that is", lambda: "s" in secure.copies and secure.copies["s"].position, secure)
        rows(port, "DROP CHANGE STREAM s")
        before = time.time()
        server.process.terminate()
        server.process.wait()
        assert time.time() - before < 10, "the server waits for a receiver"
        print(f"webhook: {receiver.requests} requests, {receiver.refused} of them failed; {len(first.seen)} transactions and {len(first.rows)} rows are the same")
    finally:
        if server.process.poll() is None:
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
