//! Expressions: literals, calls, and the special syntaxes that the binder turns into calls.

use types::temporal::TemporalMode;
use types::{CollationId, DataType, Decimal, TypeKind, Value};

/// An expression.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Literal(Value, DataType),
    Column(Value, DataType),
    Call(String, Vec<Expr>),
}

pub(crate) struct Parser<'a> {
    text: &'a str,
    at: usize,
}

/// Expressions separated by commas.
pub(crate) fn list(text: &str) -> Option<Vec<Expr>> {
    let mut parser = Parser::new(text);
    let mut out = vec![parser.expression()?];
    while parser.eat(",") {
        out.push(parser.expression()?);
    }
    parser.at_end().then_some(out)
}

fn text_literal(text: &str) -> Expr {
    let ty = DataType::varchar(text.chars().count() as u32, CollationId::UTF8MB4_0900_AI_CI);
    Expr::Literal(Value::text(text), ty.with_nullable(false))
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str) -> Parser<'a> {
        Parser { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    pub(crate) fn at_end(&mut self) -> bool {
        self.skip();
        self.rest().is_empty()
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip();
        let matches =
            self.rest().get(..token.len()).is_some_and(|start| start.eq_ignore_ascii_case(token));
        let word = token.ends_with(|c: char| c.is_ascii_alphanumeric());
        let follows = self.rest().get(token.len()..).unwrap_or_default();
        let ends = !word || !follows.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if matches && ends {
            self.at += token.len();
            return true;
        }
        false
    }

    fn expect(&mut self, token: &str) -> Option<()> {
        self.eat(token).then_some(())
    }

    fn word(&mut self) -> String {
        self.skip();
        let length = self
            .rest()
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(self.rest().len());
        let word = self.rest()[..length].to_owned();
        self.at += length;
        word
    }

    pub(crate) fn expression(&mut self) -> Option<Expr> {
        self.skip();
        match self.rest().chars().next()? {
            '\'' | '"' => Some(text_literal(&self.string()?)),
            '0'..='9' | '-' | '.' => self.number(),
            _ => self.named(),
        }
    }

    fn string(&mut self) -> Option<String> {
        let mut out = String::new();
        let mut characters = self.rest().char_indices();
        let (_, quote) = characters.next()?;
        while let Some((index, c)) = characters.next() {
            match c {
                '\\' => out.push(match characters.next()?.1 {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    '0' => '\0',
                    'Z' => '\x1A',
                    other => other,
                }),
                c if c == quote => {
                    self.at += index + 1;
                    return Some(out);
                }
                c => out.push(c),
            }
        }
        None
    }

    fn number(&mut self) -> Option<Expr> {
        let text = self.rest();
        let mut length = usize::from(text.starts_with('-'));
        let mut exponent = false;
        for (index, c) in text.char_indices().skip(length) {
            let sign = matches!(c, '-' | '+') && text[..index].ends_with(['e', 'E']);
            exponent |= matches!(c, 'e' | 'E');
            if !(c.is_ascii_digit() || c == '.' || matches!(c, 'e' | 'E') || sign) {
                break;
            }
            length = index + c.len_utf8();
        }
        let digits = &text[..length];
        self.at += length;
        if exponent {
            let ty = DataType { length: 22, ..DataType::double() };
            return Some(Expr::Literal(
                Value::Double(digits.parse().ok()?),
                ty.with_nullable(false),
            ));
        }
        let width = digits.bytes().filter(u8::is_ascii_digit).count() as u32;
        if let Ok(number) = digits.parse::<i64>() {
            let ty = DataType::new(TypeKind::BigInt, width + 1, 0).with_nullable(false);
            return Some(Expr::Literal(Value::Int(number), ty));
        }
        if let Ok(number) = digits.parse::<u64>() {
            let mut ty = DataType::new(TypeKind::BigInt, width, 0).with_nullable(false);
            ty.unsigned = true;
            return Some(Expr::Literal(Value::UInt(number), ty));
        }
        let number = Decimal::parse(digits.as_bytes())?;
        let scale = number.scale();
        Some(Expr::Literal(
            Value::Decimal(number),
            DataType::decimal(width, scale).with_nullable(false),
        ))
    }

    fn named(&mut self) -> Option<Expr> {
        if self.eat("null") {
            return Some(Expr::Literal(Value::Null, DataType::null()));
        }
        for (word, truth) in [("true", true), ("false", false)] {
            if self.eat(word) {
                return Some(Expr::Literal(
                    Value::bool(truth),
                    DataType::boolean().with_nullable(false),
                ));
            }
        }
        for (prefix, hex) in [("_binary", false), ("x'", true)] {
            if self.rest().starts_with(prefix) {
                self.at += if hex { 1 } else { prefix.len() };
                self.skip();
                let text = self.string()?.into_bytes();
                let bytes = if hex { unhex(&text)? } else { text };
                let ty = DataType::varbinary(bytes.len() as u32).with_nullable(false);
                return Some(Expr::Literal(Value::Bytes(bytes.into()), ty));
            }
        }
        let word = self.word().to_ascii_lowercase();
        self.skip();
        if self.rest().starts_with('\'') {
            return self.temporal(&word);
        }
        if self.eat("(") {
            return self.call(&word);
        }
        column(&word)
    }

    fn temporal(&mut self, word: &str) -> Option<Expr> {
        let text = self.string()?;
        let fsp = text.split_once('.').map_or(0, |(_, fraction)| fraction.len() as u8);
        let with = |base: u32| if fsp > 0 { base + 1 + u32::from(fsp) } else { base };
        let mode = TemporalMode::default();
        let (value, ty) = match word {
            "date" => {
                let date = types::temporal::parse_date(text.as_bytes(), mode).value?;
                (Value::Date(date), DataType::new(TypeKind::Date, 10, 0))
            }
            "time" => {
                let time = types::temporal::parse_time(text.as_bytes(), 6, mode).value?;
                (Value::Time(time), DataType::new(TypeKind::Time, with(10), fsp))
            }
            "timestamp" => {
                let at = types::temporal::parse_datetime(text.as_bytes(), 6, mode).value?;
                (Value::DateTime(at), DataType::new(TypeKind::DateTime, with(19), fsp))
            }
            _ => return None,
        };
        Some(Expr::Literal(value, ty.with_nullable(false)))
    }

    /// A unit or another bare word as a constant text.
    fn keyword(&mut self) -> Expr {
        text_literal(&self.word().to_ascii_uppercase())
    }

    fn call(&mut self, name: &str) -> Option<Expr> {
        let upper = name.to_ascii_uppercase();
        match upper.as_str() {
            "EXTRACT" => {
                let unit = self.keyword();
                self.expect("from")?;
                return self.finish(upper, vec![unit]);
            }
            "TIMESTAMPADD" | "TIMESTAMPDIFF" | "GET_FORMAT" => {
                let unit = self.keyword();
                self.expect(",")?;
                return self.finish(upper, vec![unit]);
            }
            "TRIM" => return self.trim(),
            _ => {}
        }
        let mut args = Vec::new();
        let mut name = upper;
        if self.eat(")") {
            return Some(Expr::Call(name, args));
        }
        loop {
            if self.eat("interval") {
                let amount = self.expression()?;
                let unit = self.keyword();
                let date = args.pop()?;
                let subtract = name.contains("SUB");
                name =
                    if subtract { "DATE_SUB_INTERVAL".into() } else { "DATE_ADD_INTERVAL".into() };
                args = vec![unit, date, amount];
            } else {
                args.push(self.expression()?);
            }
            if self.eat("using") {
                name = if name == "CHAR" { "CHAR_USING".into() } else { "CONVERT_USING".into() };
                args.push(text_literal(&self.word()));
            } else if self.eat("in") {
                args.push(self.expression()?);
            } else if self.eat("as") {
                args.push(self.keyword());
                self.expect("(")?;
                args.push(self.expression()?);
                self.expect(")")?;
            } else if self.eat(",") {
                continue;
            }
            self.expect(")")?;
            return Some(Expr::Call(name, args));
        }
    }

    fn finish(&mut self, name: String, mut args: Vec<Expr>) -> Option<Expr> {
        loop {
            args.push(self.expression()?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        Some(Expr::Call(name, args))
    }

    fn trim(&mut self) -> Option<Expr> {
        let name = if self.eat("leading") {
            "TRIM_LEADING"
        } else if self.eat("trailing") {
            "TRIM_TRAILING"
        } else {
            self.eat("both");
            "TRIM_BOTH"
        };
        let first = self.expression()?;
        let args = if self.eat("from") { vec![self.expression()?, first] } else { vec![first] };
        self.expect(")")?;
        Some(Expr::Call(name.into(), args))
    }
}

/// The columns of the generator's table `t`.
fn column(name: &str) -> Option<Expr> {
    use TypeKind::*;
    let text = |value: &str, ty: DataType| (Value::text(value), ty);
    let utf8 = CollationId::UTF8MB4_0900_AI_CI;
    let date = types::Date::new(2020, 1, 2)?;
    let unsigned = |mut ty: DataType| {
        ty.unsigned = true;
        ty
    };
    let (value, ty) = match name {
        "i" => (Value::Int(1), DataType::new(Int, 11, 0)),
        "n" => (Value::Int(7), DataType::new(Int, 11, 0).with_nullable(false)),
        "iu" => (Value::UInt(2), unsigned(DataType::new(Int, 10, 0))),
        "b" => (Value::Int(3), DataType::new(BigInt, 20, 0)),
        "bu" => (Value::UInt(4), unsigned(DataType::new(BigInt, 20, 0))),
        "d" => (Value::Decimal(types::Decimal::parse(b"4.500")?), DataType::decimal(10, 3)),
        "db" => (Value::Double(2.5), DataType::new(Double, 22, 31)),
        "f" => (Value::Double(1.5), DataType::new(Float, 12, 31)),
        "s" => text("6", DataType::varchar(10, utf8)),
        "vb" => text("bl", DataType::varbinary(10)),
        "dt" => {
            let at = types::DateTime::new(date, 3, 4, 5, 678_000)?;
            (Value::DateTime(at), DataType::new(DateTime, 23, 3))
        }
        "da" => (Value::Date(date), DataType::new(Date, 10, 0)),
        "ti" => (Value::Time(types::Time::new(false, 3, 4, 5, 0)?), DataType::new(Time, 10, 0)),
        "y" => (Value::UInt(2020), unsigned(DataType::new(Year, 4, 0))),
        "j" => {
            let document = types::json::parse(b"{\"a\": 1}").ok()?;
            (document.to_value(), DataType::new(Json, u32::MAX, 0))
        }
        _ => return None,
    };
    Some(Expr::Column(value, ty))
}

fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    digits.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}
