//! Reads XML as the reference does: no entities, no declarations, names that only have to end as they begin in length. No library
//! reads that: they refuse what is not well formed, and the reference's own texts of warning 1525 name its tokens.

use std::ops::Range;

/// Elements and attributes within each other: what bounds the recursion of whoever walks the tree.
const DEPTH_MAX: usize = 254;
/// Bytes of a name that a message repeats.
const NAME_SHOWN_MAX: usize = 31;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// The whole text.
    Root,
    /// `<name ..>`, also of instructions and declarations.
    Element,
    /// `name="value"`, whose text is the child.
    Attribute,
    /// A text between tags, or a value.
    Text,
}

/// A part of the text. Positions are bytes; 32 bits keep a node small, since there may be one for every four bytes.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    /// The position of the parent among the nodes; that of the root is its own.
    pub(super) parent: u32,
    /// The position after its last descendant.
    pub(super) end: u32,
    /// Its name, or its text.
    content: (u32, u32),
    /// What UPDATEXML replaces.
    span: (u32, u32),
}

/// A text and its nodes in the order in which they begin.
pub(super) struct Document<'a> {
    pub(super) text: &'a [u8],
    pub(super) nodes: Vec<Node>,
}

impl<'a> Document<'a> {
    /// The name of an element or attribute, the text of a text.
    pub(super) fn content(&self, node: &Node) -> &'a [u8] {
        self.text.get(node.content.0 as usize..node.content.1 as usize).unwrap_or_default()
    }

    /// The bytes that a replacement takes the place of.
    pub(super) fn span(&self, node: &Node) -> Range<usize> {
        // A tag may end with blanks before its `>`: one of them counts as the `>`.
        node.span.0 as usize..(node.span.1 as usize).min(self.text.len())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    End,
    Less,
    Greater,
    Slash,
    Equal,
    Question,
    Exclamation,
    Ident,
    Text,
    Comment,
    Data,
    Unknown,
}

impl Token {
    fn shown(self) -> &'static str {
        match self {
            Token::End => "END-OF-INPUT",
            Token::Less => "'<'",
            Token::Greater => "'>'",
            Token::Slash => "'/'",
            Token::Equal => "'='",
            Token::Question => "'?'",
            Token::Exclamation => "'!'",
            Token::Ident => "IDENT",
            Token::Text => "STRING",
            Token::Comment => "COMMENT",
            Token::Data => "CDATA",
            Token::Unknown => "unknown token",
        }
    }
}

/// Reads a text.
///
/// # Errors
/// What warning 1525 says of a text that cannot be read.
pub(super) fn read(text: &[u8]) -> Result<Document<'_>, String> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let root = Node { kind: NodeKind::Root, parent: 0, end: 1, content: (0, 0), span: (0, length) };
    let mut reader = Reader { text, at: 0, nodes: vec![root], open: Vec::new() };
    match reader.run() {
        Ok(()) => {
            let count = reader.nodes.len() as u32;
            if let Some(root) = reader.nodes.first_mut() {
                root.end = count;
            }
            Ok(Document { text, nodes: reader.nodes })
        }
        Err(what) => Err(reader.place(&what)),
    }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    /// Positions of the elements that are not closed yet.
    open: Vec<u32>,
}

type Read<T> = Result<T, String>;

fn unexpected(token: Token, wanted: &str) -> String {
    format!("{} unexpected ({wanted} wanted)", token.shown())
}

fn is_ident_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':') || byte >= 0x80
}

