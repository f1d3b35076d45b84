//! Recursive descent over the tokens of one statement. This file: the cursor, identifiers, strings,
//! numbers, errors and the two guards of depth. The grammar is in the sibling files.

mod account;
mod admin;
mod alter;
mod create;
mod ddl;
mod dml;
mod expr;
mod function;
mod program;
mod program_scope;
mod query;
mod replication;
mod set;
mod show;
mod statement;
mod table;
mod types;

use crate::ast::{Ident, ObjectName, Span, Statement, UserName};
use crate::error::{ParseError, ParseErrorKind};
use crate::keywords::Kw;
use crate::lexer::{LexOptions, Lexer, Tok, Token, is_blank, unescape};
use crate::options::ParseOptions;

pub(crate) use function::is_charset;

/// Result of every grammar function. The error is boxed: it is rare, and results must stay small.
pub(crate) type PResult<T> = Result<T, Box<ParseError>>;

/// The parser's position; a copy is a place to return to.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    lexer: Lexer<'a>,
    tok: Token,
    ahead: [Token; 2],
    ahead_len: u8,
    /// Start and end of the token before `tok`.
    prev_start: u32,
    prev_end: u32,
}

/// The parser of one statement.
pub(crate) struct Parser<'a> {
    src: &'a [u8],
    options: &'a ParseOptions<'a>,
    cur: Cursor<'a>,
    /// Nesting of the calls in progress.
    depth: u32,
    /// An address on the stack where parsing began.
    stack_base: usize,
    /// Height of the highest tree built in the calls in progress.
    height: u32,
    /// Parameters and lifted literals so far.
    params: u32,
    /// Lifted literals so far.
    lifted: usize,
    /// An operand that was parsed before it was known to be one (see `expr::paren`).
    pending: Option<(crate::ast::Expr, u32)>,
    /// INTO between the select list and FROM, on its way to its query.
    early_into: Option<crate::ast::Into>,
    /// Inside the body of a stored program.
    in_program: bool,
    /// The names in scope in the stored program that is being read.
    program: Option<Box<program_scope::ProgramScope>>,
}

/// [`parse_one`](crate::parse_one) for texts that need not be UTF-8 as a whole (string literals with raw bytes).
pub fn parse_bytes(
    src: &[u8],
    options: &ParseOptions<'_>,
) -> Result<(Statement, usize), ParseError> {
    if src.len() >= u32::MAX as usize {
        return Err(ParseError {
            kind: ParseErrorKind::NotSupported("statements of 4 GiB"),
            offset: 0,
        });
    }
    Parser::new(src, options).one().map_err(|e| *e)
}

