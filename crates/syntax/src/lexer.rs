//! Bytes to tokens. Knows blanks, comments, quotes and words, and no grammar.

use crate::keywords::Kw;
use crate::options::ParseOptions;

/// The kinds of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Tok {
    Eof,
    /// A word without quotes; `kw` is its keyword, if any.
    Word,
    /// A quoted identifier, quotes included.
    Quoted,
    /// `'..'`, or `".."` without ANSI_QUOTES.
    Str,
    /// `N'..'`.
    NationalStr,
    /// `$tag$..$tag$`.
    DollarStr,
    Int,
    Decimal,
    Float,
    /// `0x..`.
    HexNum,
    /// `x'..'`.
    HexStr,
    /// `0b..`.
    BitNum,
    /// `b'..'`.
    BitStr,
    /// `@name`, `@'name'`.
    UserVar,
    /// `@` alone.
    At,
    AtAt,
    Param,
    /// `/*+ .. */` after a word that may have it.
    Hint,
    LParen,
    RParen,
    LBrace,
    RBrace,
    Comma,
    Dot,
    Semi,
    Colon,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Caret,
    Tilde,
    Amp,
    AmpAmp,
    Pipe,
    PipePipe,
    Bang,
    Eq,
    NullSafeEq,
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
    ShiftLeft,
    ShiftRight,
    Assign,
    Arrow,
    ArrowArrow,
    /// Text that is not a token: a stray byte, an open quote or comment.
    Bad,
}

/// A token and its place.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub kind: Tok,
    pub kw: Kw,
    pub start: u32,
    pub end: u32,
}

/// The flags of [`ParseOptions`] that the lexer uses.
#[derive(Clone, Copy, Debug)]
pub struct LexOptions {
    pub ansi_quotes: bool,
    pub no_backslash_escapes: bool,
    pub ignore_space: bool,
    pub server_version: u32,
}

impl LexOptions {
    /// Those of `options`.
    pub fn of(options: &ParseOptions<'_>) -> LexOptions {
        LexOptions {
            ansi_quotes: options.ansi_quotes,
            no_backslash_escapes: options.no_backslash_escapes,
            ignore_space: options.ignore_space,
            server_version: options.server_version,
        }
    }
}

/// The lexer. A copy is a place to return to.
#[derive(Clone, Copy, Debug)]
pub struct Lexer<'a> {
    src: &'a [u8],
    pos: usize,
    options: LexOptions,
    /// Inside `/*!NNNNN ..`, where `*/` is a blank.
    in_version: bool,
    /// The last token may be followed by a hint.
    hint_next: bool,
    /// The last token was a dot: the next one is an identifier, whatever it looks like.
    after_dot: bool,
    /// The last token was a word directly followed by `.name`.
    before_dot: bool,
    /// The last token was `@@`.
    after_at_at: bool,
}

/// Bytes of identifiers without quotes.
const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut index = 0;
    while index < 256 {
        let byte = index as u8;
        table[index] = byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80;
        index += 1;
    }
    table
};

/// Is `byte` a byte of identifiers?
#[inline]
pub fn is_word_byte(byte: u8) -> bool {
    WORD[byte as usize]
}

/// Is `byte` a blank?
#[inline]
pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

