//! CREATE TABLE: columns, keys, options and partitions.

use super::{PResult, Parser, near};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::Tok;

/// An element in the parentheses of CREATE TABLE and ADD.
pub(super) enum TableElement {
    Column(Box<ColumnDef>),
    Constraint(Box<TableConstraint>),
    Period(Ident, Ident, Ident),
}

/// The subpartitions that the partitions of a list have.
struct Subpartitions {
    allowed: bool,
    /// As SUBPARTITIONS says.
    count: Option<u64>,
    /// Of the partition before.
    listed: Option<u64>,
}

impl<'a> Parser<'a> {
    /// After `TABLE`.
    pub(super) fn create_table(
        &mut self,
        or_replace: bool,
        temporary: bool,
        external: bool,
    ) -> PResult<Statement> {
        let if_not_exists = self.if_not_exists()?;
        let mut table = Box::new(CreateTable {
            flags: CreateFlags { or_replace, if_not_exists },
            temporary,
            external,
            name: self.object_name()?,
            ..CreateTable::default()
        });
        if self.eat(Kw::LIKE) {
            table.like = Some(self.object_name()?);
            return Ok(Statement::CreateTable(table));
        }
        if self.at_tok(Tok::LParen) && self.peek_kw() == Kw::LIKE {
            self.bump();
            self.bump();
            table.like = Some(self.object_name()?);
            self.expect_tok(Tok::RParen)?;
            return Ok(Statement::CreateTable(table));
        }
        let next = self.peek();
        let query = next.kind == Tok::LParen
            || matches!(next.kw, Kw::SELECT | Kw::WITH | Kw::TABLE | Kw::VALUES);
        if self.at_tok(Tok::LParen) && !query {
            self.bump();
            loop {
                match self.table_element()? {
                    TableElement::Column(column) => table.columns.push(*column),
                    TableElement::Constraint(constraint) => table.constraints.push(*constraint),
                    TableElement::Period(a, b, c) => table.periods.push((a, b, c)),
                }
                if !self.eat_tok(Tok::Comma) {
                    break;
                }
            }
            self.expect_tok(Tok::RParen)?;
        }
        self.create_table_tail(&mut table)?;
        Ok(Statement::CreateTable(table))
    }

    fn create_table_tail(&mut self, table: &mut CreateTable) -> PResult<()> {
        let defined = !table.columns.is_empty() || !table.constraints.is_empty();
        while let Some(option) = self.opt_table_option()? {
            if option == TableOption::StartTransaction {
                table.start_transaction = true;
            } else {
                table.options.push(option);
            }
            if self.at_tok(Tok::Comma) {
                self.bump();
                if !self.at_table_option() {
                    return self.fail();
                }
            }
        }
        if self.at(Kw::PARTITION) {
            table.partitioning = Some(self.partitioning()?);
        }
        table.duplicates = self.opt_duplicates();
        let must = self.eat(Kw::AS);
        if must || self.at_tok(Tok::LParen) || self.at_query() {
            table.query = Some(self.query()?);
        } else if table.duplicates != LoadDuplicates::Error {
            return self.fail();
        } else if !defined {
            if self.at_tok(Tok::Eof) || self.at_tok(Tok::Semi) {
                return self.fail_other(1113, "A table must have at least 1 column");
            }
            return self.fail();
        }
        Ok(())
    }

    pub(super) fn table_element(&mut self) -> PResult<TableElement> {
        if self.at_constraint() {
            return Ok(TableElement::Constraint(Box::new(self.table_constraint()?)));
        }
        if self.at2(Kw::PERIOD, Kw::FOR) {
            self.bump();
            self.bump();
            let (name, start, end) = self.period()?;
            return Ok(TableElement::Period(name, start, end));
        }
        Ok(TableElement::Column(Box::new(self.column_def()?)))
    }

    /// After `PERIOD FOR`.
    pub(super) fn period(&mut self) -> PResult<(Ident, Ident, Ident)> {
        let name = self.ident()?;
        self.expect_tok(Tok::LParen)?;
        let start = self.ident()?;
        self.expect_tok(Tok::Comma)?;
        let end = self.ident()?;
        self.expect_tok(Tok::RParen)?;
        Ok((name, start, end))
    }

    // --- columns

    pub(super) fn column_def(&mut self) -> PResult<ColumnDef> {
        let name = self.column_def_name()?;
        self.column_def_rest(name)
    }

    /// `[[db.]table.]column`; only the last part counts.
    fn column_def_name(&mut self) -> PResult<Ident> {
        let mut name = self.ident()?;
        while self.eat_tok(Tok::Dot) {
            name = self.ident()?;
        }
        Ok(name)
    }