impl<'a> Parser<'a> {
    pub(crate) fn new(src: &'a [u8], options: &'a ParseOptions<'a>) -> Parser<'a> {
        let mut lexer = Lexer::new(src, LexOptions::of(options));
        let tok = lexer.next_token();
        let cur = Cursor { lexer, tok, ahead: [tok; 2], ahead_len: 0, prev_start: 0, prev_end: 0 };
        Parser {
            src,
            options,
            cur,
            depth: 0,
            stack_base: stack_address(),
            height: 0,
            params: 0,
            lifted: 0,
            pending: None,
            early_into: None,
            in_program: false,
            program: None,
        }
    }

    fn one(&mut self) -> PResult<(Statement, usize)> {
        let statement = if matches!(self.tok(), Tok::Eof | Tok::Semi) {
            Statement::Empty
        } else {
            self.statement()?
        };
        if self.early_into.is_some() {
            return self.fail();
        }
        let end = self.end_of_statement()?;
        if self.options.lift.is_some_and(|lift| lift.len() != self.lifted) {
            return Err(self.error_of(ParseErrorKind::LiftMismatch));
        }
        Ok((statement, end))
    }

    /// At the end or at `;`: the number of bytes the statement took.
    fn end_of_statement(&mut self) -> PResult<usize> {
        match self.tok() {
            Tok::Eof => Ok(self.src.len()),
            Tok::Semi => {
                let end = self.cur.tok.end as usize;
                if !self.options.multi_statements {
                    self.bump();
                    if self.tok() != Tok::Eof {
                        return self.fail();
                    }
                }
                Ok(end)
            }
            _ => self.fail(),
        }
    }

    // --- tokens

    #[inline]
    fn tok(&self) -> Tok {
        self.cur.tok.kind
    }

    #[inline]
    fn kw(&self) -> Kw {
        self.cur.tok.kw
    }

    /// Moves to the next token.
    #[inline]
    fn bump(&mut self) {
        self.cur.prev_start = self.cur.tok.start;
        self.cur.prev_end = self.cur.tok.end;
        if self.cur.ahead_len > 0 {
            self.cur.tok = self.cur.ahead[0];
            self.cur.ahead[0] = self.cur.ahead[1];
            self.cur.ahead_len -= 1;
        } else {
            self.cur.tok = self.cur.lexer.next_token();
        }
    }

    /// The token after the current one.
    fn peek(&mut self) -> Token {
        if self.cur.ahead_len == 0 {
            self.cur.ahead[0] = self.cur.lexer.next_token();
            self.cur.ahead_len = 1;
        }
        self.cur.ahead[0]
    }

    /// The token after [`Self::peek`].
    fn peek2(&mut self) -> Token {
        self.peek();
        if self.cur.ahead_len == 1 {
            self.cur.ahead[1] = self.cur.lexer.next_token();
            self.cur.ahead_len = 2;
        }
        self.cur.ahead[1]
    }

    fn peek_kw(&mut self) -> Kw {
        self.peek().kw
    }

    #[inline]
    fn at(&self, kw: Kw) -> bool {
        self.cur.tok.kw == kw
    }

    #[inline]
    fn at_tok(&self, tok: Tok) -> bool {
        self.cur.tok.kind == tok
    }

    /// At `first second`?
    fn at2(&mut self, first: Kw, second: Kw) -> bool {
        self.at(first) && self.peek_kw() == second
    }

    #[inline]
    fn eat(&mut self, kw: Kw) -> bool {
        let found = self.at(kw);
        if found {
            self.bump();
        }
        found
    }

    #[inline]
    fn eat_tok(&mut self, tok: Tok) -> bool {
        let found = self.at_tok(tok);
        if found {
            self.bump();
        }
        found
    }

    /// Takes both words or none.
    fn eat2(&mut self, first: Kw, second: Kw) -> bool {
        let found = self.at2(first, second);
        if found {
            self.bump();
            self.bump();
        }
        found
    }

    #[inline]
    fn expect(&mut self, kw: Kw) -> PResult<()> {
        if self.eat(kw) { Ok(()) } else { self.fail() }
    }

    #[inline]
    fn expect_tok(&mut self, tok: Tok) -> PResult<()> {
        if self.eat_tok(tok) { Ok(()) } else { self.fail() }
    }

    /// What `inner` reads, in parentheses.
    fn in_parens<T>(&mut self, inner: impl FnOnce(&mut Self) -> PResult<T>) -> PResult<T> {
        self.expect_tok(Tok::LParen)?;
        let read = inner(self)?;
        self.expect_tok(Tok::RParen)?;
        Ok(read)
    }

    fn expect_all(&mut self, words: &[Kw]) -> PResult<()> {
        words.iter().try_for_each(|kw| self.expect(*kw))
    }

    fn eat_one_of(&mut self, words: &[Kw]) -> Option<Kw> {
        let kw = self.kw();
        let found = kw != Kw::NO_WORD && words.contains(&kw);
        found.then(|| {
            self.bump();
            kw
        })
    }

    /// `=`, where it may be left out.
    fn opt_eq(&mut self) {
        self.eat_tok(Tok::Eq);
    }

    #[inline]
    fn start(&self) -> u32 {
        self.cur.tok.start
    }

    /// From `start` to the end of the last token taken.
    #[inline]
    fn span_from(&self, start: u32) -> Span {
        Span { start, end: self.cur.prev_end.max(start) }
    }

    fn text_of(&self, token: Token) -> &'a [u8] {
        &self.src[token.start as usize..token.end as usize]
    }

