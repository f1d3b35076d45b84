//! Stored programs: routines, triggers, events, blocks and flow control.

use super::ddl::Prefix;
use super::{PResult, Parser};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::Tok;

impl<'a> Parser<'a> {
    // --- routines

    /// At PROCEDURE, FUNCTION or AGGREGATE.
    pub(super) fn create_routine(&mut self, prefix: Prefix) -> PResult<Statement> {
        let aggregate = self.eat(Kw::AGGREGATE);
        let kind = match self.kw() {
            Kw::PROCEDURE if !aggregate => RoutineKind::Procedure,
            Kw::FUNCTION => RoutineKind::Function,
            _ => return self.fail(),
        };
        self.bump();
        let if_not_exists = self.if_not_exists()?;
        let flags = CreateFlags { or_replace: prefix.or_replace, if_not_exists };
        let name = self.object_name()?;
        if kind == RoutineKind::Function && self.at(Kw::RETURNS) {
            return self.loadable_function(aggregate, flags, name);
        }
        self.expect_tok(Tok::LParen)?;
        let params_start = self.start();
        let mut params = Vec::new();
        if !self.at_tok(Tok::RParen) {
            params = self.comma_list(|p| p.routine_param(kind))?;
        }
        let params_span =
            if params.is_empty() { Span::default() } else { self.span_from(params_start) };
        self.expect_tok(Tok::RParen)?;
        let mut returns = None;
        if kind == RoutineKind::Function {
            self.expect(Kw::RETURNS)?;
            returns = Some(self.data_type_collate()?);
        }
        let options = self.routine_options(true)?;
        if self.program.is_some() {
            // A program inside another: its own body is parsed, and refused afterwards.
            self.program = None;
        }
        self.begin_program(Some(kind), &params)?;
        let body = self.routine_body(&options)?;
        let scope = self.program.take().unwrap_or_default();
        let (variables, cursors) = scope.counts();
        Ok(Statement::CreateRoutine(Box::new(CreateRoutine {
            kind,
            flags,
            aggregate,
            definer: prefix.definer,
            name,
            params,
            params_span,
            returns,
            options,
            body,
            variables,
            cursors,
            has_return: scope.returns(),
        })))
    }

    fn loadable_function(
        &mut self,
        aggregate: bool,
        flags: CreateFlags,
        name: ObjectName,
    ) -> PResult<Statement> {
        self.bump();
        if !matches!(
            self.kw(),
            Kw::STRING | Kw::INTEGER | Kw::INT | Kw::REAL | Kw::DECIMAL | Kw::DEC
        ) {
            return self.fail();
        }
        let returns = self.any_word()?;
        self.expect(Kw::SONAME)?;
        let soname = self.text()?;
        let create = CreateLoadableFunction { aggregate, flags, name, returns, soname };
        Ok(Statement::CreateLoadableFunction(Box::new(create)))
    }

    fn routine_param(&mut self, kind: RoutineKind) -> PResult<RoutineParam> {
        let mut mode = None;
        if kind == RoutineKind::Procedure {
            mode = self.eat_one_of(&[Kw::IN, Kw::OUT, Kw::INOUT]).map(|word| match word {
                Kw::IN => ParamMode::In,
                Kw::OUT => ParamMode::Out,
                _ => ParamMode::InOut,
            });
        }
        let name = self.ident()?;
        Ok(RoutineParam { mode, name, data_type: self.data_type_collate()? })
    }

