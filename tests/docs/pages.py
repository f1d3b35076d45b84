#!/usr/bin/env python3
"""Runs the blocks of the pages that users read: each works, and answers what the page says.

    tests/docs/pages.py [--programs target/debug] [PAGE ..]

Blocks `sql` are run by the client in the schema `shop`, which is new for each page; blocks `sh` by bash in a folder of the test; a block `text`
holds the last lines that the block before it printed. One line of the form `<!-- run first: .. -->` prepares, and `<!-- not run: reason -->` before a block
excuses it; `<!-- run if: command -->` runs it where the command succeeds. A block that is neither run nor excused fails the test, so that none is forgotten. docs/quick-start.md has its own script.

Folders that a page names become folders of the test, as do ports and root's password. A page may start servers of its own below `/var/lib`.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "crash"))

from kill_loop import free_port  # noqa: E402

DOCS = HERE.parent.parent / "docs"
# Pages whose blocks are checked: all parts of the book but reference, formats, the tour and what is run by scripts of its own.
PARTS = ("# Begin", "# Use", "# Run it", "# Extend it")
OWN_SCRIPT = {"quick-start.md"}


class Block:
    def __init__(self, line, kind, text, excuse):
        self.line, self.kind, self.text, self.excuse = line, kind, text, excuse


def listed():
    """The pages of the parts that users read."""
    part, pages = "", []
    for line in (DOCS / "SUMMARY.md").read_text().splitlines():
        part = line if line.startswith("# ") else part
        found = re.search(r"\]\(([a-z-]+\.md)\)", line)
        if found and part in PARTS and found[1] not in OWN_SCRIPT:
            pages.append(found[1])
    return pages


def blocks(text):
    """The blocks of a page in order, with what is said before each."""
    lines, found, at, excuse = text.splitlines(), [], 0, None
    while at < len(lines):
        line = lines[at]
        comment = re.fullmatch(r"<!-- (run first|not run|run if): (.*) -->", line)
        if comment and comment[1] == "run first":
            found.append(Block(at + 1, "sql", comment[2], None))
        elif comment and comment[1] == "run if":
            missing = subprocess.run(["bash", "-c", comment[2]], capture_output=True).returncode != 0
            excuse = f"{comment[2]} fails here" if missing else None
        elif comment:
            excuse = comment[2]
        elif line.startswith("```") or (line.startswith("    ") and (at == 0 or not lines[at - 1].strip())):
            fenced, end = line.startswith("```"), at + 1
            while end < len(lines) and (not lines[end].startswith("```") if fenced else lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            body = lines[at + 1:end] if fenced else [each[4:] for each in lines[at:end]]
            found.append(Block(at + 1, line[3:].strip() if fenced else "", "\n".join(body) + "\n", excuse))
            excuse, at = None, end if fenced else end - 1
        at += 1
    return found


class World:
    def __init__(self, programs):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pages-"))
        self.others = {}
        self.port, self.http = str(free_port()), str(free_port())
        self.environment = {**os.environ, "PATH": f"{programs.resolve()}:{os.environ['PATH']}"}
        # Blocks that build something do it with the toolchain of the repository, wherever their folder is.
        active = subprocess.run(["rustup", "show", "active-toolchain"], cwd=DOCS, capture_output=True, text=True).stdout.split() if shutil.which("rustup") else []
        self.environment.update({"RUSTUP_TOOLCHAIN": active[0]} if active else {})
        self.socket = self.folder / "data/squall.sock"
        for folder in ("backups", "archive", "etc", "var/lib"):
            (self.folder / folder).mkdir(parents=True)
        options = [f"--datadir={self.folder}/data", f"--port={self.port}", "--plugin-add=json_server", "--plugin-add=metrics", f"--json-server-port={self.http}"]
        with open(self.folder / "log", "wb") as log:
            self.server = subprocess.Popen([programs / "squalld", *options], stdout=log, stderr=log, cwd=self.folder)
        until = time.monotonic() + 120
        while b"ready for connections" not in (self.folder / "log").read_bytes():
            if self.server.poll() is not None or time.monotonic() > until:
                raise SystemExit((self.folder / "log").read_text())
            time.sleep(0.05)
        self.password = (self.folder / "data/root-password").read_text().strip()

    def here(self, text):
        """A block with the folders, ports and password of the test."""
        text = text.replace("--port=3307 -u root", f"-S {self.socket}")
        # Other servers than that of the test get ports of their own.
        for known in re.findall(r"127\.0\.0\.1:(330[1-57-9])\b|--port=(330[1-57-9])\b", text):
            number = "".join(known)
            text = text.replace(number, self.others.setdefault(number, str(free_port())))
        for known, own in [("db1:3306", f"127.0.0.1:{self.port}"), ("SOURCE_PASSWORD=...", f"SOURCE_PASSWORD='{self.password}'"), ("8086", self.http), ("3306", self.port), ("root:PASSWORD", f"root:{self.password}"), ("/tmp/squall-try", f"{self.folder}/data")]:
            text = text.replace(known, own)
        if "--restore-from" not in text and "--port" not in text:
            text = text.replace("squalld --datadir", f"squalld --port={free_port()} --datadir")
        for root in ("/backups", "/var/lib/squall", "/etc/squall", "/archive"):
            text = re.sub(rf"(?<![\w.]){root}", f"{self.folder}{root}", text)
        return text

    def run(self, block):
        text = self.here(block.text)
        command = ["bash", "-e"] if block.kind == "sh" else ["squall", "-S", str(self.socket), "--table", "--batch", "--force"]
        if block.kind == "sql":
            text = "USE shop;\n" + text
        done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=self.folder, env=self.environment, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def close(self):
        for pid in self.folder.glob("var/lib/*/squalld.pid"):
            os.kill(int(pid.read_text()), signal.SIGTERM)
        self.server.send_signal(signal.SIGTERM)
        self.server.wait(timeout=60)
        shutil.rmtree(self.folder, ignore_errors=True)


def check(world, page, failures):
    """Runs a page's blocks; the number that ran and that are excused."""
    ran, excused, output = 0, 0, ""
    world.run(Block(0, "sh", "squall -S data/squall.sock -e 'DROP DATABASE IF EXISTS shop; CREATE DATABASE shop'", None))
    found = blocks((DOCS / page).read_text())
    for position, block in enumerate(found):
        place = f"{page}:{block.line}"
        if block.excuse is not None:
            excused += 1
        elif block.kind == "text":
            if not output.rstrip().endswith(block.text.rstrip()):
                failures.append(f"{place}: the page says\n{block.text}\nthe server says\n{output}")
        elif block.kind in ("sql", "sh"):
            status, output = world.run(block)
            following = found[position + 1] if position + 1 < len(found) else None
            expected = following.text if following and following.kind == "text" else ""
            if (block.kind == "sh" and status) or ("ERROR " in output and "ERROR " not in expected):
                failures.append(f"{place}:\n{block.text}\n{output}")
            ran += 1
        else:
            failures.append(f"{place}: a block that is neither run (```sql, ```sh) nor excused (<!-- not run: reason -->)\n{block.text}")
    return ran, excused


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("target/debug"))
    parser.add_argument("pages", nargs="*")
    options = parser.parse_args()
    pages, failures, sums = options.pages or listed(), [], [0, 0]
    begun, world = time.monotonic(), World(options.programs.resolve())
    try:
        for page in pages:
            ran, excused = check(world, page, failures)
            sums = [sums[0] + ran, sums[1] + excused]
    finally:
        world.close()
    for failure in failures:
        print(f"FAILED: {failure}")
    print(f"pages: {sums[0]} blocks of {len(pages)} pages ran in {time.monotonic() - begun:.1f} s, {sums[1]} are excused, {len(failures)} failed")
    if failures:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