    fn comma_list<T>(&mut self, mut item: impl FnMut(&mut Self) -> PResult<T>) -> PResult<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat_tok(Tok::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn paren_list<T>(&mut self, item: impl FnMut(&mut Self) -> PResult<T>) -> PResult<Vec<T>> {
        self.in_parens(|own| own.comma_list(item))
    }

    // --- errors

    /// A syntax error at the current token.
    #[cold]
    fn fail<T>(&self) -> PResult<T> {
        self.fail_at(self.cur.tok.start as usize)
    }

    /// A syntax error at the token taken last.
    #[cold]
    fn fail_prev<T>(&self) -> PResult<T> {
        self.fail_at(self.cur.prev_start as usize)
    }

    /// A syntax error at byte `offset`.
    #[cold]
    fn fail_at<T>(&self, offset: usize) -> PResult<T> {
        let (near, line) = near(self.src, offset);
        Err(Box::new(ParseError { kind: ParseErrorKind::Syntax { near, line }, offset }))
    }

    #[cold]
    fn error_of(&self, kind: ParseErrorKind) -> Box<ParseError> {
        Box::new(ParseError { kind, offset: self.cur.tok.start as usize })
    }

    #[cold]
    fn fail_other<T>(&self, code: u16, message: impl Into<String>) -> PResult<T> {
        Err(self.error_of(ParseErrorKind::Other { code, message: message.into() }))
    }

    // --- depth

    /// Runs `inner` one level deeper.
    #[inline]
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> PResult<T>) -> PResult<T> {
        let used = self.stack_base.abs_diff(stack_address());
        if self.depth >= self.options.max_depth || used > STACK_BUDGET {
            return Err(self.error_of(ParseErrorKind::TooDeep));
        }
        self.depth += 1;
        let outer = std::mem::take(&mut self.height);
        let result = inner(self);
        self.depth -= 1;
        self.height = outer.max(self.height + 1);
        result
    }

    /// Runs `inner` as a sibling of the nodes parsed so far on this level.
    #[inline]
    fn side<T>(&mut self, inner: impl FnOnce(&mut Self) -> PResult<T>) -> PResult<T> {
        let outer = std::mem::take(&mut self.height);
        let result = inner(self);
        self.height = outer.max(self.height);
        result
    }

    /// The tree just built has grown by one level without a deeper call.
    #[inline]
    fn grow(&mut self) -> PResult<()> {
        self.height += 1;
        if self.height > self.options.max_depth.saturating_mul(2) {
            return Err(self.error_of(ParseErrorKind::TooDeep));
        }
        Ok(())
    }

    // --- identifiers

    /// May the current token be an identifier?
    #[inline]
    fn at_ident(&self) -> bool {
        match self.tok() {
            Tok::Word => !self.kw().is_reserved(),
            Tok::Quoted => true,
            _ => false,
        }
    }

    #[inline]
    fn ident(&mut self) -> PResult<Ident> {
        if self.at_ident() { self.any_word() } else { self.fail() }
    }

    /// An identifier; reserved words count too.
    fn any_word(&mut self) -> PResult<Ident> {
        let token = self.cur.tok;
        let quoted = match token.kind {
            Tok::Word => false,
            Tok::Quoted => true,
            _ => return self.fail(),
        };
        let text = self.ident_text(token)?;
        self.bump();
        Ok(Ident { text, quoted, span: Span { start: token.start, end: token.end } })
    }

    fn ident_text(&self, token: Token) -> PResult<Box<str>> {
        let raw = self.text_of(token);
        if token.kind == Tok::Quoted {
            let inner = &raw[1..raw.len() - 1];
            if memchr::memchr(raw[0], inner).is_some() {
                let mut out = Vec::new();
                unescape(raw, true, &mut out);
                return self.utf8(&out, token);
            }
            return self.utf8(inner, token);
        }
        self.utf8(raw, token)
    }

