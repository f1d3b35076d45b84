//! From ICU's pattern syntax to that of the regex crates.
//!
//! Most of it is the same. The differences: escapes (`\h`, `\R`, `\X`, `\Q..\E`, `\uhhhh`, unknown letters), line ends for `.` and `$`,
//! comments, and `{` that must be a bound.

use errors::{Error, ErrorCode, Result};

use super::engine::Options;

/// Characters of `[:name:]`.
const CLASS_NAME_MAX: usize = 32;
/// Depth of groups.
const DEPTH_MAX: usize = 200;

/// A pattern in the crates' syntax.
pub(crate) struct Translated {
    pub(crate) text: String,
    /// It has look-around, back-references, atomic groups or possessive quantifiers.
    pub(crate) backtracking: bool,
}

struct Translator<'a> {
    source: &'a [char],
    at: usize,
    out: String,
    backtracking: bool,
    flags: Flags,
    /// The groups around the place.
    groups: Vec<Group>,
    /// The previous item can take a quantifier.
    operand: bool,
}

#[derive(Clone, Copy)]
struct Flags {
    dot_all: bool,
    unix_lines: bool,
    multi_line: bool,
}

struct Group {
    /// The flags before it, which hold again after it.
    outside: Flags,
    looks_behind: bool,
}

/// # Errors
/// The reference's error number for the first fault.
pub(crate) fn translate(pattern: &str, options: Options) -> Result<Translated> {
    let source: Vec<char> = pattern.chars().collect();
    let mut translator = Translator {
        source: &source,
        at: 0,
        out: String::with_capacity(pattern.len() + 16),
        backtracking: false,
        flags: Flags {
            dot_all: options.dot_all,
            unix_lines: options.unix_lines,
            multi_line: options.multi_line,
        },
        groups: Vec::new(),
        operand: false,
    };
    if options.case_insensitive {
        translator.out.push_str("(?i)");
    }
    if options.multi_line {
        translator.out.push_str("(?m)");
    }
    while translator.at < source.len() {
        translator.step()?;
    }
    if !translator.groups.is_empty() {
        return Err(simple(ErrorCode::REGEXP_MISMATCHED_PAREN));
    }
    Ok(Translated { text: translator.out, backtracking: translator.backtracking })
}

#[cold]
fn simple(code: ErrorCode) -> Error {
    Error::with(code, &[])
}

/// The preceding item in a bracket expression.
#[derive(Clone, Copy)]
enum SetItem {
    /// An item that a hyphen cannot act on.
    Begin,
    /// A character, which may begin a range.
    Character,
    /// A range's hyphen.
    Range,
    /// A class such as `\d`.
    Class,
    /// A nested set or `[:class:]`.
    Set,
}

