//! Statements that change rows: INSERT, REPLACE, UPDATE, DELETE, LOAD, HANDLER, CALL, DO.

use super::{PResult, Parser};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::Tok;

impl<'a> Parser<'a> {
    /// An expression or DEFAULT.
    pub(super) fn expr_or_default(&mut self) -> PResult<Expr> {
        if self.at(Kw::DEFAULT) && self.peek().kind != Tok::LParen {
            let start = self.start();
            self.bump();
            let span = self.span_from(start);
            return Ok(Expr { kind: ExprKind::Default(None), span });
        }
        self.expr()
    }

    /// `(a, DEFAULT, ..)`, `()`.
    pub(super) fn value_row(&mut self) -> PResult<Vec<Expr>> {
        self.expect_tok(Tok::LParen)?;
        if self.eat_tok(Tok::RParen) {
            return Ok(Vec::new());
        }
        let values = self.comma_list(Self::expr_or_default)?;
        self.expect_tok(Tok::RParen)?;
        Ok(values)
    }

    pub(super) fn assignments(&mut self) -> PResult<Vec<Assignment>> {
        self.comma_list(|p| {
            let column = p.column_name()?;
            p.set_eq()?;
            Ok(Assignment { column, value: p.expr_or_default()? })
        })
    }

    fn opt_returning(&mut self) -> PResult<Vec<SelectItem>> {
        if self.eat(Kw::RETURNING) { self.select_items() } else { Ok(Vec::new()) }
    }

    // --- INSERT, REPLACE

    pub(super) fn insert(&mut self) -> PResult<Statement> {
        let replace = self.at(Kw::REPLACE);
        self.bump();
        let hints = self.opt_hints()?;
        let priority = match self.kw() {
            Kw::LOW_PRIORITY => Priority::Low,
            Kw::DELAYED => Priority::Delayed,
            Kw::HIGH_PRIORITY if !replace => Priority::High,
            _ => Priority::Normal,
        };
        if priority != Priority::Normal {
            self.bump();
        }
        let ignore = !replace && self.eat(Kw::IGNORE);
        self.eat(Kw::INTO);
        let table = self.object_name()?;
        let partitions = self.opt_partition_list()?;
        let (columns, source) = self.insert_source()?;
        let may_alias = !replace && !matches!(source, InsertSource::Query(_));
        let row_alias = if may_alias && self.eat(Kw::AS) { Some(self.row_alias()?) } else { None };
        let mut on_duplicate = Vec::new();
        if !replace && self.eat(Kw::ON) {
            self.expect_all(&[Kw::DUPLICATE, Kw::KEY, Kw::UPDATE])?;
            on_duplicate = self.assignments()?;
        }
        let returning = self.opt_returning()?;
        Ok(Statement::Insert(Box::new(Insert {
            replace,
            priority,
            ignore,
            hints,
            table,
            partitions,
            columns,
            source,
            row_alias,
            on_duplicate,
            returning,
        })))
    }

    fn row_alias(&mut self) -> PResult<RowAlias> {
        let name = self.ident()?;
        let columns = if self.at_tok(Tok::LParen) { self.paren_idents()? } else { Vec::new() };
        Ok(RowAlias { name, columns })
    }

    fn insert_source(&mut self) -> PResult<(Option<Vec<ColumnName>>, InsertSource)> {
        if self.eat(Kw::SET) {
            return Ok((None, InsertSource::Set(self.assignments()?)));
        }
        let mut columns = None;
        if self.at_tok(Tok::LParen) {
            let next = self.peek();
            let query = next.kind == Tok::LParen
                || matches!(next.kw, Kw::SELECT | Kw::WITH | Kw::TABLE | Kw::VALUES);
            if !query {
                self.bump();
                let mut names = Vec::new();
                if !self.at_tok(Tok::RParen) {
                    names = self.comma_list(Self::column_name)?;
                }
                self.expect_tok(Tok::RParen)?;
                columns = Some(names);
            }
        }
        let rows = match self.kw() {
            Kw::VALUES => self.peek_kw() != Kw::ROW,
            Kw::VALUE => true,
            _ => false,
        };
        if rows {
            self.bump();
            return Ok((columns, InsertSource::Values(self.comma_list(Self::value_row)?)));
        }
        if !self.at_tok(Tok::LParen) && !self.at_query() {
            return self.fail();
        }
        let query = self.query()?;
        let plain = query.with.is_none()
            && query.order_by.is_empty()
            && query.limit.is_none()
            && query.locking.is_empty()
            && query.into.is_none();
        match query.body {
            SetExpr::Values(rows) if plain => Ok((columns, InsertSource::Values(rows))),
            _ => Ok((columns, InsertSource::Query(query))),
        }
    }

