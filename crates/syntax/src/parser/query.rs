//! Queries: WITH, SELECT, VALUES, TABLE, set operations and the clauses after them.

use super::{PResult, Parser};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::{Tok, is_blank};

impl<'a> Parser<'a> {
    /// A query expression.
    pub(super) fn query(&mut self) -> PResult<Box<Query>> {
        self.nested(|p| {
            let start = p.start();
            let with = p.opt_with()?;
            p.query_rest(start, with, None)
        })
    }

    /// Continues after `(query)`.
    pub(super) fn query_from_paren(
        &mut self,
        start: u32,
        first: Box<Query>,
    ) -> PResult<Box<Query>> {
        self.query_rest(start, None, Some(first))
    }

    /// Whether the token after `(query)` can be the rest of a query.
    pub(super) fn at_query_tail(&self) -> bool {
        matches!(
            self.kw(),
            Kw::UNION
                | Kw::EXCEPT
                | Kw::INTERSECT
                | Kw::ORDER
                | Kw::LIMIT
                | Kw::FOR
                | Kw::LOCK
                | Kw::INTO
        )
    }

    pub(super) fn opt_with(&mut self) -> PResult<Option<With>> {
        if !self.eat(Kw::WITH) {
            return Ok(None);
        }
        let recursive = self.eat(Kw::RECURSIVE);
        let ctes = self.comma_list(|p| {
            let name = p.ident()?;
            let columns = if p.at_tok(Tok::LParen) { p.paren_idents()? } else { Vec::new() };
            p.expect(Kw::AS)?;
            Ok(Cte { name, columns, query: p.subquery()? })
        })?;
        Ok(Some(With { recursive, ctes }))
    }

    /// After WITH: a query with its set operations and tail clauses.
    pub(super) fn query_rest(
        &mut self,
        start: u32,
        with: Option<With>,
        first: Option<Box<Query>>,
    ) -> PResult<Box<Query>> {
        let body = self.query_body(first)?;
        let mut into = self.early_into.take();
        let order_by = self.opt_order_by()?;
        let limit = self.opt_limit()?;
        let mut locking = Vec::new();
        loop {
            if self.at(Kw::INTO) && into.is_none() {
                into = Some(self.parse_into()?);
            } else if !self.opt_locking(&mut locking)? {
                break;
            }
        }
        let bare = with.is_none()
            && order_by.is_empty()
            && limit.is_none()
            && locking.is_empty()
            && into.is_none();
        if let (true, SetExpr::Query(_)) = (bare, &body) {
            // Parentheses around a whole query have no meaning.
            if let SetExpr::Query(inner) = body {
                return Ok(inner);
            }
            return self.fail();
        }
        let span = self.span_from(start);
        Ok(Box::new(Query { with, body, order_by, limit, locking, into, span }))
    }

    fn query_body(&mut self, first: Option<Box<Query>>) -> PResult<SetExpr> {
        let first = self.intersect_chain(first)?;
        let mut rest = Vec::new();
        loop {
            let op = match self.kw() {
                Kw::UNION => SetOperator::Union,
                Kw::EXCEPT => SetOperator::Except,
                _ => break,
            };
            let all = self.set_quantifier()?;
            let right = self.side(|p| p.intersect_chain(None))?;
            rest.push(SetOpTerm { op, all, right });
        }
        if rest.is_empty() {
            return Ok(first);
        }
        self.grow()?;
        Ok(SetExpr::SetOp(Box::new(SetOp { first, rest })))
    }

    fn intersect_chain(&mut self, first: Option<Box<Query>>) -> PResult<SetExpr> {
        let first = match first {
            Some(query) => SetExpr::Query(query),
            None => self.query_primary()?,
        };
        let mut rest = Vec::new();
        while self.at(Kw::INTERSECT) {
            let all = self.set_quantifier()?;
            let right = self.side(|p| p.query_primary())?;
            rest.push(SetOpTerm { op: SetOperator::Intersect, all, right });
        }
        if rest.is_empty() {
            return Ok(first);
        }
        self.grow()?;
        Ok(SetExpr::SetOp(Box::new(SetOp { first, rest })))
    }

