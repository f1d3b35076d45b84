#!/usr/bin/env python3
"""A source that sends what makes no sense: a replica says what is wrong, changes nothing by half, takes no more memory, and goes on from the right place once the source is sane.

    tests/replication/hostile.py [--squalld target/debug/squalld] [--seed 1] [--noise 10]

Between replica and source is a relay that changes events: cuts them, breaks checksums and lengths, repeats and leaves out transactions, invents kinds, columns and sizes, and
at the end, in tables of their own, changes bytes at random with a right checksum.
"""

import argparse
import pathlib
import random
import shutil
import socket
import struct
import sys
import tempfile
import threading
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import rows  # noqa: E402
from log_settings import expect, start  # noqa: E402
from kill_loop import free_port  # noqa: E402

QUERY, ROTATE, FORMAT, XID, TABLE_MAP, GTID, PAYLOAD, TAGGED, WRITE_ROWS = 2, 4, 15, 16, 19, 33, 40, 42, 30
HEADER = 19
SSL = 0x0800


def sealed(event, size=None):
    """The event, whose last four bytes are replaced by its checksum, and whose length is right or the one given."""
    body = bytearray(event[:-4])
    struct.pack_into("<I", body, 9, len(body) + 4 if size is None else size)
    return bytes(body) + struct.pack("<I", zlib.crc32(body))


def inserted(event, at, new):
    return sealed(event[:at] + new + event[at:])


class Relay:
    """Passes bytes on, and the events of the log through `change`."""

    def __init__(self, port):
        self.source, self.port, self.change, self.held = port, free_port(), None, []
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            replica, _ = self.listener.accept()
            source = socket.create_connection(("127.0.0.1", self.source))
            state = {"streams": False}
            threading.Thread(target=self.forth, args=(replica, source, state), daemon=True).start()
            threading.Thread(target=self.back, args=(replica, source, state), daemon=True).start()

    def forth(self, replica, source, state):
        try:
            while packet := read_packet(replica):
                if packet[4] in (0x12, 0x1E) and packet[3] == 0 and state.get("greeted"):
                    state["streams"] = True
                source.sendall(packet)
        except OSError:
            pass
        close(replica, source)

    def back(self, replica, source, state):
        number, transaction = 1, []
        try:
            greeting = bytearray(read_packet(source))
            at = greeting.index(0, 5) + 1 + 4 + 8 + 1
            flags = struct.unpack_from("<H", greeting, at)[0]
            # What is encrypted cannot be changed.
            struct.pack_into("<H", greeting, at, flags & ~SSL)
            replica.sendall(greeting)
            state["greeted"] = True
            while packet := read_packet(source):
                if not state["streams"] or packet[4] != 0:
                    replica.sendall(packet)
                    continue
                event, change = packet[5:], self.change
                kind = event[4]
                if kind in (GTID, TAGGED):
                    transaction = []
                transaction.append(event)
                events = [event] if change is None or kind in (FORMAT, ROTATE) else change(kind, event, transaction)
                if events is None:
                    break
                for each in events:
                    payload = b"\0" + each
                    replica.sendall(struct.pack("<I", len(payload))[:3] + bytes([number % 256]) + payload)
                    number += 1
        except (OSError, ValueError, IndexError):
            pass
        close(replica, source)


def read_packet(connection):
    head = read_bytes(connection, 4)
    if head is None:
        return None
    body = read_bytes(connection, head[0] | head[1] << 8 | head[2] << 16)
    return None if body is None else head + body


def read_bytes(connection, count):
    found = b""
    while len(found) < count:
        more = connection.recv(min(count - len(found), 1 << 16))
        if not more:
            return None
        found += more
    return found


def close(*connections):
    for connection in connections:
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def only(wanted, change):
    """Changes events of one kind."""
    return lambda kind, event, transaction: change(event) if kind == wanted else [event]


def repeated(kind, event, transaction):
    """Each transaction comes twice."""
    return [event] + list(transaction) if kind == XID else [event]


def left_out(kind, event, transaction):
    """Transactions do not come."""
    return []


def one_left_out(kind, event, transaction, seen=[0]):  # noqa: B006
    """Each third transaction does not come."""
    seen[0] += kind in (GTID, TAGGED)
    return [event] if seen[0] % 3 else []


def without_end(kind, event, transaction):
    return [] if kind == XID else [event]