    // --- UPDATE, DELETE

    pub(super) fn update(&mut self, with: Option<With>) -> PResult<Statement> {
        self.bump();
        let hints = self.opt_hints()?;
        let low_priority = self.eat(Kw::LOW_PRIORITY);
        let ignore = self.eat(Kw::IGNORE);
        let mut tables = self.table_references()?;
        let portion = self.portion_of(&mut tables)?;
        self.expect(Kw::SET)?;
        let set = self.assignments()?;
        let filter = self.opt_where()?;
        let order_by = self.opt_order_by()?;
        let limit = self.opt_row_limit()?;
        let returning = self.opt_returning()?;
        Ok(Statement::Update(Box::new(Update {
            with,
            low_priority,
            ignore,
            hints,
            tables,
            portion,
            set,
            filter,
            order_by,
            limit,
            returning,
        })))
    }

    /// `LIMIT n`, without an offset.
    fn opt_row_limit(&mut self) -> PResult<Option<Limit>> {
        if !self.at(Kw::LIMIT) {
            return Ok(None);
        }
        let limit = self.opt_limit()?;
        match limit {
            Some(Limit { offset: Some(offset), .. }) => {
                // The reference stops at the separator of the two numbers.
                let before = offset.span.start as usize;
                let at = self.src[before..]
                    .iter()
                    .position(|b| *b == b',')
                    .map_or(before, |comma| before + comma);
                self.fail_at(at)
            }
            limit => Ok(limit),
        }
    }

    pub(super) fn delete(&mut self, with: Option<With>) -> PResult<Statement> {
        self.bump();
        let mut delete = Box::new(Delete {
            with,
            low_priority: false,
            quick: false,
            ignore: false,
            hints: self.opt_hints()?,
            target: DeleteTarget::Multi { tables: Vec::new(), using: false, from: Vec::new() },
            portion: None,
            filter: None,
            order_by: Vec::new(),
            limit: None,
            returning: Vec::new(),
        });
        loop {
            match self.kw() {
                Kw::LOW_PRIORITY => delete.low_priority = true,
                Kw::IGNORE => delete.ignore = true,
                Kw::QUICK if !matches!(self.peek().kind, Tok::Comma | Tok::Dot) => {
                    delete.quick = true
                }
                _ => break,
            }
            self.bump();
        }
        self.delete_target(&mut delete)?;
        if let DeleteTarget::History { .. } = delete.target {
            return Ok(Statement::Delete(delete));
        }
        delete.filter = self.opt_where()?;
        if matches!(delete.target, DeleteTarget::Single(_)) {
            delete.order_by = self.opt_order_by()?;
            delete.limit = self.opt_row_limit()?;
            delete.returning = self.opt_returning()?;
        }
        Ok(Statement::Delete(delete))
    }

    fn delete_target(&mut self, delete: &mut Delete) -> PResult<()> {
        if !self.eat(Kw::FROM) {
            let tables = self.comma_list(|p| Ok(p.name_opt_wild()?.0))?;
            self.expect(Kw::FROM)?;
            let from = self.table_references()?;
            delete.target = match history_of(&tables, &from) {
                Some(table) if !self.at(Kw::WHERE) => {
                    DeleteTarget::History { table, before: self.opt_before()? }
                }
                _ => DeleteTarget::Multi { tables, using: false, from },
            };
            return Ok(());
        }
        let (name, wild) = self.name_opt_wild()?;
        if wild || self.at_tok(Tok::Comma) || self.at(Kw::USING) {
            let mut tables = vec![name];
            while self.eat_tok(Tok::Comma) {
                tables.push(self.name_opt_wild()?.0);
            }
            self.expect(Kw::USING)?;
            let from = self.table_references()?;
            delete.target = DeleteTarget::Multi { tables, using: true, from };
            return Ok(());
        }
        let mut table = NamedTable { name, ..NamedTable::default() };
        table.partitions = self.opt_partition_list()?;
        delete.portion = self.opt_portion()?;
        if delete.portion.is_none() {
            table.alias = self.opt_table_alias()?;
            if table.partitions.is_empty() {
                table.partitions = self.opt_partition_list()?;
            }
        }
        delete.target = DeleteTarget::Single(Box::new(table));
        Ok(())
    }

