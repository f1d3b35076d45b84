#!/usr/bin/env python3
"""A server's CPU time by layer, from samples of its threads.

Reads `perf script -F comm,ip,sym --no-inline` of a recording with call chains (`perf record -e task-clock -g`) and prints for each
layer its share, and microseconds per statement when the CPU time of one statement is given. A sample belongs to the kernel
if its innermost frame does, and there to the system call that led to it; else to the crate of its innermost function.
"""

import collections
import re
import subprocess

# First match wins. Names are those of crates; only this table assigns them to layers.
USER = [
    ("reactor", r"sys::blocking|sys::net|mysql_protocol::reactor|mio::|epoll_wait"),
    ("socket calls", r"^(__)?(libc_)?(send|recv)|asynccancel|^sendto|^recvfrom|^read$|^write$"),
    ("protocol", r"mysql_protocol::|wire::"),
    ("session", r"session::"),
    ("text: digest, parser", r"syntax::"),
    ("binder, optimizer", r"binder::|optimizer::|plan::"),
    ("exec", r"exec::"),
    ("engine", r"engine::|engine_memory::|btree::|bufpool::|page::|txn::|locks::|wal::"),
    ("catalog", r"catalog::|arc_swap"),
    ("types, charset, functions", r"types::|charset::|functions_|errors::|aggregates::"),
    ("allocator", r"^_?mi_|malloc|realloc|^free$|__rust_alloc|alloc::"),
    ("copy and compare", r"mem(move|cpy|set|cmp|chr)"),
    ("clock", r"clock_gettime|std::time|sys::clock|Timespec"),
]
KERNEL = [
    ("kernel: send", r"sys_sendto|sys_sendmsg|sys_write"),
    ("kernel: receive", r"sys_recvfrom|sys_recvmsg|sys_read"),
    ("kernel: wait (epoll)", r"epoll"),
    ("kernel: futex", r"futex"),
]
SWITCH = re.compile(r"^(__schedule|schedule|finish_task_switch|exit_to_user_mode_loop|ret_from_fork)")
IS_KERNEL = re.compile(r"^ffff")


def layer_of(frames):
    """`frames`: (address, symbol) from the innermost out."""
    if not frames:
        return "unknown"
    if IS_KERNEL.match(frames[0][0]):
        if any(SWITCH.match(symbol) for _, symbol in frames):
            return "kernel: switch of threads"
        for label, pattern in KERNEL:
            if any(re.search(pattern, symbol) for _, symbol in frames if "sys_" in symbol or "epoll" in symbol or "futex" in symbol):
                return label
        # The entry of a system call: the library function that made it identifies it.
        for label, pattern in (("kernel: send", "send"), ("kernel: receive", "recv"), ("kernel: wait (epoll)", "epoll")):
            if any(re.search(pattern, symbol) for address, symbol in frames if not IS_KERNEL.match(address)):
                return label
        return "kernel: other"
    symbol = frames[0][1].lstrip("<&*")
    for label, pattern in USER:
        if re.search(pattern, symbol.split(" as ")[0]):
            return label
    return "other"


def samples(path):
    command = ["perf", "script", "-i", path, "-F", "comm,ip,sym", "--no-inline"]
    output = subprocess.run(command, capture_output=True, text=True, errors="replace", check=True).stdout
    for block in output.split("\n\n"):
        frames = []
        for line in block.splitlines()[1:]:
            address, _, symbol = line.strip().partition(" ")
            frames.append((address.zfill(16), symbol.strip()))
        if block.strip():
            yield frames


def shares(path):
    """Share of all samples by layer, largest first."""
    counts = collections.Counter(layer_of(frames) for frames in samples(path))
    total = sum(counts.values()) or 1
    return [(layer, count / total) for layer, count in counts.most_common()]


def record(pid, seconds, path):
    """Starts a recording; wait for the process that this returns."""
    command = ["perf", "record", "-q", "-F", "2000", "-e", "task-clock", "-g", "-p", str(pid), "-o", path,
               "--", "sleep", str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    import sys

    for name, share in shares(sys.argv[1]):
        cost = f"  {share * float(sys.argv[2]):6.2f} us" if len(sys.argv) > 2 else ""
        print(f"{share * 100:6.1f} %{cost}  {name}")
