#!/usr/bin/env python3
"""Two builds share a data directory: what one wrote before it was killed, the other recovers, checks, changes and hands back.

    tests/platforms/exchange.py --squalld target/debug/squalld --other PROGRAM

Meant for builds of different processors: `PROGRAM` is a script that starts one under an emulator. Each builds a directory of its own from the statements of
tests/format/open.py; both must answer its queries alike, and the other opens it after kill -9.
"""

import argparse
import pathlib
import shutil
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "crash"), str(HERE.parent / "format")]

from kill_loop import Server, free_port  # noqa: E402
from open import AFTER, BEFORE, TABLES, answers, run  # noqa: E402

#: Recovery has work: no checkpoint comes before the kill.
LATE = ["--recovery-time-target-sec=86400"]

#: What each server adds to what it got; the log of the kill holds it.
ROUNDS = """
CREATE TABLE IF NOT EXISTS golden.rounds (id INT AUTO_INCREMENT PRIMARY KEY, t VARCHAR(60), b BLOB, d DECIMAL(20,5), g DOUBLE, j JSON, KEY (t), KEY (g));
INSERT INTO golden.rounds (t, b, d, g, j) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
  SELECT CONCAT('round ', i * 7919 % 300), REPEAT(CHAR(i % 250), i * 9), i / 7, i / 7, JSON_OBJECT('i', i, 'a', JSON_ARRAY(i, i / 2, 'x')) FROM n;
UPDATE golden.rounds SET t = CONCAT(t, '!') WHERE id % 3 = 0;
DELETE FROM golden.rounds WHERE id % 7 = 0;
"""
SUMS = """
SELECT COUNT(*), SUM(CRC32(t)), SUM(CRC32(b)), SUM(d), ROUND(SUM(g), 6), SUM(CRC32(CAST(j AS CHAR))) FROM golden.rounds;
SELECT COUNT(*), MIN(t), MAX(t) FROM golden.rounds FORCE INDEX (t) WHERE t > 'r';
SELECT COUNT(*), MIN(g), MAX(g) FROM golden.rounds FORCE INDEX (g) WHERE g > 0;
CHECKSUM TABLE golden.rounds, golden.rows_, golden.parent, golden.child;
"""


def seen(port):
    return answers(port) + run(port, SUMS)


def expect(before, after, what):
    if before != after:
        lines = zip(before.splitlines(), after.splitlines())
        first = next((pair for pair in lines if pair[0] != pair[1]), ("", "one is longer"))
        raise SystemExit(f"{what}: {first[0]!r} became {first[1]!r}")


def check_tables(port, what):
    for table in (*TABLES, "rounds"):
        verdict = run(port, f"CHECK TABLE golden.{table} EXTENDED")
        if not verdict.strip().endswith("OK"):
            raise SystemExit(f"{what}: {verdict}")


def exchange(names, programs):
    """The first makes the directory; then it goes to and fro. Returns what the first answered when it was new."""
    folder, port = pathlib.Path(tempfile.mkdtemp()), free_port()
    server = Server(programs[0], folder, port)
    run(port, BEFORE)
    # Numbers that the server had reserved for AUTO_INCREMENT are lost with a kill; SHOW CREATE TABLE would tell.
    server.process.terminate()
    server.process.wait()
    server = Server(programs[0], folder, port, LATE)
    run(port, AFTER)
    run(port, ROUNDS)
    first = known = seen(port)
    server.kill()
    for turn in (1, 0, 1, 0):
        what = f"{names[turn]} opens what {names[1 - turn]} wrote"
        started = time.perf_counter()
        server = Server(programs[turn], folder, port, LATE)
        expect(known, seen(port), what)
        check_tables(port, what)
        run(port, ROUNDS)
        known = seen(port)
        server.kill()
        print(f"{what}: {time.perf_counter() - started:.0f} s", flush=True)
    shutil.rmtree(folder)
    return first


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--other", required=True)
    options = parser.parse_args()
    names, programs = ["this machine", "the other"], [options.squalld, options.other]
    here = exchange(names, programs)
    there = exchange(names[::-1], programs[::-1])
    # Times of columns and of users differ by the run; the queries ask for none.
    expect(here, there, "the same statements")
    print("2 directories, 8 openings after kill -9: passed")


if __name__ == "__main__":
    main()
