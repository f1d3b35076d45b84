//! SQL text to syntax tree and back. Knows no catalog, no session and no types of columns: names
//! stay as written, and everything the grammar allows is accepted, whether or not it makes sense.

pub mod ast;
mod digest;
mod error;
mod options;

pub use ast::Statement;
pub use digest::{LiteralKind, LiteralSpan};
pub use error::{ParseError, ParseErrorKind};
pub use options::{DEFAULT_MAX_DEPTH, ParseOptions};

/// Parses the first statement of `sql`. Returns it and how many bytes it took, its `;` included.
pub fn parse_one(sql: &str, options: &ParseOptions<'_>) -> Result<(Statement, usize), ParseError> {
    parse_bytes(sql.as_bytes(), options)
}

/// [`parse_one`] for texts that need not be UTF-8 as a whole (string literals with raw bytes).
pub fn parse_bytes(
    sql: &[u8],
    options: &ParseOptions<'_>,
) -> Result<(Statement, usize), ParseError> {
    let _ = (sql, options);
    Err(ParseError { kind: ParseErrorKind::NotSupported("parser"), offset: 0 })
}
