#!/usr/bin/env python3
"""Writes crates/charset/src/tables/*.bin and crates/charset/src/list.rs.

Weights are facts asked of a running reference server, one code point at a time, with WEIGHT_STRING(). The formats are
described in crates/charset/src/tables.rs. Needs PyMySQL.

    collations.py PROBE_FILE [--ask HOST:PORT]     with --ask, asks the server first and keeps its answers in PROBE_FILE
"""
import os
import pickle
import struct
import sys

import multibyte

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "crates", "charset", "src")
PAGES = 0x110000 >> 8
BASE = {}
UNICODE = ["0900_as_cs", "unicode_ci", "unicode_520_ci", "general_ci"]
ENCODINGS = {"utf8mb4", "utf8mb3", "ucs2", "utf16", "utf16le", "utf32"}


def ask(address):
    import pymysql
    host, port = address.split(":")
    link = pymysql.connect(host=host, port=int(port), user="root", charset="utf8mb4", autocommit=True)
    cursor = link.cursor()

    def rows(sql):
        cursor.execute(sql)
        return cursor.fetchall()
    out = {
        "collations": rows("select collation_name, character_set_name, id, is_default, is_compiled, sortlen, pad_attribute "
                           "from information_schema.collations order by id"),
        "charsets": rows("select character_set_name, default_collate_name, description, maxlen "
                         "from information_schema.character_sets order by 1"),
    }
    rows("create database if not exists coll_probe")
    rows("use coll_probe")
    rows("drop table if exists cps")
    rows("create table cps(cp int primary key, c varchar(1) charset utf8mb4 collate utf8mb4_bin)")
    points = [i for i in range(0x110000) if not 0xD800 <= i <= 0xDFFF]
    for k in range(0, len(points), 20000):
        rows("insert into cps values " + ",".join("(%d,x'%s')" % (i, chr(i).encode().hex()) for i in points[k:k + 20000]))
    for name in UNICODE:
        name = "utf8mb4_" + name
        out["w:" + name] = dict(rows(f"select cp, hex(weight_string(c collate {name})) from cps"))
        out["case:" + name] = rows(
            f"select cp, hex(upper(c collate {name})), hex(lower(c collate {name})) from cps "
            f"where hex(upper(c collate {name})) <> hex(c) or hex(lower(c collate {name})) <> hex(c)")
    for name, _, _, width in out["charsets"]:
        if width == 1 and name != "binary":
            out["cs:" + name] = [rows(f"select hex(convert(_{name} x'{b:02x}' using utf8mb4))")[0][0] for b in range(256)]
    for name, charset, *_ in out["collations"]:
        if "cs:" + charset in out:
            out["w8:" + name] = rows("select " + ",".join(
                f"hex(weight_string(_{charset} x'{b:02x}' collate {name}))" for b in range(256)))
    out["multibyte"] = multibyte.ask(rows)
    out["tailor"] = ask_tailored(rows, out)
    rows("drop database coll_probe")
    return out


def candidates():
    """Sequences that some language may treat as one letter."""
    latin = [chr(i) for i in [*range(0x41, 0x5B), *range(0x61, 0x7B)]]
    extended = [chr(i) for i in range(0xC0, 0x250)]
    marks = [*range(0x300, 0x305), *range(0x306, 0x30D), 0x31B, 0x323, 0x327, 0x328]
    pairs = [a + b for a in latin for b in latin] + [a + b for a in "dDlLnNzZsScCgGtT" for b in extended]
    triples = [a + b + c for a in "dDcClLnNsStTzZgG" for b in "dDzZsSgGlLnNyYcCtT" for c in "zZsSyYhHdDžŽ"]
    fours = [a + b + c + d for a in "dD" for b in "dD" for c in "zZ" for d in "sS"]
    marked = [a + chr(m) for a in latin + [chr(i) for i in range(0x400, 0x460)] + extended for m in marks]
    return list(dict.fromkeys(pairs + triples + fours + marked))


def base_of(name):
    if "0900" in name:
        return "utf8mb4_0900_ai_ci" if name.endswith("ai_ci") else "utf8mb4_0900_as_cs"
    return "utf8mb4_unicode_ci"


