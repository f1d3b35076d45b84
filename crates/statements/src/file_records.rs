//! Splits a stream of bytes into records and fields, by FIELDS and LINES. Knows neither tables nor character sets.

use std::rc::Rc;

use errors::Result;

use crate::xml_records::XmlReader;

/// Returns the next piece of a file; empty at its end.
pub type Source<'a> = &'a mut dyn FnMut() -> Result<Vec<u8>>;

/// How records and fields are marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// FIELDS TERMINATED BY.
    pub terminated: Vec<u8>,
    /// FIELDS ENCLOSED BY.
    pub enclosed: Option<u8>,
    /// Whether only texts are enclosed.
    pub optionally_enclosed: bool,
    /// FIELDS ESCAPED BY.
    pub escaped: Option<u8>,
    /// LINES STARTING BY.
    pub starting: Vec<u8>,
    /// LINES TERMINATED BY; that of fields when it is empty.
    pub line_end: Vec<u8>,
}

impl Format {
    /// The format that a clause describes.
    pub fn new(clause: &syntax::ast::FileFormat) -> Format {
        let bytes = |part: &Option<Box<[u8]>>, default: &[u8]| {
            part.as_ref().map_or_else(|| default.to_vec(), |bytes| bytes.to_vec())
        };
        let terminated = bytes(&clause.fields_terminated_by, b"\t");
        let line_end = bytes(&clause.lines_terminated_by, b"\n");
        Format {
            enclosed: bytes(&clause.fields_enclosed_by, b"").first().copied(),
            optionally_enclosed: clause.fields_optionally_enclosed,
            escaped: bytes(&clause.fields_escaped_by, b"\\").first().copied(),
            starting: bytes(&clause.lines_starting_by, b""),
            // Without a line terminator, lines end where fields do.
            line_end: if line_end.is_empty() { terminated.clone() } else { line_end },
            terminated,
        }
    }
}

/// A field; `None` is NULL.
pub type Field<'a> = Option<&'a [u8]>;

/// The fields of a record, in memory that is reused for all records.
#[derive(Default)]
pub struct Record {
    bytes: Vec<u8>,
    /// Where each field ends, and whether it is NULL.
    ends: Vec<(usize, bool)>,
}

impl Record {
    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Removes the fields.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds a field.
    pub fn push(&mut self, field: Field<'_>) {
        self.bytes.extend_from_slice(field.unwrap_or_default());
        self.close(field.is_none());
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The fields in order.
    pub fn fields(&self) -> impl Iterator<Item = Field<'_>> {
        let mut start = 0;
        self.ends.iter().map(move |(end, is_null)| {
            debug_assert!(start <= *end, "fields are in order");
            let bytes = &self.bytes[start..*end];
            start = *end;
            (!is_null).then_some(bytes)
        })
    }

    /// Whether there are `fields` fields and then only the separator that ends the line.
    pub fn ends_after(&self, fields: usize) -> bool {
        self.len() == fields + 1 && self.fields().last() == Some(Some(b""))
    }

    /// The contents so far of the field that is being read.
    fn current(&self) -> &[u8] {
        &self.bytes[self.ends.last().map_or(0, |(end, _)| *end)..]
    }

    fn close(&mut self, is_null: bool) {
        self.ends.push((self.bytes.len(), is_null));
    }
}

/// The records of a file that a LOAD statement reads.
pub enum Records<'a> {
    /// By FIELDS and LINES.
    Lines(Reader<'a>),
    /// Tags of XML.
    Xml(XmlReader<'a>),
}

impl<'a> Records<'a> {
    /// The records as the statement describes them; `names` are those of its list.
    pub fn of(
        load: &syntax::ast::LoadData,
        names: Vec<Vec<u8>>,
        source: Source<'a>,
    ) -> Records<'a> {
        match load.xml {
            true => Records::Xml(XmlReader::new(source, load.rows_identified_by.as_deref(), names)),
            false => Records::Lines(Reader::new(source, Format::new(&load.format))),
        }
    }

    /// Skips a line, or a row of XML; false at the end of the file.
    ///
    /// # Errors
    /// Those of the source.
    pub fn skip(&mut self) -> Result<bool> {
        match self {
            Records::Lines(reader) => reader.skip_line(),
            Records::Xml(reader) => reader.record(&mut Record::default()),
        }
    }

    /// Replaces `record` with the next one; false at the end of the file.
    ///
    /// # Errors
    /// Those of the source.
    pub fn record(&mut self, record: &mut Record) -> Result<bool> {
        match self {
            Records::Lines(reader) => reader.record(record),
            Records::Xml(reader) => reader.record(record),
        }
    }
}

