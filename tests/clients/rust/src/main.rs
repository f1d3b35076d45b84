//! What every client must be able to do, through the `mysql` and `sqlx` crates; a line for each point.

mod asynchronous;
mod blocking;

pub type Outcome = Result<(), Box<dyn std::error::Error>>;

pub fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// Column types and a value of each, binary ones in hexadecimal.
pub fn columns() -> Vec<(&'static str, &'static str)> {
    include_str!("../../columns.tsv").lines().filter_map(|line| line.split_once('\t')).collect()
}

/// The bytes that a value's text in `columns` stands for.
pub fn written(text: &str) -> Vec<u8> {
    let Some(hex) = text.strip_prefix("0x") else { return text.as_bytes().to_vec() };
    let digits = hex.as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

/// CREATE TABLE, the names of the columns and as many question marks.
pub fn every_type() -> (String, String, String) {
    let count = columns().len();
    let body: String =
        columns().iter().enumerate().map(|(i, (kind, _))| format!(", c{i} {kind} NULL")).collect();
    let names: Vec<String> = (0..count).map(|i| format!("c{i}")).collect();
    let table = format!("CREATE TABLE every_type (id INT PRIMARY KEY AUTO_INCREMENT{body})");
    (table, names.join(", "), vec!["?"; count].join(", "))
}

/// Statements and the errors that they end with.
pub const ERRORS: [(&str, u16, &str); 5] = [
    ("SELEC 1", 1064, "42000"),
    ("SELECT * FROM nowhere", 1146, "42S02"),
    ("SELECT nothing FROM t", 1054, "42S22"),
    ("INSERT INTO t VALUES (1, 1)", 1062, "23000"),
    ("INSERT INTO t VALUES ('x', 1)", 1366, "HY000"),
];

/// KILL statement, what it stops, how that ends (an error's number, or 0 for a lost connection).
pub const KILLS: [(&str, &str, u64); 3] = [
    ("KILL QUERY", "SELECT SLEEP(30)", 1),
    ("KILL QUERY", "SELECT SLEEP(30) FROM (SELECT 1 UNION ALL SELECT 2) AS two", 1317),
    ("KILL", "SELECT SLEEP(30)", 0),
];

fn main() -> Outcome {
    blocking::run()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(asynchronous::run())
}