impl Translator<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.source.get(self.at + ahead).copied()
    }

    fn syntax_error(&self) -> Error {
        Error::with(ErrorCode::REGEXP_RULE_SYNTAX, &[&1, &(self.at + 1)])
    }

    fn step(&mut self) -> Result<()> {
        let c = self.source[self.at];
        match c {
            '\\' => self.escape(false),
            '[' => self.set(),
            '(' => self.open(),
            ')' => {
                let group = self.groups.pop();
                let group = group.ok_or_else(|| simple(ErrorCode::REGEXP_MISMATCHED_PAREN))?;
                self.flags = group.outside;
                self.emit(c, true)
            }
            '*' | '+' | '?' | '{' => self.quantifier(),
            '|' => self.emit(c, false),
            '^' => self.emit(c, true),
            '$' => {
                self.dollar();
                Ok(())
            }
            '.' => {
                self.out.push_str(match (self.flags.dot_all, self.flags.unix_lines) {
                    (true, _) => r"(?s:.)",
                    (false, true) => r"[^\n]",
                    (false, false) => r"[^\n\x0B\x0C\r\x{85}\x{2028}\x{2029}]",
                });
                self.at += 1;
                self.operand = true;
                Ok(())
            }
            '}' | ']' => {
                self.out.push('\\');
                self.emit(c, true)
            }
            _ => self.emit(c, true),
        }
    }

    fn emit(&mut self, c: char, operand: bool) -> Result<()> {
        self.out.push(c);
        self.at += 1;
        self.operand = operand;
        Ok(())
    }

    /// The end, or before a line end at the end; in the rare pattern that continues after it, the plain end.
    fn dollar(&mut self) {
        if self.flags.multi_line {
            self.out.push('$');
        } else {
            self.out.push_str(r"(?:\r?\n)?\z");
            if self.at + 1 < self.source.len() || !self.groups.is_empty() {
                self.out.truncate(self.out.len() - r"(?:\r?\n)?\z".len());
                self.out.push_str(r"\z");
            }
        }
        self.at += 1;
        self.operand = true;
    }

    fn open(&mut self) -> Result<()> {
        if self.peek(1) == Some('?') && self.peek(2) == Some('#') {
            // What precedes a comment can still take a quantifier.
            let end = self.source[self.at..].iter().position(|c| *c == ')');
            self.at += end.ok_or_else(|| simple(ErrorCode::REGEXP_MISMATCHED_PAREN))? + 1;
            return Ok(());
        }
        let looks_behind = self.peek(1) == Some('?')
            && self.peek(2) == Some('<')
            && matches!(self.peek(3), Some('=' | '!'));
        self.groups.push(Group { outside: self.flags, looks_behind });
        if self.groups.len() > DEPTH_MAX {
            return Err(simple(ErrorCode::REGEXP_STACK_OVERFLOW));
        }
        self.operand = false;
        if self.peek(1) != Some('?') {
            return self.emit('(', false);
        }
        match (self.peek(2), self.peek(3)) {
            (Some('=' | '!' | '>'), _) | (Some('<'), Some('=' | '!')) => {
                self.backtracking = true;
                let length = if self.peek(2) == Some('<') { 4 } else { 3 };
                self.copy(length);
                Ok(())
            }
            (Some(':'), _) => {
                self.copy(3);
                Ok(())
            }
            (Some('<'), Some(c)) if c.is_alphabetic() => {
                self.copy(3);
                Ok(())
            }
            // Conditions and code, which Perl has.
            (Some('(' | '{'), _) => Err(simple(ErrorCode::REGEXP_UNIMPLEMENTED)),
            _ => self.flags(),
        }
    }

    fn copy(&mut self, count: usize) {
        let end = (self.at + count).min(self.source.len());
        self.out.extend(&self.source[self.at..end]);
        self.at = end;
    }

    /// `(?ismwx-ismwx)` and `(?ismwx-ismwx:`.
    fn flags(&mut self) -> Result<()> {
        self.at += 2;
        let (mut on, mut off, mut negative) = (String::new(), String::new(), false);
        loop {
            let Some(c) = self.peek(0) else {
                return Err(simple(ErrorCode::REGEXP_MISMATCHED_PAREN));
            };
            match c {
                '-' if !negative => negative = true,
                'i' | 'x' | 'm' | 's' => {
                    match c {
                        's' => self.flags.dot_all = !negative,
                        'm' => self.flags.multi_line = !negative,
                        _ => {}
                    }
                    if negative { off.push(c) } else { on.push(c) }
                }
                'w' => {}
                'd' => self.flags.unix_lines = !negative,
                ')' | ':' => {
                    self.at += 1;
                    self.out.push_str("(?");
                    self.out.push_str(&on);
                    if !off.is_empty() {
                        self.out.push('-');
                        self.out.push_str(&off);
                    }
                    if on.is_empty() && off.is_empty() && c == ')' {
                        self.out.push(':');
                    }
                    self.out.push(c);
                    if c == ')' {
                        // They hold to the end of the group around.
                        self.groups.pop();
                    }
                    return Ok(());
                }
                _ => return Err(self.syntax_error()),
            }
            self.at += 1;
        }
    }

    fn quantifier(&mut self) -> Result<()> {
        if !self.operand {
            return Err(self.syntax_error());
        }
        let is_bounded = match self.source[self.at] {
            '{' => self.bound()?,
            c => {
                self.copy(1);
                c == '?'
            }
        };
        if !is_bounded && self.groups.iter().any(|group| group.looks_behind) {
            return Err(simple(ErrorCode::REGEXP_LOOK_BEHIND_LIMIT));
        }
        match self.peek(0) {
            Some('?') => self.copy(1),
            Some('+') => {
                self.backtracking = true;
                self.copy(1);
            }
            _ => {}
        }
        self.operand = false;
        Ok(())
    }

    /// `{n}`, `{n,}`, `{n,m}`: whether it has an upper end.
    fn bound(&mut self) -> Result<bool> {
        let bad = || simple(ErrorCode::REGEXP_BAD_INTERVAL);
        let close = self.source[self.at..].iter().position(|c| *c == '}').ok_or_else(bad)?;
        let inner: String = self.source[self.at + 1..self.at + close].iter().collect();
        let (low, high) =
            inner.split_once(',').map_or((inner.as_str(), None), |(low, high)| (low, Some(high)));
        let number = |text: &str| -> Result<u32> {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            if !digits {
                return Err(bad());
            }
            text.parse().map_err(|_| simple(ErrorCode(3887)))
        };
        let low = number(low)?;
        let is_bounded = high.is_none_or(|high| !high.is_empty());
        let high = high.filter(|high| !high.is_empty()).map(number).transpose()?;
        if high.is_some_and(|high| high < low) {
            return Err(simple(ErrorCode::REGEXP_MAX_LT_MIN));
        }
        self.copy(close + 1);
        Ok(is_bounded)
    }

    /// A bracket expression, with nested sets and `[:classes:]`.
    fn set(&mut self) -> Result<()> {
        let unclosed = || simple(ErrorCode::REGEXP_MISSING_CLOSE_BRACKET);
        let mut depth = 0;
        let mut last = SetItem::Begin;
        loop {
            let c = self.peek(0).ok_or_else(unclosed)?;
            match c {
                // A class alone is a set.
                '[' if depth == 0 && self.at_posix_class() => {
                    self.posix_class()?;
                    self.operand = true;
                    return Ok(());
                }
                '[' if self.at_posix_class() => {
                    self.posix_class()?;
                    last = SetItem::Set;
                }
                '[' => {
                    depth += 1;
                    if depth > DEPTH_MAX {
                        return Err(simple(ErrorCode::REGEXP_STACK_OVERFLOW));
                    }
                    self.copy(1);
                    last = SetItem::Begin;
                    if self.peek(0) == Some('^') {
                        self.copy(1);
                    }
                    if self.peek(0) == Some(']') {
                        self.out.push('\\');
                        self.copy(1);
                        last = SetItem::Character;
                    }
                }
                ']' => {
                    depth -= 1;
                    self.copy(1);
                    if depth == 0 {
                        self.operand = true;
                        return Ok(());
                    }
                    last = SetItem::Set;
                }
                '-' => last = self.set_hyphen(last)?,
                '\\' => {
                    let is_class = self.peek(1).is_some_and(|c| "dDsSwWhHvpP".contains(c));
                    self.escape(true)?;
                    last = match (is_class, last) {
                        (true, _) => SetItem::Class,
                        (false, SetItem::Range) => SetItem::Begin,
                        (false, _) => SetItem::Character,
                    };
                }
                _ => {
                    if c == '~' {
                        self.out.push('\\');
                    }
                    self.copy(1);
                    last = match last {
                        SetItem::Range => SetItem::Begin,
                        _ => SetItem::Character,
                    };
                }
            }
        }
    }

    /// A hyphen in a set: a range after a character, a difference of sets, or itself.
    fn set_hyphen(&mut self, last: SetItem) -> Result<SetItem> {
        let next = self.peek(1);
        if next == Some('-') && !matches!(last, SetItem::Begin | SetItem::Range) {
            self.copy(2);
            return Ok(SetItem::Begin);
        }
        match (last, next) {
            (SetItem::Set, Some('[')) => {
                self.out.push('-');
                self.copy(1);
                Ok(SetItem::Begin)
            }
            // A class cannot begin a range, and a set cannot end one.
            (SetItem::Class, _) | (SetItem::Character, Some('[')) => {
                self.out.push('\\');
                self.copy(1);
                Ok(SetItem::Begin)
            }
            (SetItem::Character, Some('\\'))
                if self.peek(2).is_some_and(|c| "dDsSwW".contains(c)) =>
            {
                self.at += 2;
                Err(self.syntax_error())
            }
            (SetItem::Character, _) => {
                self.copy(1);
                Ok(SetItem::Range)
            }
            _ => {
                self.copy(1);
                Ok(SetItem::Begin)
            }
        }
    }

    /// `[:`, if `:]` follows; otherwise a set begins with a colon.
    fn at_posix_class(&self) -> bool {
        let rest = &self.source[self.at..];
        rest.starts_with(&['[', ':'])
            && rest[2..].windows(2).take(CLASS_NAME_MAX).any(|pair| pair == [':', ']'])
    }

    fn posix_class(&mut self) -> Result<()> {
        const NAMES: &[(&str, &str)] = &[
            ("alpha", r"\p{Alphabetic}"),
            ("lower", r"\p{Lowercase}"),
            ("upper", r"\p{Uppercase}"),
            ("digit", r"\p{Nd}"),
            ("xdigit", r"0-9A-Fa-f"),
            ("alnum", r"\p{Alphabetic}\p{Nd}"),
            ("punct", r"\p{P}"),
            ("space", r"\s"),
            ("blank", r"\t\p{Zs}"),
            ("cntrl", r"\p{Cc}"),
            ("graph", r"[^\s\p{Cc}\p{Cn}]"),
            ("print", r"[^\p{Cc}\p{Cn}]"),
            ("ascii", r"\x00-\x7F"),
            ("word", r"\w"),
        ];
        let rest: String = self.source[self.at + 2..].iter().take(CLASS_NAME_MAX + 2).collect();
        let end = rest.find(":]").ok_or_else(|| simple(ErrorCode::REGEXP_ILLEGAL_ARGUMENT))?;
        let (negated, name) =
            rest[..end].strip_prefix('^').map_or((false, &rest[..end]), |name| (true, name));
        let class = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let (_, class) = class.ok_or_else(|| simple(ErrorCode::REGEXP_ILLEGAL_ARGUMENT))?;
        self.out.push_str(if negated { "[^" } else { "[" });
        self.out.push_str(class);
        self.out.push(']');
        self.at += 2 + rest[..end].chars().count() + 2;
        Ok(())
    }

    fn escape(&mut self, in_set: bool) -> Result<()> {
        let bad = || simple(ErrorCode::REGEXP_BAD_ESCAPE_SEQUENCE);
        let c = self.peek(1).ok_or_else(bad)?;
        self.operand = true;
        let fixed = match c {
            'h' => r"[\t\p{Zs}]",
            'H' => r"[^\t\p{Zs}]",
            'e' => r"\x1B",
            'a' => r"\x07",
            'v' => r"[\n\x0B\x0C\r\x{85}\x{2028}\x{2029}]",
            'R' if !in_set => r"(?:\r\n|[\n\x0B\x0C\r\x{85}\x{2028}\x{2029}])",
            'X' if !in_set => r"(?:\P{M}\p{M}*)",
            'Z' if !in_set => r"(?:\r?\n)?\z",
            'A' | 'z' | 'b' | 'B' if !in_set => {
                self.copy(2);
                return Ok(());
            }
            'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'n' | 'r' | 't' | 'f' => {
                self.copy(2);
                return Ok(());
            }
            _ => return self.long_escape(c, in_set),
        };
        self.out.push_str(fixed);
        self.at += 2;
        Ok(())
    }

    fn long_escape(&mut self, c: char, in_set: bool) -> Result<()> {
        let bad = || simple(ErrorCode::REGEXP_BAD_ESCAPE_SEQUENCE);
        match c {
            'p' | 'P' => {
                let close = self.source[self.at..].iter().position(|c| *c == '}');
                let closed = close
                    .filter(|_| self.peek(2) == Some('{'))
                    .ok_or_else(|| simple(ErrorCode::REGEXP_ILLEGAL_ARGUMENT))?;
                self.copy(closed + 1);
            }
            'u' => self.code_point(2, 4, 16)?,
            'U' => self.code_point(2, 8, 16)?,
            'x' if self.peek(2) == Some('{') => {
                let close =
                    self.source[self.at..].iter().position(|c| *c == '}').ok_or_else(bad)?;
                self.code_point(3, close - 3, 16)?;
                self.at += 1;
            }
            'x' => {
                let digits = (2..4)
                    .take_while(|at| self.peek(*at).is_some_and(|c| c.is_ascii_hexdigit()))
                    .count();
                self.code_point(2, digits, 16)?;
            }
            '0' => {
                let digits =
                    (2..5).take_while(|at| self.peek(*at).is_some_and(|c| c.is_digit(8))).count();
                self.code_point(2, digits, 8)?;
            }
            'c' => {
                let control = self.peek(2).ok_or_else(bad)?;
                self.literal(char::from_u32(control as u32 & 0x1F).unwrap_or('\0'));
                self.at += 3;
            }
            'Q' => {
                self.at += 2;
                while self.at < self.source.len() {
                    if self.peek(0) == Some('\\') && self.peek(1) == Some('E') {
                        self.at += 2;
                        break;
                    }
                    let c = self.source[self.at];
                    self.literal(c);
                    self.at += 1;
                }
            }
            '1'..='9' if !in_set => {
                self.backtracking = true;
                self.copy(2);
            }
            'k' if !in_set => {
                self.backtracking = true;
                self.copy(2);
            }
            'G' | 'N' => return Err(simple(ErrorCode::REGEXP_UNIMPLEMENTED)),
            _ => {
                self.literal(c);
                self.at += 2;
            }
        }
        Ok(())
    }

    /// A code point of `count` digits that start `skip` characters after the backslash.
    fn code_point(&mut self, skip: usize, count: usize, radix: u32) -> Result<()> {
        let bad = || simple(ErrorCode::REGEXP_BAD_ESCAPE_SEQUENCE);
        let digits: String = self.source.iter().skip(self.at + skip).take(count).collect();
        if count == 0 || digits.len() != count {
            return Err(bad());
        }
        let point =
            u32::from_str_radix(&digits, radix).ok().and_then(char::from_u32).ok_or_else(bad)?;
        self.literal(point);
        self.at += skip + count;
        Ok(())
    }

    /// A literal character.
    fn literal(&mut self, c: char) {
        if c.is_ascii_alphanumeric() || !c.is_ascii() {
            self.out.push(c);
        } else {
            self.out.push_str(&format!("\\x{{{:X}}}", c as u32));
        }
    }
}
