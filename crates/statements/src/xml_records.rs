//! Reads the rows of an XML file for LOAD XML: a row is a tag, its values are attributes and tags within it, and those of the tags
//! around it. Reads what is not well formed too, as the reference does; keeps one row in memory.

use errors::{Error, Result};

use crate::file_records::{Record, Source};

/// Bytes of names and values that are kept at once.
const KEPT_MAX: usize = 1 << 30;
/// Bytes of a file that were read are dropped from the buffer when there are this many.
const COMPACT_BYTES: usize = 1 << 16;

/// A value with its name, and the number of tags that are open around it: it is gone when they are fewer.
struct Named {
    name: Vec<u8>,
    value: Vec<u8>,
    level: usize,
}

/// Reads rows.
pub struct XmlReader<'a> {
    source: Source<'a>,
    buffer: Vec<u8>,
    position: usize,
    ended: bool,
    /// The name of the tag that is a row.
    row: Vec<u8>,
    /// The names whose values make a record.
    names: Vec<Vec<u8>>,
    values: Vec<Named>,
    kept: usize,
    /// Number of open tags.
    level: usize,
}

/// The tag whose attribute `name` names its text.
const VALUE_TAG: &str = "<field>";

/// The name in a tag with its brackets.
fn tag_name(tag: &str) -> Option<&[u8]> {
    Some(tag.strip_prefix('<')?.strip_suffix('>')?.as_bytes())
}

/// How a tag ended.
enum TagEnd {
    /// `>`.
    Open,
    /// `/>`.
    Closed,
}

fn is_name_end(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/' | b'=')
}