    pub(super) fn column_def_rest(&mut self, name: Ident) -> PResult<ColumnDef> {
        let start = name.span.start;
        let data_type = self.data_type()?;
        let mut attributes = Vec::new();
        while let Some(attribute) = self.opt_column_attribute()? {
            attributes.push(attribute);
        }
        Ok(ColumnDef { name, data_type, attributes, span: self.span_from(start) })
    }

    fn opt_column_attribute(&mut self) -> PResult<Option<ColumnAttribute>> {
        use ColumnAttribute as A;
        let attribute = match self.kw() {
            Kw::NULL => {
                self.bump();
                A::Null(true)
            }
            Kw::NOT => self.negated_attribute()?,
            Kw::DEFAULT => {
                self.bump();
                let (value, parenthesised) = self.default_value()?;
                A::Default { value, parenthesised }
            }
            Kw::ON => {
                self.bump();
                self.expect(Kw::UPDATE)?;
                A::OnUpdateNow(self.now_precision()?)
            }
            Kw::AUTO_INCREMENT => {
                self.bump();
                A::AutoIncrement
            }
            Kw::SERIAL if self.peek_kw() == Kw::DEFAULT => {
                self.bump();
                self.bump();
                self.expect(Kw::VALUE)?;
                return Ok(Some(A::AutoIncrement));
            }
            Kw::PRIMARY => {
                self.bump();
                self.expect(Kw::KEY)?;
                A::PrimaryKey
            }
            Kw::KEY => {
                self.bump();
                A::PrimaryKey
            }
            Kw::UNIQUE => {
                self.bump();
                self.eat(Kw::KEY);
                A::Unique
            }
            Kw::COLLATE => {
                self.bump();
                A::Collation(self.charset_name()?)
            }
            Kw::GENERATED | Kw::AS => self.generated()?,
            Kw::CONSTRAINT => self.named_check()?,
            Kw::CHECK => A::Check(self.check_def(None)?),
            Kw::REFERENCES => A::References(self.references()?),
            _ => return self.opt_soft_attribute(),
        };
        Ok(Some(attribute))
    }

    fn negated_attribute(&mut self) -> PResult<ColumnAttribute> {
        self.bump();
        match self.eat_one_of(&[Kw::NULL, Kw::SECONDARY]) {
            Some(Kw::NULL) => Ok(ColumnAttribute::Null(false)),
            Some(_) => Ok(ColumnAttribute::NotSecondary),
            None => self.fail(),
        }
    }

    /// `CONSTRAINT [name] CHECK ..`
    fn named_check(&mut self) -> PResult<ColumnAttribute> {
        self.bump();
        let name = if self.at_ident() { Some(self.ident()?) } else { None };
        if !self.at(Kw::CHECK) {
            return self.fail();
        }
        Ok(ColumnAttribute::Check(self.check_def(name)?))
    }

    /// Attributes whose keywords are not reserved.
    fn opt_soft_attribute(&mut self) -> PResult<Option<ColumnAttribute>> {
        use ColumnAttribute as A;
        let kw = self.kw();
        let attribute = match kw {
            Kw::COMMENT => {
                self.bump();
                self.opt_eq();
                A::Comment(self.text()?)
            }
            Kw::COLUMN_FORMAT => {
                self.bump();
                self.opt_eq();
                A::ColumnFormat(self.any_word()?)
            }
            Kw::STORAGE => {
                self.bump();
                A::Storage(self.any_word()?)
            }
            Kw::ENGINE_ATTRIBUTE => {
                self.bump();
                self.opt_eq();
                A::EngineAttribute(self.text()?)
            }
            Kw::SECONDARY_ENGINE_ATTRIBUTE => {
                self.bump();
                self.opt_eq();
                A::SecondaryEngineAttribute(self.text()?)
            }
            Kw::VISIBLE | Kw::INVISIBLE => {
                self.bump();
                A::Visible(kw == Kw::VISIBLE)
            }
            Kw::SRID => {
                self.bump();
                A::Srid(self.number()?)
            }
            Kw::COMPRESSED => {
                self.bump();
                A::Compressed
            }
            Kw::WITH | Kw::WITHOUT if self.peek_kw() == Kw::SYSTEM => {
                self.bump();
                self.bump();
                self.expect(Kw::VERSIONING)?;
                A::SystemVersioning(kw == Kw::WITH)
            }
            _ => return Ok(None),
        };
        Ok(Some(attribute))
    }

