"""A load for tests of replication, made from a seed: every column type and character set, kinds of definitions, large rows, changes of JSON documents, generated
columns, foreign keys, savepoints, XA and temporary tables. `Client(..).statements()` are those of one connection; a statement that the source refuses is left out by it.
"""

import json
import random

# What of a character set both servers know, as Python's codec; None: letters of ASCII alone.
CHARACTER_SETS = {
    "utf8mb4": "utf-8", "utf8mb3": "utf-8", "latin1": "cp1252", "latin2": "iso8859-2", "latin5": "iso8859-9", "latin7": "iso8859-13", "ascii": "ascii", "ucs2": "utf-16-be",
    "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be", "gbk": "gbk", "gb2312": "gb2312", "gb18030": "gb18030", "big5": "big5", "sjis": "shift_jis",
    "cp932": "cp932", "ujis": "euc_jp", "eucjpms": "euc_jp", "euckr": "euc_kr", "koi8r": "koi8-r", "koi8u": "koi8-u", "cp1250": "cp1250", "cp1251": "cp1251", "cp1256": "cp1256",
    "cp1257": "cp1257", "cp850": "cp850", "cp852": "cp852", "cp866": "cp866", "greek": "iso8859-7", "hebrew": "iso8859-8", "tis620": "tis-620", "macroman": "mac-roman",
    "macce": "mac-latin2", "armscii8": None, "geostd8": None, "dec8": None, "hp8": None, "keybcs2": None, "swe7": None,
}
# Those of which only the letters of the Basic Multilingual Plane can be stored.
NARROW = {"utf8mb3", "ucs2"}
# MariaDB 10.11 has no such.
NOT_IN_MARIADB = {"gb18030"}
LETTERS = "abcXYZ_% '0éüßñçøčžőšЯжёλωאבกข日本語中文字한국かナ😀"
SHAPES = ["POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION", "GEOMETRY"]


def letters(character_set):
    codec = CHARACTER_SETS[character_set]

    def fits(letter):
        try:
            # A letter must come back: some codecs take what they cannot give.
            return letter.encode(codec).decode(codec) == letter and (character_set not in NARROW or ord(letter) < 0x10000)
        except UnicodeError:
            return False
    if codec is None:
        return "".join(letter for letter in LETTERS if letter.isalnum() and letter.isascii())
    return "".join(filter(fits, LETTERS))


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


class Table:
    def __init__(self, name, columns, key):
        # Columns: name -> a function that makes a value. `key`: the names that a statement looks a row up by.
        self.name, self.columns, self.key = name, columns, key
        # What has documents; MySQL has no shapes in tables with partitions.
        self.documents, self.partitioned, self.by_key = [], False, False
        # MySQL 9.7 keeps the bytes of members when it converts a table, and cannot copy rows that have other letters than ASCII then.
        self.converts = True


