//! Names and texts in quotes, as the server prints definitions.

/// An identifier in backticks.
pub fn quote(name: &str) -> String {
    unparse::quote_ident(name)
}

/// A name in the quotes of ANSI_QUOTES, or in backticks.
pub fn quote_for(ansi_quotes: bool, name: &str) -> String {
    match ansi_quotes {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => quote(name),
    }
}

/// Whether a name must be quoted.
pub fn needs_quotes(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
    !name.chars().all(is_plain)
        || name.chars().all(|c| c.is_ascii_digit())
        || syntax::is_reserved_word(name)
}

/// A text in quotes.
pub fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for character in text.chars() {
        match character {
            '\'' => out.push_str("''"),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            other => out.push(other),
        }
    }
    out.push('\'');
    out
}