    /// Takes the operator and `ALL`/`DISTINCT`.
    fn set_quantifier(&mut self) -> PResult<bool> {
        if self.early_into.is_some() {
            return self.fail();
        }
        self.bump();
        Ok(match self.eat_one_of(&[Kw::ALL, Kw::DISTINCT, Kw::DISTINCTROW]) {
            Some(word) => word == Kw::ALL,
            None => false,
        })
    }

    fn query_primary(&mut self) -> PResult<SetExpr> {
        match self.tok() {
            Tok::LParen => Ok(SetExpr::Query(self.subquery()?)),
            Tok::Word => match self.kw() {
                Kw::SELECT => Ok(SetExpr::Select(self.select()?)),
                Kw::TABLE => {
                    self.bump();
                    Ok(SetExpr::Table(self.object_name()?))
                }
                Kw::VALUES => {
                    self.bump();
                    Ok(SetExpr::Values(self.row_constructors()?))
                }
                _ => self.fail(),
            },
            _ => self.fail(),
        }
    }

    /// `ROW(..), ROW(..)`.
    pub(super) fn row_constructors(&mut self) -> PResult<Vec<Vec<Expr>>> {
        self.comma_list(|p| {
            p.expect(Kw::ROW)?;
            p.value_row()
        })
    }

    fn select(&mut self) -> PResult<Box<Select>> {
        let start = self.start();
        self.bump();
        let mut select = Box::new(Select { hints: self.opt_hints()?, ..Select::default() });
        select.options = self.select_options()?;
        select.items = self.select_items()?;
        if self.at(Kw::INTO) {
            if self.early_into.is_some() {
                return self.fail();
            }
            self.early_into = Some(self.parse_into()?);
        }
        if self.eat(Kw::FROM) {
            let into = self.early_into.take();
            if self.eat(Kw::DUAL) {
                select.from_dual = true;
            } else {
                select.from = self.table_references()?;
            }
            self.early_into = into;
        }
        let into = self.early_into.take();
        self.select_clauses(&mut select)?;
        self.early_into = into;
        select.span = self.span_from(start);
        Ok(select)
    }

    fn select_clauses(&mut self, select: &mut Select) -> PResult<()> {
        select.filter = self.opt_where()?;
        if self.at(Kw::GROUP) {
            select.group_by = Some(self.group_by()?);
        }
        if self.eat(Kw::HAVING) {
            select.having = Some(self.expr()?);
        }
        if self.eat(Kw::WINDOW) {
            select.windows = self.comma_list(|p| {
                let name = p.ident()?;
                p.expect(Kw::AS)?;
                Ok((name, p.window_spec()?))
            })?;
        }
        if self.eat(Kw::QUALIFY) {
            select.qualify = Some(self.expr()?);
        }
        Ok(())
    }

    /// The text of `/*+ .. */`.
    pub(super) fn opt_hints(&mut self) -> PResult<Option<Box<str>>> {
        if !self.at_tok(Tok::Hint) {
            return Ok(None);
        }
        let token = self.cur.tok;
        let raw = self.text_of(token);
        let text = self.utf8(&raw[3..raw.len() - 2], token)?;
        self.bump();
        Ok(Some(text))
    }

    fn select_options(&mut self) -> PResult<SelectOptions> {
        let mut options = SelectOptions::default();
        loop {
            let flag = match self.kw() {
                Kw::DISTINCT | Kw::DISTINCTROW if !options.all => &mut options.distinct,
                Kw::ALL if !options.distinct => &mut options.all,
                Kw::STRAIGHT_JOIN => &mut options.straight_join,
                Kw::HIGH_PRIORITY => &mut options.high_priority,
                Kw::SQL_SMALL_RESULT => &mut options.small_result,
                Kw::SQL_BIG_RESULT => &mut options.big_result,
                Kw::SQL_BUFFER_RESULT => &mut options.buffer_result,
                Kw::SQL_NO_CACHE => &mut options.no_cache,
                Kw::SQL_CALC_FOUND_ROWS => &mut options.calc_found_rows,
                Kw::DISTINCT | Kw::DISTINCTROW | Kw::ALL => {
                    return self.fail_other(1221, "Incorrect usage of ALL and DISTINCT");
                }
                _ if self.at_sql_cache() => {
                    self.bump();
                    continue;
                }
                _ => return Ok(options),
            };
            *flag = true;
            self.bump();
        }
    }

