#!/usr/bin/env python3
"""A device that fails, on the real server: a library loaded before others makes chosen calls on chosen files fail while a file exists.

    tests/crash/device.py [--squalld target/debug/squalld]

| files | fault | what happens |
| log | EIO of a write | the server ends, says so and what to do in its error log, and has every acknowledged row after a start |
| log | ENOSPC of a write | commits wait, and go on once there is space |
| log | slow | commits are slow |
| pages | EIO, EROFS of writes | pages stay in memory, commits go on, it is said, and the writes are repeated |
| pages | EIO of a read | the statement fails, the page is in the error log and in DAMAGED_PAGES, other tables go on |

Without a C compiler it says so and does nothing.
"""

import argparse
import errno
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from kill_loop import free_port

FAILER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
/* The file FAULT says: call, part of a file's name, number of the error (0: slow). */
static int strikes(const char *call, int file) {
    char rule[128], wanted[16], part[64], link[64], name[512];
    int number, rules = open(getenv("FAULT"), O_RDONLY);
    if (rules < 0) return 0;
    ssize_t got = read(rules, rule, sizeof rule - 1);
    close(rules);
    if (got <= 0) return 0;
    rule[got] = 0;
    if (sscanf(rule, "%15s %63s %d", wanted, part, &number) != 3 || strcmp(wanted, call)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    got = readlink(link, name, sizeof name - 1);
    if (got <= 0) return 0;
    name[got] = 0;
    const char *last = strrchr(name, '/');
    if (!last || strncmp(last + 1, part, strlen(part))) return 0;
    if (number == 0) { usleep(200000); return 0; }
    errno = number;
    return 1;
}
#define NEXT(name) static __typeof__(name) *next; if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
    NEXT(pwrite64);
    return strikes("write", file) ? -1 : next(file, bytes, count, at);
}
ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) {
    NEXT(pwrite);
    return strikes("write", file) ? -1 : next(file, bytes, count, at);
}
ssize_t pread(int file, void *bytes, size_t count, off_t at) {
    NEXT(pread);
    return strikes("read", file) ? -1 : next(file, bytes, count, at);
}
ssize_t pread64(int file, void *bytes, size_t count, off64_t at) {
    NEXT(pread64);
    return strikes("read", file) ? -1 : next(file, bytes, count, at);
}
"""


def expect(condition, *what):
    if not condition:
        raise SystemExit(f"device: {what}")


class Place:
    """A server whose files fail on request."""

    def __init__(self, program, library, folder):
        folder.mkdir()
        self.folder, self.port, self.fault = folder, free_port(), folder / "fault"
        self.program = folder / "squalld"
        self.program.write_text(f'#!/bin/sh\nFAULT={self.fault} LD_PRELOAD={library} exec {program} --innodb-use-native-aio=OFF --innodb-buffer-pool-size=8M --log-error={folder}/error "$@"\n')
        self.program.chmod(0o755)
        (folder / "error").touch()
        self.start()
        self.run("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, b VARCHAR(3000)); CREATE TABLE d.u (id INT PRIMARY KEY)")

    def start(self):
        """As `Server` does, whose sign of a start is in the error log here."""
        before = len(self.log())
        log = open(self.folder / "log", "ab")
        command = [self.program, f"--datadir={self.folder / 'data'}", f"--port={self.port}", f"--socket={self.folder / 's'}", "--insecure-root"]
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        self.wait_for(lambda: "ready for connections" in self.log()[before:], "a start")

    def log(self):
        return (self.folder / "error").read_text()

    def ask(self, sql, timeout=60):
        command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{self.port}", "-uroot", "-N", "-e", sql]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        return done.stdout.strip(), done.stderr

    def run(self, sql):
        answer, error = self.ask(sql)
        expect("ERROR" not in error, sql, error)
        return answer

    def fail(self, call, file, number):
        self.fault.with_suffix(".new").write_text(f"{call} {file} {number}")
        self.fault.with_suffix(".new").rename(self.fault)

    def heal(self):
        self.fault.unlink()

    def wait_for(self, condition, what):
        deadline = time.monotonic() + 60
        while not condition():
            expect(time.monotonic() < deadline, what, self.log()[-1500:])
            time.sleep(0.05)

    def stop(self):
        self.process.kill()
        self.process.wait()


def fill(first, count):
    return f"SET cte_max_recursion_depth = {count}; INSERT INTO d.t SELECT n + {first}, REPEAT('x', 3000) FROM (WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < {count}) SELECT n FROM r) AS r"


def log_write(place):
    place.run("INSERT INTO d.u VALUES (1), (2)")
    place.fail("write", "wal-", errno.EIO)
    _, error = place.ask("INSERT INTO d.u VALUES (3)")
    expect("ERROR" in error, "a commit without its log was acknowledged")
    expect(place.process.wait(30) != 0, "the server goes on without its log")
    expect("ERROR" in place.log() and "the log cannot be written: Input/output error" in place.log() and "start the server again" in place.log(), place.log()[-1500:])
    place.heal()
    place.start()
    expect(place.run("SELECT COUNT(*) FROM d.u WHERE id < 3") == "2", "rows are lost")


def log_without_space(place):
    place.fail("write", "wal-", errno.ENOSPC)
    client = subprocess.Popen(["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{place.port}", "-uroot", "-e", "INSERT INTO d.u VALUES (1)"])
    place.wait_for(lambda: "the log has no space" in place.log(), "nothing is said")
    expect(client.poll() is None and place.process.poll() is None, "the commit does not wait")
    place.heal()
    expect(client.wait(30) == 0, "the commit does not go on")
    place.wait_for(lambda: "the log has space again" in place.log(), "nothing is said")
    place.stop()
    place.start()
    expect(place.run("SELECT COUNT(*) FROM d.u") == "1", "a row is lost")


def log_slow(place):
    place.fail("write", "wal-", 0)
    started = time.monotonic()
    place.run("INSERT INTO d.u VALUES (1)")
    expect(time.monotonic() - started > 0.15, "nothing was slow")
    place.heal()


def page_write(place):
    for number in (errno.EIO, errno.EROFS):
        place.fail("write", "space", number)
        place.run(f"INSERT INTO d.u VALUES ({number}); UPDATE d.u SET id = id + 1000 ORDER BY id DESC")
        place.wait_for(lambda: f"data pages cannot be written: {os.strerror(number)}" in place.log(), "nothing is said")
        place.run(f"INSERT INTO d.u VALUES ({number})")
        place.heal()
        place.run("DELETE FROM d.u WHERE id < 1000")
    time.sleep(1)
    place.stop()
    place.start()
    expect(place.run("SELECT COUNT(*) FROM d.u") == "2" and place.run("CHECK TABLE d.u").endswith("OK"), "after failed writes")


def page_read(place):
    place.run("INSERT INTO d.u VALUES (1)")
    # More than the pool.
    for part in range(4):
        place.run(fill(part * 2000, 2000))
    place.process.terminate()
    place.process.wait()
    place.start()
    place.run("SELECT * FROM d.u")
    place.fail("read", "space", errno.EIO)
    _, error = place.ask("SELECT COUNT(b) FROM d.t WHERE b <> ''")
    place.heal()
    expect("ERROR" in error and "Input/output error" in error, error)
    expect("cannot be read: Input/output error" in place.log(), place.log()[-1500:])
    expect(int(place.run("SELECT COUNT(*) FROM data_dictionary.DAMAGED_PAGES")) > 0, "no page is listed")
    expect(place.run("SELECT COUNT(b) FROM d.t WHERE b <> ''") == "8000", "rows are gone")
    expect(place.process.poll() is None, "the server ended")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    source, library = folder / "failer.c", folder / "failer.so"
    source.write_text(FAILER)
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, source, "-ldl"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"device: left out: {error}")
        return
    cases = [log_write, log_without_space, log_slow, page_write, page_read]
    for case in [case for case in cases if options.only in case.__name__]:
        place = Place(pathlib.Path(options.squalld).resolve(), library, folder / case.__name__)
        try:
            case(place)
        finally:
            place.stop()
        print(f"{case.__name__}: ok", flush=True)
    shutil.rmtree(folder)
    print(f"{len(cases)} passed, 0 failed")


if __name__ == "__main__":
    main()
