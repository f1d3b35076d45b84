//! The result of a query, kept as texts.

use client::{Answer, Column, Connection};

/// Columns and rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Option<String>>>,
}

impl Answer for Table {
    fn columns(&mut self, columns: &[Column]) {
        self.columns = columns.iter().map(|column| column.name.clone()).collect();
    }

    fn row(&mut self, cells: &[Option<&[u8]>]) {
        let text =
            |cell: &Option<&[u8]>| cell.map(|cell| String::from_utf8_lossy(cell).into_owned());
        self.rows.push(cells.iter().map(text).collect());
    }
}

impl Table {
    /// Runs a query.
    ///
    /// # Errors
    /// The server's error as text.
    pub(crate) fn of(connection: &mut Connection, sql: &str) -> Result<Table, String> {
        let mut table = Table::default();
        let mut outcome = connection.query(sql.as_bytes(), &mut table);
        while outcome.as_ref().is_ok_and(|outcome| outcome.more) {
            outcome = connection.next_result(&mut ());
        }
        outcome.map(|_| table).map_err(|error| error.to_string())
    }

    /// The position of a column.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.eq_ignore_ascii_case(name))
    }

    /// A cell of a row by the name of its column; empty for NULL.
    pub(crate) fn text<'r>(&self, row: &'r [Option<String>], name: &str) -> &'r str {
        let cell = self.position(name).and_then(|position| row.get(position)?.as_deref());
        cell.unwrap_or_default()
    }

    /// Replaces the cells of a column.
    pub(crate) fn change(&mut self, name: &str, change: impl Fn(&str) -> String) {
        let Some(position) = self.position(name) else { return };
        for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(position)) {
            *cell = cell.as_deref().map(&change);
        }
    }

    /// Tab-separated, names first; tabs, line ends and backslashes in cells are escaped, NULL is `\N`.
    pub(crate) fn to_tsv(&self) -> String {
        let mut text = self.columns.join("\t");
        text.push('\n');
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| escaped(cell.as_deref())).collect();
            text.push_str(&cells.join("\t"));
            text.push('\n');
        }
        text
    }
}

fn escaped(cell: Option<&str>) -> String {
    let Some(cell) = cell else { return "\\N".into() };
    cell.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stay_in_their_columns() {
        let table = Table {
            columns: vec!["a".into(), "B".into()],
            rows: vec![vec![Some("x\ty\n\\".into()), None]],
        };
        assert_eq!(table.to_tsv(), "a\tB\nx\\ty\\n\\\\\t\\N\n");
        assert_eq!(table.text(&table.rows[0], "b"), "");
        assert_eq!(table.text(&table.rows[0], "A"), "x\ty\n\\");
    }
}
