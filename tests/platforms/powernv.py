#!/usr/bin/env python3
"""A POWER machine from the firmware up, emulated: skiboot (OPAL), Debian's kernel, our init with its menu, the server, SELECT 1.

    tests/platforms/powernv.py --bins FOLDER [--machine powernv9] [--log docs/power-boot.log]

`FOLDER` has squalld and squall for powerpc64le. Kernel and busybox come from Debian by apt, in a folder of apt's own; nothing of this machine's apt changes. `cargo xtask
powernv` builds the programs first and needs no arguments.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SUITE = "bookworm"
LIBRARIES = pathlib.Path("/usr/powerpc64le-linux-gnu/lib")
LOADER = "ld64.so.2"
#: What the log must show, in this order.
EXPECTED = ["OPAL", "Squall boot menu", "💩", "🐵", "🐱", "Booting: 💩", "Server up", "SELECT 1 answers:", r"^\W*1\W*$", "Powering off"]


def mirror():
    """Where this machine takes Debian's packages from."""
    sources = pathlib.Path("/etc/apt")
    for file in [sources / "sources.list", *sorted((sources / "sources.list.d").glob("*"))]:
        text = file.read_text() if file.is_file() else ""
        found = re.search(r"^(?:URIs:|deb(?: \[[^]]*\])?)\s+(\S+/debian/?)(?:\s|$)", text, re.MULTILINE)
        if found:
            return found.group(1)
    sys.exit("no Debian mirror in the sources of apt")


def apt(folder):
    """The start of an apt command line for ppc64el that uses `folder` alone."""
    for part in ("state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    (folder / "status").touch()
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (folder / "sources.list").write_text(f"deb [arch=ppc64el signed-by={keys}] {mirror()} {SUITE} main\n")
    settings = {"APT::Architecture": "ppc64el", "APT::Architectures": "ppc64el", "APT::Sandbox::User": "", "Dir::State": folder / "state",
                "Dir::State::status": folder / "status", "Dir::Cache": folder / "cache", "Dir::Etc::sourcelist": folder / "sources.list",
                "Dir::Etc::sourceparts": "/dev/null"}
    return [f"-o{name}={value}" for name, value in settings.items()]


def fetch(folder):
    """Debian's kernel and busybox, unpacked."""
    options = apt(folder / "apt")
    subprocess.run(["apt-get", "-qq", *options, "update"], check=True)
    depends = subprocess.run(["apt-cache", *options, "depends", "linux-image-powerpc64le"], check=True, capture_output=True, text=True).stdout
    kernel = re.search(r"Depends: (linux-image-\S+)", depends).group(1)
    subprocess.run(["apt-get", "-qq", *options, "download", kernel, "busybox-static"], check=True, cwd=folder)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder / "debian"], check=True)
    return next((folder / "debian" / "boot").glob("vmlinux-*")), folder / "debian" / "bin" / "busybox"


def image(folder, bins, busybox):
    """The initramfs: our init, its menu, the programs without symbols, and their libraries."""
    root = folder / "root"
    for part in ("bin", "proc", "sys", "dev", "tmp", "lib64", "lib"):
        (root / part).mkdir(parents=True)
    shutil.copy(busybox, root / "bin" / "busybox")
    shutil.copy(HERE / "powernv-menu.tsv", root / "menu")
    shutil.copy(HERE / "powernv-init.sh", root / "init")
    (root / "init").chmod(0o755)
    for library in ("libc.so.6", "libm.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0"):
        shutil.copy(LIBRARIES / library, root / "lib" / library)
    shutil.copy(LIBRARIES / LOADER, root / "lib64" / LOADER)
    for program in ("squalld", "squall"):
        subprocess.run(["powerpc64le-linux-gnu-strip", "-o", root / program, bins / program], check=True)
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*"))
    archive = folder / "initrd.cpio.gz"
    with open(archive, "wb") as out:
        # A console before /dev is there would need a device node; the kernel's own default archive has it.
        cpio = subprocess.Popen(["cpio", "-o", "-H", "newc", "-R", "0:0", "--quiet"], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        packer = subprocess.Popen(["gzip", "-1"], stdin=cpio.stdout, stdout=out)
        cpio.stdin.write("\n".join(names).encode())
        cpio.stdin.close()
        if cpio.wait() or packer.wait():
            raise SystemExit("no initramfs")
    return archive


def boot(machine, kernel, archive, limit):
    command = ["qemu-system-ppc64", "-M", machine, "-m", "3G", "-smp", "1", "-nographic", "-no-reboot", "-nodefaults", "-serial", "stdio", "-device", "ipmi-bmc-sim,id=bmc0",
               "-device", "isa-ipmi-bt,bmc=bmc0,irq=10", "-kernel", kernel,
               "-initrd", archive, "-append", "console=hvc0"]
    started = time.perf_counter()
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit)
        text = done.stdout
    except subprocess.TimeoutExpired as late:
        text = (late.stdout or b"") + b"\n(ended by the time limit)\n"
    return text.decode("utf-8", "replace"), time.perf_counter() - started


def missing(log):
    """The first expected text that does not follow the ones before it."""
    at = 0
    for pattern in EXPECTED:
        found = re.compile(pattern, re.MULTILINE).search(log, at)
        if not found:
            return pattern
        at = found.end()
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bins", type=pathlib.Path, required=True)
    parser.add_argument("--machine", default="powernv9")
    parser.add_argument("--log", type=pathlib.Path)
    parser.add_argument("--limit", type=int, default=900, metavar="SECONDS")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TMPDIR")))
    try:
        kernel, busybox = fetch(folder)
        log, seconds = boot(options.machine, kernel, image(folder, options.bins, busybox), options.limit)
    finally:
        shutil.rmtree(folder)
    # Colours and carriage returns of consoles are nothing to read.
    log = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\x00", "", log)
    if options.log:
        options.log.write_text("".join(f"{line.rstrip()}\n" for line in log.splitlines()))
    lack = missing(log)
    if lack:
        sys.stdout.write(log[-4000:])
        raise SystemExit(f"the log does not show {lack!r}")
    print(f"{options.machine}: booted, SELECT 1 answered, powered off: {seconds:.0f} s, emulated")


if __name__ == "__main__":
    main()
