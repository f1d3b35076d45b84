//! Random tables: columns of every type, indexes, rows with NULLs and the edges of each type.

use std::fmt::Write as _;

use sys::entropy::SplitMix;

use crate::node::Kind;

/// A column of a random table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// Its name.
    pub(crate) name: String,
    /// What its values are.
    pub(crate) kind: Kind,
    /// Its type as a definition says it.
    declared: &'static str,
    /// Constants of the type.
    values: &'static [&'static str],
    nullable: bool,
}

/// A random table; column 0 is its primary key `id`.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// Its name.
    pub(crate) name: String,
    /// Its columns.
    pub(crate) columns: Vec<Column>,
}

/// Tables and the statements that make them.
pub(crate) struct Schema {
    /// The tables.
    pub(crate) tables: Vec<Table>,
    /// With indexes.
    pub(crate) indexed: Vec<String>,
    /// The same rows in another order, in tables without secondary indexes.
    pub(crate) plain: Vec<String>,
}

/// Type, kind and constants. No two strings of a type are equal without being the same: which of them a group shows is not decided.
const TYPES: &[(&str, Kind, &[&str])] = &[
    ("TINYINT", Kind::Number, &["0", "1", "-1", "5", "127", "-128"]),
    ("SMALLINT UNSIGNED", Kind::Number, &["0", "1", "2", "300", "65535"]),
    ("INT", Kind::Number, &["0", "1", "2", "3", "-7", "2147483647", "-2147483648"]),
    ("BIGINT", Kind::Number, &["0", "1", "4", "-3", "9223372036854775807", "1000000000000"]),
    ("BIGINT UNSIGNED", Kind::Number, &["0", "1", "2", "18446744073709551615", "77"]),
    ("DECIMAL(10,2)", Kind::Number, &["0.00", "1.00", "1.50", "-2.25", "99999999.99", "3.14"]),
    ("DECIMAL(20,6)", Kind::Number, &["0", "1.000001", "-12345.678900", "2.5"]),
    ("DOUBLE", Kind::Number, &["0", "1", "1.5", "-0.25", "1e10", "3.0"]),
    ("FLOAT", Kind::Number, &["0", "1", "0.5", "-2.75", "1024"]),
    ("YEAR", Kind::Number, &["2000", "2020", "1999", "2155"]),
    ("VARCHAR(20)", Kind::Text, &["''", "'a'", "'b'", "'abc'", "'zebra'", "'10'", "'x y'", "'é'"]),
    ("VARCHAR(20) COLLATE utf8mb4_bin", Kind::Text, &["''", "'a'", "'B'", "'bcd'", "'1'", "'-5'"]),
    ("CHAR(8) COLLATE utf8mb4_general_ci", Kind::Text, &["'a'", "'ba'", "'q'", "'2020'", "''"]),
    ("VARCHAR(12) CHARACTER SET latin1", Kind::Text, &["'a'", "'c'", "'ab'", "'0'", "'ü'"]),
    ("TEXT", Kind::Text, &["'a'", "'some longer text'", "''", "'2020-02-29'", "'b'"]),
    ("ENUM('a','b','c')", Kind::Text, &["'a'", "'b'", "'c'"]),
    ("SET('a','b','c')", Kind::Text, &["''", "'a'", "'a,b'", "'b,c'"]),
    ("VARBINARY(10)", Kind::Text, &["'a'", "'b'", "''", "x'00ff'"]),
    ("DATE", Kind::Date, &["'2020-01-01'", "'2020-02-29'", "'1999-12-31'", "'2155-06-15'"]),
    (
        "DATETIME",
        Kind::DateTime,
        &["'2020-01-01 00:00:00'", "'2020-02-29 12:34:56'", "'1969-07-20 20:17:40'"],
    ),
    ("DATETIME(6)", Kind::DateTime, &["'2020-01-01 00:00:00.000001'", "'2021-03-04 05:06:07.5'"]),
    (
        "TIMESTAMP",
        Kind::DateTime,
        &["'2020-01-01 00:00:00'", "'2020-12-31 23:59:59'", "'1970-01-02 00:00:00'"],
    ),
    ("TIME", Kind::Time, &["'00:00:00'", "'12:34:56'", "'-01:00:00'", "'100:00:00'"]),
    ("TIME(3)", Kind::Time, &["'10:11:12.125'", "'00:00:00.001'", "'23:59:59.999'"]),
    (
        "JSON",
        Kind::Json,
        &[
            "'[1, 2, 3]'",
            "'{\"a\": 1}'",
            "'\"text\"'",
            "'null'",
            "'{\"a\": [1, \"x\"], \"b\": 2.5}'",
        ],
    ),
];

