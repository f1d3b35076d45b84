//! Databases, tables and programs of the source: read under its lock, made in the target.

use super::dialect;
use super::report::Report;
use super::rows::Column;
use super::server::{Flavour, Server, quoted_name, quoted_text, quoted_texts};

/// Databases that belong to a server itself.
const OWN: [&str; 8] = [
    "information_schema",
    "performance_schema",
    "mysql",
    "sys",
    "ndbinfo",
    "data_dictionary",
    "squall_replication",
    super::state::SCHEMA,
];

/// A database.
#[derive(Clone, Debug)]
pub(super) struct Database {
    pub(super) name: String,
    /// CREATE DATABASE.
    pub(super) definition: String,
}

/// The first column of a primary key.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) column: String,
    pub(super) ty: String,
    pub(super) charset: String,
}

/// A table.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) database: String,
    pub(super) name: String,
    /// CREATE TABLE, in MySQL's words.
    pub(super) definition: String,
    /// What the definition means otherwise than in the source.
    pub(super) notes: Vec<String>,
    pub(super) columns: Vec<Column>,
    pub(super) key: Option<Key>,
    /// About.
    pub(super) rows: u64,
    /// About.
    pub(super) bytes: u64,
}

impl Table {
    /// `` `database`.`table` ``
    pub(super) fn quoted(&self) -> String {
        format!("{}.{}", quoted_name(&self.database), quoted_name(&self.name))
    }
}

/// A sequence of a MariaDB or a Squall.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    /// `` `database`.`name` ``
    pub(super) path: String,
    /// CREATE SEQUENCE, which leaves one that is there.
    pub(super) definition: String,
    /// The arguments of SETVAL that say how it goes on.
    pub(super) place: String,
}

/// A view, routine, trigger or event.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// As in the report: views, functions, procedures, triggers, events.
    pub(super) kind: &'static str,
    pub(super) database: String,
    pub(super) name: String,
    pub(super) definition: String,
    pub(super) sql_mode: String,
    pub(super) collation: String,
    /// Of an event.
    pub(super) zone: String,
}

/// What the source holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Definitions {
    pub(super) databases: Vec<Database>,
    pub(super) sequences: Vec<Sequence>,
    pub(super) tables: Vec<Table>,
    pub(super) programs: Vec<Program>,
}

/// Reads the definitions of `wanted` databases, of all if that is empty.
///
/// # Errors
/// The server's error, or a database that is not there.
pub(super) fn read(
    source: &mut Server,
    wanted: &[String],
    report: &mut Report,
) -> Result<Definitions, String> {
    let mut all = Definitions::default();
    remark_on_blindness(source, report)?;
    let listed = source.rows(
        "SELECT schema_name, default_character_set_name, default_collation_name \
         FROM information_schema.schemata ORDER BY schema_name",
    )?;
    let is_wanted = |name: &String| match wanted.is_empty() {
        true => !OWN.contains(&name.to_ascii_lowercase().as_str()),
        false => wanted.contains(name),
    };
    for row in listed.into_iter().filter(|row| is_wanted(&row[0])) {
        let collation = dialect::collation(&row[2]);
        let name = quoted_name(&row[0]);
        let definition =
            format!("CREATE DATABASE {name} CHARACTER SET {} COLLATE {collation}", row[1]);
        all.databases.push(Database { name: row[0].clone(), definition });
    }
    let names: Vec<_> = all.databases.iter().map(|database| database.name.clone()).collect();
    if let Some(absent) = wanted.iter().find(|name| !names.contains(name)) {
        return Err(format!("the source has no database {absent}"));
    }
    for database in &names {
        read_tables(source, database, &mut all, report)?;
    }
    if !names.is_empty() {
        read_programs(source, &quoted_texts(&names), &mut all.programs)?;
    }
    Ok(all)
}

