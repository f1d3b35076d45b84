//! A connection with results as texts, and how names and texts are written in statements.

use client::{Connection, Failure, Outcome};

use crate::admin::table::Table;

/// Whose server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// MySQL, or Squall, which answers as MySQL does.
    MySql,
    /// MariaDB.
    MariaDb,
}

/// A connection and what is behind it.
pub(crate) struct Server {
    pub(crate) connection: Connection,
    pub(crate) flavour: Flavour,
}

impl Server {
    /// Names and texts travel as utf8mb4.
    ///
    /// # Errors
    /// The server's error.
    pub(crate) fn new(connection: Connection) -> Result<Server, String> {
        let flavour = match connection.server_version.contains("MariaDB") {
            true => Flavour::MariaDb,
            false => Flavour::MySql,
        };
        let mut server = Server { connection, flavour };
        server.run("SET NAMES utf8mb4")?;
        Ok(server)
    }

    /// The rows of a query.
    ///
    /// # Errors
    /// The server's error, after the statement.
    pub(crate) fn table(&mut self, sql: &str) -> Result<Table, String> {
        Table::of(&mut self.connection, sql).map_err(|error| format!("{sql}: {error}"))
    }

    /// The cells of a query, NULL as an empty text.
    ///
    /// # Errors
    /// The server's error, after the statement.
    pub(crate) fn rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>, String> {
        let texts = |row: Vec<Option<String>>| row.into_iter().map(Option::unwrap_or_default);
        Ok(self.table(sql)?.rows.into_iter().map(|row| texts(row).collect()).collect())
    }

    /// The first cell of a query; empty without rows.
    ///
    /// # Errors
    /// The server's error, after the statement.
    pub(crate) fn cell(&mut self, sql: &str) -> Result<String, String> {
        let first = self.rows(sql)?.into_iter().next();
        Ok(first.and_then(|row| row.into_iter().next()).unwrap_or_default())
    }

    /// Runs a statement without rows.
    ///
    /// # Errors
    /// The server's error, after the statement.
    pub(crate) fn run(&mut self, sql: &str) -> Result<Outcome, String> {
        self.attempt(sql).map_err(|error| format!("{sql}: {error}"))
    }

    /// Runs a statement without rows.
    ///
    /// # Errors
    /// The server's error.
    pub(crate) fn attempt(&mut self, sql: &str) -> Result<Outcome, Failure> {
        self.connection.query(sql.as_bytes(), &mut ())
    }

    /// The warnings of the statement before, without those that only say that something is old.
    ///
    /// # Errors
    /// The connection is lost.
    pub(crate) fn warnings(&mut self) -> Result<Vec<String>, String> {
        const OLD: [&str; 7] = ["1287", "1681", "3719", "3778", "3130", "1831", "4166"];
        let rows = self.rows("SHOW WARNINGS")?;
        let counts = |row: &Vec<String>| row[0] != "Note" && !OLD.contains(&row[1].as_str());
        Ok(rows.into_iter().filter(counts).map(|row| format!("{} {}", row[1], row[2])).collect())
    }
}

/// `` `name` ``
pub(crate) fn quoted_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// `'text'`
pub(crate) fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// `'a', 'b'`
pub(crate) fn quoted_texts(texts: &[String]) -> String {
    texts.iter().map(|text| quoted_text(text)).collect::<Vec<_>>().join(", ")
}