    fn generated(&mut self) -> PResult<ColumnAttribute> {
        if self.eat(Kw::GENERATED) {
            self.expect(Kw::ALWAYS)?;
        }
        self.expect(Kw::AS)?;
        if self.eat(Kw::ROW) {
            return match self.eat_one_of(&[Kw::START, Kw::END]) {
                Some(word) => Ok(ColumnAttribute::RowPeriod(word == Kw::START)),
                None => self.fail(),
            };
        }
        let expr = self.paren_expr()?;
        let stored = match self.eat_one_of(&[Kw::VIRTUAL, Kw::STORED, Kw::PERSISTENT]) {
            Some(word) => word != Kw::VIRTUAL,
            None => false,
        };
        Ok(ColumnAttribute::Generated { expr, stored })
    }

    /// `(expr)`.
    pub(super) fn paren_expr(&mut self) -> PResult<Expr> {
        self.in_parens(Self::expr)
    }

    /// The value of DEFAULT and whether it was in parentheses.
    pub(super) fn default_value(&mut self) -> PResult<(Expr, bool)> {
        if self.at_tok(Tok::LParen) {
            return Ok((self.paren_expr()?, true));
        }
        let start = self.start();
        let op = match self.tok() {
            Tok::Minus => Some(UnaryOp::Neg),
            Tok::Plus => Some(UnaryOp::Plus),
            _ => None,
        };
        if let Some(op) = op {
            self.bump();
            if !matches!(self.tok(), Tok::Int | Tok::Decimal | Tok::Float) {
                return self.fail();
            }
            let expr = Box::new(self.primary()?);
            let kind = ExprKind::Unary { op, expr };
            return Ok((Expr { kind, span: self.span_from(start) }, false));
        }
        // MariaDB shows the default of a UUID column without parentheses.
        let is_uuid = self.kw() == Kw::UUID;
        let value = self.primary()?;
        if is_uuid && matches!(&value.kind, ExprKind::Function(call) if call.args.is_empty()) {
            return Ok((value, true));
        }
        let allowed = match &value.kind {
            ExprKind::Literal(_) | ExprKind::NextValue(_) | ExprKind::PreviousValue(_) => true,
            ExprKind::Function(call) => call.is_now(),
            _ => false,
        };
        if allowed { Ok((value, false)) } else { self.fail_at(start as usize) }
    }

    /// `NOW[(n)]` and its synonyms after ON UPDATE.
    fn now_precision(&mut self) -> PResult<Option<u32>> {
        let now = matches!(
            self.kw(),
            Kw::CURRENT_TIMESTAMP | Kw::LOCALTIME | Kw::LOCALTIMESTAMP | Kw::NOW
        );
        if !now {
            return self.fail();
        }
        self.bump();
        let mut precision = None;
        if self.eat_tok(Tok::LParen) && !self.eat_tok(Tok::RParen) {
            precision = Some(u32::try_from(self.number()?).unwrap_or(u32::MAX));
            self.expect_tok(Tok::RParen)?;
        }
        Ok(precision)
    }

    // --- keys and constraints

    pub(super) fn at_constraint(&mut self) -> bool {
        match self.kw() {
            Kw::CONSTRAINT
            | Kw::PRIMARY
            | Kw::UNIQUE
            | Kw::FOREIGN
            | Kw::CHECK
            | Kw::INDEX
            | Kw::KEY
            | Kw::FULLTEXT
            | Kw::SPATIAL => true,
            Kw::VECTOR => matches!(self.peek_kw(), Kw::INDEX | Kw::KEY),
            _ => false,
        }
    }

    pub(super) fn table_constraint(&mut self) -> PResult<TableConstraint> {
        let start = self.start();
        let mut constraint = None;
        let named = self.eat(Kw::CONSTRAINT);
        if named && self.at_ident() {
            constraint = Some(self.ident()?);
        }
        match self.kw() {
            Kw::FOREIGN => {
                self.bump();
                self.expect(Kw::KEY)?;
                let _ = self.if_not_exists()?;
                let name = if self.at_ident() { Some(self.ident()?) } else { None };
                let columns = self.paren_list(|p| p.key_column())?;
                if !self.at(Kw::REFERENCES) {
                    return self.fail();
                }
                let references = self.references()?;
                let def = ForeignKeyDef { constraint, name, columns, references };
                return Ok(TableConstraint::ForeignKey(def));
            }
            Kw::CHECK => return Ok(TableConstraint::Check(self.check_def(constraint)?)),
            Kw::PRIMARY | Kw::UNIQUE => {}
            _ if named => return self.fail(),
            _ => {}
        }
        let kind = self.index_kind()?;
        let if_not_exists = self.if_not_exists()?;
        let mut name = None;
        if self.at_ident() && !(self.at(Kw::TYPE) && self.index_type_follows()) {
            name = Some(self.ident()?);
        }
        let mut index = self.index_body(kind, start)?;
        index.if_not_exists = if_not_exists;
        if kind == IndexKind::Unique && name.is_none() {
            name = constraint.clone();
        }
        index.name = name;
        index.constraint = constraint;
        Ok(TableConstraint::Index(index))
    }