/// What an account may not see is in no list of the server.
fn remark_on_blindness(source: &mut Server, report: &mut Report) -> Result<(), String> {
    let current = source.cell("SELECT CURRENT_USER()")?;
    let (user, host) = current.rsplit_once('@').unwrap_or((&current, "%"));
    let grantee = quoted_text(&format!("'{user}'@'{host}'"));
    let held = source.rows(&format!(
        "SELECT privilege_type FROM information_schema.user_privileges WHERE grantee = {grantee}"
    ))?;
    let needed = ["SELECT", "SHOW VIEW", "TRIGGER", "EVENT"];
    let lacks = |name: &&str| !held.iter().any(|row| row[0] == *name);
    let lacking: Vec<_> = needed.into_iter().filter(lacks).collect();
    if !lacking.is_empty() {
        report.remarks.push(format!(
            "{current} has no {} on all databases of its own: what it does not see in the source was not imported and is not named here",
            lacking.join(", ")
        ));
    }
    Ok(())
}

fn read_tables(
    source: &mut Server,
    database: &str,
    all: &mut Definitions,
    report: &mut Report,
) -> Result<(), String> {
    let quoted = quoted_text(database);
    let listed = source.rows(&format!(
        "SELECT table_name, table_type, COALESCE(table_rows, 0), COALESCE(data_length, 0), \
         COALESCE(engine, '') FROM information_schema.tables WHERE table_schema = {quoted} ORDER BY table_name"
    ))?;
    let columns = source.rows(&format!(
        "SELECT table_name, column_name, LOWER(data_type), LOWER(COALESCE(character_set_name, '')), \
         generation_expression <> '' OR extra LIKE '%VIRTUAL GENERATED%' OR extra LIKE '%STORED GENERATED%' \
         FROM information_schema.columns WHERE table_schema = {quoted} ORDER BY table_name, ordinal_position"
    ))?;
    let keys = source.rows(&format!(
        "SELECT table_name, column_name FROM information_schema.statistics \
         WHERE table_schema = {quoted} AND index_name = 'PRIMARY' AND seq_in_index = 1 AND sub_part IS NULL"
    ))?;
    for row in listed {
        let (name, kind) = (row[0].clone(), row[1].as_str());
        let path = format!("{}.{}", quoted_name(database), quoted_name(&name));
        match kind {
            "BASE TABLE" | "SYSTEM VERSIONED" => {}
            "VIEW" | "SYSTEM VIEW" => continue,
            "SEQUENCE" => {
                all.sequences.push(read_sequence(source, &name, path)?);
                continue;
            }
            other => {
                report.missing(format!("{} {path}", other.to_lowercase()));
                continue;
            }
        }
        if !row[4].eq_ignore_ascii_case("InnoDB") {
            report.remarks.push(format!(
                "table {path} is {} in the source, which gives no snapshot: its rows are those of the moment when they were read",
                row[4]
            ));
        }
        let text = source.rows(&format!("SHOW CREATE TABLE {path}"))?.remove(0).remove(1);
        let (definition, mut notes) = match source.flavour {
            Flavour::MariaDb => dialect::table(&text),
            Flavour::MySql => (text, Vec::new()),
        };
        let definition = without_lines(&definition, &mut notes);
        let own: Vec<_> = columns.iter().filter(|column| column[0] == name).collect();
        let made = own.iter().map(|c| Column::new(&c[1], &c[2], &c[3], c[4] == "1"));
        let key = keys.iter().find(|key| key[0] == name).and_then(|key| {
            let column = own.iter().find(|column| column[1] == key[1])?;
            Some(Key { column: key[1].clone(), ty: column[2].clone(), charset: column[3].clone() })
        });
        all.tables.push(Table {
            database: database.to_owned(),
            columns: made.collect(),
            name,
            definition,
            notes,
            key,
            rows: row[2].parse().unwrap_or(0),
            bytes: row[3].parse().unwrap_or(0),
        });
    }
    Ok(())
}

