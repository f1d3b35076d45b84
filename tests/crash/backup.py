#!/usr/bin/env python3
"""Backup and restore on the real server: a backup beside writers, restored with and without the log archived since, up to a moment; KILL of a
backup; damage.

    tests/crash/backup.py [--squalld target/debug/squalld]
"""

import argparse
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

from kill_loop import Server, free_port

THREADS = 3


def run(port, sql, check=True):
    command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-N"]
    done = subprocess.run(command, input=sql, capture_output=True, text=True)
    if check:
        expect(not done.stderr, sql, done.stderr)
    return done.stdout.strip() if check else done.stderr


def expect(condition, *what):
    if not condition:
        raise SystemExit(f"backup: {what}")


class Writers:
    """Each transaction moves an amount between two accounts and leaves a line in the journal: the sum never changes."""

    def __init__(self, port):
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.write, args=(port, number)) for number in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def write(self, port, number):
        script = "\n".join(
            f"BEGIN; UPDATE bank.account SET amount = amount - {at % 7} WHERE id = {at % 50}; "
            f"UPDATE bank.account SET amount = amount + {at % 7} WHERE id = {(at * 31 + number) % 50}; "
            f"INSERT INTO bank.journal (writer, step) VALUES ({number}, {at}); COMMIT;"
            for at in range(40)
        )
        while not self.stop.is_set():
            # Deadlocks roll a transaction back and the script goes on.
            command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-f", "-e", script]
            subprocess.run(command, capture_output=True, text=True)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()


