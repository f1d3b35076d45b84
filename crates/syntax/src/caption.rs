//! The name of a result column that has no alias.

use crate::ast::{Expr, ExprKind, Literal, Span};
use crate::lexer::{LexOptions, Lexer, Tok, is_blank, unescape};
use crate::options::ParseOptions;

/// The name of the result column of `expr`, which is at `span` of `source`: the name of its column, the value of the first
/// string of its string literal, or else its text, where comments for this version count as plain text and those for later
/// ones are removed.
pub fn caption(expr: &Expr, span: Span, source: &[u8], options: &ParseOptions<'_>) -> String {
    match &expr.kind {
        ExprKind::Column(column) => column.name.text.as_ref().to_owned(),
        ExprKind::Literal(Literal::String(_)) => {
            let mut lexer = Lexer::new(expr.span.of(source), LexOptions::of(options));
            let mut token = lexer.next_token();
            while !matches!(token.kind, Tok::Str | Tok::NationalStr | Tok::Eof) {
                token = lexer.next_token();
            }
            let quoted = &expr.span.of(source)[token.start as usize..token.end as usize];
            let skip = usize::from(token.kind == Tok::NationalStr);
            let mut out = Vec::new();
            unescape(&quoted[skip..], options.no_backslash_escapes, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        }
        _ => {
            let text = trim(span.of(source));
            match memchr::memmem::find(text, VERSION_MARK) {
                None => String::from_utf8_lossy(text).into_owned(),
                Some(_) => {
                    let text = without_version_marks(text, options);
                    String::from_utf8_lossy(trim(&text)).into_owned()
                }
            }
        }
    }
}

const VERSION_MARK: &[u8] = b"/*!";

/// Marks occur between tokens only: similar characters in a string belong to the string.
fn without_version_marks(text: &[u8], options: &ParseOptions<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut lexer = Lexer::new(text, LexOptions::of(options));
    let mut at = 0;
    loop {
        let token = lexer.next_token();
        let is_end = matches!(token.kind, Tok::Eof | Tok::Bad);
        let start = if is_end { text.len() } else { token.start as usize };
        put_gap(&text[at..start], options.server_version, &mut out);
        if is_end {
            return out;
        }
        at = token.end as usize;
        out.extend_from_slice(&text[start..at]);
    }
}

/// Appends the gap between two tokens.
fn put_gap(mut gap: &[u8], server_version: u32, out: &mut Vec<u8>) {
    let end_of_comment =
        |gap: &[u8]| memchr::memmem::find(gap, b"*/").map_or(gap.len(), |at| at + 2);
    while let [first, rest @ ..] = gap {
        if let Some(after) = gap.strip_prefix(VERSION_MARK) {
            let digits = after.iter().take(6).take_while(|byte| byte.is_ascii_digit());
            let (count, version) = digits
                .fold((0, 0), |(count, v), byte| (count + 1, v * 10 + u32::from(byte - b'0')));
            let is_versioned = count >= 5;
            let skipped = match is_versioned && version > server_version {
                true => end_of_comment(after),
                false if is_versioned => count,
                false => 0,
            };
            gap = &after[skipped..];
        } else if gap.starts_with(b"/*") {
            let (comment, after) = gap.split_at(end_of_comment(gap));
            out.extend_from_slice(comment);
            gap = after;
        } else if let Some(after) = gap.strip_prefix(b"*/") {
            gap = after;
        } else {
            out.push(*first);
            gap = rest;
        }
    }
}

fn trim(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text {
        if !is_blank(*first) {
            break;
        }
        text = rest;
    }
    while let [rest @ .., last] = text {
        if !is_blank(*last) {
            break;
        }
        text = rest;
    }
    text
}
