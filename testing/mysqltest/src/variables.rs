//! `$variables` of a test and conditions on them.

use std::collections::HashMap;

/// The variables that a test has set.
#[derive(Default)]
pub struct Variables(HashMap<String, String>);

impl Variables {
    /// Sets `name`, with or without its dollar sign.
    pub fn set(&mut self, name: &str, value: String) {
        self.0.insert(name.trim_start_matches('$').to_owned(), value);
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name.trim_start_matches('$')).map(String::as_str)
    }

    /// Replaces every `$name`; a backslash before the dollar sign keeps it.
    ///
    /// # Errors
    /// A variable was never set.
    pub fn expand(&self, text: &str) -> Result<String, String> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(place) = rest.find('$') {
            let name = name_at(&rest[place + 1..]);
            let is_kept = rest[..place].ends_with('\\');
            if is_kept || name.is_empty() {
                out.push_str(&rest[..place - usize::from(is_kept)]);
                out.push('$');
                rest = &rest[place + 1..];
                continue;
            }
            out.push_str(&rest[..place]);
            out.push_str(self.get(name).ok_or_else(|| format!("${name} was not set"))?);
            rest = &rest[place + 1 + name.len()..];
        }
        out.push_str(rest);
        Ok(out)
    }
}

fn name_at(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}

/// Whether an expanded condition holds: a comparison, or a value that is neither empty nor 0, perhaps after `!`.
pub fn holds(condition: &str) -> bool {
    let condition = condition.trim();
    for operator in ["==", "!=", "<=", ">=", "<", ">"] {
        if let Some((left, right)) = condition.split_once(operator) {
            return compares(unquoted(left), operator, unquoted(right));
        }
    }
    match condition.strip_prefix('!') {
        Some(rest) => !is_true(rest),
        None => is_true(condition),
    }
}

fn is_true(text: &str) -> bool {
    let text = unquoted(text);
    !text.is_empty() && text.parse::<f64>().ok() != Some(0.0)
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let bare = text.strip_prefix(['\'', '"']).and_then(|text| text.strip_suffix(['\'', '"']));
    bare.unwrap_or(text)
}

/// Numbers compare as numbers, other texts as texts.
fn compares(left: &str, operator: &str, right: &str) -> bool {
    let order = match (left.parse::<f64>(), right.parse::<f64>()) {
        (Ok(left), Ok(right)) => left.total_cmp(&right),
        (Ok(_) | Err(_), Ok(_) | Err(_)) => left.cmp(right),
    };
    match operator {
        "==" => order.is_eq(),
        "!=" => order.is_ne(),
        "<=" => order.is_le(),
        ">=" => order.is_ge(),
        "<" => order.is_lt(),
        _ => order.is_gt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced() {
        let mut variables = Variables::default();
        variables.set("$a", "1".into());
        variables.set("ab", "2".into());
        assert_eq!(variables.expand("$a $ab \\$a $").unwrap(), "1 2 $a $");
        assert_eq!(variables.expand("'$a'").unwrap(), "'1'");
        assert!(variables.expand("$c").is_err());
    }

    #[test]
    fn conditions_compare_numbers_and_texts() {
        assert!(
            holds("10 > 9") && holds("a != b") && holds("'x' == x") && holds("1") && holds("!0")
        );
        assert!(!holds("") && !holds("0") && !holds("10 < 9") && !holds("!1"));
    }
}
