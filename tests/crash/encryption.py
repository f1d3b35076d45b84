#!/usr/bin/env python3
"""Encryption at rest on the real server: a marker is written everywhere and must be in no file; kill, rotation beside writers, backup, restore, a lost and a
wrong keyring.

    tests/crash/encryption.py [--squalld target/debug/squalld]

The same work on a server without a keyring must leave the marker in each of those files, else the search finds nothing by mistake.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading

import kill_loop
from kill_loop import free_port

MARKER = "PlainTextMarkerThatNobodyMayRead"
# What has to hold the marker on a plain server: the files of these folders, by the beginning of their names.
PLACES = ["data/storage/space", "data/storage/wal-", "data/storage/undo-", "data/binary-log/binlog.0", "spill", "backup/space", "backup/wal-"]
TIMEOUT = 120


# Servers and clients that were started: none outlives the test, however it ends.
STARTED = []


class Server(kill_loop.Server):
    """A server that refuses itself the calls to the kernel that it does not need: what is tested here works without them."""

    def __init__(self, program, folder, port, extra=()):
        STARTED.append(self)
        super().__init__(program, folder, port, ("--seccomp", *extra))


def end_all():
    for one in STARTED:
        process = getattr(one, "process", one)
        if isinstance(process, subprocess.Popen) and process.poll() is None:
            process.kill()
            process.wait()


def expect(condition, *what):
    if not condition:
        raise SystemExit(f"encryption: {what}")


def run(port, sql, check=True):
    command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-N"]
    done = subprocess.run(command, input=sql, capture_output=True, text=True, timeout=TIMEOUT)
    if check:
        expect(not done.stderr, sql[:200], done.stderr)
    return done.stdout.strip() if check else done.stderr


def has_marker(data):
    return MARKER.encode() in data


def spill_of(process):
    """The unnamed files of a process."""
    found = []
    for entry in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            if "(deleted)" in os.readlink(entry):
                found.append(entry.read_bytes())
        except OSError:
            pass
    return found


class Spilling:
    """A cursor over a large sort, so that its files stay open."""

    def __init__(self, server, folder):
        sql = ("SET SESSION sort_buffer_size = 32768; SELECT a.v, b.i FROM m.t a, m.t b ORDER BY a.w, b.v, a.i DESC, b.i;\n")
        command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{server.port}", "-uroot", "-N", "--quick"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        STARTED.append(self.process)
        self.process.stdin.write(sql.encode())
        self.process.stdin.close()
        # Rows come when all is sorted; the client stops reading after the first.
        expect(self.process.stdout.read(1), "no row of the sort")
        self.files = spill_of(server.process)

    def end(self):
        self.process.kill()
        self.process.wait()


def fill(server):
    run(server.port, f"""
        CREATE DATABASE m;
        CREATE TABLE m.t (i INT PRIMARY KEY, v VARCHAR(60), w VARCHAR(60), l LONGTEXT, KEY (v), FULLTEXT (w));
        SET cte_max_recursion_depth = 100000;
        INSERT INTO m.t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
            SELECT i, CONCAT('{MARKER}', i), CONCAT('{MARKER} w', i), IF(i % 50, NULL, REPEAT('{MARKER}', 3000)) FROM n;
        """)


def open_transaction(server):
    """A transaction with so much undo that it goes to a file, left open."""
    command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{server.port}", "-uroot", "-N", "-n"]
    client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    STARTED.append(client)
    client.stdin.write("BEGIN; UPDATE m.t SET l = REPEAT('x', 3000), v = CONCAT('y', i), w = 'z'; UPDATE m.t SET l = REPEAT('u', 4000); "
                       + "".join(f"UPDATE m.t SET l = CONCAT('{MARKER}', {n}, REPEAT('{MARKER}', 100)); " for n in range(3)) + "SELECT 'open';\n")
    client.stdin.flush()
    expect(client.stdout.readline().strip() == "open", "no transaction")
    return client


def written(folder, files):
    """Name and content of everything that was written."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in ("log", "keys"):
            yield str(path.relative_to(folder)), path.read_bytes()
    yield from (("spill", data) for data in files)