    /// `SQL_CACHE` of old drivers, which has no effect here. It is not a keyword: where the word can be a column, it is one.
    fn at_sql_cache(&mut self) -> bool {
        let word = self.cur.tok;
        if word.kind != Tok::Word || !self.text_of(word).eq_ignore_ascii_case(b"SQL_CACHE") {
            return false;
        }
        match self.peek().kind {
            Tok::Word => !ends_item_or_goes_on(self.peek_kw()),
            // Quoted names and texts could be aliases, `*` a multiplication: rare, and never in statements of old drivers.
            Tok::Star | Tok::LParen | Tok::Param | Tok::Quoted | Tok::Str | Tok::Int => true,
            Tok::Decimal | Tok::Float | Tok::HexNum | Tok::HexStr | Tok::UserVar | Tok::AtAt => {
                true
            }
            _ => false,
        }
    }

    pub(super) fn select_items(&mut self) -> PResult<Vec<SelectItem>> {
        let mut items = Vec::with_capacity(4);
        if self.at_tok(Tok::Star) {
            let start = self.start();
            self.bump();
            items.push(SelectItem { kind: SelectItemKind::Wildcard, span: self.span_from(start) });
            if !self.eat_tok(Tok::Comma) {
                return Ok(items);
            }
        }
        loop {
            items.push(self.select_item()?);
            if !self.eat_tok(Tok::Comma) {
                return Ok(items);
            }
        }
    }

    pub(super) fn select_item(&mut self) -> PResult<SelectItem> {
        let start = self.start();
        if let Some(name) = self.opt_table_wildcard()? {
            return Ok(SelectItem {
                kind: SelectItemKind::QualifiedWildcard(name),
                span: self.span_from(start),
            });
        }
        let expr = self.expr()?;
        let span = self.span_from(start);
        let alias = self.opt_select_alias()?;
        Ok(SelectItem { kind: SelectItemKind::Expr { expr, alias }, span })
    }

    fn opt_select_alias(&mut self) -> PResult<Option<Ident>> {
        if self.eat(Kw::AS) {
            return Ok(Some(self.ident_or_text()?));
        }
        if self.at_tok(Tok::Str) || self.at_alias() {
            return Ok(Some(self.ident_or_text()?));
        }
        Ok(None)
    }

    /// An identifier that may be an alias without AS.
    pub(super) fn at_alias(&self) -> bool {
        self.at_ident() && !self.at(Kw::RETURNING)
    }

