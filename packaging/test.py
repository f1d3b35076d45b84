#!/usr/bin/env python3
"""Installs the Debian package as a user would, without a network: install, start, use, upgrade, remove, purge. The data outlive all but the last.

    packaging/test.py [--bins target/fast --bins target/debug]

It works on a copy of this machine's files that exists in memory only (an overlay in a mount namespace of its own), so it needs root; without, it
says that it was left out. It also unpacks the image and runs the server in it, has systemd look at the unit,
and runs lintian where that is installed.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PORT = 23306
#: What systemd-analyze may find of exposure, of 10.
MOST_EXPOSURE = 3.0
#: Of lintian: the project has no bug number of Debian, its compiler writes no Built-Using, and C libraries are linked in by their crates.
NOT_OURS = ["initial-upload-closes-no-bugs", "embedded-library", "maintainer-script-calls-systemctl", "bogus-mail-host", "no-code-sections"]


def run(*command, ok=(0,), **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode not in ok:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(bins, out):
    folders = [word for folder in bins for word in ("--bins", folder)]
    print(run("python3", str(ROOT / "packaging/build.py"), *folders, "--out", str(out), cwd=ROOT), end="")


def sums(folder):
    return (folder / "SHA256SUMS").read_text()


def inside(script, package):
    """Runs this file again in namespaces of its own, on an overlay of the machine's files."""
    work = tempfile.mkdtemp(prefix="squall-package-")
    try:
        here = pathlib.Path(__file__).resolve()
        steps = (
            f"mount -t tmpfs tmpfs {work} && mkdir {work}/upper {work}/work {work}/root && "
            f"mount -t overlay overlay -o lowerdir=/,upperdir={work}/upper,workdir={work}/work {work}/root && "
            f"mount -t tmpfs tmpfs {work}/root/run && mount -t tmpfs tmpfs {work}/root/tmp && mount --rbind /proc {work}/root/proc && mount --rbind /dev {work}/root/dev && "
            f"ip link set lo up; cp {package} {here} {work}/root/tmp/ && chroot {work}/root python3 /tmp/{here.name} --{script} /tmp/{package.name}"
        )
        done = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", steps], timeout=300)
        if done.returncode:
            raise SystemExit(f"{script}: failed")
    finally:
        shutil.rmtree(work, ignore_errors=True)


class Server:
    """The installed server as its unit starts it."""

    def __enter__(self):
        command = ["setpriv", "--reuid=squall", "--regid=squall", "--clear-groups", "/usr/sbin/squalld", "--defaults-file=/etc/squall/squalld.cnf", f"--port={PORT}"]
        self.process = subprocess.Popen(command)
        for _ in range(600):
            if pathlib.Path("/run/squall/squalld.pid").exists():
                return self
            if self.process.poll() is not None:
                raise SystemExit(f"squalld ended: {pathlib.Path('/var/log/squall/error.log').read_text()}")
            time.sleep(0.1)
        raise SystemExit("squalld is not ready after 60 s")

    def __exit__(self, *_):
        self.process.terminate()
        if self.process.wait(60):
            raise SystemExit("squalld did not stop cleanly")

    def sql(self, text):
        as_squall = ["setpriv", "--reuid=squall", "--regid=squall", "--clear-groups"]
        return run(*as_squall, "/usr/bin/squall", "--socket=/run/squall/squall.sock", "--user=root", "--batch", "--execute", text).split()


