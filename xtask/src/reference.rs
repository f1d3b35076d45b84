//! `cargo xtask reference`: the pages under `docs/reference`, from what a server says of itself: functions, variables, statuses, errors,
//! tables of `data_dictionary`; and statements, from the grammar.
//!
//! The programs in `target/debug` must be built.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{run, statements};

/// Folder of the pages.
const FOLDER: &str = "docs/reference";
/// Longest time in which a server must start.
const START: Duration = Duration::from_secs(120);
/// Variables whose values are those of the machine or of the directory.
const OF_THE_MACHINE: [&str; 20] = [
    "datadir",
    "general_log_file",
    "gtid_executed",
    "gtid_purged",
    "host_cache_size",
    "hostname",
    "innodb_buffer_pool_size",
    "open_files_limit",
    "pid_file",
    "plugin_dir",
    "port",
    "server_uuid",
    "slow_query_log_file",
    "socket",
    "storage_file_system",
    "system_time_zone",
    "thread_cache_size",
    "tmpdir",
    "version_compile_machine",
    "version_compile_os",
];

/// A server in a directory of its own, ended when it is dropped.
struct Machine {
    process: Child,
    folder: PathBuf,
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It holds nothing that is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Machine {
    fn start(root: &Path) -> Result<Machine, String> {
        let folder = std::env::temp_dir().join(format!("reference-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
        let started = Command::new(root.join("target/debug/squalld"))
            .arg(format!("--datadir={}", folder.join("data").display()))
            .arg(format!("--socket={}", folder.join("s").display()))
            .args(["--skip-networking", "--insecure-root"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let process = started.map_err(|e| format!("target/debug/squalld: {e}; build it first"))?;
        let machine = Machine { process, folder };
        let begun = Instant::now();
        while machine.ask(root, "SELECT 1").is_err() {
            if begun.elapsed() > START {
                return Err("the server does not start".into());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(machine)
    }

    /// The rows of a query, an object each.
    fn ask(&self, root: &Path, sql: &str) -> Result<Vec<Value>, String> {
        let done = Command::new(root.join("target/debug/squall"))
            .arg(format!("--socket={}", self.folder.join("s").display()))
            .args(["--format", "json", "--execute", sql])
            .output()
            .map_err(|e| format!("target/debug/squall: {e}; build it first"))?;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).into_owned());
        }
        let text = String::from_utf8_lossy(&done.stdout);
        text.lines().map(|line| serde_json::from_str(line).map_err(|e| e.to_string())).collect()
    }
}

/// Writes the pages, or with `--check` compares them.
///
/// # Errors
/// The server does not start, a file cannot be written, or a page is older than the server.
pub fn reference(args: &[String]) -> Result<(), String> {
    let check = match args {
        [] => false,
        [only] if only == "--check" => true,
        _ => return Err("usage: cargo xtask reference [--check]".into()),
    };
    let root = run::root();
    let machine = Machine::start(&root)?;
    let ask = |sql: &str| machine.ask(&root, sql);
    let pages = [
        ("functions.md", functions(&ask)?),
        ("variables.md", variables(&ask)?),
        ("statuses.md", statuses(&ask)?),
        ("errors.md", errors(&ask)?),
        ("statements.md", statements::page(&root)?),
        ("tables.md", tables(&ask)?),
    ];
    let folder = root.join(FOLDER);
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    for (name, text) in pages {
        let path = folder.join(name);
        if !check {
            std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        } else if std::fs::read_to_string(&path).unwrap_or_default() != text {
            return Err(format!(
                "{FOLDER}/{name} is older than the server: run `cargo xtask reference`"
            ));
        }
    }
    Ok(())
}

type Ask<'a> = &'a dyn Fn(&str) -> Result<Vec<Value>, String>;

const MADE: &str = "<!-- made by `cargo xtask reference` from a running server -->\n\n";

/// A cell of a row as a cell of a Markdown table.
fn cell(row: &Value, name: &str) -> String {
    let text = match &row[name] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.trim().replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}

fn functions(ask: Ask<'_>) -> Result<String, String> {
    let rows = ask("SELECT function_name AS name, SUBSTRING_INDEX(help, '\n', 1) AS usage_, \
                    SUBSTR(help, LENGTH(SUBSTRING_INDEX(help, '\n', 1)) + 2) AS text FROM data_dictionary.functions ORDER BY 1")?;
    let mut page = format!(
        "# Functions\n\n{MADE}{} functions. The same texts are what `HELP 'name'` answers.\n\n| call | |\n| --- | --- |\n",
        rows.len()
    );
    for row in &rows {
        let usage = match row["usage_"].as_str().unwrap_or_default() {
            "" => cell(row, "name"),
            usage => usage.replace('|', "\\|"),
        };
        let _ = writeln!(page, "| `{usage}` | {} |", cell(row, "text"));
    }
    Ok(page)
}

fn variables(ask: Ask<'_>) -> Result<String, String> {
    let rows = ask(
        "SELECT variable_name AS name, variable_value AS value, unit AS unit, minimum AS minimum, maximum AS maximum, effect AS effect, description AS description FROM data_dictionary.global_variables \
                    ORDER BY 1",
    )?;
    let mut page = format!(
        "# System variables\n\n{MADE}{} variables with a global value. Each is an option of `squalld` too (`--name=value`). *Effect* says when a new value counts. No default is shown where it depends on the machine. \
         [How to set them](../configuration.md).\n\n| name | default | range | effect | |\n| --- | --- | --- | --- | --- |\n",
        rows.len()
    );
    for row in &rows {
        let name = cell(row, "name");
        let effect = cell(row, "effect").to_lowercase();
        let default = match effect == "fact" || OF_THE_MACHINE.contains(&name.as_str()) {
            true => String::new(),
            false => cell(row, "value"),
        };
        let (least, most, unit) = (cell(row, "minimum"), cell(row, "maximum"), cell(row, "unit"));
        let range = if most.is_empty() { unit } else { format!("{least} to {most} {unit}") };
        let text = cell(row, "description");
        let _ = writeln!(page, "| `{name}` | {default} | {} | {effect} | {text} |", range.trim());
    }
    Ok(page)
}

fn statuses(ask: Ask<'_>) -> Result<String, String> {
    let rows = ask("SELECT variable_name AS name FROM data_dictionary.global_status ORDER BY 1")?;
    let mut page = format!(
        "# Status variables\n\n{MADE}{} counters of the server (`SHOW GLOBAL STATUS`), with MySQL's names and meanings. Plugins that are loaded later add theirs. Engines count in \
         `data_dictionary.ENGINE_STATUS`.\n\n",
        rows.len()
    );
    for row in &rows {
        let _ = writeln!(page, "- `{}`", cell(row, "name"));
    }
    Ok(page)
}

fn errors(ask: Ask<'_>) -> Result<String, String> {
    let rows = ask(
        "SELECT error_code AS code, error_name AS name, error_sql_state AS state, error_message AS text FROM data_dictionary.errors ORDER BY 1",
    )?;
    let mut page = format!(
        "# Errors\n\n{MADE}{} errors and warnings.\n\n| number | SQLSTATE | name | message |\n| --- | --- | --- | --- |\n",
        rows.len()
    );
    for row in &rows {
        let [code, state, name, text] = ["code", "state", "name", "text"].map(|n| cell(row, n));
        let text = text.replace("{}", "…");
        let _ = writeln!(page, "| {code} | {state} | `{name}` | {text} |");
    }
    Ok(page)
}

fn tables(ask: Ask<'_>) -> Result<String, String> {
    let rows = ask(
        "SELECT table_name AS name, GROUP_CONCAT('`', column_name, '` ', column_type ORDER BY ordinal_position SEPARATOR ', ') AS columns_ \
                    FROM information_schema.columns WHERE table_schema = 'data_dictionary' GROUP BY 1 ORDER BY 1",
    )?;
    let mut page = format!(
        "# Tables of data_dictionary\n\n{MADE}{} tables, which hold what the server knows of itself. [What they are for](../observability.md).\n\n",
        rows.len()
    );
    for row in &rows {
        let _ = writeln!(page, "## {}\n\n{}\n", cell(row, "name"), cell(row, "columns_"));
    }
    Ok(page.trim_end().to_owned() + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stay_in_their_table() {
        let row = serde_json::json!({"a": "x | y\n<z> ", "n": 5, "e": null});
        assert_eq!(cell(&row, "a"), "x \\| y &lt;z>");
        assert_eq!((cell(&row, "n"), cell(&row, "e")), ("5".to_owned(), String::new()));
    }
}