    fn index_type_follows(&mut self) -> bool {
        matches!(self.peek_kw(), Kw::BTREE | Kw::HASH | Kw::RTREE)
    }

    fn key_column(&mut self) -> PResult<Ident> {
        let name = self.ident()?;
        if self.eat_tok(Tok::LParen) {
            self.number()?;
            self.expect_tok(Tok::RParen)?;
        }
        let _ = self.eat(Kw::ASC) || self.eat(Kw::DESC);
        Ok(name)
    }

    /// `PRIMARY KEY`, `UNIQUE [KEY]`, `[FULLTEXT|SPATIAL|VECTOR] KEY`.
    pub(super) fn index_kind(&mut self) -> PResult<IndexKind> {
        let word = self.kw();
        self.bump();
        let kind = match word {
            Kw::PRIMARY => {
                self.expect(Kw::KEY)?;
                return Ok(IndexKind::Primary);
            }
            Kw::INDEX | Kw::KEY => return Ok(IndexKind::Plain),
            Kw::UNIQUE => IndexKind::Unique,
            Kw::FULLTEXT => IndexKind::Fulltext,
            Kw::SPATIAL => IndexKind::Spatial,
            _ => IndexKind::Vector,
        };
        let _ = self.eat(Kw::INDEX) || self.eat(Kw::KEY);
        Ok(kind)
    }

    /// `[USING x] (parts) options`.
    pub(super) fn index_body(&mut self, kind: IndexKind, start: u32) -> PResult<IndexDef> {
        let mut options = Vec::new();
        if let Some(algorithm) = self.opt_index_using()? {
            options.push(IndexOption::Using(algorithm));
        }
        let (parts, without_overlaps) = self.in_parens(|p| p.key_parts(kind))?;
        while let Some(option) = self.opt_index_option()? {
            options.push(option);
        }
        Ok(IndexDef {
            kind,
            constraint: None,
            if_not_exists: false,
            name: None,
            parts,
            without_overlaps,
            options,
            span: self.span_from(start),
        })
    }

    pub(super) fn opt_index_using(&mut self) -> PResult<Option<IndexAlgorithm>> {
        let names_type = self.at(Kw::TYPE) && self.index_type_follows();
        if !(self.at(Kw::USING) || names_type) {
            return Ok(None);
        }
        self.bump();
        let algorithm = match self.kw() {
            Kw::BTREE => IndexAlgorithm::BTree,
            Kw::HASH => IndexAlgorithm::Hash,
            Kw::RTREE => IndexAlgorithm::RTree,
            _ => return self.fail(),
        };
        self.bump();
        Ok(Some(algorithm))
    }

    /// The parts, of a unique key perhaps followed by `p WITHOUT OVERLAPS`.
    fn key_parts(&mut self, kind: IndexKind) -> PResult<(Vec<KeyPart>, Option<Ident>)> {
        let mut parts = vec![self.key_part()?];
        while self.eat_tok(Tok::Comma) {
            parts.push(self.key_part()?);
            if matches!(kind, IndexKind::Primary | IndexKind::Unique)
                && self.at2(Kw::WITHOUT, Kw::OVERLAPS)
                && let Some(KeyPart {
                    kind: KeyPartKind::Column { name, length: None },
                    desc: false,
                    explicit_asc: false,
                }) = parts.last()
            {
                let name = name.clone();
                self.bump();
                self.bump();
                parts.pop();
                return Ok((parts, Some(name)));
            }
        }
        Ok((parts, None))
    }

    fn key_part(&mut self) -> PResult<KeyPart> {
        let kind = if self.at_tok(Tok::LParen) {
            KeyPartKind::Expr(self.paren_expr()?)
        } else {
            let name = self.ident()?;
            let mut length = None;
            if self.eat_tok(Tok::LParen) {
                length = Some(self.number()?);
                self.expect_tok(Tok::RParen)?;
            }
            KeyPartKind::Column { name, length }
        };
        let desc = self.eat(Kw::DESC);
        let explicit_asc = !desc && self.eat(Kw::ASC);
        Ok(KeyPart { kind, desc, explicit_asc })
    }