def columns(difference):
    """The description of a table has more or fewer columns."""
    def change(event):
        at = HEADER + 8
        for _ in range(2):
            at += 1 + event[at] + 1
        body = bytearray(event)
        body[at] = (body[at] + difference) % 251
        return [sealed(bytes(body))]
    return only(TABLE_MAP, change)


def at_byte(wanted, at, value):
    def change(event):
        body = bytearray(event)
        body[at:at + len(value)] = value
        return [sealed(bytes(body))]
    return only(wanted, change)


def invented(kind, flags, body):
    """An event before the end of each transaction."""
    head = struct.pack("<IBIIIH", 1, kind, 1, 0, 0, flags)
    return lambda of, event, _: [sealed(head + body + b"\0\0\0\0"), event] if of == XID else [event]


# What happens, and what is said of it: parts of the error, or None if it is passed over.
FAULTS = [
    ("events are cut off", only(WRITE_ROWS, lambda event: [event[:-9]]), "size"),
    ("an event is cut off to nothing", only(XID, lambda event: [event[:7]]), "malformed"),
    ("checksums are wrong", only(WRITE_ROWS, lambda event: [event[:-1] + bytes([event[-1] ^ 1])]), "checksum"),
    ("a byte of a row is wrong", only(WRITE_ROWS, lambda event: [event[:40] + bytes([event[40] ^ 4]) + event[41:]]), "checksum"),
    ("lengths are too long", only(TABLE_MAP, lambda event: [sealed(event, len(event) + 7)]), "size"),
    ("lengths are enormous", only(TABLE_MAP, lambda event: [sealed(event, 0xFFFFFFF0)]), "size"),
    ("lengths are below a header", only(TABLE_MAP, lambda event: [sealed(event, 3)]), "size"),
    ("the connection ends within a transaction", only(WRITE_ROWS, lambda event: None), "lost"),
    ("transactions come twice", repeated, None),
    ("transactions are left out", left_out, None),
    ("one transaction is left out", one_left_out, None),
    ("transactions have no end", without_end, "within another"),
    ("events are of an unknown kind", invented(99, 0, b"abc"), "UNKNOWN"),
    ("events of an unknown kind may be passed over", invented(99, 0x80, b"abc"), None),
    ("events are of an unfinished kind", invented(5, 0, b"\2" + bytes(8)), "INTVAR"),
    ("an incident", invented(26, 0, b"\1\0\4lost"), "lost"),
    ("tables have more columns", columns(1), ""),
    ("tables have fewer columns", columns(-1), ""),
    ("tables have 250 columns", columns(248), ""),
    ("rows end early", only(WRITE_ROWS, lambda event: [sealed(event[:-4 - 5] + bytes(4))]), "ends too early"),
    ("rows have bytes left", only(WRITE_ROWS, lambda event: [inserted(event, len(event) - 4, b"\0\1\2")]), ""),
    ("rows of a table that was not described", only(TABLE_MAP, lambda event: []), "not described"),
    ("rows have no columns", at_byte(WRITE_ROWS, HEADER + 10, b"\0"), ""),
    ("a text is longer than its event", only(WRITE_ROWS, lambda event: [sealed(event[:-4 - 12] + b"\xff\xff" + event[-4 - 10:])]), ""),
    ("numbers of transactions are below 1", at_byte(GTID, HEADER + 17, bytes(8)), "number"),
    ("a compressed transaction says that it is of a terabyte", invented(PAYLOAD, 0, b"\2\1\0\3\x09\xfe" + struct.pack("<Q", 1 << 40) + b"\0" + b"abc"), ""),
    ("a compressed transaction is none", invented(PAYLOAD, 0, b"\2\1\0\3\1\x20\0" + b"no frame"), ""),
    ("statements are cut off", only(QUERY, lambda event: [sealed(event[:HEADER + 9] + bytes(4))]), "ends too early"),
]


def memory(server):
    """What the server has allocated, in MiB: pages of its program and of files do not count."""
    fields = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(fields.split("RssAnon:")[1].split()[0]) // 1024


def settled(replica, wanted):
    """Waits until the channel has all, or says that something is wrong; what it says."""
    for _ in range(400):
        state = rows(replica.port, "SELECT Replica_SQL_Running, Last_IO_Error, Last_SQL_Error FROM data_dictionary.REPLICA_STATUS")[0]
        said = state[1] if state[1] else state[2] if len(state) > 2 else ""
        if said:
            return said
        if rows(replica.port, "SELECT @@gtid_executed")[0][0] == wanted:
            return None
        time.sleep(0.02)
    return "TIME"