    fn routine_options(&mut self, create: bool) -> PResult<RoutineOptions> {
        let mut options = RoutineOptions::default();
        loop {
            match self.kw() {
                Kw::COMMENT => {
                    self.bump();
                    options.comment = Some(self.text()?);
                }
                Kw::LANGUAGE => {
                    self.bump();
                    options.language = Some(self.any_word()?);
                }
                Kw::NOT if create && self.peek_kw() == Kw::DETERMINISTIC => {
                    self.bump();
                    self.bump();
                    options.deterministic = Some(false);
                }
                Kw::DETERMINISTIC if create => {
                    self.bump();
                    options.deterministic = Some(true);
                }
                Kw::CONTAINS | Kw::NO => {
                    let contains = self.at(Kw::CONTAINS);
                    self.bump();
                    self.expect(Kw::SQL)?;
                    options.data_access =
                        Some(if contains { DataAccess::ContainsSql } else { DataAccess::NoSql });
                }
                Kw::READS | Kw::MODIFIES => {
                    let reads = self.at(Kw::READS);
                    self.bump();
                    self.expect_all(&[Kw::SQL, Kw::DATA])?;
                    options.data_access = Some(if reads {
                        DataAccess::ReadsSqlData
                    } else {
                        DataAccess::ModifiesSqlData
                    });
                }
                Kw::SQL => {
                    self.bump();
                    self.expect(Kw::SECURITY)?;
                    options.security = Some(self.sql_security()?);
                }
                Kw::USING if options.libraries.is_none() => {
                    self.bump();
                    options.libraries = Some(self.used_libraries(create)?);
                }
                _ => return Ok(options),
            }
        }
    }

    /// `(library [AS alias], ..)`; ALTER takes an empty list.
    fn used_libraries(&mut self, create: bool) -> PResult<Vec<(ObjectName, Option<Ident>)>> {
        if !create && self.at_tok(Tok::LParen) && self.peek().kind == Tok::RParen {
            self.bump();
            self.bump();
            return Ok(Vec::new());
        }
        self.paren_list(|p| {
            let name = p.object_name()?;
            let named = p.eat(Kw::AS) || p.at_ident();
            Ok((name, if named { Some(p.ident()?) } else { None }))
        })
    }

    fn routine_body(&mut self, options: &RoutineOptions) -> PResult<Body> {
        let external = options.language.as_ref().is_some_and(|l| !l.is("SQL"));
        if !external && !self.at(Kw::AS) {
            return self.body();
        }
        let start = self.start();
        self.expect(Kw::AS)?;
        let text = self.source_text()?;
        Ok(Body { span: self.span_from(start), kind: BodyKind::External(text) })
    }

    /// A string, a dollar-quoted text, or a hexadecimal literal as `0x` and its digits.
    fn source_text(&mut self) -> PResult<Box<str>> {
        let token = self.cur.tok;
        if matches!(token.kind, Tok::HexNum | Tok::HexStr) {
            let raw = self.text_of(token);
            let digits = raw[2..].strip_suffix(b"'").unwrap_or(&raw[2..]);
            let text = format!("0x{}", String::from_utf8_lossy(digits));
            self.bump();
            return Ok(text.into());
        }
        if !matches!(token.kind, Tok::Str | Tok::DollarStr) {
            return self.fail();
        }
        let mut out = Vec::new();
        self.raw_string(&mut out)?;
        self.utf8(&out, token)
    }

    /// One statement as the body of a stored program.
    fn body(&mut self) -> PResult<Body> {
        let start = self.start();
        let outer = std::mem::replace(&mut self.in_program, true);
        let is_own = self.program.is_none();
        if is_own {
            self.begin_program(None, &[])?;
        }
        let statement = self.program_statement()?;
        if is_own {
            self.program = None;
        }
        self.in_program = outer;
        Ok(Body { span: self.span_from(start), kind: BodyKind::Sql(Box::new(statement.statement)) })
    }

    pub(super) fn alter_routine(&mut self) -> PResult<Statement> {
        let kind =
            if self.at(Kw::PROCEDURE) { RoutineKind::Procedure } else { RoutineKind::Function };
        self.bump();
        let name = self.object_name()?;
        let options = self.routine_options(false)?;
        Ok(Statement::AlterRoutine(Box::new(AlterRoutine { kind, name, options })))
    }

