//! The rules of `log_filter_dragnet`: which events of the error log are dropped, thinned out or changed.
//!
//! `IF condition THEN action [ELSEIF condition THEN action ..] [ELSE action].`, several of them one after the other. Conditions are joined by AND and OR
//! from left to right. Rules are checked when they are set; nothing here fails when an event comes.

use std::fmt;
use std::time::Duration;

use errors::ErrorCode;

use crate::record::{Priority, Record};

/// A value in a rule.
#[derive(Clone, Debug, PartialEq)]
enum Datum {
    Priority(Priority),
    /// A number of an error.
    Code(u16),
    Number(i64),
    Text(String),
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Datum::Priority(priority) => f.write_str(priority.word()),
            Datum::Code(code) => write!(f, "MY-{code:06}"),
            Datum::Number(number) => write!(f, "{number}"),
            Datum::Text(text) => write!(f, "\"{text}\""),
        }
    }
}

/// How a field is compared with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The spellings; of each comparator the first is shown.
const COMPARATORS: [(&str, Comparator); 9] = [
    ("==", Comparator::Equal),
    ("!=", Comparator::Unequal),
    ("<>", Comparator::Unequal),
    ("<=", Comparator::LessOrEqual),
    ("=<", Comparator::LessOrEqual),
    (">=", Comparator::GreaterOrEqual),
    ("=>", Comparator::GreaterOrEqual),
    ("<", Comparator::Less),
    (">", Comparator::Greater),
];

#[derive(Clone, Debug, PartialEq)]
enum Test {
    Exists { is_negated: bool },
    Compare(Comparator, Datum),
}

#[derive(Clone, Debug, PartialEq)]
struct Condition {
    field: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    Drop,
    /// So many events in so many seconds.
    Throttle(u64, u64),
    Set(String, Datum),
    Unset(String),
}

/// IF or ELSEIF with its action; ELSE has no condition.
#[derive(Clone, Debug)]
struct Branch {
    /// Each but the first with whether OR stands before it.
    conditions: Vec<(bool, Condition)>,
    action: Action,
    /// Of a throttle: when its time began, and the events since then.
    window: (Duration, u64),
}

/// All rules of a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules(Vec<Vec<Branch>>);

/// Where a text is no rule, and what was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) at: String,
    pub(crate) state: &'static str,
}

type Parsed<T> = Result<T, Mistake>;

impl Rules {
    /// # Errors
    /// The place of the first mistake.
    pub(crate) fn parse(text: &str) -> Parsed<Rules> {
        let mut reader = Reader { rest: text.trim_start() };
        let mut rules = Vec::new();
        while !reader.rest.is_empty() {
            rules.push(reader.rule()?);
        }
        Ok(Rules(rules))
    }

    /// Applies the rules to an event; false if it is dropped.
    pub(crate) fn keep(&mut self, record: &mut Record, now: Duration) -> bool {
        for branches in &mut self.0 {
            let Some(branch) = branches.iter_mut().find(|branch| branch.fits(record)) else {
                continue;
            };
            if !branch.act(record, now) {
                return false;
            }
        }
        true
    }
}

impl Branch {
    fn fits(&self, record: &Record) -> bool {
        let mut fits = true;
        for (at, (is_or, condition)) in self.conditions.iter().enumerate() {
            let own = condition.holds(record);
            fits = match (at, is_or) {
                (0, _) => own,
                (_, true) => fits || own,
                (_, false) => fits && own,
            };
        }
        fits
    }

    fn act(&mut self, record: &mut Record, now: Duration) -> bool {
        match &self.action {
            Action::Drop => false,
            Action::Throttle(count, seconds) => {
                let (began, events) = &mut self.window;
                if *events == 0 || now.saturating_sub(*began) >= Duration::from_secs(*seconds) {
                    (*began, *events) = (now, 0);
                }
                *events += 1;
                *events <= *count
            }
            Action::Set(field, value) => {
                if let Datum::Priority(priority) = value {
                    record.set_priority(*priority);
                } else {
                    let text = if let Datum::Text(text) = value {
                        text.clone()
                    } else {
                        value.to_string()
                    };
                    record.set(field, text);
                }
                true
            }
            Action::Unset(field) => {
                record.unset(field);
                true
            }
        }
    }
}