    /// `FOR PORTION OF` of an UPDATE, and the alias, which follows it.
    fn portion_of(&mut self, tables: &mut [TableFactor]) -> PResult<Option<Box<Portion>>> {
        let [TableFactor::Table(table)] = tables else { return Ok(None) };
        if table.alias.is_some() || table.system_time.is_some() || !table.index_hints.is_empty() {
            return Ok(None);
        }
        let portion = self.opt_portion()?;
        if portion.is_some() {
            table.alias = self.opt_table_alias()?;
        }
        Ok(portion)
    }

    /// `FOR PORTION OF p FROM x TO y`.
    fn opt_portion(&mut self) -> PResult<Option<Box<Portion>>> {
        if !self.at2(Kw::FOR, Kw::PORTION) {
            return Ok(None);
        }
        self.bump();
        self.bump();
        self.expect(Kw::OF)?;
        if self.at(Kw::SYSTEM_TIME) {
            return self.fail();
        }
        let name = self.ident()?;
        self.expect(Kw::FROM)?;
        let from = self.nested(|p| p.bit_expr(0))?;
        self.expect(Kw::TO)?;
        let to = self.nested(|p| p.bit_expr(0))?;
        Ok(Some(Box::new(Portion { name, from, to })))
    }

    /// `BEFORE SYSTEM_TIME x`.
    fn opt_before(&mut self) -> PResult<Option<SystemPoint>> {
        if !self.at2(Kw::BEFORE, Kw::SYSTEM_TIME) {
            return Ok(None);
        }
        self.bump();
        self.bump();
        self.system_point().map(Some)
    }

    /// `[db.]t[.*]`.
    fn name_opt_wild(&mut self) -> PResult<(ObjectName, bool)> {
        let first = self.ident()?;
        if !self.eat_tok(Tok::Dot) {
            return Ok((ObjectName { schema: None, name: first }, false));
        }
        if self.eat_tok(Tok::Star) {
            return Ok((ObjectName { schema: None, name: first }, true));
        }
        let name = ObjectName { schema: Some(first), name: self.ident()? };
        let wild = self.eat_tok(Tok::Dot);
        if wild {
            self.expect_tok(Tok::Star)?;
        }
        Ok((name, wild))
    }

    // --- LOAD

    /// After LOAD, at DATA or XML.
    pub(super) fn load_data(&mut self) -> PResult<Statement> {
        let xml = self.at(Kw::XML);
        self.bump();
        let priority = match self.eat_one_of(&[Kw::LOW_PRIORITY, Kw::CONCURRENT]) {
            Some(Kw::LOW_PRIORITY) => LoadPriority::Low,
            Some(_) => LoadPriority::Concurrent,
            None => LoadPriority::Normal,
        };
        self.eat(Kw::FROM);
        let local = self.eat(Kw::LOCAL);
        self.eat(Kw::FROM);
        let source = match self.eat_one_of(&[Kw::INFILE, Kw::URL, Kw::S3]) {
            Some(Kw::INFILE) => LoadSource::File,
            Some(Kw::URL) => LoadSource::Url,
            Some(_) => LoadSource::S3,
            None => return self.fail(),
        };
        let file = self.text()?;
        let mut load = Box::new(LoadData {
            xml,
            priority,
            local,
            source,
            file,
            file_count: None,
            in_primary_key_order: false,
            duplicates: LoadDuplicates::Error,
            table: ObjectName::default(),
            partitions: Vec::new(),
            charset: None,
            compression: None,
            rows_identified_by: None,
            format: FileFormat::default(),
            ignore_lines: 0,
            columns: Vec::new(),
            set: Vec::new(),
            parallel: None,
            memory: None,
            bulk: false,
        });
        if self.eat_name("COUNT") {
            load.file_count = Some(self.number()?);
        }
        if self.eat(Kw::IN) {
            self.expect_all(&[Kw::PRIMARY, Kw::KEY, Kw::ORDER])?;
            load.in_primary_key_order = true;
        }
        load.duplicates = self.opt_duplicates();
        self.expect_all(&[Kw::INTO, Kw::TABLE])?;
        load.table = self.object_name()?;
        load.partitions = self.opt_partition_list()?;
        load.charset = self.opt_charset_clause()?;
        self.load_tail(&mut load)?;
        Ok(Statement::LoadData(load))
    }