def work(program, folder, more):
    """Writes the marker everywhere and returns the server and where the marker was found."""
    options = ("--json-server-port=0", "--log-bin", f"--log-archive-directory={folder / 'archive'}", f"--tmpdir={folder}", *more)
    server = Server(program, folder, free_port(), options)
    fill(server)
    # A stop writes all pages.
    server.process.terminate()
    server.process.wait()
    server = Server(program, folder, server.port, options)
    spilling = Spilling(server, folder)
    expect(spilling.files, "the sort made no files")
    client = open_transaction(server)
    run(server.port, f"SHOW BINARY LOGS; BACKUP DATABASE TO '{folder / 'backup'}'; DO SLEEP(1)")
    found = {name for name, data in written(folder, spilling.files) if has_marker(data)}
    spilling.end()
    client.kill()
    client.wait()
    return server, options, found


def check_rows(port):
    expect(run(port, "SELECT COUNT(*), SUM(v = CONCAT('%s', i)), SUM(LENGTH(l)) FROM m.t; CHECK TABLE m.t" % MARKER)
           == f"1000\t1000\t{20 * 3000 * len(MARKER)}\nm.t\tcheck\tstatus\tOK", "rows differ")


def rotate_beside_writers(server):
    stops = threading.Event()

    def write():
        while not stops.is_set():
            run(server.port, f"UPDATE m.t SET w = IF(RAND() < 0.5, w, CONCAT('{MARKER} w', i)) WHERE i < 50; INSERT INTO m.n VALUES (NULL, '{MARKER}'); ", check=False)

    run(server.port, "CREATE TABLE m.n (i INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(60))")
    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    backups = server.folder / "rotated"
    for turn in range(5):
        run(server.port, "ALTER INSTANCE ROTATE INNODB MASTER KEY")
        if turn == 2:
            run(server.port, f"BACKUP DATABASE TO '{backups}'")
    run(server.port, "ALTER INSTANCE ROTATE BINLOG MASTER KEY")
    stops.set()
    for writer in writers:
        writer.join()
    found = [name for name, data in written(server.folder, []) if has_marker(data)]
    expect(backups.exists() and not found, "the marker beside rotations is in", found)


