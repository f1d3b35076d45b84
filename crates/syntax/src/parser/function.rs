//! Operands that start with a word: constants, CASE, and every function with special syntax.

use super::{PResult, Parser};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::{Tok, Token};

impl<'a> Parser<'a> {
    fn node(&self, start: u32, kind: ExprKind) -> PResult<Expr> {
        Ok(Expr { kind, span: self.span_from(start) })
    }

    pub(super) fn word_operand(&mut self, start: u32) -> PResult<Expr> {
        let kw = self.kw();
        match kw {
            Kw::NO_WORD => {
                if self.text_of(self.cur.tok).first() == Some(&b'_')
                    && let Some(literal) = self.introduced()?
                {
                    return self.node(start, ExprKind::Literal(literal));
                }
                self.name_operand(start)
            }
            Kw::NULL | Kw::TRUE | Kw::FALSE => {
                let literal = self.literal()?;
                self.node(start, ExprKind::Literal(literal))
            }
            _ if !kw.is_reserved() => self.soft_word(start, kw),
            _ => self.reserved_word(start, kw),
        }
    }

    /// `_charset'..'`, `_charset 0x..`.
    fn introduced(&mut self) -> PResult<Option<Literal>> {
        let token = self.cur.tok;
        let name = &self.text_of(token)[1..];
        if !is_charset(name) {
            return Ok(None);
        }
        let text = self.utf8(name, token)?;
        let span = Span { start: token.start, end: token.end };
        let introducer = Some(Ident { text, quoted: false, span });
        self.bump();
        match self.tok() {
            Tok::Str => self.string_literal(introducer).map(Some),
            Tok::HexNum | Tok::HexStr | Tok::BitNum | Tok::BitStr => {
                Ok(Some(self.binary_literal(introducer)))
            }
            _ => self.fail(),
        }
    }

    /// Words that are identifiers unless the next tokens give them another meaning.
    fn soft_word(&mut self, start: u32, kw: Kw) -> PResult<Expr> {
        let next = self.peek().kind;
        if next == Tok::Str {
            let kind = match kw {
                Kw::DATE => Some(TemporalKind::Date),
                Kw::TIME => Some(TemporalKind::Time),
                Kw::TIMESTAMP => Some(TemporalKind::Timestamp),
                _ => None,
            };
            if let Some(kind) = kind {
                self.bump();
                let text = self.bytes()?;
                let literal = Literal::Temporal { kind, text, in_braces: false };
                return self.node(start, ExprKind::Literal(literal));
            }
        }
        if matches!(kw, Kw::NEXT | Kw::PREVIOUS) && self.peek_kw() == Kw::VALUE {
            return self.sequence_value(start, kw);
        }
        if next == Tok::LParen {
            if let Some(call) = self.soft_call(start, kw)? {
                return Ok(call);
            }
            if !callable(kw) {
                self.bump();
                return self.fail();
            }
        }
        self.name_operand(start)
    }

    fn soft_call(&mut self, start: u32, kw: Kw) -> PResult<Option<Expr>> {
        let kind = match kw {
            Kw::CAST => self.cast()?,
            Kw::EXTRACT => self.extract()?,
            Kw::TRIM => self.trim()?,
            Kw::SUBSTRING | Kw::SUBSTR | Kw::MID => self.substring()?,
            Kw::POSITION => self.position()?,
            Kw::DATE_ADD | Kw::ADDDATE => self.date_add(kw == Kw::ADDDATE, false)?,
            Kw::DATE_SUB | Kw::SUBDATE => self.date_add(kw == Kw::SUBDATE, true)?,
            Kw::TIMESTAMPADD => self.timestamp_add()?,
            Kw::TIMESTAMPDIFF => self.timestamp_diff()?,
            Kw::GET_FORMAT => self.get_format()?,
            Kw::WEIGHT_STRING => self.weight_string()?,
            Kw::JSON_VALUE => self.json_value()?,
            Kw::JSON_DUALITY_OBJECT => self.duality_object()?,
            Kw::NEXTVAL | Kw::LASTVAL => {
                self.bump();
                self.bump();
                let name = Box::new(self.object_name()?);
                self.expect_tok(Tok::RParen)?;
                if kw == Kw::NEXTVAL {
                    ExprKind::NextValue(name)
                } else {
                    ExprKind::PreviousValue(name)
                }
            }
            // It always waits.
            Kw::EXECUTE => {
                let call = self.name_operand(start)?;
                self.eat(Kw::WAIT);
                return Ok(Some(call));
            }
            _ => match aggregate_of(kw) {
                Some(func) => self.aggregate(func)?,
                None => return Ok(None),
            },
        };
        self.node(start, kind).map(Some)
    }

