#!/usr/bin/env python3
"""A change stream with the sink `kafka`: brokers that refuse, hang up before and after they keep a batch, and hand their partitions on, and a server that is
killed. What the topic has in the end are the rows of the tables; while the server lives, no record comes twice.

    tests/replication/kafka.py [--squalld target/debug/squalld] [--seed 1]
"""

import argparse
import base64
import hashlib
import hmac
import json
import pathlib
import random
import shutil
import socketserver
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import client, rows  # noqa: E402
from kill_loop import Server, free_port  # noqa: E402
from log_settings import expect, fails  # noqa: E402

PARTITIONS = 3
ACCOUNT = "writer", "only brokers know"
# The requests that are answered, and the versions that a broker of today would say it knows.
VERSIONS = {0: (3, 12), 3: (0, 13), 17: (0, 1), 18: (0, 4), 22: (0, 5), 36: (0, 2)}


def crc_table():
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        yield value


CRC = list(crc_table())


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def murmur2(data):
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    value = 0x9747B28C ^ len(data)
    for at in range(0, len(data) // 4 * 4, 4):
        k = int.from_bytes(data[at:at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        value = value * m & mask ^ k
    rest = data[len(data) // 4 * 4:]
    if rest:
        value = (value ^ int.from_bytes(rest, "little")) * m & mask
    value = (value ^ value >> 13) * m & mask
    return value ^ value >> 15


class Input:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        assert self.at + count <= len(self.data), "a request that is cut off"
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, form):
        return struct.unpack(">" + form, self.take(struct.calcsize(form)))[0]

    def text(self):
        length = self.number("h")
        return None if length < 0 else self.take(length).decode()

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value >> 1 ^ -(value & 1)

    def end(self):
        assert self.at == len(self.data), "bytes after a request"


def text(value):
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value.encode())) + value.encode()


def records_of(batch):
    """What a batch of records says, all of it checked."""
    data = Input(batch)
    assert data.number("q") == 0 and data.number("i") == len(batch) - 12 and data.number("i") == -1 and data.number("b") == 2
    assert data.number("I") == crc32c(batch[21:]), "the checksum is wrong"
    assert data.number("h") == 0
    last, first_at, last_at = data.number("i"), data.number("q"), data.number("q")
    assert abs(first_at / 1000 - time.time()) < 60 and first_at == last_at
    producer, epoch, sequence, count = data.number("q"), data.number("h"), data.number("i"), data.number("i")
    assert last == count - 1 and count > 0
    out = []
    for at in range(count):
        record = Input(data.take(data.varint()))
        assert record.number("b") == 0 and record.varint() == 0 and record.varint() == at
        key, value = record.take(record.varint()), record.take(record.varint())
        assert record.varint() == 0
        record.end()
        out.append((key, value))
    data.end()
    return producer, epoch, sequence, out


class Cluster:
    """A topic on brokers that share what they keep."""

    def __init__(self, tls=None):
        self.lock, self.tls = threading.Lock(), tls
        self.mechanisms, self.lies = {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}, False
        # What becomes of a batch after the other. Each failure makes the server wait for a second.
        self.faults = iter([None, "after", None, "leader", None, "error", None, "before"])
        self.partitions = [[] for _ in range(PARTITIONS)]
        self.leaders, self.sequences, self.producers, self.wrong = [1, 2, 1], {}, 100, []
        self.requests = self.failed = self.repeated = self.halved = 0
        self.bytes_max = 1 << 20
        self.brokers = {}
        for number in (1, 2):
            self.start(number, 0)

    def start(self, number, port):
        broker = socketserver.ThreadingTCPServer(("127.0.0.1", port), Handler, bind_and_activate=False)
        broker.allow_reuse_address = broker.daemon_threads = True
        broker.server_bind()
        broker.server_activate()
        broker.cluster, broker.number, broker.open = self, number, []
        self.brokers[number] = broker
        threading.Thread(target=broker.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self):
        """All brokers hang up, and are not there until `start`. Gives their ports."""
        ports = {number: broker.server_address[1] for number, broker in self.brokers.items()}
        for broker in self.brokers.values():
            broker.shutdown()
            broker.server_close()
            for connection in broker.open:
                try:
                    connection.shutdown(2)
                except OSError:
                    pass
        return ports

    def url(self):
        addresses = ",".join(f"127.0.0.1:{broker.server_address[1]}" for broker in self.brokers.values())
        return f"kafka{'+ssl' if self.tls else ''}://{addresses}/changes"

    def keep(self, partition, batch):
        """Keeps a batch, or says what a broker would say. The second is whether to hang up instead of answering."""
        producer, epoch, sequence, records = records_of(batch)
        fault = next(self.faults, None)
        if len(batch) > self.bytes_max:
            self.halved += 1
            return 10, False
        self.failed += fault is not None
        if fault == "leader":
            self.leaders[partition] = 3 - self.leaders[partition]
            return 6, False
        if fault in ("error", "before"):
            return (7, False) if fault == "error" else (0, True)
        assert producer > 100 and epoch == 0, (producer, epoch)
        wanted = self.sequences.get((producer, partition), 0)
        if sequence != wanted:
            # The last batch again, whose answer was lost.
            assert sequence + len(records) == wanted, (sequence, wanted)
            self.repeated += 1
            return 46, False
        self.sequences[producer, partition] = sequence + len(records)
        self.partitions[partition] += records
        return 0, fault == "after"


class Scram:
    """A broker's side of RFC 5802."""

    def __init__(self, mechanism, lies):
        self.hash, self.lies, self.first = mechanism.removeprefix("SCRAM-").replace("-", "").lower(), lies, None

    def sign(self, key, data):
        return hmac.new(key, data.encode(), self.hash).digest()

    def hear(self, message):
        """What is answered, None for a refusal, and whether the client is known then."""
        if self.first is None:
            user, nonce = message.removeprefix("n,,").split(",")
            assert message.startswith("n,,n=") and nonce.startswith("r=") and len(nonce) > 20, message
            if user != f"n={ACCOUNT[0]}":
                return None, False
            self.first, self.nonce = message[3:], nonce + "server"
            self.challenge = f"{self.nonce},s={base64.b64encode(b'some salt').decode()},i=4096"
            return self.challenge, False
        start, proof = message.rsplit(",p=", 1)
        assert start == f"c=biws,{self.nonce}", message
        salted = hashlib.pbkdf2_hmac(self.hash, ACCOUNT[1].encode(), b"some salt", 4096)
        everything = f"{self.first},{self.challenge},{start}"
        key = self.sign(salted, "Client Key")
        signature = self.sign(hashlib.new(self.hash, key).digest(), everything)
        if base64.b64decode(proof) != bytes(left ^ right for left, right in zip(key, signature)):
            return None, False
        said = self.sign(self.sign(salted, "Server Key"), everything)
        return "v=" + base64.b64encode(said[::-1] if self.lies else said).decode(), True


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        cluster, connection = self.server.cluster, self.request
        try:
            if cluster.tls:
                connection = cluster.tls.wrap_socket(connection, server_side=True)
            self.server.open.append(connection)
            with connection, connection.makefile("rb") as source:
                self.known = cluster.tls is None
                while len(head := source.read(4)) == 4:
                    request = Input(source.read(struct.unpack(">i", head)[0]))
                    with cluster.lock:
                        answer = self.answer(cluster, request)
                    if answer is None:
                        return
                    connection.sendall(struct.pack(">i", len(answer)) + answer)
        except OSError:
            pass
        except (AssertionError, KeyError, ValueError, IndexError, struct.error) as error:
            cluster.wrong.append(repr(error)[:2000])

    def answer(self, cluster, request):
        cluster.requests += 1
        api, version, correlation, name = request.number("h"), request.number("h"), request.number("i"), request.text()
        least, most = VERSIONS[api]
        assert least <= version <= most and name == "squall", (api, version, name)
        assert self.known or api in (17, 18, 36), "a request before the log-in"
        head = struct.pack(">i", correlation)
        if api == 18:
            request.end()
            return head + struct.pack(">hi", 0, len(VERSIONS)) + b"".join(struct.pack(">hhh", key, *known) for key, known in VERSIONS.items())
        if api == 17:
            mechanism = request.text()
            self.scram = Scram(mechanism, cluster.lies) if mechanism.startswith("SCRAM-") else None
            return head + struct.pack(">h", 0 if mechanism in cluster.mechanisms else 33) + struct.pack(">i", 1) + text("PLAIN")
        if api == 36:
            given = request.take(request.number("i")).decode()
            if self.scram:
                said, self.known = self.scram.hear(given)
            else:
                said, self.known = "", given.split("\0") == ["", *ACCOUNT]
            if said is None or not (said or self.known):
                return head + struct.pack(">h", 58) + text("no such account") + struct.pack(">i", 0)
            return head + struct.pack(">h", 0) + text(None) + struct.pack(">i", len(said)) + said.encode()
        if api == 22:
            assert request.text() is None
            cluster.producers += 1
            return head + struct.pack(">ihqh", 0, 0, cluster.producers, 0)
        body = self.metadata(cluster, request) if api == 3 else self.produce(cluster, request)
        return None if body is None else head + body

    def metadata(self, cluster, request):
        assert request.number("i") == 1 and request.text() == "changes"
        out = struct.pack(">ii", 0, len(cluster.brokers))
        for number, broker in cluster.brokers.items():
            out += struct.pack(">i", number) + text("127.0.0.1") + struct.pack(">i", broker.server_address[1]) + text(None)
        out += text("cluster") + struct.pack(">iih", 1, 1, 0) + text("changes") + struct.pack(">bi", 0, PARTITIONS)
        for number, leader in enumerate(cluster.leaders):
            out += struct.pack(">hiiiiii", 0, number, leader, 1, leader, 1, leader)
        return out

    def produce(self, cluster, request):
        assert request.text() is None and request.number("h") == -1 and request.number("i") == 10_000
        assert request.number("i") == 1 and request.text() == "changes"
        answers, hangs_up = b"", False
        count = request.number("i")
        for _ in range(count):
            partition = request.number("i")
            batch = request.take(request.number("i"))
            code = 6
            if cluster.leaders[partition] == self.server.number:
                code, also = cluster.keep(partition, batch)
                hangs_up |= also
            answers += struct.pack(">ihqq", partition, code, 0, -1)
        request.end()
        return None if hangs_up else struct.pack(">i", 1) + text("changes") + struct.pack(">i", count) + answers + struct.pack(">i", 0)


class Copy:
    """The rows that a topic's records make; each partition has its own."""

    def __init__(self, cluster, once):
        self.rows, self.counts, self.commits = {}, {}, {}
        for number, records in enumerate(cluster.partitions):
            seen = set()
            for key, value in records:
                self.take(number, json.loads(key), key, json.loads(value), seen, once)
        for gtid, commit in self.commits.items():
            assert len(self.counts.get(gtid, ())) == commit, (gtid, commit)

    def take(self, number, key, raw, event, seen, once):
        op = event["op"]
        if op == "commit":
            assert number == 0
            self.commits[event["gtid"]] = event["events"]
        if op == "truncate" or op == "ddl":
            self.counts.setdefault(event["gtid"], set()).add(event["n"])
        if op not in ("read", "insert", "update", "delete"):
            assert key == {"op": op}, key
            return
        assert murmur2(raw) % 2**31 % PARTITIONS == number, key
        assert (key["schema"], key["table"]) == (event["schema"], event["table"])
        place = key["table"], json.dumps(key["key"])
        if op == "read":
            self.rows[place] = event["after"]
            return
        change = event["gtid"], event["n"], raw
        assert not once or change not in seen, change
        self.counts.setdefault(event["gtid"], set()).add(event["n"])
        if change in seen:
            return
        seen.add(change)
        moved = event.get("new_key", event["key"])
        assert key["key"] in (event["key"], moved), event
        if op == "delete" or key["key"] != moved:
            self.rows.pop(place, None)
        else:
            self.rows[place] = event["after"]


def load(port, seed, stop):
    chance = random.Random(seed)
    while not stop.is_set():
        key = chance.randrange(200)
        text = [f"BEGIN; REPLACE INTO d.t VALUES ({key}, 'x', {chance.random()}); INSERT INTO d.u VALUES ({key}) ON DUPLICATE KEY UPDATE a = a + 1000; COMMIT",
                f"UPDATE d.t SET id = id + 1000, c = 'moved' WHERE id = {key}",
                f"DELETE FROM d.t WHERE id IN ({key}, {key + 1000})", f"UPDATE d.t SET c = CONCAT(c, 'y') WHERE id % 7 = {key % 7} LIMIT 20"]
        subprocess.run(client(port, "-e", chance.choice(text)), capture_output=True)


def until(what, test, cluster):
    for _ in range(400):
        if cluster.wrong:
            raise SystemExit(f"{what}: {cluster.wrong[0]}")
        if test():
            return
        time.sleep(0.1)
    raise SystemExit(f"{what}: not within 40 seconds")


def stream(name):
    return f"FROM data_dictionary.CHANGE_STREAMS WHERE STREAM_NAME = '{name}'"


def run_load(port, seed, seconds):
    stop = threading.Event()
    threads = [threading.Thread(target=load, args=(port, f"{seed}{at}", stop)) for at in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    return stop, threads


def delivered(port, name, cluster):
    wanted = rows(port, "SELECT @@gtid_executed")[0][0].replace("\\n", "")
    until("all is delivered", lambda: rows(port, f"SELECT CONFIRMED_GTID_SET {stream(name)}") == [[wanted]], cluster)


def compare(port, cluster, once):
    copy = Copy(cluster, once)
    there = {("t", json.dumps({"id": int(key)})): c for key, c in rows(port, "SELECT id, c FROM d.t")}
    there.update({("u", json.dumps({"a": int(key)})): None for (key,) in rows(port, "SELECT a FROM d.u")})
    came = {key: row.get("c") for key, row in copy.rows.items() if key[0] in "tu"}
    assert came == there, ({key: came.get(key) for key in came if came.get(key) != there.get(key)}, set(there) - set(came))
    return copy


def authority(data):
    """The certificate for 127.0.0.1 that the server made itself, and the authority that signed it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(data / "server-cert.pem", data / "server-key.pem")
    return context, (data / "ca.pem").read_text()


def over_tls(port, folder):
    context, ca = authority(folder / "data")
    cluster = Cluster(context)
    cluster.faults = iter(())
    create = f"CREATE CHANGE STREAM s FOR TABLE d.u FROM SNAPSHOT WITH (sink = 'kafka', url = '{cluster.url()}'"
    user = f"user = '{ACCOUNT[0]}', password = '{ACCOUNT[1]}'"
    for options, why in [(user, "certificate"), (f"ca = '{ca}', user = 'writer', password = 'wrong'", "no such account")]:
        rows(port, f"{create}, {options})")
        until(why, lambda: why in str(rows(port, f"SELECT LAST_ERROR {stream('s')}")[0][0]), cluster)
        rows(port, "DROP CHANGE STREAM s")
    # The password is not sent, and a broker that does not know it is found out.
    cluster.mechanisms.remove("PLAIN")
    for options, lies, why in [(user, False, "log-in"), (user.replace("only", "not only") + ", mechanism = 'SCRAM-SHA-256'", False, "no such account"),
                               (f"{user}, mechanism = 'scram-sha-512'", True, "does not know the password")]:
        cluster.lies = lies
        rows(port, f"{create}, ca = '{ca}', {options})")
        until(why, lambda: why in str(rows(port, f"SELECT LAST_ERROR {stream('s')}")[0][0]), cluster)
        rows(port, "DROP CHANGE STREAM s")
    cluster.lies = False
    for kind in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        before = sum(map(len, cluster.partitions))
        rows(port, f"{create}, ca = '{ca}', {user}, mechanism = '{kind}')")
        until(kind, lambda: sum(map(len, cluster.partitions)) > before, cluster)
        rows(port, "DROP CHANGE STREAM s")
    cluster.mechanisms.add("PLAIN")
    # Brokers that ask for a certificate: that of a server serves as one of a client.
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(folder / "data" / "ca.pem")
    certificate, key = ((folder / "data" / f"client-{kind}.pem").read_text() for kind in ("cert", "key"))
    rows(port, f"{create}, ca = '{ca}', {user})")
    until("without a certificate", lambda: rows(port, f"SELECT LAST_ERROR {stream('s')}")[0][0], cluster)
    rows(port, f"ALTER CHANGE STREAM s WITH (certificate = '{certificate}', private_key = '{key}')")
    shown = rows(port, "SHOW CREATE CHANGE STREAM s")[0][1]
    assert "PRIVATE KEY" not in shown and "BEGIN CERTIFICATE" in shown, shown
    until("with a certificate", lambda: not rows(port, f"SELECT LAST_ERROR {stream('s')}")[0][0], cluster)
    rows(port, "DROP CHANGE STREAM s")
    context.verify_mode = ssl.CERT_NONE
    rows(port, f"{create}, ca = '{ca}', {user})")
    until("the snapshot", lambda: any(b"snapshot_end" in key for key, _ in cluster.partitions[1]), cluster)
    assert ACCOUNT[1] not in rows(port, "SHOW CREATE CHANGE STREAM s")[0][1]
    assert sum(map(len, cluster.partitions)) > 5, cluster.partitions
    rows(port, "DROP CHANGE STREAM s")
    cluster.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    folder, port = pathlib.Path(tempfile.mkdtemp()), free_port()
    more = ("--log-bin", "--plugin-add=kafka")
    cluster = Cluster()
    server = Server(options.squalld, folder, port, more)
    try:
        rows(port, "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, c VARCHAR(99), r DOUBLE); CREATE TABLE d.u (a INT PRIMARY KEY); INSERT INTO d.u VALUES (1), (2), (3)")
        for wrong in ["", ", url = 'kafka://h'", ", url = 'http://h/t'", ", url = 'kafka://h/t', user = 'u'", ", url = 'kafka://h/t', other = 1"]:
            fails(port, f"CREATE CHANGE STREAM s WITH (sink = 'kafka'{wrong})", 1210)
        rows(port, f"CREATE CHANGE STREAM s FOR SCHEMA d FROM SNAPSHOT WITH (sink = 'kafka', url = '{cluster.url()}', batch_events = 50)")
        # Whatever brokers do, a server that lives sends nothing twice.
        stop, threads = run_load(port, options.seed, 1)
        stop.set()
        for thread in threads:
            thread.join()
        delivered(port, "s", cluster)
        compare(port, cluster, True)
        assert cluster.failed and cluster.repeated, (cluster.failed, cluster.repeated)
        # One that is killed sends the last again.
        stop, threads = run_load(port, f"{options.seed}k", 0.7)
        server.kill()
        stop.set()
        for thread in threads:
            thread.join()
        server = Server(options.squalld, folder, port, more)
        # A batch that the topic does not take as a whole.
        cluster.bytes_max = 20_000
        rows(port, "ALTER CHANGE STREAM s WITH (batch_events = 1000)")
        rows(port, "CREATE TABLE d.w (a INT PRIMARY KEY, b TEXT); INSERT INTO d.w WITH RECURSIVE n AS "
                   "(SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i, REPEAT('b', 100) FROM n")
        delivered(port, "s", cluster)
        copy = compare(port, cluster, False)
        assert cluster.halved and sum(key[0] == "w" for key in copy.rows) == 500
        # Nobody listens: the stream says so, and goes on when somebody does.
        ports = cluster.stop()
        rows(port, "INSERT INTO d.u VALUES (5000)")
        until("a failure", lambda: rows(port, f"SELECT LAST_ERROR {stream('s')}")[0][0], cluster)
        for number, at in ports.items():
            cluster.start(number, at)
        delivered(port, "s", cluster)
        compare(port, cluster, False)
        expect("no error", rows(port, f"SELECT LAST_ERROR, SINK {stream('s')}"), [["", "kafka"]])
        rows(port, "DROP CHANGE STREAM s")
        cluster.stop()
        over_tls(port, folder)
        print(f"kafka: {cluster.requests} requests, {cluster.failed} failures, {cluster.repeated} batches came again, {cluster.halved} halved; "
              f"{len(copy.commits)} transactions and {len(copy.rows)} rows are the same")
    finally:
        if server.process.poll() is None:
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
