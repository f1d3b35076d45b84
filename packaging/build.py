#!/usr/bin/env python3
"""Makes the packages of Squall from programs that are built: a .deb, a .rpm (where rpmbuild is), an archive, an image in OCI's layout, a list of
what is in them (CycloneDX), checksums, and a signature of these.

    packaging/build.py [--bins target/release --bins ..] [--static FOLDER] [--sign KEY] [--out target/packages]

`--static` adds an archive of programs that need no library (`cargo xtask static` builds them); `--sign` takes a key of OpenSSH. The first folder that has a program gives it. Two runs over the same programs and commit give the same bytes: times are the commit's, owners are
root, names are in order. docs/installation.md says what the packages install.
"""

import argparse
import gzip
import hashlib
import io
import json
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
HERE = ROOT / "packaging"
#: Programs: where they go, the section of their manual page, what they are.
PROGRAMS = {
    "squalld": ("usr/sbin", 8, "the Squall database server"),
    "squall": ("usr/bin", 1, "command line of the Squall database server"),
    "squall-slap": ("usr/bin", 1, "load generator for MySQL servers"),
    "squall-check": ("usr/bin", 1, "checks the files of a stopped Squall server"),
}
SUMMARY = "SQL database server compatible with MySQL"
#: What a signature of the checksums is for, so that one made for something else does not count.
SIGNED_AS = "squall-release"
DESCRIPTION = """\
Squall speaks MySQL's protocol and SQL: drivers, dumps and tools stay as they
are. It has a small kernel with everything else in plugins, a storage engine
that needs no tuning, and shows every internal as a table."""
#: Debian's and rpm's names of processors.
DEB_NAMES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64el"}


def run(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, **more).stdout


class Tree:
    """Files to install: path without the first slash -> (mode, bytes)."""

    def __init__(self, epoch):
        self.files = {}
        self.epoch = epoch

    def add(self, path, content, mode=0o644):
        self.files[path] = (mode, content.encode() if isinstance(content, str) else content)

    def compressed(self, path, content):
        self.add(path + ".gz", gzip.compress(content.encode(), 9, mtime=0))

    def tar(self, prefix, owners=None):
        """A tar of all files with their folders."""
        out = io.BytesIO()
        folders = sorted({str(up) for path in self.files for up in pathlib.PurePosixPath(path).parents} - {"."})
        with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for path in sorted([*folders, *self.files]):
                mode, content = self.files.get(path, (0o755, None))
                entry = tarfile.TarInfo(prefix + path)
                entry.mode, entry.mtime, entry.uname, entry.gname = mode, self.epoch, "root", "root"
                entry.uid, entry.gid = (owners or {}).get(path, (0, 0))
                if isinstance(content, Link):
                    entry.type, entry.linkname = tarfile.SYMTYPE, content
                    tar.addfile(entry)
                elif content is None:
                    entry.type = tarfile.DIRTYPE
                    tar.addfile(entry)
                else:
                    entry.size = len(content)
                    tar.addfile(entry, io.BytesIO(content))
        return out.getvalue()


class Link(str):
    """Content of a symbolic link."""

    def encode(self):
        return self


def program(name, folders):
    """The bytes of a program, without symbols that only debuggers need."""
    for folder in folders:
        path = pathlib.Path(folder, name)
        if path.exists():
            with tempfile.NamedTemporaryFile() as stripped:
                run("strip", "--strip-unneeded", "--remove-section=.comment", "-o", stripped.name, str(path.resolve()))
                return path, pathlib.Path(stripped.name).read_bytes()
    raise SystemExit(f"{name} is in none of {', '.join(folders)}: cargo build --release --workspace --bins")


def all_help(program):
    """What a program says of itself and of its uses, such as `squall import`."""
    own = run(program, "--help")
    uses = [use for use in re.findall(r"squall ([a-z]+)[,;]", own) if program.endswith("/squall")]
    # Some of them colour their headings.
    more = (re.sub(r"\x1b\[[0-9;]*m", "", run(program, use, "--help")) for use in uses)
    return own + "".join(f"\nsquall {use}: {text}" for use, text in zip(uses, more))


def manual_page(name, section, what, text, date):
    """A manual page from what `--help` prints."""
    plain = text.replace("\\", "\\\\").replace("-", "\\-")
    lines = [("\\&" if line.startswith((".", "'")) else "") + line for line in plain.splitlines()]
    see = ", ".join(f"{other} ({PROGRAMS[other][1]})".replace("-", "\\-") for other in sorted(PROGRAMS) if other != name)
    more = ""
    if name == "squalld":
        more = """.SH FILES
.TP
.I /etc/squall/squalld.cnf
settings at the start
.TP
.I /var/lib/squall/data
tables, log, keys; root's first password in the file root\\-password
.TP
.I /run/squall/squall.sock
the socket for clients on the same machine
.TP
.I /var/log/squall/error.log
the error log
"""
    title = name.upper().replace("-", "\\-")
    return (
        f'.TH {title} {section} "{date}" "Squall" "Squall"\n.SH NAME\n{name.replace("-", chr(92) + "-")} \\- {what}\n'
        f".SH DESCRIPTION\n.nf\n" + "\n".join(lines) + f"\n.fi\n{more}.SH SEE ALSO\n{see}\n"
    )


