#!/usr/bin/env python3
"""A flipped bit in a page of one table, on the real server: statements that read it get an error that names table and page, CHECK TABLE names
the page, other tables and the rest of the same table go on, and the server stays up. squall-check finds the same page without the server.

    tests/crash/damage.py [--squalld target/debug/squalld] [--check target/debug/squall-check]
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import tempfile

from kill_loop import Server, free_port

PAGE_BYTES = 16384
ROWS = 4000


def run(port, sql):
    command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-N", "-e", sql]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout, done.stderr


def expect(condition, *what):
    if not condition:
        raise SystemExit(f"damage: {what}")


def fill(port):
    _, error = run(port, "CREATE DATABASE damage")
    expect(not error, error)
    for table in ("one", "two"):
        rows = ",".join(f"({i}, REPEAT('{table}-', 20))" for i in range(ROWS))
        _, error = run(port, f"CREATE TABLE damage.{table} (id INT PRIMARY KEY, b VARCHAR(200), KEY (b)); INSERT INTO damage.{table} VALUES {rows}")
        expect(not error, error)


def flip(folder):
    """A bit of a row in the middle of table one; returns the page."""
    space = folder / "data" / "space"
    if not space.exists():
        (space,) = (folder / "data").rglob("space")
    content = bytearray(space.read_bytes())
    places = [found.start() for found in re.finditer(rb"(one-){20}", bytes(content))]
    expect(len(places) > ROWS / 2, "rows on the disk", len(places))
    at = places[len(places) // 3]
    content[at] ^= 4
    space.write_bytes(content)
    # Otherwise a page of the last batch would be put back from there.
    (space.parent / "doublewrite").write_bytes(b"")
    return at // PAGE_BYTES


def refuses_damaged_log(program, folder, port):
    """A bit of an acknowledged commit in the log, with others behind it: the server says so and does not open."""
    (storage,) = {log.parent for log in (folder / "data").rglob("wal-*.log")}
    logs = sorted(storage.glob("wal-*.log"))
    log = next(log for log in logs if b"one-" * 5 in log.read_bytes())
    whole = log.read_bytes()
    content = bytearray(whole)
    content[content.index(b"one-" * 5)] ^= 1
    log.write_bytes(content)
    command = [program, f"--datadir={folder / 'data'}", f"--port={port}", f"--socket={folder / 's'}", "--insecure-root"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    said = done.stdout + done.stderr
    expect(done.returncode != 0 and log.stem in said, "a damaged log was opened, or is not named", done.returncode, said[-2000:])
    log.write_bytes(whole)


def check(port, page):
    _, error = run(port, "SELECT COUNT(b) FROM damage.one FORCE INDEX (PRIMARY) WHERE id >= 0")
    _, through_index = run(port, "SELECT COUNT(b) FROM damage.one FORCE INDEX (b) WHERE b >= ''")
    expect(error or through_index, "a damaged page was read")
    for message in filter(None, (error, through_index)):
        expect("damage.one" in message and f"page {page} " in message, message)
    verdict, error = run(port, "CHECK TABLE damage.one")
    expect(f"page {page} " in verdict and "Corrupt" in verdict, verdict, error)
    for sql, wanted in [("SELECT COUNT(b) FROM damage.two", str(ROWS)), ("CHECK TABLE damage.two", "OK"), ("SELECT 1", "1")]:
        answer, error = run(port, sql)
        expect(wanted in answer and not error, sql, answer, error)
    _, error = run(port, f"INSERT INTO damage.two VALUES ({ROWS}, 'x')")
    expect(not error, error)
    # What lies on other pages of the damaged table is still there.
    found = [run(port, f"SELECT id FROM damage.one WHERE id = {id}")[0].strip() for id in (0, ROWS - 1)]
    expect(str(0) in found or str(ROWS - 1) in found, found)


def check_offline(program, folder, wanted, code):
    done = subprocess.run([program, "--quiet", folder / "data"], capture_output=True, text=True)
    expect(done.returncode == code, program, done.returncode, done.stdout, done.stderr)
    expect(wanted in done.stdout + done.stderr, wanted, done.stdout, done.stderr)
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--check", default="target/debug/squall-check")
    options = parser.parse_args()
    folder, port = pathlib.Path(tempfile.mkdtemp()), free_port()
    server = Server(options.squalld, folder, port)
    fill(port)
    check_offline(options.check, folder, "a server uses it", 2)
    server.kill()
    # After a crash, and after a stop.
    check_offline(options.check, folder, "no damage", 0)
    refuses_damaged_log(options.squalld, folder, port)
    server = Server(options.squalld, folder, port)
    server.process.terminate()
    server.process.wait()
    check_offline(options.check, folder, "no damage", 0)
    page = flip(folder)
    found = check_offline(options.check, folder, f"page {page} is damaged", 1)
    expect("damage.one" in found and "damage.two" not in found, found)
    server = Server(options.squalld, folder, port)
    try:
        check(port, page)
        expect(server.process.poll() is None, "the server ended")
    finally:
        server.kill()
    shutil.rmtree(folder)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
