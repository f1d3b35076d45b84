//! Expressions by precedence: logic, comparison, bits and arithmetic, operands.

use super::{PResult, Parser, parse_u64, radix_bytes};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::{Tok, Token};

/// Binding powers of the logical operators.
const OR: u8 = 1;
const XOR: u8 = 2;
const AND: u8 = 3;
const NOT: u8 = 4;

/// Binding powers of the operators inside predicates.
const BIT_OR: u8 = 1;
const BIT_AND: u8 = 2;
const SHIFT: u8 = 3;
const SUM: u8 = 4;
const PRODUCT: u8 = 5;
const BIT_XOR: u8 = 6;
const CONCAT: u8 = 7;
const TIGHT: u8 = 8;

/// The content of a pair of parentheses.
pub(super) enum Paren {
    Query(Box<Query>),
    Expr(Expr),
}

impl<'a> Parser<'a> {
    /// An expression.
    pub(super) fn expr(&mut self) -> PResult<Expr> {
        self.nested(|p| p.logic(0))
    }

    pub(super) fn boxed_expr(&mut self) -> PResult<Box<Expr>> {
        Ok(Box::new(self.expr()?))
    }

    pub(super) fn expr_list(&mut self) -> PResult<Vec<Expr>> {
        self.comma_list(Self::expr)
    }

    fn make(&self, start: u32, kind: ExprKind) -> Expr {
        Expr { kind, span: self.span_from(start) }
    }

    // Each level is a small function for its first operand and a second one, not on the stack while
    // that operand is parsed, for the rest: nesting must cost little stack.

    fn logic(&mut self, min: u8) -> PResult<Expr> {
        let start = self.operand_start();
        let left = if self.at(Kw::NOT) && self.pending.is_none() {
            self.not_expr(start)?
        } else {
            self.comparison()?
        };
        match self.tok() {
            Tok::AmpAmp | Tok::PipePipe => self.logic_tail(min, start, left),
            Tok::Word if matches!(self.kw(), Kw::AND | Kw::OR | Kw::XOR) => {
                self.logic_tail(min, start, left)
            }
            _ => Ok(left),
        }
    }

    /// At NOT where an operand is due.
    fn not_expr(&mut self, start: u32) -> PResult<Expr> {
        if self.options.high_not_precedence {
            return self.comparison();
        }
        self.bump();
        let inner = Box::new(self.nested(|p| p.logic(NOT))?);
        self.grow()?;
        Ok(self.make(start, ExprKind::Not(inner)))
    }

    fn logic_tail(&mut self, min: u8, start: u32, mut left: Expr) -> PResult<Expr> {
        // The operator of the n-ary node `left`, when this loop built it.
        let mut chain = 0;
        loop {
            let power = match self.tok() {
                Tok::AmpAmp => AND,
                Tok::PipePipe if !self.options.pipes_as_concat => OR,
                Tok::Word => match self.kw() {
                    Kw::AND => AND,
                    Kw::OR => OR,
                    Kw::XOR => XOR,
                    _ => return Ok(left),
                },
                _ => return Ok(left),
            };
            if power <= min {
                return Ok(left);
            }
            self.bump();
            let right = self.side(|p| p.logic(power))?;
            left = self.join_logic(start, power, chain == power, left, right)?;
            chain = power;
        }
    }

    fn join_logic(
        &mut self,
        start: u32,
        power: u8,
        extend: bool,
        mut left: Expr,
        right: Expr,
    ) -> PResult<Expr> {
        if extend && power != XOR {
            if let ExprKind::And(items) | ExprKind::Or(items) = &mut left.kind {
                items.push(right);
            }
            left.span = self.span_from(start);
            return Ok(left);
        }
        self.grow()?;
        let kind = match power {
            AND => ExprKind::And(vec![left, right]),
            OR => ExprKind::Or(vec![left, right]),
            _ => ExprKind::Xor(Box::new(left), Box::new(right)),
        };
        Ok(self.make(start, kind))
    }

