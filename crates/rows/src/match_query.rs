//! The query of AGAINST: words in natural language, or the small language of boolean mode. Reads no index.

use errors::{Error, ErrorCode, Result};
use types::fulltext::{Analyzer, WORD_CHARS_MIN, WordParser, tokens};

/// Deepest parentheses.
const DEPTH_MAX: usize = 200;

/// The role of a part of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// They fit the better.
    Optional,
    /// `+`: all others do not fit.
    Required,
    /// `-`: they do not fit.
    Excluded,
    /// `>`: they come first.
    Raised,
    /// `<`: they come last.
    Lowered,
    /// `~`: they lower the rank.
    Ignored,
}

/// A part of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Word(String),
    /// `word*`.
    Prefix(String),
    /// `"words"`; with `@distance` anywhere within that many words.
    Phrase(String, Option<usize>),
    Group(Vec<(Role, Part)>),
}

/// Words; quoted ones form a phrase.
pub fn natural(text: &str) -> Part {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (plain, quoted, behind) = match rest.split_once('"') {
            Some((plain, behind)) => match behind.split_once('"') {
                Some((quoted, behind)) => (plain, Some(quoted), behind),
                None => (plain, None, behind),
            },
            None => (rest, None, ""),
        };
        parts.extend(tokens(plain).map(|word| (Role::Optional, Part::Word(word.into()))));
        parts.extend(quoted.map(|text| (Role::Optional, Part::Phrase(text.into(), None))));
        rest = behind;
    }
    Part::Group(parts)
}

/// The query for an index of grams: a word is one of its grams in natural language, and all of them in a row in boolean mode.
pub fn in_grams(query: Part, parser: WordParser, is_boolean: bool, analyzer: &Analyzer) -> Part {
    let WordParser::Grams(size) = parser else { return query };
    match query {
        Part::Word(word) if is_boolean => Part::Phrase(word, None),
        Part::Word(word) => {
            let grams = analyzer.tokens(&word).into_iter();
            Part::Group(grams.map(|gram| (Role::Optional, Part::Word(gram.into()))).collect())
        }
        Part::Prefix(word) if word.chars().count() >= usize::from(size) => Part::Phrase(word, None),
        Part::Prefix(_) | Part::Phrase(..) => query,
        Part::Group(parts) => {
            let part = |(role, part)| (role, in_grams(part, parser, is_boolean, analyzer));
            Part::Group(parts.into_iter().map(part).collect())
        }
    }
}

/// A query of boolean mode.
///
/// # Errors
/// 1064.
pub fn boolean(text: &str) -> Result<Part> {
    let mut parser = Parser { symbols: symbols(text), at: 0, depth: 0 };
    let parts = parser.list()?;
    match parser.next() {
        Symbol::End => Ok(Part::Group(parts)),
        other => Err(unexpected(&other, ", expecting $end")),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Symbol<'q> {
    /// One of `+-~<>()*@`.
    Sign(char),
    Number(&'q str),
    Term(&'q str),
    Quoted(&'q str),
    End,
}

fn unexpected(symbol: &Symbol<'_>, expecting: &str) -> Error {
    let name = match symbol {
        Symbol::Sign(sign) => format!("'{sign}'"),
        Symbol::Number(_) => "FTS_NUMB".into(),
        Symbol::Term(_) => "FTS_TERM".into(),
        Symbol::Quoted(_) => "FTS_TEXT".into(),
        Symbol::End => "$end".into(),
    };
    Error::new(ErrorCode::PARSE_ERROR, format!("syntax error, unexpected {name}{expecting}"))
}

fn symbols(text: &str) -> Vec<Symbol<'_>> {
    let is_sign = |letter: char| "+-~<>()*@".contains(letter);
    let is_border = |letter: char| is_sign(letter) || "\"% \t\r\n".contains(letter);
    let mut symbols = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let behind = &rest[first.len_utf8()..];
        if is_sign(first) {
            symbols.push(Symbol::Sign(first));
            rest = behind;
        } else if first == '"'
            && let Some((quoted, behind)) = behind.split_once('"')
        {
            symbols.push(Symbol::Quoted(quoted));
            rest = behind;
        } else if is_border(first) {
            rest = behind;
        } else {
            let (term, behind) = rest.split_at(rest.find(is_border).unwrap_or(rest.len()));
            let is_number = term.bytes().all(|byte| byte.is_ascii_digit());
            symbols.push(if is_number { Symbol::Number(term) } else { Symbol::Term(term) });
            rest = behind;
        }
    }
    symbols
}

struct Parser<'q> {
    symbols: Vec<Symbol<'q>>,
    at: usize,
    depth: usize,
}

impl<'q> Parser<'q> {
    fn peek(&self) -> Symbol<'q> {
        self.symbols.get(self.at).cloned().unwrap_or(Symbol::End)
    }

    fn next(&mut self) -> Symbol<'q> {
        let symbol = self.peek();
        self.at += 1;
        symbol
    }

    fn takes(&mut self, sign: char) -> bool {
        let takes = self.peek() == Symbol::Sign(sign);
        self.at += usize::from(takes);
        takes
    }

    /// Parts, up to a token that cannot begin one.
    fn list(&mut self) -> Result<Vec<(Role, Part)>> {
        let mut parts = Vec::new();
        loop {
            let role = match self.peek() {
                Symbol::End | Symbol::Sign(')' | '@') => return Ok(parts),
                Symbol::Sign('+') => Role::Required,
                Symbol::Sign('-') => Role::Excluded,
                Symbol::Sign('>') => Role::Raised,
                Symbol::Sign('<') => Role::Lowered,
                Symbol::Sign('~') => Role::Ignored,
                _ => Role::Optional,
            };
            self.at += usize::from(role != Role::Optional);
            self.part(role, &mut parts)?;
        }
    }

    /// The operand of an operator.
    fn part(&mut self, role: Role, parts: &mut Vec<(Role, Part)>) -> Result<()> {
        match self.next() {
            Symbol::Sign('(') => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(Error::with(ErrorCode::STACK_OVERRUN, &[&0, &0, &0]));
                }
                let group = self.list()?;
                self.depth -= 1;
                match self.next() {
                    Symbol::Sign(')') => parts.push((role, Part::Group(group))),
                    other => return Err(unexpected(&other, "")),
                }
            }
            Symbol::Quoted(text) => {
                let mut distance = None;
                if self.takes('@') {
                    let Symbol::Number(digits) = self.peek() else {
                        return Err(unexpected(&self.peek(), ", expecting FTS_NUMB"));
                    };
                    self.at += 1;
                    distance = Some(digits.parse().unwrap_or(usize::MAX));
                }
                parts.push((role, Part::Phrase(text.into(), distance)));
            }
            Symbol::Sign('*') => match self.next() {
                Symbol::Term(text) | Symbol::Number(text) => add_words(role, text, false, parts),
                other => {
                    let expecting = ", expecting FTS_TERM or FTS_NUMB or '*'";
                    return Err(unexpected(&other, expecting));
                }
            },
            Symbol::Term(text) | Symbol::Number(text) => {
                let is_prefix = self.takes('*');
                add_words(role, text, is_prefix, parts);
            }
            other => return Err(unexpected(&other, "")),
        }
        Ok(())
    }
}