    fn sequence_value(&mut self, start: u32, kw: Kw) -> PResult<Expr> {
        self.bump();
        self.bump();
        self.expect(Kw::FOR)?;
        let name = Box::new(self.object_name()?);
        let kind = match kw {
            Kw::NEXT => ExprKind::NextValue(name),
            _ => ExprKind::PreviousValue(name),
        };
        self.node(start, kind)
    }

    /// Reserved words that start an operand.
    fn reserved_word(&mut self, start: u32, kw: Kw) -> PResult<Expr> {
        let kind = match kw {
            Kw::CASE => self.case()?,
            Kw::CONVERT => self.convert()?,
            Kw::EXISTS => {
                self.bump();
                ExprKind::Exists(self.subquery()?)
            }
            Kw::MATCH => self.match_against()?,
            Kw::INTERVAL => return self.interval_operand(start),
            Kw::ROW => {
                self.bump();
                self.expect_tok(Tok::LParen)?;
                let mut items = vec![self.expr()?];
                self.expect_tok(Tok::Comma)?;
                items.extend(self.expr_list()?);
                self.expect_tok(Tok::RParen)?;
                ExprKind::Row(items)
            }
            Kw::DEFAULT => {
                self.bump();
                ExprKind::Default(Some(self.column_in_parens()?))
            }
            Kw::VALUES => {
                self.bump();
                ExprKind::Values(self.column_in_parens()?)
            }
            Kw::CHAR => self.char_call()?,
            Kw::GROUPING => {
                self.bump();
                ExprKind::Grouping(self.paren_list(Self::expr)?)
            }
            Kw::CURRENT_DATE
            | Kw::CURRENT_TIME
            | Kw::CURRENT_TIMESTAMP
            | Kw::LOCALTIME
            | Kw::LOCALTIMESTAMP
            | Kw::UTC_DATE
            | Kw::UTC_TIME
            | Kw::UTC_TIMESTAMP
            | Kw::CURRENT_USER => self.call_without_parens()?,
            Kw::IF
            | Kw::LEFT
            | Kw::RIGHT
            | Kw::REPLACE
            | Kw::INSERT
            | Kw::REPEAT
            | Kw::MOD
            | Kw::DATABASE
            | Kw::SCHEMA => {
                let token = self.cur.tok;
                let name = self.any_word()?;
                if !self.at_tok(Tok::LParen) {
                    return self.fail();
                }
                return self.generic_call(start, None, name, token);
            }
            _ => match window_func_of(kw) {
                Some(func) => self.window_call(func)?,
                None => return self.fail(),
            },
        };
        self.node(start, kind)
    }

    fn column_in_parens(&mut self) -> PResult<Box<ColumnName>> {
        self.in_parens(|own| Ok(Box::new(own.column_name()?)))
    }

    fn call_without_parens(&mut self) -> PResult<ExprKind> {
        let (least, most) = arity_of(self.kw());
        let name = self.any_word()?;
        let args = if self.at_tok(Tok::LParen) {
            self.call_args(false, least, most)?.0
        } else {
            Vec::new()
        };
        Ok(ExprKind::Function(Box::new(FunctionCall {
            schema: None,
            name,
            args,
            arg_names: Vec::new(),
            stored_only: false,
            over: None,
        })))
    }

    /// `INTERVAL(a, b, ..)` or `INTERVAL amount unit + date`.
    fn interval_operand(&mut self, start: u32) -> PResult<Expr> {
        match self.interval_or_function()? {
            None => match self.pending.take() {
                Some((call, _)) => Ok(call),
                None => self.fail(),
            },
            Some((amount, unit)) => {
                self.expect_tok(Tok::Plus)?;
                let date = self.expr()?;
                let arith = DateArith { date, amount, unit, subtract: false };
                self.node(start, ExprKind::DateArith(Box::new(arith)))
            }
        }
    }

    /// At `(` after a function name.
    pub(super) fn generic_call(
        &mut self,
        start: u32,
        schema: Option<Ident>,
        name: Ident,
        token: Token,
    ) -> PResult<Expr> {
        let stored_only = schema.is_none()
            && token.kind == Tok::Word
            && token.kw == Kw::NO_WORD
            && Kw::find(self.text_of(token)).is_function();
        // Only a name that is not a keyword may be a loadable function, whose arguments have names.
        let named = schema.is_none() && token.kw == Kw::NO_WORD;
        let (least, most) = arity_of(token.kw);
        let (args, arg_names) = self.call_args(named, least, most)?;
        let over = if named { self.opt_over()? } else { None };
        let call = FunctionCall { schema, name, args, arg_names, stored_only, over };
        self.node(start, ExprKind::Function(Box::new(call)))
    }