def install_tree(folders, version, epoch, date):
    tree = Tree(epoch)
    for name, (folder, section, what) in PROGRAMS.items():
        path, content = program(name, folders)
        tree.add(f"{folder}/{name}", content, 0o755)
        page = manual_page(name, section, what, all_help(str(path.resolve())), date)
        tree.compressed(f"usr/share/man/man{section}/{name}.{section}", page)
        completion = (HERE / "squall.bash-completion").read_text()
        only = completion.replace("squalld squall squall-slap squall-check", name)
        tree.add(f"usr/share/bash-completion/completions/{name}", only)
        fish = (HERE / "squall.fish-completion").read_text().replace("PROGRAM", name)
        tree.add(f"usr/share/fish/vendor_completions.d/{name}.fish", fish)
    tree.add("usr/share/zsh/vendor-completions/_squall", (HERE / "squall.zsh-completion").read_text())
    places = {
        "squalld.cnf": "etc/squall/squalld.cnf",
        "squall.service": "usr/lib/systemd/system/squall.service",
        "squall.sysusers": "usr/lib/sysusers.d/squall.conf",
        "squall.tmpfiles": "usr/lib/tmpfiles.d/squall.conf",
        "squall.logrotate": "etc/logrotate.d/squall",
    }
    for source, place in places.items():
        tree.add(place, (HERE / source).read_text())
    document = "usr/share/doc/squall"
    tree.add(f"{document}/copyright", (HERE / "deb/copyright").read_text())
    tree.compressed(f"{document}/changelog", (ROOT / "CHANGELOG.md").read_text())
    tree.compressed(f"{document}/README.md", (ROOT / "README.md").read_text())
    return tree


def ar(members, epoch):
    """Debian's outer archive."""
    out = b"!<arch>\n"
    for name, content in members:
        out += f"{name:<16}{epoch:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode() + content
        out += b"\n" * (len(content) % 2)
    return out


def glibc_needed(tree):
    """The newest version of glibc's symbols that a program asks for."""
    newest = (2, 17)
    for name, (folder, _, _) in PROGRAMS.items():
        with tempfile.NamedTemporaryFile() as file:
            file.write(tree.files[f"{folder}/{name}"][1])
            file.flush()
            found = re.findall(r"GLIBC_(\d+)\.(\d+)", run("readelf", "-V", file.name))
        newest = max([newest, *((int(a), int(b)) for a, b in found)])
    return "{}.{}".format(*newest)


def deb(tree, version, arch, out):
    own = Tree(tree.epoch)
    own.files = {path: about for path, about in tree.files.items() if path != "usr/share/doc/squall/changelog.gz"}
    own.add("etc/apparmor.d/usr.sbin.squalld", (HERE / "squall.apparmor").read_text())
    changes = f"squall ({version}-1) unstable; urgency=medium\n\n  * See /usr/share/doc/squall/changelog.gz.\n\n -- The Squall developers <maintainers@squall.example>  {rfc(tree.epoch)}\n"
    own.compressed("usr/share/doc/squall/changelog.Debian", changes)
    own.files["usr/share/doc/squall/changelog.gz"] = tree.files["usr/share/doc/squall/changelog.gz"]
    kib = sum(len(content) for _, content in own.files.values()) // 1024
    control = (
        f"Package: squall\nVersion: {version}-1\nArchitecture: {DEB_NAMES.get(arch, arch)}\nMaintainer: The Squall developers <maintainers@squall.example>\n"
        f"Installed-Size: {kib}\nDepends: libc6 (>= {glibc_needed(tree)}), libgcc-s1, adduser\nSection: database\nPriority: optional\nHomepage: https://squall.example/\n"
        f"Description: {SUMMARY}\n" + "".join(f" {line}\n" for line in DESCRIPTION.splitlines())
    )
    about = Tree(tree.epoch)
    about.add("control", control)
    about.add("conffiles", "".join(f"/{path}\n" for path in sorted(own.files) if path.startswith("etc/")))
    sums = ((path, hashlib.md5(content).hexdigest()) for path, (_, content) in sorted(own.files.items()))
    about.add("md5sums", "".join(f"{digest}  {path}\n" for path, digest in sums if not path.startswith("etc/")))
    for script in ("postinst", "prerm", "postrm"):
        about.add(script, (HERE / "deb" / script).read_text(), 0o755)
    members = [("debian-binary", b"2.0\n"), ("control.tar.xz", lzma.compress(about.tar("./"))), ("data.tar.xz", lzma.compress(own.tar("./"), preset=3))]
    path = out / f"squall_{version}-1_{DEB_NAMES.get(arch, arch)}.deb"
    path.write_bytes(ar(members, tree.epoch))
    return path