    pub(super) fn opt_index_option(&mut self) -> PResult<Option<IndexOption>> {
        if let Some(algorithm) = self.opt_index_using()? {
            return Ok(Some(IndexOption::Using(algorithm)));
        }
        let kw = self.kw();
        let option = match kw {
            Kw::KEY_BLOCK_SIZE => {
                self.bump();
                self.opt_eq();
                IndexOption::KeyBlockSize(self.number()?)
            }
            Kw::WITH if self.peek_kw() == Kw::PARSER => {
                self.bump();
                self.bump();
                IndexOption::Parser(self.ident()?)
            }
            Kw::COMMENT => {
                self.bump();
                self.opt_eq();
                IndexOption::Comment(self.text()?)
            }
            Kw::VISIBLE | Kw::INVISIBLE => {
                self.bump();
                IndexOption::Visible(kw == Kw::VISIBLE)
            }
            Kw::IGNORED => {
                self.bump();
                IndexOption::Visible(false)
            }
            Kw::NOT if self.peek_kw() == Kw::IGNORED => {
                self.bump();
                self.bump();
                IndexOption::Visible(true)
            }
            Kw::ENGINE_ATTRIBUTE => {
                self.bump();
                self.opt_eq();
                IndexOption::EngineAttribute(self.text()?)
            }
            Kw::SECONDARY_ENGINE_ATTRIBUTE => {
                self.bump();
                self.opt_eq();
                IndexOption::SecondaryEngineAttribute(self.text()?)
            }
            Kw::NO_WORD if self.tok() == Tok::Word && self.peek().kind == Tok::Eq => {
                let name = self.any_word()?;
                self.bump();
                IndexOption::Other(name, self.option_text()?)
            }
            _ => return Ok(None),
        };
        Ok(Some(option))
    }

    /// A word, number or string as text.
    fn option_text(&mut self) -> PResult<Box<str>> {
        match self.tok() {
            Tok::Str => self.text(),
            Tok::Int | Tok::Decimal | Tok::Float => self.number_text(),
            _ => Ok(self.any_word()?.text),
        }
    }

    /// At CHECK.
    pub(super) fn check_def(&mut self, name: Option<Ident>) -> PResult<CheckDef> {
        self.bump();
        let expr = self.paren_expr()?;
        let enforced = if self.at2(Kw::NOT, Kw::ENFORCED) {
            self.bump();
            self.bump();
            Some(false)
        } else {
            self.eat(Kw::ENFORCED).then_some(true)
        };
        Ok(CheckDef { name, expr, enforced })
    }

    /// At REFERENCES.
    fn references(&mut self) -> PResult<References> {
        self.bump();
        let table = self.object_name()?;
        let columns =
            if self.at_tok(Tok::LParen) { self.paren_list(Self::key_column)? } else { Vec::new() };
        let mut references =
            References { table, columns, match_kind: None, on_delete: None, on_update: None };
        if self.eat(Kw::MATCH) {
            references.match_kind = Some(match self.kw() {
                Kw::FULL => MatchKind::Full,
                Kw::PARTIAL => MatchKind::Partial,
                Kw::SIMPLE => MatchKind::Simple,
                _ => return self.fail(),
            });
            self.bump();
        }
        while self.at(Kw::ON) {
            let what = self.peek_kw();
            if what == Kw::DELETE && references.on_delete.is_none() {
                self.bump();
                self.bump();
                references.on_delete = Some(self.reference_action()?);
            } else if what == Kw::UPDATE && references.on_update.is_none() {
                self.bump();
                self.bump();
                references.on_update = Some(self.reference_action()?);
            } else {
                break;
            }
        }
        Ok(references)
    }

    fn reference_action(&mut self) -> PResult<ReferenceAction> {
        match self.eat_one_of(&[Kw::RESTRICT, Kw::CASCADE, Kw::SET, Kw::NO]) {
            Some(Kw::RESTRICT) => Ok(ReferenceAction::Restrict),
            Some(Kw::CASCADE) => Ok(ReferenceAction::Cascade),
            Some(Kw::SET) => match self.eat_one_of(&[Kw::NULL, Kw::DEFAULT]) {
                Some(Kw::NULL) => Ok(ReferenceAction::SetNull),
                Some(_) => Ok(ReferenceAction::SetDefault),
                None => self.fail(),
            },
            Some(_) => {
                self.expect(Kw::ACTION)?;
                Ok(ReferenceAction::NoAction)
            }
            None => self.fail(),
        }
    }

    // --- options

    pub(super) fn at_table_option(&mut self) -> bool {
        let saved = (self.cur, self.params, self.lifted);
        let found = matches!(self.opt_table_option(), Ok(Some(_)) | Err(_));
        (self.cur, self.params, self.lifted) = saved;
        found
    }

