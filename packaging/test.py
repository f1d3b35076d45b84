#!/usr/bin/env python3
"""Installs the Debian package as a user would, without a network: install, start, use, upgrade, remove, purge. The data outlive all but the last.

    packaging/test.py [--bins target/fast --bins target/debug] [--static FOLDER] [--twice]

It works on a copy of this machine's files that exists in memory only (an overlay in a mount namespace of its own), so it needs root; without, it
says that it was left out. It also runs the server of the image, and the static one, in a root of their own, checks the signature of the set, and has
systemd, AppArmor, shells, logrotate, lintian and rpmlint look at their parts where they are installed.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
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
#: Of rpmlint: it knows fewer licences than SPDX and looks for manual pages of another packer; systemd's files are in usr/lib; the unit makes the directory of logs; the set is signed
#: as a whole; who lacks logrotate can do without; the project has no address on the network yet.
RPM_NOT_OURS = [
    "invalid-license", "no-manual-page-for-binary", "manpage-not-compressed", "logrotate-log-dir-not-packaged", "no-signature", "no-packager-tag",
    "missing-dependency-to-logrotate", "no-url-tag", "no-group-tag", "no-changelogname-tag", "only-non-binary-in-usr-lib",
]
#: Who signs: a name that `ssh-keygen -Y verify` looks up beside the public key.
SIGNER = "release@squall.example"


def run(*command, ok=(0,), **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode not in ok:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def left_out(program, what):
    """Whether a program is missing; then it says so."""
    if shutil.which(program):
        return False
    print(f"{program} is not installed: {what}")
    return True


def build(bins, out, *more):
    folders = [word for folder in bins for word in ("--bins", folder)] + list(map(str, more))
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
            f"ip link set lo up; cp {package} {here} {work}/root/tmp/ && env -u TMPDIR chroot {work}/root python3 /tmp/{here.name} --{script} /tmp/{package.name}"
        )
        done = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", steps], timeout=300)
        if done.returncode:
            raise SystemExit(f"{script}: failed")
    finally:
        shutil.rmtree(work, ignore_errors=True)


class Server:
    """The installed server as its unit starts it."""

    def __enter__(self):
        command = [*AS_SQUALL, "/usr/sbin/squalld", "--defaults-file=/etc/squall/squalld.cnf", f"--port={PORT}"]
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
        return run(*AS_SQUALL, "/usr/bin/squall", "--socket=/run/squall/squall.sock", "--user=root", "--batch", "--execute", text).split()


def newer(package):
    """The package with a higher version: what an upgrade installs."""
    with tempfile.TemporaryDirectory() as work:
        run("dpkg-deb", "-R", package, work)
        control = pathlib.Path(work, "DEBIAN/control")
        version = re.search("Version: (.*)", control.read_text())[1]
        control.write_text(control.read_text().replace(f"Version: {version}", f"Version: {version}.1"))
        run("dpkg-deb", "-Znone", "-b", work, "/tmp/newer.deb")
    return "/tmp/newer.deb"


AS_SQUALL = ["setpriv", "--reuid=squall", "--regid=squall", "--clear-groups"]


def helpers():
    """What other programs of the system do with the installed files."""
    if not left_out("systemd-analyze", "THE UNIT IS NOT VERIFIED"):
        said = run("systemd-analyze", "verify", "--man=no", "/usr/lib/systemd/system/squall.service")
        assert not said, said
    if not left_out("systemd-sysusers", "THE USER IS NOT MADE BY systemd"):
        run("systemd-sysusers", "--dry-run", "/usr/lib/sysusers.d/squall.conf")
    if left_out("systemd-tmpfiles", "DIRECTORIES ARE NOT MADE BY systemd"):
        run("install", "-d", "-o", "squall", "-g", "squall", "/run/squall")
    else:
        run("systemd-tmpfiles", "--create", "/usr/lib/tmpfiles.d/squall.conf")
    if not left_out("apparmor_parser", "THE PROFILE IS NOT READ"):
        run("apparmor_parser", "--skip-kernel-load", "--skip-cache", "/etc/apparmor.d/usr.sbin.squalld")
    if not left_out("man", "MANUAL PAGES ARE NOT READ"):
        for page in ("man8/squalld.8", "man1/squall.1", "man1/squall-slap.1", "man1/squall-check.1"):
            said = subprocess.run(["man", "--warnings", "-l", f"/usr/share/man/{page}.gz"], capture_output=True, text=True, env={**os.environ, "MANWIDTH": "200"})
            assert not said.returncode and not said.stderr and len(said.stdout) > 500, (page, said)
    words = "COMP_WORDS=(squall import --th); COMP_CWORD=2; _squall squall --th; echo ${COMPREPLY[*]}; COMP_WORDS=(squalld --data); COMP_CWORD=1; _squall squalld --data; echo ${COMPREPLY[*]}"
    found = run("bash", "-c", f"source /usr/share/bash-completion/completions/squall; {words}").split()
    assert found == ["--threads", "--datadir"], found
    if not left_out("fish", "fish IS NOT ASKED"):
        found = run("fish", "--no-config", "-c", "source /usr/share/fish/vendor_completions.d/squall.fish; complete -C 'squall import --th'")
        assert "--threads" in found, found
    if not left_out("zsh", "zsh IS NOT ASKED"):
        run("zsh", "-n", "/usr/share/zsh/vendor-completions/_squall")


def rotate():
    """logrotate moves the log away, and the server begins a new one."""
    if left_out("logrotate", "THE LOG IS NOT ROTATED"):
        return
    log = pathlib.Path("/var/log/squall/error.log")
    run("logrotate", "--force", "/etc/logrotate.d/squall")
    assert pathlib.Path("/var/log/squall/error.log.1").exists()
    for _ in range(100):
        if log.exists():
            return print("logrotate: the server begins a new log")
        time.sleep(0.1)
    raise SystemExit("the server does not open its log anew")


def life(package):
    """Install, start, use, upgrade, remove, purge."""
    run("dpkg", "-i", package)
    helpers()
    print(run(*AS_SQUALL, "squalld", "--defaults-file=/etc/squall/squalld.cnf", f"--port={PORT}", "--check"), end="")
    with open("/etc/squall/squalld.cnf", "a") as settings:
        settings.write("max-connections = 77\n")
    upgrade = newer(package)
    with Server() as server:
        server.sql("CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY, name TEXT); INSERT INTO shop.item VALUES (1, 'umbrella')")
        rotate()
        # While it runs, with a changed setting that must stay.
        run("dpkg", "-i", "--force-confold", upgrade)
        assert server.sql("SELECT name FROM shop.item")[-1] == "umbrella", "the old server runs until the new one replaces it"
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
    print("package: installed, used, upgraded while it ran, removed with its data kept, purged")


def rpm_life(package):
    """The same with the other kind of package, as far as a Debian has what it needs."""
    run("rpm", "--initdb")
    run("rpm", "-i", "--nodeps", package)
    run("install", "-d", "-o", "squall", "-g", "squall", "/run/squall", "/var/lib/squall", "/var/log/squall")
    with Server() as server:
        server.sql("CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY); INSERT INTO shop.item VALUES (1)")
    run("rpm", "-U", "--nodeps", "--force", package)
    with Server() as server:
        assert server.sql("SELECT id FROM shop.item")[-1] == "1"
    run("rpm", "-e", "squall")
    assert not pathlib.Path("/usr/sbin/squalld").exists()
    assert pathlib.Path("/var/lib/squall/data/storage").exists(), "removing keeps the data"
    print("rpm: installed, used, upgraded, removed with its data kept")


def is_running(pid):
    try:
        return pathlib.Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Rooted:
    """A server in a root of its own, with nothing else of the machine: no file, no network, no process."""

    def __init__(self, root, *command):
        self.root, self.user = root, ["chroot", "--userspec=999:999", str(root)]
        self.log = root.parent / "log"
        log = open(self.log, "w")
        self.process = subprocess.Popen(["unshare", "--net", "--pid", "--fork", "--kill-child", *self.user, *command], stdout=log, stderr=log)
        for _ in range(600):
            if "ready for connections" in self.log.read_text():
                return
            if self.process.poll() is not None:
                raise SystemExit(f"squalld ended\n{self.log.read_text()}")
            time.sleep(0.1)
        self.kill()
        raise SystemExit(f"squalld is not ready after 60 s\n{self.log.read_text()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        # unshare passes no signal on, also not its own end, as the server has become another user.
        pid = self.process.pid
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        self.process.wait(60)
        deadline = time.monotonic() + 60
        while any(map(is_running, children)):
            assert time.monotonic() < deadline, "the server goes on"
            time.sleep(0.05)

    def sql(self, client, text):
        return run(*self.user, client, "--socket=/run/squall/squall.sock", "--user=root", "--batch", "-e", text).split()


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
        with Rooted(work / "root", *config["config"]["Entrypoint"]) as server:
            found = server.sql("/usr/bin/squall", "SELECT 6 * 7")
            assert found[-1:] == ["42"], (found, server.log.read_text())
    print("image: the server answers in its own root")


def static(programs):
    """Starts, creates, loads, queries, is killed, recovers: in a root that has no library and no shell."""
    with tempfile.TemporaryDirectory() as work:
        root = pathlib.Path(work, "root")
        (root / "bin").mkdir(parents=True)
        for name in ("squalld", "squall"):
            shutil.copy(programs / name, root / "bin" / name)
        for folder in ("data", "run/squall", "tmp"):
            (root / folder).mkdir(parents=True)
            os.chown(root / folder, 999, 999)
        (root / "data/rows").write_text("".join(f"{row}\tname {row}\n" for row in range(20000)))
        command = ["/bin/squalld", "--datadir=/data/data", "--socket=/run/squall/squall.sock", "--secure-file-priv=/data"]
        with Rooted(root, *command) as server:
            server.sql("/bin/squall", "CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY, name VARCHAR(40), KEY (name)); LOAD DATA INFILE '/data/rows' INTO TABLE shop.item")
            found = server.sql("/bin/squall", "SELECT COUNT(*), MAX(name) FROM shop.item")
            assert found[-3:] == ["20000", "name", "9999"], found
            found = server.sql("/bin/squall", "SELECT plugin_name FROM information_schema.plugins")
            assert "ndb" not in found and "auth_pam" not in found, found
        with Rooted(root, *command) as server:
            found = server.sql("/bin/squall", "CHECK TABLE shop.item; SELECT COUNT(*), SUM(id) FROM shop.item WHERE name LIKE 'name 1%'")
            expected = [row for row in range(20000) if str(row).startswith("1")]
            assert found[-2:] == [str(len(expected)), str(sum(expected))] and "OK" in found, found
    print("static: started, created, loaded, queried, killed, recovered without a library")


def signature(folder, key):
    """The set is what was signed, and a changed one is not."""
    allowed = folder / "allowed_signers"
    allowed.write_text(f"{SIGNER} namespaces=\"squall-release\" {key.with_suffix('.pub').read_text()}")
    verify = ["ssh-keygen", "-Y", "verify", "-f", str(allowed), "-I", SIGNER, "-n", "squall-release", "-s", str(folder / "SHA256SUMS.sig")]
    run(*verify, input=sums(folder))
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=folder)
    run(*verify, input=sums(folder).replace("squall", "sqall", 1), ok=(255,))
    print("signature: verified, and one of other checksums is refused")


def manifest():
    """Kubernetes' own schema, where PyPI's kubernetes-validate is installed."""
    try:
        import kubernetes_validate
        import yaml
    except ImportError:
        return print("kubernetes-validate is not installed: THE EXAMPLE IS NOT VALIDATED")
    for document in yaml.safe_load_all((ROOT / "packaging/kubernetes/squall.yaml").read_text()):
        kubernetes_validate.validate(document, "1.28", strict=True)
    print("kubernetes: the example is valid")


def lint(folder):
    package = next(folder.glob("*.deb"))
    if not left_out("lintian", "THE PACKAGE IS NOT LINTED"):
        tags = ",".join(NOT_OURS)
        print(run("lintian", "--allow-root", "--fail-on", "error,warning", "--suppress-tags", tags, str(package)), end="")
    rpm = next(folder.glob("*.rpm"), None)
    if rpm and not left_out("rpmlint", "THE .rpm IS NOT LINTED"):
        said = run("rpmlint", str(rpm), ok=(0, 64, 66))
        found = [line for line in said.splitlines() if re.search(r": [EW]: ", line) and not any(tag in line for tag in RPM_NOT_OURS)]
        assert not found, "\n".join(found)


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
    parser.add_argument("--static", help="a folder with programs for musl")
    parser.add_argument("--smoke", metavar="FOLDER", help="only tries the static programs in it")
    parser.add_argument("--life", help=argparse.SUPPRESS)
    parser.add_argument("--rpm-life", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.life:
        return life(options.life)
    if options.rpm_life:
        return rpm_life(options.rpm_life)
    if options.smoke:
        return print("not root: THE SERVER IS NOT TRIED") if os.geteuid() else static(pathlib.Path(options.smoke))
    unit()
    manifest()
    with tempfile.TemporaryDirectory() as work:
        first, second, key = pathlib.Path(work, "first"), pathlib.Path(work, "second"), pathlib.Path(work, "key")
        # Thrown away with the folder.
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(key))
        more = ["--sign", key, *(["--static", options.static] if options.static else [])]
        build(options.bins or ["target/release"], first, *more)
        signature(first, key)
        if options.twice:
            build(options.bins or ["target/release"], second, *more)
            assert sums(first) == sums(second), f"two builds differ:\n{sums(first)}{sums(second)}"
            assert (first / "SHA256SUMS.sig").read_bytes() == (second / "SHA256SUMS.sig").read_bytes()
            print("two builds give the same bytes")
        lint(first)
        if os.geteuid():
            return print("not root: THE PACKAGE IS NOT INSTALLED")
        inside("life", next(first.glob("*.deb")))
        rpm = next(first.glob("*.rpm"), None)
        if rpm and not left_out("rpm", "THE .rpm IS NOT INSTALLED"):
            inside("rpm-life", rpm)
        image(next(first.glob("*.oci.tar")))
        for archive in first.glob("*-static.tar.gz"):
            with tarfile.open(archive) as tar:
                tar.extractall(first)
            static(first / archive.name.removesuffix(".tar.gz") / "bin")


if __name__ == "__main__":
    sys.exit(main())
