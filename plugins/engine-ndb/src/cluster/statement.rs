//! What follows ALTER CLUSTER, read.

use errors::{Error, Result, bail, err};

use super::parameters::{self, Parameter};

/// An address of a data node that joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u32,
    /// Where it keeps its files; as the first data node otherwise.
    pub(super) directory: Option<String>,
}

/// A change of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    Set(Vec<(&'static Parameter, u64)>),
    Add(Vec<Address>),
    Drop(Vec<i32>),
    /// Of these data nodes, or all.
    Restart(Vec<i32>),
    Stop(i32),
    Start(i32),
    Backup,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Symbol(char),
}

/// The words, each with where it begins.
fn tokens(text: &str) -> Result<Vec<(usize, Token)>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let at = text.len() - rest.len();
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
        let taken = if first.is_whitespace() {
            first.len_utf8()
        } else if rest.starts_with("/*") {
            rest.find("*/").ok_or_else(|| near(rest))? + 2
        } else if first == '#' || rest.starts_with("-- ") {
            rest.find('\n').unwrap_or(rest.len())
        } else if is_word(first) {
            let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
            found.push((at, Token::Word(rest[..end].to_owned())));
            end
        } else if matches!(first, '\'' | '"') {
            let end = rest[1..].find(first).ok_or_else(|| near(rest))? + 1;
            found.push((at, Token::Text(rest[1..end].to_owned())));
            end + 1
        } else {
            found.push((at, Token::Symbol(first)));
            first.len_utf8()
        };
        rest = &rest[taken..];
    }
    Ok(found)
}

fn near(rest: &str) -> Error {
    let shown: String = rest.chars().take(80).collect();
    err!(PARSE_ERROR, shown, 1)
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<(usize, Token)>,
    at: usize,
}

/// Reads what follows ALTER CLUSTER.
///
/// # Errors
/// 1064; 1193 for a parameter that is not there, 1231 for its value, 1235 for one that no running cluster can change, and for RESTORE.
pub(super) fn parse(text: &str) -> Result<Change> {
    let mut parser = Parser { text, tokens: tokens(text)?, at: 0 };
    let change = parser.change()?;
    match parser.at == parser.tokens.len() {
        true => Ok(change),
        false => Err(parser.fail()),
    }
}

impl Parser<'_> {
    fn fail(&self) -> Error {
        let start = self.tokens.get(self.at).map_or(self.text.len(), |(start, _)| *start);
        near(&self.text[start..])
    }

    fn next(&mut self) -> Result<Token> {
        let token = self.tokens.get(self.at).map(|(_, token)| token.clone());
        let token = token.ok_or_else(|| self.fail())?;
        self.at += 1;
        Ok(token)
    }

    fn eat(&mut self, wanted: &str) -> bool {
        let found = match self.tokens.get(self.at) {
            Some((_, Token::Word(word))) => word.eq_ignore_ascii_case(wanted),
            Some((_, Token::Symbol(symbol))) => wanted.chars().eq([*symbol]),
            Some((_, Token::Text(_))) | None => false,
        };
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: &str) -> Result<()> {
        if self.eat(wanted) { Ok(()) } else { Err(self.fail()) }
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn change(&mut self) -> Result<Change> {
        if self.eat("SET") {
            return self.list(Self::setting).map(Change::Set);
        }
        if self.eat("ADD") {
            self.expect("NODE")?;
            return self.list(Self::address).map(Change::Add);
        }
        if self.eat("DROP") {
            self.expect("NODE")?;
            return self.list(Self::node).map(Change::Drop);
        }
        if self.eat("RESTART") {
            let nodes = if self.eat("NODE") { self.list(Self::node)? } else { Vec::new() };
            return Ok(Change::Restart(nodes));
        }
        if self.eat("STOP") {
            self.expect("NODE")?;
            return self.node().map(Change::Stop);
        }
        if self.eat("START") {
            self.expect("NODE")?;
            return self.node().map(Change::Start);
        }
        if self.eat("BACKUP") {
            return Ok(Change::Backup);
        }
        if self.eat("RESTORE") {
            return Err(Error::not_supported(
                "ALTER CLUSTER RESTORE: data nodes restore nothing by themselves, ndb_restore reads the files of a backup",
            ));
        }
        Err(self.fail())
    }

    fn node(&mut self) -> Result<i32> {
        let at = self.at;
        if let Token::Word(word) = self.next()?
            && let Ok(number) = word.parse()
        {
            return Ok(number);
        }
        self.at = at;
        Err(self.fail())
    }

    fn setting(&mut self) -> Result<(&'static Parameter, u64)> {
        let at = self.at;
        let Token::Word(name) = self.next()? else {
            self.at = at;
            return Err(self.fail());
        };
        self.expect("=")?;
        let at = self.at;
        let text = match self.next()? {
            Token::Word(text) | Token::Text(text) => text,
            Token::Symbol(_) => {
                self.at = at;
                return Err(self.fail());
            }
        };
        let Some(parameter) = parameters::find(&name) else {
            bail!(UNKNOWN_SYSTEM_VARIABLE, name);
        };
        match parameter.read(&text)? {
            Some(value) => Ok((parameter, value)),
            None => Err(err!(WRONG_VALUE_FOR_VAR, parameter.name, text)),
        }
    }

    /// `'host:port' [DATADIR 'path']`.
    fn address(&mut self) -> Result<Address> {
        let at = self.at;
        if let Token::Text(text) = self.next()?
            && let Some((host, port)) = text.rsplit_once(':')
            && let Ok(port @ 1..=65_535) = port.parse()
            && !host.is_empty()
        {
            let directory = match self.eat("DATADIR") {
                false => None,
                true => match self.next()? {
                    Token::Text(directory) => Some(directory),
                    Token::Word(_) | Token::Symbol(_) => {
                        self.at -= 1;
                        return Err(self.fail());
                    }
                },
            };
            return Ok(Address { host: host.to_owned(), port, directory });
        }
        self.at = at;
        Err(self.fail())
    }
}