    /// One table option, if one starts here.
    pub(super) fn opt_table_option(&mut self) -> PResult<Option<TableOption>> {
        use TableOption as O;
        let kw = self.kw();
        if kw == Kw::DEFAULT {
            let next = self.peek_kw();
            if !matches!(next, Kw::CHARACTER | Kw::CHAR | Kw::CHARSET | Kw::COLLATE) {
                return Ok(None);
            }
            self.bump();
            return self.opt_table_option();
        }
        if let Some(number) = number_option_of(kw) {
            self.bump();
            self.opt_eq();
            let value = if self.eat(Kw::DEFAULT) { None } else { Some(self.number()?) };
            return Ok(Some(O::Number(number, value)));
        }
        match kw {
            Kw::CHARACTER | Kw::CHAR | Kw::CHARSET => {
                self.bump();
                if kw != Kw::CHARSET {
                    self.expect(Kw::SET)?;
                }
                self.opt_eq();
                return Ok(Some(O::Charset(self.charset_or_default()?)));
            }
            Kw::COLLATE => {
                self.bump();
                self.opt_eq();
                return Ok(Some(O::Collation(self.charset_or_default()?)));
            }
            Kw::DATA | Kw::INDEX if self.peek_kw() == Kw::DIRECTORY => {
                self.bump();
                self.bump();
                self.opt_eq();
                let text = self.text()?;
                return Ok(Some(if kw == Kw::DATA {
                    O::DataDirectory(text)
                } else {
                    O::IndexDirectory(text)
                }));
            }
            Kw::START if self.peek_kw() == Kw::TRANSACTION => {
                self.bump();
                self.bump();
                return Ok(Some(O::StartTransaction));
            }
            Kw::WITH if self.peek_kw() == Kw::SYSTEM => {
                self.bump();
                self.bump();
                self.expect(Kw::VERSIONING)?;
                return Ok(Some(O::SystemVersioning));
            }
            Kw::UNION => return Ok(Some(O::Union(self.merged_tables()?))),
            _ => {}
        }
        self.opt_word_option(kw)
    }

    /// `UNION [=] (table, ..)`
    fn merged_tables(&mut self) -> PResult<Vec<ObjectName>> {
        self.bump();
        self.opt_eq();
        self.expect_tok(Tok::LParen)?;
        let mut tables = Vec::new();
        if !self.at_tok(Tok::RParen) {
            tables = self.comma_list(Self::object_name)?;
        }
        self.expect_tok(Tok::RParen)?;
        Ok(tables)
    }

    /// Options of the form `WORD [=] value`.
    fn opt_word_option(&mut self, kw: Kw) -> PResult<Option<TableOption>> {
        use TableOption as O;
        let known = matches!(
            kw,
            Kw::ENGINE
                | Kw::SECONDARY_ENGINE
                | Kw::AUTO_INCREMENT
                | Kw::COMMENT
                | Kw::ROW_FORMAT
                | Kw::TABLESPACE
                | Kw::STORAGE
                | Kw::INSERT_METHOD
                | Kw::COMPRESSION
                | Kw::ENCRYPTION
                | Kw::CONNECTION
                | Kw::PASSWORD
                | Kw::AUTOEXTEND_SIZE
                | Kw::ENGINE_ATTRIBUTE
                | Kw::SECONDARY_ENGINE_ATTRIBUTE
        );
        if !known {
            let foreign = matches!(kw, Kw::NO_WORD | Kw::SEQUENCE)
                && self.tok() == Tok::Word
                && self.peek().kind == Tok::Eq
                && !self.in_program;
            if !foreign {
                return Ok(None);
            }
            let name = self.any_word()?;
            self.bump();
            return Ok(Some(O::Other(name, self.option_text()?)));
        }
        self.bump();
        self.opt_eq();
        Ok(Some(match kw {
            Kw::ENGINE => O::Engine(self.ident_or_text()?),
            Kw::SECONDARY_ENGINE => {
                if self.eat(Kw::NULL) {
                    O::SecondaryEngine(None)
                } else {
                    O::SecondaryEngine(Some(self.ident_or_text()?))
                }
            }
            Kw::AUTO_INCREMENT => O::AutoIncrement(self.number()?),
            Kw::COMMENT => O::Comment(self.text()?),
            Kw::ROW_FORMAT => O::RowFormat(self.any_word()?),
            Kw::TABLESPACE => O::Tablespace(self.ident_or_text()?),
            Kw::STORAGE => O::Storage(self.any_word()?),
            Kw::INSERT_METHOD => O::InsertMethod(self.any_word()?),
            Kw::COMPRESSION => O::Compression(self.text()?),
            Kw::ENCRYPTION => O::Encryption(self.text()?),
            Kw::CONNECTION => O::Connection(self.text()?),
            Kw::PASSWORD => O::Password(self.text()?),
            Kw::AUTOEXTEND_SIZE => O::AutoextendSize(self.size_number()?),
            Kw::ENGINE_ATTRIBUTE => O::EngineAttribute(self.text()?),
            _ => O::SecondaryEngineAttribute(self.text()?),
        }))
    }

    // --- partitions

