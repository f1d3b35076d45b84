//! Regular expressions of any text: `cargo xtask fuzz` lets coverage guide them. `__fuzz__` keeps what they start from.

use crate::regexp::engine::{Options, Pattern};
use crate::regexp::replace::{Template, replace};

/// Most bytes of a result.
const RESULT_MAX: u64 = 1 << 16;

/// A pattern with its options, a subject and what replaces matches: the first three bytes are the options and the lengths of the first two.
#[test]
fn patterns() {
    bolero::check!().with_iterations(200).with_max_len(512).for_each(|bytes: &[u8]| {
        let Some((&[bits, pattern, subject], rest)) = bytes.split_first_chunk::<3>() else {
            return;
        };
        let is_set = |bit: u8| bits >> bit & 1 != 0;
        let options = Options {
            case_insensitive: is_set(0),
            multi_line: is_set(1),
            dot_all: is_set(2),
            unix_lines: is_set(3),
        };
        let (pattern, rest) = rest.split_at(usize::from(pattern).min(rest.len()));
        let (subject, template) = rest.split_at(usize::from(subject).min(rest.len()));
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let Ok(pattern) = Pattern::compile(&text(pattern), options) else { return };
        let subject = text(subject);
        // After an error, which is the bound on steps, nothing more is asked.
        let Ok(is_match) = pattern.is_match(&subject) else { return };
        let Ok(found) = pattern.find_at(&subject, 0) else { return };
        assert_eq!(found.is_some(), is_match);
        let Ok(groups) = pattern.groups_at(&subject, 0) else { return };
        assert_eq!(groups.and_then(|groups| groups.into_iter().next().flatten()), found);
        let Ok(template) = Template::parse(&text(template)) else { return };
        if let Ok(Some(replaced)) = replace(&pattern, &subject, 0, 0, &template, RESULT_MAX) {
            assert!(replaced.len() as u64 <= RESULT_MAX);
        }
    });
}