    pub(super) fn create_library(&mut self, or_replace: bool) -> PResult<Statement> {
        self.bump();
        let if_not_exists = self.if_not_exists()?;
        let flags = CreateFlags { or_replace, if_not_exists };
        let name = self.object_name()?;
        let mut comment = None;
        let mut language = None;
        loop {
            if self.eat(Kw::LANGUAGE) {
                language = Some(self.any_word()?);
            } else if self.eat(Kw::COMMENT) {
                comment = Some(self.text()?);
            } else {
                break;
            }
        }
        let Some(language) = language else { return self.fail() };
        self.expect(Kw::AS)?;
        let source = self.source_text()?;
        let create = CreateLibrary { flags, name, comment, language, source };
        Ok(Statement::CreateLibrary(Box::new(create)))
    }

    // --- triggers, events

    pub(super) fn create_trigger(&mut self, prefix: Prefix) -> PResult<Statement> {
        self.bump();
        let if_not_exists = self.if_not_exists()?;
        let flags = CreateFlags { or_replace: prefix.or_replace, if_not_exists };
        let name = self.object_name()?;
        let before = match self.eat_one_of(&[Kw::BEFORE, Kw::AFTER]) {
            Some(word) => word == Kw::BEFORE,
            None => return self.fail(),
        };
        let event = match self.eat_one_of(&[Kw::INSERT, Kw::UPDATE, Kw::DELETE]) {
            Some(Kw::INSERT) => TriggerEvent::Insert,
            Some(Kw::UPDATE) => TriggerEvent::Update,
            Some(_) => TriggerEvent::Delete,
            None => return self.fail(),
        };
        self.expect(Kw::ON)?;
        let table = self.object_name()?;
        self.expect_all(&[Kw::FOR, Kw::EACH, Kw::ROW])?;
        let mut order = None;
        if let Some(word) = self.eat_one_of(&[Kw::FOLLOWS, Kw::PRECEDES]) {
            order = Some((word == Kw::FOLLOWS, self.ident_or_text()?));
        }
        self.begin_trigger(before, event);
        let body = self.body()?;
        let mut scope = self.program.take().unwrap_or_default();
        let (variables, cursors) = scope.counts();
        Ok(Statement::CreateTrigger(Box::new(CreateTrigger {
            flags,
            definer: prefix.definer,
            name,
            before,
            event,
            table,
            order,
            body,
            variables,
            cursors,
            row_columns: scope.take_row_columns(),
        })))
    }

    pub(super) fn create_event(&mut self, prefix: Prefix) -> PResult<Statement> {
        self.bump();
        let if_not_exists = self.if_not_exists()?;
        let flags = CreateFlags { or_replace: prefix.or_replace, if_not_exists };
        let name = self.object_name()?;
        self.expect_all(&[Kw::ON, Kw::SCHEDULE])?;
        let schedule = self.schedule()?;
        let preserve = self.opt_preserve()?;
        let status = self.opt_event_status()?;
        let comment = if self.eat(Kw::COMMENT) { Some(self.text()?) } else { None };
        self.expect(Kw::DO)?;
        let body = self.event_body()?;
        let definer = prefix.definer;
        let event = CreateEvent { flags, definer, name, schedule, preserve, status, comment, body };
        Ok(Statement::CreateEvent(Box::new(event)))
    }

    pub(super) fn alter_event(&mut self, prefix: Prefix) -> PResult<Statement> {
        self.bump();
        let mut event = AlterEvent {
            definer: prefix.definer,
            name: self.object_name()?,
            schedule: None,
            preserve: None,
            rename: None,
            status: None,
            comment: None,
            body: None,
        };
        let start = self.start();
        if self.eat2(Kw::ON, Kw::SCHEDULE) {
            event.schedule = Some(self.schedule()?);
        }
        event.preserve = self.opt_preserve()?;
        if self.eat(Kw::RENAME) {
            self.expect(Kw::TO)?;
            event.rename = Some(self.object_name()?);
        }
        event.status = self.opt_event_status()?;
        if self.eat(Kw::COMMENT) {
            event.comment = Some(self.text()?);
        }
        if self.eat(Kw::DO) {
            event.body = Some(self.event_body()?);
        }
        if self.start() == start {
            return self.fail();
        }
        Ok(Statement::AlterEvent(Box::new(event)))
    }

