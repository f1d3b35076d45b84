//! Normalised texts: keys of the plan cache and digests. Lexer only; knows no grammar.

use crate::ast::Span;

/// A literal that was lifted out of a text.
#[derive(Clone, Copy, Debug)]
pub struct LiteralSpan {
    /// What it is.
    pub kind: LiteralKind,
    /// Where, quotes included.
    pub span: Span,
}

/// Kinds of lifted literals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LiteralKind {
    /// Fits `i64`.
    Integer,
    /// `'..'` (or `".."`) without introducer.
    String,
}
