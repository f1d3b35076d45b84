//! Parsing of statements' texts.

use errors::{Error, ErrorCode, err};
use syntax::{ParseError, ParseErrorKind, ParseOptions};
use types::SqlMode;

/// The parser's options in an SQL mode.
pub fn parse_options_of(mode: SqlMode, ignore_space: bool) -> ParseOptions<'static> {
    ParseOptions {
        ansi_quotes: mode.contains(SqlMode::ANSI_QUOTES),
        pipes_as_concat: mode.contains(SqlMode::PIPES_AS_CONCAT),
        no_backslash_escapes: mode.contains(SqlMode::NO_BACKSLASH_ESCAPES),
        ignore_space: mode.contains(SqlMode::IGNORE_SPACE) || ignore_space,
        high_not_precedence: mode.contains(SqlMode::HIGH_NOT_PRECEDENCE),
        real_as_float: mode.contains(SqlMode::REAL_AS_FLOAT),
        ..ParseOptions::default()
    }
}

/// The error of a text that is not a statement.
pub fn parse_error(error: &ParseError) -> Error {
    match &error.kind {
        ParseErrorKind::Syntax { near, line } => err!(PARSE_ERROR, near, line),
        ParseErrorKind::TooDeep => err!(STACK_OVERRUN, 0, 0, 0),
        ParseErrorKind::NotSupported(what) => Error::not_supported(what),
        ParseErrorKind::Other { code, message } => Error::new(ErrorCode(*code), message.clone()),
        ParseErrorKind::LiftMismatch => Error::internal("a lifted literal is not a parameter"),
    }
}