def ask_tailored(rows, probe):
    """Per language collation: code points and sequences whose weights differ from the base's."""
    sequences = candidates()
    rows("drop table if exists seqs")
    rows("create table seqs(i int primary key, c varchar(8) charset utf8mb4 collate utf8mb4_bin)")
    for k in range(0, len(sequences), 5000):
        rows("insert into seqs values " + ",".join("(%d,x'%s')" % (k + j, s.encode().hex()) for j, s in enumerate(sequences[k:k + 5000])))
    narrow = "from cps where cp < 0x3400 or cp between 0xa000 and 0xabff or cp between 0xf900 and 0x1ffff"
    bases = {b: dict(rows(f"select cp, hex(weight_string(c collate {b})) {narrow}"))
             for b in ("utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_unicode_ci")}
    out = {}
    for name, charset, *_ in probe["collations"]:
        plain = name.endswith("_bin") or name[8:] in ("general_ci", "unicode_ci", "unicode_520_ci", "0900_ai_ci", "0900_as_ci", "0900_as_cs")
        # Japanese and Chinese reorder tens of thousands of characters.
        if charset != "utf8mb4" or plain or "_ja_" in name or "_zh_" in name:
            continue
        single = dict(rows(f"select cp, hex(weight_string(c collate {name})) {narrow}"))
        joined = dict(rows(f"select i, hex(weight_string(c collate {name})) from seqs"))
        base = bases[base_of(name)]

        def parts(text):
            return [sum((levels(single[ord(c)])[k] for c in text), []) for k in range(3)]
        out[name] = ({cp: text for cp, text in single.items() if text != base[cp]},
                     {sequences[i]: text for i, text in joined.items() if levels(text) != parts(sequences[i])})
        print(name, *map(len, out[name]), flush=True)
    return out


def ask_again(path, address):
    """Asks for the language collations only."""
    import pymysql
    with open(path, "rb") as file:
        probe = pickle.load(file)
    host, port = address.split(":")
    link = pymysql.connect(host=host, port=int(port), user="root", charset="utf8mb4", autocommit=True)
    cursor = link.cursor()

    def rows(sql):
        cursor.execute(sql)
        return cursor.fetchall()
    rows("use coll_probe")
    probe["tailor"] = ask_tailored(rows, probe)
    with open(path, "wb") as file:
        pickle.dump(probe, file)


def units(text):
    return [int(text[i:i + 4], 16) for i in range(0, len(text), 4)]


def levels(text):
    """Weights of one code point, split at the 0000 between levels."""
    out = [[], [], []]
    level = 0
    for unit in units(text):
        if unit == 0:
            level += 1
        else:
            out[level].append(unit)
    return out


def implicit(cp, base):
    if base == 0xFB00:
        return [0xFB00, (cp - 0x17000) | 0x8000] if cp >= 0x17000 else None
    return [base + (cp >> 15), (cp & 0x7FFF) | 0x8000]


