//! Definitions in MariaDB's words, written in MySQL's.
//!
//! Works on tokens: what stands in quotes, names and comments is left alone.

/// The parts of a statement; together they are its text.
fn tokens(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let length = match first {
            '\'' | '"' | '`' => quoted_length(rest, first),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ if first.is_whitespace() => {
                rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len())
            }
            _ => first.len_utf8(),
        };
        let (part, after) = rest.split_at(length);
        parts.push(part);
        rest = after;
    }
    parts
}

fn quoted_length(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && quote != '`' {
            chars.next();
        } else if c == quote {
            if chars.peek().is_none_or(|(_, next)| *next != quote) {
                return at + c.len_utf8();
            }
            chars.next();
        }
    }
    text.len()
}

/// The same collation, or the one with nearly the same order.
pub(super) fn collation(name: &str) -> String {
    let Some((charset, rest)) = name.split_once('_') else { return name.to_owned() };
    let rest = rest.replace("nopad_", "");
    let (is_utf8mb4, is_new) = (charset == "utf8mb4", rest.contains("uca1400"));
    match rest.as_str() {
        _ if name.starts_with("uca1400") => collation(&format!("utf8mb4_{name}")),
        "uca1400_as_cs" | "uca1400_as_ci" | "uca1400_ai_ci" if is_utf8mb4 => {
            format!("{charset}_{}", rest.replace("uca1400", "0900"))
        }
        _ if is_new && is_utf8mb4 => "utf8mb4_0900_ai_ci".to_owned(),
        _ if is_new => format!("{charset}_unicode_ci"),
        _ => format!("{charset}_{rest}"),
    }
}

/// A table's definition in MySQL's words, and what changed its meaning.
pub(super) fn table(text: &str) -> (String, Vec<String>) {
    let parts = tokens(text);
    let mut out: Vec<String> = Vec::with_capacity(parts.len());
    let mut notes = Vec::new();
    let mut at = 0;
    while at < parts.len() {
        let part = parts[at];
        let word = part.to_ascii_lowercase();
        let next_word = |from: usize| {
            parts[from..].iter().find(|part| !part.trim().is_empty()).copied().unwrap_or_default()
        };
        let mut taken = 1;
        let written = match word.as_str() {
            "ignored" => "INVISIBLE".to_owned(),
            "default" if begins_call(&parts[at..]) => {
                let length = call_length(&parts[at + 2..]);
                taken = 2 + length;
                format!("DEFAULT ({})", parts[at + 2..at + 2 + length].concat())
            }
            "with"
                if next_word(at + 1).eq_ignore_ascii_case("system")
                    && parts.get(at + 4).is_some_and(|p| p.eq_ignore_ascii_case("versioning")) =>
            {
                notes.push("system versioning: only the present rows".to_owned());
                taken = 5;
                String::new()
            }
            "engine" if parts.get(at + 1) == Some(&"=") => {
                taken = 3;
                let engine = parts.get(at + 2).copied().unwrap_or_default();
                let known = ["InnoDB", "MyISAM", "MEMORY", "CSV", "ARCHIVE"];
                if !known.contains(&engine) {
                    notes.push(format!("engine {engine}: it is transactional here"));
                }
                format!("ENGINE={}", if known.contains(&engine) { engine } else { "InnoDB" })
            }
            _ if is_foreign_option(&word) && next_word(at + 1) == "=" => {
                let equals = parts[at..].iter().position(|part| *part == "=").unwrap_or(0);
                taken = equals + 1;
                while parts.get(at + taken).is_some_and(|part| part.trim().is_empty()) {
                    taken += 1;
                }
                taken += 1;
                notes.push(format!("option {part} is left out"));
                String::new()
            }
            _ if word.contains("_nopad_") || word.contains("uca1400_") => {
                let other = collation(&word);
                notes.push(format!("collation {word} is {other}"));
                other
            }
            _ if word.starts_with("/*m!") => {
                notes.push(format!("{part} is left out"));
                String::new()
            }
            _ => part.to_owned(),
        };
        out.push(written);
        at += taken;
    }
    notes.dedup();
    (out.concat(), notes)
}

/// Options of tables and indexes that only MariaDB has.
fn is_foreign_option(word: &str) -> bool {
    let word = word.trim_matches('`');
    ["page_checksum", "transactional", "page_compressed", "page_compression_level", "encrypted"]
        .contains(&word)
        || word == "encryption_key_id"
}