    /// At PARTITION.
    pub(super) fn partitioning(&mut self) -> PResult<Box<Partitioning>> {
        self.bump();
        self.expect(Kw::BY)?;
        let method = self.partition_method(false)?;
        let mut partitioning = Box::new(Partitioning {
            method,
            count: None,
            subpartition: None,
            subpartition_count: None,
            partitions: Vec::new(),
        });
        if self.eat(Kw::PARTITIONS) {
            partitioning.count = Some(self.number()?);
        }
        if self.eat(Kw::SUBPARTITION) {
            self.expect(Kw::BY)?;
            partitioning.subpartition = Some(self.partition_method(true)?);
            if self.eat(Kw::SUBPARTITIONS) {
                partitioning.subpartition_count = Some(self.number()?);
            }
        }
        if self.at_tok(Tok::LParen) {
            let listed = self.start() as usize;
            let subpartitions = Subpartitions {
                allowed: partitioning.subpartition.is_some(),
                count: partitioning.subpartition_count,
                listed: None,
            };
            partitioning.partitions = self.partition_defs_of(subpartitions)?;
            let count = partitioning.partitions.len() as u64;
            if partitioning.count.is_some_and(|written| written > 0 && written != count) {
                return self.fail_number("partitions", listed);
            }
        }
        Ok(partitioning)
    }

    fn partition_method(&mut self, sub: bool) -> PResult<PartitionMethod> {
        let linear = self.eat(Kw::LINEAR);
        let kw = self.kw();
        self.bump();
        match kw {
            Kw::HASH => Ok(PartitionMethod::Hash { linear, expr: self.paren_expr()? }),
            Kw::KEY => {
                let mut algorithm = None;
                if self.eat(Kw::ALGORITHM) {
                    self.expect_tok(Tok::Eq)?;
                    algorithm = Some(self.number()?);
                }
                self.expect_tok(Tok::LParen)?;
                let mut columns = Vec::new();
                if !self.at_tok(Tok::RParen) {
                    columns = self.ident_list()?;
                }
                self.expect_tok(Tok::RParen)?;
                Ok(PartitionMethod::Key { linear, algorithm, columns })
            }
            Kw::RANGE | Kw::LIST if !sub && !linear => {
                let range = kw == Kw::RANGE;
                if self.eat(Kw::COLUMNS) {
                    let columns = self.paren_idents()?;
                    return Ok(if range {
                        PartitionMethod::RangeColumns(columns)
                    } else {
                        PartitionMethod::ListColumns(columns)
                    });
                }
                let expr = self.paren_expr()?;
                Ok(if range { PartitionMethod::Range(expr) } else { PartitionMethod::List(expr) })
            }
            Kw::SYSTEM_TIME if !sub && !linear => self.system_time_rotation(),
            _ => self.fail_prev(),
        }
    }

    /// `INTERVAL n unit [STARTS literal] [AUTO]` or `LIMIT n [AUTO]`, after SYSTEM_TIME.
    fn system_time_rotation(&mut self) -> PResult<PartitionMethod> {
        let (mut interval, mut starts, mut limit) = (None, None, None);
        if self.eat(Kw::INTERVAL) {
            let amount = self.expr()?;
            interval = Some((amount, self.interval_unit()?));
            if self.eat(Kw::STARTS) {
                let literal = self.expr()?;
                if !matches!(literal.kind, ExprKind::Literal(_)) {
                    return self.fail_prev();
                }
                starts = Some(literal);
            }
        } else if self.eat(Kw::LIMIT) {
            limit = Some(self.number()?);
        }
        let auto = (interval.is_some() || limit.is_some()) && self.eat(Kw::AUTO);
        Ok(PartitionMethod::SystemTime { interval, starts, limit, auto })
    }

    pub(super) fn partition_defs(&mut self) -> PResult<Vec<PartitionDef>> {
        self.partition_defs_of(Subpartitions { allowed: false, count: None, listed: None })
    }

    fn partition_defs_of(&mut self, mut expected: Subpartitions) -> PResult<Vec<PartitionDef>> {
        self.paren_list(|p| {
            p.expect(Kw::PARTITION)?;
            let name = p.ident()?;
            let values = p.partition_values()?;
            let options = p.partition_options()?;
            let mut subpartitions = Vec::new();
            let (opening, mut first) = (p.start() as usize, 0);
            if p.at_tok(Tok::LParen) {
                first = opening + 1;
                subpartitions = p.paren_list(|p| {
                    p.expect(Kw::SUBPARTITION)?;
                    let name = p.ident_or_text()?;
                    Ok((name, p.partition_options()?))
                })?;
            }
            let count = subpartitions.len() as u64;
            if expected.allowed {
                match (expected.listed, count) {
                    // Subpartitions where the partitions before have none.
                    (Some(0), 1..) => return p.fail_number("subpartitions", first),
                    (Some(1..), 0) => return p.fail_number("subpartitions", opening),
                    (Some(before), _) if before != count => {
                        return p.fail_number("subpartitions", opening);
                    }
                    _ if count > 0 && expected.count.is_some_and(|written| written != count) => {
                        return p.fail_number("subpartitions", opening);
                    }
                    _ => {}
                }
                expected.listed = Some(count);
            }
            Ok(PartitionDef { name, values, options, subpartitions })
        })
    }

