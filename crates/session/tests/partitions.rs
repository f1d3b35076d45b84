//! A partitioned table returns the same results as one that is not: the same rows, random conditions.

// Only results are compared.
#[allow(dead_code)]
mod support;

use support::{Client, Harness};

/// Numbers that look random, from a printed seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }

    fn number(&mut self) -> i64 {
        self.below(48) as i64 - 3
    }

    fn date(&mut self) -> String {
        format!("'2020-{:02}-{:02}'", self.below(2) + 1, self.below(28) + 1)
    }

    fn text(&mut self) -> String {
        format!("'{}'", self.pick(&["a", "b", "C", "d", "e", "ab", "x", ""]))
    }

    fn atom(&mut self) -> String {
        let op = self.pick(&["=", "<", ">", "<=", ">=", "<>", "<=>"]);
        match self.below(11) {
            0 => format!("a {op} {}", self.number()),
            1 => format!("a IN ({}, {}, {})", self.number(), self.number(), self.number()),
            2 => format!("a BETWEEN {} AND {}", self.number(), self.number()),
            3 => format!("d {op} {}", self.date()),
            4 => format!("d BETWEEN {} AND {}", self.date(), self.date()),
            5 => format!("v {op} {}", self.text()),
            6 => format!("v IN ({}, {})", self.text(), self.text()),
            7 => "a IS NULL".into(),
            8 => format!("b {op} {}", self.below(6)),
            9 => format!("d {op} '2020-01-15 10:00:00'"),
            _ => format!("a {op} {}.5", self.number()),
        }
    }

    fn condition(&mut self, depth: u32) -> String {
        if depth == 0 || self.below(3) == 0 {
            return self.atom();
        }
        let (left, right) = (self.condition(depth - 1), self.condition(depth - 1));
        format!("({left} {} {right})", self.pick(&["AND", "AND", "OR"]))
    }
}

const NOT_NULL: &str = "a INT NOT NULL, b INT, d DATE NOT NULL, v VARCHAR(10) NOT NULL";
const NULLABLE: &str = "a INT, b INT, d DATE, v VARCHAR(10)";

/// Key and partitioning.
const TABLES: &[(&str, &str, &str)] = &[
    (
        NOT_NULL,
        ", PRIMARY KEY (a)",
        "RANGE (a) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20),
         PARTITION p2 VALUES LESS THAN MAXVALUE)",
    ),
    (
        NOT_NULL,
        ", PRIMARY KEY (a, d)",
        "RANGE (TO_DAYS(d)) SUBPARTITION BY HASH (a) SUBPARTITIONS 3
         (PARTITION p0 VALUES LESS THAN (TO_DAYS('2020-01-10')),
         PARTITION p1 VALUES LESS THAN (TO_DAYS('2020-01-20')),
         PARTITION p2 VALUES LESS THAN MAXVALUE)",
    ),
    (
        NOT_NULL,
        ", PRIMARY KEY (v, a)",
        "RANGE COLUMNS (v, a) (PARTITION p0 VALUES LESS THAN ('b', 5),
         PARTITION p1 VALUES LESS THAN ('b', 20), PARTITION p2 VALUES LESS THAN ('d', MAXVALUE),
         PARTITION p3 VALUES LESS THAN (MAXVALUE, MAXVALUE))",
    ),
    (NOT_NULL, ", PRIMARY KEY (a, v)", "KEY (a, v) PARTITIONS 7"),
    (NOT_NULL, ", PRIMARY KEY (a)", "LINEAR HASH (a) PARTITIONS 6"),
    (
        NOT_NULL,
        ", PRIMARY KEY (v, a), UNIQUE (a, v)",
        "LIST COLUMNS (v) (PARTITION p0 VALUES IN ('a', 'b'), PARTITION p1 VALUES IN ('c'),
         PARTITION p2 VALUES IN ('d', 'e', ''))",
    ),
    (
        NULLABLE,
        "",
        "LIST (a % 5) (PARTITION p0 VALUES IN (0, NULL, 1, -1, -2),
         PARTITION p1 VALUES IN (2, 3, 4, -3, -4))",
    ),
];

fn rows(root: &mut Client, sql: &str) -> Vec<String> {
    let answer = root.run(sql);
    assert!(!answer.starts_with("error"), "{sql}: {answer}");
    let mut rows: Vec<String> = answer.lines().map(str::to_owned).collect();
    rows.sort();
    rows
}

#[test]
fn partitions_change_no_result() {
    let mut dice = Dice(0x5eed_0001);
    for (columns, keys, partitioning) in TABLES {
        let harness = Harness::new();
        let mut root = harness.root();
        root.run(&format!("CREATE TABLE parted ({columns}{keys}) PARTITION BY {partitioning}"));
        root.run(&format!("CREATE TABLE whole ({columns})"));
        for _ in 0..60 {
            let is_null = *columns == NULLABLE && dice.below(6) == 0;
            let a = if is_null { "NULL".into() } else { dice.below(41).to_string() };
            let v = dice.pick(&["a", "b", "c", "d", "e"]);
            let row = format!("({a}, {}, {}, '{v}')", dice.below(6), dice.date());
            root.run(&format!("INSERT IGNORE INTO parted VALUES {row}"));
        }
        root.run("INSERT INTO whole SELECT * FROM parted");
        assert!(rows(&mut root, "SELECT * FROM parted").len() > 20, "{partitioning}");
        for _ in 0..120 {
            let condition = dice.condition(2);
            let select = |table: &str| format!("SELECT * FROM {table} WHERE {condition}");
            let join = |table: &str| {
                format!(
                    "SELECT l.a, r.b, r.d FROM whole l JOIN {table} r
                     ON l.a = r.a AND l.v = r.v AND l.d = r.d WHERE {}",
                    condition
                        .replace("a ", "r.a ")
                        .replace("d ", "r.d ")
                        .replace("v ", "l.v ")
                        .replace("b ", "r.b ")
                )
            };
            let parted = rows(&mut root, &select("parted"));
            assert_eq!(parted, rows(&mut root, &select("whole")), "{partitioning}: {condition}");
            if !condition.contains("'") {
                let joined = rows(&mut root, &join("parted"));
                assert_eq!(joined, rows(&mut root, &join("whole")), "{partitioning}: {condition}");
            }
        }
    }
}
