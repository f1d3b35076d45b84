//! Digest texts as `performance_schema` shows them: values as `?`, lists shortened, identifiers
//! quoted, words in upper case and under one of their synonyms.

use crate::keywords::Kw;
use crate::lexer::{LexOptions, Lexer, Tok, Token, unescape};
use crate::options::ParseOptions;

/// A piece of a digest text.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    /// `?`
    Value,
    /// `?, ...`
    Values,
    /// `(?)`, with the flag: more than one row
    RowOfOne(bool),
    /// `(...)`, with the flag: more than one row
    Row(bool),
}

/// The digest text of the first statement of `sql`.
pub fn digest_text(sql: &[u8], options: &ParseOptions<'_>) -> String {
    let mut writer =
        Writer { sql, pieces: Vec::new(), depth: 0, ordinals_at: None, first: Kw::NO_WORD };
    writer.run(LexOptions::of(options));
    join(&writer.pieces)
}

struct Writer<'s> {
    sql: &'s [u8],
    pieces: Vec<Piece>,
    /// Open parentheses.
    depth: u32,
    /// In ORDER BY or GROUP BY, where a number alone is a column: how deep that clause is.
    ordinals_at: Option<u32>,
    /// The first word.
    first: Kw,
}

impl Writer<'_> {
    fn run(&mut self, options: LexOptions) {
        let mut lexer = Lexer::new(self.sql, options);
        let mut token = lexer.next_token();
        let (mut prev, mut before) = (Kw::NO_WORD, Tok::Semi);
        self.first = token.kw;
        let defines = matches!(token.kw, Kw::CREATE | Kw::ALTER);
        let mut program = false;
        while !matches!(token.kind, Tok::Eof | Tok::Bad) {
            if token.kind == Tok::Semi && !program {
                return;
            }
            program |= defines
                && matches!(token.kw, Kw::PROCEDURE | Kw::FUNCTION | Kw::TRIGGER | Kw::EVENT);
            let next = lexer.next_token();
            if token.kw == Kw::BY && matches!(prev, Kw::ORDER | Kw::GROUP) {
                self.ordinals_at = Some(self.depth);
            } else if matches!(token.kw, Kw::LIMIT | Kw::HAVING | Kw::WINDOW | Kw::SELECT) {
                self.ordinals_at = None;
            }
            let ordinal = token.kind == Tok::Int
                && self.ordinals_at == Some(self.depth)
                && (prev == Kw::BY || before == Tok::Comma)
                && ends_item(next);
            self.token(token, ordinal, options);
            (prev, before) = (token.kw, token.kind);
            token = next;
        }
    }

    fn push(&mut self, text: impl Into<String>) {
        self.pieces.push(Piece::Text(text.into()));
    }

    fn token(&mut self, token: Token, ordinal: bool, options: LexOptions) {
        let raw = &self.sql[token.start as usize..token.end as usize];
        match token.kind {
            Tok::Int if ordinal => self.push(String::from_utf8_lossy(raw)),
            Tok::Int
            | Tok::Decimal
            | Tok::Float
            | Tok::Str
            | Tok::NationalStr
            | Tok::DollarStr
            | Tok::HexNum
            | Tok::HexStr
            | Tok::BitNum
            | Tok::BitStr
            | Tok::Param => self.value(),
            Tok::Word if token.kw == Kw::NULL && !self.after_is() => self.value(),
            Tok::Word if token.kw != Kw::NO_WORD && !token.kw.is_extension() => {
                self.push(main_word(token.kw));
            }
            Tok::NotEq => self.push("!="),
            Tok::Word if raw[0] == b'_' && crate::parser::is_charset(&raw[1..]) => {
                self.push("(_charset)");
            }
            Tok::Word => self.push(quote(&String::from_utf8_lossy(raw))),
            Tok::Quoted => {
                let mut name = Vec::new();
                unescape(raw, true, &mut name);
                self.push(quote(&String::from_utf8_lossy(&name)));
            }
            Tok::UserVar => {
                self.push("@");
                match raw {
                    [_, b'`', name @ .., b'`'] => self.push(quote(&String::from_utf8_lossy(name))),
                    _ => self.pieces.push(Piece::Value),
                }
            }
            Tok::Hint => self.hint(&raw[3..raw.len() - 2], options),
            Tok::LParen => {
                self.depth += 1;
                self.push("(");
            }
            Tok::RParen => {
                self.depth = self.depth.saturating_sub(1);
                if self.ordinals_at.is_some_and(|at| at > self.depth) {
                    self.ordinals_at = None;
                }
                self.close();
            }
            _ => self.push(String::from_utf8_lossy(raw)),
        }
    }

    /// `IS NULL`, `NOT NULL` and NULL in definitions are not values.
    fn after_is(&self) -> bool {
        matches!(self.first, Kw::CREATE | Kw::ALTER)
            || matches!(self.pieces.last(), Some(Piece::Text(word)) if word == "IS" || word == "NOT")
    }

    fn value(&mut self) {
        // A sign belongs to the value unless an operand precedes it.
        while let [.., before, Piece::Text(sign)] = self.pieces.as_slice() {
            let operand = match before {
                Piece::Text(word) => word == ")" || word.starts_with('`'),
                _ => true,
            };
            if operand || (sign != "-" && sign != "+") {
                break;
            }
            self.pieces.pop();
        }
        if let [.., Piece::Value | Piece::Values, Piece::Text(comma)] = self.pieces.as_slice()
            && comma == ","
        {
            self.pieces.truncate(self.pieces.len() - 2);
            self.pieces.push(Piece::Values);
            return;
        }
        self.pieces.push(Piece::Value);
    }

    /// At `)`: lists of values become rows, rows of rows one row.
    fn close(&mut self) {
        let row = match self.pieces.as_slice() {
            [.., Piece::Text(open), Piece::Value] if open == "(" => Piece::RowOfOne(false),
            [.., Piece::Text(open), Piece::Values] if open == "(" => Piece::Row(false),
            _ => return self.push(")"),
        };
        self.pieces.truncate(self.pieces.len() - 2);
        if matches!(self.pieces.last(), Some(Piece::Text(word)) if word == "IN") {
            self.pieces.push(Piece::Row(false));
            return;
        }
        if let [.., last, Piece::Text(comma)] = self.pieces.as_slice() {
            let merged = match (last, &row) {
                (Piece::RowOfOne(_), Piece::RowOfOne(_)) => Some(Piece::RowOfOne(true)),
                (Piece::Row(_), Piece::Row(_)) => Some(Piece::Row(true)),
                _ => None,
            };
            if let (Some(merged), ",") = (merged, comma.as_str()) {
                self.pieces.truncate(self.pieces.len() - 2);
                self.pieces.push(merged);
                return;
            }
        }
        self.pieces.push(row);
    }

    fn hint(&mut self, text: &[u8], options: LexOptions) {
        self.push("/*+");
        let mut lexer = Lexer::new(text, options);
        let mut token = lexer.next_token();
        while !matches!(token.kind, Tok::Eof | Tok::Bad) {
            let next = lexer.next_token();
            let raw = String::from_utf8_lossy(&text[token.start as usize..token.end as usize]);
            match token.kind {
                Tok::Word if next.kind == Tok::LParen => self.push(raw.to_ascii_uppercase()),
                Tok::Word => self.push(quote(&raw)),
                Tok::Int | Tok::Decimal | Tok::Float | Tok::Str => self.push("?"),
                _ => self.push(raw),
            }
            token = next;
        }
        self.push("*/");
    }
}

