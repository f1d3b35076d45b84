#!/usr/bin/env python3
"""Draws the pictures of docs/concepts.md and of the tour: plain SVG on a light ground of its own, so that they can be read on any page.

    docs/pictures/draw.py [--check]
"""

import html
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
INK, SOFT, GROUND = "#1b2733", "#5b6b7a", "#f7f9fb"
BLUE, GREEN, SAND, ROSE, WHITE = "#d8e8f8", "#d9f0dc", "#f8ecd0", "#f8dcdc", "#ffffff"


class Picture:
    def __init__(self, width, height, title):
        self.size, self.title, self.parts = (width, height), title, []

    def text(self, x, y, words, size=14, anchor="middle", fill=INK, bold=False):
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" fill="{fill}"{weight}>{html.escape(words)}</text>')

    def box(self, x, y, width, height, *lines, fill=BLUE, dashed=False):
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="{SOFT}"{dash}/>')
        begin = y + height / 2 - (len(lines) - 1) * 9 + 5
        for number, line in enumerate(lines):
            self.text(x + width / 2, begin + number * 18, line, size=14 if number == 0 else 12, bold=number == 0, fill=INK if number == 0 else SOFT)

    def group(self, x, y, width, height, title):
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="10" fill="none" stroke="{SOFT}" stroke-dasharray="2 4"/>')
        self.text(x + 12, y + 20, title, size=13, anchor="start", fill=SOFT, bold=True)

    def arrow(self, *points, label="", at=None, dashed=False):
        path = " ".join(f"{x},{y}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{INK}" stroke-width="1.5" marker-end="url(#tip)"{dash}/>')
        if label:
            (x1, y1), (x2, y2) = points[0], points[-1]
            x, y = at or ((x1 + x2) / 2, (y1 + y2) / 2 - 6)
            self.text(x, y, label, size=12, fill=SOFT)

    def svg(self):
        width, height = self.size
        tip = f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="{INK}"/></marker></defs>'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" font-family="sans-serif"><title>{html.escape(self.title)}</title>'
        ground = f'<rect width="{width}" height="{height}" rx="10" fill="{GROUND}"/>'
        return "\n".join([head, tip, ground, *self.parts, "</svg>"]) + "\n"


def statement():
    p = Picture(860, 330, "How a statement runs")
    p.box(20, 40, 110, 60, "client", "any MySQL driver", fill=WHITE)
    p.box(180, 40, 130, 60, "protocol", "plugin, a reactor")
    p.box(360, 40, 120, 60, "session", "state, rights")
    p.box(540, 40, 130, 60, "plan cache", "by normalised text", fill=SAND)
    p.box(730, 40, 110, 60, "program", "compiled", fill=GREEN)
    p.arrow((130, 60), (180, 60)), p.arrow((310, 60), (360, 60)), p.arrow((480, 70), (540, 70)), p.arrow((670, 70), (730, 70), label="hit")
    for x, name, words in [(240, "syntax", "text to tree"), (390, "binder", "names, types"), (540, "optimizer", "which way"), (690, "compiler", "to a program")]:
        p.box(x, 150, 125, 50, name, words)
    p.arrow((600, 100), (600, 125), (300, 125), (300, 150), label="miss", at=(450, 119))
    for x in (365, 515, 665):
        p.arrow((x, 175), (x + 25, 175))
    p.arrow((785, 150), (785, 100))
    p.box(390, 250, 275, 56, "storage engine", "rows are records, keys are bytes", fill=SAND)
    p.arrow((830, 100), (830, 278), (665, 278), label="calls", at=(750, 272))
    p.arrow((390, 278), (75, 278), (75, 100), label="cells, straight from the record to the output", at=(232, 270))
    return p


def versions():
    p = Picture(860, 300, "Transactions and versions")
    p.group(20, 20, 330, 260, "page of the B+tree")
    p.box(50, 60, 270, 56, "row 7: price = 49", "written by transaction 120", fill=GREEN)
    p.box(50, 135, 270, 40, "row 8: price = 30", fill=WHITE)
    p.text(185, 215, "always the newest version", size=13, fill=SOFT)
    p.group(400, 20, 440, 120, "undo: how the version before differed")
    p.box(420, 60, 180, 56, "price was 45", "transaction 110", fill=SAND)
    p.box(640, 60, 180, 56, "price was 40", "transaction 90", fill=SAND)
    p.arrow((320, 88), (420, 88)), p.arrow((600, 88), (640, 88))
    p.group(400, 160, 440, 120, "snapshots: two numbers")
    p.box(420, 200, 180, 56, "snapshot at 115", "sees 45", fill=BLUE)
    p.box(640, 200, 180, 56, "snapshot at 100", "sees 40", fill=BLUE)
    p.arrow((510, 200), (510, 116), dashed=True), p.arrow((730, 200), (730, 116), dashed=True)
    return p


def recovery():
    p = Picture(860, 330, "Log and recovery")
    p.group(20, 20, 400, 290, "a commit")
    p.box(40, 55, 150, 50, "change of a page", "in memory")
    p.box(240, 55, 160, 50, "record in a lane", "with a ticket")
    p.arrow((190, 80), (240, 80))
    p.box(240, 150, 160, 50, "batch", "for all who wait", fill=SAND)
    p.arrow((320, 105), (320, 150), label="flush", at=(345, 132))
    p.box(240, 245, 160, 46, "log file", "synced", fill=GREEN)
    p.arrow((320, 200), (320, 245))
    p.box(40, 245, 150, 46, "OK to the client", fill=WHITE)
    p.arrow((240, 268), (190, 268))
    p.box(40, 150, 150, 50, "page file", "later, by itself", fill=WHITE, dashed=True)
    p.arrow((115, 105), (115, 150), dashed=True)
    p.group(450, 20, 390, 290, "a start after a crash")
    steps = [("1 torn pages", "from the doublewrite file"), ("2 redo", "the log from the checkpoint on"), ("3 who had not ended?", "losers; prepared ones stay"), ("4 ready", "clients work"), ("5 roll back", "meanwhile, rows locked")]
    for number, (name, words) in enumerate(steps):
        p.box(490, 50 + number * 51, 310, 40, name, words, fill=GREEN if number >= 3 else BLUE)
    return p


def pool():
    p = Picture(860, 320, "Buffer pool")
    p.group(20, 20, 250, 280, "array by page number")
    for number, words in enumerate(["41: version 8, frame 2", "42: version 5, no frame", "43: version 12, frame 0"]):
        p.box(35, 60 + number * 62, 220, 44, words, fill=BLUE if number != 1 else WHITE)
    p.text(145, 270, "version and latch stay", size=12, fill=SOFT)
    p.group(310, 20, 230, 280, "frames in memory")
    for number, (words, fill) in enumerate([("frame 0", GREEN), ("frame 1, free", WHITE), ("frame 2, changed", ROSE)]):
        p.box(330, 60 + number * 62, 190, 44, words, fill=fill)
    p.arrow((255, 82), (330, 205)), p.arrow((255, 206), (330, 82))
    p.box(600, 50, 240, 50, "reader", "version, bytes, version again", fill=WHITE)
    p.arrow((600, 75), (520, 80))
    p.box(600, 130, 240, 50, "page writer", "copies, then writes the copy", fill=SAND)
    p.arrow((520, 208), (600, 165))
    p.box(600, 205, 115, 50, "doublewrite", "first", fill=WHITE)
    p.box(725, 205, 115, 50, "page file", "then", fill=WHITE)
    p.arrow((657, 180), (657, 205)), p.arrow((715, 230), (725, 230))
    p.text(720, 285, "only what the log already has", size=12, fill=SOFT)
    return p


def kernel():
    p = Picture(860, 330, "Kernel and plugins")
    p.group(20, 20, 820, 90, "plugins: come and go while the server runs")
    for number, name in enumerate(["protocols", "functions", "log-ins", "tables", "languages", "observers", "keyrings"]):
        p.box(35 + number * 115, 50, 105, 44, name, fill=GREEN)
    p.box(20, 130, 820, 40, "plugin-api: slots, and no way to a session", fill=SAND)
    p.arrow((430, 110), (430, 130))
    p.group(20, 190, 520, 120, "kernel")
    for number, name in enumerate(["syntax", "binder", "optimizer", "exec", "session"]):
        p.box(35 + number * 100, 225, 90, 50, name)
    p.box(580, 200, 120, 100, "engine-api", "rows are bytes", fill=SAND)
    p.box(730, 190, 110, 34, "engine", fill=GREEN)
    p.box(730, 234, 110, 34, "memory", fill=GREEN)
    p.box(730, 278, 110, 34, "NDB", fill=GREEN)
    p.arrow((540, 250), (580, 250))
    for y in (207, 251, 295):
        p.arrow((700, 250), (730, y))
    return p


def replication():
    p = Picture(860, 270, "Binary log and replication")
    p.group(20, 20, 520, 230, "source")
    p.box(40, 60, 130, 56, "transaction", "rows and events")
    p.box(210, 60, 140, 56, "the engine's log", "one record, one sync", fill=GREEN)
    p.arrow((170, 88), (210, 88), label="")
    p.box(390, 60, 130, 56, "follower", "one thread", fill=SAND)
    p.arrow((350, 88), (390, 88), dashed=True)
    p.box(390, 170, 130, 56, "binary log", "MySQL's format", fill=WHITE)
    p.arrow((455, 116), (455, 170))
    p.box(40, 170, 130, 56, "OK to the client", "waits for nothing else", fill=WHITE)
    p.arrow((245, 116), (245, 198), (170, 198))
    p.group(570, 20, 270, 230, "replica")
    p.box(590, 170, 100, 56, "reader", "no relay log")
    p.arrow((520, 198), (590, 198))
    p.box(730, 170, 95, 56, "workers", "in order")
    p.arrow((690, 198), (730, 198))
    p.box(610, 60, 200, 56, "rows and position", "in one transaction", fill=GREEN)
    p.arrow((777, 170), (777, 116))
    return p


def encryption():
    p = Picture(860, 300, "Encryption at rest")
    p.group(20, 20, 560, 260, "server")
    for number, name in enumerate(["pages", "log", "undo", "sorted runs", "binary log"]):
        p.box(35 + number * 108, 55, 98, 40, name)
        p.arrow((84 + number * 108, 95), (84 + number * 108, 130))
    p.box(35, 130, 530, 50, "a disk over the disk", "units of 512 bytes, AES-256-XTS; sizes stay", fill=SAND)
    p.arrow((300, 180), (300, 220))
    p.box(35, 220, 530, 44, "files of the data directory: nothing to read in them", fill=WHITE)
    p.group(610, 20, 230, 260, "keys")
    p.box(630, 55, 190, 56, "keyring", "master key, elsewhere", fill=ROSE)
    p.arrow((725, 111), (725, 190), label="unwraps", at=(760, 155))
    p.box(630, 190, 190, 56, "data key", "wrapped, in the directory", fill=GREEN)
    p.arrow((630, 200), (600, 200), (600, 155), (565, 155))
    return p


def main():
    check, stale = "--check" in sys.argv, []
    for draw in (statement, versions, recovery, pool, kernel, replication, encryption):
        path, text = HERE / f"{draw.__name__}.svg", draw().svg()
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(path.name)
    if stale:
        raise SystemExit(f"{', '.join(stale)}: not what docs/pictures/draw.py draws; run it")


if __name__ == "__main__":
    main()