def faults(source, replica, relay):
    number = 0
    before = memory(replica)
    for what, change, said in FAULTS:
        relay.change = change
        rows(replica.port, "START REPLICA")
        for _ in range(3):
            number += 1
            rows(source.port, f"BEGIN; INSERT INTO d.t VALUES ({number}, 'text{number}', {number}.5); INSERT INTO d.u VALUES ({number}, REPEAT('x', {number})), ({-number}, 'second'); COMMIT")
        wanted = rows(source.port, "SELECT @@gtid_executed")[0][0]
        found = "TIME"
        is_left_out = change in (left_out, one_left_out)
        if is_left_out:
            time.sleep(0.5)
        else:
            found = settled(replica, wanted)
        if said is None:
            expect(what, found, "TIME" if is_left_out else None)
        elif found in (None, "TIME") or said.lower() not in found.lower():
            raise SystemExit(f"{what}: {found!r} instead of {said!r}")
        # No transaction is there by half.
        halves = rows(replica.port, "SELECT (SELECT COUNT(*) FROM d.t) * 2 - (SELECT COUNT(*) FROM d.u)")
        expect(f"{what}: whole transactions", halves, [["0"]])
        relay.change = None
        rows(replica.port, "STOP REPLICA; START REPLICA")
        left = settled(replica, wanted)
        expect(f"{what}: afterwards", left, None)
        for table in ("t", "u"):
            text = f"SELECT * FROM d.{table} ORDER BY 1"
            expect(f"{what}: {table}", rows(replica.port, text), rows(source.port, text))
        rows(replica.port, "STOP REPLICA")
        print(f"ok: {what}: {(found or 'passed over')[:150]}")
    grown = memory(replica) - before
    expect(f"memory grew by {grown} MiB", grown < 100, True)


def noise(source, replica, relay, options):
    """Random bytes: what comes of the rows is not known, but the server lives and says something."""
    chance = random.Random(options.seed)

    def change(kind, event, transaction):
        body = bytearray(event)
        for _ in range(chance.randrange(3)):
            body[chance.randrange(4, len(body))] = chance.randrange(256)
        if chance.random() < 0.1:
            body = body[:chance.randrange(HEADER + 4, len(body) + 1)]
        return [sealed(bytes(body))]
    before, errors = memory(replica), 0
    for number in range(options.noise):
        relay.change = change
        rows(replica.port, "START REPLICA")
        rows(source.port, f"INSERT INTO d.noise VALUES ({number}, 'some text', '{{\"a\": [1, 2, {{\"b\": \"text\"}}]}}', 1.25, '2020-01-01 01:02:03.4', POINT(1, 2)); UPDATE d.noise SET t = 'other' WHERE id % 2 = 0; DELETE FROM d.noise WHERE id = {number - 3}")
        time.sleep(0.15)
        state = rows(replica.port, "SELECT Last_IO_Errno + Last_SQL_Errno FROM data_dictionary.REPLICA_STATUS")[0][0]
        errors += state != "0"
        rows(replica.port, "STOP REPLICA")
    grown = memory(replica) - before
    expect(f"memory grew by {grown} MiB", grown < 100, True)
    expect("it lives", (rows(replica.port, "SELECT 1"), errors > 0), ([["1"]], True))
    print(f"ok: {options.noise} rounds of noise, {errors} of them with an error, {grown} MiB more")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--noise", type=int, default=10)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    top = pathlib.Path(tempfile.mkdtemp())
    source = start(options.squalld, top, "source", "--log-bin", "--server-id=1")
    replica = start(options.squalld, top, "replica", "--log-bin", "--server-id=2")
    relay = Relay(source.port)
    try:
        rows(source.port, "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(400), n DECIMAL(20,3)); CREATE TABLE d.u (id INT PRIMARY KEY, t TEXT); "
                          "CREATE TABLE d.noise (id INT, t TEXT, j JSON, n DECIMAL(10,3), at DATETIME(3), p POINT)")
        rows(replica.port, f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {relay.port}, SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 60; START REPLICA")
        expect("the start", settled(replica, rows(source.port, "SELECT @@gtid_executed")[0][0]), None)
        rows(replica.port, "STOP REPLICA")
        faults(source, replica, relay)
        noise(source, replica, relay, options)
    finally:
        for server in (source, replica):
            server.process.terminate()
            server.process.wait()
    log = (top / "replica" / "log").read_text(errors="replace")
    expect("no panic", "panicked" in log, False)
    shutil.rmtree(top)


if __name__ == "__main__":
    main()
