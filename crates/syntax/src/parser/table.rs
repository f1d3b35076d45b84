//! Table references: tables, derived tables, JSON_TABLE and joins.

use super::{PResult, Parser};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::Tok;

impl<'a> Parser<'a> {
    /// Comma-separated table references.
    pub(super) fn table_references(&mut self) -> PResult<Vec<TableFactor>> {
        self.comma_list(Self::table_reference)
    }

    /// A table reference with its joins.
    pub(super) fn table_reference(&mut self) -> PResult<TableFactor> {
        self.nested(|p| {
            if p.at_tok(Tok::LBrace) {
                return p.odbc_join();
            }
            let first = p.table_factor()?;
            p.joins(first)
        })
    }

    fn joins(&mut self, mut left: TableFactor) -> PResult<TableFactor> {
        let mut spine = 0;
        while self.at_join() {
            (left, spine) = self.join_step(left, spine)?;
        }
        Ok(left)
    }

    /// `{ OJ reference }`.
    fn odbc_join(&mut self) -> PResult<TableFactor> {
        self.bump();
        self.any_word()?;
        let inner = self.table_reference()?;
        self.expect_tok(Tok::RBrace)?;
        self.joins(inner)
    }

    fn at_join(&mut self) -> bool {
        match self.kw() {
            Kw::JOIN
            | Kw::INNER
            | Kw::CROSS
            | Kw::STRAIGHT_JOIN
            | Kw::NATURAL
            | Kw::LEFT
            | Kw::RIGHT => true,
            Kw::FULL => matches!(self.peek_kw(), Kw::OUTER | Kw::JOIN),
            _ => false,
        }
    }

    /// One join onto `left`. `spine` counts the joins on the way down the left side that have no
    /// parentheses around them.
    fn join_step(&mut self, left: TableFactor, spine: u32) -> PResult<(TableFactor, u32)> {
        let natural = self.eat(Kw::NATURAL);
        let word = self.kw();
        let kind = match word {
            Kw::JOIN | Kw::INNER => JoinKind::Inner,
            Kw::CROSS if !natural => JoinKind::Inner,
            Kw::STRAIGHT_JOIN if !natural => JoinKind::Straight,
            Kw::LEFT => JoinKind::Left,
            Kw::RIGHT => JoinKind::Right,
            Kw::FULL => JoinKind::Full,
            _ => return self.fail(),
        };
        self.bump();
        if matches!(word, Kw::LEFT | Kw::RIGHT | Kw::FULL) {
            self.eat(Kw::OUTER);
        }
        if !matches!(word, Kw::JOIN | Kw::STRAIGHT_JOIN) {
            self.expect(Kw::JOIN)?;
        }
        if natural {
            let right = self.side(|p| p.table_factor())?;
            return self.join(kind, left, right, JoinCondition::Natural, spine);
        }
        let (mut right, mut right_spine) = (self.side(|p| p.table_factor())?, 0);
        while self.at_join() {
            (right, right_spine) = self.nested(|p| p.join_step(right, right_spine))?;
        }
        let condition = if self.at(Kw::ON) && self.peek_kw() != Kw::DUPLICATE {
            self.bump();
            JoinCondition::On(self.expr()?)
        } else if self.eat(Kw::USING) {
            JoinCondition::Using(self.paren_idents()?)
        } else if matches!(kind, JoinKind::Inner | JoinKind::Straight) {
            // Without its own condition it joins the leftmost table of the rest.
            let (tree, inner) = self.join_leftmost(kind, left, spine, right, right_spine)?;
            return Ok((tree, inner));
        } else {
            return self.fail();
        };
        self.join(kind, left, right, condition, spine)
    }

    fn join(
        &mut self,
        kind: JoinKind,
        left: TableFactor,
        right: TableFactor,
        condition: JoinCondition,
        spine: u32,
    ) -> PResult<(TableFactor, u32)> {
        self.grow()?;
        let join = Join { kind, left, right, condition };
        Ok((TableFactor::Join(Box::new(join)), spine + 1))
    }

    fn join_leftmost(
        &mut self,
        kind: JoinKind,
        left: TableFactor,
        spine: u32,
        right: TableFactor,
        right_spine: u32,
    ) -> PResult<(TableFactor, u32)> {
        let mut right = right;
        let mut leaf = &mut right;
        for _ in 0..right_spine {
            match leaf {
                TableFactor::Join(join) => leaf = &mut join.left,
                _ => break,
            }
        }
        let old = std::mem::replace(leaf, TableFactor::List(Vec::new()));
        let join = Join { kind, left, right: old, condition: JoinCondition::None };
        *leaf = TableFactor::Join(Box::new(join));
        self.grow()?;
        Ok((right, spine + right_spine + 1))
    }

