#!/usr/bin/env python3
"""CLONE INSTANCE of encrypted servers, into encrypted ones, and into one that archives its log: each side keeps its own keys, and nothing is plain where it should not be.

    tests/replication/clone_encrypted.py [--squalld target/debug/squalld]
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import rows  # noqa: E402
from clone import allow, clone, run, wait_end  # noqa: E402
from kill_loop import Server, free_port  # noqa: E402
from log_settings import expect  # noqa: E402

MARKER = "marker that a plain file shows"


def files_with_marker(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and MARKER.encode() in path.read_bytes())


class Place:
    """A server with its own keyring, perhaps, and its options."""

    def __init__(self, squalld, top, name, number, encrypted, *more):
        self.squalld, self.folder = squalld, top / name
        self.folder.mkdir()
        self.port, self.options = free_port(), ["--log-bin", f"--server-id={number}", *more]
        if encrypted:
            (self.folder / "keys").mkdir(mode=0o700)
            self.options.append(f"--keyring-file-data={self.folder / 'keys' / 'keyring'}")
        self.start()
        expect(f"{name} is encrypted", rows(self.port, "SELECT @@storage_encryption"), [["1" if encrypted else "0"]])

    def start(self):
        self.server = Server(self.squalld, self.folder, self.port, self.options)

    def stop(self):
        self.server.process.terminate()
        self.server.process.wait()

    def take(self, donor):
        allow(donor, self)
        expect("it stops", run(self.port, clone(donor)).split(" at ")[0], "ERROR 3707 (HY000)")
        wait_end(self.server)
        self.start()
        same(donor, self)


def same(donor, clone):
    for question in ("SELECT * FROM d.t ORDER BY id", "CHECKSUM TABLE d.big", "SELECT @@gtid_executed", "SELECT @@max_connections"):
        expect(question, rows(clone.port, question), rows(donor.port, question))
    # It can be written to, and checked.
    rows(clone.port, f"INSERT INTO d.t (a) VALUES ('{MARKER}, here'); DELETE FROM d.t WHERE a LIKE '%here'")
    expect("CHECK TABLE", {row[3] for row in rows(clone.port, "CHECK TABLE d.t, d.big")}, {"OK"})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    options = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp())
    archive = top / "archive"
    archive.mkdir()
    places = []

    def place(name, encrypted, *more):
        places.append(Place(options.squalld, top, name, len(places) + 1, encrypted, *more))
        return places[-1]
    try:
        donor = place("donor", True)
        rows(donor.port, f"CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(99)) ENCRYPTION='Y'; INSERT INTO d.t (a) VALUES ('{MARKER}'), ('b');"
                         f"CREATE TABLE d.big (id INT PRIMARY KEY, t LONGTEXT); INSERT INTO d.big VALUES (1, REPEAT('{MARKER}', 60000)), (2, 'x');"
                         "CREATE USER cloner@'%' IDENTIFIED BY 'pw ''x'; GRANT BACKUP_ADMIN ON *.* TO cloner@'%'; SET PERSIST max_connections = 321")
        # From an encrypted one into one with another key.
        sealed = place("sealed", True, f"--log-archive-directory={archive}")
        rows(sealed.port, f"CREATE DATABASE old; CREATE TABLE old.t (a TEXT); INSERT INTO old.t VALUES ('{MARKER}, old')")
        allow(donor, sealed)
        refused = run(sealed.port, clone(donor, " REQUIRE NO SSL"))
        expect("without TLS", refused.split(" : ")[0], "ERROR 3862 (HY000) at line 1: Clone Donor Error: 3872")
        expect("the data stays", rows(sealed.port, "SELECT COUNT(*) FROM old.t"), [["1"]])
        sealed.take(donor)
        for one in (donor, sealed):
            expect("files that are plain", files_with_marker(one.folder), [])
        # What was archived is apart, and another archive has begun.
        ended = list(archive.glob("before-clone-*"))
        expect("archives that have ended", len(ended), 1)
        expect("their files", (ended[0] / "identity").exists() and any(ended[0].glob("wal-*")), True)
        expect("the new archive", (archive / "identity").read_text() != (ended[0] / "identity").read_text(), True)
        expect("files that are plain", files_with_marker(archive), [])
        rows(sealed.port, f"BACKUP DATABASE TO '{top / 'backup'}'; INSERT INTO d.t (a) VALUES ('after the backup')")
        # Its own keyring opens it, after a restart too; the donor's does not.
        sealed.stop()
        wrong = subprocess.run([options.squalld, f"--datadir={sealed.folder / 'data'}", f"--port={sealed.port}", f"--keyring-file-data={donor.folder / 'keys' / 'keyring'}"],
                               capture_output=True, text=True, timeout=60)
        expect("the donor's keyring", "3185" in wrong.stdout + wrong.stderr or "keyring" in wrong.stdout + wrong.stderr, True)
        restored = ["--restore-from=" + str(top / "backup"), "--restore-archive=" + str(archive), f"--keyring-file-data={sealed.folder / 'keys' / 'keyring'}"]
        subprocess.run([options.squalld, f"--datadir={top / 'restored'}", *restored], check=True, capture_output=True, timeout=60)
        sealed.start()
        expect("after a restart", rows(sealed.port, "SELECT COUNT(*) FROM d.t WHERE a = 'after the backup'"), [["1"]])
        # Into one without a keyring, and from that into an encrypted one.
        plain = place("plain", False)
        plain.take(donor)
        expect("files that are plain", files_with_marker(plain.folder) != [], True)
        again = place("again", True)
        again.take(plain)
        expect("files that are plain", files_with_marker(again.folder), [])
        # To a directory: the key is that of the server that wrote it.
        allow(plain, again)
        expect("to a directory", run(again.port, clone(plain, f" DATA DIRECTORY = '{top / 'directory'}'")), "")
        expect("files that are plain", files_with_marker(top / "directory"), [])
        print("clones of and into encrypted servers: each has its own keys, and what is sealed stays so")
    finally:
        for one in places:
            one.server.process.kill()
        shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    main()
