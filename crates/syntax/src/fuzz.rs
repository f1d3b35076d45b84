//! The parser on any text: `cargo xtask fuzz` lets coverage guide it. `__fuzz__` keeps what it starts from. That what is printed parses to the
//! same is a target of `unparse`.

use crate::{Normalizer, ParseOptions, digest_text, parse_bytes, parse_hints};

/// Statements of one text at most.
const STATEMENTS_MAX: usize = 16;

fn options(bits: u8) -> ParseOptions<'static> {
    let is_set = |bit: u8| bits >> bit & 1 != 0;
    ParseOptions {
        ansi_quotes: is_set(0),
        pipes_as_concat: is_set(1),
        no_backslash_escapes: is_set(2),
        ignore_space: is_set(3),
        high_not_precedence: is_set(4),
        real_as_float: is_set(5),
        placeholders: !is_set(6),
        multi_statements: !is_set(7),
        ..ParseOptions::default()
    }
}

/// Statements after a byte of settings: parsed, normalised, parsed as their normal form is, digested.
#[test]
fn statements() {
    bolero::check!().with_iterations(500).for_each(|bytes: &[u8]| {
        let Some((&bits, text)) = bytes.split_first() else { return };
        let options = options(bits);
        let mut normalizer = Normalizer::new(7);
        let normal = normalizer.normalize(text, &options);
        assert!(normal.literals.len() <= text.len());
        let _ = parse_bytes(text, &ParseOptions { lift: Some(normal.literals), ..options.clone() });
        let _ = digest_text(text, &options);
        let mut rest = text;
        for _ in 0..STATEMENTS_MAX {
            match parse_bytes(rest, &options) {
                Ok((_, used)) if used > 0 && used < rest.len() => rest = &rest[used..],
                Ok((_, used)) => {
                    assert!(used <= rest.len());
                    break;
                }
                Err(_) => break,
            }
        }
    });
}

/// What stands in a comment of hints.
#[test]
fn hints() {
    bolero::check!().with_iterations(500).for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let hints = parse_hints(&text);
        assert!(hints.list.len() <= text.len());
        assert!(hints.error_at.is_none_or(|at| at <= text.len()));
    });
}
