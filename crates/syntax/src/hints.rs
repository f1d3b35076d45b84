//! Optimizer hints: the text of `/*+ .. */`. An invalid hint ends the list; those before it count, as in the reference.

/// One hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// `MAX_EXECUTION_TIME(milliseconds)`.
    MaxExecutionTime(u64),
    /// `SET_VAR(name = value)`.
    SetVar {
        /// Lower case.
        name: Box<str>,
        /// The value as a literal of the language.
        value: Box<str>,
    },
    /// Hints on the indexes of a table.
    Index {
        /// Which.
        kind: IndexHintName,
        /// The table.
        table: HintTable,
        /// None for all.
        indexes: Vec<Box<str>>,
    },
    /// Hints on the order of joins.
    Order {
        /// Which.
        kind: JoinOrderName,
        /// The block that they apply to, when it is named.
        block: Option<Box<str>>,
        /// Tables in order; none for `JOIN_FIXED_ORDER`.
        tables: Vec<HintTable>,
    },
    /// `RESOURCE_GROUP(name)`.
    ResourceGroup(Box<str>),
    /// `QB_NAME(name)`.
    BlockName(Box<str>),
    /// The name of a hint that has no effect here.
    Advice(&'static str),
}

/// A table in a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintTable {
    /// Alias.
    pub name: Box<str>,
    /// `@block`.
    pub block: Option<Box<str>>,
}

/// Hints on indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IndexHintName {
    Index,
    NoIndex,
    JoinIndex,
    NoJoinIndex,
    GroupIndex,
    NoGroupIndex,
    OrderIndex,
    NoOrderIndex,
}

/// Hints on the order of joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum JoinOrderName {
    Fixed,
    Order,
    Prefix,
    Suffix,
}

/// The hints of a hint comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// In order.
    pub list: Vec<Hint>,
    /// Where in the text the grammar was left.
    pub error_at: Option<usize>,
}

impl IndexHintName {
    /// As written.
    pub fn as_str(self) -> &'static str {
        INDEX_HINTS.iter().find(|(_, kind)| *kind == self).map_or("INDEX", |(name, _)| name)
    }

    /// It keeps indexes from being used.
    pub fn is_negative(self) -> bool {
        self.as_str().starts_with("NO_")
    }
}

impl JoinOrderName {
    /// As written.
    pub fn as_str(self) -> &'static str {
        ORDER_HINTS.iter().find(|(_, kind)| *kind == self).map_or("JOIN_ORDER", |(name, _)| name)
    }
}

const INDEX_HINTS: &[(&str, IndexHintName)] = &[
    ("INDEX", IndexHintName::Index),
    ("NO_INDEX", IndexHintName::NoIndex),
    ("JOIN_INDEX", IndexHintName::JoinIndex),
    ("NO_JOIN_INDEX", IndexHintName::NoJoinIndex),
    ("GROUP_INDEX", IndexHintName::GroupIndex),
    ("NO_GROUP_INDEX", IndexHintName::NoGroupIndex),
    ("ORDER_INDEX", IndexHintName::OrderIndex),
    ("NO_ORDER_INDEX", IndexHintName::NoOrderIndex),
];

const ORDER_HINTS: &[(&str, JoinOrderName)] = &[
    ("JOIN_FIXED_ORDER", JoinOrderName::Fixed),
    ("JOIN_ORDER", JoinOrderName::Order),
    ("JOIN_PREFIX", JoinOrderName::Prefix),
    ("JOIN_SUFFIX", JoinOrderName::Suffix),
];

/// Hints whose arguments are skipped: they choose between methods that do not exist here.
const ADVICE: &[&str] = &[
    "BKA",
    "NO_BKA",
    "BNL",
    "NO_BNL",
    "HASH_JOIN",
    "NO_HASH_JOIN",
    "DERIVED_CONDITION_PUSHDOWN",
    "NO_DERIVED_CONDITION_PUSHDOWN",
    "MERGE",
    "NO_MERGE",
    "MRR",
    "NO_MRR",
    "NO_ICP",
    "NO_RANGE_OPTIMIZATION",
    "INDEX_MERGE",
    "NO_INDEX_MERGE",
    "SKIP_SCAN",
    "NO_SKIP_SCAN",
    "SEMIJOIN",
    "NO_SEMIJOIN",
    "SUBQUERY",
];