    /// `(a, b AS name, ..)` with `least` to `most` arguments.
    fn call_args(
        &mut self,
        named: bool,
        least: usize,
        most: usize,
    ) -> PResult<(Vec<Expr>, Vec<Option<Ident>>)> {
        self.expect_tok(Tok::LParen)?;
        let mut args = Vec::new();
        let mut names: Vec<Option<Ident>> = Vec::new();
        if self.at_tok(Tok::RParen) && least == 0 {
            self.bump();
            return Ok((args, names));
        }
        while args.len() < most {
            args.push(self.expr()?);
            if named && (self.eat(Kw::AS) || self.at_ident() || self.at_tok(Tok::Str)) {
                names.resize(args.len() - 1, None);
                names.push(Some(self.ident_or_text()?));
            }
            if !self.at_tok(Tok::Comma) || args.len() == most {
                break;
            }
            self.bump();
        }
        if args.len() < least {
            return self.fail();
        }
        self.expect_tok(Tok::RParen)?;
        if !names.is_empty() {
            names.resize(args.len(), None);
        }
        Ok((args, names))
    }

    fn case(&mut self) -> PResult<ExprKind> {
        self.bump();
        let operand = if self.at(Kw::WHEN) { None } else { Some(self.expr()?) };
        let mut whens = Vec::new();
        while self.eat(Kw::WHEN) {
            let when = self.expr()?;
            self.expect(Kw::THEN)?;
            whens.push((when, self.expr()?));
        }
        if whens.is_empty() {
            return self.fail();
        }
        let otherwise = if self.eat(Kw::ELSE) { Some(self.expr()?) } else { None };
        self.expect(Kw::END)?;
        Ok(ExprKind::Case(Box::new(Case { operand, whens, otherwise })))
    }

    /// Takes the function's name and its `(`.
    fn open_call(&mut self) -> PResult<()> {
        self.bump();
        self.expect_tok(Tok::LParen)
    }

    fn close(&mut self, kind: ExprKind) -> PResult<ExprKind> {
        self.expect_tok(Tok::RParen)?;
        Ok(kind)
    }

    fn cast(&mut self) -> PResult<ExprKind> {
        self.open_call()?;
        let expr = self.expr()?;
        let mut time_zone = None;
        if self.eat2(Kw::AT, Kw::TIME) {
            self.expect(Kw::ZONE)?;
            self.eat(Kw::INTERVAL);
            time_zone = Some(self.text()?);
        }
        self.expect(Kw::AS)?;
        let target = self.cast_type()?;
        let array = self.eat(Kw::ARRAY);
        self.close(ExprKind::Cast(Box::new(Cast {
            expr,
            target,
            array,
            time_zone,
            convert: false,
        })))
    }

    fn convert(&mut self) -> PResult<ExprKind> {
        self.open_call()?;
        let expr = self.expr()?;
        if self.eat(Kw::USING) {
            let charset = self.charset_name()?;
            return self.close(ExprKind::ConvertUsing { expr: Box::new(expr), charset });
        }
        self.expect_tok(Tok::Comma)?;
        let target = self.cast_type()?;
        let cast = Cast { expr, target, array: false, time_zone: None, convert: true };
        self.close(ExprKind::Cast(Box::new(cast)))
    }

    fn extract(&mut self) -> PResult<ExprKind> {
        self.open_call()?;
        let unit = self.interval_unit()?;
        self.expect(Kw::FROM)?;
        let expr = self.boxed_expr()?;
        self.close(ExprKind::Extract { unit, expr })
    }

    fn trim(&mut self) -> PResult<ExprKind> {
        self.open_call()?;
        let side = match self.eat_one_of(&[Kw::BOTH, Kw::LEADING, Kw::TRAILING]) {
            Some(Kw::LEADING) => Some(TrimSide::Leading),
            Some(Kw::TRAILING) => Some(TrimSide::Trailing),
            Some(_) => Some(TrimSide::Both),
            None => None,
        };
        let mut pattern = None;
        let expr = if side.is_some() && self.eat(Kw::FROM) {
            self.expr()?
        } else {
            let first = self.expr()?;
            if self.eat(Kw::FROM) {
                pattern = Some(first);
                self.expr()?
            } else if side.is_some() {
                return self.fail();
            } else {
                first
            }
        };
        let side = side.unwrap_or_default();
        self.close(ExprKind::Trim(Box::new(Trim { side, pattern, expr })))
    }