impl<'a> Lexer<'a> {
    /// A lexer at the start of `src`.
    pub fn new(src: &'a [u8], options: LexOptions) -> Lexer<'a> {
        Lexer {
            src,
            pos: 0,
            options,
            in_version: false,
            hint_next: false,
            after_dot: false,
            before_dot: false,
            after_at_at: false,
        }
    }

    #[inline]
    fn byte(&self, at: usize) -> u8 {
        self.src.get(at).copied().unwrap_or(0)
    }

    /// The next token.
    #[inline]
    pub fn next_token(&mut self) -> Token {
        if let Some(token) = self.skip_blanks() {
            return token;
        }
        let start = self.pos;
        let after_dot = std::mem::take(&mut self.after_dot);
        let before_dot = std::mem::take(&mut self.before_dot);
        let after_at_at = std::mem::take(&mut self.after_at_at);
        self.hint_next = false;
        let Some(&byte) = self.src.get(start) else {
            // An open versioned comment is an error once, then the end.
            let kind = if std::mem::take(&mut self.in_version) { Tok::Bad } else { Tok::Eof };
            return self.token(kind, start);
        };
        if is_word_byte(byte) {
            return self.word_or_number(start, byte, after_dot, after_at_at);
        }
        let kind = match byte {
            b'\'' => self.string(start + 1, b'\''),
            b'"' if self.options.ansi_quotes => self.quoted(start + 1, b'"'),
            b'"' => self.string(start + 1, b'"'),
            b'`' => self.quoted(start + 1, b'`'),
            b'.' => {
                if !before_dot && !after_dot && self.byte(start + 1).is_ascii_digit() {
                    self.number(start)
                } else {
                    self.after_dot = is_word_byte(self.byte(start + 1));
                    self.take(1, Tok::Dot)
                }
            }
            b'@' => self.at(start),
            _ => self.operator(byte),
        };
        self.token(kind, start)
    }

    fn token(&self, kind: Tok, start: usize) -> Token {
        Token { kind, kw: Kw::NO_WORD, start: start as u32, end: self.pos as u32 }
    }

    fn take(&mut self, bytes: usize, kind: Tok) -> Tok {
        self.pos += bytes;
        kind
    }

    /// Skips blanks and comments. A hint or an open comment is a token.
    #[inline]
    fn skip_blanks(&mut self) -> Option<Token> {
        loop {
            match self.byte(self.pos) {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => self.pos += 1,
                b'#' => self.skip_line(),
                b'-' if self.byte(self.pos + 1) == b'-' => {
                    let next = self.byte(self.pos + 2);
                    if !(next == b' ' || next.is_ascii_control()) {
                        return None;
                    }
                    self.skip_line();
                }
                b'/' if self.byte(self.pos + 1) == b'*' => {
                    if let Some(token) = self.comment() {
                        return Some(token);
                    }
                }
                b'*' if self.in_version && self.byte(self.pos + 1) == b'/' => {
                    self.in_version = false;
                    self.pos += 2;
                }
                _ => return None,
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.src[self.pos..];
        self.pos += memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
    }

    /// At `/*`. Enters, skips or returns it.
    #[cold]
    fn comment(&mut self) -> Option<Token> {
        let start = self.pos;
        let third = self.byte(start + 2);
        if third == b'!' && !self.in_version {
            let digits =
                self.src[start + 3..].iter().take(6).take_while(|b| b.is_ascii_digit()).count();
            if digits < 5 {
                self.pos = start + 3;
                self.in_version = true;
                return None;
            }
            let version = self.src[start + 3..start + 3 + digits]
                .iter()
                .fold(0u32, |number, b| number * 10 + u32::from(b - b'0'));
            if version <= self.options.server_version {
                self.pos = start + 3 + digits;
                self.in_version = true;
                return None;
            }
            return self.skip_comment(start, true);
        }
        if third == b'+' && self.hint_next {
            let end = memchr::memmem::find(&self.src[start + 3..], b"*/");
            if let Some(length) = end {
                self.pos = start + 3 + length + 2;
                self.hint_next = false;
                return Some(self.token(Tok::Hint, start));
            }
        }
        self.skip_comment(start, false)
    }

    /// Skips a comment; `nested`: it may contain comments itself.
    fn skip_comment(&mut self, start: usize, nested: bool) -> Option<Token> {
        let mut at = start + 2;
        let mut depth = 1;
        while let Some(found) = self.src.get(at..).and_then(|rest| memchr::memchr(b'*', rest)) {
            let star = at + found;
            if self.byte(star + 1) == b'/' {
                depth -= 1;
                at = star + 2;
                if depth == 0 {
                    self.pos = at;
                    return None;
                }
            } else {
                let opens = nested && depth == 1 && star > start + 2;
                if opens && self.src[star - 1] == b'/' {
                    depth += 1;
                }
                at = star + 1;
            }
        }
        self.pos = self.src.len();
        Some(self.token(Tok::Bad, start))
    }

    #[inline]
    fn word_or_number(
        &mut self,
        start: usize,
        byte: u8,
        after_dot: bool,
        after_at_at: bool,
    ) -> Token {
        if !after_dot {
            if byte.is_ascii_digit() {
                let kind = self.number(start);
                self.note_dot(kind);
                return self.token(kind, start);
            }
            if self.byte(start + 1) == b'\'' {
                let kind = match byte {
                    b'n' | b'N' => Some(self.string(start + 2, b'\'')),
                    b'x' | b'X' => self.radix_string(start + 2, Tok::HexStr),
                    b'b' | b'B' => self.radix_string(start + 2, Tok::BitStr),
                    _ => None,
                };
                if let Some(kind) = kind {
                    let kind = if kind == Tok::Str { Tok::NationalStr } else { kind };
                    return self.token(kind, start);
                }
            }
            if byte == b'$' && self.dollar(start) {
                return self.token(Tok::DollarStr, start);
            }
        }
        let mut end = start + 1;
        while end < self.src.len() && is_word_byte(self.src[end]) {
            end += 1;
        }
        self.pos = end;
        self.note_dot(Tok::Word);
        let mut token = self.token(Tok::Word, start);
        if !after_dot && (!self.before_dot || after_at_at) {
            token.kw = self.keyword(start, end);
        }
        token
    }

    fn note_dot(&mut self, kind: Tok) {
        self.before_dot = kind == Tok::Word
            && self.byte(self.pos) == b'.'
            && is_word_byte(self.byte(self.pos + 1));
    }

    #[inline]
    fn keyword(&mut self, start: usize, end: usize) -> Kw {
        let kw = Kw::find(&self.src[start..end]);
        if kw.is_function() {
            let mut next = end;
            if self.options.ignore_space {
                while is_blank(self.byte(next)) {
                    next += 1;
                }
            }
            if self.byte(next) != b'(' {
                return Kw::NO_WORD;
            }
        }
        self.hint_next =
            matches!(kw, Kw::SELECT | Kw::INSERT | Kw::REPLACE | Kw::UPDATE | Kw::DELETE);
        kw
    }

    /// At the first digit, or at a dot before a digit.
    fn number(&mut self, start: usize) -> Tok {
        let mut at = start;
        if self.src[at] == b'0' && matches!(self.byte(at + 1), b'x' | b'b') {
            let hex = self.src[at + 1] == b'x';
            let mut end = at + 2;
            while if hex {
                self.byte(end).is_ascii_hexdigit()
            } else {
                matches!(self.byte(end), b'0' | b'1')
            } {
                end += 1;
            }
            if end > at + 2 && !is_word_byte(self.byte(end)) {
                self.pos = end;
                return if hex { Tok::HexNum } else { Tok::BitNum };
            }
            return self.finish_word(at);
        }
        while self.byte(at).is_ascii_digit() {
            at += 1;
        }
        let mut kind = Tok::Int;
        if self.byte(at) == b'.' {
            kind = Tok::Decimal;
            at += 1;
            while self.byte(at).is_ascii_digit() {
                at += 1;
            }
        }
        if matches!(self.byte(at), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(at + 1), b'+' | b'-'));
            let mut end = at + 1 + sign;
            while self.byte(end).is_ascii_digit() {
                end += 1;
            }
            let has_digits = end > at + 1 + sign;
            if has_digits && (kind == Tok::Decimal || sign == 1 || !is_word_byte(self.byte(end))) {
                self.pos = end;
                return Tok::Float;
            }
        }
        if kind == Tok::Int && is_word_byte(self.byte(at)) {
            return self.finish_word(at);
        }
        self.pos = at;
        kind
    }

    fn finish_word(&mut self, mut at: usize) -> Tok {
        while is_word_byte(self.byte(at)) {
            at += 1;
        }
        self.pos = at;
        Tok::Word
    }

    /// After the opening quote of a string.
    fn string(&mut self, mut at: usize, quote: u8) -> Tok {
        loop {
            let rest = &self.src[at..];
            let found = if self.options.no_backslash_escapes {
                memchr::memchr(quote, rest)
            } else {
                memchr::memchr2(quote, b'\\', rest)
            };
            let Some(offset) = found else {
                self.pos = self.src.len();
                return Tok::Bad;
            };
            at += offset;
            if self.src[at] == quote {
                if self.byte(at + 1) != quote {
                    self.pos = at + 1;
                    return Tok::Str;
                }
                at += 2;
            } else {
                at = (at + 2).min(self.src.len());
            }
        }
    }

    /// After the opening quote of an identifier.
    fn quoted(&mut self, mut at: usize, quote: u8) -> Tok {
        loop {
            let Some(offset) = memchr::memchr(quote, &self.src[at..]) else {
                self.pos = self.src.len();
                return Tok::Bad;
            };
            at += offset + 1;
            if self.byte(at) != quote {
                self.pos = at;
                return Tok::Quoted;
            }
            at += 1;
        }
    }

    /// After `x'` or `b'`.
    fn radix_string(&mut self, from: usize, kind: Tok) -> Option<Tok> {
        let length = memchr::memchr(b'\'', &self.src[from..]);
        let digits = length.map_or(&[][..], |n| &self.src[from..from + n]);
        let valid = length.is_some()
            && match kind {
                Tok::HexStr => {
                    digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit)
                }
                _ => digits.iter().all(|b| matches!(b, b'0' | b'1')),
            };
        self.pos = length.map_or(self.src.len(), |n| from + n + 1);
        Some(if valid { kind } else { Tok::Bad })
    }