fn is_ident(byte: u8) -> bool {
    is_ident_start(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.')
}

impl Reader<'_> {
    fn run(&mut self) -> Read<()> {
        while let Some(&byte) = self.text.get(self.at) {
            if byte != b'<' {
                let rest = &self.text[self.at..];
                let length = rest.iter().position(|byte| *byte == b'<').unwrap_or(rest.len());
                self.add_text(self.at..self.at + length);
                self.at += length;
                continue;
            }
            let (token, span) = self.token();
            if token == Token::Data {
                self.add_text(span);
            } else if token != Token::Comment {
                // A comment that does not end begins no tag.
                self.tag()?;
            }
        }
        match self.open.is_empty() {
            true => Ok(()),
            false => Err("unexpected END-OF-INPUT".into()),
        }
    }

    /// What follows the `<` of a tag.
    fn tag(&mut self) -> Read<()> {
        let (mut token, mut span) = self.token();
        if token == Token::Slash {
            return self.closing_tag();
        }
        let (is_declaration, is_instruction) =
            (token == Token::Exclamation, token == Token::Question);
        if is_declaration || is_instruction {
            (token, span) = self.token();
        }
        if token != Token::Ident {
            return Err(unexpected(token, "ident or '/'"));
        }
        self.enter(NodeKind::Element, span)?;
        (token, span) = self.token();
        while token == Token::Ident || (is_declaration && token == Token::Text) {
            (token, span) = self.attribute(span)?;
        }
        if token == Token::Slash {
            self.leave(None)?;
            (token, _) = self.token();
        }
        if is_instruction {
            if token != Token::Question {
                return Err(unexpected(token, "'?'"));
            }
            self.leave(None)?;
            (token, _) = self.token();
        }
        if is_declaration && token == Token::Greater {
            // The declaration ends with the sign that was read.
            self.at -= 1;
            self.leave(None)?;
            self.at += 1;
        }
        match token {
            Token::Greater => Ok(()),
            token => Err(unexpected(token, "'>'")),
        }
    }

    fn closing_tag(&mut self) -> Read<()> {
        let (token, span) = self.token();
        if token != Token::Ident {
            return Err(unexpected(token, "ident"));
        }
        self.leave(Some(span))?;
        match self.token().0 {
            Token::Greater => Ok(()),
            token => Err(unexpected(token, "'>'")),
        }
    }

    /// An attribute whose name is read; returns the token after it. Of two words without a value the first is an attribute and the
    /// second its end; one alone is none.
    fn attribute(&mut self, name: Range<usize>) -> Read<(Token, Range<usize>)> {
        let start = name.start;
        let (token, _) = self.token();
        if token == Token::Equal {
            self.enter(NodeKind::Attribute, name)?;
            let (token, value) = self.token();
            if !matches!(token, Token::Ident | Token::Text) {
                return Err(unexpected(token, "ident or string"));
            }
            self.add_text(value);
        } else if token == Token::Ident {
            self.enter(NodeKind::Attribute, name)?;
        } else {
            return Ok((token, start..self.at));
        }
        self.close_attribute(start, self.at);
        Ok(self.token())
    }

    fn close_attribute(&mut self, start: usize, end: usize) {
        let count = self.nodes.len() as u32;
        if let Some(node) = self.open.pop().and_then(|at| self.nodes.get_mut(at as usize)) {
            node.span = (start as u32, end as u32);
            node.end = count;
        }
    }

    fn add(&mut self, kind: NodeKind, content: Range<usize>) -> u32 {
        let at = self.nodes.len() as u32;
        let parent = self.open.last().copied().unwrap_or(0);
        let content = (content.start as u32, content.end as u32);
        self.nodes.push(Node { kind, parent, end: at + 1, content, span: content });
        at
    }

    fn add_text(&mut self, span: Range<usize>) {
        if !span.is_empty() {
            self.add(NodeKind::Text, span);
        }
    }

    fn enter(&mut self, kind: NodeKind, name: Range<usize>) -> Read<()> {
        if self.open.len() >= DEPTH_MAX {
            return Err(String::new());
        }
        let start = name.start;
        let at = self.add(kind, name);
        if let Some(node) = self.nodes.get_mut(at as usize) {
            // The sign before the name belongs to the element.
            node.span.0 = start.saturating_sub(1) as u32;
        }
        self.open.push(at);
        Ok(())
    }

    /// Ends the innermost element; a closing tag has its name.
    fn leave(&mut self, name: Option<Range<usize>>) -> Read<()> {
        let found = self.open.last().and_then(|at| self.nodes.get(*at as usize)).cloned();
        let shown = |span: Range<usize>| {
            let end = span.end.min(span.start + NAME_SHOWN_MAX);
            String::from_utf8_lossy(self.text.get(span.start..end).unwrap_or_default()).into_owned()
        };
        let Some(node) = found else {
            let name = name.map(shown).unwrap_or_default();
            return Err(format!("'</{name}>' unexpected (END-OF-INPUT wanted)"));
        };
        let (start, end) = (node.content.0 as usize, node.content.1 as usize);
        if let Some(name) = name
            && name.len() != end - start
        {
            // Of the outermost name the reference does not show the first byte.
            let outermost = usize::from(self.open.len() == 1);
            let (is, wanted) = (shown(name), shown(start + outermost..end));
            return Err(format!("'</{is}>' unexpected ('</{wanted}>' wanted)"));
        }
        let count = self.nodes.len() as u32;
        let end = (self.at + 1) as u32;
        if let Some(node) = self.open.pop().and_then(|at| self.nodes.get_mut(at as usize)) {
            node.span.1 = end;
            node.end = count;
        }
        Ok(())
    }

    /// The next token, and its bytes without quotes and signs.
    fn token(&mut self) -> (Token, Range<usize>) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.at += blanks;
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or_default();
        let Some(&first) = rest.first() else { return (Token::End, start..start) };
        if rest.starts_with(b"<!--") {
            let (end, _) = self.until(start + 4, b"-->", 2);
            return (Token::Comment, start..end);
        }
        if rest.starts_with(b"<![CDATA[") {
            let (end, closed) = self.until(start + 9, b"]]>", 0);
            return (Token::Data, start + 9..if closed { end - 3 } else { end });
        }
        if is_ident_start(first) {
            let length = rest.iter().take_while(|byte| is_ident(**byte)).count();
            self.at += length;
            return (Token::Ident, start..self.at);
        }
        if matches!(first, b'"' | b'\'') {
            let inner = start + 1;
            let length = rest[1..].iter().position(|byte| *byte == first);
            let end = length.map_or(self.text.len(), |length| inner + length);
            self.at = (end + 1).min(self.text.len());
            return (Token::Text, inner..end);
        }
        let token = match first {
            b'<' => Token::Less,
            b'>' => Token::Greater,
            b'/' => Token::Slash,
            b'=' => Token::Equal,
            b'?' => Token::Question,
            b'!' => Token::Exclamation,
            // It is not consumed: the message names its place.
            _ => return (Token::Unknown, start..start),
        };
        self.at += 1;
        (token, start..self.at)
    }

    /// Moves behind `mark` at or after `from`, or to the end. The first `overlap` bytes of the mark may lie before `from`.
    fn until(&mut self, from: usize, mark: &[u8], overlap: usize) -> (usize, bool) {
        let from = from - overlap;
        let rest = self.text.get(from..).unwrap_or_default();
        let found = memchr::memmem::find(rest, mark);
        self.at = found.map_or(self.text.len(), |at| from + at + mark.len());
        (self.at, found.is_some())
    }

    /// A message with the line and the position in it.
    fn place(&self, what: &str) -> String {
        let read = self.text.get(..self.at).unwrap_or_default();
        let line = read.iter().filter(|byte| **byte == b'\n').count();
        // The end of the line before counts as the first position.
        let start = read.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        format!("parse error at line {} pos {}: {what}", line + 1, self.at - start + 1)
    }
}
