//! The caption of a select item that has no alias.

use crate::ast::{ExprKind, Literal, SelectItem, SelectItemKind};
use crate::lexer::{LexOptions, Lexer, Tok, is_blank, unescape};
use crate::options::ParseOptions;

/// The name of the result column of `item`: its alias, the name of its column, the value of the
/// first string of its string literal, or else its source text. Wildcards have no caption.
pub fn caption(item: &SelectItem, source: &[u8], options: &ParseOptions<'_>) -> String {
    let text = trim(item.span.of(source));
    let SelectItemKind::Expr { expr, alias } = &item.kind else {
        return String::from_utf8_lossy(text).into_owned();
    };
    if let Some(alias) = alias {
        return alias.text.as_ref().to_owned();
    }
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
        _ => String::from_utf8_lossy(text).into_owned(),
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