    #[inline]
    fn utf8(&self, bytes: &[u8], token: Token) -> PResult<Box<str>> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.into()),
            Err(_) => self.bad_utf8(bytes, token),
        }
    }

    #[cold]
    fn bad_utf8<T>(&self, bytes: &[u8], token: Token) -> PResult<T> {
        let shown: String = bytes.iter().take(6).map(|b| format!("\\x{b:02X}")).collect();
        Err(Box::new(ParseError {
            kind: ParseErrorKind::Other {
                code: 1300,
                message: format!("Invalid utf8mb4 character string: '{shown}'"),
            },
            offset: token.start as usize,
        }))
    }

    fn ident_list(&mut self) -> PResult<Vec<Ident>> {
        self.comma_list(Self::ident)
    }

    fn paren_idents(&mut self) -> PResult<Vec<Ident>> {
        self.paren_list(Self::ident)
    }

    /// `[schema.]name`.
    fn object_name(&mut self) -> PResult<ObjectName> {
        let first = self.ident()?;
        if self.eat_tok(Tok::Dot) {
            return Ok(ObjectName { schema: Some(first), name: self.ident()? });
        }
        Ok(ObjectName { schema: None, name: first })
    }

    /// An identifier or a string: aliases, charsets, collations, plugin names.
    fn ident_or_text(&mut self) -> PResult<Ident> {
        match self.tok() {
            Tok::Str => {
                let start = self.start();
                let text = self.text()?;
                Ok(Ident { text, quoted: true, span: self.span_from(start) })
            }
            _ => self.ident(),
        }
    }

    /// A character set: an identifier, a string, or BINARY.
    fn charset_name(&mut self) -> PResult<Ident> {
        if self.at(Kw::BINARY) || self.at(Kw::ASCII) {
            return self.any_word();
        }
        self.ident_or_text()
    }

    /// The name after `@` of a user-variable token.
    fn user_var(&mut self) -> PResult<Ident> {
        if !matches!(self.tok(), Tok::UserVar | Tok::At) {
            return self.fail();
        }
        let token = self.cur.tok;
        let raw = &self.text_of(token)[1..];
        let quoted = matches!(raw.first(), Some(b'\'' | b'"' | b'`'));
        let text = if quoted {
            let mut out = Vec::new();
            unescape(raw, self.options.no_backslash_escapes, &mut out);
            self.utf8(&out, token)?
        } else {
            self.utf8(raw, token)?
        };
        self.bump();
        Ok(Ident { text, quoted, span: Span { start: token.start, end: token.end } })
    }

    /// `user[@host]`, `CURRENT_USER[()]`, `USER()`.
    fn user_name(&mut self) -> PResult<UserName> {
        if self.at(Kw::CURRENT_USER) || (self.at(Kw::USER) && self.peek().kind == Tok::LParen) {
            self.bump();
            if self.eat_tok(Tok::LParen) {
                self.expect_tok(Tok::RParen)?;
            }
            return Ok(UserName { current: true, ..UserName::default() });
        }
        let user = self.ident_or_text()?.text;
        let host = self.opt_host()?;
        Ok(UserName { user, host, current: false })
    }

    fn opt_host(&mut self) -> PResult<Option<Box<str>>> {
        if self.at_tok(Tok::UserVar) {
            let host = self.user_var()?;
            return Ok(Some(host.text.to_ascii_lowercase().into()));
        }
        // A host name must directly follow its `@`; if it is missing, the host is empty.
        if self.eat_tok(Tok::At) {
            return Ok(Some(Box::default()));
        }
        Ok(None)
    }

    fn user_list(&mut self) -> PResult<Vec<UserName>> {
        self.comma_list(Self::user_name)
    }

    // --- constants outside expressions

    /// The bytes of one string token.
    fn raw_string(&mut self, out: &mut Vec<u8>) -> PResult<()> {
        let token = self.cur.tok;
        let raw = self.text_of(token);
        match token.kind {
            Tok::Str => unescape(raw, self.options.no_backslash_escapes, out),
            Tok::NationalStr => unescape(&raw[1..], self.options.no_backslash_escapes, out),
            Tok::DollarStr => {
                let tag = 2 + raw[1..].iter().take_while(|b| **b != b'$').count();
                out.extend_from_slice(&raw[tag..raw.len() - tag]);
            }
            _ => return self.fail(),
        }
        self.bump();
        Ok(())
    }

    /// A string as bytes.
    fn bytes(&mut self) -> PResult<Box<[u8]>> {
        let mut out = Vec::new();
        if !self.at_tok(Tok::Str) {
            return self.fail();
        }
        self.raw_string(&mut out)?;
        Ok(out.into())
    }

    /// A string as text.
    fn text(&mut self) -> PResult<Box<str>> {
        let token = self.cur.tok;
        if token.kind != Tok::Str {
            return self.fail();
        }
        let mut out = Vec::new();
        self.raw_string(&mut out)?;
        self.utf8(&out, token)
    }

    /// A string, or hexadecimal or bit digits, as bytes (`text_string` of the reference).
    fn bytes_or_hex(&mut self) -> PResult<Box<[u8]>> {
        match self.tok() {
            Tok::HexNum | Tok::HexStr | Tok::BitNum | Tok::BitStr => {
                let value = radix_bytes(self.text_of(self.cur.tok), self.tok());
                self.bump();
                Ok(value)
            }
            _ => self.bytes(),
        }
    }

    /// A whole number.
    fn number(&mut self) -> PResult<u64> {
        let token = self.cur.tok;
        let value = match token.kind {
            Tok::Int => parse_u64(self.text_of(token)),
            Tok::HexNum | Tok::HexStr => {
                let bytes = radix_bytes(self.text_of(token), token.kind);
                (bytes.len() <= 8).then(|| bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
            }
            _ => None,
        };
        match value {
            Some(value) => {
                self.bump();
                Ok(value)
            }
            None => self.fail(),
        }
    }

    /// A whole number with an optional sign.
    fn signed_number(&mut self) -> PResult<i128> {
        let negative = self.eat_tok(Tok::Minus);
        if !negative {
            self.eat_tok(Tok::Plus);
        }
        let value = i128::from(self.number()?);
        Ok(if negative { -value } else { value })
    }

    /// A number, also as decimal or float, as text.
    fn number_text(&mut self) -> PResult<Box<str>> {
        let token = self.cur.tok;
        match token.kind {
            Tok::Int | Tok::Decimal | Tok::Float => {
                self.bump();
                self.utf8(self.text_of(token), token)
            }
            _ => self.fail(),
        }
    }

    /// `IF EXISTS`.
    fn if_exists(&mut self) -> PResult<bool> {
        let found = self.eat(Kw::IF);
        if found {
            self.expect(Kw::EXISTS)?;
        }
        Ok(found)
    }

    /// `IF NOT EXISTS`.
    fn if_not_exists(&mut self) -> PResult<bool> {
        let found = self.eat(Kw::IF);
        if found {
            self.expect_all(&[Kw::NOT, Kw::EXISTS])?;
        }
        Ok(found)
    }

    /// Takes the word `word`, ignoring case, which is not a keyword.
    fn eat_name(&mut self, word: &str) -> bool {
        let found = self.tok() == Tok::Word
            && self.text_of(self.cur.tok).eq_ignore_ascii_case(word.as_bytes());
        if found {
            self.bump();
        }
        found
    }
}