    /// A body that an event must not have.
    fn event_body(&mut self) -> PResult<Body> {
        if self.in_program {
            let text = "Recursion of EVENT DDL statements is forbidden when body is present";
            return self.fail_other(1576, text);
        }
        self.body()
    }

    fn schedule(&mut self) -> PResult<Schedule> {
        if self.eat(Kw::AT) {
            return Ok(Schedule::At(self.expr()?));
        }
        self.expect(Kw::EVERY)?;
        let amount = self.expr()?;
        let unit = self.interval_unit()?;
        let starts = if self.eat(Kw::STARTS) { Some(self.expr()?) } else { None };
        let ends = if self.eat(Kw::ENDS) { Some(self.expr()?) } else { None };
        Ok(Schedule::Every { amount, unit, starts, ends })
    }

    fn opt_preserve(&mut self) -> PResult<Option<bool>> {
        if !self.eat2(Kw::ON, Kw::COMPLETION) {
            return Ok(None);
        }
        let preserve = !self.eat(Kw::NOT);
        self.expect(Kw::PRESERVE)?;
        Ok(Some(preserve))
    }

    fn opt_event_status(&mut self) -> PResult<Option<EventStatus>> {
        if self.eat(Kw::ENABLE) {
            return Ok(Some(EventStatus::Enable));
        }
        if !self.eat(Kw::DISABLE) {
            return Ok(None);
        }
        if self.eat(Kw::ON) {
            return match self.eat_one_of(&[Kw::REPLICA, Kw::SLAVE]) {
                Some(_) => Ok(Some(EventStatus::DisableOnReplica)),
                None => self.fail(),
            };
        }
        Ok(Some(EventStatus::Disable))
    }

    // --- statements of programs

    /// A statement of a stored program, without its `;`.
    fn program_statement(&mut self) -> PResult<ProgramStatement> {
        let start = self.start();
        let statement = self.nested(|p| p.program_statement_body())?;
        Ok(ProgramStatement { statement, span: self.span_from(start) })
    }

    fn program_statement_body(&mut self) -> PResult<Statement> {
        let mut label = None;
        if self.at_ident() && self.peek().kind == Tok::Colon {
            label = Some(self.ident()?);
            self.bump();
        }
        let kw = self.kw();
        let program = match kw {
            Kw::BEGIN => {
                self.bump();
                Program::Block(self.block(label)?)
            }
            Kw::LOOP => self.loop_statement(label)?,
            Kw::WHILE => self.while_statement(label)?,
            Kw::REPEAT => self.repeat_statement(label)?,
            _ if label.is_some() => return self.fail(),
            Kw::IF => self.if_statement()?,
            Kw::CASE => self.case_statement()?,
            Kw::LEAVE => {
                self.bump();
                Program::Leave(self.used_label(false)?)
            }
            Kw::ITERATE => {
                self.bump();
                Program::Iterate(self.used_label(true)?)
            }
            Kw::RETURN => {
                self.bump();
                let value = self.expr()?;
                self.note_return()?;
                Program::Return(value)
            }
            Kw::OPEN => {
                self.bump();
                Program::Open(self.used_cursor()?)
            }
            Kw::CLOSE => {
                self.bump();
                Program::Close(self.used_cursor()?)
            }
            Kw::FETCH => self.fetch_statement()?,
            _ => {
                let statement = self.statement()?;
                self.check_in_program(&statement)?;
                return Ok(statement);
            }
        };
        Ok(Statement::Program(Box::new(program)))
    }

    fn loop_statement(&mut self, label: Option<Ident>) -> PResult<Program> {
        self.bump();
        let body = self.loop_body(&label, Kw::END)?;
        self.expect_all(&[Kw::END, Kw::LOOP])?;
        self.end_label(&label)?;
        Ok(Program::Loop { label, body })
    }

    fn while_statement(&mut self, label: Option<Ident>) -> PResult<Program> {
        self.bump();
        let condition = self.expr()?;
        self.expect(Kw::DO)?;
        let body = self.loop_body(&label, Kw::END)?;
        self.expect_all(&[Kw::END, Kw::WHILE])?;
        self.end_label(&label)?;
        Ok(Program::While { label, condition, body })
    }