def life(package):
    """Install, start, use, upgrade, remove, purge."""
    run("dpkg", "-i", package)
    # The unit makes it.
    run("install", "-d", "-o", "squall", "-g", "squall", "/run/squall")
    print(run("setpriv", "--reuid=squall", "--regid=squall", "--clear-groups", "squalld", "--defaults-file=/etc/squall/squalld.cnf", f"--port={PORT}", "--check"), end="")
    run("man", "--warnings", "-l", "/usr/share/man/man8/squalld.8.gz") if shutil.which("man") else None
    with Server() as server:
        server.sql("CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY, name TEXT); INSERT INTO shop.item VALUES (1, 'umbrella')")
    # As an upgrade by hand: the same package again, with a changed setting that must stay.
    with open("/etc/squall/squalld.cnf", "a") as settings:
        settings.write("max-connections = 77\n")
    run("dpkg", "-i", "--force-confold", package)
    with Server() as server:
        found = server.sql("SELECT name, @@max_connections FROM shop.item")
        assert found[-2:] == ["umbrella", "77"], found
    run("dpkg", "-r", "squall")
    assert not pathlib.Path("/usr/sbin/squalld").exists()
    assert pathlib.Path("/var/lib/squall/data/storage").exists(), "removing keeps the data"
    run("dpkg", "-i", "--force-confold", package)
    with Server() as server:
        assert server.sql("SELECT name FROM shop.item")[-1] == "umbrella"
    run("dpkg", "-P", "squall")
    assert not pathlib.Path("/var/lib/squall").exists() and not pathlib.Path("/etc/squall").exists(), "purging removes all"
    print("package: installed, used, upgraded, removed with its data kept, purged")


def image(path):
    """Unpacks the layers and runs the server in them, with nothing else of the machine."""
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        with tarfile.open(path) as tar:
            tar.extractall(work / "layout")
        blob = lambda entry: work / "layout/blobs/sha256" / entry["digest"].removeprefix("sha256:")
        index = json.loads((work / "layout/index.json").read_text())
        manifest = json.loads(blob(index["manifests"][0]).read_text())
        config = json.loads(blob(manifest["config"]).read_text())
        for layer in manifest["layers"]:
            with tarfile.open(blob(layer)) as tar:
                tar.extractall(work / "root")
        for place in ("var/lib/squall", "run/squall"):
            os.chown(work / "root" / place, 999, 999)
        command = ["unshare", "--net", "--pid", "--fork", "--kill-child", "chroot", "--userspec=999:999", str(work / "root"), *config["config"]["Entrypoint"]]
        with open(work / "log", "w") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            socket = work / "root/run/squall/squall.sock"
            for _ in range(600):
                if "ready for connections" in (work / "log").read_text():
                    break
                if server.poll() is not None:
                    raise SystemExit(f"image: squalld ended\n{(work / 'log').read_text()}")
                time.sleep(0.1)
            client = ["chroot", "--userspec=999:999", str(work / "root"), "/usr/bin/squall", "--socket=/run/squall/squall.sock", "--user=root", "--batch", "-e"]
            assert socket.exists()
            found = run(*client, "SELECT 6 * 7").split()
            assert found[-1:] == ["42"], (found, (work / "log").read_text())
        finally:
            # unshare passes on no other signal.
            server.kill()
            server.wait(60)
    print("image: the server answers in its own root")


def unit():
    if not shutil.which("systemd-analyze"):
        return print("systemd-analyze is not installed: THE UNIT IS NOT LOOKED AT")
    found = run("systemd-analyze", "security", "--offline=yes", str(ROOT / "packaging/squall.service"), ok=(0, 1))
    line = next(line for line in found.splitlines() if "Overall exposure" in line)
    level = float(line.split(":")[1].split()[0])
    assert level < MOST_EXPOSURE, line
    print(f"unit: exposure {level} of 10")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bins", action="append")
    parser.add_argument("--twice", action="store_true", help="builds the packages a second time and compares")
    parser.add_argument("--life", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.life:
        return life(options.life)
    unit()
    with tempfile.TemporaryDirectory() as work:
        first, second = pathlib.Path(work, "first"), pathlib.Path(work, "second")
        build(options.bins or ["target/release"], first)
        if options.twice:
            build(options.bins or ["target/release"], second)
            assert sums(first) == sums(second), f"two builds differ:\n{sums(first)}{sums(second)}"
        package = next(first.glob("*.deb"))
        if shutil.which("lintian"):
            tags = ",".join(NOT_OURS)
            print(run("lintian", "--allow-root", "--fail-on", "error,warning", "--suppress-tags", tags, str(package)), end="")
        else:
            print("lintian is not installed: THE PACKAGE IS NOT LINTED")
        if os.geteuid():
            return print("not root: THE PACKAGE IS NOT INSTALLED")
        inside("life", package)
        image(next(first.glob("*.oci.tar")))


if __name__ == "__main__":
    sys.exit(main())