impl<'a> XmlReader<'a> {
    /// Reads the rows with this tag (`<row>` when none is given) from a source.
    pub fn new(source: Source<'a>, tag: Option<&str>, names: Vec<Vec<u8>>) -> XmlReader<'a> {
        let tag = tag.unwrap_or("<row>");
        XmlReader {
            source,
            buffer: Vec::new(),
            position: 0,
            ended: false,
            // A tag without its brackets is the name of none.
            row: tag_name(tag).unwrap_or_default().to_vec(),
            names,
            values: Vec::new(),
            kept: 0,
            level: 0,
        }
    }

    /// Replaces `record` with the next row; false at the end of the file.
    ///
    /// # Errors
    /// Those of the source; 1235 for a row that is too large.
    pub fn record(&mut self, record: &mut Record) -> Result<bool> {
        // The name and the text of the tag that was opened last, until another one follows.
        let mut leaf: Option<(Vec<u8>, Vec<u8>)> = None;
        while let Some(byte) = self.next()? {
            if byte != b'<' {
                if let Some((_, text)) = &mut leaf {
                    self.keep(1)?;
                    text.push(byte);
                }
                continue;
            }
            if self.take(b"!--")? {
                self.skip_to(b"-->", None)?;
            } else if self.take(b"![CDATA[")? {
                let text = leaf.as_mut().map(|(_, text)| text);
                self.skip_to(b"]]>", text)?;
            } else if self.take(b"!")? || self.take(b"?")? {
                self.skip_to(b">", None)?;
            } else if self.take(b"/")? {
                if self.close_tag(leaf.take(), record)? {
                    return Ok(true);
                }
            } else {
                let (name, field, end) = self.open_tag()?;
                match end {
                    TagEnd::Open => leaf = Some((field.unwrap_or(name), Vec::new())),
                    TagEnd::Closed => {
                        leaf = None;
                        let is_row = name == self.row;
                        if is_row {
                            self.fill_record(record);
                        }
                        self.leave();
                        if is_row {
                            return Ok(true);
                        }
                    }
                }
            }
        }
        Ok(false)
    }

    /// Reads the end of a closing tag. Returns whether it ends a row, which is then in `record`.
    fn close_tag(&mut self, leaf: Option<(Vec<u8>, Vec<u8>)>, record: &mut Record) -> Result<bool> {
        let mut name = Vec::new();
        while let Some(byte) = self.next()?.filter(|byte| *byte != b'>') {
            self.keep(1)?;
            name.push(byte);
        }
        let is_row = name.trim_ascii() == self.row;
        if is_row {
            self.fill_record(record);
        }
        self.leave();
        if let Some((name, text)) = leaf.filter(|(_, text)| !text.is_empty() && !is_row) {
            self.add(name, unescaped(&text));
        }
        Ok(is_row)
    }

    /// Reads a tag after its `<`: its name, the name in the attribute `name` of a tag `field`, and how it ends.
    fn open_tag(&mut self) -> Result<(Vec<u8>, Option<Vec<u8>>, TagEnd)> {
        let name = self.word()?;
        self.level = self.level.saturating_add(1);
        let mut field = None;
        loop {
            match self.peek()? {
                None => return Ok((name, field, TagEnd::Open)),
                Some(b'>') => {
                    self.position += 1;
                    return Ok((name, field, TagEnd::Open));
                }
                Some(b'/') => {
                    self.position += 1;
                    if self.take(b">")? {
                        return Ok((name, field, TagEnd::Closed));
                    }
                }
                Some(byte) if byte.is_ascii_whitespace() || byte == b'=' => self.position += 1,
                Some(_) => {
                    let attribute = self.word()?;
                    let value = self.attribute_value()?;
                    if tag_name(VALUE_TAG).is_some_and(|tag| tag == name) && attribute == b"name" {
                        field = Some(value);
                    } else {
                        self.add(attribute, value);
                    }
                }
            }
        }
    }

    /// The value after the name of an attribute; empty without one.
    fn attribute_value(&mut self) -> Result<Vec<u8>> {
        self.skip_blanks()?;
        if !self.take(b"=")? {
            return Ok(Vec::new());
        }
        self.skip_blanks()?;
        let quote = self.peek()?.filter(|byte| matches!(byte, b'"' | b'\''));
        let Some(quote) = quote else { return Ok(unescaped(&self.word()?)) };
        self.position += 1;
        let mut value = Vec::new();
        self.skip_to(&[quote], Some(&mut value))?;
        Ok(unescaped(&value))
    }

    fn word(&mut self) -> Result<Vec<u8>> {
        let mut word = Vec::new();
        while let Some(byte) = self.peek()?.filter(|byte| !is_name_end(*byte)) {
            self.keep(1)?;
            word.push(byte);
            self.position += 1;
        }
        Ok(word)
    }

    fn skip_blanks(&mut self) -> Result<()> {
        while self.peek()?.is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.position += 1;
        }
        Ok(())
    }

    // --- values

    fn keep(&mut self, bytes: usize) -> Result<()> {
        self.kept = self.kept.saturating_add(bytes);
        match self.kept > KEPT_MAX {
            true => Err(Error::not_supported("LOAD XML of a row larger than 1 GiB")),
            false => Ok(()),
        }
    }

    fn add(&mut self, name: Vec<u8>, value: Vec<u8>) {
        self.values.push(Named { name, value, level: self.level });
    }

    /// The innermost tag is over, and with it what it holds.
    fn leave(&mut self) {
        let level = self.level;
        self.values.retain(|named| named.level < level);
        self.level = level.saturating_sub(1);
        let size = |named: &Named| named.name.len() + named.value.len();
        self.kept = self.values.iter().map(size).sum();
    }

    fn fill_record(&self, record: &mut Record) {
        record.clear();
        for name in &self.names {
            // The innermost value counts.
            let found = self.values.iter().rev().find(|named| named.name == *name);
            record.push(found.map(|named| named.value.as_slice()));
        }
    }

