//! The text of a statement that changes definitions, as other servers can repeat it.

use syntax::ast::Statement;

/// Words that may stand between CREATE and the kind of the object.
const BEFORE_KIND: [&str; 9] =
    ["CREATE", "OR", "REPLACE", "ALTER", "ALGORITHM", "UNDEFINED", "MERGE", "TEMPTABLE", "="];

/// Whether a statement makes an object that has a definer, and names none.
fn lacks_definer(statement: &Statement) -> bool {
    if let Statement::CreateView(create) = statement {
        return create.definer.is_none();
    }
    if let Statement::CreateRoutine(create) = statement {
        return create.definer.is_none();
    }
    if let Statement::CreateTrigger(create) = statement {
        return create.definer.is_none();
    }
    if let Statement::CreateEvent(create) = statement {
        return create.definer.is_none();
    }
    false
}

/// Length of the white space or comment that `text` starts with.
fn blank(text: &[u8]) -> usize {
    let spaces = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    if spaces > 0 {
        return spaces;
    }
    let end_of_line =
        || text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| at + 1);
    match text {
        // A comment with a version is code.
        [b'/', b'*', b'!' | b'M', ..] => 0,
        [b'/', b'*', ..] => {
            text.windows(2).skip(2).position(|pair| pair == b"*/").map_or(text.len(), |at| at + 4)
        }
        [b'#', ..] => end_of_line(),
        [b'-', b'-', next, ..] if next.is_ascii_whitespace() => end_of_line(),
        _ => 0,
    }
}

/// Where the kind of the object stands: the first word that may not come before it.
fn kind_at(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        let skipped = blank(rest);
        if skipped > 0 {
            at += skipped;
            continue;
        }
        let letters = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let word = &rest[..letters.max(1).min(rest.len())];
        if !BEFORE_KIND.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(word)) {
            return (letters > 0).then_some(at);
        }
        at += word.len();
    }
}

/// The text with what the session would have added: the definer, given as `user`@`host`.
pub fn with_definer(statement: &Statement, text: &[u8], definer: &str) -> Vec<u8> {
    let at = if lacks_definer(statement) { kind_at(text) } else { None };
    let Some(at) = at else { return text.to_vec() };
    let (before, after) = text.split_at(at);
    [before, format!("DEFINER={definer} ").as_bytes(), after].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(text: &str) -> String {
        let options = syntax::ParseOptions::default();
        let (statement, _) = syntax::parse_bytes(text.as_bytes(), &options).expect("a statement");
        let logged = with_definer(&statement, text.as_bytes(), "`u`@`%`");
        String::from_utf8(logged).expect("a text")
    }

    #[test]
    fn a_definer_is_added_before_the_kind_of_the_object() {
        for (text, expected) in [
            ("create view v as select 1", "create DEFINER=`u`@`%` view v as select 1"),
            (
                "create /* or */ or replace algorithm = merge sql security invoker view v as select 1",
                "create /* or */ or replace algorithm = merge DEFINER=`u`@`%` sql security invoker view v as select 1",
            ),
            (
                "CREATE -- x\n PROCEDURE p() SELECT 1",
                "CREATE -- x\n DEFINER=`u`@`%` PROCEDURE p() SELECT 1",
            ),
            (
                "create definer=a@b procedure p() select 1",
                "create definer=a@b procedure p() select 1",
            ),
            ("create table view_(a int)", "create table view_(a int)"),
        ] {
            assert_eq!(logged(text), expected);
        }
    }
}
