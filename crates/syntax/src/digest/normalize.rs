//! Keys of the plan cache: one pass over the tokens lifts the literals that a plan need not know.
//!
//! It lifts integers and plain strings in WHERE, ON, VALUES, SET and LIMIT, and nowhere where the
//! value could show: not in select lists (captions and types), not in GROUP BY and ORDER BY
//! (ordinals), not in arguments of functions (their types may depend on it), not after LIKE
//! (ranges are planned from the pattern), not in VALUES ROW(..) (types again), and only in SELECT, INSERT, REPLACE, UPDATE and DELETE.
//! All else is part of the key: in select lists every blank, elsewhere only the tokens.

use super::hash::TextHash;
use super::{LiteralKind, LiteralSpan};
use crate::ast::Span;
use crate::keywords::Kw;
use crate::lexer::{LexOptions, Lexer, Tok, Token, is_blank};
use crate::options::ParseOptions;

/// The shape of a text without its literals.
#[derive(Clone, Copy, Debug)]
pub struct Digest<'n> {
    /// The key: equal for texts that differ only in lifted literals (and blanks that do not show).
    pub hash: u128,
    /// Whether a plan may be kept under the key; otherwise no literal was lifted.
    pub cacheable: bool,
    /// The lifted literals in order.
    pub literals: &'n [LiteralSpan],
    /// Bytes up to and including the `;`, or all.
    pub consumed: usize,
}

/// An open parenthesis, or the statement itself.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Literals here are lifted.
    lift: bool,
    /// Blanks here show in captions.
    raw: bool,
    /// The enclosing frame shows in captions, so everything in this one does.
    shown: bool,
    /// Arguments of a function: words in here are not clauses.
    call: bool,
}

/// Makes [`Digest`]s; keeps its buffers from one text to the next.
#[derive(Debug)]
pub struct Normalizer {
    seed: u64,
    literals: Vec<LiteralSpan>,
    frames: Vec<Frame>,
}

impl Normalizer {
    /// `seed` should be random for the process: it keeps keys from being guessed.
    pub fn new(seed: u64) -> Normalizer {
        Normalizer { seed, literals: Vec::with_capacity(16), frames: Vec::with_capacity(8) }
    }

    /// The digest of the first statement of `sql`.
    pub fn normalize(&mut self, sql: &[u8], options: &ParseOptions<'_>) -> Digest<'_> {
        self.literals.clear();
        self.frames.clear();
        let mut pass = Pass {
            sql,
            hash: TextHash::new(self.seed ^ mode_bits(options)),
            lexer: Lexer::new(sql, LexOptions::of(options)),
            frame: Frame { lift: false, raw: false, shown: false, call: false },
            frames: &mut self.frames,
            literals: &mut self.literals,
            prev: Token { kind: Tok::Semi, kw: Kw::NO_WORD, start: 0, end: 0 },
            is_compared: false,
            cacheable: true,
        };
        pass.run();
        let (cacheable, hash, consumed) =
            (pass.cacheable, pass.hash.finish(), pass.prev.end as usize);
        if !cacheable {
            self.literals.clear();
        }
        let consumed = if consumed == 0 { sql.len() } else { consumed };
        Digest { hash, cacheable, literals: &self.literals, consumed }
    }
}

fn mode_bits(options: &ParseOptions<'_>) -> u64 {
    let flags = [
        options.ansi_quotes,
        options.pipes_as_concat,
        options.no_backslash_escapes,
        options.ignore_space,
        options.high_not_precedence,
        options.real_as_float,
    ];
    flags.iter().fold(1, |bits, flag| bits << 1 | u64::from(*flag))
}

struct Pass<'s, 'n> {
    sql: &'s [u8],
    hash: TextHash,
    lexer: Lexer<'s>,
    frame: Frame,
    frames: &'n mut Vec<Frame>,
    literals: &'n mut Vec<LiteralSpan>,
    /// The token before; `Semi` at the start.
    prev: Token,
    /// The next number is compared with one that was not lifted.
    is_compared: bool,
    cacheable: bool,
}

impl Pass<'_, '_> {
    fn run(&mut self) {
        let mut first = true;
        loop {
            let token = self.lexer.next_token();
            match token.kind {
                Tok::Eof => {
                    self.prev.end = self.sql.len() as u32;
                    return;
                }
                Tok::Semi => {
                    self.prev.end = token.end;
                    return;
                }
                Tok::Bad | Tok::Param => self.cacheable = false,
                _ => {}
            }
            if first {
                first = false;
                let known = matches!(
                    token.kw,
                    Kw::SELECT | Kw::INSERT | Kw::REPLACE | Kw::UPDATE | Kw::DELETE | Kw::WITH
                );
                self.cacheable &= known || token.kind == Tok::LParen;
            }
            self.token(token);
            self.prev = token;
        }
    }

    #[inline]
    fn token(&mut self, token: Token) {
        let span = token.start as usize..token.end as usize;
        if self.frame.raw && self.prev.kind != Tok::Semi {
            // The gaps between tokens show in captions.
            self.hash.text(&self.sql[self.prev.end as usize..span.start]);
        }
        match token.kind {
            Tok::Int | Tok::Str if self.frame.lift && self.liftable(token) => {
                let integer = token.kind == Tok::Int;
                let kind = if integer { LiteralKind::Integer } else { LiteralKind::String };
                let span = Span { start: token.start, end: token.end };
                self.literals.push(LiteralSpan { kind, span });
                self.hash.mark(u64::from(integer) + 1);
                return;
            }
            Tok::Word => self.word(token.kw),
            Tok::LParen => self.open(),
            Tok::RParen => {
                if let Some(frame) = self.frames.pop() {
                    self.frame = frame;
                }
            }
            _ => {}
        }
        self.hash.text(&self.sql[span]);
    }