    /// At `$`: whether it begins a dollar-quoted string, in which case it moves past it.
    fn dollar(&mut self, start: usize) -> bool {
        let tag = self.src[start + 1..]
            .iter()
            .take(64)
            .take_while(|b| is_word_byte(**b) && **b != b'$')
            .count();
        let open = start + 1 + tag + 1;
        if self.byte(open - 1) != b'$' {
            return false;
        }
        let mark = &self.src[start..open];
        match memchr::memmem::find(&self.src[open..], mark) {
            Some(length) => {
                self.pos = open + length + mark.len();
                true
            }
            None => false,
        }
    }

    fn at(&mut self, start: usize) -> Tok {
        match self.byte(start + 1) {
            b'@' => {
                self.after_at_at = true;
                self.take(2, Tok::AtAt)
            }
            quote @ (b'\'' | b'"' | b'`') => {
                let closed = if quote == b'`' || (quote == b'"' && self.options.ansi_quotes) {
                    self.quoted(start + 2, quote)
                } else {
                    self.string(start + 2, quote)
                };
                if closed == Tok::Bad { Tok::Bad } else { Tok::UserVar }
            }
            next if is_word_byte(next) || next == b'.' => {
                let mut end = start + 1;
                while is_word_byte(self.byte(end)) || self.byte(end) == b'.' {
                    end += 1;
                }
                self.pos = end;
                Tok::UserVar
            }
            _ => self.take(1, Tok::At),
        }
    }