    fn repeat_statement(&mut self, label: Option<Ident>) -> PResult<Program> {
        self.bump();
        let body = self.loop_body(&label, Kw::UNTIL)?;
        self.expect(Kw::UNTIL)?;
        let until = self.expr()?;
        self.expect_all(&[Kw::END, Kw::REPEAT])?;
        self.end_label(&label)?;
        Ok(Program::Repeat { label, body, until })
    }

    /// Statements up to the word `until`, in which `label` can be iterated and left.
    fn loop_body(&mut self, label: &Option<Ident>, until: Kw) -> PResult<Vec<ProgramStatement>> {
        self.enter_label(label.as_ref(), true)?;
        let body = self.statements(&[until])?;
        self.leave_label(label.as_ref());
        Ok(body)
    }

    fn fetch_statement(&mut self) -> PResult<Program> {
        self.bump();
        if self.eat(Kw::NEXT) {
            self.expect(Kw::FROM)?;
        } else {
            self.eat(Kw::FROM);
        }
        let cursor = self.used_cursor()?;
        self.expect(Kw::INTO)?;
        let into = self.comma_list(|p| {
            let name = p.ident()?;
            p.assigned_variable(name)
        })?;
        Ok(Program::Fetch { cursor, into })
    }

    /// `statement; statement; ..` up to one of the words `until`; at least one.
    fn statements(&mut self, until: &[Kw]) -> PResult<Vec<ProgramStatement>> {
        let mut statements = Vec::new();
        while statements.is_empty() || !until.contains(&self.kw()) {
            statements.push(self.program_statement()?);
            self.expect_tok(Tok::Semi)?;
        }
        Ok(statements)
    }

    fn end_label(&mut self, label: &Option<Ident>) -> PResult<()> {
        if !self.at_ident() {
            return Ok(());
        }
        let end = self.ident()?;
        match label {
            Some(label) if label.is(&end.text) => Ok(()),
            _ => self.fail_other(1310, format!("End-label {} without match", end.text)),
        }
    }

    fn block(&mut self, label: Option<Ident>) -> PResult<Block> {
        if self.eat(Kw::NOT) {
            self.expect_name("ATOMIC")?;
        }
        self.enter_label(label.as_ref(), false)?;
        self.enter_block();
        let mut block = Block { label, declarations: Vec::new(), body: Vec::new() };
        while self.at(Kw::DECLARE) {
            let declaration = self.declaration()?;
            block.declarations.push(declaration);
            self.expect_tok(Tok::Semi)?;
        }
        while !self.at(Kw::END) {
            let statement = self.program_statement()?;
            block.body.push(statement);
            self.expect_tok(Tok::Semi)?;
        }
        self.bump();
        self.leave_block();
        self.leave_label(block.label.as_ref());
        self.end_label(&block.label)?;
        Ok(block)
    }

    fn expect_name(&mut self, word: &str) -> PResult<()> {
        if self.eat_name(word) { Ok(()) } else { self.fail() }
    }

    fn declaration(&mut self) -> PResult<Declaration> {
        self.bump();
        let handler = match self.kw() {
            Kw::CONTINUE => Some(HandlerKind::Continue),
            Kw::EXIT => Some(HandlerKind::Exit),
            Kw::UNDO => Some(HandlerKind::Undo),
            _ => None,
        };
        if let Some(action) = handler {
            self.bump();
            self.expect_all(&[Kw::HANDLER, Kw::FOR])?;
            let conditions = self.comma_list(Self::condition_value)?;
            let outer = self.enter_handler(&conditions)?;
            let body = std::sync::Arc::new(self.program_statement()?);
            self.leave_handler(outer);
            return Ok(Declaration::Handler { action, conditions, body });
        }
        let first = self.ident()?;
        if self.eat(Kw::CONDITION) {
            self.expect(Kw::FOR)?;
            let value = self.condition_value()?;
            self.declare_condition(&first, &value)?;
            return Ok(Declaration::Condition { name: first, value });
        }
        if self.eat(Kw::CURSOR) {
            self.expect(Kw::FOR)?;
            let start = self.start();
            let query = self.query()?;
            if query.into.is_some() {
                return self.fail_other(1323, "Cursor SELECT must not have INTO");
            }
            let span = self.span_from(start);
            let slot = self.declare_cursor(&first)?;
            let query = std::sync::Arc::new(Statement::Query(query));
            return Ok(Declaration::Cursor { name: first, query, slot, span });
        }
        let mut names = vec![first];
        while self.eat_tok(Tok::Comma) {
            names.push(self.ident()?);
        }
        self.check_declared_early()?;
        let data_type = self.data_type_collate()?;
        let default = if self.eat(Kw::DEFAULT) { Some(self.expr()?) } else { None };
        let first_slot = self.declare_variables(&names)?;
        self.note_type(first_slot, names.len() as u32, &data_type);
        Ok(Declaration::Variables { names, first_slot, data_type, default })
    }