impl Condition {
    fn holds(&self, record: &Record) -> bool {
        let found = record.get(&self.field);
        let (comparator, wanted) = match &self.test {
            Test::Exists { is_negated } => return found.is_some() != *is_negated,
            Test::Compare(comparator, wanted) => (*comparator, wanted),
        };
        let Some(found) = found else { return false };
        let number = match wanted {
            Datum::Priority(priority) => Some(priority.number()),
            Datum::Code(code) => Some(i64::from(*code)),
            Datum::Number(number) => Some(*number),
            Datum::Text(_) => None,
        };
        let order = match (number, wanted) {
            (Some(number), _) => found.parse::<i64>().ok().map(|found| found.cmp(&number)),
            (None, Datum::Text(text)) => Some(found.as_str().cmp(text.as_str())),
            (None, Datum::Priority(_) | Datum::Code(_) | Datum::Number(_)) => None,
        };
        order.is_some_and(|order| match comparator {
            Comparator::Equal => order.is_eq(),
            Comparator::Unequal => order.is_ne(),
            Comparator::Less => order.is_lt(),
            Comparator::LessOrEqual => order.is_le(),
            Comparator::Greater => order.is_gt(),
            Comparator::GreaterOrEqual => order.is_ge(),
        })
    }
}

/// Fields whose values are numbers.
const NUMBERS: [&str; 7] =
    ["err_code", "OS_errno", "source_line", "thread", "query_id", "ts", "prio"];

