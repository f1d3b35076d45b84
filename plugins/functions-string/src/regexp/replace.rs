//! Replacement templates: `$1`, `${name}`, `\$`.

use std::ops::Range;

use errors::{Error, ErrorCode, Result};

use super::engine::{Groups, Pattern, next_start};

/// A parsed replacement.
pub(crate) struct Template {
    parts: Vec<Part>,
}

enum Part {
    Text(String),
    /// Digits after `$`: as many count as name a group.
    Number(String),
    Name(String),
}

impl Template {
    /// # Errors
    /// 3685 for a `$` that is followed by no group.
    pub(crate) fn parse(template: &str) -> Result<Template> {
        let bad = || Error::with(ErrorCode::REGEXP_ILLEGAL_ARGUMENT, &[]);
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = template.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '\\' => text.extend(rest.next()),
                '$' => {
                    parts.push(Part::Text(std::mem::take(&mut text)));
                    if rest.peek() == Some(&'{') {
                        rest.next();
                        let name: String = rest.by_ref().take_while(|c| *c != '}').collect();
                        parts.push(Part::Name(name));
                        continue;
                    }
                    let mut digits = String::new();
                    while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                        digits.push(digit);
                    }
                    if digits.is_empty() {
                        return Err(bad());
                    }
                    parts.push(Part::Number(digits));
                }
                _ => text.push(c),
            }
        }
        parts.push(Part::Text(text));
        Ok(Template { parts })
    }

    fn expand(
        &self,
        pattern: &Pattern,
        text: &str,
        groups: &Groups,
        out: &mut String,
    ) -> Result<()> {
        let bad = || Error::with(ErrorCode::REGEXP_INDEX_OUTOFBOUNDS_ERROR, &[]);
        let group = |index: usize| -> Option<&Range<usize>> { groups.get(index)?.as_ref() };
        for part in &self.parts {
            match part {
                Part::Text(literal) => out.push_str(literal),
                Part::Number(digits) => {
                    let (index, used) =
                        group_number(digits, pattern.group_count()).ok_or_else(bad)?;
                    out.push_str(group(index).map_or("", |range| &text[range.clone()]));
                    out.push_str(&digits[used..]);
                }
                Part::Name(name) => {
                    let index = pattern.group_named(name).ok_or_else(bad)?;
                    out.push_str(group(index).map_or("", |range| &text[range.clone()]));
                }
            }
        }
        Ok(())
    }
}

/// The longest prefix of `digits` that names a group, and its length.
fn group_number(digits: &str, count: usize) -> Option<(usize, usize)> {
    let mut best = None;
    for used in 1..=digits.len().min(9) {
        let index: usize = digits[..used].parse().ok()?;
        if index > count {
            break;
        }
        best = Some((index, used));
    }
    best
}

/// Replaces the `occurrence`th match, or all when it is 0; `None` when the result passes `limit` bytes.
///
/// # Errors
/// 3686 for a group that does not exist, 3699 for too many steps.
pub(crate) fn replace(
    pattern: &Pattern,
    text: &str,
    start: usize,
    occurrence: u64,
    template: &Template,
    limit: u64,
) -> Result<Option<String>> {
    let mut out = String::with_capacity(text.len());
    let (mut done, mut at, mut seen) = (0, start, 0);
    while let Some(groups) = pattern.groups_at(text, at)? {
        let Some(Some(whole)) = groups.first().cloned() else { break };
        seen += 1;
        if occurrence == 0 || seen == occurrence {
            out.push_str(&text[done..whole.start]);
            template.expand(pattern, text, &groups, &mut out)?;
            done = whole.end;
        }
        if out.len() as u64 > limit {
            return Ok(None);
        }
        match next_start(text, &whole) {
            Some(next) if occurrence == 0 || seen < occurrence => at = next,
            _ => break,
        }
    }
    out.push_str(&text[done..]);
    Ok((out.len() as u64 <= limit).then_some(out))
}