    /// 1064: more or fewer `what` are listed than before, or than their number says.
    fn fail_number<T>(&self, what: &str, at: usize) -> PResult<T> {
        let (near, line) = near(self.src, at);
        self.fail_other(
            1064,
            format!("Wrong number of {what} defined, mismatch with previous setting near '{near}' at line {line}"),
        )
    }

    fn partition_values(&mut self) -> PResult<PartitionValues> {
        match self.eat_one_of(&[Kw::HISTORY, Kw::CURRENT, Kw::DEFAULT]) {
            Some(Kw::HISTORY) => return Ok(PartitionValues::History),
            Some(Kw::CURRENT) => return Ok(PartitionValues::Current),
            Some(_) => return Ok(PartitionValues::Default),
            None => {}
        }
        if !self.eat(Kw::VALUES) {
            return Ok(PartitionValues::None);
        }
        if self.eat(Kw::LESS) {
            self.expect(Kw::THAN)?;
            if self.eat(Kw::MAXVALUE) {
                return Ok(PartitionValues::LessThan(vec![None]));
            }
            return Ok(PartitionValues::LessThan(self.paren_list(Self::partition_value)?));
        }
        self.expect(Kw::IN)?;
        self.expect_tok(Tok::LParen)?;
        let rows = self.comma_list(|p| {
            if p.at_tok(Tok::LParen) {
                return p.paren_list(Self::partition_value);
            }
            Ok(vec![p.partition_value()?])
        })?;
        self.expect_tok(Tok::RParen)?;
        Ok(PartitionValues::In(rows))
    }

    fn partition_value(&mut self) -> PResult<Option<Expr>> {
        if self.eat(Kw::MAXVALUE) { Ok(None) } else { Ok(Some(self.expr()?)) }
    }

    fn partition_options(&mut self) -> PResult<Vec<PartitionOption>> {
        use PartitionOption as O;
        let mut options = Vec::new();
        loop {
            if self.at(Kw::STORAGE) && self.peek_kw() == Kw::ENGINE {
                self.bump();
            }
            let kw = self.kw();
            let known = matches!(
                kw,
                Kw::ENGINE
                    | Kw::COMMENT
                    | Kw::DATA
                    | Kw::INDEX
                    | Kw::MAX_ROWS
                    | Kw::MIN_ROWS
                    | Kw::TABLESPACE
                    | Kw::NODEGROUP
            );
            if !known {
                return Ok(options);
            }
            self.bump();
            if matches!(kw, Kw::DATA | Kw::INDEX) {
                self.expect(Kw::DIRECTORY)?;
            }
            self.opt_eq();
            options.push(match kw {
                Kw::ENGINE => O::Engine(self.ident_or_text()?),
                Kw::COMMENT => O::Comment(self.text()?),
                Kw::DATA => O::DataDirectory(self.text()?),
                Kw::INDEX => O::IndexDirectory(self.text()?),
                Kw::MAX_ROWS => O::MaxRows(self.number()?),
                Kw::MIN_ROWS => O::MinRows(self.number()?),
                Kw::TABLESPACE => O::Tablespace(self.ident_or_text()?),
                _ => O::Nodegroup(self.number()?),
            });
        }
    }
}

fn number_option_of(kw: Kw) -> Option<NumberOption> {
    Some(match kw {
        Kw::AVG_ROW_LENGTH => NumberOption::AvgRowLength,
        Kw::CHECKSUM | Kw::TABLE_CHECKSUM => NumberOption::Checksum,
        Kw::DELAY_KEY_WRITE => NumberOption::DelayKeyWrite,
        Kw::KEY_BLOCK_SIZE => NumberOption::KeyBlockSize,
        Kw::MAX_ROWS => NumberOption::MaxRows,
        Kw::MIN_ROWS => NumberOption::MinRows,
        Kw::PACK_KEYS => NumberOption::PackKeys,
        Kw::STATS_AUTO_RECALC => NumberOption::StatsAutoRecalc,
        Kw::STATS_PERSISTENT => NumberOption::StatsPersistent,
        Kw::STATS_SAMPLE_PAGES => NumberOption::StatsSamplePages,
        _ => return None,
    })
}
