//! Where the files are: below the data directory, `export/SCHEMA/TABLE.squall` for what the server writes, and `import/` for what it reads.

use std::path::{Path, PathBuf};

use catalog::Partitioning;

/// Files of FLUSH TABLES .. FOR EXPORT. The server empties it at its start.
pub const EXPORT_DIRECTORY: &str = "export";
/// Files for IMPORT TABLESPACE. The server never changes it.
pub const IMPORT_DIRECTORY: &str = "import";
const SUFFIX: &str = ".squall";

/// The file of a table, or of a partition, whose name begins with `#p#`, below one of the two directories.
pub fn file_of(directory: &Path, schema: &str, table: &str, leaf: &str) -> PathBuf {
    let name = format!("{}{leaf}{SUFFIX}", encoded(table));
    directory.join(encoded(schema)).join(name)
}

/// What the names of the files of the partition with a number have behind the table's name, and its own name: of the subpartition, if it has some.
pub fn leaf_names(partitioning: &Partitioning, number: u16) -> Option<(String, String)> {
    let count = partitioning.subpartitions();
    let own = partitioning.partitions.iter().find(|own| own.number == number / count)?;
    let lower = |name: &str| encoded(&name.to_lowercase());
    Some(match own.subpartitions.get(usize::from(number % count)) {
        Some((sub, _)) => (format!("#p#{}#sp#{}", lower(&own.name), lower(sub)), sub.to_string()),
        None => (format!("#p#{}", lower(&own.name)), own.name.to_string()),
    })
}

/// A name as a file's: letters, digits, `_`, `-` and `$` stay, any other character is `@` and the four hexadecimal digits of each UTF-16 unit.
fn encoded(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for char in name.chars() {
        if char.is_alphanumeric() || matches!(char, '_' | '-' | '$') {
            out.push(char);
            continue;
        }
        let mut units = [0; 2];
        for unit in char.encode_utf16(&mut units) {
            out.push_str(&format!("@{unit:04x}"));
        }
    }
    out
}

/// Whether a file's name has the form of `pattern`, where `*` is any characters and `?` is one.
pub fn matching(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut taken) = (0, 0);
    // Where the last star was, and what it has taken.
    let mut star: Option<(usize, usize)> = None;
    while taken < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, taken));
                at += 1;
            }
            Some(char) if *char == '?' || *char == name[taken] => {
                (at, taken) = (at + 1, taken + 1);
            }
            _ => {
                let Some((place, until)) = star else { return false };
                star = Some((place, until + 1));
                (at, taken) = (place + 1, until + 1);
            }
        }
    }
    pattern[at..].iter().all(|char| *char == '*')
}
