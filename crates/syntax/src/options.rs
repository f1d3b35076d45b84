//! The session settings that the parser needs.

use crate::digest::LiteralSpan;

/// The deepest nesting of parentheses, subqueries and blocks that is parsed.
pub const DEFAULT_MAX_DEPTH: u32 = 500;

/// How texts are read. The session builds it from `sql_mode` and the client's flags.
#[derive(Clone, Debug)]
pub struct ParseOptions<'a> {
    /// `"` quotes identifiers.
    pub ansi_quotes: bool,
    /// `||` concatenates.
    pub pipes_as_concat: bool,
    /// `\` in strings is a plain character.
    pub no_backslash_escapes: bool,
    /// Blanks may separate a function's name from its parenthesis.
    pub ignore_space: bool,
    /// `NOT` binds as tightly as `!`.
    pub high_not_precedence: bool,
    /// `REAL` is `FLOAT`.
    pub real_as_float: bool,
    /// `?` is a parameter.
    pub placeholders: bool,
    /// Text may follow the first `;`.
    pub multi_statements: bool,
    /// The number that versioned comments are compared with.
    pub server_version: u32,
    /// The deepest nesting; trees are at most twice as high.
    pub max_depth: u32,
    /// Literals that become parameters 0, 1, ..: from [`crate::Normalizer`].
    pub lift: Option<&'a [LiteralSpan]>,
}

impl Default for ParseOptions<'_> {
    fn default() -> Self {
        ParseOptions {
            ansi_quotes: false,
            pipes_as_concat: false,
            no_backslash_escapes: false,
            ignore_space: false,
            high_not_precedence: false,
            real_as_float: false,
            placeholders: true,
            multi_statements: true,
            server_version: 90_700,
            max_depth: DEFAULT_MAX_DEPTH,
            lift: None,
        }
    }
}