/// Without the indexes that the target has no kind for, each on a line of its own.
fn without_lines(definition: &str, notes: &mut Vec<String>) -> String {
    let is_foreign = |line: &str| {
        line.starts_with("  FULLTEXT KEY ")
            && line.contains(" WITH PARSER ")
            && !line.contains(" WITH PARSER `ngram` ")
    };
    let mut lines = Vec::new();
    for line in definition.lines() {
        if is_foreign(line) {
            notes.push(format!("without {}", line.trim().trim_end_matches(',')));
            continue;
        }
        // The last line before the end has no comma.
        if line.starts_with(')') && lines.len() > 1 {
            let last: &mut String = lines.last_mut().expect("lines");
            if last.ends_with(',') {
                last.pop();
            }
        }
        lines.push(line.to_owned());
    }
    lines.join("\n")
}

fn read_programs(
    source: &mut Server,
    databases: &str,
    programs: &mut Vec<Program>,
) -> Result<(), String> {
    let lists = [
        (
            "functions",
            "FUNCTION",
            format!(
                "SELECT routine_schema, routine_name FROM information_schema.routines WHERE routine_type = 'FUNCTION' AND routine_schema IN ({databases}) ORDER BY 1, 2"
            ),
        ),
        (
            "procedures",
            "PROCEDURE",
            format!(
                "SELECT routine_schema, routine_name FROM information_schema.routines WHERE routine_type = 'PROCEDURE' AND routine_schema IN ({databases}) ORDER BY 1, 2"
            ),
        ),
        (
            "views",
            "VIEW",
            format!(
                "SELECT table_schema, table_name FROM information_schema.views WHERE table_schema IN ({databases}) ORDER BY 1, 2"
            ),
        ),
        (
            "triggers",
            "TRIGGER",
            format!(
                "SELECT trigger_schema, trigger_name FROM information_schema.triggers WHERE trigger_schema IN ({databases}) ORDER BY 1, event_object_table, action_timing, event_manipulation, action_order"
            ),
        ),
        (
            "events",
            "EVENT",
            format!(
                "SELECT event_schema, event_name FROM information_schema.events WHERE event_schema IN ({databases}) ORDER BY 1, 2"
            ),
        ),
    ];
    for (kind, word, list) in lists {
        for row in source.rows(&list)? {
            let path = format!("{}.{}", quoted_name(&row[0]), quoted_name(&row[1]));
            let shown = source.table(&format!("SHOW CREATE {word} {path}"))?;
            let cells =
                shown.rows.first().ok_or_else(|| format!("SHOW CREATE {word} {path}: no row"))?;
            let text = |name: &str| shown.text(cells, name).to_owned();
            let column = match word {
                "TRIGGER" => "SQL Original Statement".to_owned(),
                _ => format!("Create {word}"),
            };
            programs.push(Program {
                kind,
                database: row[0].clone(),
                name: row[1].clone(),
                definition: text(&column),
                sql_mode: text("sql_mode"),
                collation: text("collation_connection"),
                zone: text("time_zone"),
            });
        }
    }
    Ok(())
}

fn read_sequence(source: &mut Server, name: &str, path: String) -> Result<Sequence, String> {
    let text = source.rows(&format!("SHOW CREATE SEQUENCE {path}"))?.remove(0).remove(1);
    let begin = format!("CREATE SEQUENCE {}", quoted_name(name));
    let options = text.strip_prefix(&begin).ok_or_else(|| format!("sequence {path}: {text}"))?;
    let row = source.rows(&format!(
        "SELECT next_not_cached_value, IF(cycle_option, cycle_count, 0) FROM {path}"
    ))?;
    let [next, round] = &row[0][..] else { return Err(format!("sequence {path} has no row")) };
    Ok(Sequence {
        definition: format!("CREATE SEQUENCE IF NOT EXISTS {path}{options}"),
        place: format!("{next}, 0, {round}"),
        path,
    })
}