    fn substring(&mut self) -> PResult<ExprKind> {
        self.open_call()?;
        let expr = self.expr()?;
        let by_words = self.eat(Kw::FROM);
        if !by_words {
            self.expect_tok(Tok::Comma)?;
        }
        let from = self.expr()?;
        let more = if by_words { self.eat(Kw::FOR) } else { self.eat_tok(Tok::Comma) };
        let length = if more { Some(self.expr()?) } else { None };
        self.close(ExprKind::Substring(Box::new(Substring { expr, from, length })))
    }

    fn position(&mut self) -> PResult<ExprKind> {
        self.open_call()?;
        let needle = Box::new(self.nested(|p| p.bit_expr(0))?);
        self.expect(Kw::IN)?;
        let haystack = self.boxed_expr()?;
        self.close(ExprKind::Position { needle, haystack })
    }

    /// `days`: a plain second argument counts days.
    fn date_add(&mut self, days: bool, subtract: bool) -> PResult<ExprKind> {
        self.open_call()?;
        let date = self.expr()?;
        self.expect_tok(Tok::Comma)?;
        let (amount, unit) = if self.at(Kw::INTERVAL) {
            match self.interval_or_function()? {
                Some(parts) => parts,
                None if days => (self.expr()?, IntervalUnit::Day),
                None => return self.fail(),
            }
        } else if days {
            (self.expr()?, IntervalUnit::Day)
        } else {
            return self.fail();
        };
        self.close(ExprKind::DateArith(Box::new(DateArith { date, amount, unit, subtract })))
    }

    fn timestamp_add(&mut self) -> PResult<ExprKind> {
        self.open_call()?;
        let unit = self.interval_unit()?;
        self.expect_tok(Tok::Comma)?;
        let amount = self.boxed_expr()?;
        self.expect_tok(Tok::Comma)?;
        let expr = self.boxed_expr()?;
        self.close(ExprKind::TimestampAdd { unit, amount, expr })
    }

    fn timestamp_diff(&mut self) -> PResult<ExprKind> {
        self.open_call()?;
        let unit = self.interval_unit()?;
        self.expect_tok(Tok::Comma)?;
        let from = self.boxed_expr()?;
        self.expect_tok(Tok::Comma)?;
        let to = self.boxed_expr()?;
        self.close(ExprKind::TimestampDiff { unit, from, to })
    }

    fn get_format(&mut self) -> PResult<ExprKind> {
        self.open_call()?;
        let kind = match self.kw() {
            Kw::DATE => GetFormatKind::Date,
            Kw::TIME => GetFormatKind::Time,
            Kw::DATETIME | Kw::TIMESTAMP => GetFormatKind::Datetime,
            _ => return self.fail(),
        };
        self.bump();
        self.expect_tok(Tok::Comma)?;
        let expr = self.boxed_expr()?;
        self.close(ExprKind::GetFormat { kind, expr })
    }

    fn weight_string(&mut self) -> PResult<ExprKind> {
        self.open_call()?;
        let expr = self.expr()?;
        let mut cast = None;
        let mut widths = None;
        if self.eat_tok(Tok::Comma) {
            let length = self.number()?;
            self.expect_tok(Tok::Comma)?;
            let characters = self.number()?;
            self.expect_tok(Tok::Comma)?;
            widths = Some((length, characters, self.number()?));
        } else if self.eat(Kw::AS) {
            let binary = self.at(Kw::BINARY);
            if !binary && !self.at(Kw::CHAR) && !self.at(Kw::CHARACTER) {
                return self.fail();
            }
            self.bump();
            self.expect_tok(Tok::LParen)?;
            let at = self.start();
            let length = self.number()?;
            if length == 0 {
                return self.fail_at(at as usize);
            }
            cast = Some((length, binary));
            self.expect_tok(Tok::RParen)?;
        }
        self.close(ExprKind::WeightString(Box::new(WeightString { expr, cast, widths })))
    }

    fn char_call(&mut self) -> PResult<ExprKind> {
        self.open_call()?;
        let args = self.expr_list()?;
        let charset = if self.eat(Kw::USING) { Some(self.charset_name()?) } else { None };
        self.close(ExprKind::Char { args, charset })
    }

    fn match_against(&mut self) -> PResult<ExprKind> {
        self.bump();
        let columns = if self.at_tok(Tok::LParen) {
            self.paren_list(Self::column_name)?
        } else {
            self.comma_list(Self::column_name)?
        };
        self.expect(Kw::AGAINST)?;
        self.expect_tok(Tok::LParen)?;
        let against = self.nested(|p| p.bit_expr(0))?;
        let mode = self.match_mode()?;
        self.close(ExprKind::Match(Box::new(Match { columns, against, mode })))
    }

