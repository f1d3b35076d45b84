#!/usr/bin/env python3
"""The real server where the disk is not what it is made for: in memory (tmpfs), on an overlay as containers have it, with a library preloaded that eats
syncs (as libeatmydata does), and with --unsafe-no-sync. Everywhere it takes rows, is killed, and has them afterwards; what does not wait says so.
Signals other than those that end it: it goes on, and opens its log again.

    tests/crash/surroundings.py [--squalld target/debug/squalld]

An overlay needs the right to mount, the preloaded library a C compiler: without them it is said that they were left out.
"""

import argparse
import pathlib
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from kill_loop import Server, free_port

ROWS = 300

#: What libeatmydata does, and how often it did.
EATER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
static atomic_long eaten;
int fsync(int file) { (void)file; eaten++; return 0; }
int fdatasync(int file) { (void)file; eaten++; return 0; }
static int opened(const char *how, const char *path, int flags, int mode) {
    int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, how);
    if (flags & O_DSYNC) eaten++;
    return next(path, flags & ~(O_SYNC | O_DSYNC), mode);
}
#define OPEN(name) \\
    int name(const char *path, int flags, ...) { \\
        va_list more; \\
        va_start(more, flags); \\
        int mode = va_arg(more, int); \\
        va_end(more); \\
        return opened(#name, path, flags, mode); \\
    }
OPEN(open)
OPEN(open64)
__attribute__((destructor)) static void tell(void) {
    FILE *out = fopen(getenv("EATEN"), "w");
    if (out) { fprintf(out, "%ld", (long)eaten); fclose(out); }
}
"""


def run(port, sql):
    command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-N", "-e", sql]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{sql}\n{done.stderr}")
    return done.stdout.split()


def syncs(port):
    """Calls that wait for the device, and writes of the log."""
    calls = "SELECT COALESCE(SUM(`count`), 0) FROM data_dictionary.io_histogram WHERE `call` IN ('fdatasync', 'fsync')"
    return int(run(port, calls)[0])


def keeps_rows(what, program, folder, extra=(), look=lambda port: None):
    """Rows that were acknowledged are there after a kill, twice."""
    folder.mkdir(exist_ok=True)
    port = free_port()
    server = Server(program, folder, port, extra)
    run(port, "CREATE DATABASE s; CREATE TABLE s.t (id INT PRIMARY KEY, b VARCHAR(300) NOT NULL, KEY (b))")
    for turn in range(1, 3):
        rows = ",".join(f"({turn * ROWS + i}, REPEAT('{turn}', {i}))" for i in range(ROWS))
        run(port, f"INSERT INTO s.t VALUES {rows}; UPDATE s.t SET b = CONCAT(b, 'x') WHERE id % 7 = {turn}")
        server.kill()
        server = Server(program, folder, port, extra)
        found = run(port, "SELECT COUNT(*) FROM s.t; CHECK TABLE s.t")
        if found[0] != str(turn * ROWS) or found[-1] != "OK":
            raise SystemExit(f"{what}: {found} after {turn} kills")
    look(port)
    server.process.terminate()
    if server.process.wait() != 0:
        raise SystemExit(f"{what}: the server ended with {server.process.returncode}")
    print(f"{what}: ok", flush=True)


def script(folder, text):
    """A program that stands for the server."""
    path = folder / "squalld"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def overlay(program, folder):
    """Layers in memory: an overlay on an overlay, as a container would give it, cannot be mounted."""
    layers = [folder / name for name in ("lower", "upper", "work", "run")]
    for layer in layers:
        layer.mkdir()
    lower, upper, work, seen = layers
    mount = f"mount -t overlay overlay -o lowerdir={lower},upperdir={upper},workdir={work} {seen}/data"
    (seen / "data").mkdir()
    can = subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True, text=True)
    if can.returncode:
        print(f"overlay: left out, cannot be mounted here: {can.stderr.strip()}")
        return
    inside = script(folder, f"exec unshare -m sh -c '{mount} && exec {program} \"$0\" \"$@\"' \"$@\"")
    keeps_rows("overlay", inside, seen)


def eater(program, folder):
    source, library, told = folder / "eater.c", folder / "eater.so", folder / "eaten"
    source.write_text(EATER)
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"preloaded library that eats syncs: left out: {error}")
        return
    inside = script(folder, f"LD_PRELOAD={library} EATEN={told} exec {program} \"$@\"")
    keeps_rows("preloaded library that eats syncs", inside, folder / "eater")
    if int(told.read_text()) < 3:
        raise SystemExit(f"the preloaded library saw only {told.read_text()} syncs")


def no_sync(program, folder):
    """It is loud, and nothing waits for the device."""

    def look(port):
        if syncs(port) != 0:
            raise SystemExit("--unsafe-no-sync waited for the device")
        if "nothing waits for the disk" not in (folder / "quick" / "log").read_text():
            raise SystemExit("--unsafe-no-sync says nothing in the log")

    keeps_rows("--unsafe-no-sync", program, folder / "quick", ("--unsafe-no-sync", "--i-know"), look)


def signals(program, folder):
    """SIGHUP and SIGUSR1 open the log again, as after it was renamed; SIGUSR2 writes the stacks of all threads into it."""
    folder.mkdir()
    port, log = free_port(), folder / "log"
    server = Server(program, folder, port, (f"--log-error={log}",))
    for sent, said in (("SIGHUP", "logs flushed"), ("SIGUSR1", "logs flushed"), ("SIGUSR2", "stacks of all threads")):
        old = log.rename(folder / f"before-{sent}")
        lines = len(old.read_text().splitlines())
        server.process.send_signal(signal.Signals[sent])
        holder = old if sent == "SIGUSR2" else log
        skipped = lines if sent == "SIGUSR2" else 0
        deadline = time.monotonic() + 60
        while not any(said in line and sent in line for line in (holder.read_text() if holder.exists() else "").splitlines()[skipped:]):
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{sent}: not in the log: {said}; the server's state: {server.process.poll()}")
            time.sleep(0.01)
        if run(port, "SELECT 1") != ["1"]:
            raise SystemExit(f"{sent}: no answer afterwards")
        if not log.exists():
            old.rename(log)
    server.process.terminate()
    if server.process.wait() != 0:
        raise SystemExit(f"signals: the server ended with {server.process.returncode}")
    print("signals: ok", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    options = parser.parse_args()
    program = pathlib.Path(options.squalld).resolve()
    memory = pathlib.Path("/dev/shm")
    in_memory = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
    with in_memory as fast, tempfile.TemporaryDirectory() as slow, ThreadPoolExecutor() as side_by_side:
        fast, slow = pathlib.Path(fast), pathlib.Path(slow)
        name = "files in memory" if memory.is_dir() else "temporary files"
        runs = [(keeps_rows, name, program, fast / "memory"), (overlay, program, fast), (eater, program, slow), (no_sync, program, slow), (signals, program, slow / "signals")]
        for run in [side_by_side.submit(*run) for run in runs]:
            run.result()


if __name__ == "__main__":
    main()