    pub(super) fn condition_value(&mut self) -> PResult<ConditionValue> {
        match self.kw() {
            Kw::SQLSTATE => {
                self.bump();
                self.eat(Kw::VALUE);
                let state = self.text()?;
                let is_state = state.len() == 5
                    && state.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
                if !is_state || state.starts_with("00") {
                    return self.fail_other(1407, format!("Bad SQLSTATE: '{state}'"));
                }
                Ok(ConditionValue::SqlState(state))
            }
            Kw::SQLWARNING => {
                self.bump();
                Ok(ConditionValue::SqlWarning)
            }
            Kw::SQLEXCEPTION => {
                self.bump();
                Ok(ConditionValue::SqlException)
            }
            Kw::NOT => {
                self.bump();
                self.expect(Kw::FOUND)?;
                Ok(ConditionValue::NotFound)
            }
            _ if self.at_tok(Tok::Int) => Ok(ConditionValue::ErrorCode(self.number()?)),
            _ => {
                let name = self.ident()?;
                self.used_condition(name)
            }
        }
    }

    fn if_statement(&mut self) -> PResult<Program> {
        const UNTIL: &[Kw] = &[Kw::ELSEIF, Kw::ELSE, Kw::END];
        self.bump();
        let mut branches = Vec::new();
        loop {
            let condition = self.expr()?;
            self.expect(Kw::THEN)?;
            branches.push((condition, self.statements(UNTIL)?));
            if !self.eat(Kw::ELSEIF) {
                break;
            }
        }
        let otherwise = if self.eat(Kw::ELSE) { Some(self.statements(&[Kw::END])?) } else { None };
        self.expect_all(&[Kw::END, Kw::IF])?;
        Ok(Program::If { branches, otherwise })
    }

    fn case_statement(&mut self) -> PResult<Program> {
        const UNTIL: &[Kw] = &[Kw::WHEN, Kw::ELSE, Kw::END];
        self.bump();
        let operand = if self.at(Kw::WHEN) { None } else { Some(self.expr()?) };
        let mut whens = Vec::new();
        while self.eat(Kw::WHEN) {
            let when = self.expr()?;
            self.expect(Kw::THEN)?;
            whens.push((when, self.statements(UNTIL)?));
        }
        if whens.is_empty() {
            return self.fail();
        }
        let otherwise = if self.eat(Kw::ELSE) { Some(self.statements(&[Kw::END])?) } else { None };
        self.expect_all(&[Kw::END, Kw::CASE])?;
        Ok(Program::Case { operand, whens, otherwise })
    }

    // --- conditions and diagnostics