    fn operand_start(&self) -> u32 {
        self.pending.as_ref().map_or(self.start(), |(_, start)| *start)
    }

    /// `IS`, comparison operators.
    fn comparison(&mut self) -> PResult<Expr> {
        let start = self.operand_start();
        let left = self.predicate()?;
        match self.tok() {
            Tok::Eq | Tok::NullSafeEq | Tok::NotEq | Tok::Lt | Tok::LtEq | Tok::Gt | Tok::GtEq => {
                self.comparison_tail(start, left)
            }
            Tok::Word if self.at(Kw::IS) => self.comparison_tail(start, left),
            _ => Ok(left),
        }
    }

    fn comparison_tail(&mut self, start: u32, mut left: Expr) -> PResult<Expr> {
        loop {
            let op = match self.tok() {
                Tok::Eq => BinaryOp::Eq,
                Tok::NullSafeEq => BinaryOp::NullSafeEq,
                Tok::NotEq => BinaryOp::NotEq,
                Tok::Lt => BinaryOp::Lt,
                Tok::LtEq => BinaryOp::LtEq,
                Tok::Gt => BinaryOp::Gt,
                Tok::GtEq => BinaryOp::GtEq,
                Tok::Word if self.at(Kw::IS) => {
                    let (test, expr) = self.is_test(start, left)?;
                    left = expr;
                    if test != IsTest::Null {
                        return Ok(left);
                    }
                    continue;
                }
                _ => return Ok(left),
            };
            self.bump();
            left = match self.eat_one_of(&[Kw::ALL, Kw::ANY, Kw::SOME]) {
                Some(word) if self.at_tok(Tok::LParen) => {
                    let query = self.subquery()?;
                    let left = Box::new(left);
                    let all = word == Kw::ALL;
                    self.make(start, ExprKind::Quantified { left, op, all, query })
                }
                Some(_) => return self.fail(),
                None => {
                    let right = Box::new(self.side(|p| p.predicate())?);
                    self.make(start, ExprKind::Binary { op, left: Box::new(left), right })
                }
            };
            self.grow()?;
        }
    }

    fn is_test(&mut self, start: u32, left: Expr) -> PResult<(IsTest, Expr)> {
        self.bump();
        let negated = self.eat(Kw::NOT);
        let test = match self.kw() {
            Kw::NULL => IsTest::Null,
            Kw::TRUE => IsTest::True,
            Kw::FALSE => IsTest::False,
            Kw::UNKNOWN => IsTest::Unknown,
            _ => return self.fail(),
        };
        self.bump();
        self.grow()?;
        Ok((test, self.make(start, ExprKind::Is { expr: Box::new(left), test, negated })))
    }

    /// `IN`, `BETWEEN`, `LIKE`, `REGEXP`, `MEMBER OF`, `SOUNDS LIKE`.
    fn predicate(&mut self) -> PResult<Expr> {
        let start = self.operand_start();
        let left = self.bit_expr(0)?;
        if self.tok() != Tok::Word {
            return Ok(left);
        }
        match self.kw() {
            Kw::NOT
            | Kw::IN
            | Kw::BETWEEN
            | Kw::LIKE
            | Kw::REGEXP
            | Kw::RLIKE
            | Kw::MEMBER
            | Kw::SOUNDS => self.predicate_tail(start, left),
            _ => Ok(left),
        }
    }