/// A random choice.
pub(crate) fn pick<'a, T>(random: &mut SplitMix, from: &'a [T]) -> &'a T {
    &from[random.below(from.len() as u64) as usize]
}

/// True in one of `of` cases.
pub(crate) fn one_in(random: &mut SplitMix, of: u64) -> bool {
    random.below(of) == 0
}

impl Column {
    fn key_part(&self, random: &mut SplitMix) -> Option<String> {
        let long = ["TEXT", "JSON"].contains(&self.declared);
        let descending = if one_in(random, 4) { " DESC" } else { "" };
        match (self.kind, long) {
            (Kind::Json, _) => None,
            (_, true) => Some(format!("{}(4){descending}", self.name)),
            _ => Some(format!("{}{descending}", self.name)),
        }
    }
}

impl Schema {
    /// Makes two to four tables.
    pub(crate) fn random(random: &mut SplitMix) -> Schema {
        let mut schema = Schema { tables: Vec::new(), indexed: Vec::new(), plain: Vec::new() };
        for number in 0..2 + random.below(3) {
            schema.add_table(random, number);
        }
        schema
    }

    fn add_table(&mut self, random: &mut SplitMix, number: u64) {
        let name = format!("t{number}");
        let id = Column {
            name: "id".into(),
            kind: Kind::Number,
            declared: "INT",
            values: &[],
            nullable: false,
        };
        let mut columns = vec![id];
        for number in 1..4 + random.below(6) {
            let (declared, kind, values) = *pick(random, TYPES);
            let nullable = !one_in(random, 4);
            columns.push(Column { name: format!("c{number}"), kind, declared, values, nullable });
        }
        let mut body = "id INT PRIMARY KEY".to_owned();
        for column in &columns[1..] {
            let null = if column.nullable { "NULL" } else { "NOT NULL" };
            let _ = write!(body, ", {} {} {null}", column.name, column.declared);
        }
        let indexes = random_indexes(random, &columns);
        self.indexed.push(format!("CREATE TABLE {name} ({body}{indexes})"));
        self.plain.push(format!("CREATE TABLE {name} ({body})"));
        let mut rows: Vec<String> =
            (0..random.below(14)).map(|id| random_row(random, &columns, id)).collect();
        if !rows.is_empty() {
            self.indexed.push(format!("INSERT INTO {name} VALUES {}", rows.join(", ")));
            rows.reverse();
            self.plain.push(format!("INSERT INTO {name} VALUES {}", rows.join(", ")));
        }
        self.indexed.push(format!("ANALYZE TABLE {name}"));
        self.tables.push(Table { name, columns });
    }
}

fn random_indexes(random: &mut SplitMix, columns: &[Column]) -> String {
    let mut indexes = String::new();
    for number in 0..random.below(4) {
        let mut parts: Vec<(&str, String)> = Vec::new();
        for _ in 0..1 + random.below(3) {
            let column = pick(random, columns);
            let known = parts.iter().any(|(name, _)| *name == column.name);
            if !known && let Some(part) = column.key_part(random) {
                parts.push((&column.name, part));
            }
        }
        if !parts.is_empty() {
            let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
            let _ = write!(indexes, ", INDEX i{number} ({})", parts.join(", "));
        }
    }
    indexes
}

fn random_row(random: &mut SplitMix, columns: &[Column], id: u64) -> String {
    let mut row = format!("({id}");
    for column in &columns[1..] {
        let value = match column.nullable && one_in(random, 5) {
            true => "NULL",
            false => pick(random, column.values),
        };
        let _ = write!(row, ", {value}");
    }
    row.push(')');
    row
}
