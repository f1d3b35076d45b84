//! Leaves out what is nobody's business: literals of statements, credentials in settings.

/// What stands where something was left out.
pub(super) const HIDDEN: &str = "<hidden>";

/// Parts of names of settings whose values are secret.
const SECRET_NAMES: [&str; 6] =
    ["password", "passphrase", "secret", "credential", "private_key", "api_key"];
/// Settings that hold statements.
const STATEMENT_NAMES: [&str; 2] = ["init_connect", "init_replica"];

/// The value of a setting as it may be shown.
pub(super) fn setting(name: &str, value: &str) -> String {
    let name = name.to_ascii_lowercase();
    // Numbers and switches about passwords say nothing of a password.
    let is_plain = value.is_empty()
        || value.parse::<f64>().is_ok()
        || ["ON", "OFF"].contains(&value)
        || value.len() < 3;
    let is_secret = SECRET_NAMES.iter().any(|part| name.contains(part));
    if !is_plain && (is_secret || STATEMENT_NAMES.contains(&name.as_str())) {
        return HIDDEN.into();
    }
    without_credentials(value)
}

/// A text in which URLs have no names and passwords.
fn without_credentials(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = after.find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(after.len());
        rest = match after[..end].rfind('@') {
            Some(at) => {
                shown.push_str(HIDDEN);
                &after[at..]
            }
            None => after,
        };
    }
    shown.push_str(rest);
    shown
}

/// A statement without literals and comments, whether or not somebody has left out its literals already. Nothing of one with a backslash: whether that ends
/// a text or does not depends on the session's SQL mode.
pub(super) fn statement(text: &str) -> String {
    if text.contains('\\') {
        return HIDDEN.into();
    }
    let mut shown = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || "_$@".contains(c);
        let length = match c {
            '\'' | '"' => {
                shown.push('?');
                rest[1..].find(c).map_or(rest.len(), |at| at + 2)
            }
            '`' => {
                let length = rest[1..].find(c).map_or(rest.len(), |at| at + 2);
                shown.push_str(&rest[..length]);
                length
            }
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            _ if is_name(c) => {
                let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                shown.push_str(if c.is_numeric() { "?" } else { &rest[..length] });
                length
            }
            _ => {
                shown.push(c);
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    shown
}

/// A line of a log without quoted texts; of a line about a deadlock, whose statements follow, only the beginning.
pub(super) fn log_line(line: &str) -> String {
    let line = match line.find("a deadlock") {
        Some(at) => &line[..at + "a deadlock".len()],
        None => line,
    };
    let mut shown = String::new();
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(open) if c == open => {
                quote = None;
                shown.push('?');
                shown.push(c);
            }
            Some(_) => {}
            None => {
                shown.push(c);
                quote = ['\'', '"', '`'].contains(&c).then_some(c);
            }
        }
    }
    if quote.is_some() {
        shown.push('?');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_credentials_are_left_out() {
        for (name, value, shown) in [
            ("caching_sha2_password_rounds", "5000", "5000"),
            ("default_password_lifetime", "0", "0"),
            ("replica_password", "hunter2", HIDDEN),
            ("init_connect", "SET @a = 'x'", HIDDEN),
            ("init_connect", "", ""),
            ("auth_http_url", "https://me:pw@host/x", "https://<hidden>@host/x"),
            ("auth_ldap_uri", "ldaps://host:636", "ldaps://host:636"),
            ("two", "a://u:p@h b://v:q@i/", "a://<hidden>@h b://<hidden>@i/"),
        ] {
            assert_eq!(setting(name, value), shown, "{name}");
        }
    }

    #[test]
    fn statements_lose_literals_and_comments() {
        for (text, shown) in [
            ("SELECT a1, 'it''s', \"x\", 0x41, 1.5e3 FROM t2", "SELECT a1, ??, ?, ?, ?.? FROM t2"),
            ("SELECT ? FROM `a'b` WHERE c = @v1", "SELECT ? FROM `a'b` WHERE c = @v1"),
            ("SELECT /* pw */ 1 -- x\n, 2 # y", "SELECT  ? \n, ? "),
            ("SELECT 'cut of", "SELECT ?"),
            ("SELECT 'x\\' AND 'y'", HIDDEN),
        ] {
            assert_eq!(statement(text), shown, "{text}");
        }
    }

    #[test]
    fn log_lines_lose_quoted_texts_and_statements() {
        assert_eq!(log_line("table 'a b' is \"c\" full"), "table '?' is \"?\" full");
        assert_eq!(log_line("near 'SELECT 1"), "near '?");
        assert_eq!(log_line("WARN x a deadlock UPDATE t SET a = 918"), "WARN x a deadlock");
    }
}