/// Whether `token` may follow a whole item of ORDER BY or GROUP BY.
fn ends_item(token: Token) -> bool {
    match token.kind {
        Tok::Comma | Tok::Eof | Tok::Semi | Tok::RParen => true,
        Tok::Word => matches!(
            token.kw,
            Kw::ASC
                | Kw::DESC
                | Kw::LIMIT
                | Kw::HAVING
                | Kw::WITH
                | Kw::ORDER
                | Kw::WINDOW
                | Kw::FOR
                | Kw::LOCK
                | Kw::INTO
                | Kw::UNION
                | Kw::EXCEPT
                | Kw::INTERSECT
        ),
        _ => false,
    }
}

fn quote(name: &str) -> String {
    format!("`{name}`")
}

/// The synonym under which the reference shows a word.
fn main_word(kw: Kw) -> &'static str {
    match kw {
        Kw::DATABASE => "SCHEMA",
        Kw::DATABASES => "SCHEMAS",
        Kw::USER | Kw::SESSION_USER => "SYSTEM_USER",
        Kw::DISTINCT => "DISTINCTROW",
        Kw::COLUMNS => "FIELDS",
        Kw::DESCRIBE => "EXPLAIN",
        Kw::NDB => "NDBCLUSTER",
        Kw::CURRENT_TIMESTAMP | Kw::LOCALTIME | Kw::LOCALTIMESTAMP => "NOW",
        Kw::CURRENT_DATE => "CURDATE",
        Kw::CURRENT_TIME => "CURTIME",
        Kw::REGEXP => "RLIKE",
        Kw::ANY => "SOME",
        Kw::INT | Kw::INT4 => "INTEGER",
        Kw::INT1 => "TINYINT",
        Kw::INT2 => "SMALLINT",
        Kw::INT3 | Kw::MEDIUMINT => "MIDDLEINT",
        Kw::BIGINT => "INT8",
        Kw::DEC => "DECIMAL",
        Kw::FLOAT => "FLOAT4",
        Kw::DOUBLE => "FLOAT8",
        Kw::CHAR => "CHARACTER",
        Kw::VARCHAR => "VARCHARACTER",
        Kw::GEOMCOLLECTION => "GEOMETRYCOLLECTION",
        Kw::SUBSTR | Kw::MID => "SUBSTRING",
        Kw::STD | Kw::STDDEV => "STDDEV_POP",
        Kw::VARIANCE => "VAR_POP",
        Kw::SECOND => "SQL_TSI_SECOND",
        Kw::MINUTE => "SQL_TSI_MINUTE",
        Kw::HOUR => "SQL_TSI_HOUR",
        Kw::DAY => "SQL_TSI_DAY",
        Kw::MONTH => "SQL_TSI_MONTH",
        Kw::QUARTER => "SQL_TSI_QUARTER",
        Kw::SQL_TSI_WEEK => "WEEK",
        Kw::SQL_TSI_YEAR => "YEAR",
        Kw::IO_THREAD => "RELAY_THREAD",
        other => other.name(),
    }
}

fn join(pieces: &[Piece]) -> String {
    let mut out = String::new();
    for piece in pieces {
        let glued = out.ends_with('@');
        if !out.is_empty() && !glued {
            out.push(' ');
        }
        out.push_str(match piece {
            Piece::Text(word) => word,
            Piece::Value => "?",
            Piece::Values => "?, ...",
            Piece::RowOfOne(false) => "(?)",
            Piece::RowOfOne(true) => "(?) /* , ... */",
            Piece::Row(false) => "(...)",
            Piece::Row(true) => "(...) /* , ... */",
        });
    }
    out
}