    // --- bytes

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
        if self.position == self.buffer.len() {
            self.fill(1)?;
        }
        Ok(self.buffer.get(self.position).copied())
    }

    fn next(&mut self) -> Result<Option<u8>> {
        let byte = self.peek()?;
        self.position += usize::from(byte.is_some());
        Ok(byte)
    }

    /// Consumes `mark` if it is next.
    fn take(&mut self, mark: &[u8]) -> Result<bool> {
        self.fill(mark.len())?;
        let rest = self.buffer.get(self.position..).unwrap_or_default();
        let found = rest.starts_with(mark);
        self.position += if found { mark.len() } else { 0 };
        Ok(found)
    }

    /// Moves behind `mark`, or to the end of the file; what lies before it goes to `kept`.
    fn skip_to(&mut self, mark: &[u8], mut kept: Option<&mut Vec<u8>>) -> Result<()> {
        while !self.take(mark)? {
            let Some(byte) = self.next()? else { return Ok(()) };
            if let Some(kept) = &mut kept {
                self.keep(1)?;
                kept.push(byte);
            }
        }
        Ok(())
    }
}

/// A text with the five entities of XML replaced; any other stays as it is.
fn unescaped(text: &[u8]) -> Vec<u8> {
    const ENTITIES: [(&[u8], u8); 5] =
        [(b"&lt;", b'<'), (b"&gt;", b'>'), (b"&amp;", b'&'), (b"&quot;", b'"'), (b"&apos;", b'\'')];
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        match ENTITIES.iter().find(|(entity, _)| rest.starts_with(entity)) {
            Some((entity, byte)) => {
                out.push(*byte);
                rest = rest.get(entity.len()..).unwrap_or_default();
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, tag: Option<&str>, piece: usize) -> Vec<Vec<Option<String>>> {
        let mut pieces = text.as_bytes().chunks(piece);
        let mut source = move || Ok(pieces.next().map(<[u8]>::to_vec).unwrap_or_default());
        let names = vec![b"a".to_vec(), b"b".to_vec()];
        let mut reader = XmlReader::new(&mut source, tag, names);
        let (mut rows, mut record) = (Vec::new(), Record::default());
        while reader.record(&mut record).unwrap() {
            let text =
                |field: Option<&[u8]>| field.map(|f| String::from_utf8_lossy(f).into_owned());
            rows.push(record.fields().map(text).collect());
        }
        rows
    }

    fn row(a: Option<&str>, b: Option<&str>) -> Vec<Option<String>> {
        vec![a.map(str::to_owned), b.map(str::to_owned)]
    }

    #[test]
    fn values_are_attributes_tags_and_fields() {
        let text = "<?xml version='1.0'?><l><row a=\"1\" b=\"x&lt;y&#65;\"/><row><a>2</a><b/></row>\
                    <row><field name=\"a\">3</field><field name='b'>t</field></row><row a=4>x<c>9</c></row>\
                    <row><A>5</A><b><![CDATA[<cd>]]></b></row><row><!-- <a>no</a> --><b>y</b></row></l>";
        for piece in [1, 3, 1000] {
            let expected = vec![
                row(Some("1"), Some("x<y&#65;")),
                row(Some("2"), None),
                row(Some("3"), Some("t")),
                row(Some("4"), None),
                row(None, Some("<cd>")),
                row(None, Some("y")),
            ];
            assert_eq!(rows(text, None, piece), expected, "pieces of {piece}");
        }
    }

    #[test]
    fn tags_around_a_row_give_values_to_it() {
        let text = "<l a='9'><g b='o'><r/><r><b>own</b></r></g><r><a>1</a></r><s/></l>";
        let expected =
            vec![row(Some("9"), Some("o")), row(Some("9"), Some("own")), row(Some("1"), None)];
        assert_eq!(rows(text, Some("<r>"), 7), expected);
        assert_eq!(rows(text, Some("r"), 7), Vec::<Vec<Option<String>>>::new());
    }

    #[test]
    fn a_file_that_ends_early_has_the_rows_before() {
        for text in [
            "<row a='1'/><row a='2'",
            "<row a='1'/><!-- ",
            "<row a='1'/></",
            "<row a='1'/><row><a>",
        ] {
            assert_eq!(rows(text, None, 5), vec![row(Some("1"), None)], "{text}");
        }
    }
}
