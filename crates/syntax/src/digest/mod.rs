//! Normalised texts: keys of the plan cache, and digests for people. Tokens only; no grammar.

mod hash;
mod normalize;
mod text;

use crate::ast::Span;

pub use normalize::{Digest, Normalizer, same_shape};
pub use text::digest_text;

/// A literal that was lifted out of a text.
#[derive(Clone, Copy, Debug)]
pub struct LiteralSpan {
    /// Its kind.
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

impl LiteralSpan {
    /// The value of an integer literal.
    pub fn integer(&self, source: &[u8]) -> Option<i64> {
        match self.kind {
            LiteralKind::Integer => std::str::from_utf8(self.span.of(source)).ok()?.parse().ok(),
            LiteralKind::String => None,
        }
    }

    /// Appends the value of a string literal to `out`, escapes resolved.
    pub fn string(&self, source: &[u8], no_backslash_escapes: bool, out: &mut Vec<u8>) {
        if self.kind == LiteralKind::String {
            crate::lexer::unescape(self.span.of(source), no_backslash_escapes, out);
        }
    }
}