    fn predicate_tail(&mut self, start: u32, left: Expr) -> PResult<Expr> {
        let negated = self.at(Kw::NOT);
        if negated {
            let next = self.peek_kw();
            if !matches!(next, Kw::IN | Kw::BETWEEN | Kw::LIKE | Kw::REGEXP | Kw::RLIKE) {
                // The error belongs to the word after NOT.
                self.bump();
                return self.fail();
            }
            self.bump();
        }
        let kind = match self.kw() {
            Kw::IN => self.in_tail(left, negated)?,
            Kw::BETWEEN => self.between_tail(left, negated)?,
            Kw::LIKE => {
                self.bump();
                let pattern = self.side(|p| p.bit_expr(CONCAT - 1))?;
                let escape = if self.eat(Kw::ESCAPE) {
                    Some(self.side(|p| p.bit_expr(CONCAT - 1))?)
                } else {
                    None
                };
                ExprKind::Like(Box::new(Like { expr: left, pattern, escape, negated }))
            }
            Kw::REGEXP | Kw::RLIKE => {
                self.bump();
                let pattern = Box::new(self.side(|p| p.bit_expr(0))?);
                ExprKind::Regexp { expr: Box::new(left), pattern, negated }
            }
            Kw::MEMBER => {
                if self.peek_kw() != Kw::OF && self.peek().kind != Tok::LParen {
                    return Ok(left);
                }
                self.bump();
                self.eat(Kw::OF);
                let array = self.in_parens(|own| own.nested(|p| p.bit_expr(CONCAT - 1)))?;
                ExprKind::MemberOf { value: Box::new(left), array: Box::new(array) }
            }
            Kw::SOUNDS => {
                if self.peek_kw() != Kw::LIKE {
                    return Ok(left);
                }
                self.bump();
                self.bump();
                let right = self.side(|p| p.bit_expr(0))?;
                ExprKind::SoundsLike(Box::new(left), Box::new(right))
            }
            _ => return Ok(left),
        };
        self.grow()?;
        Ok(self.make(start, kind))
    }

    fn in_tail(&mut self, left: Expr, negated: bool) -> PResult<ExprKind> {
        self.bump();
        if !self.at_tok(Tok::LParen) {
            return self.fail();
        }
        let first = self.nested(|p| p.paren_start())?;
        let expr = Box::new(left);
        let first = match first {
            Paren::Query(query) => {
                self.expect_tok(Tok::RParen)?;
                return Ok(ExprKind::InSubquery { expr, query, negated });
            }
            Paren::Expr(first) => first,
        };
        let mut list = vec![first];
        while self.eat_tok(Tok::Comma) {
            list.push(self.expr()?);
        }
        self.expect_tok(Tok::RParen)?;
        Ok(ExprKind::InList { expr, list, negated })
    }

    fn between_tail(&mut self, left: Expr, negated: bool) -> PResult<ExprKind> {
        self.bump();
        let low = self.side(|p| p.bit_expr(0))?;
        self.expect(Kw::AND)?;
        let high = self.nested(|p| p.predicate())?;
        Ok(ExprKind::Between(Box::new(Between { expr: left, low, high, negated })))
    }

    /// Arithmetic and bit operators that bind tighter than `min`.
    pub(super) fn bit_expr(&mut self, min: u8) -> PResult<Expr> {
        let start = self.operand_start();
        let left = self.operand()?;
        match self.bit_operator() {
            Some((power, _)) if power > min => self.bit_tail(min, start, left),
            _ => Ok(left),
        }
    }