/// Reads records.
pub struct Reader<'a> {
    source: Source<'a>,
    format: Rc<Format>,
    /// Bytes with which a mark may begin; all others are plain data.
    special: [bool; 256],
    buffer: Vec<u8>,
    position: usize,
    ended: bool,
}

/// Used bytes are dropped from the buffer when there are this many.
const COMPACT_BYTES: usize = 1 << 16;

/// How a field ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Field,
    Line,
}

impl<'a> Reader<'a> {
    /// Reads records of a format from a source.
    pub fn new(source: Source<'a>, format: Format) -> Reader<'a> {
        let mut special = [false; 256];
        let firsts = [format.terminated.first(), format.line_end.first()];
        let marks = [format.escaped, format.enclosed];
        for byte in firsts.into_iter().flatten().copied().chain(marks.into_iter().flatten()) {
            special[usize::from(byte)] = true;
        }
        let format = Rc::new(format);
        Reader { source, format, special, buffer: Vec::new(), position: 0, ended: false }
    }

    /// Moves the buffered bytes before the next that may begin a mark to `field`. Returns whether any were moved.
    #[inline]
    fn take_plain(&mut self, field: &mut Vec<u8>) -> bool {
        let here = &self.buffer[self.position..];
        let count = here.iter().take_while(|byte| !self.special[usize::from(**byte)]).count();
        field.extend_from_slice(&here[..count]);
        self.position += count;
        debug_assert!(self.position <= self.buffer.len());
        count > 0
    }

    /// Makes `count` bytes available unless the file ends before.
    fn fill(&mut self, count: usize) -> Result<()> {
        while !self.ended && self.buffer.len() - self.position < count {
            if self.position >= COMPACT_BYTES {
                self.buffer.drain(..self.position);
                self.position = 0;
            }
            let piece = (self.source)()?;
            self.ended = piece.is_empty();
            self.buffer.extend_from_slice(&piece);
        }
        Ok(())
    }

    fn peek(&mut self) -> Result<Option<u8>> {
        self.fill(1)?;
        Ok(self.buffer.get(self.position).copied())
    }

    fn next_byte(&mut self) -> Result<Option<u8>> {
        let byte = self.peek()?;
        self.position += usize::from(byte.is_some());
        Ok(byte)
    }

    /// Consumes `mark` if it is next.
    fn take(&mut self, mark: &[u8]) -> Result<bool> {
        if mark.is_empty() {
            return Ok(false);
        }
        self.fill(mark.len())?;
        let found = self.buffer[self.position..].starts_with(mark);
        self.position += if found { mark.len() } else { 0 };
        Ok(found)
    }

    /// Skips a line without looking at its fields; false at the end of the file.
    pub fn skip_line(&mut self) -> Result<bool> {
        let format = self.format.clone();
        loop {
            if self.take(&format.line_end)? {
                return Ok(true);
            }
            if self.next_byte()?.is_none() {
                return Ok(false);
            }
        }
    }

    /// Replaces `record` with the next one; false at the end of the file.
    pub fn record(&mut self, record: &mut Record) -> Result<bool> {
        record.bytes.clear();
        record.ends.clear();
        let format = self.format.clone();
        if !format.starting.is_empty() {
            while !self.take(&format.starting)? {
                if self.next_byte()?.is_none() {
                    return Ok(false);
                }
            }
        }
        if self.peek()?.is_none() {
            return Ok(false);
        }
        while self.field(record)? == End::Field {}
        Ok(true)
    }

    /// Consumes the end of a field, if it is next. The end of the file ends every field.
    fn end(&mut self) -> Result<Option<End>> {
        if let ([field], [line], Some(byte)) =
            (&*self.format.terminated, &*self.format.line_end, self.buffer.get(self.position))
        {
            let end = match byte {
                byte if byte == field => End::Field,
                byte if byte == line => End::Line,
                _ => return Ok(None),
            };
            self.position += 1;
            return Ok(Some(end));
        }
        // A line end may begin with a field end, or the reverse: the longer mark is tried first.
        let format = self.format.clone();
        let (line_end, terminated) = (&format.line_end, &format.terminated);
        let line_first = line_end.len() >= terminated.len() && line_end != terminated;
        if line_first && self.take(line_end)? {
            return Ok(Some(End::Line));
        }
        if self.take(terminated)? {
            return Ok(Some(End::Field));
        }
        if !line_first && self.take(line_end)? {
            return Ok(Some(End::Line));
        }
        Ok(self.peek()?.is_none().then_some(End::Line))
    }

    fn field(&mut self, record: &mut Record) -> Result<End> {
        if let Some(quote) = self.format.enclosed
            && self.take(&[quote])?
        {
            return self.enclosed_field(quote, record);
        }
        let mut is_null_mark = false;
        loop {
            if self.take_plain(&mut record.bytes) {
                continue;
            }
            if let Some(end) = self.end()? {
                let word = self.format.enclosed.is_some() || self.format.escaped.is_none();
                let field = record.current();
                let null = is_null_mark && field.len() == 1 || word && field == b"NULL";
                record.close(null);
                return Ok(end);
            }
            let Some(byte) = self.next_byte()? else { continue };
            if Some(byte) == self.format.escaped {
                let (escaped, null) = self.escaped(byte)?;
                is_null_mark = null && record.current().is_empty();
                record.bytes.push(escaped);
            } else {
                record.bytes.push(byte);
            }
        }
    }

    fn enclosed_field(&mut self, quote: u8, record: &mut Record) -> Result<End> {
        let mut is_null_mark = false;
        loop {
            if self.take_plain(&mut record.bytes) {
                continue;
            }
            let Some(byte) = self.next_byte()? else {
                record.close(false);
                return Ok(End::Line);
            };
            if byte == quote {
                // A doubled quote is one quote; before an end it closes the field; elsewhere it is a character.
                if self.take(&[quote])? {
                    record.bytes.push(quote);
                    continue;
                }
                if let Some(end) = self.end()? {
                    record.close(is_null_mark && record.current().len() == 1);
                    return Ok(end);
                }
                record.bytes.push(quote);
            } else if Some(byte) == self.format.escaped {
                let (escaped, null) = self.escaped(byte)?;
                is_null_mark = null && record.current().is_empty();
                record.bytes.push(escaped);
            } else {
                record.bytes.push(byte);
            }
        }
    }

    /// The byte that an escape sequence denotes, and whether it is the mark of NULL.
    fn escaped(&mut self, escape: u8) -> Result<(u8, bool)> {
        Ok(match self.next_byte()? {
            None => (escape, false),
            Some(b'n') => (b'\n', false),
            Some(b't') => (b'\t', false),
            Some(b'r') => (b'\r', false),
            Some(b'b') => (8, false),
            Some(b'0') => (0, false),
            Some(b'Z') => (26, false),
            Some(b'N') => (b'N', true),
            Some(other) => (other, false),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, format: &Format, piece: usize) -> Vec<Vec<Option<String>>> {
        let mut rest = text.as_bytes();
        let mut source = || {
            let (now, later) = rest.split_at(piece.min(rest.len()));
            rest = later;
            Ok(now.to_vec())
        };
        let mut reader = Reader::new(&mut source, format.clone());
        let mut records = Vec::new();
        let mut record = Record::default();
        while reader.record(&mut record).unwrap() {
            let text =
                |field: Field<'_>| field.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
            records.push(record.fields().map(text).collect());
        }
        records
    }

    fn some(fields: &[&str]) -> Vec<Option<String>> {
        fields.iter().map(|field| Some((*field).to_owned())).collect()
    }

    #[test]
    fn records_are_the_same_however_the_file_arrives() {
        let plain = Format::new(&Default::default());
        let csv = Format {
            terminated: b",".to_vec(),
            enclosed: Some(b'"'),
            optionally_enclosed: true,
            line_end: b"\r\n".to_vec(),
            ..plain.clone()
        };
        for piece in [1, 2, 3, 7, 1000] {
            let records = read("1\ta\\tb\t\\N\n2\t\\\\N\tx\\\ny", &plain, piece);
            assert_eq!(records[0], [Some("1".into()), Some("a\tb".into()), None]);
            assert_eq!(records[1], some(&["2", "\\N", "x\ny"]));
            let records = read("\"a\"\"b\",NULL,\"NULL\"\r\n\"x,\r\ny\",\"q\"z,\r\n", &csv, piece);
            assert_eq!(records[0], [Some("a\"b".into()), None, Some("NULL".into())]);
            assert_eq!(records[1][0], Some("x,\r\ny".into()));
            assert_eq!(records.len(), 2);
        }
    }
}
