//! Generates a table, its rows and the statements of a load.

use crate::options::{CHAR_LENGTH, LoadType, Options};
use crate::random::Random;

/// Table of the generated load.
const TABLE: &str = "t1";

/// CREATE TABLE of the generated table.
pub fn create_table(options: &Options, engine: Option<&str>) -> String {
    let mut columns = Vec::new();
    if options.auto_generate_sql_guid_primary {
        columns.push("id VARCHAR(36) PRIMARY KEY".to_owned());
    } else if options.auto_generate_sql_add_autoincrement || needs_key(options) {
        columns.push("id SERIAL".to_owned());
    }
    for index in 1..=options.auto_generate_sql_secondary_indexes {
        columns.push(format!("id{index} VARCHAR(36) UNIQUE"));
    }
    let (ints, chars, blobs) =
        (options.number_int_cols, options.number_char_cols, options.number_blob_cols);
    columns.extend((1..=ints.count).map(|n| format!("intcol{n} INT")));
    columns.extend((1..=chars.count).map(|n| format!("charcol{n} VARCHAR({CHAR_LENGTH})")));
    columns.extend((1..=blobs.count).map(|n| format!("blobcol{n} LONGBLOB")));
    columns.extend((1..=ints.indexed).map(|n| format!("INDEX (intcol{n})")));
    columns.extend((1..=chars.indexed).map(|n| format!("INDEX (charcol{n})")));
    let engine = engine.map_or_else(String::new, |engine| format!(" ENGINE={engine}"));
    format!("CREATE TABLE {TABLE} ({}){engine}", columns.join(","))
}

/// Reads and updates by key need one.
fn needs_key(options: &Options) -> bool {
    matches!(options.auto_generate_sql_load_type, LoadType::Key | LoadType::Update)
}

/// An INSERT of one generated row.
pub fn insert(options: &Options, random: &mut Random) -> String {
    let mut values = Vec::new();
    if options.auto_generate_sql_guid_primary {
        values.push("uuid()".to_owned());
    } else if options.auto_generate_sql_add_autoincrement || needs_key(options) {
        values.push("NULL".to_owned());
    }
    let indexes = 0..options.auto_generate_sql_secondary_indexes;
    values.extend(indexes.map(|_| "uuid()".to_owned()));
    values.extend((0..options.number_int_cols.count).map(|_| random.below(1 << 31).to_string()));
    let chars = 0..options.number_char_cols.count;
    values.extend(chars.map(|_| format!("'{}'", random.word(CHAR_LENGTH))));
    let blobs = options.number_blob_cols;
    values.extend((0..blobs.count).map(|_| {
        let spread = random.below((blobs.max - blobs.min + 1) as u64) as usize;
        format!("'{}'", random.word(blobs.min + spread))
    }));
    format!("INSERT INTO {TABLE} VALUES ({})", values.join(","))
}

/// The statements of the load, in order.
pub fn statements(options: &Options, random: &mut Random) -> Vec<String> {
    let reads = options.auto_generate_sql_unique_query_number.max(1);
    let writes = options.auto_generate_sql_unique_write_number.max(1);
    match options.auto_generate_sql_load_type {
        LoadType::Write => (0..writes).map(|_| insert(options, random)).collect(),
        LoadType::Read => (0..reads).map(|_| select(options, None)).collect(),
        LoadType::Key => (0..reads).map(|_| select(options, Some(key(options, random)))).collect(),
        LoadType::Update => (0..reads).map(|_| update(options, random)).collect(),
        LoadType::Mixed => (0..reads.max(writes))
            .flat_map(|_| [insert(options, random), select(options, None)])
            .collect(),
    }
}

fn key(options: &Options, random: &mut Random) -> u64 {
    1 + random.below(options.auto_generate_sql_write_number.max(1))
}

fn select(options: &Options, key: Option<u64>) -> String {
    let columns = options.auto_generate_sql_select_columns.clone().unwrap_or_else(|| {
        let ints = (1..=options.number_int_cols.count).map(|n| format!("intcol{n}"));
        let chars = (1..=options.number_char_cols.count).map(|n| format!("charcol{n}"));
        ints.chain(chars).collect::<Vec<_>>().join(",")
    });
    let condition = key.map_or_else(String::new, |key| format!(" WHERE id = '{key}'"));
    format!("SELECT {columns} FROM {TABLE}{condition}")
}

fn update(options: &Options, random: &mut Random) -> String {
    let ints =
        (1..=options.number_int_cols.count).map(|n| format!("intcol{n} = {n} + intcol{n} % 1000"));
    let mut sets: Vec<String> = ints.collect();
    let chars = 1..=options.number_char_cols.count;
    sets.extend(chars.map(|n| format!("charcol{n} = '{}'", random.word(CHAR_LENGTH))));
    format!("UPDATE {TABLE} SET {} WHERE id = '{}'", sets.join(", "), key(options, random))
}

/// Splits a text of statements at the delimiter; `\n` means a newline.
pub fn split(text: &str, delimiter: &str) -> Vec<String> {
    let delimiter = delimiter.replace("\\n", "\n");
    let pieces = text.split(delimiter.as_str()).map(str::trim);
    pieces.filter(|piece| !piece.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn options(args: &[&str]) -> Options {
        Options::parse_from(std::iter::once(&"squall-slap").chain(args))
    }

    #[test]
    fn statements_fit_the_table() {
        let options = options(&["-a", "-x", "2", "-y", "1", "--auto-generate-sql-load-type=key"]);
        assert_eq!(
            create_table(&options, None),
            "CREATE TABLE t1 (id SERIAL,intcol1 INT,charcol1 VARCHAR(128),charcol2 VARCHAR(128))"
        );
        let insert = insert(&options, &mut Random::new(1));
        assert_eq!(insert.matches(',').count(), 3);
        let load = statements(&options, &mut Random::new(1));
        assert!(load.iter().all(|sql| sql.contains("WHERE id = ")));
    }

    #[test]
    fn a_text_is_split_at_the_delimiter() {
        assert_eq!(split("a; b;\n;c", ";"), ["a", "b", "c"]);
        assert_eq!(split("a\nb", "\\n"), ["a", "b"]);
    }
}