    fn match_mode(&mut self) -> PResult<MatchMode> {
        let mut mode = MatchMode::NaturalLanguage;
        if self.eat(Kw::IN) {
            if self.eat(Kw::BOOLEAN) {
                self.expect(Kw::MODE)?;
                return Ok(MatchMode::Boolean);
            }
            self.expect_all(&[Kw::NATURAL, Kw::LANGUAGE, Kw::MODE])?;
            if self.eat(Kw::WITH) {
                self.expect_all(&[Kw::QUERY, Kw::EXPANSION])?;
                mode = MatchMode::NaturalLanguageWithExpansion;
            }
        } else if self.eat(Kw::WITH) {
            self.expect_all(&[Kw::QUERY, Kw::EXPANSION])?;
            mode = MatchMode::WithExpansion;
        }
        Ok(mode)
    }

    fn json_value(&mut self) -> PResult<ExprKind> {
        self.open_call()?;
        let doc = self.expr()?;
        self.expect_tok(Tok::Comma)?;
        let path = self.signed_literal(|literal| matches!(literal, Literal::String(_)))?;
        let returning = if self.eat(Kw::RETURNING) { Some(self.cast_type()?) } else { None };
        let (on_empty, on_error) = self.json_on_clauses()?;
        let value = JsonValue { doc, path, returning, on_empty, on_error };
        self.close(ExprKind::JsonValue(Box::new(value)))
    }

    fn duality_object(&mut self) -> PResult<ExprKind> {
        self.open_call()?;
        let tags = self.duality_tags()?;
        let mut members = Vec::new();
        loop {
            let key = self.text()?;
            self.expect_tok(Tok::Colon)?;
            members.push(DualityMember { key, value: self.expr()? });
            if !self.eat_tok(Tok::Comma) {
                break;
            }
        }
        let object = DualityObject { is_root: false, tags, members };
        self.close(ExprKind::DualityObject(Box::new(object)))
    }

    /// `[WITH tag]`, `[WITH (tag, ...)]`.
    fn duality_tags(&mut self) -> PResult<DualityTags> {
        let mut tags = DualityTags::default();
        if !self.eat(Kw::WITH) {
            return Ok(tags);
        }
        let is_list = self.eat_tok(Tok::LParen);
        loop {
            let tag = match self.kw() {
                Kw::INSERT => &mut tags.insert,
                Kw::UPDATE => &mut tags.update,
                Kw::DELETE => &mut tags.delete,
                _ => return self.fail(),
            };
            let is_repeated = std::mem::replace(tag, true);
            tags.is_repeated |= is_repeated;
            self.bump();
            if !is_list || !self.eat_tok(Tok::Comma) {
                break;
            }
        }
        if is_list {
            self.expect_tok(Tok::RParen)?;
        }
        Ok(tags)
    }

    /// A literal of a kind, or a number with a sign.
    fn signed_literal(&mut self, takes: impl Fn(&Literal) -> bool) -> PResult<Expr> {
        let start = self.start();
        let is_signed = self.at_tok(Tok::Minus) || self.at_tok(Tok::Plus);
        let given = self.operand()?;
        let mut found = &given;
        if is_signed && let ExprKind::Unary { expr, .. } = &given.kind {
            found = expr;
        }
        let is_taken = matches!(&found.kind, ExprKind::Literal(literal) if takes(literal));
        if is_taken { Ok(given) } else { self.fail_at(start as usize) }
    }

    /// `[.. ON EMPTY] [.. ON ERROR]`.
    pub(super) fn json_on_clauses(&mut self) -> PResult<(Option<JsonOn>, Option<JsonOn>)> {
        let (mut on_empty, mut on_error) = (None, None);
        while matches!(self.kw(), Kw::ERROR | Kw::NULL | Kw::DEFAULT) {
            let word = self.kw();
            self.bump();
            let on = match word {
                Kw::ERROR => JsonOn::Error,
                Kw::NULL => JsonOn::Null,
                _ => {
                    let given = self.signed_literal(|literal| !matches!(literal, Literal::Null))?;
                    JsonOn::Default(Box::new(given))
                }
            };
            self.expect(Kw::ON)?;
            if self.at(Kw::EMPTY) && on_empty.is_none() && on_error.is_none() {
                on_empty = Some(on);
            } else if self.at(Kw::ERROR) && on_error.is_none() {
                on_error = Some(on);
            } else {
                return self.fail();
            }
            self.bump();
        }
        Ok((on_empty, on_error))
    }

    // --- aggregates and windows

