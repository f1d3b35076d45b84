//! SQL text to syntax tree; `unparse` goes back. Knows no catalog, no session and no types of columns: names stay as written, and everything the grammar allows is accepted, whether or not it makes sense.

pub use ::ast;
mod caption;
mod digest;
mod error;
#[cfg(test)]
mod fuzz;
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
pub use parser::parse_bytes;

/// Parses the first statement of `sql`. Returns it and how many bytes it has, its `;` included.
pub fn parse_one(sql: &str, options: &ParseOptions<'_>) -> Result<(Statement, usize), ParseError> {
    parse_bytes(sql.as_bytes(), options)
}