def rfc(epoch):
    return run("date", "-u", "-R", "-d", f"@{epoch}", env={**os.environ, "LC_ALL": "C"}).strip()


def rpm(tree, version, arch, out):
    if not shutil.which("rpmbuild"):
        print("rpmbuild is not installed (Debian's package is rpm): NO .rpm IS MADE")
        return None
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        (work / "tree.tar").write_bytes(tree.tar("./"))
        listed = "".join(
            f"{'%config(noreplace) ' if path.startswith('etc/') else ''}%attr({mode:04o}, root, root) /{path}\n" for path, (mode, _) in sorted(tree.files.items())
        )
        spec = (
            "%global __os_install_post %{nil}\n%global debug_package %{nil}\n%global source_date_epoch_from_changelog 0\n"
            "%global clamp_mtime_to_source_date_epoch 1\n%global use_source_date_epoch_as_buildtime 1\n%global _build_id_links none\n"
            f"Name: squall\nVersion: {version}\nRelease: 1\nSummary: {SUMMARY}\nLicense: Apache-2.0\n"
            f"%description\n{DESCRIPTION}\n"
            f"%install\nmkdir -p %{{buildroot}}\ntar -xf {work}/tree.tar -C %{{buildroot}}\n%files\n%dir /etc/squall\n{listed}{(HERE / 'rpm/scripts.spec').read_text()}"
        )
        (work / "squall.spec").write_text(spec)
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(tree.epoch)}
        options = [f"--define=_topdir {work}/top", "--define=_buildhost squall", "--define=_binary_payload w2.xzdio", f"--target={arch}"]
        run("rpmbuild", "-bb", "--quiet", *options, str(work / "squall.spec"), env=environment)
        made = next((work / "top/RPMS").rglob("*.rpm"))
        path = out / made.name
        shutil.copy(made, path)
    return path


def archive(tree, version, arch, out):
    """Programs and documents for a folder of one's own."""
    flat = Tree(tree.epoch)
    top = f"squall-{version}-linux-{arch}"
    for path, about in tree.files.items():
        if path.startswith("usr/"):
            flat.files[f"{top}/{path.removeprefix('usr/').replace('sbin/', 'bin/')}"] = about
    flat.add(f"{top}/LICENSE", (ROOT / "LICENSE").read_text())
    flat.add(f"{top}/README.md", (ROOT / "README.md").read_text())
    path = out / f"{top}.tar.gz"
    path.write_bytes(gzip.compress(flat.tar(""), 6, mtime=0))
    return path


def static(folder, version, arch, epoch, out):
    """Programs that run wherever the kernel does: no C library, no loader."""
    flat = Tree(epoch)
    top = f"squall-{version}-linux-{arch}-static"
    for name in PROGRAMS:
        path, content = program(name, [folder])
        if "(NEEDED)" in run("readelf", "-d", str(path)) or "INTERP" in run("readelf", "-l", str(path)):
            raise SystemExit(f"{path} needs libraries: cargo xtask static")
        flat.add(f"{top}/bin/{name}", content, 0o755)
    flat.add(f"{top}/LICENSE", (ROOT / "LICENSE").read_text())
    flat.add(f"{top}/README.md", (ROOT / "README.md").read_text())
    path = out / f"{top}.tar.gz"
    path.write_bytes(gzip.compress(flat.tar(""), 6, mtime=0))
    return path


def sign(sums, key):
    """`ssh-keygen -Y verify` checks it, on every machine with OpenSSH. An Ed25519 key gives the same signature each time."""
    signature = sums.with_name(sums.name + ".sig")
    signature.unlink(missing_ok=True)
    run("ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", SIGNED_AS, str(sums))
    return signature