    /// `t.*`, `db.t.*`.
    fn opt_table_wildcard(&mut self) -> PResult<Option<ObjectName>> {
        if !self.at_ident() || self.peek().kind != Tok::Dot {
            return Ok(None);
        }
        let second = self.peek2();
        let saved = self.cur;
        match second.kind {
            Tok::Star => {
                let name = self.ident()?;
                self.bump();
                self.bump();
                Ok(Some(ObjectName { schema: None, name }))
            }
            Tok::Word | Tok::Quoted => {
                let behind = &self.src[second.end as usize..];
                let next = behind.iter().copied().find(|b| !is_blank(*b));
                if next != Some(b'.') {
                    return Ok(None);
                }
                let schema = Some(self.ident()?);
                self.bump();
                let name = self.ident()?;
                if self.eat_tok(Tok::Dot) && self.eat_tok(Tok::Star) {
                    return Ok(Some(ObjectName { schema, name }));
                }
                self.cur = saved;
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    pub(super) fn opt_where(&mut self) -> PResult<Option<Expr>> {
        if self.eat(Kw::WHERE) { Ok(Some(self.expr()?)) } else { Ok(None) }
    }

    fn group_by(&mut self) -> PResult<GroupBy> {
        self.bump();
        self.expect(Kw::BY)?;
        let mut elements = self.comma_list(Self::group_element)?;
        if let [GroupElement::Rollup(parts)] = &mut elements[..]
            && parts.iter().all(|part| part.len() == 1)
        {
            let elements = parts.drain(..).flatten().map(GroupElement::Expr).collect();
            return Ok(GroupBy { elements, with_rollup: true });
        }
        let is_plain = elements.iter().all(|element| matches!(element, GroupElement::Expr(_)));
        let with_rollup = is_plain && self.eat2(Kw::WITH, Kw::ROLLUP);
        Ok(GroupBy { elements, with_rollup })
    }

    fn group_element(&mut self) -> PResult<GroupElement> {
        let next = self.peek().kind;
        if self.at_tok(Tok::LParen) && next == Tok::RParen {
            self.bump();
            self.bump();
            return Ok(GroupElement::Set(Vec::new()));
        }
        match self.kw() {
            Kw::ROLLUP if next == Tok::LParen => {
                self.bump();
                Ok(GroupElement::Rollup(self.paren_list(Self::group_part)?))
            }
            Kw::CUBE if next == Tok::LParen => {
                self.bump();
                Ok(GroupElement::Cube(self.paren_list(Self::group_part)?))
            }
            Kw::GROUPING if self.peek_kw() == Kw::SETS => {
                self.bump();
                self.bump();
                let elements = self.nested(|p| p.paren_list(Self::grouping_set))?;
                Ok(GroupElement::Sets(elements))
            }
            _ => Ok(GroupElement::Expr(self.expr()?)),
        }
    }

    /// An element of GROUPING SETS: there `(a, b)` is a set of two keys.
    fn grouping_set(&mut self) -> PResult<GroupElement> {
        Ok(match self.group_element()? {
            GroupElement::Expr(one) => GroupElement::Set(into_part(one)),
            element => element,
        })
    }

    /// `a`, `(a, b)`: keys that ROLLUP and CUBE keep together.
    fn group_part(&mut self) -> PResult<Vec<Expr>> {
        Ok(into_part(self.expr()?))
    }

    pub(super) fn opt_order_by(&mut self) -> PResult<Vec<OrderItem>> {
        if !self.eat(Kw::ORDER) {
            return Ok(Vec::new());
        }
        self.expect(Kw::BY)?;
        self.comma_list(|p| {
            let expr = p.expr()?;
            let desc = p.eat(Kw::DESC);
            if !desc {
                p.eat(Kw::ASC);
            }
            Ok(OrderItem { expr, desc })
        })
    }

    pub(super) fn opt_limit(&mut self) -> PResult<Option<Limit>> {
        if !self.eat(Kw::LIMIT) {
            return Ok(None);
        }
        let first = self.limit_value()?;
        if self.eat_tok(Tok::Comma) {
            return Ok(Some(Limit { count: self.limit_value()?, offset: Some(first) }));
        }
        let offset = if self.eat(Kw::OFFSET) { Some(self.limit_value()?) } else { None };
        Ok(Some(Limit { count: first, offset }))
    }

    /// An integer, a parameter, or a variable of a stored program.
    fn limit_value(&mut self) -> PResult<Expr> {
        let start = self.start();
        let kind = match self.tok() {
            Tok::Int | Tok::HexNum => match self.lift() {
                Some(param) => ExprKind::Param(param),
                None => ExprKind::Literal(Literal::Integer(self.number()?)),
            },
            Tok::Param if self.options.placeholders => {
                self.bump();
                self.params += 1;
                ExprKind::Param(self.params - 1)
            }
            Tok::Word | Tok::Quoted if self.at_ident() => {
                let column = self.column_name()?;
                match column.table.is_none() && self.in_program {
                    true => ExprKind::Param(self.limit_variable(&column.name, start)?),
                    false => ExprKind::Column(Box::new(column)),
                }
            }
            _ => return self.fail(),
        };
        Ok(Expr { kind, span: self.span_from(start) })
    }

    fn opt_locking(&mut self, locking: &mut Vec<Locking>) -> PResult<bool> {
        if self.at(Kw::LOCK) && locking.is_empty() {
            self.bump();
            self.expect_all(&[Kw::IN, Kw::SHARE, Kw::MODE])?;
            let wait = self.opt_lock_wait()?;
            locking.push(Locking { strength: LockStrength::ShareMode, of: Vec::new(), wait });
            return Ok(true);
        }
        if !self.eat(Kw::FOR) {
            return Ok(false);
        }
        let strength = match self.eat_one_of(&[Kw::UPDATE, Kw::SHARE]) {
            Some(Kw::UPDATE) => LockStrength::Update,
            Some(_) => LockStrength::Share,
            None => return self.fail(),
        };
        let of = if self.eat(Kw::OF) { self.comma_list(Self::object_name)? } else { Vec::new() };
        let wait = self.opt_lock_wait()?;
        locking.push(Locking { strength, of, wait });
        Ok(true)
    }

    fn opt_lock_wait(&mut self) -> PResult<LockWait> {
        if self.eat(Kw::NOWAIT) {
            return Ok(LockWait::NoWait);
        }
        if self.eat2(Kw::SKIP, Kw::LOCKED) {
            return Ok(LockWait::SkipLocked);
        }
        if self.eat(Kw::WAIT) {
            return Ok(LockWait::Seconds(self.number()?));
        }
        Ok(LockWait::Wait)
    }

    fn parse_into(&mut self) -> PResult<Into> {
        self.bump();
        if self.eat(Kw::OUTFILE) {
            let file = self.text()?;
            let charset = self.opt_charset_clause()?;
            let format = Box::new(self.file_format()?);
            return Ok(Into::Outfile { file, charset, format });
        }
        if self.eat(Kw::DUMPFILE) {
            return Ok(Into::Dumpfile(self.text()?));
        }
        let variables = self.comma_list(|p| {
            if matches!(p.tok(), Tok::UserVar | Tok::At) {
                return Ok(IntoVariable::User(p.user_var()?));
            }
            let name = p.ident_or_text()?;
            Ok(IntoVariable::Local(p.assigned_variable(name)?))
        })?;
        Ok(Into::Variables(variables))
    }

    /// `CHARACTER SET x`, `CHARSET x`.
    pub(super) fn opt_charset_clause(&mut self) -> PResult<Option<Ident>> {
        let long = matches!(self.kw(), Kw::CHARACTER | Kw::CHAR) && self.peek_kw() == Kw::SET;
        if long {
            self.bump();
        } else if !self.at(Kw::CHARSET) {
            return Ok(None);
        }
        self.bump();
        Ok(Some(self.charset_name()?))
    }
}

fn into_part(written: Expr) -> Vec<Expr> {
    match written.kind {
        ExprKind::Row(items) => items,
        _ => vec![written],
    }
}

/// Words that follow a select item or separate its operands.
fn ends_item_or_goes_on(word: Kw) -> bool {
    const WORDS: &[Kw] = &[
        Kw::AS,
        Kw::INTO,
        Kw::FROM,
        Kw::WHERE,
        Kw::GROUP,
        Kw::HAVING,
        Kw::WINDOW,
        Kw::QUALIFY,
        Kw::ORDER,
        Kw::LIMIT,
        Kw::FOR,
        Kw::LOCK,
        Kw::UNION,
        Kw::EXCEPT,
        Kw::INTERSECT,
        Kw::AND,
        Kw::OR,
        Kw::XOR,
        Kw::DIV,
        Kw::MOD,
        Kw::IS,
        Kw::IN,
        Kw::BETWEEN,
        Kw::LIKE,
        Kw::RLIKE,
        Kw::REGEXP,
        Kw::COLLATE,
    ];
    WORDS.contains(&word)
}