    fn aggregate(&mut self, func: AggregateFunc) -> PResult<ExprKind> {
        self.open_call()?;
        let mut call = AggregateCall {
            func,
            distinct: false,
            star: false,
            args: Vec::new(),
            order_by: Vec::new(),
            separator: None,
            limit: None,
            over: None,
        };
        if func == AggregateFunc::Count && self.eat_tok(Tok::Star) {
            call.star = true;
        } else {
            let may_be_distinct = !matches!(
                func,
                AggregateFunc::BitAnd | AggregateFunc::BitOr | AggregateFunc::BitXor
            );
            if !self.eat(Kw::ALL) && may_be_distinct {
                call.distinct = self.eat(Kw::DISTINCT) || self.eat(Kw::DISTINCTROW);
            }
            call.args = self.expr_list()?;
            let expected = match func {
                AggregateFunc::GroupConcat => call.args.len(),
                AggregateFunc::Count if call.distinct => call.args.len(),
                AggregateFunc::JsonObjectAgg => 2,
                _ => 1,
            };
            if call.args.len() != expected {
                return self.fail();
            }
            self.aggregate_tail(&mut call)?;
        }
        self.expect_tok(Tok::RParen)?;
        call.over = self.opt_over()?;
        Ok(ExprKind::Aggregate(Box::new(call)))
    }

    fn aggregate_tail(&mut self, call: &mut AggregateCall) -> PResult<()> {
        if !matches!(call.func, AggregateFunc::GroupConcat | AggregateFunc::JsonArrayAgg) {
            return Ok(());
        }
        call.order_by = self.opt_order_by()?;
        if call.func == AggregateFunc::GroupConcat && self.eat(Kw::SEPARATOR) {
            call.separator = Some(self.bytes_or_hex()?);
        }
        call.limit = self.opt_limit()?;
        Ok(())
    }

    fn window_call(&mut self, func: WindowFunc) -> PResult<ExprKind> {
        self.open_call()?;
        let (args, count) = match func {
            WindowFunc::RowNumber
            | WindowFunc::Rank
            | WindowFunc::DenseRank
            | WindowFunc::CumeDist
            | WindowFunc::PercentRank => (Vec::new(), 0),
            WindowFunc::Ntile => (vec![self.stable_integer()?], 1),
            WindowFunc::FirstValue | WindowFunc::LastValue => (self.expr_list()?, 1),
            WindowFunc::Lead | WindowFunc::Lag => (self.offset_arguments()?, 0),
            WindowFunc::NthValue => (self.expr_list()?, 2),
        };
        if count > 0 && args.len() != count {
            return self.fail();
        }
        self.expect_tok(Tok::RParen)?;
        let mut from_last = false;
        if func == WindowFunc::NthValue && self.eat(Kw::FROM) {
            from_last = match self.eat_one_of(&[Kw::FIRST, Kw::LAST]) {
                Some(word) => word == Kw::LAST,
                None => return self.fail(),
            };
        }
        let takes_nulls = !args.is_empty() && func != WindowFunc::Ntile;
        let mut ignore_nulls = false;
        if takes_nulls && (self.at(Kw::RESPECT) || self.at(Kw::IGNORE)) {
            ignore_nulls = self.at(Kw::IGNORE);
            self.bump();
            self.expect(Kw::NULLS)?;
        }
        match self.opt_over()? {
            Some(over) => {
                let call = WindowCall { func, args, from_last, ignore_nulls, over };
                Ok(ExprKind::Window(Box::new(call)))
            }
            None => self.fail(),
        }
    }

    /// The arguments of LEAD and LAG: a value, how many rows away, and what is there without such a row.
    fn offset_arguments(&mut self) -> PResult<Vec<Expr>> {
        let mut args = vec![self.expr()?];
        if self.eat_tok(Tok::Comma) {
            args.push(self.stable_integer()?);
            if self.eat_tok(Tok::Comma) {
                args.push(self.expr()?);
            }
        }
        Ok(args)
    }

    /// A number that is the same for all rows: as it stands, a parameter or a variable.
    fn stable_integer(&mut self) -> PResult<Expr> {
        let start = self.start();
        if matches!(self.tok(), Tok::Int | Tok::HexNum | Tok::Param | Tok::UserVar | Tok::At) {
            return self.primary();
        }
        if !self.at_ident() {
            return self.fail();
        }
        let column = self.column_name()?;
        let kind = match column.table.is_none() && self.in_program {
            true => ExprKind::Param(self.limit_variable(&column.name, start)?),
            false => ExprKind::Column(Box::new(column)),
        };
        self.node(start, kind)
    }

    fn opt_over(&mut self) -> PResult<Option<Over>> {
        if !self.eat(Kw::OVER) {
            return Ok(None);
        }
        if self.at_tok(Tok::LParen) {
            return Ok(Some(Over::Spec(Box::new(self.window_spec()?))));
        }
        Ok(Some(Over::Name(self.ident()?)))
    }

