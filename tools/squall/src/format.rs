//! Result sets as text.

use client::Column;
use wire::ColumnType;

use crate::options::Format;

/// Rows kept to measure a table's columns; longer results get the widths of their first rows.
const MEASURED_ROWS: usize = 1000;

/// A cell, NULL or bytes.
type Cell = Option<Vec<u8>>;

/// Collects rows and writes them in a format.
pub struct Printer<'a> {
    format: Format,
    captions: bool,
    out: &'a mut dyn std::io::Write,
    columns: Vec<Column>,
    held: Vec<Vec<Cell>>,
    widths: Vec<usize>,
    number: u64,
    /// First failure to write; the rest of the rows are read and dropped.
    pub failure: Option<std::io::Error>,
}

impl<'a> Printer<'a> {
    /// Writes to `out`.
    pub fn new(format: Format, captions: bool, out: &'a mut dyn std::io::Write) -> Printer<'a> {
        Printer {
            format,
            captions,
            out,
            columns: Vec::new(),
            held: Vec::new(),
            widths: Vec::new(),
            number: 0,
            failure: None,
        }
    }

    fn write(&mut self, text: &[u8]) {
        if self.failure.is_none() {
            self.failure = self.out.write_all(text).err();
        }
    }

    /// Ends the result set.
    pub fn finish(&mut self) {
        if self.format == Format::Table && !self.columns.is_empty() && self.number > 0 {
            if self.widths.is_empty() {
                self.begin_table();
            }
            let line = self.line();
            self.write(&line);
        }
        self.columns.clear();
        self.widths.clear();
        self.number = 0;
    }

    fn line(&self) -> Vec<u8> {
        let mut text = b"+".to_vec();
        for width in &self.widths {
            text.resize(text.len() + width + 2, b'-');
            text.push(b'+');
        }
        text.push(b'\n');
        text
    }

    /// Measures the held rows and writes everything up to them.
    fn begin_table(&mut self) {
        let captions = self.captions;
        let caption_width = |name: &str| if captions { width(name.as_bytes()) } else { 0 };
        self.widths = self.columns.iter().map(|column| caption_width(&column.name)).collect();
        for row in &self.held {
            for (at, cell) in row.iter().enumerate() {
                self.widths[at] = self.widths[at].max(width(shown(cell)));
            }
        }
        let line = self.line();
        self.write(&line);
        if self.captions {
            let names: Vec<Cell> =
                self.columns.iter().map(|column| Some(column.name.clone().into_bytes())).collect();
            self.table_row(&names, true);
            self.write(&line);
        }
        for row in std::mem::take(&mut self.held) {
            self.table_row(&row, false);
        }
    }

    fn table_row(&mut self, row: &[Cell], caption: bool) {
        let mut text = b"|".to_vec();
        for (at, cell) in row.iter().enumerate() {
            let bytes = shown(cell);
            let padding = vec![b' '; self.widths[at].saturating_sub(width(bytes))];
            let right = !caption && is_number(self.columns[at].ty.ty);
            text.push(b' ');
            if right {
                text.extend_from_slice(&padding);
            }
            text.extend_from_slice(bytes);
            if !right {
                text.extend_from_slice(&padding);
            }
            text.extend_from_slice(b" |");
        }
        text.push(b'\n');
        self.write(&text);
    }

    fn vertical_row(&mut self, row: &[Cell]) {
        let longest =
            self.columns.iter().map(|column| width(column.name.as_bytes())).max().unwrap_or(0);
        let stars = "*".repeat(27);
        let mut text = format!("{stars} {}. row {stars}\n", self.number).into_bytes();
        for (Column { name, .. }, cell) in self.columns.iter().zip(row) {
            if self.captions {
                text.resize(text.len() + longest - width(name.as_bytes()), b' ');
                text.extend_from_slice(name.as_bytes());
                text.extend_from_slice(b": ");
            }
            text.extend_from_slice(shown(cell));
            text.push(b'\n');
        }
        self.write(&text);
    }

    fn json_row(&mut self, row: &[Cell]) {
        let mut object = serde_json::Map::new();
        for (column, cell) in self.columns.iter().zip(row) {
            object.insert(column.name.clone(), json_value(column.ty.ty, cell));
        }
        let text = format!("{}\n", serde_json::Value::Object(object));
        self.write(text.as_bytes());
    }

    fn separated(&mut self, cells: impl Iterator<Item = Vec<u8>>, separator: u8) {
        let mut text = Vec::new();
        for (at, cell) in cells.enumerate() {
            if at > 0 {
                text.push(separator);
            }
            text.extend_from_slice(&cell);
        }
        text.push(b'\n');
        self.write(&text);
    }
}

impl client::Answer for Printer<'_> {
    fn columns(&mut self, columns: &[Column]) {
        self.columns = columns.to_vec();
        let names: Vec<Cell> =
            columns.iter().map(|column| Some(column.name.clone().into_bytes())).collect();
        match self.format {
            Format::Tsv if self.captions => self.separated(names.iter().map(tsv_cell), b'\t'),
            Format::Csv if self.captions => self.separated(names.iter().map(csv_cell), b','),
            _ => {}
        }
    }

