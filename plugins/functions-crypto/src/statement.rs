//! STATEMENT_DIGEST and STATEMENT_DIGEST_TEXT: a statement without its values, and a hash of that. VALIDATE_PASSWORD_STRENGTH.

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, scalar, text_type};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, ScalarFunction,
};
use sha2::Digest;
use syntax::{ParseError, ParseErrorKind, ParseOptions, Statement};
use types::{SqlMode, Value};

use crate::digest::digits;

/// Digits of a digest.
const DIGEST_DIGITS: u64 = 64;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "STATEMENT_DIGEST",
        Arity::exactly(1),
        "STATEMENT_DIGEST(statement)\nA hash of the statement without its values.",
        |ctx, _| {
            let ty = text_type(DIGEST_DIGITS, ctx.collation_connection);
            Ok(BoundFunction::new(ty, vec![Coercion::Text], |ctx, args| {
                let text = shape(ctx, &args[0])?;
                Ok(Value::Bytes(digits(&sha2::Sha256::digest(text.as_bytes()))))
            }))
        },
    ),
    scalar(
        "STATEMENT_DIGEST_TEXT",
        Arity::exactly(1),
        "STATEMENT_DIGEST_TEXT(statement)\nThe statement without its values.",
        |ctx, _| {
            let ty = text_type(kit::UNBOUNDED_CHARACTERS, ctx.collation_connection);
            Ok(BoundFunction::new(ty, vec![Coercion::Text], |ctx, args| {
                Ok(Value::text(&shape(ctx, &args[0])?))
            }))
        },
    ),
    scalar(
        "VALIDATE_PASSWORD_STRENGTH",
        Arity::exactly(1),
        "VALIDATE_PASSWORD_STRENGTH(password)\nThe strength of a password by the password rules: 0 without such rules.",
        bind_strength,
    ),
];

/// The statement's digest text.
fn shape(ctx: &FunctionContext<'_>, statement: &Value) -> Result<String> {
    let mode = ctx.sql_mode;
    let options = ParseOptions {
        ansi_quotes: mode.contains(SqlMode::ANSI_QUOTES),
        pipes_as_concat: mode.contains(SqlMode::PIPES_AS_CONCAT),
        no_backslash_escapes: mode.contains(SqlMode::NO_BACKSLASH_ESCAPES),
        ignore_space: mode.contains(SqlMode::IGNORE_SPACE),
        high_not_precedence: mode.contains(SqlMode::HIGH_NOT_PRECEDENCE),
        real_as_float: mode.contains(SqlMode::REAL_AS_FLOAT),
        ..ParseOptions::default()
    };
    let text = kit::bytes(statement);
    let (parsed, consumed) =
        syntax::parse_bytes(text, &options).map_err(|error| unreadable(&word(&error)))?;
    let rest = text[consumed..].trim_ascii_start();
    if !rest.is_empty() {
        let line = 1 + text[..text.len() - rest.len()].iter().filter(|c| **c == b'\n').count();
        let near: String = String::from_utf8_lossy(rest).chars().take(NEAR_CHARACTERS).collect();
        return Err(unreadable(&Error::with(ErrorCode::PARSE_ERROR, &[&near, &line])));
    }
    if matches!(parsed, Statement::Empty) {
        return Err(unreadable(&Error::with(ErrorCode::EMPTY_QUERY, &[])));
    }
    Ok(syntax::digest_text(text, &options))
}

/// Characters of the faulty text that a message shows.
const NEAR_CHARACTERS: usize = 80;

#[cold]
fn unreadable(error: &Error) -> Error {
    Error::with(ErrorCode::PARSE_ERROR_IN_DIGEST_FN, &[&error.message()])
}

fn word(error: &ParseError) -> Error {
    match &error.kind {
        ParseErrorKind::Syntax { near, line } => Error::with(ErrorCode::PARSE_ERROR, &[near, line]),
        ParseErrorKind::TooDeep => Error::with(ErrorCode::STACK_OVERRUN, &[&0, &0, &0]),
        ParseErrorKind::NotSupported(what) => Error::not_supported(what),
        ParseErrorKind::Other { code, message } => Error::new(ErrorCode(*code), message.clone()),
        ParseErrorKind::LiftMismatch => Error::internal("a lifted literal is not a parameter"),
    }
}

fn bind_strength(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = kit::integer_type(10, true);
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |_, _| Ok(Value::Int(0))))
}