    /// `(name PARTITION BY .. ORDER BY .. frame)`.
    pub(super) fn window_spec(&mut self) -> PResult<WindowSpec> {
        self.expect_tok(Tok::LParen)?;
        let mut spec = WindowSpec::default();
        if self.at_ident() {
            spec.base = Some(self.ident()?);
        }
        if self.eat(Kw::PARTITION) {
            self.expect(Kw::BY)?;
            spec.partition_by = self.expr_list()?;
        }
        spec.order_by = self.opt_order_by()?;
        let unit = match self.kw() {
            Kw::ROWS => Some(FrameUnit::Rows),
            Kw::RANGE => Some(FrameUnit::Range),
            Kw::GROUPS => Some(FrameUnit::Groups),
            _ => None,
        };
        if let Some(unit) = unit {
            self.bump();
            spec.frame = Some(self.frame(unit)?);
        }
        self.expect_tok(Tok::RParen)?;
        Ok(spec)
    }

    fn frame(&mut self, unit: FrameUnit) -> PResult<Frame> {
        let (start, end) = if self.eat(Kw::BETWEEN) {
            let start = self.frame_bound()?;
            self.expect(Kw::AND)?;
            (start, self.frame_bound()?)
        } else {
            (self.frame_bound()?, FrameBound::CurrentRow)
        };
        let mut exclude = FrameExclude::NoOthers;
        if self.eat(Kw::EXCLUDE) {
            exclude = match self.kw() {
                Kw::CURRENT => {
                    self.bump();
                    FrameExclude::CurrentRow
                }
                Kw::GROUP => FrameExclude::Group,
                Kw::TIES => FrameExclude::Ties,
                Kw::NO => {
                    self.bump();
                    FrameExclude::NoOthers
                }
                _ => return self.fail(),
            };
            let last = match exclude {
                FrameExclude::CurrentRow => self.at(Kw::ROW),
                FrameExclude::NoOthers => self.at(Kw::OTHERS),
                FrameExclude::Group | FrameExclude::Ties => true,
            };
            if !last {
                return self.fail();
            }
            self.bump();
        }
        Ok(Frame { unit, start, end, exclude })
    }

    fn frame_bound(&mut self) -> PResult<FrameBound> {
        if self.eat2(Kw::CURRENT, Kw::ROW) {
            return Ok(FrameBound::CurrentRow);
        }
        if self.eat(Kw::UNBOUNDED) {
            return match self.eat_one_of(&[Kw::PRECEDING, Kw::FOLLOWING]) {
                Some(Kw::PRECEDING) => Ok(FrameBound::UnboundedPreceding),
                Some(_) => Ok(FrameBound::UnboundedFollowing),
                None => self.fail(),
            };
        }
        let (amount, unit) = if self.eat(Kw::INTERVAL) {
            let amount = self.boxed_expr()?;
            (amount, Some(self.interval_unit()?))
        } else if matches!(self.tok(), Tok::Int | Tok::Decimal | Tok::Float | Tok::Param) {
            (Box::new(self.primary()?), None)
        } else {
            return self.fail();
        };
        match self.eat_one_of(&[Kw::PRECEDING, Kw::FOLLOWING]) {
            Some(Kw::PRECEDING) => Ok(FrameBound::Preceding(amount, unit)),
            Some(_) => Ok(FrameBound::Following(amount, unit)),
            None => self.fail(),
        }
    }
}

fn aggregate_of(kw: Kw) -> Option<AggregateFunc> {
    use AggregateFunc::*;
    Some(match kw {
        Kw::COUNT => Count,
        Kw::SUM => Sum,
        Kw::AVG => Avg,
        Kw::MIN => Min,
        Kw::MAX => Max,
        Kw::BIT_AND => BitAnd,
        Kw::BIT_OR => BitOr,
        Kw::BIT_XOR => BitXor,
        Kw::STD | Kw::STDDEV | Kw::STDDEV_POP => StddevPop,
        Kw::STDDEV_SAMP => StddevSamp,
        Kw::VARIANCE | Kw::VAR_POP => VarPop,
        Kw::VAR_SAMP => VarSamp,
        Kw::GROUP_CONCAT => GroupConcat,
        Kw::JSON_ARRAYAGG => JsonArrayAgg,
        Kw::JSON_OBJECTAGG => JsonObjectAgg,
        Kw::ST_COLLECT => StCollect,
        _ => return None,
    })
}