    fn table_factor(&mut self) -> PResult<TableFactor> {
        match self.tok() {
            Tok::LParen => self.paren_factor(),
            Tok::LBrace => self.nested(|p| p.odbc_join()),
            Tok::Word if self.at(Kw::LATERAL) => {
                self.bump();
                let query = *self.subquery()?;
                self.derived(true, query)
            }
            Tok::Word if self.at(Kw::JSON_TABLE) => self.json_table(),
            Tok::Word | Tok::Quoted if self.peek().kind == Tok::LParen => self.table_function(),
            _ => Ok(TableFactor::Table(Box::new(self.named_table()?))),
        }
    }

    fn derived(&mut self, lateral: bool, query: Query) -> PResult<TableFactor> {
        if !self.eat(Kw::AS) && !self.at_alias() {
            // The reference notices the missing alias only where the text could continue without one.
            let goes_on = match self.tok() {
                Tok::Eof | Tok::Semi | Tok::RParen | Tok::Comma | Tok::RBrace => true,
                _ => {
                    self.at_query_tail()
                        || self.at_join()
                        || matches!(
                            self.kw(),
                            Kw::WHERE
                                | Kw::GROUP
                                | Kw::HAVING
                                | Kw::WINDOW
                                | Kw::ON
                                | Kw::USING
                                | Kw::SET
                                | Kw::QUALIFY
                        )
                }
            };
            if goes_on {
                return self.fail_other(1248, "Every derived table must have its own alias");
            }
            return self.fail();
        }
        let alias = self.ident()?;
        let columns = if self.at_tok(Tok::LParen) { self.paren_idents()? } else { Vec::new() };
        Ok(TableFactor::Derived(Box::new(DerivedTable { lateral, query, alias, columns })))
    }

    /// `(query) alias`, `(references)`.
    fn paren_factor(&mut self) -> PResult<TableFactor> {
        match self.nested(|p| p.paren_factor_start())? {
            Ok(query) => {
                self.expect_tok(Tok::RParen)?;
                self.derived(false, *query)
            }
            Err(inner) => Ok(inner),
        }
    }

    /// Takes `(` and a query up to its `)`, or everything up to and including `)`.
    fn paren_factor_start(&mut self) -> PResult<Result<Box<Query>, TableFactor>> {
        self.expect_tok(Tok::LParen)?;
        if self.at_query() {
            return Ok(Ok(self.query()?));
        }
        let first = if self.at_tok(Tok::LParen) {
            let start = self.start();
            match self.nested(|p| p.paren_factor_start())? {
                Ok(query) => {
                    self.expect_tok(Tok::RParen)?;
                    if self.at_tok(Tok::RParen) {
                        return Ok(Ok(query));
                    }
                    if self.at_query_tail() {
                        return Ok(Ok(self.query_from_paren(start, query)?));
                    }
                    self.derived(false, *query)?
                }
                Err(inner) => inner,
            }
        } else if self.at_tok(Tok::LBrace) {
            self.odbc_join()?
        } else {
            self.table_factor()?
        };
        let mut items = vec![self.joins(first)?];
        while self.eat_tok(Tok::Comma) {
            items.push(self.table_reference()?);
        }
        self.expect_tok(Tok::RParen)?;
        self.grow()?;
        Ok(Err(match items.len() {
            1 => items.remove(0),
            _ => TableFactor::List(items),
        }))
    }

    /// A table by name with all that may follow it.
    pub(super) fn named_table(&mut self) -> PResult<NamedTable> {
        let mut table = NamedTable { name: self.object_name()?, ..NamedTable::default() };
        table.partitions = self.opt_partition_list()?;
        if self.at2(Kw::FOR, Kw::SYSTEM_TIME) {
            table.system_time = Some(self.system_time()?);
        }
        table.alias = self.opt_table_alias()?;
        if self.eat(Kw::TABLESAMPLE) {
            table.sample = Some(self.table_sample()?);
        }
        while let Some(kind) = self.index_hint_kind() {
            self.index_hint(kind, &mut table.index_hints)?;
        }
        Ok(table)
    }

    pub(super) fn opt_table_alias(&mut self) -> PResult<Option<Ident>> {
        if self.eat(Kw::AS) || self.eat_tok(Tok::Eq) {
            return Ok(Some(self.ident()?));
        }
        let full_join = self.at2(Kw::FULL, Kw::OUTER);
        if self.at_alias() && !full_join {
            return Ok(Some(self.ident()?));
        }
        Ok(None)
    }

    /// `PARTITION (p, ..)`.
    pub(super) fn opt_partition_list(&mut self) -> PResult<Vec<Ident>> {
        if self.at(Kw::PARTITION) && self.peek().kind == Tok::LParen {
            self.bump();
            return self.paren_idents();
        }
        Ok(Vec::new())
    }

    fn table_sample(&mut self) -> PResult<TableSample> {
        let bernoulli = match self.eat_one_of(&[Kw::SYSTEM, Kw::BERNOULLI]) {
            Some(word) => word == Kw::BERNOULLI,
            None => return self.fail(),
        };
        let percent = self.in_parens(Self::expr)?;
        Ok(TableSample { bernoulli, percent })
    }