    fn bit_tail(&mut self, min: u8, start: u32, mut left: Expr) -> PResult<Expr> {
        let mut concat = false;
        loop {
            let Some((power, op)) = self.bit_operator() else { return Ok(left) };
            if power <= min {
                return Ok(left);
            }
            self.bump();
            if power == SUM && self.at(Kw::INTERVAL) && self.pending.is_none() {
                left = self.plus_interval(start, left, op == BinaryOp::Sub)?;
                continue;
            }
            let right = self.side(|p| p.bit_expr(power))?;
            if concat && power == CONCAT {
                if let ExprKind::Concat(items) = &mut left.kind {
                    items.push(right);
                }
                left.span = self.span_from(start);
                continue;
            }
            self.grow()?;
            concat = power == CONCAT;
            let kind = if concat {
                ExprKind::Concat(vec![left, right])
            } else {
                ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) }
            };
            left = self.make(start, kind);
        }
    }

    #[inline]
    fn bit_operator(&self) -> Option<(u8, BinaryOp)> {
        Some(match self.tok() {
            Tok::Pipe => (BIT_OR, BinaryOp::BitOr),
            Tok::Amp => (BIT_AND, BinaryOp::BitAnd),
            Tok::ShiftLeft => (SHIFT, BinaryOp::ShiftLeft),
            Tok::ShiftRight => (SHIFT, BinaryOp::ShiftRight),
            Tok::Plus => (SUM, BinaryOp::Add),
            Tok::Minus => (SUM, BinaryOp::Sub),
            Tok::Star => (PRODUCT, BinaryOp::Mul),
            Tok::Slash => (PRODUCT, BinaryOp::Div),
            Tok::Percent => (PRODUCT, BinaryOp::Mod),
            Tok::Caret => (BIT_XOR, BinaryOp::BitXor),
            Tok::PipePipe if self.options.pipes_as_concat => (CONCAT, BinaryOp::Add),
            Tok::Word => match self.kw() {
                Kw::DIV => (PRODUCT, BinaryOp::IntDiv),
                Kw::MOD => (PRODUCT, BinaryOp::Mod),
                _ => return None,
            },
            _ => return None,
        })
    }

    /// At INTERVAL after `+` or `-`.
    fn plus_interval(&mut self, start: u32, date: Expr, subtract: bool) -> PResult<Expr> {
        let Some((amount, unit)) = self.interval_or_function()? else {
            // `a + INTERVAL(1, 2)` is the function, now pending.
            let right = self.side(|p| p.bit_expr(SUM))?;
            self.grow()?;
            let op = if subtract { BinaryOp::Sub } else { BinaryOp::Add };
            let kind = ExprKind::Binary { op, left: Box::new(date), right: Box::new(right) };
            return Ok(self.make(start, kind));
        };
        self.grow()?;
        let arith = DateArith { date, amount, unit, subtract };
        Ok(self.make(start, ExprKind::DateArith(Box::new(arith))))
    }

    /// At INTERVAL: `INTERVAL amount unit`, or None and a pending `INTERVAL(a, b, ..)`.
    pub(super) fn interval_or_function(&mut self) -> PResult<Option<(Expr, IntervalUnit)>> {
        let start = self.start();
        self.bump();
        if self.at_tok(Tok::LParen) {
            let open = self.start();
            let first = match self.nested(|p| p.paren_start())? {
                Paren::Query(query) => self.make(open, ExprKind::Subquery(query)),
                Paren::Expr(first) if self.at_tok(Tok::Comma) => {
                    let mut args = vec![first];
                    while self.eat_tok(Tok::Comma) {
                        args.push(self.expr()?);
                    }
                    self.expect_tok(Tok::RParen)?;
                    self.grow()?;
                    let call = self.make(start, ExprKind::IntervalFunction(args));
                    self.pending = Some((call, start));
                    return Ok(None);
                }
                Paren::Expr(first) => first,
            };
            self.expect_tok(Tok::RParen)?;
            self.pending = Some((first, open));
        }
        let amount = self.expr()?;
        Ok(Some((amount, self.interval_unit()?)))
    }

    /// An operand with its prefixes and `COLLATE`.
    pub(super) fn operand(&mut self) -> PResult<Expr> {
        let start = self.operand_start();
        if self.pending.is_none() {
            match self.tok() {
                Tok::Minus | Tok::Plus | Tok::Tilde | Tok::Bang => return self.unary(start),
                Tok::Word if matches!(self.kw(), Kw::NOT | Kw::BINARY) => {
                    return self.unary(start);
                }
                _ => {}
            }
        }
        let operand = self.primary()?;
        if self.at(Kw::COLLATE) { self.collate_tail(start, operand) } else { Ok(operand) }
    }

    fn unary(&mut self, start: u32) -> PResult<Expr> {
        let is_sign = self.at_tok(Tok::Bang);
        let op = match self.tok() {
            Tok::Minus => Some(UnaryOp::Neg),
            Tok::Plus => Some(UnaryOp::Plus),
            Tok::Tilde => Some(UnaryOp::BitNot),
            Tok::Bang => None,
            _ if self.at(Kw::BINARY) => Some(UnaryOp::Binary),
            _ if self.options.high_not_precedence => None,
            _ => return self.fail(),
        };
        self.bump();
        let expr = Box::new(self.nested(|p| p.bit_expr(TIGHT))?);
        self.grow()?;
        let kind = match op {
            Some(op) => ExprKind::Unary { op, expr },
            None if is_sign => ExprKind::NotSign(expr),
            None => ExprKind::Not(expr),
        };
        Ok(self.make(start, kind))
    }

    fn collate_tail(&mut self, start: u32, mut operand: Expr) -> PResult<Expr> {
        while self.at(Kw::COLLATE) {
            self.bump();
            let collation = self.charset_name()?;
            self.grow()?;
            operand = self.make(start, ExprKind::Collate { expr: Box::new(operand), collation });
        }
        Ok(operand)
    }

    pub(super) fn primary(&mut self) -> PResult<Expr> {
        if let Some((pending, _)) = self.pending.take() {
            return Ok(pending);
        }
        let start = self.start();
        match self.tok() {
            Tok::Word => self.word_operand(start),
            Tok::Quoted => self.name_operand(start),
            Tok::LParen => self.paren_operand(start),
            Tok::UserVar | Tok::At => self.user_var_operand(start),
            Tok::LBrace => self.brace_operand(start),
            _ => self.simple_operand(start),
        }
    }

    /// Operands without their own operands.
    fn simple_operand(&mut self, start: u32) -> PResult<Expr> {
        let kind = match self.tok() {
            Tok::Int | Tok::Str => match self.lift() {
                Some(param) => ExprKind::Param(param),
                None => ExprKind::Literal(self.literal()?),
            },
            Tok::Decimal
            | Tok::Float
            | Tok::NationalStr
            | Tok::HexNum
            | Tok::HexStr
            | Tok::BitNum
            | Tok::BitStr => ExprKind::Literal(self.literal()?),
            Tok::Param if self.options.placeholders => {
                self.bump();
                self.params += 1;
                ExprKind::Param(self.params - 1)
            }
            Tok::AtAt => ExprKind::SystemVar(Box::new(self.system_var()?)),
            _ => return self.fail(),
        };
        Ok(self.make(start, kind))
    }

    /// The parameter that the current literal was lifted to.
    #[inline]
    pub(super) fn lift(&mut self) -> Option<u32> {
        let next = self.options.lift?.get(self.lifted)?;
        if next.span.start != self.start() {
            return None;
        }
        self.lifted += 1;
        let param = self.params;
        self.params += 1;
        self.bump();
        Some(param)
    }

    fn user_var_operand(&mut self, start: u32) -> PResult<Expr> {
        let variable = self.user_var()?;
        if self.eat_tok(Tok::Assign) {
            let value = self.boxed_expr()?;
            self.grow()?;
            return Ok(self.make(start, ExprKind::Assign { variable, value }));
        }
        Ok(self.make(start, ExprKind::UserVar(variable)))
    }

    /// `@@[scope.][component.]name`.
    pub(super) fn system_var(&mut self) -> PResult<SystemVar> {
        if self.at_tok(Tok::AtAt) && self.peek().start != self.cur.tok.end {
            return self.fail_at(self.cur.tok.end as usize);
        }
        self.expect_tok(Tok::AtAt)?;
        let scope = match self.kw() {
            Kw::GLOBAL => Some(VarScope::Global),
            Kw::SESSION | Kw::LOCAL => Some(VarScope::Session),
            Kw::PERSIST => Some(VarScope::Persist),
            Kw::PERSIST_ONLY => Some(VarScope::PersistOnly),
            _ => None,
        };
        if scope.is_some() {
            self.bump();
            self.expect_tok(Tok::Dot)?;
        }
        let first = self.ident()?;
        if self.eat_tok(Tok::Dot) {
            let name = self.ident()?;
            return Ok(SystemVar { scope, component: Some(first), name });
        }
        Ok(SystemVar { scope, component: None, name: first })
    }

    /// `{d '..'}`, `{t '..'}`, `{ts '..'}`, `{name expr}`.
    fn brace_operand(&mut self, start: u32) -> PResult<Expr> {
        self.bump();
        let name = self.any_word()?;
        let kind = match () {
            () if name.is("d") => Some(TemporalKind::Date),
            () if name.is("t") => Some(TemporalKind::Time),
            () if name.is("ts") => Some(TemporalKind::Timestamp),
            () => None,
        };
        let kind = match kind {
            Some(kind) if self.at_tok(Tok::Str) && self.peek().kind == Tok::RBrace => {
                let text = self.bytes()?;
                ExprKind::Literal(Literal::Temporal { kind, text, in_braces: true })
            }
            _ => ExprKind::OdbcEscape { name, expr: self.boxed_expr()? },
        };
        self.expect_tok(Tok::RBrace)?;
        self.grow()?;
        Ok(self.make(start, kind))
    }

    // --- parentheses

    fn paren_operand(&mut self, start: u32) -> PResult<Expr> {
        let inner = self.nested(|p| p.paren_start())?;
        self.paren_end(start, inner)
    }

    fn paren_end(&mut self, start: u32, inner: Paren) -> PResult<Expr> {
        match inner {
            Paren::Query(query) => {
                self.expect_tok(Tok::RParen)?;
                self.grow()?;
                Ok(self.make(start, ExprKind::Subquery(query)))
            }
            Paren::Expr(first) => self.paren_rest(start, first),
        }
    }

    fn paren_rest(&mut self, start: u32, first: Expr) -> PResult<Expr> {
        if self.at_tok(Tok::Comma) {
            let mut items = vec![first];
            while self.eat_tok(Tok::Comma) {
                items.push(self.expr()?);
            }
            self.expect_tok(Tok::RParen)?;
            self.grow()?;
            return Ok(self.make(start, ExprKind::Row(items)));
        }
        self.expect_tok(Tok::RParen)?;
        Ok(first)
    }

    /// Does a query start here?
    pub(super) fn at_query(&mut self) -> bool {
        match self.kw() {
            Kw::SELECT | Kw::WITH | Kw::TABLE => true,
            Kw::VALUES => self.peek_kw() == Kw::ROW,
            _ => false,
        }
    }

    /// Takes `(` and the query up to, not including, the matching `)`, or
    /// else the first expression. A query in inner parentheses is returned as a query: whether it is
    /// an operand shows only after it.
    pub(super) fn paren_start(&mut self) -> PResult<Paren> {
        self.expect_tok(Tok::LParen)?;
        if self.at_query() {
            return Ok(Paren::Query(self.query()?));
        }
        if !self.at_tok(Tok::LParen) {
            return Ok(Paren::Expr(self.expr()?));
        }
        let start = self.start();
        let inner = self.nested(|p| p.paren_start())?;
        self.paren_nested(start, inner)
    }

    /// After the first expression or the query of inner parentheses that started at `start`.
    fn paren_nested(&mut self, start: u32, inner: Paren) -> PResult<Paren> {
        let operand = match inner {
            Paren::Query(query) => {
                self.expect_tok(Tok::RParen)?;
                if self.at_tok(Tok::RParen) {
                    return Ok(Paren::Query(query));
                }
                if self.at_query_tail() {
                    return Ok(Paren::Query(self.query_from_paren(start, query)?));
                }
                self.grow()?;
                self.make(start, ExprKind::Subquery(query))
            }
            Paren::Expr(first) => self.paren_rest(start, first)?,
        };
        self.pending = Some((operand, start));
        Ok(Paren::Expr(self.expr()?))
    }

    /// `(query)`, with any number of parentheses.
    pub(super) fn subquery(&mut self) -> PResult<Box<Query>> {
        self.nested(|p| {
            p.expect_tok(Tok::LParen)?;
            let query = if p.at_tok(Tok::LParen) {
                let start = p.start();
                let inner = p.subquery()?;
                if p.at_query_tail() { p.query_from_paren(start, inner)? } else { inner }
            } else if p.at_query() {
                p.query()?
            } else {
                return p.fail();
            };
            p.expect_tok(Tok::RParen)?;
            Ok(query)
        })
    }

    // --- constants

    /// A constant of the current token, adjacent strings joined.
    pub(super) fn literal(&mut self) -> PResult<Literal> {
        let token = self.cur.tok;
        let raw = self.text_of(token);
        let literal = match token.kind {
            Tok::Int => match parse_u64(raw) {
                Some(value) => Literal::Integer(value),
                None => Literal::Decimal(self.utf8(raw, token)?),
            },
            Tok::Decimal => Literal::Decimal(self.utf8(raw, token)?),
            Tok::Float => Literal::Float(self.utf8(raw, token)?),
            Tok::Str | Tok::NationalStr => return self.string_literal(None),
            Tok::HexNum | Tok::HexStr | Tok::BitNum | Tok::BitStr => {
                return Ok(self.binary_literal(None));
            }
            Tok::Word => match self.kw() {
                Kw::NULL => Literal::Null,
                Kw::TRUE => Literal::Bool(true),
                Kw::FALSE => Literal::Bool(false),
                _ => return self.fail(),
            },
            _ => return self.fail(),
        };
        self.bump();
        Ok(literal)
    }

    pub(super) fn string_literal(&mut self, introducer: Option<Ident>) -> PResult<Literal> {
        let national = self.at_tok(Tok::NationalStr);
        let mut value = Vec::new();
        self.raw_string(&mut value)?;
        while self.at_tok(Tok::Str) {
            self.raw_string(&mut value)?;
        }
        let literal = StringLiteral { value: value.into(), introducer, national };
        Ok(Literal::String(Box::new(literal)))
    }

    pub(super) fn binary_literal(&mut self, introducer: Option<Ident>) -> Literal {
        let kind = self.tok();
        let value = radix_bytes(self.text_of(self.cur.tok), kind);
        self.bump();
        let literal = Box::new(BinaryLiteral { value, introducer });
        match kind {
            Tok::BitNum | Tok::BitStr => Literal::Bit(literal),
            _ => Literal::Hex(literal),
        }
    }

    // --- names

    /// `[[schema.]table.]column`.
    pub(super) fn column_name(&mut self) -> PResult<ColumnName> {
        let first = self.ident()?;
        self.column_name_from(first)
    }

    /// The rest of a column name after its first part.
    pub(super) fn column_name_from(&mut self, first: Ident) -> PResult<ColumnName> {
        if !self.eat_tok(Tok::Dot) {
            return Ok(ColumnName { schema: None, table: None, name: first });
        }
        let second = self.ident()?;
        if !self.eat_tok(Tok::Dot) {
            return Ok(ColumnName { schema: None, table: Some(first), name: second });
        }
        let name = self.ident()?;
        Ok(ColumnName { schema: Some(first), table: Some(second), name })
    }

    /// An identifier as an operand: a column, a JSON path into one, or a function call.
    pub(super) fn name_operand(&mut self, start: u32) -> PResult<Expr> {
        match self.name_or_column(start)? {
            Ok(column) => Ok(column),
            Err((schema, name, token)) => self.generic_call(start, schema, name, token),
        }
    }

    /// A column, or the name of a function followed by `(`.
    #[allow(clippy::type_complexity)]
    fn name_or_column(
        &mut self,
        start: u32,
    ) -> PResult<Result<Expr, (Option<Ident>, Ident, Token)>> {
        let token = self.cur.tok;
        let first = self.ident()?;
        if self.at_tok(Tok::LParen) {
            return Ok(Err((None, first, token)));
        }
        let column = self.column_name_from(first)?;
        if self.at_tok(Tok::LParen) && column.schema.is_none() && column.table.is_some() {
            return Ok(Err((column.table, column.name, token)));
        }
        if column.table.is_none()
            && let Some(slot) = self.local_variable(&column.name.text)
        {
            return Ok(Ok(self.make(start, ExprKind::Param(slot))));
        }
        if column.schema.is_none()
            && let Some(table) = &column.table
            && let Some(is_new) = self.row_of_trigger(&table.text)
        {
            let slot = self.row_column(is_new, &column.name, false)?.slot;
            let value = self.make(start, ExprKind::Param(slot));
            return Ok(Ok(self.opt_json_path(start, value)?));
        }
        let column = self.make(start, ExprKind::Column(Box::new(column)));
        Ok(Ok(self.opt_json_path(start, column)?))
    }

    /// `-> 'path'` or `->> 'path'` after a column.
    fn opt_json_path(&mut self, start: u32, value: Expr) -> PResult<Expr> {
        let unquote = self.at_tok(Tok::ArrowArrow);
        if !unquote && !self.at_tok(Tok::Arrow) {
            return Ok(value);
        }
        self.bump();
        if !self.at_tok(Tok::Str) {
            return self.fail();
        }
        let mut text = Vec::new();
        self.raw_string(&mut text)?;
        let path = Box::new(StringLiteral { value: text.into(), ..StringLiteral::default() });
        let value = Box::new(value);
        Ok(self.make(start, ExprKind::JsonExtract { value, path, unquote }))
    }

    pub(super) fn interval_unit(&mut self) -> PResult<IntervalUnit> {
        let Some(unit) = interval_unit_of(self.kw()) else { return self.fail() };
        self.bump();
        Ok(unit)
    }
}