    fn open(&mut self) {
        let outer = self.frame;
        self.frames.push(outer);
        let call = match self.prev.kind {
            Tok::Word => !matches!(
                self.prev.kw,
                Kw::IN
                    | Kw::AND
                    | Kw::OR
                    | Kw::XOR
                    | Kw::NOT
                    | Kw::WHERE
                    | Kw::ON
                    | Kw::VALUES
                    | Kw::VALUE
                    | Kw::BETWEEN
                    | Kw::REGEXP
                    | Kw::RLIKE
                    | Kw::EXISTS
                    | Kw::ANY
                    | Kw::ALL
                    | Kw::SOME
                    | Kw::WHEN
                    | Kw::THEN
                    | Kw::ELSE
                    | Kw::CASE
                    | Kw::DIV
                    | Kw::ROW
                    | Kw::FROM
                    | Kw::JOIN
                    | Kw::UNION
                    | Kw::AS
            ),
            Tok::Quoted => true,
            _ => false,
        };
        let call = call || outer.call;
        self.frame = Frame {
            lift: outer.lift && !call,
            raw: outer.raw,
            shown: outer.raw || outer.shown,
            call,
        };
    }

    /// Words that start clauses.
    #[inline]
    fn word(&mut self, kw: Kw) {
        let (lift, raw) = match kw {
            Kw::SELECT => {
                self.frame.call = false;
                (false, true)
            }
            _ if self.frame.call => return,
            Kw::FROM
            | Kw::USING
            | Kw::INTO
            | Kw::FOR
            | Kw::LOCK
            | Kw::GROUP
            | Kw::ORDER
            | Kw::HAVING
            | Kw::WINDOW
            | Kw::QUALIFY
            | Kw::UNION
            | Kw::EXCEPT
            | Kw::INTERSECT => (false, false),
            // A separate table, whose columns have the types of the literals.
            Kw::ROW if self.prev.kw == Kw::VALUES => (false, false),
            Kw::OUTFILE | Kw::DUMPFILE => {
                self.cacheable = false;
                return;
            }
            Kw::RETURNING => (false, true),
            Kw::WHERE | Kw::ON | Kw::VALUES | Kw::VALUE | Kw::SET | Kw::LIMIT => (true, false),
            _ => return,
        };
        self.frame.lift = lift && !self.frame.shown;
        self.frame.raw = raw || self.frame.shown;
    }

    /// `1 = 0`, or a 0 or 1 alone: the planner should see that a condition is never true, or always.
    fn is_constant_condition(&mut self, token: Token) -> bool {
        if std::mem::take(&mut self.is_compared) {
            return true;
        }
        let begins = self.prev.kind == Tok::LParen
            || matches!(self.prev.kw, Kw::WHERE | Kw::ON | Kw::AND | Kw::OR | Kw::NOT);
        if !begins {
            return false;
        }
        let is_operator = |byte: &u8| matches!(byte, b'=' | b'<' | b'>' | b'!');
        let behind = self.sql[token.end as usize..].trim_ascii_start();
        let operator = behind.iter().take_while(|byte| is_operator(byte)).count();
        if operator == 0 {
            let text = &self.sql[token.start as usize..token.end as usize];
            return self.prev.kind == Tok::Word && matches!(text, b"0" | b"1");
        }
        let other = behind[operator..].trim_ascii_start();
        let digits = other.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let ends = other.get(digits).is_none_or(|byte| byte.is_ascii_whitespace() || *byte == b')');
        self.is_compared = digits > 0 && ends;
        self.is_compared
    }

    fn liftable(&mut self, token: Token) -> bool {
        let before = match self.prev.kind {
            Tok::Word => {
                !matches!(
                    self.prev.kw,
                    Kw::INTERVAL
                        | Kw::DATE
                        | Kw::TIME
                        | Kw::TIMESTAMP
                        | Kw::COLLATE
                        | Kw::LIKE
                        | Kw::ESCAPE
                        | Kw::AS
                ) && self.sql.get(self.prev.start as usize) != Some(&b'_')
            }
            Tok::Arrow
            | Tok::ArrowArrow
            | Tok::Str
            | Tok::NationalStr
            | Tok::HexStr
            | Tok::HexNum
            | Tok::BitStr
            | Tok::BitNum
            | Tok::LBrace => false,
            _ => true,
        };
        if !before {
            return false;
        }
        if token.kind == Tok::Int {
            if self.is_constant_condition(token) {
                return false;
            }
            let length = token.end - token.start;
            return length < 19;
        }
        // Adjacent strings are one literal.
        let behind = &self.sql[token.end as usize..];
        let next = behind.iter().find(|b| !is_blank(**b));
        !matches!(next, Some(b'\'' | b'"' | b'/' | b'#'))
    }
}

/// Whether two texts are the same except for their lifted literals: a second check after equal hashes; texts
/// that differ in blanks count as different.
pub fn same_shape(a: &[u8], lifted_a: &[LiteralSpan], b: &[u8], lifted_b: &[LiteralSpan]) -> bool {
    if lifted_a.len() != lifted_b.len() {
        return false;
    }
    let (mut at_a, mut at_b) = (0, 0);
    for (x, y) in lifted_a.iter().zip(lifted_b) {
        let (start_a, start_b) = (x.span.start as usize, y.span.start as usize);
        if x.kind != y.kind || a.get(at_a..start_a) != b.get(at_b..start_b) {
            return false;
        }
        (at_a, at_b) = (x.span.end as usize, y.span.end as usize);
    }
    a.get(at_a..) == b.get(at_b..)
}