    fn system_time(&mut self) -> PResult<SystemTime> {
        self.bump();
        self.bump();
        if self.eat(Kw::ALL) {
            return Ok(SystemTime::All);
        }
        if self.eat(Kw::AS) {
            self.expect(Kw::OF)?;
            return Ok(SystemTime::AsOf(self.system_point()?));
        }
        if self.eat(Kw::BETWEEN) {
            let low = self.system_point()?;
            self.expect(Kw::AND)?;
            return Ok(SystemTime::Between(low, self.system_point()?));
        }
        self.expect(Kw::FROM)?;
        let low = self.system_point()?;
        self.expect(Kw::TO)?;
        Ok(SystemTime::FromTo(low, self.system_point()?))
    }

    pub(super) fn system_point(&mut self) -> PResult<SystemPoint> {
        if self.eat(Kw::TRANSACTION) {
            return Ok(SystemPoint::Transaction(Box::new(self.nested(|p| p.bit_expr(0))?)));
        }
        if self.at(Kw::TIMESTAMP) && self.peek().kind != Tok::LParen {
            self.bump();
        }
        Ok(SystemPoint::Timestamp(Box::new(self.nested(|p| p.bit_expr(0))?)))
    }

    fn index_hint_kind(&mut self) -> Option<IndexHintKind> {
        let kind = match self.kw() {
            Kw::USE => IndexHintKind::Use,
            Kw::IGNORE => IndexHintKind::Ignore,
            Kw::FORCE => IndexHintKind::Force,
            _ => return None,
        };
        matches!(self.peek_kw(), Kw::INDEX | Kw::KEY).then_some(kind)
    }

    fn index_hint(&mut self, kind: IndexHintKind, hints: &mut Vec<IndexHint>) -> PResult<()> {
        self.bump();
        self.bump();
        let mut scope = IndexHintScope::All;
        if self.eat(Kw::FOR) {
            scope = match self.kw() {
                Kw::JOIN => IndexHintScope::Join,
                Kw::ORDER => IndexHintScope::OrderBy,
                Kw::GROUP => IndexHintScope::GroupBy,
                _ => return self.fail(),
            };
            self.bump();
            if scope != IndexHintScope::Join {
                self.expect(Kw::BY)?;
            }
        }
        self.expect_tok(Tok::LParen)?;
        let mut indexes = Vec::new();
        if !(kind == IndexHintKind::Use && self.at_tok(Tok::RParen)) {
            indexes = self.comma_list(Self::index_name)?;
        }
        self.expect_tok(Tok::RParen)?;
        hints.push(IndexHint { kind, scope, indexes });
        Ok(())
    }

    /// An index by name; PRIMARY needs no quotes.
    pub(super) fn index_name(&mut self) -> PResult<Ident> {
        if self.at(Kw::PRIMARY) { self.any_word() } else { self.ident() }
    }

    /// `name(..) [alias]`.
    fn table_function(&mut self) -> PResult<TableFactor> {
        let name = self.ident()?;
        self.expect_tok(Tok::LParen)?;
        let args = if self.at_tok(Tok::RParen) { Vec::new() } else { self.expr_list()? };
        self.expect_tok(Tok::RParen)?;
        let alias = self.opt_table_alias()?;
        Ok(TableFactor::Function(Box::new(TableFunction { name, args, alias })))
    }

    // --- JSON_TABLE

    fn json_table(&mut self) -> PResult<TableFactor> {
        self.bump();
        self.expect_tok(Tok::LParen)?;
        let doc = self.expr()?;
        self.expect_tok(Tok::Comma)?;
        let path = self.text()?;
        let columns = self.json_table_columns()?;
        self.expect_tok(Tok::RParen)?;
        let Some(alias) = self.opt_table_alias()? else {
            return self.fail_other(3667, "Every table function must have an alias");
        };
        Ok(TableFactor::JsonTable(Box::new(JsonTable { doc, path, columns, alias })))
    }

    fn json_table_columns(&mut self) -> PResult<Vec<JsonTableColumn>> {
        self.expect(Kw::COLUMNS)?;
        self.nested(|p| p.paren_list(Self::json_table_column))
    }

    fn json_table_column(&mut self) -> PResult<JsonTableColumn> {
        if self.at(Kw::NESTED) && (self.peek().kind == Tok::Str || self.peek_kw() == Kw::PATH) {
            self.bump();
            self.eat(Kw::PATH);
            let path = self.text()?;
            return Ok(JsonTableColumn::Nested { path, columns: self.json_table_columns()? });
        }
        let name = self.ident()?;
        if self.eat2(Kw::FOR, Kw::ORDINALITY) {
            return Ok(JsonTableColumn::Ordinality(name));
        }
        let data_type = Box::new(self.data_type_collate()?);
        if self.eat(Kw::EXISTS) {
            self.expect(Kw::PATH)?;
            return Ok(JsonTableColumn::Exists { name, data_type, path: self.text()? });
        }
        self.expect(Kw::PATH)?;
        let path = self.text()?;
        let (on_empty, on_error) = self.json_on_clauses()?;
        Ok(JsonTableColumn::Path { name, data_type, path, on_empty, on_error })
    }
}