#[cfg(test)]
mod tests {
    use errors::ErrorCode;

    use super::*;

    #[test]
    fn every_change_is_read() {
        let memory = parameters::find("datamemory").expect("a parameter");
        let set = parse(" SET DataMemory = 4GB /* much */").expect("a change");
        assert_eq!(set, Change::Set(vec![(memory, 4 << 30)]));
        let address = |port, directory: Option<&str>| Address {
            host: "h".into(),
            port,
            directory: directory.map(str::to_owned),
        };
        assert_eq!(
            parse("add node 'h:1', \"h:2\" datadir '/d e'").expect("a change"),
            Change::Add(vec![address(1, None), address(2, Some("/d e"))])
        );
        assert_eq!(parse("DROP NODE 4, 5").expect("a change"), Change::Drop(vec![4, 5]));
        assert_eq!(parse("RESTART").expect("a change"), Change::Restart(vec![]));
        assert_eq!(parse("RESTART NODE 3").expect("a change"), Change::Restart(vec![3]));
        assert_eq!(parse("STOP NODE 3 -- now").expect("a change"), Change::Stop(3));
        assert_eq!(parse("START NODE 3").expect("a change"), Change::Start(3));
        assert_eq!(parse("BACKUP").expect("a change"), Change::Backup);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (text, code) in [
            ("", ErrorCode::PARSE_ERROR),
            ("SET", ErrorCode::PARSE_ERROR),
            ("SET DataMemory 4G", ErrorCode::PARSE_ERROR),
            ("SET DataMemory = 4G,", ErrorCode::PARSE_ERROR),
            ("SET DataMemory = 4G x", ErrorCode::PARSE_ERROR),
            ("SET Nothing = 4", ErrorCode::UNKNOWN_SYSTEM_VARIABLE),
            ("SET DataMemory = 4X", ErrorCode::WRONG_VALUE_FOR_VAR),
            ("SET DataMemory = 17592186044416G", ErrorCode::WRONG_VALUE_FOR_VAR),
            ("SET DataMemory = 'é'", ErrorCode::WRONG_VALUE_FOR_VAR),
            ("SET NoOfReplicas = 1", ErrorCode::NOT_SUPPORTED_YET),
            ("ADD NODE 'h'", ErrorCode::PARSE_ERROR),
            ("ADD NODE 'h:0'", ErrorCode::PARSE_ERROR),
            ("ADD NODE 'h:1' DATADIR", ErrorCode::PARSE_ERROR),
            ("ADD NODE 'h:1", ErrorCode::PARSE_ERROR),
            ("STOP NODE x", ErrorCode::PARSE_ERROR),
            ("RESTORE 1", ErrorCode::NOT_SUPPORTED_YET),
            ("/*", ErrorCode::PARSE_ERROR),
        ] {
            assert_eq!(parse(text).expect_err(text).code(), code, "{text}");
        }
    }
}
