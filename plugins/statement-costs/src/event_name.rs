//! The names that `performance_schema` gives to kinds of statements.

/// Commands of the protocol that are no statements of SQL.
pub(crate) fn command_name(command: &str) -> Option<&'static str> {
    match command {
        "Prepare" => Some("statement/com/Prepare"),
        "Execute" => Some("statement/com/Execute"),
        _ => None,
    }
}

/// Names that statements have.
pub(crate) const STATEMENTS: [&str; 50] = [
    "statement/com/Execute",
    "statement/com/Prepare",
    "statement/sql/alter_db",
    "statement/sql/alter_event",
    "statement/sql/alter_table",
    "statement/sql/alter_user",
    "statement/sql/analyze",
    "statement/sql/backup",
    "statement/sql/begin",
    "statement/sql/call_procedure",
    "statement/sql/change_db",
    "statement/sql/check",
    "statement/sql/commit",
    "statement/sql/create_db",
    "statement/sql/create_event",
    "statement/sql/create_function",
    "statement/sql/create_index",
    "statement/sql/create_procedure",
    "statement/sql/create_table",
    "statement/sql/create_trigger",
    "statement/sql/create_user",
    "statement/sql/create_view",
    "statement/sql/dealloc_sql",
    "statement/sql/delete",
    "statement/sql/do",
    "statement/sql/drop_db",
    "statement/sql/drop_index",
    "statement/sql/drop_table",
    "statement/sql/drop_user",
    "statement/sql/drop_view",
    "statement/sql/empty_query",
    "statement/sql/error",
    "statement/sql/execute_sql",
    "statement/sql/explain_other",
    "statement/sql/flush",
    "statement/sql/grant",
    "statement/sql/insert",
    "statement/sql/insert_select",
    "statement/sql/kill",
    "statement/sql/load",
    "statement/sql/optimize",
    "statement/sql/prepare_sql",
    "statement/sql/replace",
    "statement/sql/replace_select",
    "statement/sql/revoke",
    "statement/sql/rollback",
    "statement/sql/select",
    "statement/sql/set_option",
    "statement/sql/truncate",
    "statement/sql/update",
];

/// The name for a digest text.
pub(crate) fn event_name(text: &str) -> String {
    let mut words = text.split_ascii_whitespace().filter(|word| *word != "(");
    let first = words.next().unwrap_or("").to_ascii_lowercase();
    let second = words.next().unwrap_or("").to_ascii_lowercase();
    let has = |word: &str| text.split_ascii_whitespace().any(|other| other == word);
    let kind = match first.as_str() {
        "" => "empty_query".to_owned(),
        "select" | "with" | "values" | "table" => "select".to_owned(),
        "insert" | "replace" if has("SELECT") => format!("{first}_select"),
        "begin" | "start" => "begin".to_owned(),
        "rollback" if second == "to" => "rollback_to_savepoint".to_owned(),
        "release" => "release_savepoint".to_owned(),
        "call" => "call_procedure".to_owned(),
        "use" => "change_db".to_owned(),
        "prepare" => "prepare_sql".to_owned(),
        "execute" => "execute_sql".to_owned(),
        "deallocate" => "dealloc_sql".to_owned(),
        "explain" | "describe" | "desc" => "explain_other".to_owned(),
        "set" if matches!(second.as_str(), "password" | "role") => format!("set_{second}"),
        "set" => "set_option".to_owned(),
        "xa" | "install" | "uninstall" | "lock" | "unlock" => format!("{first}_{second}"),
        "create" | "drop" | "alter" | "show" | "rename" => with_object(&first, text),
        word if word.bytes().all(|byte| byte.is_ascii_alphabetic()) => word.to_owned(),
        _ => "error".to_owned(),
    };
    format!("statement/sql/{kind}")
}

/// Objects of definitions; the first that the text names counts.
const OBJECTS: [(&str, &str); 24] = [
    ("TABLE", "table"),
    ("TABLES", "tables"),
    ("INDEX", "index"),
    ("SCHEMA", "db"),
    ("DATABASE", "db"),
    ("DATABASES", "databases"),
    ("SCHEMAS", "databases"),
    ("VIEW", "view"),
    ("TRIGGER", "trigger"),
    ("PROCEDURE", "procedure"),
    ("FUNCTION", "function"),
    ("EVENT", "event"),
    ("USER", "user"),
    ("ROLE", "role"),
    ("LIBRARY", "library"),
    ("SERVER", "server"),
    ("COLUMNS", "fields"),
    ("FIELDS", "fields"),
    ("KEYS", "keys"),
    ("VARIABLES", "variables"),
    ("STATUS", "status"),
    ("PROCESSLIST", "processlist"),
    ("WARNINGS", "warnings"),
    ("GRANTS", "grants"),
];

fn with_object(first: &str, text: &str) -> String {
    let mut words = text.split_ascii_whitespace().skip(1);
    let object = words.find_map(|word| {
        OBJECTS.iter().find(|(known, _)| *known == word).map(|(_, object)| *object)
    });
    match object {
        Some(object) if first == "show" && text.starts_with("SHOW CREATE ") => {
            format!("show_create_{object}")
        }
        Some(object) => format!("{first}_{object}"),
        None => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_reference() {
        for (text, name) in [
            ("SELECT ?", "select"),
            ("( SELECT ? ) UNION SELECT ?", "select"),
            ("INSERT INTO `t` VALUES (?)", "insert"),
            ("INSERT INTO `t` SELECT * FROM `u`", "insert_select"),
            ("UPDATE `t` SET `a` = ?", "update"),
            ("CREATE TABLE `t` ( `a` INTEGER )", "create_table"),
            ("CREATE UNIQUE INDEX `i` ON `t` ( `a` )", "create_index"),
            ("CREATE SCHEMA `d`", "create_db"),
            ("DROP TABLE IF EXISTS `t`", "drop_table"),
            ("SHOW CREATE TABLE `t`", "show_create_table"),
            ("SHOW GLOBAL VARIABLES LIKE ?", "show_variables"),
            ("SET `autocommit` = ?", "set_option"),
            ("START TRANSACTION", "begin"),
            ("COMMIT", "commit"),
            ("ROLLBACK TO SAVEPOINT `s`", "rollback_to_savepoint"),
            ("CALL `p` ( )", "call_procedure"),
            ("TRUNCATE TABLE `t`", "truncate"),
            ("XA PREPARE ?", "xa_prepare"),
            ("", "empty_query"),
        ] {
            assert_eq!(event_name(text), format!("statement/sql/{name}"), "{text}");
        }
    }
}