    pub(super) fn opt_duplicates(&mut self) -> LoadDuplicates {
        match self.eat_one_of(&[Kw::REPLACE, Kw::IGNORE]) {
            Some(Kw::REPLACE) => LoadDuplicates::Replace,
            Some(_) => LoadDuplicates::Ignore,
            None => LoadDuplicates::Error,
        }
    }

    fn load_tail(&mut self, load: &mut LoadData) -> PResult<()> {
        if self.eat(Kw::COMPRESSION) {
            self.opt_eq();
            load.compression = Some(self.text()?);
        }
        if load.xml && self.eat(Kw::ROWS) {
            self.expect_all(&[Kw::IDENTIFIED, Kw::BY])?;
            load.rows_identified_by = Some(self.text()?);
        }
        load.format = self.file_format()?;
        if self.eat(Kw::IGNORE) {
            load.ignore_lines = self.number()?;
            if self.eat_one_of(&[Kw::LINES, Kw::ROWS]).is_none() {
                return self.fail();
            }
        }
        if self.eat_tok(Tok::LParen) && !self.eat_tok(Tok::RParen) {
            load.columns = self.comma_list(|p| {
                if p.at_tok(Tok::UserVar) {
                    return Ok(LoadColumn::UserVar(p.user_var()?));
                }
                Ok(LoadColumn::Column(p.column_name()?))
            })?;
            self.expect_tok(Tok::RParen)?;
        }
        if self.eat(Kw::SET) {
            load.set = self.assignments()?;
        }
        if self.eat(Kw::PARALLEL) {
            self.opt_eq();
            load.parallel = Some(self.number()?);
        }
        if self.eat(Kw::MEMORY) {
            self.opt_eq();
            load.memory = Some(self.size_number()?);
        }
        if self.eat(Kw::ALGORITHM) {
            self.opt_eq();
            self.expect(Kw::BULK)?;
            load.bulk = true;
        }
        Ok(())
    }

    /// `FIELDS ..`, `LINES ..`.
    pub(super) fn file_format(&mut self) -> PResult<FileFormat> {
        let mut format = FileFormat::default();
        if self.eat(Kw::COLUMNS) || self.eat(Kw::FIELDS) {
            let mut any = false;
            loop {
                match self.kw() {
                    Kw::TERMINATED => format.fields_terminated_by = Some(self.by_string()?),
                    Kw::OPTIONALLY => {
                        self.bump();
                        format.fields_optionally_enclosed = true;
                        if !self.at(Kw::ENCLOSED) {
                            return self.fail();
                        }
                        format.fields_enclosed_by = Some(self.by_string()?);
                    }
                    Kw::ENCLOSED => format.fields_enclosed_by = Some(self.by_string()?),
                    Kw::ESCAPED => format.fields_escaped_by = Some(self.by_string()?),
                    _ if any => break,
                    _ => return self.fail(),
                }
                any = true;
            }
        }
        if self.eat(Kw::LINES) {
            let mut any = false;
            loop {
                match self.kw() {
                    Kw::TERMINATED => format.lines_terminated_by = Some(self.by_string()?),
                    Kw::STARTING => format.lines_starting_by = Some(self.by_string()?),
                    _ if any => break,
                    _ => return self.fail(),
                }
                any = true;
            }
        }
        Ok(format)
    }

    /// `word BY 'x'`.
    fn by_string(&mut self) -> PResult<Box<[u8]>> {
        self.bump();
        self.expect(Kw::BY)?;
        self.bytes_or_hex()
    }

    // --- the rest