/// The text that has not been read yet.
struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn mistake<T>(&self, at: &str, state: &'static str) -> Parsed<T> {
        Err(Mistake { at: at.to_owned(), state })
    }

    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest.trim_start();
        taken
    }

    /// A word of letters, digits and the like.
    fn word(&mut self) -> &'t str {
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-');
        self.take(self.rest.find(is_end).unwrap_or(self.rest.len()))
    }

    fn eat(&mut self, word: &str) -> bool {
        let before = self.rest;
        let is_it = self.word().eq_ignore_ascii_case(word);
        if !is_it {
            self.rest = before;
        }
        is_it
    }

    fn rule(&mut self) -> Parsed<Vec<Branch>> {
        if !self.eat("IF") {
            self.word();
            let at = self.rest.to_owned();
            return self.mistake(&at, "getting first token ...");
        }
        let mut branches = vec![self.branch()?];
        loop {
            if self.eat("ELSEIF") {
                branches.push(self.branch()?);
            } else if self.eat("ELSE") {
                let action = self.action(None)?;
                branches.push(Branch {
                    conditions: Vec::new(),
                    action,
                    window: Default::default(),
                });
                break;
            } else {
                break;
            }
        }
        if !self.rest.starts_with('.') {
            let at = self.rest.to_owned();
            return self.mistake(&at, "statement incomplete");
        }
        self.take(1);
        Ok(branches)
    }

    fn branch(&mut self) -> Parsed<Branch> {
        let mut conditions = vec![(false, self.condition()?)];
        loop {
            let is_or = match () {
                () if self.eat("AND") => false,
                () if self.eat("OR") => true,
                () => break,
            };
            conditions.push((is_or, self.condition()?));
        }
        if !self.eat("THEN") {
            let at = self.rest.to_owned();
            return self.mistake(&at, "looking for THEN");
        }
        let implied = match &conditions[..] {
            [(_, only)] => Some(only.field.clone()),
            _ => None,
        };
        let action = self.action(implied)?;
        Ok(Branch { conditions, action, window: Default::default() })
    }

    fn field(&mut self) -> Parsed<String> {
        let at = self.rest.to_owned();
        let name = self.word();
        if name.is_empty() {
            return self.mistake(&at, "looking for field");
        }
        let known = NUMBERS.iter().find(|known| known.eq_ignore_ascii_case(name));
        Ok(known.map_or_else(|| name.to_owned(), |known| (*known).to_owned()))
    }

    fn condition(&mut self) -> Parsed<Condition> {
        let is_negated = self.eat("NOT");
        if self.eat("EXISTS") {
            return Ok(Condition { field: self.field()?, test: Test::Exists { is_negated } });
        }
        let field = self.field()?;
        let Some((word, comparator)) =
            COMPARATORS.iter().find(|(word, _)| self.rest.starts_with(word))
        else {
            let at = self.rest.to_owned();
            return self.mistake(&at, "unknown comparator");
        };
        self.take(word.len());
        let datum = self.datum(&field)?;
        Ok(Condition { field, test: Test::Compare(*comparator, datum) })
    }

    /// A value for a field.
    fn datum(&mut self, field: &str) -> Parsed<Datum> {
        let at = self.rest.to_owned();
        if let Some(quote) = self.rest.chars().next().filter(|c| matches!(c, '\'' | '"')) {
            let Some(length) = self.rest[1..].find(quote) else {
                return self.mistake(&at, "string not terminated");
            };
            if field == "prio" {
                return self.mistake(&at, "unknown prio");
            }
            if NUMBERS.contains(&field) {
                return self.mistake(&at, "Argument is of string type, field is not.");
            }
            let text = self.take(length + 2);
            return Ok(Datum::Text(text[1..=length].to_owned()));
        }
        let word = self.word();
        if let Ok(number) = word.parse::<i64>() {
            return match (field, u16::try_from(number)) {
                ("prio", _) => {
                    Ok(Priority::of_number(number).map_or(Datum::Number(number), Datum::Priority))
                }
                ("err_code", Ok(code)) => Ok(Datum::Code(code)),
                _ => Ok(Datum::Number(number)),
            };
        }
        if field == "prio" {
            return match Priority::named(word) {
                Some(priority) => Ok(Datum::Priority(priority)),
                None => self.mistake(&at, "unknown prio"),
            };
        }
        let upper = word.to_ascii_uppercase();
        if let Some(digits) = upper.strip_prefix("MY-")
            && let Ok(code) = digits.parse()
        {
            return Ok(Datum::Code(code));
        }
        if let Some(name) = upper.strip_prefix("ER_") {
            return match ErrorCode::all().find(|code| code.name() == Some(name)) {
                Some(code) => Ok(Datum::Code(code.0)),
                None => self.mistake(&at, "unknown ER_code"),
            };
        }
        self.mistake(&at, "malformed number")
    }

    /// `implied`: the field that SET and UNSET mean if they name none.
    fn action(&mut self, implied: Option<String>) -> Parsed<Action> {
        let at = self.rest.to_owned();
        match self.word().to_ascii_lowercase().as_str() {
            "drop" => Ok(Action::Drop),
            "throttle" => self.throttle(),
            "unset" => Ok(Action::Unset(self.named_field(implied)?)),
            "set" => {
                let field = self.named_field(implied)?;
                for sign in [":=", "="] {
                    if self.rest.starts_with(sign) {
                        self.take(sign.len());
                        break;
                    }
                }
                let datum = self.datum(&field)?;
                Ok(Action::Set(field, datum))
            }
            _ => self.mistake(&at, "looking for action verb"),
        }
    }

    fn named_field(&mut self, implied: Option<String>) -> Parsed<String> {
        let mut after = Reader { rest: self.rest };
        let ends = self.rest.starts_with('.') || self.rest.is_empty();
        if ends || after.eat("ELSEIF") || after.eat("ELSE") {
            let state = "implicit field name only allowed for IFs with exactly 1 condition.";
            return implied.map_or_else(|| self.mistake(self.rest, state), Ok);
        }
        self.field()
    }

    /// `n` or `n/seconds`; a minute if it does not say.
    fn throttle(&mut self) -> Parsed<Action> {
        /// Seconds for which a rule without a number counts.
        const MINUTE: u64 = 60;
        let at = self.rest.to_owned();
        let number = |word: &str| word.parse::<u64>().ok();
        let Some(count) = number(self.word()) else {
            return self.mistake(&at, "malformed number");
        };
        if count == 0 {
            return self.mistake(&at, "numerator must be larger than 0");
        }
        if !self.rest.starts_with('/') {
            return Ok(Action::Throttle(count, MINUTE));
        }
        self.take(1);
        let at = self.rest.to_owned();
        match number(self.word()) {
            Some(0) => self.mistake(&at, "denominator must be larger than 0"),
            Some(seconds) => Ok(Action::Throttle(count, seconds)),
            None => self.mistake(&at, "malformed number"),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.test {
            Test::Exists { is_negated } => {
                write!(f, "{}EXISTS {}", if *is_negated { "NOT " } else { "" }, self.field)
            }
            Test::Compare(comparator, datum) => {
                let word = COMPARATORS.iter().find(|(_, known)| known == comparator);
                write!(f, "{}{}{datum}", self.field, word.map_or("", |(word, _)| word))
            }
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Drop => f.write_str("drop"),
            Action::Throttle(count, seconds) => write!(f, "throttle {count}/{seconds}"),
            Action::Set(field, datum) => write!(f, "set {field}:={datum}"),
            Action::Unset(field) => write!(f, "unset {field}"),
        }
    }
}