/// The stack that parsing may use: unoptimised builds have frames several times as large as those that
/// the limit of depth was chosen for.
const STACK_BUDGET: usize = 1 << 20;

/// About where the stack ends now.
#[inline(always)]
fn stack_address() -> usize {
    let here = 0u8;
    std::hint::black_box(&raw const here) as usize
}

/// The text and line the reference's message 1064 shows for an error at `offset`.
fn near(src: &[u8], offset: usize) -> (String, u32) {
    let tail = src.iter().rev().take_while(|b| is_blank(**b) || matches!(**b, b';' | 0)).count();
    let end = src.len() - tail;
    let first = src.iter().take_while(|b| is_blank(**b)).count();
    let lines = src.get(first..offset).unwrap_or_default();
    let line = 1 + lines.iter().filter(|b| **b == b'\n').count() as u32;
    if offset >= end {
        return (String::new(), line);
    }
    let near = String::from_utf8_lossy(&src[offset..end.min(offset + 4 * 81)]);
    let mut text: String = near.chars().take(80).collect();
    if end > offset + 4 * 81 && text.ends_with('\u{fffd}') {
        text.pop();
    }
    (text, line)
}

fn parse_u64(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit.wrapping_sub(b'0')))
    })
}

/// The bytes of `0x..`, `x'..'`, `0b..`, `b'..'`.
fn radix_bytes(text: &[u8], kind: Tok) -> Box<[u8]> {
    let digits = match kind {
        Tok::HexStr | Tok::BitStr => &text[2..text.len() - 1],
        _ => &text[2..],
    };
    let per_byte = if matches!(kind, Tok::HexNum | Tok::HexStr) { 2 } else { 8 };
    let shift = 8 / per_byte;
    let mut bytes = vec![0u8; digits.len().div_ceil(per_byte)];
    for (index, digit) in digits.iter().rev().enumerate() {
        let value = (*digit as char).to_digit(16).unwrap_or(0) as u8;
        let at = bytes.len() - 1 - index / per_byte;
        bytes[at] |= value << (shift * (index % per_byte));
    }
    bytes.into()
}