fn window_func_of(kw: Kw) -> Option<WindowFunc> {
    use WindowFunc::*;
    Some(match kw {
        Kw::ROW_NUMBER => RowNumber,
        Kw::RANK => Rank,
        Kw::DENSE_RANK => DenseRank,
        Kw::CUME_DIST => CumeDist,
        Kw::PERCENT_RANK => PercentRank,
        Kw::NTILE => Ntile,
        Kw::LEAD => Lead,
        Kw::LAG => Lag,
        Kw::FIRST_VALUE => FirstValue,
        Kw::LAST_VALUE => LastValue,
        Kw::NTH_VALUE => NthValue,
        _ => return None,
    })
}

/// How many arguments the grammar requires for a function that is a keyword.
fn arity_of(kw: Kw) -> (usize, usize) {
    match kw {
        Kw::DATABASE
        | Kw::SCHEMA
        | Kw::USER
        | Kw::SESSION_USER
        | Kw::SYSTEM_USER
        | Kw::CURRENT_USER
        | Kw::ROW_COUNT
        | Kw::CURDATE
        | Kw::CURRENT_DATE
        | Kw::UTC_DATE => (0, 0),
        Kw::NOW
        | Kw::CURRENT_TIMESTAMP
        | Kw::LOCALTIME
        | Kw::LOCALTIMESTAMP
        | Kw::SYSDATE
        | Kw::CURTIME
        | Kw::CURRENT_TIME
        | Kw::UTC_TIME
        | Kw::UTC_TIMESTAMP => (0, 1),
        Kw::ASCII
        | Kw::CHARSET
        | Kw::COLLATION
        | Kw::DATE
        | Kw::DAY
        | Kw::HOUR
        | Kw::MICROSECOND
        | Kw::MINUTE
        | Kw::MONTH
        | Kw::QUARTER
        | Kw::REVERSE
        | Kw::SECOND
        | Kw::TIME
        | Kw::YEAR => (1, 1),
        Kw::TIMESTAMP | Kw::WEEK | Kw::LOG => (1, 2),
        Kw::LEFT | Kw::RIGHT | Kw::REPEAT | Kw::TRUNCATE | Kw::MOD | Kw::POINT => (2, 2),
        Kw::FORMAT => (2, 3),
        Kw::IF | Kw::REPLACE => (3, 3),
        Kw::INSERT => (4, 4),
        Kw::COALESCE => (1, usize::MAX),
        _ => (0, usize::MAX),
    }
}

/// Whether a word that is not reserved is also the name of a function.
fn callable(kw: Kw) -> bool {
    kw.is_function()
        || matches!(
            kw,
            Kw::ASCII | Kw::CHARSET | Kw::COALESCE | Kw::COLLATION | Kw::DATE | Kw::DAY
                | Kw::FORMAT | Kw::GEOMCOLLECTION | Kw::GEOMETRYCOLLECTION | Kw::HOUR
                | Kw::LINESTRING | Kw::LOG | Kw::MICROSECOND | Kw::MINUTE | Kw::MONTH
                | Kw::MULTILINESTRING | Kw::MULTIPOINT | Kw::MULTIPOLYGON | Kw::POINT
                | Kw::POLYGON | Kw::QUARTER | Kw::REVERSE | Kw::ROW_COUNT | Kw::SECOND
                | Kw::SQL_TSI_DAY | Kw::SQL_TSI_HOUR | Kw::SQL_TSI_MINUTE | Kw::SQL_TSI_MONTH
                | Kw::SQL_TSI_QUARTER | Kw::SQL_TSI_SECOND | Kw::SQL_TSI_WEEK | Kw::SQL_TSI_YEAR
                | Kw::TIME | Kw::TIMESTAMP | Kw::TRUNCATE | Kw::USER | Kw::WEEK | Kw::YEAR
        )
        // Keywords of MariaDB's grammar alone are plain names in the reference.
        || kw.is_extension()
}

/// Whether it is the name of a character set, so that `_name'..'` is one literal.
pub(crate) fn is_charset(name: &[u8]) -> bool {
    const NAMES: &[&str] = &[
        "utf8mb4", "utf8mb3", "utf8", "binary", "latin1", "ascii", "ucs2", "utf16", "utf16le",
        "utf32", "big5", "dec8", "cp850", "hp8", "koi8r", "latin2", "swe7", "ujis", "sjis",
        "hebrew", "tis620", "euckr", "koi8u", "gb2312", "greek", "cp1250", "gbk", "latin5",
        "armscii8", "cp866", "keybcs2", "macce", "macroman", "cp852", "latin7", "cp1251", "cp1256",
        "cp1257", "geostd8", "cp932", "eucjpms", "gb18030",
    ];
    NAMES.iter().any(|n| n.as_bytes().eq_ignore_ascii_case(name))
}
