//! SQL text to syntax tree; `unparse` goes back. Knows no catalog, no session and no types of columns: names
//! stay as written, and everything the grammar allows is accepted, whether or not it makes sense.

pub mod ast;
mod caption;
mod digest;
mod error;
mod hints;
mod keywords;
mod lexer;
mod options;
mod parser;

pub use ast::Statement;
pub use caption::caption;
pub use digest::{Digest, LiteralKind, LiteralSpan, Normalizer, digest_text, same_shape};
pub use error::{ParseError, ParseErrorKind};
pub use hints::{Hint, HintTable, Hints, IndexHintName, JoinOrderName, parse_hints};
pub use keywords::{is_reserved_word, keywords};
pub use options::{DEFAULT_MAX_DEPTH, ParseOptions};

/// Parses the first statement of `sql`. Returns it and how many bytes it has, its `;` included.
pub fn parse_one(sql: &str, options: &ParseOptions<'_>) -> Result<(Statement, usize), ParseError> {
    parse_bytes(sql.as_bytes(), options)
}

/// [`parse_one`] for texts that need not be UTF-8 as a whole (string literals with raw bytes).
pub fn parse_bytes(
    sql: &[u8],
    options: &ParseOptions<'_>,
) -> Result<(Statement, usize), ParseError> {
    parser::parse(sql, options)
}

/// Entry point for fuzzers: no `bytes` make it panic or overflow.
pub fn fuzz_one(bytes: &[u8]) {
    let flags = bytes.first().copied().unwrap_or(0);
    let options = ParseOptions {
        ansi_quotes: flags & 1 != 0,
        pipes_as_concat: flags & 2 != 0,
        no_backslash_escapes: flags & 4 != 0,
        ignore_space: flags & 8 != 0,
        high_not_precedence: flags & 16 != 0,
        multi_statements: flags & 32 != 0,
        ..ParseOptions::default()
    };
    let digest_of = Normalizer::new(7).normalize(bytes, &options).literals.len();
    assert!(digest_of <= bytes.len());
    let _ = digest_text(bytes, &options);
    let mut rest = bytes;
    for _ in 0..16 {
        match parse_bytes(rest, &options) {
            Ok((_, used)) if used > 0 && used < rest.len() => rest = &rest[used..],
            _ => break,
        }
    }
}