def pack_uca(weights, full):
    """Page index, pages of u32, pool of u16; see tables.rs."""
    get = {cp: levels(text) if full else [units(text)] for cp, text in weights.items()}
    tail = [[0x20], [0x02]] if full else []
    index, pages, pool, seen = [], [], [], {}
    page_of = {}

    def hangul(cp):
        s = cp - 0xAC00
        jamo = [0x1100 + s // 588, 0x1161 + s % 588 // 28] + ([0x11A7 + s % 28] if s % 28 else [])
        return [sum((get[j][level] for j in jamo), []) for level in range(3)]
    for page in range(PAGES):
        cps = range(page << 8, (page + 1) << 8)
        have = [cp for cp in cps if cp in get]
        special = None
        for base in (0xFB40, 0xFB80, 0xFBC0, 0xFB00):
            if all(implicit(cp, base) is not None and get[cp] == [implicit(cp, base)] + tail for cp in have):
                special = 0xFF00 | base & 0xFF
                break
        if not full and have and all(get[cp] == [[0xFFFD]] for cp in have):
            special = 0xFFFD
        if full and have and all(0xAC00 <= cp <= 0xD7A3 and get[cp] == hangul(cp) for cp in have):
            special = 0xFFFE
        if special is not None:
            index.append(special)
            continue
        entries = []
        for cp in cps:
            value = get.get(cp, [[0xFFFD]] + tail)
            if not full and len(value[0]) == 1:
                entries.append(1 << 24 | value[0][0])
                continue
            key = tuple(map(tuple, value))
            if key not in seen:
                seen[key] = len(pool)
                if full:
                    pool.append(sum(len(part) << 5 * i for i, part in enumerate(value)))
                assert all(len(part) < 32 for part in value)
                for part in value:
                    pool.extend(part)
            entries.append(seen[key] | (0 if full else len(value[0]) << 24))
        blob = struct.pack("<256I", *entries)
        if blob not in page_of:
            page_of[blob] = len(pages)
            pages.append(blob)
        index.append(page_of[blob])
    head = struct.pack("<I", len(pages))
    return head + struct.pack("<%dH" % PAGES, *index) + b"".join(pages) + struct.pack("<%dH" % len(pool), *pool)


def pack_tailored(tailor):
    """See tables.rs; returns the table and the slots of the names in it."""
    blobs, slots, pool, seen = [], {}, [], {}

    def place(text, ai):
        value = tuple(tuple(part) for part in levels(text))
        assert not ai or not value[1] and not value[2]
        if value not in seen:
            seen[value] = len(pool)
            pool.append(sum(len(part) << 5 * i for i, part in enumerate(value)))
            for part in value:
                pool.extend(part)
        return seen[value]
    for name, (single, joined) in tailor.items():
        if len(single) > 20000:
            continue
        # The primary weights of the case-sensitive sister do, where they are the same.
        sister = name.replace("_ai_ci", "_as_cs")
        source = single, joined
        if sister != name and sister in tailor and len(tailor[sister][0]) < 20000:
            def first(text):
                return levels(text)[0]
            others = {c: first(t) for c, t in tailor[sister][0].items()}
            sequences = {c: first(t) for c, t in tailor[sister][1].items()}
            same = all(others.get(c) == first(t) for c, t in single.items())
            same = same and {c: first(t) for c, t in joined.items()} == sequences
            # A code point that only the sister tailors must keep its primary weights.
            if same and all(c in single or first(t) == first(BASE[c]) for c, t in tailor[sister][0].items()):
                source = tailor[sister]
        singles, sequences = source
        blob = struct.pack("<HH", len(singles), len(sequences))
        for cp in sorted(singles):
            blob += struct.pack("<II", cp, place(singles[cp], False))
        for text in sorted(sequences, key=lambda t: [ord(c) for c in t]):
            points = [ord(c) for c in text] + [0] * (4 - len(text))
            blob += struct.pack("<IIIII", *points, place(sequences[text], False))
        if blob not in blobs:
            blobs.append(blob)
        slots[name] = blobs.index(blob)
    head, at = struct.pack("<I", len(blobs)), 4 + 4 * (len(blobs) + 1)
    for blob in blobs:
        head += struct.pack("<I", at)
        at += len(blob)
    head += struct.pack("<I", at)
    return head + b"".join(blobs) + struct.pack("<%dH" % len(pool), *pool), slots


def pack_general(weights):
    index, pages = [], []
    for page in range(256):
        cps = range(page << 8, (page + 1) << 8)
        values = [int(weights[cp], 16) if cp in weights else cp for cp in cps]
        if values == list(cps):
            index.append(0xFF)
        else:
            index.append(len(pages))
            pages.append(struct.pack("<256H", *values))
    assert all(weights[cp] == "FFFD" for cp in range(0x10000, 0x110000))
    return bytes(index) + b"".join(pages)


def pack_case(rows):
    def point(text, plain):
        # The server answers an empty string where the mapping is longer in bytes; there Unicode's own mapping is meant.
        return ord(bytes.fromhex(text).decode() or plain)
    return b"".join(struct.pack("<III", cp, point(up, chr(cp).upper()), point(low, chr(cp).lower())) for cp, up, low in sorted(rows))


def rule(name, charset, cs_slots, w8_slots, tailored):
    """The rule that orders a collation, and whether it is exactly that."""
    if charset == "binary":
        return "Rule::Binary", True
    if charset in ENCODINGS:
        tail = name[len(charset) + 1:]
        exact = {"general_ci": "Rule::General", "bin": "Rule::Bin", "unicode_ci": "Rule::Unicode400",
                 "unicode_520_ci": "Rule::Unicode520", "0900_ai_ci": "Rule::Unicode900(1)", "0900_as_ci": "Rule::Unicode900(2)",
                 "0900_as_cs": "Rule::Unicode900(3)", "0900_bin": "Rule::Binary"}
        if tail in exact:
            return exact[tail], True
        if "utf8mb4_" + tail in tailored:
            level = 0 if "0900" not in tail else 1 if tail.endswith("ai_ci") else 3
            return f"Rule::Tailored({level}, {tailored['utf8mb4_' + tail]})", True
        if "0900_ai_ci" in tail:
            return "Rule::Unicode900(1)", False
        if "0900_as_cs" in tail:
            return "Rule::Unicode900(3)", False
        if tail in ("tolower_ci", "general_mysql500_ci"):
            return "Rule::General", False
        return "Rule::Unicode400", False
    if charset in multibyte.NAMES:
        if name.endswith("_unicode_520_ci"):
            return "Rule::Unicode520", True
        # The Chinese weights of characters beyond U+FFFF are not in the table.
        return f"Rule::Wide({wide(charset)}, {str(name.endswith('_bin')).lower()})", name != "gb18030_chinese_ci"
    if name == "ascii_bin":
        return "Rule::Bin", True
    if name in w8_slots:
        return f"Rule::Bytes({cs_slots[charset]}, {w8_slots[name]})", not name.startswith("tis620_thai")
    return "Rule::Bin", False


def wide(charset):
    longer = "Three" if charset in ("ujis", "eucjpms") else "Four" if charset == "gb18030" else "No"
    return f"Multibyte {{ slot: {multibyte.NAMES.index(charset)}, longer: Longer::{longer} }}"


def main():
    path = sys.argv[1]
    if "--ask-tailored" in sys.argv:
        ask_again(path, sys.argv[sys.argv.index("--ask-tailored") + 1])
    if "--ask" in sys.argv:
        with open(path, "wb") as file:
            pickle.dump(ask(sys.argv[sys.argv.index("--ask") + 1]), file)
    with open(path, "rb") as file:
        probe = pickle.load(file)

    def save(name, data):
        with open(os.path.join(ROOT, "tables", name), "wb") as file:
            file.write(data)
        print(name, len(data))
    save("unicode900.bin", pack_uca(probe["w:utf8mb4_0900_as_cs"], True))
    save("unicode520.bin", pack_uca(probe["w:utf8mb4_unicode_520_ci"], False))
    save("unicode400.bin", pack_uca(probe["w:utf8mb4_unicode_ci"], False))
    BASE.update(probe["w:utf8mb4_0900_as_cs"])
    table, tailored = pack_tailored(probe["tailor"])
    save("tailored.bin", table)
    save("general.bin", pack_general(probe["w:utf8mb4_general_ci"]))
    save("case900.bin", pack_case(probe["case:utf8mb4_0900_as_cs"]))
    save("case520.bin", pack_case(probe["case:utf8mb4_unicode_520_ci"]))
    save("case300.bin", pack_case(probe["case:utf8mb4_general_ci"]))
    save("multibyte.bin", multibyte.pack(probe["multibyte"]))
    cs_slots, w8_slots, sets, bytes_out = {}, {}, b"", b""
    for key, row in probe.items():
        if key.startswith("cs:"):
            cs_slots[key[3:]] = len(cs_slots)
            points = [0xFFFF if text == "3F" and b != 0x3F else ord(bytes.fromhex(text).decode()) for b, text in enumerate(row)]
            sets += struct.pack("<256H", *points)
    for key, row in probe.items():
        if key.startswith("w8:"):
            row = row[0]
            if all(len(text) <= 4 for text in row) and any(len(text) == 2 for text in row):
                w8_slots[key[3:]] = len(w8_slots)
                bytes_out += bytes(int(text[:2], 16) for text in row) + bytes(int(text[2:] or "0", 16) for text in row)
    save("charsets.bin", sets)
    save("weights8.bin", bytes_out)
    known = [c for c in probe["charsets"] if c[0] in ENCODINGS | {"binary"} | set(cs_slots) | set(multibyte.NAMES)]
    lines = ["//! Generated by xtask/codegen/collations.py: names and ids of character sets and collations. Do not edit.", "",
             "use crate::charset::{Charset, Encoding};",
             "use crate::collation::{Collation, PadAttribute, Rule};", "use crate::id::CollationId;",
             "use crate::multibyte::{Longer, Multibyte};", "",
             "/// Character sets by name.", "#[rustfmt::skip]", f"pub(crate) static CHARSETS: [Charset; {len(known)}] = ["]
    ids = {row[0]: row[2] for row in probe["collations"]}
    encodings = {"utf8mb4": "Utf8mb4", "utf8mb3": "Utf8mb3", "ucs2": "Ucs2", "utf16": "Utf16", "utf16le": "Utf16Le",
                 "utf32": "Utf32", "binary": "Binary", "ascii": "Ascii"}
    for name, default, text, width in known:
        encoding = encodings.get(name) or (
            f"Wide({wide(name)})" if name in multibyte.NAMES else f"Bytes({cs_slots[name]})")
        lines.append(f'    Charset {{ name: "{name}", default_collation: CollationId({ids[default]}), description: "{text}", '
                     f"max_length: {width}, encoding: Encoding::{encoding} }},")
    lines += ["];", "", "/// Collations by id."]
    slots = {c[0]: i for i, c in enumerate(known)}
    rows = [r for r in probe["collations"] if r[1] in slots]
    lines += ["#[rustfmt::skip]", f"pub(crate) static COLLATIONS: [Collation; {len(rows)}] = ["]
    for name, charset, number, default, _, sortlen, pad in rows:
        how, exact = rule(name, charset, cs_slots, w8_slots, tailored)
        lines.append(
            f'    Collation {{ id: CollationId({number}), name: "{name}", charset: &CHARSETS[{slots[charset]}], '
            f"pad: PadAttribute::{'NoPad' if pad == 'NO PAD' else 'PadSpace'}, is_default: {str(default == 'Yes').lower()}, "
            f"sort_length: {sortlen}, tailored: {str(exact).lower()}, rule: {how} }},")
    lines += ["];", ""]
    with open(os.path.join(ROOT, "list.rs"), "w") as file:
        file.write("\n".join(lines))


main()