class Client:
    """What one connection does."""

    def __init__(self, seed, own, schema, maria=False, rows=120):
        self.random = random.Random(f"{seed} {own}")
        self.own, self.schema, self.maria, self.keys, self.number = own, schema, maria, rows, 0
        self.sets = [name for name in CHARACTER_SETS if not (maria and name in NOT_IN_MARIADB)]
        self.tables, self.image = [], "FULL"

    # Values

    def integer(self, first, last):
        n = self.random.randint
        return lambda: str(self.random.choice([first, last, n(first, last), max(first, min(last, n(-9, 99)))]))

    def text(self, most, character_set="utf8mb4"):
        possible = letters(character_set)
        return lambda: quoted("".join(self.random.choice(possible) for _ in range(self.random.randint(0, most))).rstrip())

    def octets(self, most):
        return lambda: f"x'{self.random.randbytes(self.random.randint(0, most)).hex()}'"

    def fraction(self, digits):
        return f".{self.random.randint(0, 10**digits - 1):0{digits}}" if digits else ""

    def moment(self, first, last, digits):
        n = self.random.randint
        return lambda: f"'{n(first, last):04}-{n(1, 12):02}-{n(1, 28):02} {n(4, 23):02}:{n(0, 59):02}:{n(0, 59):02}{self.fraction(digits)}'"

    def time(self, digits):
        n = self.random.randint
        return lambda: f"'{self.random.choice(['', '-'])}{n(0, 837)}:{n(0, 59):02}:{n(0, 59):02}{self.fraction(digits)}'"

    def document(self):
        n = self.random.randint

        def value(depth):
            kind = n(0, 9 if depth < 3 else 6)
            if kind < 7:
                return [None, True, n(-2**63, 2**63), n(-99, 99), n(-999, 999) / 8, "".join(self.random.choice(LETTERS) for _ in range(n(0, 30))), "x" * n(0, 400)][kind]
            if kind == 7:
                return [value(depth + 1) for _ in range(n(0, 5))]
            return {self.random.choice("abcdeé") * n(1, 3): value(depth + 1) for _ in range(n(0, 5))}
        return quoted(json.dumps(self.random.choice([value(0), {"a": value(1), "b": [value(1), value(1)], "c": {"d": n(0, 99)}}]), ensure_ascii=False))

    def shape(self, kind):
        n = self.random.randint

        def point():
            return f"{n(-90, 90) / 2} {n(-90, 90) / 2}"

        def ring():
            x, y, size = n(-50, 50), n(-50, 50), n(1, 9)
            return f"({x} {y},{x + size} {y},{x + size} {y + size},{x} {y})"
        line = f"{point()},{point()},{point()}"
        text = {"POINT": f"POINT({point()})", "LINESTRING": f"LINESTRING({line})", "POLYGON": f"POLYGON({ring()})", "MULTIPOINT": f"MULTIPOINT({line})",
                "MULTILINESTRING": f"MULTILINESTRING(({line}),({line}))", "MULTIPOLYGON": f"MULTIPOLYGON(({ring()}),({ring()}))",
                "GEOMETRYCOLLECTION": f"GEOMETRYCOLLECTION(POINT({point()}),LINESTRING({line}))"}
        return f"ST_GeomFromText('{text[kind if kind != 'GEOMETRY' else self.random.choice(list(text))]}')"

    def large(self):
        n = self.random.randint(1000, 9000)
        return self.random.choice([f"REPEAT('{self.random.choice('abc')}{n}', {n})", f"REPEAT(x'{self.random.randbytes(7).hex()}', {n * 20})"])

    # Columns

    def column(self, kind=None):
        """The type of a column, and a function that makes values of it."""
        n, choose = self.random.randint, self.random.choice
        kind = kind or choose(["integer", "integer", "real", "decimal", "bits", "year", "text", "text", "text", "long", "choice", "octets", "moment", "moment", "time", "document", "shape"])
        if kind == "integer":
            name, bits = choose([("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64), ("BOOLEAN", 8)])
            if name != "BOOLEAN" and n(0, 1):
                return f"{name} {choose(['UNSIGNED', 'UNSIGNED', 'UNSIGNED ZEROFILL'])}", self.integer(0, 2**bits - 1)
            return name, self.integer(-2**(bits - 1), 2**(bits - 1) - 1)
        if kind == "real":
            return choose([("FLOAT", lambda: repr(n(-9999, 9999) / 16)), ("DOUBLE", lambda: repr(self.random.uniform(-1e200, 1e200))), ("DOUBLE", lambda: repr(n(-9999, 9999) / 16))])
        if kind == "decimal":
            digits = n(1, 65)
            scale = n(0, min(30, digits))
            number = lambda: f"{choose(['', '-'])}{n(0, 10**(digits - scale) - 1)}.{n(0, 10**scale - 1):0{max(scale, 1)}}"  # noqa: E731
            return f"DECIMAL({digits},{scale})", number
        if kind == "bits":
            size = n(1, 64)
            return f"BIT({size})", lambda: str(n(0, 2**size - 1))
        if kind == "year":
            return "YEAR", lambda: str(n(1901, 2155))
        if kind in ("text", "long"):
            charset = choose(self.sets)
            told = f"CHARACTER SET {charset}" + choose(["", f" COLLATE {charset}_bin"])
            if kind == "text":
                size = choose([1, 10, 60, 100])
                return f"{choose(['CHAR', 'VARCHAR'])}({size}) {told}", self.text(min(size, 30), charset)
            return f"{choose(['VARCHAR(300)', 'TINYTEXT', 'TEXT', 'MEDIUMTEXT', 'LONGTEXT'])} {told}", self.text(60, charset)
        if kind == "choice":
            return choose([("ENUM('a','b','ü','d''e')", lambda: str(n(1, 4))), ("SET('x','y','z','日本')", lambda: str(n(0, 15))), ("ENUM('a','b') CHARACTER SET koi8r", lambda: str(n(1, 2))),
                           (f"ENUM({','.join(repr(f'v{at}') for at in range(300))})", lambda: str(n(1, 300))), (f"SET({','.join(repr(f's{at}') for at in range(64))})", lambda: str(n(0, 2**64 - 1)))])
        if kind == "octets":
            size = n(1, 60)
            return f"{choose([f'BINARY({size})', f'VARBINARY({size})', 'TINYBLOB', 'BLOB', 'MEDIUMBLOB', 'LONGBLOB'])}", self.octets(size)
        digits = n(0, 6)
        if kind == "time":
            return f"TIME({digits})", self.time(digits)
        if kind == "moment":
            return choose([("DATE", lambda: f"'{n(1000, 9999)}-{n(1, 12):02}-{n(1, 28):02}'"), (f"DATETIME({digits})", self.moment(1000, 9998, digits)),
                           (f"TIMESTAMP({digits}) NULL", self.moment(1971, 2037, digits)),
                           (f"TIMESTAMP({digits}) NULL DEFAULT CURRENT_TIMESTAMP({digits}) ON UPDATE CURRENT_TIMESTAMP({digits})", self.moment(1971, 2037, digits))])
        if kind == "document":
            return "JSON", self.document
        if kind == "shape":
            shape = choose(SHAPES)
            if not self.maria and n(0, 3) == 0:
                size = n(1, 5)
                return f"VECTOR({size})", lambda: f"STRING_TO_VECTOR('[{','.join(str(n(-9, 9) / 4) for _ in range(size))}]')"
            return shape, lambda: self.shape(shape)
        raise ValueError(kind)

    def column_of(self, table):
        while True:
            kind, value = self.column()
            if not (table.partitioned and kind.split("(")[0] in SHAPES):
                table.converts &= kind.isascii()
                return kind, value

    # Definitions

    def create(self):
        """A table of random columns and keys."""
        self.number += 1
        n, choose = self.random.randint, self.random.choice
        table = Table(f"c{self.own}_t{self.number}", {}, ["id"])
        parts, keys = [], []
        form = choose(["primary"] * 4 + ["counter", "two", "unique", "prefix", "none", "none", "partitions"])
        parts.append("id INT NOT NULL" + (" AUTO_INCREMENT" if form == "counter" else ""))
        table.columns["id"] = lambda: str(n(1, self.keys))
        if form == "two":
            parts.append(f"k VARCHAR(20) CHARACTER SET {choose(['utf8mb4', 'latin1', 'gbk', 'utf16', 'binary'])} NOT NULL")
            table.columns["k"] = lambda: quoted(choose(["a", "b", "c"]))
        table.partitioned = form == "partitions"
        for at in range(n(2, 12)):
            kind, value = self.column_of(table)
            table.columns[f"v{at}"] = value
            if kind == "JSON":
                table.documents.append(f"v{at}")
            parts.append(f"v{at} {kind}")
            if at and n(0, 9) == 0 and not any(word in kind for word in ("TEXT", "BLOB", "JSON", "VECTOR", "BIT", *SHAPES)):
                keys.append(f"KEY (v{at})")
        parts.append("plus INT")
        table.columns["plus"] = lambda: str(n(-99, 99))
        if n(0, 2) == 0:
            parts.append(f"g1 BIGINT AS (plus * {n(1, 9)}{'' if form == 'counter' else ' + id'}) {choose(['VIRTUAL', 'STORED'])}")
            keys.append(choose(["KEY (g1)", "KEY (plus, g1)", ""]))
        if n(0, 4) == 0:
            parts.append(f"g2 VARCHAR(40) AS (CONCAT('n', plus, '-')) {choose(['VIRTUAL', 'STORED'])}")
        # MariaDB's JSON_VALUE finds no arrays.
        if table.documents and n(0, 1) and not self.maria:
            parts.append(f"g3 VARCHAR(50) AS (JSON_VALUE({table.documents[0]}, '$.c.d')) {choose(['VIRTUAL', 'STORED'])}")
        if n(0, 5) == 0:
            parts.append("CHECK (plus < 98)")
        if not self.maria and n(0, 5) == 0:
            keys.append("KEY ((plus + 1))")
            parts.append("hidden INT DEFAULT 5 INVISIBLE")
        keys.append({"primary": "PRIMARY KEY (id)", "counter": "PRIMARY KEY (id)", "two": "PRIMARY KEY (k, id)", "unique": "UNIQUE (id)", "prefix": "UNIQUE (id), KEY (plus DESC)", "none": "",
                     "partitions": "PRIMARY KEY (id)"}[form])
        end = choose(["", "", f" DEFAULT CHARACTER SET {choose(['latin1', 'utf8mb3', 'gbk'])}", " COMMENT 'é'", " ROW_FORMAT=COMPACT"])
        if form == "partitions":
            end += choose([" PARTITION BY HASH (id) PARTITIONS 3", " PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (30), PARTITION p1 VALUES LESS THAN (60), PARTITION p2 VALUES LESS THAN MAXVALUE)",
                           " PARTITION BY KEY () PARTITIONS 4"])
            table.by_key = "BY KEY" in end
        self.tables.append(table)
        return f"CREATE TABLE {table.name} ({', '.join(parts + [key for key in keys if key])}){end}"

    def definition(self):
        n, choose, self.number = self.random.randint, self.random.choice, self.number + 1
        table, number, own = choose(self.tables), self.number, f"c{self.own}"
        user = f"{self.schema[-12:]}_{own}_{number}"
        kind, value = self.column_of(table)

        def add():
            table.columns[f"new{number}"] = value
            return f"ALTER TABLE {table.name} ADD COLUMN new{number} {kind} {choose(['', 'FIRST', 'AFTER id'])}"

        def drop():
            dropped = [name for name in table.columns if name.startswith("new")]
            if not dropped:
                return add()
            del table.columns[dropped[0]]
            return f"ALTER TABLE {table.name} DROP COLUMN {dropped[0]}"

        def renamed():
            found = [name for name in table.columns if name.startswith("new")]
            if not found:
                return add()
            table.columns[f"new{number}"] = table.columns.pop(found[0])
            table.documents = [f"new{number}" if name == found[0] else name for name in table.documents]
            return f"ALTER TABLE {table.name} RENAME COLUMN {found[0]} TO new{number}"

        def rename_table():
            old, table.name = table.name, f"{own}_r{number}"
            return choose([f"RENAME TABLE {old} TO {table.name}", f"ALTER TABLE {old} RENAME TO {table.name}"])

        def drop_table():
            if len(self.tables) < 4:
                return self.create()
            self.tables.remove(table)
            return f"DROP TABLE {table.name}"
        empty = [] if table.by_key else ["TRUNCATE PARTITION p0"]
        common = [
            self.create, self.create, self.create, add, add, add, drop, renamed, rename_table, drop_table,
            lambda: f"ALTER TABLE {table.name} MODIFY plus {choose(['BIGINT', 'INT', 'MEDIUMINT', 'VARCHAR(20)', 'DECIMAL(20,3)'])}",
            lambda: f"ALTER TABLE {table.name} ADD INDEX i{number} (plus), COMMENT = 'c{number}'", lambda: f"CREATE INDEX j{number} ON {table.name} (plus, id)",
            lambda: f"ALTER TABLE {table.name} ADD COLUMN gen{number} INT AS (id % 7) {choose(['STORED', 'VIRTUAL'])}, ADD INDEX (gen{number})",
            lambda: f"ALTER TABLE {table.name} ALTER plus SET DEFAULT {number}", lambda: f"ALTER TABLE {table.name} CONVERT TO CHARACTER SET utf8mb4" if table.converts else self.create(), lambda: f"ALTER TABLE {table.name} ENGINE=InnoDB",
            # The rows get their numbers in the order of partitions: each kind of server sorts them into partitions in a way of its own.
            lambda: f"{f'TRUNCATE TABLE {table.name}; ' if table.partitioned else ''}ALTER TABLE {table.name} DROP PRIMARY KEY, ADD COLUMN pk{number} INT AUTO_INCREMENT PRIMARY KEY FIRST",
            # Each kind of server has another partition for a key.
            lambda: f"ALTER TABLE {table.name} {choose(['REMOVE PARTITIONING', 'COALESCE PARTITION 1', 'ADD PARTITION PARTITIONS 1', *empty, 'REORGANIZE PARTITION p0 INTO (PARTITION q0 VALUES LESS THAN (10), PARTITION q1 VALUES LESS THAN (30))'])}",
            lambda: f"TRUNCATE TABLE {table.name}", lambda: f"CREATE TABLE {own}_like{number} LIKE {table.name}; INSERT INTO {own}_like{number} SELECT * FROM {table.name} LIMIT 5",
            lambda: f"CREATE TABLE {own}_as{number} AS SELECT * FROM {table.name} LIMIT 20", lambda: f"CREATE TABLE {own}_as{number} (PRIMARY KEY (id)) AS SELECT DISTINCT id, plus FROM {table.name}",
            lambda: f"CREATE OR REPLACE VIEW {own}_v AS SELECT id, plus FROM {table.name} WHERE plus > {number}",
            lambda: f"CREATE TRIGGER tr{own}{number} {choose(['AFTER INSERT', 'BEFORE UPDATE', 'AFTER DELETE'])} ON {table.name} FOR EACH ROW INSERT INTO told (what) VALUES ('{table.name}')",
            lambda: f"DROP PROCEDURE IF EXISTS {own}_p; CREATE PROCEDURE {own}_p(x INT) UPDATE told SET what = CONCAT('p', x) WHERE id % 11 = x % 11; CALL {own}_p({number})",
            lambda: f"DROP FUNCTION IF EXISTS {own}_f; CREATE FUNCTION {own}_f(x INT) RETURNS INT DETERMINISTIC NO SQL RETURN x * 2; INSERT INTO told (what) VALUES ({own}_f({number}))",
            lambda: f"CREATE EVENT {own}_e{number} ON SCHEDULE EVERY 1 YEAR DO SET @a = 1; DROP EVENT {own}_e{number}",
            lambda: f"CREATE USER {user}@localhost IDENTIFIED BY 'x{number}'; GRANT SELECT, INSERT ON {self.schema}.* TO {user}@localhost; REVOKE INSERT ON {self.schema}.* FROM {user}@localhost; DROP USER {user}@localhost",
            lambda: f"CREATE ROLE {user}r; GRANT SELECT ON {self.schema}.* TO {user}r; DROP ROLE {user}r", lambda: f"ANALYZE TABLE {table.name}", lambda: f"OPTIMIZE TABLE {table.name}",
            lambda: f"CREATE DATABASE {self.schema}_{own}_{number} CHARACTER SET latin1; CREATE TABLE {self.schema}_{own}_{number}.t (a VARCHAR(9)); "
                    f"INSERT INTO {self.schema}_{own}_{number}.t VALUES ('é'); DROP DATABASE {self.schema}_{own}_{number}",
            # Other sessions of MariaDB keep the old default until their next USE, and make tables with it.
            lambda: self.create() if self.maria else f"ALTER DATABASE {self.schema} CHARACTER SET {choose(['utf8mb4', 'latin1'])}",
            lambda: f"CREATE TABLE {own}_fk{number} (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parents (id) ON DELETE SET NULL ON UPDATE CASCADE); "
                    f"INSERT IGNORE INTO {own}_fk{number} SELECT id, id FROM parents LIMIT 3",
        ]
        return choose(common)()

    # Changes

    def row(self, table, names):
        return "(" + ", ".join("NULL" if name != "id" and name != "k" and self.random.random() < 0.1 else table.columns[name]() for name in names) + ")"

    def found(self, table):
        n = self.random.randint
        return self.random.choice([f"id = {n(1, self.keys)}", f"id BETWEEN {n(1, self.keys)} AND {n(1, self.keys)}", f"id % {n(3, 9)} = 1", f"plus = {n(-99, 99)}", f"plus IS NULL AND id < {n(1, self.keys)}"])

    def change(self, all_tables):
        n, choose = self.random.randint, self.random.choice
        table, other = choose(all_tables), choose(all_tables)
        names = list(table.columns)
        column = choose([name for name in names if name not in ("id", "k")])
        # MariaDB's MINIMAL images of a REPLACE lack the columns that it does not name: their defaults reach no replica.
        replace = "INSERT INTO" if self.maria and self.image == "MINIMAL" else "REPLACE INTO"
        insert = choose(["INSERT INTO", "INSERT INTO", "INSERT IGNORE INTO", replace])
        many = lambda: f"{insert} {table.name} ({', '.join(names)}) VALUES {', '.join(self.row(table, names) for _ in range(choose([1, 1, 2, 9])))}"  # noqa: E731

        def of_document():
            path, document = choose(["$.a", "$.b[0]", "$.c.d", "$.new", "$[1]"]), choose(table.documents)
            call = choose([f"JSON_SET({document}, '{path}', {n(-9, 70000)})", f"JSON_REPLACE({document}, '{path}', 'short')", f"JSON_REMOVE({document}, '{path}')", f"JSON_SET({document}, '{path}', JSON_ARRAY(1, 'é', NULL), '$.z', 1.5)"])
            return f"UPDATE {table.name} SET {document} = {call} WHERE {self.found(table)} AND {document} IS NOT NULL"
        possible = [
            many, many, many, many, lambda: f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {self.row(table, names)} ON DUPLICATE KEY UPDATE plus = {n(-99, 99)}, {column} = {table.columns[column]()}",
            lambda: f"UPDATE {table.name} SET {column} = {table.columns[column]()} WHERE {self.found(table)}", lambda: f"UPDATE {table.name} SET {column} = {table.columns[column]()}, plus = 1 - plus WHERE {self.found(table)}",
            lambda: f"UPDATE IGNORE {table.name} SET id = id + {n(1, 9)} WHERE {self.found(table)}", lambda: f"DELETE FROM {table.name} WHERE {self.found(table)} ORDER BY id LIMIT {n(1, 9)}",
            lambda: f"DELETE FROM {table.name} WHERE id = {n(1, self.keys)}", lambda: f"UPDATE {table.name} a JOIN {other.name} b ON a.id = b.id SET a.plus = b.plus, b.plus = 3 WHERE a.id < {n(1, 30)}",
            lambda: f"DELETE a, b FROM {table.name} a JOIN {other.name} b ON a.id = b.id WHERE a.id = {n(1, self.keys)}",
            lambda: f"INSERT IGNORE INTO parents VALUES ({n(1, 40)}, {n(1, 9)}); INSERT IGNORE INTO children (id, p) VALUES ({n(1, 90)}, {n(1, 40)}); INSERT IGNORE INTO grandchildren VALUES ({n(1, 200)}, {n(1, 90)})",
            lambda: f"DELETE FROM parents WHERE id = {n(1, 40)}", lambda: f"UPDATE parents SET id = {n(1, 60)} WHERE id = {n(1, 60)}", lambda: f"REPLACE INTO parents VALUES ({n(1, 40)}, {n(1, 9)})",
            lambda: f"INSERT INTO big (id, l, b) VALUES ({n(1, 20)}, {self.large()}, {self.large()}) ON DUPLICATE KEY UPDATE b = CONCAT(LEFT(b, 5000), 'x')", lambda: f"UPDATE big SET n = n + 1 WHERE id = {n(1, 20)}",
            lambda: f"DELETE FROM big WHERE id = {n(1, 20)}", lambda: f"INSERT INTO told (what) VALUES ({self.text(30)()})",
        ]
        if table.documents:
            possible += [of_document, of_document, of_document]
        return choose(possible)()

    def settings(self):
        choose = self.random.choice
        image = choose(["FULL", "MINIMAL", "NOBLOB"])
        possible = [f"SET binlog_row_image = {image}", "SET sql_mode = " + choose(["DEFAULT", "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'", "''", "'PIPES_AS_CONCAT,STRICT_TRANS_TABLES'"]),
                    f"SET time_zone = '{choose(['+00:00', '-03:30', '+12:45'])}'", f"SET foreign_key_checks = {choose('0111')}", f"SET collation_connection = {choose(['utf8mb4_bin', 'utf8mb4_general_ci', 'utf8mb4_unicode_ci'])}"]
        if not self.maria:
            possible += ["SET binlog_row_value_options = " + choose(["''", "PARTIAL_JSON", "PARTIAL_JSON"]), "SET binlog_transaction_compression = " + choose(["ON", "OFF"]),
                         "SET binlog_rows_query_log_events = " + choose(["ON", "OFF"])]
        setting = choose(possible)
        self.image = image if setting == possible[0] else self.image
        return setting

    def unit(self, all_tables):
        """Statements that belong together."""
        chance, n = self.random.random(), self.random.randint
        if chance < 0.05:
            return [self.settings()]
        if chance < 0.14:
            return [self.definition()]
        if chance < 0.20:
            self.number += 1
            name, end = f"'x{self.own}_{self.number}'", self.random.choice(["COMMIT", "COMMIT", "ROLLBACK", "ONE PHASE"])
            changes = [self.change(all_tables) for _ in range(n(1, 3))]
            before = []
            if self.maria and end != "ONE PHASE":
                # MariaDB logs transactions that waited for a prepared branch before its XA COMMIT: no replica can repeat them in that order.
                own = f"c{self.own}_xa"
                before = [f"CREATE TABLE IF NOT EXISTS {own} (id INT AUTO_INCREMENT PRIMARY KEY, what INT)"]
                changes = [self.random.choice([f"INSERT INTO {own} (what) VALUES ({n(0, 9)}), ({n(0, 9)})", f"UPDATE {own} SET what = what + 1 WHERE id % 3 = 1", f"DELETE FROM {own} WHERE what = {n(0, 9)}"]) for _ in range(n(1, 3))]
            last = [f"XA COMMIT {name} ONE PHASE"] if end == "ONE PHASE" else [f"XA PREPARE {name}", f"XA {end} {name}"]
            # Whatever failed, the branch must end.
            return [*before, f"XA START {name}", *changes, f"XA END {name}", *last, f"XA ROLLBACK {name}"]
        if chance < 0.26:
            table = self.random.choice(all_tables).name
            inner = [f"INSERT INTO tmp SELECT id, plus FROM {table} LIMIT 9", "UPDATE tmp SET b = b + 1", "INSERT INTO told (what) SELECT CONCAT(a, '-', b) FROM tmp", self.change(all_tables)]
            body = ["BEGIN", *inner, self.random.choice(["COMMIT", "ROLLBACK"])] if n(0, 1) else inner
            return ["CREATE TEMPORARY TABLE tmp (a INT, b INT)", *body, "DROP TEMPORARY TABLE tmp"]
        if chance < 0.5:
            body = [self.change(all_tables) for _ in range(n(1, 6))]
            for at in range(n(0, 2)):
                body += [f"SAVEPOINT s{at}", self.change(all_tables), self.change(all_tables), self.random.choice([f"ROLLBACK TO s{at}", f"RELEASE SAVEPOINT s{at}", "DO 0"]), self.change(all_tables)]
            return ["BEGIN", *body, self.random.choice(["COMMIT"] * 4 + ["ROLLBACK"])]
        return [self.change(all_tables)]

    def statements(self, count, shared):
        """`count` units; `shared` are tables of another client that this one changes too."""
        lines = [] if self.tables else [self.create() for _ in range(4)]
        lines.insert(0, "SET time_zone = '+00:00', lock_wait_timeout = 20, innodb_lock_wait_timeout = 3")
        for _ in range(count):
            lines += self.unit(self.tables + shared)
        return lines


def setup(schema):
    """The tables that all clients use."""
    return [
        f"CREATE DATABASE {schema} CHARACTER SET utf8mb4", f"USE {schema}", "CREATE TABLE told (id INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(100))",
        "CREATE TABLE parents (id INT PRIMARY KEY, n INT)",
        "CREATE TABLE children (id INT PRIMARY KEY, p INT, g INT AS (id + 1) STORED, FOREIGN KEY (p) REFERENCES parents (id) ON DELETE CASCADE ON UPDATE CASCADE)",
        "CREATE TABLE grandchildren (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES children (id) ON DELETE CASCADE ON UPDATE CASCADE)",
        "CREATE TABLE big (id INT PRIMARY KEY, n INT DEFAULT 0, l LONGTEXT CHARACTER SET latin1, b LONGBLOB)",
    ]
