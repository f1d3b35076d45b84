//! What an import has begun: a database in the target, dropped at the end.

use super::definitions::{Database, Table};
use super::report::Report;
use super::server::{Server, quoted_name, quoted_text};

/// Its name.
pub(super) const SCHEMA: &str = "squall_import";

/// The objects that the import made, each with its definition in the source.
pub(super) struct State {
    objects: Vec<Vec<String>>,
    source: String,
    /// An import was interrupted.
    pub(super) is_resumed: bool,
}

impl State {
    /// Reads it; without one an import from `source` begins.
    ///
    /// # Errors
    /// The server's error, or an import from elsewhere was interrupted.
    pub(super) fn read(target: &mut Server, source: &str) -> Result<State, String> {
        let there = target.cell(&format!(
            "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '{SCHEMA}' AND table_name = 'objects'"
        ))?;
        let objects = match there.as_str() {
            "0" => Vec::new(),
            _ => target.rows(&format!("SELECT kind, name, definition FROM {SCHEMA}.objects"))?,
        };
        let is_resumed = !objects.is_empty();
        let state = State { objects, source: source.to_owned(), is_resumed };
        match state.definition("source", "") {
            Some(known) if known != source => Err(format!(
                "an import from {known} was interrupted: go on with that one, or DROP DATABASE {SCHEMA} and what it made"
            )),
            Some(_) | None => Ok(state),
        }
    }

    /// Makes the database that keeps the state.
    fn begin(&mut self, target: &mut Server) -> Result<(), String> {
        target.run(&format!("CREATE DATABASE IF NOT EXISTS {SCHEMA} CHARACTER SET utf8mb4"))?;
        target.run(&format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.objects (kind VARCHAR(16) COLLATE utf8mb4_bin, name VARCHAR(300) COLLATE utf8mb4_bin, \
             definition LONGTEXT NOT NULL, PRIMARY KEY (kind, name))"
        ))?;
        let source = self.source.clone();
        self.keep(target, "source", "", &source)
    }

    /// The definition that an object was made by.
    pub(super) fn definition(&self, kind: &str, name: &str) -> Option<&str> {
        let found = self.objects.iter().find(|row| row[0] == kind && row[1] == name);
        found.map(|row| row[2].as_str())
    }

    /// Notes an object that is about to be made.
    ///
    /// # Errors
    /// The server's error.
    pub(super) fn keep(
        &mut self,
        target: &mut Server,
        kind: &str,
        name: &str,
        definition: &str,
    ) -> Result<(), String> {
        let (quoted, text) = (quoted_text(name), quoted_text(definition));
        target
            .run(&format!("REPLACE INTO {SCHEMA}.objects VALUES ('{kind}', {quoted}, {text})"))?;
        self.objects.retain(|row| row[0] != kind || row[1] != name);
        self.objects.push(vec![kind.to_owned(), name.to_owned(), definition.to_owned()]);
        Ok(())
    }

    /// Makes the databases; those of an interrupted import are there.
    ///
    /// # Errors
    /// The server's error, or the target has a database of this name that the import did not make.
    pub(super) fn make_databases(
        &mut self,
        target: &mut Server,
        databases: &[Database],
        report: &mut Report,
    ) -> Result<(), String> {
        let there = target.rows("SHOW DATABASES")?;
        for database in databases {
            let exists = there.iter().any(|row| row[0] == database.name);
            let is_own = self.definition("database", &database.name).is_some();
            if exists && !is_own {
                return Err(format!(
                    "the target has a database {}: drop it there, or name the databases to import",
                    database.name
                ));
            }
        }
        // Nothing was touched until here.
        self.begin(target)?;
        for database in databases {
            self.keep(target, "database", &database.name, &database.definition)?;
            if !there.iter().any(|row| row[0] == database.name) {
                target.run(&database.definition)?;
            }
            report.made("databases");
        }
        Ok(())
    }

    /// Makes a table, unless it is there with this definition.
    ///
    /// # Errors
    /// The server refuses the definition.
    pub(super) fn make_table(
        &mut self,
        target: &mut Server,
        table: &Table,
        report: &mut Report,
    ) -> Result<(), String> {
        let path = table.quoted();
        target.run(&format!("USE {}", quoted_name(&table.database)))?;
        if self.definition("table", &path) != Some(&table.definition) {
            target.run(&format!("DROP TABLE IF EXISTS {path}"))?;
            let made = target.attempt(&table.definition).map_err(|error| error.to_string())?;
            if made.warnings > 0 {
                for warning in target.warnings()? {
                    report.changed(format!("table {path}: {warning}"));
                }
            }
            self.keep(target, "table", &path, &table.definition)?;
        }
        for note in &table.notes {
            report.changed(format!("table {path}: {note}"));
        }
        Ok(())
    }
}