/// The words of a term. If non-word characters separate several words, an operator applies to all of them; then the term has no
/// prefixes, and excludes nothing.
fn add_words(role: Role, term: &str, is_prefix: bool, parts: &mut Vec<(Role, Part)>) {
    let words: Vec<&str> = tokens(term).collect();
    if let [word] = words[..] {
        let word = word.to_owned();
        parts.push((role, if is_prefix { Part::Prefix(word) } else { Part::Word(word) }));
        return;
    }
    let (outer, inner) = match role {
        Role::Excluded | Role::Ignored => return,
        Role::Required => (role, role),
        Role::Optional | Role::Raised | Role::Lowered => (role, Role::Optional),
    };
    let is_long = |word: &str| word.chars().count() >= WORD_CHARS_MIN;
    let words = words.iter().enumerate();
    // Short words after another do not count.
    let words: Vec<_> = words
        .filter(|(at, word)| *at == 0 || is_long(word))
        .map(|(_, word)| (inner, Part::Word((*word).into())))
        .collect();
    if !words.is_empty() {
        parts.push((outer, Part::Group(words)));
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, Role, boolean, natural};

    /// The query as it was understood.
    fn shown(part: &Part) -> String {
        match part {
            Part::Word(word) => word.clone(),
            Part::Prefix(word) => format!("{word}*"),
            Part::Phrase(text, None) => format!("\"{text}\""),
            Part::Phrase(text, Some(distance)) => format!("\"{text}\"@{distance}"),
            Part::Group(parts) => {
                let part = |(role, part): &(Role, Part)| {
                    let sign = match role {
                        Role::Optional => "",
                        Role::Required => "+",
                        Role::Excluded => "-",
                        Role::Raised => ">",
                        Role::Lowered => "<",
                        Role::Ignored => "~",
                    };
                    format!("{sign}{}", shown(part))
                };
                format!("({})", parts.iter().map(part).collect::<Vec<_>>().join(" "))
            }
        }
    }

    fn parsed(text: &str) -> String {
        boolean(text).map_or_else(|error| error.message().to_owned(), |part| shown(&part))
    }

    #[test]
    fn natural_language_has_words_and_phrases() {
        let query = shown(&natural("+some words* \"a phrase\" more\"and no end"));
        assert_eq!(query, "(some words \"a phrase\" more and no end)");
    }

    #[test]
    fn operators_stand_before_words_phrases_and_groups() {
        assert_eq!(
            parsed("+apple -(pie >cake) ~\"sour milk\""),
            "(+apple -(pie >cake) ~\"sour milk\")"
        );
        assert_eq!(parsed("apple* +1001 <\"two words\" @8"), "(apple* +1001 <\"two words\"@8)");
        assert_eq!(parsed("+ apple-pie"), "(+apple -pie)");
        assert_eq!(parsed("*sql"), "(sql)");
        assert_eq!(parsed("() \"\" % &"), "(() \"\")");
    }

    #[test]
    fn a_term_may_have_several_words() {
        assert_eq!(parsed("+o'clock >don't a.b*"), "(+(+o +clock) >(don) (a))");
        assert_eq!(parsed("-a.b ~c.d -e"), "(-e)");
        assert_eq!(parsed("\"no end"), "(no end)");
    }

    #[test]
    fn wrong_queries_are_refused() {
        for (query, message) in [
            ("+", "syntax error, unexpected $end"),
            ("((", "syntax error, unexpected $end"),
            ("+-a", "syntax error, unexpected '-'"),
            ("a)", "syntax error, unexpected ')', expecting $end"),
            ("a@b", "syntax error, unexpected '@', expecting $end"),
            ("\"a b\" @", "syntax error, unexpected $end, expecting FTS_NUMB"),
            ("a **", "syntax error, unexpected $end, expecting FTS_TERM or FTS_NUMB or '*'"),
        ] {
            assert_eq!(parsed(query), message, "{query}");
        }
        let deep = "(".repeat(100_000);
        assert!(boolean(&deep).is_err());
    }
}