/// Reads the text between `/*+` and `*/`.
pub fn parse_hints(text: &str) -> Hints {
    let mut reader = Reader { text, at: 0 };
    let mut hints = Hints::default();
    reader.blanks();
    if reader.at == text.len() {
        // An empty list is an error.
        hints.error_at = Some(text.len());
    }
    while reader.at < text.len() {
        let start = reader.at;
        match reader.hint() {
            Ok(hint) => hints.list.push(hint),
            Err(Stop::Name) => {
                hints.error_at = Some(start);
                break;
            }
            Err(Stop::Here(at)) => {
                hints.error_at = Some(at);
                break;
            }
        }
        reader.blanks();
    }
    hints
}

/// Why reading ends.
enum Stop {
    /// At the name of the hint.
    Name,
    /// At this byte.
    Here(usize),
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, character: char) -> bool {
        self.blanks();
        let found = self.rest().starts_with(character);
        self.at += if found { character.len_utf8() } else { 0 };
        found
    }

    fn expect(&mut self, character: char) -> Result<(), Stop> {
        if self.eat(character) { Ok(()) } else { Err(Stop::Here(self.at)) }
    }

    /// A word: letters, digits, `_`, `$`, and everything beyond ASCII.
    fn word(&mut self) -> Option<&'a str> {
        self.blanks();
        let rest = self.rest();
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if end == 0 {
            return None;
        }
        self.at += end;
        Some(&rest[..end])
    }

    /// A name, with or without quotes.
    fn name(&mut self) -> Result<Box<str>, Stop> {
        self.blanks();
        let quote = match self.rest().chars().next() {
            Some(quote @ ('`' | '"')) => quote,
            _ => return self.word().map(Box::from).ok_or(Stop::Here(self.at)),
        };
        let mut name = String::new();
        let mut characters = self.rest().char_indices().skip(1).peekable();
        while let Some((place, character)) = characters.next() {
            if character != quote {
                name.push(character);
            } else if characters.peek().is_some_and(|(_, next)| *next == quote) {
                name.push(quote);
                characters.next();
            } else {
                self.at += place + 1;
                return Ok(name.into());
            }
        }
        Err(Stop::Here(self.at))
    }

    fn hint(&mut self) -> Result<Hint, Stop> {
        let word = self.word().ok_or(Stop::Name)?.to_ascii_uppercase();
        let indexes = INDEX_HINTS.iter().find(|(name, _)| *name == word);
        let order = ORDER_HINTS.iter().find(|(name, _)| *name == word);
        let advice = ADVICE.iter().find(|name| **name == word);
        let is_own =
            matches!(&*word, "MAX_EXECUTION_TIME" | "SET_VAR" | "QB_NAME" | "RESOURCE_GROUP");
        if indexes.is_none() && order.is_none() && advice.is_none() && !is_own {
            return Err(Stop::Name);
        }
        self.expect('(')?;
        let hint = match (&*word, indexes, order, advice) {
            ("MAX_EXECUTION_TIME", ..) => {
                self.blanks();
                let start = self.at;
                let digits = self.word().and_then(|word| word.parse().ok());
                Hint::MaxExecutionTime(digits.ok_or(Stop::Here(start))?)
            }
            ("SET_VAR", ..) => self.set_var()?,
            ("RESOURCE_GROUP", ..) => Hint::ResourceGroup(self.name()?),
            ("QB_NAME", ..) => Hint::BlockName(self.name()?),
            (_, Some((_, kind)), ..) => self.index_hint(*kind)?,
            (_, _, Some((_, kind)), _) => {
                let block = self.block()?;
                Hint::Order { kind: *kind, block, tables: self.tables()? }
            }
            (.., Some(name)) => {
                self.skip_arguments()?;
                Hint::Advice(name)
            }
            _ => return Err(Stop::Name),
        };
        self.expect(')')?;
        Ok(hint)
    }

    /// `name = literal`.
    fn set_var(&mut self) -> Result<Hint, Stop> {
        let name = self.name()?.to_ascii_lowercase().into();
        self.expect('=')?;
        self.blanks();
        let start = self.at;
        match self.rest().chars().next() {
            Some(quote @ ('\'' | '"')) => {
                let mut characters = self.rest().char_indices().skip(1).peekable();
                loop {
                    let Some((place, character)) = characters.next() else {
                        return Err(Stop::Here(start));
                    };
                    if character == '\\' {
                        characters.next();
                    } else if character == quote {
                        if characters.peek().is_some_and(|(_, next)| *next == quote) {
                            characters.next();
                            continue;
                        }
                        self.at = start + place + 1;
                        break;
                    }
                }
            }
            _ => {
                let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
                let rest = self.rest();
                let end = rest.find(|c| !part(c)).unwrap_or(rest.len());
                if end == 0 {
                    return Err(Stop::Here(start));
                }
                self.at += end;
            }
        }
        Ok(Hint::SetVar { name, value: self.text[start..self.at].into() })
    }

    /// `@block`, in front of a list.
    fn block(&mut self) -> Result<Option<Box<str>>, Stop> {
        if self.eat('@') { self.name().map(Some) } else { Ok(None) }
    }

    fn table(&mut self) -> Result<HintTable, Stop> {
        let name = self.name()?;
        Ok(HintTable { name, block: self.block()? })
    }

    fn tables(&mut self) -> Result<Vec<HintTable>, Stop> {
        self.blanks();
        let mut tables = Vec::new();
        if self.rest().starts_with(')') {
            return Ok(tables);
        }
        loop {
            tables.push(self.table()?);
            if !self.eat(',') {
                return Ok(tables);
            }
        }
    }

    /// `table[@block] [index, ..]` or `@block table [index, ..]`.
    fn index_hint(&mut self, kind: IndexHintName) -> Result<Hint, Stop> {
        let block = self.block()?;
        let mut table = self.table()?;
        table.block = table.block.or(block);
        let mut indexes = Vec::new();
        self.blanks();
        if !self.rest().starts_with(')') {
            indexes.push(self.name()?);
            while self.eat(',') {
                indexes.push(self.name()?);
            }
        }
        Ok(Hint::Index { kind, table, indexes })
    }

    /// Names, commas and blocks up to the closing parenthesis.
    fn skip_arguments(&mut self) -> Result<(), Stop> {
        loop {
            self.blanks();
            match self.rest().chars().next() {
                Some(')') => return Ok(()),
                Some(',' | '@') => self.at += 1,
                _ => _ = self.name()?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_read() {
        let text = "MAX_EXECUTION_TIME(7) set_var(sort_buffer_size = 16M) SET_VAR(sql_mode='a''b') \
                    INDEX(t@q `k``1`, k2) NO_INDEX(t) JOIN_PREFIX(@q a, b@c) JOIN_FIXED_ORDER() \
                    QB_NAME(q) NO_ICP(t k)";
        let hints = parse_hints(text);
        assert_eq!(hints.error_at, None);
        assert_eq!(hints.list.len(), 9);
        assert_eq!(hints.list[0], Hint::MaxExecutionTime(7));
        let value = "16M".into();
        assert_eq!(hints.list[1], Hint::SetVar { name: "sort_buffer_size".into(), value });
        let Hint::Index { indexes, table, .. } = &hints.list[3] else { panic!() };
        assert_eq!((&*indexes[0], table.block.as_deref()), ("k`1", Some("q")));
    }

    #[test]
    fn what_is_no_hint_ends_the_list() {
        let hints = parse_hints(" QB_NAME(q) NOSUCH(t) QB_NAME(r)");
        assert_eq!((hints.list.len(), hints.error_at), (1, Some(12)));
        assert_eq!(parse_hints(" ").error_at, Some(1));
        for text in ["INDEX(t,k)", "SET_VAR(a=-1)", "QB_NAME(`q)", "JOIN_ORDER(a,)", "INDEX("] {
            assert!(parse_hints(text).error_at.is_some(), "{text}");
        }
    }
}