def refused(program, folder, options, text):
    """The server does not start, says why, and leaves all as it is."""
    def state():
        return {name: data for name, data in written(folder / "data" / "storage", [])}

    before = state()
    command = [program, f"--datadir={folder / 'data'}", f"--port={free_port()}", f"--socket={folder / 's'}", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    expect(done.returncode and text in done.stdout + done.stderr, "no refusal", text, done.stdout[-2000:], done.stderr[-2000:])
    expect(state() == before, "a refused start changed files")


def encrypted(program, folder):
    keys = folder.parent / "keys"
    server, options, found = work(program, folder, (f"--keyring-file-data={keys}",))
    expect(not found, "the marker is in", found)
    expect(run(server.port, "SELECT @@storage_encryption; SELECT COUNT(*) FROM performance_schema.keyring_keys")
           == "1\n1", "the server does not say that it encrypts")
    expect("\tYes" in run(server.port, "SHOW BINARY LOGS"), "the binary log is not shown as encrypted")
    expect(oct(keys.stat().st_mode & 0o777) == "0o600", "others can read the keyring")
    run(server.port, "CREATE TABLE m.y (i INT) ENCRYPTION='Y'; CREATE TABLE m.z (i INT) ENCRYPTION='n'")
    expect(run(server.port, "SHOW CREATE TABLE m.y").endswith("COLLATE=utf8mb4_0900_ai_ci /*!80016 ENCRYPTION='Y' */"), "SHOW CREATE TABLE")
    expect("ENCRYPTION" not in run(server.port, "SHOW CREATE TABLE m.z"), "SHOW CREATE TABLE of ENCRYPTION='N'")
    expect("Note\t1618" in run(server.port, "CREATE TABLE m.p (i INT) ENCRYPTION='N'; SHOW WARNINGS"), "nothing says that ENCRYPTION='N' is encrypted too")
    run(server.port, "CREATE DATABASE e DEFAULT ENCRYPTION='Y'; CREATE TABLE e.t (i INT); CREATE TABLE e.l LIKE e.t; ALTER DATABASE e DEFAULT ENCRYPTION='N'; CREATE TABLE e.n (i INT)")
    expect(run(server.port, "SELECT TABLE_NAME, CREATE_OPTIONS FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'e' ORDER BY 1")
           == "l\tENCRYPTION='Y'\nn\t\nt\tENCRYPTION='Y'", "DEFAULT ENCRYPTION of a database")
    run(server.port, "ALTER INSTANCE RELOAD KEYRING")
    held = keys.with_name("held")
    keys.rename(held)
    expect("ERROR 4035" in run(server.port, "ALTER INSTANCE RELOAD KEYRING", check=False), "a lost keyring was reloaded")
    held.rename(keys)
    run(server.port, "ALTER INSTANCE RELOAD KEYRING")
    run(server.port, "ALTER TABLE m.z ENCRYPTION='Y'")
    expect(run(server.port, "SELECT CREATE_OPTIONS FROM information_schema.TABLES WHERE TABLE_NAME = 'z' AND TABLE_SCHEMA = 'm'") == "ENCRYPTION='Y'",
           "CREATE_OPTIONS")
    first = keys.read_bytes()
    server.kill()
    server = Server(program, folder, free_port(), options)
    check_rows(server.port)
    rotate_beside_writers(server)
    expect(len(keys.read_text().splitlines()) == 9, "not a key for each rotation")
    server.kill()
    server = Server(program, folder, free_port(), options)
    check_rows(server.port)
    server.process.terminate()
    server.process.wait()
    check = subprocess.run([program, f"--datadir={folder / 'data'}", "--port=0", "--check"], capture_output=True, text=True, timeout=TIMEOUT)
    expect(check.returncode and "no keyring was named" in check.stdout, "--check", check.stdout)
    without = [option for option in options if not option.startswith("--keyring")]
    lost = folder.parent / "lost"
    refused(program, folder, without, "no keyring was named")
    refused(program, folder, [*without, f"--keyring-file-data={lost}"], "has no key")
    # The newest key under its name, with other bytes.
    lines = keys.read_text().splitlines()
    newest = (folder / "data/storage/encryption-key").read_text().splitlines()[1].split()[1]
    lost.write_text(keyring([line if newest not in line else f"key {newest} {'00' * 32}" for line in lines[:-1]]))
    lost.chmod(0o600)
    refused(program, folder, [*without, f"--keyring-file-data={lost}"], "does not open it")
    lost.write_bytes(first)
    refused(program, folder, [*without, f"--keyring-file-data={lost}"], "has no key")
    restore(program, folder, folder / "backup", [f"--keyring-file-data={lost}"], True)
    # With the log archived since, under the keyring of today; and to a directory that is not encrypted: there is none without a keyring.
    restore(program, folder, folder / "backup", [f"--keyring-file-data={keys}", f"--restore-archive={folder / 'archive'}"], True)


def keyring(lines):
    """The text of a keyring with a right checksum (docs/format/encryption.md)."""
    body = "".join(f"{line}\n" for line in lines)
    value = 0xFFFFFFFF
    for byte in body.encode():
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return f"{body}end {value ^ 0xFFFFFFFF:08x}\n"


def restore(program, folder, backup, options, is_encrypted):
    target = folder.parent / "restored"
    target.mkdir()
    command = [program, f"--datadir={target / 'data'}", f"--restore-from={backup}", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    expect(not done.returncode, "no restore", done.stdout[-2000:], done.stderr[-2000:])
    keyring = [option for option in options if option.startswith("--keyring")]
    server = Server(program, target, free_port(), ("--json-server-port=0", *keyring))
    check_rows(server.port)
    expect(run(server.port, "SELECT @@storage_encryption") == str(int(is_encrypted)), "encrypted or not")
    server.process.terminate()
    server.process.wait()
    found = [name for name, data in written(target, []) if has_marker(data)]
    expect(bool(found) != is_encrypted, "the marker after a restore", found)
    shutil.rmtree(target)


def plain(program, folder):
    server, options, found = work(program, folder, ())
    for place in PLACES:
        expect(any(name.startswith(place) for name in found), "the marker is not in", place, found)
    expect("ERROR 3185" in run(server.port, "ALTER INSTANCE ROTATE INNODB MASTER KEY", check=False), "rotated without a keyring")
    server.process.terminate()
    server.process.wait()
    # How a plain directory becomes an encrypted one.
    made = f"--keyring-file-data={folder.parent / 'made'}"
    restore(program, folder, folder / "backup", [made], True)
    restore(program, folder, folder / "backup", [made, f"--restore-archive={folder / 'archive'}"], True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    options = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp())
    for step in (plain, encrypted):
        folder = top / step.__name__ / "own"
        folder.mkdir(parents=True)
        try:
            step(options.squalld, folder)
        finally:
            end_all()
        print(f"{step.__name__}: passed", flush=True)
    shutil.rmtree(top)


if __name__ == "__main__":
    main()