def image(tree, version, arch, out):
    """An image in OCI's layout: a layer with the C library and what else programs load, a layer with Squall. `podman load -i`, `skopeo copy oci-archive:`."""
    base, own = Tree(tree.epoch), Tree(tree.epoch)
    loaded = set()
    with tempfile.TemporaryDirectory() as work:
        for name, (folder, _, _) in PROGRAMS.items():
            content = tree.files[f"{folder}/{name}"][1]
            own.add(f"{folder}/{name}", content, 0o755)
            file = pathlib.Path(work, name)
            file.write_bytes(content)
            file.chmod(0o755)
            loaded |= set(re.findall(r"(/\S+\.so\S*) \(0x", run("ldd", str(file))))
    for path in sorted(loaded):
        base.add(path.lstrip("/"), pathlib.Path(path).resolve().read_bytes(), 0o755)
    base.add("etc/passwd", "root:x:0:0:root:/:/sbin/nologin\nsquall:x:999:999:Squall:/var/lib/squall:/sbin/nologin\n")
    base.add("etc/group", "root:x:0:\nsquall:x:999:\n")
    base.add("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
    owners = {}
    for folder, mode in (("var/lib/squall", 0o750), ("run/squall", 0o755), ("tmp", 0o1777)):
        own.files[folder] = (mode, None)
        owners[folder] = (999, 999) if folder != "tmp" else (0, 0)
    blobs = {}

    def blob(content, kind, **more):
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content), **more}

    def as_json(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    tars = [base.tar(""), own.tar("", owners)]
    layers = [blob(gzip.compress(tar, 6, mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip") for tar in tars]
    created = run("date", "-u", "+%Y-%m-%dT%H:%M:%SZ", "-d", f"@{tree.epoch}").strip()
    options = ["--datadir=/var/lib/squall/data", "--socket=/run/squall/squall.sock", "--bind-address=0.0.0.0"]
    about = {
        "architecture": DEB_NAMES.get(arch, arch),
        "os": "linux",
        "created": created,
        "config": {
            "User": "999:999",
            "Entrypoint": ["/usr/sbin/squalld", *options],
            "ExposedPorts": {"3306/tcp": {}},
            "Volumes": {"/var/lib/squall": {}},
            "StopSignal": "SIGTERM",
            "Env": ["PATH=/usr/sbin:/usr/bin"],
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(tar).hexdigest()}" for tar in tars]},
    }
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": blob(as_json(about), "application/vnd.oci.image.config.v1+json"), "layers": layers}
    named = {"annotations": {"org.opencontainers.image.ref.name": f"squall:{version}"}}
    index = {"schemaVersion": 2, "manifests": [blob(as_json(manifest), "application/vnd.oci.image.manifest.v1+json", **named)]}
    layout = Tree(tree.epoch)
    layout.add("oci-layout", '{"imageLayoutVersion":"1.0.0"}')
    layout.add("index.json", as_json(index))
    for digest, content in blobs.items():
        layout.add(f"blobs/sha256/{digest}", content)
    path = out / f"squall-{version}-{arch}.oci.tar"
    path.write_bytes(layout.tar(""))
    return path


def parts(version, out):
    """The libraries that are linked in, with versions and licences (CycloneDX 1.5)."""
    host = re.search(r"host: (\S+)", run("rustc", "-vV"))[1]
    found = json.loads(run("cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={host}"))
    libraries = [package for package in found["packages"] if package["source"]]
    components = [
        {
            "type": "library",
            "name": package["name"],
            "version": package["version"],
            "purl": f"pkg:cargo/{package['name']}@{package['version']}",
            "licenses": [{"expression": package["license"]}] if package["license"] else [],
        }
        for package in sorted(libraries, key=lambda package: (package["name"], package["version"]))
    ]
    about = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": {"type": "application", "name": "squall", "version": version}}, "components": components}
    path = out / f"squall-{version}.cdx.json"
    path.write_text(json.dumps(about, indent=1) + "\n")
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bins", action="append", help="a folder with programs (target/release)")
    parser.add_argument("--static", metavar="FOLDER", help="a folder with programs for musl")
    parser.add_argument("--sign", metavar="KEY", help="a private key of OpenSSH, or a public one whose private half is with ssh-agent")
    parser.add_argument("--out", default="target/packages")
    options = parser.parse_args()
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
    epoch = int(run("git", "log", "-1", "--format=%ct"))
    date = run("date", "-u", "+%Y-%m-%d", "-d", f"@{epoch}").strip()
    arch = os.uname().machine
    out = ROOT / options.out
    out.mkdir(parents=True, exist_ok=True)
    tree = install_tree(options.bins or ["target/release"], version, epoch, date)
    made = [make(tree, version, arch, out) for make in (deb, rpm, archive, image)] + [parts(version, out)]
    if options.static:
        made.append(static(options.static, version, arch, epoch, out))
    made = [path for path in made if path]
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made)
    (out / "SHA256SUMS").write_text(sums)
    if options.sign:
        made.append(sign(out / "SHA256SUMS", options.sign))
    for path in made:
        print(f"{path.stat().st_size:>12} {path.name}")


if __name__ == "__main__":
    main()