    fn row(&mut self, cells: &[Option<&[u8]>]) {
        self.number += 1;
        let row: Vec<Cell> = cells.iter().map(|cell| cell.map(<[u8]>::to_vec)).collect();
        match self.format {
            Format::Tsv => self.separated(row.iter().map(tsv_cell), b'\t'),
            Format::Csv => self.separated(row.iter().map(csv_cell), b','),
            Format::Json => self.json_row(&row),
            Format::Vertical => self.vertical_row(&row),
            Format::Table if !self.widths.is_empty() => self.table_row(&row, false),
            Format::Table => {
                self.held.push(row);
                if self.held.len() == MEASURED_ROWS {
                    self.begin_table();
                }
            }
        }
    }
}

fn shown(cell: &Cell) -> &[u8] {
    cell.as_deref().unwrap_or(b"NULL")
}

/// Columns of a text on a terminal: combining marks zero, wide characters two.
fn width(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    text.chars()
        .map(|c| match c as u32 {
            0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
            0x1100..=0x115f
            | 0x2e80..=0xa4cf
            | 0xac00..=0xd7a3
            | 0xf900..=0xfaff
            | 0xfe30..=0xfe6f
            | 0xff00..=0xff60
            | 0x1f300..=0x1faff
            | 0x20000..=0x3fffd => 2,
            _ => 1,
        })
        .sum()
}

fn is_number(kind: ColumnType) -> bool {
    matches!(
        kind,
        ColumnType::Tiny
            | ColumnType::Short
            | ColumnType::Int24
            | ColumnType::Long
            | ColumnType::LongLong
            | ColumnType::Float
            | ColumnType::Double
            | ColumnType::NewDecimal
    )
}

fn json_value(kind: ColumnType, cell: &Cell) -> serde_json::Value {
    let Some(bytes) = cell else { return serde_json::Value::Null };
    let text = String::from_utf8_lossy(bytes);
    let parsed = match kind {
        // Decimals stay text: a double would lose digits.
        ColumnType::NewDecimal => None,
        _ if is_number(kind) => serde_json::from_str(&text).ok(),
        ColumnType::Json => serde_json::from_str(&text).ok(),
        _ => None,
    };
    parsed.unwrap_or_else(|| serde_json::Value::String(text.into_owned()))
}

fn tsv_cell(cell: &Cell) -> Vec<u8> {
    let mut out = Vec::new();
    for byte in shown(cell) {
        match byte {
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0 => out.extend_from_slice(b"\\0"),
            byte => out.push(*byte),
        }
    }
    out
}

/// NULL is an empty field, an empty string `""`.
fn csv_cell(cell: &Cell) -> Vec<u8> {
    let Some(bytes) = cell else { return Vec::new() };
    let plain = !bytes.is_empty() && !bytes.iter().any(|byte| b",\"\r\n".contains(byte));
    if plain {
        return bytes.clone();
    }
    let mut out = vec![b'"'];
    for byte in bytes {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
    out
}

#[cfg(test)]
mod tests {
    use client::Answer;

    use super::*;

    fn plain(ty: ColumnType) -> wire::TypeOnWire {
        let flags = wire::ColumnFlags::default();
        wire::TypeOnWire { ty, collation: 63, length: 0, flags, decimals: 0 }
    }

    fn print(format: Format) -> String {
        let mut out = Vec::new();
        let mut printer = Printer::new(format, true, &mut out);
        let column = |name: &str, ty| Column { name: name.into(), ty: plain(ty) };
        printer.columns(&[column("n", ColumnType::Long), column("t☃", ColumnType::VarString)]);
        printer.row(&[Some(b"10"), Some("a,\"b\"".as_bytes())]);
        printer.row(&[None, Some(b"")]);
        printer.finish();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_format_shows_numbers_nulls_and_quotes() {
        assert_eq!(
            print(Format::Table),
            "+------+-------+\n| n    | t☃    |\n+------+-------+\n|   10 | a,\"b\" |\n| NULL |       |\n+------+-------+\n"
        );
        assert_eq!(print(Format::Tsv), "n\tt☃\n10\ta,\"b\"\nNULL\t\n");
        assert_eq!(print(Format::Csv), "n,t☃\n10,\"a,\"\"b\"\"\"\n,\"\"\n");
        assert_eq!(
            print(Format::Json),
            "{\"n\":10,\"t☃\":\"a,\\\"b\\\"\"}\n{\"n\":null,\"t☃\":\"\"}\n"
        );
        assert!(print(Format::Vertical).contains(" n: 10\nt☃: a,\"b\"\n"));
    }
}