/// The rules as they were understood.
impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, branches) in self.0.iter().enumerate() {
            f.write_str(if at > 0 { " " } else { "" })?;
            for (at, branch) in branches.iter().enumerate() {
                f.write_str(match (at, branch.conditions.is_empty()) {
                    (0, _) => "IF ",
                    (_, false) => " ELSEIF ",
                    (_, true) => " ELSE ",
                })?;
                for (at, (is_or, condition)) in branch.conditions.iter().enumerate() {
                    let word = if *is_or { " OR " } else { " AND " };
                    write!(f, "{}{condition}", if at > 0 { word } else { "" })?;
                }
                let then = if branch.conditions.is_empty() { "" } else { " THEN " };
                write!(f, "{then}{}", branch.action)?;
            }
            f.write_str(".")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;
    use plugin_api::Severity;

    fn shown(text: &str) -> String {
        Rules::parse(text)
            .map_or_else(|mistake| mistake.state.to_owned(), |rules| rules.to_string())
    }

    #[test]
    fn rules_are_read_and_shown() {
        assert_eq!(shown("if Prio == error then DROP."), "IF prio==ERROR THEN drop.");
        assert_eq!(
            shown("IF prio>=WARNING THEN throttle 5."),
            "IF prio>=WARNING THEN throttle 5/60."
        );
        assert_eq!(
            shown(
                "IF err_code==ER_ACCESS_DENIED_ERROR OR err_code == MY-000002 THEN set prio NOTE."
            ),
            "IF err_code==MY-001045 OR err_code==MY-000002 THEN set prio:=INFORMATION."
        );
        assert_eq!(
            shown(
                "IF prio==1 THEN unset ELSEIF NOT EXISTS x THEN set x 'y' ELSE drop. IF msg=='a' THEN drop."
            ),
            "IF prio==ERROR THEN unset prio ELSEIF NOT EXISTS x THEN set x:=\"y\" ELSE drop. IF msg==\"a\" THEN drop."
        );
        assert_eq!(shown("bad"), "getting first token ...");
        assert_eq!(shown("IF prio>=NOTE THEN drop"), "statement incomplete");
        assert_eq!(shown("IF prio>=NOTE drop."), "looking for THEN");
        assert_eq!(shown("IF prio>=NOTE THEN explode."), "looking for action verb");
        assert_eq!(shown("IF msg LIKE 'a' THEN drop."), "unknown comparator");
        assert_eq!(shown("IF prio<>'x' THEN drop."), "unknown prio");
        assert_eq!(shown("IF a=='b' THEN throttle 0."), "numerator must be larger than 0");
    }

    #[test]
    fn rules_drop_thin_out_and_change() {
        let record = || Record::new(Severity::Warning, "server", "a message".into());
        let keeps = |text: &str| {
            let mut record = record();
            let kept = Rules::parse(text).unwrap().keep(&mut record, Duration::ZERO);
            kept.then_some(record)
        };
        assert!(keeps("IF prio>=INFORMATION THEN drop.").is_some());
        assert!(keeps("IF prio==WARNING AND subsystem=='server' THEN drop.").is_none());
        assert!(keeps("IF EXISTS err_code OR msg=='a message' THEN drop.").is_none());
        let changed =
            keeps("IF prio==WARNING THEN set prio ERROR. IF prio==ERROR THEN set msg 'other'.");
        let changed = changed.unwrap();
        assert_eq!((changed.severity, changed.message.as_str()), (Severity::Error, "other"));
        let mut rules = Rules::parse("IF prio<=WARNING THEN throttle 2/10.").unwrap();
        let mut kept = |seconds| rules.keep(&mut record(), Duration::from_secs(seconds));
        assert_eq!(
            [kept(1), kept(2), kept(3), kept(11), kept(12), kept(13)],
            [true, true, false, true, true, false]
        );
    }
}