def restore(squalld, backup, target, *options, wanted=0):
    command = [squalld, f"--datadir={target}", f"--restore-from={backup}", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    expect((done.returncode == 0) == (wanted == 0), done.returncode, done.stderr)
    return done.stderr


def consistent(port):
    """What holds in every committed state. Returns the journal's length."""
    expect(run(port, "SELECT SUM(amount) FROM bank.account") == "5000", "the sum")
    for table in ("account", "journal"):
        expect("OK" in run(port, f"CHECK TABLE bank.{table}"), table)
    return int(run(port, "SELECT COUNT(*) FROM bank.journal"))


def look(squalld, folder, data, what):
    """Runs a server on a data directory."""
    port = free_port()
    server = Server(squalld, folder / data, port)
    try:
        return what(port)
    finally:
        server.process.terminate()
        server.process.wait()


def place(folder, name):
    """Where `Server` finds its data directory."""
    (folder / name).mkdir()
    return folder / name / "data"


def killed(port, folder):
    """KILL stops a backup, and what it wrote goes with it."""
    errors = []
    target = folder / "killed"
    thread = threading.Thread(target=lambda: errors.append(run(port, f"BACKUP DATABASE TO '{target}'", check=False)))
    thread.start()
    for _ in range(2000):
        found = run(port, "SELECT id FROM information_schema.processlist WHERE state = 'Backing up'")
        if found:
            run(port, f"KILL QUERY {found.split()[0]}", check=False)
            break
        if not thread.is_alive():
            break
    thread.join()
    if "1317" in errors[0]:
        expect(not target.exists(), "a killed backup leaves nothing")
        state = run(port, "SELECT STATE FROM data_dictionary.BACKUP_PROGRESS")
        expect(state == "failed", state)
        return True
    # It was done before the KILL.
    shutil.rmtree(target, ignore_errors=True)
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    options = parser.parse_args()
    squalld = str(pathlib.Path(options.squalld).absolute())
    folder, port = pathlib.Path(tempfile.mkdtemp()), free_port()
    archive = folder / "archive"
    place(folder, "first")
    server = Server(squalld, folder / "first", port, [f"--log-archive-directory={archive}", "--innodb-buffer-pool-size=5M"])
    rows = ",".join(f"({at}, 100)" for at in range(50))
    run(port, "CREATE DATABASE bank; CREATE TABLE bank.account (id INT PRIMARY KEY, amount INT, KEY (amount)); "
              "CREATE TABLE bank.journal (id INT AUTO_INCREMENT PRIMARY KEY, writer INT, step INT, at TIMESTAMP(6) DEFAULT NOW(6), KEY (writer, step)); "
              f"INSERT INTO bank.account VALUES {rows}; "
              "CREATE TABLE bank.ballast (id INT PRIMARY KEY, b VARCHAR(1000)); "
              "CREATE USER backer IDENTIFIED BY 'x', nobody IDENTIFIED BY 'x'; GRANT BACKUP_ADMIN ON *.* TO backer")
    filler = ",".join(f"({at}, REPEAT('b', 1000))" for at in range(8000))
    run(port, f"INSERT INTO bank.ballast VALUES {filler}")
    writers = Writers(port)
    time.sleep(0.5)
    run(port, f"BACKUP DATABASE TO '{folder}/one'")
    state = run(port, "SELECT STATE, PAGES_DONE = PAGES_TOTAL, END_POSITION > 0, ERROR FROM data_dictionary.BACKUP_PROGRESS")
    expect(state.strip() == "done\t1\t1", state)
    expect((folder / "one" / "space").stat().st_size > 1 << 20, "pages in the backup")
    # The directory must be new, its name absolute, the privilege held.
    for sql, code in [(f"BACKUP DATABASE TO '{folder}/one'", "1086"), ("BACKUP DATABASE TO 'one'", "1525"), ("BACKUP DATABASE", "1064")]:
        error = run(port, sql, check=False)
        expect(code in error, sql, error)
    command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-unobody", "-px", "-e", f"BACKUP DATABASE TO '{folder}/two'"]
    denied = subprocess.run(command, capture_output=True, text=True).stderr
    expect("1227" in denied and not (folder / "two").exists(), denied)
    interrupted = any(killed(port, folder) for _ in range(20))
    expect(interrupted, "no backup was killed in time")
    # A moment, with commits before it and behind it.
    time.sleep(0.3)
    count = "SELECT COUNT(*) FROM bank.journal"
    before, moment, behind = run(port, f"{count}; SELECT UTC_TIMESTAMP(6); {count}").split("\n")
    time.sleep(0.5)
    run(port, f"CLONE LOCAL DATA DIRECTORY = '{folder}/clone'")
    server.kill()
    writers.end()
    # What a crash left comes into the archive at the next start.
    server = Server(squalld, folder / "first", port, [f"--log-archive-directory={archive}"])
    last = consistent(port)
    server.process.terminate()
    server.process.wait()

    restore(squalld, folder / "one", place(folder, "base"))
    base = look(squalld, folder, "base", consistent)
    restore(squalld, folder / "one", place(folder, "middle"), f"--restore-archive={archive}", f"--restore-until={moment}")
    middle = look(squalld, folder, "middle", consistent)
    restore(squalld, folder / "one", place(folder, "end"), f"--restore-archive={archive}")
    end = look(squalld, folder, "end", consistent)
    expect(0 < base <= middle <= end == last, base, middle, end, last)
    # Whoever was committing at the moment may be on either side of it.
    expect(int(before) - THREADS <= middle <= int(behind) + THREADS, before, middle, behind)
    late = look(squalld, folder, "end", lambda at: run(at, f"SELECT COUNT(*) FROM bank.journal WHERE at < '{moment}'"))
    expect(int(late) >= middle - THREADS, late, middle)
    (folder / "cloned").mkdir()
    (folder / "clone").rename(folder / "cloned" / "data")
    cloned = look(squalld, folder, "cloned", consistent)
    expect(base <= cloned <= last, cloned)

    # A directory that is not empty, a damaged file, no list, a moment before the backup: refused with what to do.
    expect("not empty" in restore(squalld, folder / "one", folder / "base" / "data", wanted=1), "not empty")
    early = restore(squalld, folder / "one", place(folder, "early"), "--restore-until=2001-01-01", wanted=1)
    expect("use an earlier backup" in early, early)
    space = folder / "one" / "space"
    content = bytearray(space.read_bytes())
    content[len(content) // 2] ^= 16
    space.write_bytes(content)
    damaged = restore(squalld, folder / "one", place(folder, "damaged"), wanted=1)
    expect("`space` is damaged" in damaged and "use another copy" in damaged, damaged)
    (folder / "one" / "manifest").unlink()
    incomplete = restore(squalld, folder / "one", place(folder, "incomplete"), wanted=1)
    expect("no file `manifest`" in incomplete, incomplete)
    shutil.rmtree(folder)
    print(f"1 passed, 0 failed (journal: {base} in the backup, {middle} at the moment, {last} at the end)")


if __name__ == "__main__":
    main()