    pub(super) fn do_statement(&mut self) -> PResult<Statement> {
        self.bump();
        Ok(Statement::Do(self.comma_list(Self::select_item)?))
    }

    pub(super) fn call(&mut self) -> PResult<Statement> {
        self.bump();
        let name = self.object_name()?;
        let mut args = Vec::new();
        if self.eat_tok(Tok::LParen) && !self.eat_tok(Tok::RParen) {
            args = self.expr_list()?;
            self.expect_tok(Tok::RParen)?;
        }
        Ok(Statement::Call(Box::new(Call { name, args })))
    }

    pub(super) fn handler(&mut self) -> PResult<Statement> {
        self.bump();
        let table = self.object_name()?;
        let words: &[Kw] = &[Kw::OPEN, Kw::CLOSE, Kw::READ];
        let words = if table.schema.is_some() { &words[..1] } else { words };
        let action = match self.eat_one_of(words) {
            Some(Kw::OPEN) => HandlerAction::Open { alias: self.opt_table_alias()? },
            Some(Kw::CLOSE) => HandlerAction::Close,
            Some(_) => self.handler_read()?,
            None => return self.fail(),
        };
        Ok(Statement::Handler(Box::new(Handler { table, action })))
    }

    fn handler_read(&mut self) -> PResult<HandlerAction> {
        let mut index = None;
        let scan = matches!(self.kw(), Kw::FIRST | Kw::NEXT)
            && !matches!(self.peek().kw, Kw::FIRST | Kw::NEXT | Kw::PREV | Kw::LAST)
            && !matches!(self.peek().kind, Tok::Eq | Tok::GtEq | Tok::LtEq | Tok::Gt | Tok::Lt);
        if !scan {
            index = Some(self.index_name()?);
        }
        let step = match self.kw() {
            Kw::FIRST => Some(HandlerStep::First),
            Kw::NEXT => Some(HandlerStep::Next),
            Kw::PREV if !scan => Some(HandlerStep::Prev),
            Kw::LAST if !scan => Some(HandlerStep::Last),
            _ => None,
        };
        let step = match step {
            Some(step) => {
                self.bump();
                step
            }
            None => {
                let op = match self.tok() {
                    Tok::Eq => HandlerKeyOp::Eq,
                    Tok::GtEq => HandlerKeyOp::GtEq,
                    Tok::LtEq => HandlerKeyOp::LtEq,
                    Tok::Gt => HandlerKeyOp::Gt,
                    Tok::Lt => HandlerKeyOp::Lt,
                    _ => return self.fail(),
                };
                self.bump();
                let values = self.paren_list(Self::expr_or_default)?;
                HandlerStep::Key { op, values }
            }
        };
        let filter = self.opt_where()?;
        let limit = self.opt_limit()?;
        Ok(HandlerAction::Read { index, step, filter, limit })
    }

    /// A number followed by K, M, G or T, as an identifier token allows it.
    pub(super) fn size_number(&mut self) -> PResult<u64> {
        if self.tok() != Tok::Word {
            return self.number();
        }
        let raw = self.text_of(self.cur.tok);
        let digits = raw.iter().take_while(|b| b.is_ascii_digit()).count();
        let shift = match raw.get(digits..) {
            Some(b"k" | b"K") => 10,
            Some(b"m" | b"M") => 20,
            Some(b"g" | b"G") => 30,
            Some(b"t" | b"T") => 40,
            _ => return self.fail(),
        };
        let value = super::parse_u64(&raw[..digits]).filter(|_| digits > 0);
        match value.and_then(|v| v.checked_mul(1 << shift)) {
            Some(value) => {
                self.bump();
                Ok(value)
            }
            None => self.fail(),
        }
    }
}

/// The table of DELETE HISTORY FROM t. A table may be called history: then its rows are deleted.
fn history_of(tables: &[ObjectName], from: &[TableFactor]) -> Option<Box<NamedTable>> {
    let ([ObjectName { schema: None, name }], [TableFactor::Table(table)]) = (tables, from) else {
        return None;
    };
    let is_history = |name: &Ident| name.text.eq_ignore_ascii_case("history");
    let known = table.alias.as_ref().unwrap_or(&table.name.name);
    (is_history(name) && !is_history(known)).then(|| table.clone())
}