    fn operator(&mut self, byte: u8) -> Tok {
        let next = self.byte(self.pos + 1);
        match (byte, next) {
            (b'<', b'=') if self.byte(self.pos + 2) == b'>' => self.take(3, Tok::NullSafeEq),
            (b'<', b'=') => self.take(2, Tok::LtEq),
            (b'<', b'>') | (b'!', b'=') => self.take(2, Tok::NotEq),
            (b'<', b'<') => self.take(2, Tok::ShiftLeft),
            // The reference reads two comparison signs as one, known or not.
            (b'<' | b'>' | b'=', b'!') | (b'=', b'=' | b'<' | b'>') | (b'!', b'<' | b'>') => {
                self.take(2, Tok::Bad)
            }
            (b'<', _) => self.take(1, Tok::Lt),
            (b'>', b'=') => self.take(2, Tok::GtEq),
            (b'>', b'>') => self.take(2, Tok::ShiftRight),
            (b'>', _) => self.take(1, Tok::Gt),
            (b':', b'=') => self.take(2, Tok::Assign),
            (b':', _) => self.take(1, Tok::Colon),
            (b'-', b'>') if self.byte(self.pos + 2) == b'>' => self.take(3, Tok::ArrowArrow),
            (b'-', b'>') => self.take(2, Tok::Arrow),
            (b'-', _) => self.take(1, Tok::Minus),
            (b'&', b'&') => self.take(2, Tok::AmpAmp),
            (b'&', _) => self.take(1, Tok::Amp),
            (b'|', b'|') => self.take(2, Tok::PipePipe),
            (b'|', _) => self.take(1, Tok::Pipe),
            (b'=', _) => self.take(1, Tok::Eq),
            (b'!', _) => self.take(1, Tok::Bang),
            (b'(', _) => self.take(1, Tok::LParen),
            (b')', _) => self.take(1, Tok::RParen),
            (b'{', _) => self.take(1, Tok::LBrace),
            (b'}', _) => self.take(1, Tok::RBrace),
            (b',', _) => self.take(1, Tok::Comma),
            (b';', _) => self.take(1, Tok::Semi),
            (b'+', _) => self.take(1, Tok::Plus),
            (b'*', _) => self.take(1, Tok::Star),
            (b'/', _) => self.take(1, Tok::Slash),
            (b'%', _) => self.take(1, Tok::Percent),
            (b'^', _) => self.take(1, Tok::Caret),
            (b'~', _) => self.take(1, Tok::Tilde),
            // A word behind it would hide a blank that was forgotten.
            (b'?', next) if WORD[usize::from(next)] => self.take(1, Tok::Bad),
            (b'?', _) => self.take(1, Tok::Param),
            _ => self.take(1, Tok::Bad),
        }
    }
}

