//! Digest texts as `performance_schema` shows them: values as `?`, lists shortened, identifiers
//! quoted, words in upper case.

use crate::keywords::Kw;
use crate::lexer::{LexOptions, Lexer, Tok, unescape};
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
    let mut lexer = Lexer::new(sql, LexOptions::of(options));
    let mut pieces: Vec<Piece> = Vec::new();
    loop {
        let token = lexer.next_token();
        let raw = &sql[token.start as usize..token.end as usize];
        match token.kind {
            Tok::Eof | Tok::Semi | Tok::Bad => break,
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
            | Tok::Param => {
                push_value(&mut pieces);
            }
            Tok::Word if token.kw == Kw::NULL && !after_is(&pieces) => push_value(&mut pieces),
            Tok::Word if token.kw != Kw::NO_WORD => pieces.push(text(token.kw.name())),
            Tok::Word => pieces.push(Piece::Text(quote(&String::from_utf8_lossy(raw)))),
            Tok::Quoted => {
                let mut name = Vec::new();
                unescape(raw, true, &mut name);
                pieces.push(Piece::Text(quote(&String::from_utf8_lossy(&name))));
            }
            Tok::UserVar => {
                let name = String::from_utf8_lossy(&raw[1..]);
                let name = name.trim_matches(['`', '\'', '"']);
                pieces.push(Piece::Text(format!("@ {}", quote(name))));
            }
            Tok::RParen => close(&mut pieces),
            _ => pieces.push(Piece::Text(String::from_utf8_lossy(raw).into_owned())),
        }
    }
    join(&pieces)
}

fn text(word: &str) -> Piece {
    Piece::Text(word.to_owned())
}

fn quote(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// `IS NULL` and `NOT NULL` are no values.
fn after_is(pieces: &[Piece]) -> bool {
    matches!(pieces.last(), Some(Piece::Text(word)) if word == "IS" || word == "NOT")
}

fn push_value(pieces: &mut Vec<Piece>) {
    // A sign belongs to the value where no operand stands before it.
    while let [.., before, Piece::Text(sign)] = pieces.as_slice() {
        let operand = match before {
            Piece::Text(word) => word == ")" || word.starts_with('`') || word.starts_with('@'),
            _ => true,
        };
        if operand || (sign != "-" && sign != "+") {
            break;
        }
        pieces.pop();
    }
    if let [.., Piece::Value | Piece::Values, Piece::Text(comma)] = pieces.as_slice()
        && comma == ","
    {
        pieces.pop();
        pieces.pop();
        pieces.push(Piece::Values);
        return;
    }
    pieces.push(Piece::Value);
}

/// At `)`: lists of values become rows, rows of rows one row.
fn close(pieces: &mut Vec<Piece>) {
    let row = match pieces.as_slice() {
        [.., Piece::Text(open), Piece::Value] if open == "(" => Piece::RowOfOne(false),
        [.., Piece::Text(open), Piece::Values] if open == "(" => Piece::Row(false),
        _ => {
            pieces.push(text(")"));
            return;
        }
    };
    pieces.truncate(pieces.len() - 2);
    let in_list = matches!(pieces.last(), Some(Piece::Text(word)) if word == "IN");
    if in_list {
        pieces.push(Piece::Row(false));
        return;
    }
    if let [.., last, Piece::Text(comma)] = pieces.as_slice()
        && comma == ","
    {
        let merged = match (last, &row) {
            (Piece::RowOfOne(_), Piece::RowOfOne(_)) => Some(Piece::RowOfOne(true)),
            (Piece::Row(_), Piece::Row(_)) => Some(Piece::Row(true)),
            _ => None,
        };
        if let Some(merged) = merged {
            pieces.truncate(pieces.len() - 2);
            pieces.push(merged);
            return;
        }
    }
    pieces.push(row);
}

fn join(pieces: &[Piece]) -> String {
    let mut out = String::new();
    for piece in pieces {
        let glued = out.ends_with("@@");
        if !out.is_empty() && !glued {
            out.push(' ');
        }
        out.push_str(match piece {
            Piece::Text(word) => word,
            Piece::Value => "?",
            Piece::Values => "...",
            Piece::RowOfOne(false) => "(?)",
            Piece::RowOfOne(true) => "(?) /* , ... */",
            Piece::Row(false) => "(...)",
            Piece::Row(true) => "(...) /* , ... */",
        });
    }
    out
}