/// Makes the sequences, before the tables whose defaults draw from them.
///
/// # Errors
/// The server's.
pub(super) fn make_sequences(
    target: &mut Server,
    sequences: &[Sequence],
    report: &mut Report,
) -> Result<(), String> {
    for sequence in sequences {
        target.run(&sequence.definition)?;
        target.run(&format!("DO SETVAL({}, {})", sequence.path, sequence.place))?;
        report.made("sequences");
    }
    Ok(())
}

/// Makes views, routines, triggers and events. What needs another one is tried again after it.
///
/// # Errors
/// The connection is lost; what the target refuses is in the report.
pub(super) fn make_programs(
    target: &mut Server,
    programs: &[Program],
    events_stay_enabled: bool,
    report: &mut Report,
) -> Result<(), String> {
    let mut waiting: Vec<&Program> = programs.iter().collect();
    loop {
        let mut refused = Vec::new();
        let before = waiting.len();
        for program in waiting {
            match make_program(target, program, events_stay_enabled, report) {
                Ok(()) => report.made(program.kind),
                Err(error) => refused.push((program, error)),
            }
        }
        if refused.is_empty() || refused.len() == before {
            for (program, error) in refused {
                let kind = program.kind.trim_end_matches('s');
                report.missing(format!("{kind} {}.{}: {error}", program.database, program.name));
            }
            target.run("SET sql_mode = DEFAULT")?;
            return Ok(());
        }
        waiting = refused.into_iter().map(|(program, _)| program).collect();
    }
}

fn make_program(
    target: &mut Server,
    program: &Program,
    events_stay_enabled: bool,
    report: &mut Report,
) -> Result<(), String> {
    let path = format!("{}.{}", quoted_name(&program.database), quoted_name(&program.name));
    if program.definition.is_empty() {
        return Err("the account may not read its definition (SHOW_ROUTINE)".to_owned());
    }
    let word = program.kind.trim_end_matches('s').to_uppercase();
    target.run(&format!("USE {}", quoted_name(&program.database)))?;
    target.run(&format!("DROP {word} IF EXISTS {path}"))?;
    let (modes, lost) = dialect::sql_mode(&program.sql_mode);
    if !lost.is_empty() {
        return Err(format!("its sql_mode has {}", lost.join(", ")));
    }
    let collation = dialect::collation(&program.collation);
    target.run(&format!("SET sql_mode = '{modes}', collation_connection = {collation}"))?;
    if !program.zone.is_empty() {
        target.run(&format!("SET time_zone = {}", quoted_text(&program.zone)))?;
    }
    let mut text = program.definition.clone();
    if program.kind == "events" && text.contains(" PRESERVE ENABLE") && !events_stay_enabled {
        text = text.replacen(" PRESERVE ENABLE", " PRESERVE DISABLE ON SLAVE", 1);
    }
    let made = target.attempt(&text).map_err(|error| error.to_string());
    target.run("SET time_zone = '+00:00'")?;
    made?;
    if text != program.definition {
        report.remarks.push(format!(
            "event {path} does not run here while it runs in the source: ALTER EVENT {path} ENABLE"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_leaves_no_comma_behind() {
        let mut notes = Vec::new();
        let text = "CREATE TABLE `t` (\n  `a` int,\n  `p` text,\n  FULLTEXT KEY `s` (`p`) /*!50100 WITH PARSER `mecab` */ \n) ENGINE=InnoDB";
        let left = "CREATE TABLE `t` (\n  `a` int,\n  `p` text\n) ENGINE=InnoDB";
        assert_eq!(without_lines(text, &mut notes), left);
        assert_eq!(notes, ["without FULLTEXT KEY `s` (`p`) /*!50100 WITH PARSER `mecab` */"]);
        assert_eq!(without_lines(left, &mut notes), left);
    }
}