/// The unit a word means.
pub(super) fn interval_unit_of(kw: Kw) -> Option<IntervalUnit> {
    use IntervalUnit::*;
    Some(match kw {
        Kw::MICROSECOND => Microsecond,
        Kw::SECOND | Kw::SQL_TSI_SECOND => Second,
        Kw::MINUTE | Kw::SQL_TSI_MINUTE => Minute,
        Kw::HOUR | Kw::SQL_TSI_HOUR => Hour,
        Kw::DAY | Kw::SQL_TSI_DAY => Day,
        Kw::WEEK | Kw::SQL_TSI_WEEK => Week,
        Kw::MONTH | Kw::SQL_TSI_MONTH => Month,
        Kw::QUARTER | Kw::SQL_TSI_QUARTER => Quarter,
        Kw::YEAR | Kw::SQL_TSI_YEAR => Year,
        Kw::SECOND_MICROSECOND => SecondMicrosecond,
        Kw::MINUTE_MICROSECOND => MinuteMicrosecond,
        Kw::MINUTE_SECOND => MinuteSecond,
        Kw::HOUR_MICROSECOND => HourMicrosecond,
        Kw::HOUR_SECOND => HourSecond,
        Kw::HOUR_MINUTE => HourMinute,
        Kw::DAY_MICROSECOND => DayMicrosecond,
        Kw::DAY_SECOND => DaySecond,
        Kw::DAY_MINUTE => DayMinute,
        Kw::DAY_HOUR => DayHour,
        Kw::YEAR_MONTH => YearMonth,
        _ => return None,
    })
}