/// The value of a quoted string token (quotes included in `text`), appended to `out`.
pub fn unescape(text: &[u8], no_backslash_escapes: bool, out: &mut Vec<u8>) {
    let Some((&quote, rest)) = text.split_first() else { return };
    let body = &rest[..rest.len().saturating_sub(1)];
    out.reserve(body.len());
    let mut at = 0;
    while at < body.len() {
        let tail = &body[at..];
        let found = if no_backslash_escapes || quote == b'`' {
            memchr::memchr(quote, tail)
        } else {
            memchr::memchr2(quote, b'\\', tail)
        };
        let Some(offset) = found else {
            out.extend_from_slice(tail);
            return;
        };
        out.extend_from_slice(&tail[..offset]);
        at += offset + 2;
        let second = tail.get(offset + 1).copied();
        if tail[offset] == quote {
            out.push(quote);
            continue;
        }
        match second {
            Some(b'0') => out.push(0),
            Some(b'b') => out.push(8),
            Some(b'n') => out.push(b'\n'),
            Some(b'r') => out.push(b'\r'),
            Some(b't') => out.push(b'\t'),
            Some(b'Z') => out.push(26),
            Some(other @ (b'%' | b'_')) => out.extend_from_slice(&[b'\\', other]),
            Some(other) => out.push(other),
            None => out.push(b'\\'),
        }
    }
}
