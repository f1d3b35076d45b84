"""The character sets of East Asia: the questions of collations.py about them, and crates/charset/src/tables/multibyte.bin.

The format is described in crates/charset/src/multibyte.rs.
"""
import struct

NAMES = ["big5", "cp932", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "sjis", "ujis"]
NONE = 0xFFFF


def ask(rows):
    """Per set: bytes of each code point, code point of each code, weights of each code point in its first collation."""
    points = [i for i in range(0x10000) if not 0xD800 <= i <= 0xDFFF]
    rows("drop table if exists points")
    rows("create table points(cp int primary key, c varchar(1) charset utf8mb4 collate utf8mb4_bin)")
    for k in range(0, len(points), 20000):
        rows("insert into points values " + ",".join("(%d,x'%s')" % (i, chr(i).encode().hex()) for i in points[k:k + 20000]))
    codes = ["%02x" % a for a in range(256)] + ["%02x%02x" % (a, b) for a in range(0x80, 256) for b in range(0x30, 256)]
    codes += ["8f%02x%02x" % (a, b) for a in range(0xA1, 255) for b in range(0xA1, 255)]
    rows("drop table if exists codes")
    rows("create table codes(i int primary key, b varbinary(4))")
    for k in range(0, len(codes), 20000):
        rows("insert into codes values " + ",".join("(%d,x'%s')" % (i, codes[i]) for i in range(k, min(k + 20000, len(codes)))))
    out = {}
    for name in NAMES:
        encode = dict(rows(f"select cp, hex(convert(c using {name})) from points"))
        decode = {codes[i]: text for i, text, count in rows(
            f"select i, hex(convert(convert(b using {name}) using utf32)), char_length(convert(b using {name})) from codes") if count == 1}
        default = rows(f"select default_collate_name from information_schema.character_sets where character_set_name='{name}'")[0][0]
        weights = dict(rows(f"select cp, hex(weight_string(convert(c using {name}) collate {default})) from points"))
        out[name] = encode, decode, weights
    return out


class Pool:
    """Pages of 256 numbers, each kept once."""

    def __init__(self):
        self.pages, self.seen = [], {}

    def page(self, values):
        if all(value == NONE for value in values):
            return NONE
        blob = struct.pack("<256H", *values)
        if blob not in self.seen:
            self.seen[blob] = len(self.pages)
            self.pages.append(blob)
        return self.seen[blob]

    def index(self, table):
        """`table`: number -> number. Page numbers by the high byte."""
        return struct.pack("<256H", *(self.page([table.get(high << 8 | low, NONE) for low in range(256)]) for high in range(256)))


def linear(code):
    a, b, c, d = bytes.fromhex(code)
    return (((a - 0x81) * 10 + b - 0x30) * 126 + c - 0x81) * 10 + d - 0x30


def short(code):
    """A code in 16 bits: of three bytes the last two, the low one without its high bit."""
    raw = bytes.fromhex(code)
    if len(raw) == 3:
        assert raw[0] == 0x8F and raw[2] >= 0x80
        return raw[1] << 8 | raw[2] & 0x7F
    return int(code, 16)


def pack(probe):
    pool, sets, ranges = Pool(), [], []
    for name in NAMES:
        encode, decode, weights = probe[name]
        encode = {cp: code for cp, code in encode.items() if code != "3F" or cp == 0x3F}
        points = {code: int(text, 16) for code, text in decode.items()
                  if text and len(text) == 8 and (text != "0000003F" or code == "3f")}
        single = pool.page([points.get("%02x" % byte, NONE) for byte in range(256)])
        two = {int(code, 16): cp for code, cp in points.items() if len(code) == 4}
        three = {}
        if name in ("ujis", "eucjpms"):
            three = {short(code): cp for code, cp in points.items() if len(code) == 6}
        for cp, code in sorted(encode.items()):
            if len(code) != 8:
                continue
            at = linear(code)
            if ranges and at - ranges[-1][0] == cp - ranges[-1][1] == ranges[-1][2]:
                ranges[-1][2] += 1
            else:
                ranges.append([at, cp, 1])
        codes = {cp: short(code) for cp, code in encode.items() if len(code) != 8}
        ascii_weights = bytes(int(weights[cp], 16) & 0xFF if len(weights[cp]) == 2 else 0 for cp in range(128))
        high, low = {}, {}
        for cp, code in encode.items():
            weight = weights[cp]
            if cp >= 128 and weight != code and (len(code) != 8 or int(weight, 16) != 0xFF000000 + linear(code)):
                low[cp] = int(weight, 16) & 0xFFFF
                if len(weight) == 8:
                    high[cp] = int(weight, 16) >> 16
        sets.append(struct.pack("<H", single) + b"".join(map(pool.index, (two, three, codes, high, low))) + ascii_weights)
    head = struct.pack("<II", len(pool.pages), len(ranges))
    return head + b"".join(sets) + b"".join(pool.pages) + b"".join(
        struct.pack("<III", *r) for r in [*sorted(ranges, key=lambda r: r[1]), *sorted(ranges)])