    pub(super) fn signal(&mut self) -> PResult<Statement> {
        let resignal = self.at(Kw::RESIGNAL);
        self.bump();
        let bare = matches!(self.tok(), Tok::Eof | Tok::Semi) || self.at(Kw::SET);
        let condition = if resignal && bare {
            None
        } else if self.at(Kw::SQLSTATE) || self.at_ident() {
            let condition = self.condition_value()?;
            if matches!(condition, ConditionValue::ErrorCode(_)) {
                let message = "SIGNAL/RESIGNAL can only use a CONDITION defined with SQLSTATE";
                return self.fail_other(1646, message);
            }
            Some(condition)
        } else {
            return self.fail();
        };
        let mut items = Vec::new();
        if self.eat(Kw::SET) {
            items = self.comma_list(|p| {
                let name = p.condition_item()?;
                p.expect_tok(Tok::Eq)?;
                Ok((name, p.simple_value()?))
            })?;
        }
        let is_again = |(at, (name, _)): &(usize, &(Ident, Expr))| {
            items[..*at].iter().any(|(known, _)| known.text.eq_ignore_ascii_case(&name.text))
        };
        if let Some((_, (name, _))) = items.iter().enumerate().find(is_again) {
            let item = name.text.to_ascii_uppercase();
            let message = format!("Duplicate condition information item '{item}'");
            return self.fail_other(1641, message);
        }
        Ok(Statement::Signal(Box::new(Signal { resignal, condition, items })))
    }

    /// An item of a condition that SIGNAL may set.
    fn condition_item(&mut self) -> PResult<Ident> {
        if matches!(
            self.kw(),
            Kw::CLASS_ORIGIN
                | Kw::SUBCLASS_ORIGIN
                | Kw::CONSTRAINT_CATALOG
                | Kw::CONSTRAINT_SCHEMA
                | Kw::CONSTRAINT_NAME
                | Kw::CATALOG_NAME
                | Kw::SCHEMA_NAME
                | Kw::TABLE_NAME
                | Kw::COLUMN_NAME
                | Kw::CURSOR_NAME
                | Kw::MESSAGE_TEXT
                | Kw::MYSQL_ERRNO
        ) {
            return self.any_word();
        }
        self.fail()
    }

    /// An item that GET DIAGNOSTICS reads: of a condition, or of the whole statement.
    fn diagnostics_item(&mut self, of_condition: bool) -> PResult<Ident> {
        let is_known = match of_condition {
            true => self.at(Kw::RETURNED_SQLSTATE),
            false => self.at(Kw::NUMBER) || self.at(Kw::ROW_COUNT),
        };
        if is_known {
            return self.any_word();
        }
        if of_condition { self.condition_item() } else { self.fail() }
    }

    /// A number of a condition, a value of SIGNAL: a constant or a variable.
    fn simple_value(&mut self) -> PResult<Expr> {
        let at = self.cur.tok.start as usize;
        // A parameter of a prepared statement has no place here; those of the tree are local variables.
        if matches!(self.tok(), Tok::Param | Tok::LParen) {
            return self.fail();
        }
        let value = self.primary()?;
        let is_variable = |kind: &ExprKind| match kind {
            ExprKind::Column(name) => name.table.is_none(),
            kind => {
                matches!(kind, ExprKind::UserVar(_) | ExprKind::SystemVar(_) | ExprKind::Param(_))
            }
        };
        let is_simple = matches!(value.kind, ExprKind::Literal(_)) || is_variable(&value.kind);
        if is_simple { Ok(value) } else { self.fail_at(at) }
    }

    pub(super) fn get_diagnostics(&mut self) -> PResult<Statement> {
        self.bump();
        let stacked = match self.eat_one_of(&[Kw::CURRENT, Kw::STACKED]) {
            Some(word) => word == Kw::STACKED,
            None => false,
        };
        self.expect(Kw::DIAGNOSTICS)?;
        let condition = if self.eat(Kw::CONDITION) { Some(self.simple_value()?) } else { None };
        let items = self.comma_list(|p| {
            let target = if matches!(p.tok(), Tok::UserVar | Tok::At) {
                IntoVariable::User(p.user_var()?)
            } else {
                let name = p.ident()?;
                IntoVariable::Local(p.assigned_variable(name)?)
            };
            p.expect_tok(Tok::Eq)?;
            Ok((target, p.diagnostics_item(condition.is_some())?))
        })?;
        Ok(Statement::GetDiagnostics(Box::new(GetDiagnostics { stacked, condition, items })))
    }
}