/// Whether `DEFAULT` is followed by a call other than of the present time.
fn begins_call(parts: &[&str]) -> bool {
    const NOW: [&str; 4] = ["current_timestamp", "now", "localtime", "localtimestamp"];
    let name = parts.get(2).map(|part| part.to_ascii_lowercase()).unwrap_or_default();
    parts.get(1) == Some(&" ")
        && parts.get(3) == Some(&"(")
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && !NOW.contains(&name.as_str())
}

/// The tokens of `name(..)`.
fn call_length(parts: &[&str]) -> usize {
    let mut depth = 0_usize;
    for (at, part) in parts.iter().enumerate() {
        match *part {
            "(" => depth += 1,
            ")" if depth == 1 => return at + 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    parts.len()
}

/// The same modes without those that MySQL has no more or never had; the second part names those that mean something.
pub(super) fn sql_mode(modes: &str) -> (String, Vec<String>) {
    const KNOWN: [&str; 18] = [
        "REAL_AS_FLOAT",
        "PIPES_AS_CONCAT",
        "ANSI_QUOTES",
        "IGNORE_SPACE",
        "ONLY_FULL_GROUP_BY",
        "NO_UNSIGNED_SUBTRACTION",
        "NO_DIR_IN_CREATE",
        "ANSI",
        "NO_AUTO_VALUE_ON_ZERO",
        "NO_BACKSLASH_ESCAPES",
        "STRICT_TRANS_TABLES",
        "STRICT_ALL_TABLES",
        "NO_ZERO_IN_DATE",
        "NO_ZERO_DATE",
        "ALLOW_INVALID_DATES",
        "ERROR_FOR_DIVISION_BY_ZERO",
        "TRADITIONAL",
        "HIGH_NOT_PRECEDENCE",
    ];
    const KNOWN_MORE: [&str; 3] =
        ["NO_ENGINE_SUBSTITUTION", "PAD_CHAR_TO_FULL_LENGTH", "TIME_TRUNCATE_FRACTIONAL"];
    const GONE: [&str; 6] = [
        "NO_AUTO_CREATE_USER",
        "NO_FIELD_OPTIONS",
        "NO_KEY_OPTIONS",
        "NO_TABLE_OPTIONS",
        "MYSQL323",
        "MYSQL40",
    ];
    let names = || modes.split(',').filter(|mode| !mode.is_empty());
    let known = |mode: &&str| KNOWN.contains(mode) || KNOWN_MORE.contains(mode);
    let kept: Vec<_> = names().filter(known).collect();
    let lost = names().filter(|mode| !known(mode) && !GONE.contains(mode));
    (kept.join(","), lost.map(str::to_owned).collect())
}

/// An account's definition in MySQL's words; an error says why it has none.
pub(super) fn account(text: &str) -> Result<String, String> {
    let text =
        text.replace(" IDENTIFIED BY PASSWORD '", " IDENTIFIED WITH 'mysql_native_password' AS '");
    let Some((before, methods)) = text.split_once(" IDENTIFIED VIA ") else { return Ok(text) };
    let end = methods.find(" REQUIRE ").or_else(|| methods.find(" WITH "));
    let end = end.or_else(|| methods.find(" ACCOUNT ")).unwrap_or(methods.len());
    let (methods, after) = methods.split_at(end);
    for method in methods.split(" OR ") {
        let secret = method.strip_prefix("mysql_native_password USING ");
        if let Some(secret) = secret.filter(|secret| secret.starts_with("'*")) {
            let with = format!(" IDENTIFIED WITH 'mysql_native_password' AS {secret}");
            return Ok(format!("{before}{with}{after}"));
        }
        if method == "unix_socket" {
            return Ok(format!("{before} IDENTIFIED WITH 'auth_socket'{after}"));
        }
    }
    Err(format!("its method of log-in is {methods}"))
}

/// A line of SHOW GRANTS in MySQL's words.
pub(super) fn grant(text: &str) -> String {
    if let Some((role, account)) =
        text.strip_prefix("SET DEFAULT ROLE ").and_then(|rest| rest.rsplit_once(" FOR "))
    {
        return format!("SET DEFAULT ROLE {role} TO {account}");
    }
    let option = if text.ends_with(" WITH GRANT OPTION") { " WITH GRANT OPTION" } else { "" };
    let ends = [" IDENTIFIED BY PASSWORD '", " IDENTIFIED VIA ", " REQUIRE "];
    match ends.iter().filter_map(|end| text.find(end)).min() {
        Some(end) => format!("{}{option}", &text[..end]),
        None => text.to_owned(),
    }
}

/// MySQL's name of a privilege, where it has another one.
pub(super) fn privilege(name: &str) -> &str {
    match name {
        "BINLOG MONITOR" | "SLAVE MONITOR" | "REPLICA MONITOR" => "REPLICATION CLIENT",
        "BINLOG ADMIN" => "BINLOG_ADMIN",
        "BINLOG REPLAY" => "REPLICATION_APPLIER",
        "CONNECTION ADMIN" => "CONNECTION_ADMIN",
        "REPLICATION SLAVE ADMIN" => "REPLICATION_SLAVE_ADMIN",
        "SET USER" => "SET_ANY_DEFINER",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_keep_texts_and_lose_foreign_words() {
        let (text, notes) = table(
            "CREATE TABLE `uuid` (\n  `u` uuid NOT NULL DEFAULT uuid(),\n  `ignored` varchar(9) /*M!100301 COMPRESSED*/ DEFAULT 'IGNORED',\n  \
             `t` timestamp NULL DEFAULT current_timestamp(),\n  `n` int(11) DEFAULT (1 + 2),\n  KEY `k` (`n`) IGNORED\n) ENGINE=Aria \
             COLLATE=utf8mb4_uca1400_ai_ci PAGE_CHECKSUM=1 COMMENT='a uuid WITH SYSTEM VERSIONING' WITH SYSTEM VERSIONING",
        );
        assert_eq!(
            text,
            "CREATE TABLE `uuid` (\n  `u` uuid NOT NULL DEFAULT (uuid()),\n  `ignored` varchar(9)  DEFAULT \
             'IGNORED',\n  `t` timestamp NULL DEFAULT current_timestamp(),\n  `n` int(11) DEFAULT (1 + 2),\n  KEY `k` (`n`) INVISIBLE\n) ENGINE=InnoDB \
             COLLATE=utf8mb4_0900_ai_ci  COMMENT='a uuid WITH SYSTEM VERSIONING' "
        );
        assert_eq!(notes.len(), 5, "{notes:?}");
        let plain = "CREATE TABLE `t` (`a` int DEFAULT 1, `b``c` enum('x''y','\\'') DEFAULT NULL) ENGINE=MyISAM";
        assert_eq!(table(plain), (plain.to_owned(), Vec::new()));
    }

    #[test]
    fn collations_find_their_neighbours() {
        for (theirs, ours) in [
            ("utf8mb4_general_ci", "utf8mb4_general_ci"),
            ("utf8mb4_uca1400_as_cs", "utf8mb4_0900_as_cs"),
            ("utf8mb4_uca1400_swedish_ai_ci", "utf8mb4_0900_ai_ci"),
            ("uca1400_ai_ci", "utf8mb4_0900_ai_ci"),
            ("utf8mb3_uca1400_ai_ci", "utf8mb3_unicode_ci"),
            ("latin1_swedish_nopad_ci", "latin1_swedish_ci"),
            ("binary", "binary"),
        ] {
            assert_eq!(collation(theirs), ours);
        }
    }

    #[test]
    fn accounts_keep_their_secrets() {
        assert_eq!(
            account("CREATE USER `a`@`%` IDENTIFIED BY PASSWORD '*AB' REQUIRE SSL").as_deref(),
            Ok("CREATE USER `a`@`%` IDENTIFIED WITH 'mysql_native_password' AS '*AB' REQUIRE SSL")
        );
        assert_eq!(
            account("CREATE USER `a`@`%` IDENTIFIED VIA unix_socket OR mysql_native_password USING 'invalid'").as_deref(),
            Ok("CREATE USER `a`@`%` IDENTIFIED WITH 'auth_socket'")
        );
        assert!(account("CREATE USER `a`@`%` IDENTIFIED VIA ed25519 USING 'x'").is_err());
        assert_eq!(
            grant(
                "GRANT BINLOG MONITOR ON *.* TO `b`@`%` IDENTIFIED BY PASSWORD '*B' REQUIRE SSL WITH GRANT OPTION"
            ),
            "GRANT BINLOG MONITOR ON *.* TO `b`@`%` WITH GRANT OPTION"
        );
        assert_eq!(grant("SET DEFAULT ROLE `w` FOR `b`@`%`"), "SET DEFAULT ROLE `w` TO `b`@`%`");
        let (modes, lost) = sql_mode("STRICT_TRANS_TABLES,NO_AUTO_CREATE_USER,ORACLE");
        assert_eq!((modes.as_str(), lost), ("STRICT_TRANS_TABLES", vec!["ORACLE".to_owned()]));
    }
}
