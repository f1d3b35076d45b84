//! SHOW, DESCRIBE and EXPLAIN.

use super::{PResult, Parser};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::Tok;

impl<'a> Parser<'a> {
    pub(super) fn show(&mut self) -> PResult<Statement> {
        self.bump();
        let (kind, filtered) = self.show_kind()?;
        let filter = if filtered { self.show_filter()? } else { None };
        Ok(Statement::Show(Box::new(Show { kind, filter })))
    }

    fn show_filter(&mut self) -> PResult<Option<ShowFilter>> {
        if self.eat(Kw::LIKE) {
            return Ok(Some(ShowFilter::Like(self.bytes()?)));
        }
        if self.eat(Kw::WHERE) {
            return Ok(Some(ShowFilter::Where(self.boxed_expr()?)));
        }
        Ok(None)
    }

    fn opt_schema(&mut self) -> PResult<Option<Ident>> {
        match self.eat_one_of(&[Kw::FROM, Kw::IN]) {
            Some(_) => Ok(Some(self.ident()?)),
            None => Ok(None),
        }
    }

    /// `{FROM|IN} [db.]table [{FROM|IN} db]`.
    fn show_table(&mut self) -> PResult<ObjectName> {
        if self.eat_one_of(&[Kw::FROM, Kw::IN]).is_none() {
            return self.fail();
        }
        let mut table = self.object_name()?;
        if let Some(schema) = self.opt_schema()? {
            table.schema = Some(schema);
        }
        Ok(table)
    }

    pub(super) fn opt_channel(&mut self) -> PResult<Option<Box<str>>> {
        if !self.at2(Kw::FOR, Kw::CHANNEL) {
            return Ok(None);
        }
        self.bump();
        self.bump();
        Ok(Some(self.ident_or_text()?.text))
    }

    /// The kind of SHOW, and whether LIKE and WHERE may follow.
    fn show_kind(&mut self) -> PResult<(ShowKind, bool)> {
        let full = self.at(Kw::FULL);
        let extended = self.at(Kw::EXTENDED);
        if full || extended {
            return self.show_full(full, extended);
        }
        if self.eat_name("CLUSTER") {
            self.expect(Kw::STATUS)?;
            return Ok((ShowKind::ClusterStatus, true));
        }
        let kw = self.kw();
        match kw {
            Kw::TABLES
            | Kw::COLUMNS
            | Kw::FIELDS
            | Kw::TRIGGERS
            | Kw::PROCESSLIST
            | Kw::INDEX
            | Kw::INDEXES
            | Kw::KEYS => return self.show_full(false, false),
            Kw::CREATE => {
                self.bump();
                return Ok((self.show_create()?, false));
            }
            Kw::GLOBAL | Kw::SESSION | Kw::LOCAL => {
                self.bump();
                let scope = if kw == Kw::GLOBAL { VarScope::Global } else { VarScope::Session };
                return match self.eat_one_of(&[Kw::STATUS, Kw::VARIABLES]) {
                    Some(Kw::STATUS) => Ok((ShowKind::Status(scope), true)),
                    Some(_) => Ok((ShowKind::Variables(scope), true)),
                    None => self.fail(),
                };
            }
            _ => {}
        }
        self.bump();
        let plain = match kw {
            Kw::DATABASES | Kw::SCHEMAS => ShowKind::Databases,
            Kw::COLLATION => ShowKind::Collation,
            Kw::CHARSET => ShowKind::CharacterSet,
            Kw::CHARACTER | Kw::CHAR => {
                self.expect(Kw::SET)?;
                ShowKind::CharacterSet
            }
            Kw::STATUS => ShowKind::Status(VarScope::Session),
            Kw::VARIABLES => ShowKind::Variables(VarScope::Session),
            Kw::TABLE => {
                self.expect(Kw::STATUS)?;
                ShowKind::TableStatus(self.opt_schema()?)
            }
            Kw::OPEN => {
                self.expect(Kw::TABLES)?;
                ShowKind::OpenTables(self.opt_schema()?)
            }
            Kw::EVENTS => ShowKind::Events(self.opt_schema()?),
            Kw::FUNCTION | Kw::PROCEDURE | Kw::LIBRARY => return self.show_routines(kw),
            _ => return Ok((self.show_plain(kw)?, false)),
        };
        Ok((plain, true))
    }

    /// Code of one routine, or the status of all of a kind.
    fn show_routines(&mut self, kw: Kw) -> PResult<(ShowKind, bool)> {
        if kw != Kw::LIBRARY && self.eat(Kw::CODE) {
            let name = self.object_name()?;
            return Ok((
                if kw == Kw::FUNCTION {
                    ShowKind::FunctionCode(name)
                } else {
                    ShowKind::ProcedureCode(name)
                },
                false,
            ));
        }
        self.expect(Kw::STATUS)?;
        let kind = match kw {
            Kw::FUNCTION => ShowKind::FunctionStatus,
            Kw::PROCEDURE => ShowKind::ProcedureStatus,
            _ => ShowKind::LibraryStatus,
        };
        Ok((kind, true))
    }

    /// `[EXTENDED] [FULL] ..`.
    fn show_full(&mut self, mut full: bool, extended: bool) -> PResult<(ShowKind, bool)> {
        if full || extended {
            self.bump();
        }
        full |= extended && self.eat(Kw::FULL);
        let kw = self.kw();
        self.bump();
        match kw {
            Kw::TABLES => {
                let schema = self.opt_schema()?;
                Ok((ShowKind::Tables { full, extended, schema }, true))
            }
            Kw::COLUMNS | Kw::FIELDS => {
                let table = self.show_table()?;
                Ok((ShowKind::Columns { full, extended, table }, true))
            }
            Kw::TRIGGERS if !extended => {
                let schema = self.opt_schema()?;
                Ok((ShowKind::Triggers { full, schema }, true))
            }
            Kw::PROCESSLIST if !extended => Ok((ShowKind::Processlist { full }, false)),
            Kw::INDEX | Kw::INDEXES | Kw::KEYS if !full => {
                let table = self.show_table()?;
                let filter_follows = self.at(Kw::WHERE);
                Ok((ShowKind::Index { extended, table }, filter_follows))
            }
            _ => self.fail_prev(),
        }
    }

    fn show_create(&mut self) -> PResult<ShowKind> {
        let kw = self.kw();
        self.bump();
        Ok(match kw {
            Kw::DATABASE | Kw::SCHEMA => {
                let if_not_exists = self.if_not_exists()?;
                ShowKind::CreateDatabase { if_not_exists, name: self.ident()? }
            }
            Kw::TABLE => ShowKind::CreateTable(self.object_name()?),
            Kw::VIEW => ShowKind::CreateView(self.object_name()?),
            Kw::PROCEDURE => ShowKind::CreateProcedure(self.object_name()?),
            Kw::FUNCTION => ShowKind::CreateFunction(self.object_name()?),
            Kw::LIBRARY => ShowKind::CreateLibrary(self.object_name()?),
            Kw::TRIGGER => ShowKind::CreateTrigger(self.object_name()?),
            Kw::EVENT => ShowKind::CreateEvent(self.object_name()?),
            Kw::SEQUENCE => ShowKind::CreateSequence(self.object_name()?),
            Kw::USER => ShowKind::CreateUser(self.user_name()?),
            Kw::CHANGE => {
                self.expect(Kw::STREAM)?;
                ShowKind::CreateChangeStream(self.ident()?)
            }
            _ => return self.fail_prev(),
        })
    }

    /// After the first word of a SHOW without LIKE and WHERE.
    fn show_plain(&mut self, kw: Kw) -> PResult<ShowKind> {
        Ok(match kw {
            Kw::BINARY => {
                if self.eat(Kw::LOGS) {
                    return Ok(ShowKind::BinaryLogs);
                }
                self.expect_all(&[Kw::LOG, Kw::STATUS])?;
                ShowKind::BinaryLogStatus
            }
            Kw::BINLOG | Kw::RELAYLOG => {
                self.expect(Kw::EVENTS)?;
                let log = if self.eat(Kw::IN) { Some(self.text()?) } else { None };
                let from = if self.eat(Kw::FROM) { Some(self.number()?) } else { None };
                let limit = self.opt_limit()?;
                let relay = kw == Kw::RELAYLOG;
                let channel = self.opt_channel()?;
                ShowKind::BinlogEvents { log, from, limit, relay, channel }
            }
            Kw::ENGINES => ShowKind::Engines,
            Kw::STORAGE => {
                self.expect(Kw::ENGINES)?;
                ShowKind::Engines
            }
            Kw::ENGINE => self.show_engine()?,
            Kw::COUNT => {
                self.expect_tok(Tok::LParen)?;
                self.expect_tok(Tok::Star)?;
                self.expect_tok(Tok::RParen)?;
                match self.eat_one_of(&[Kw::WARNINGS, Kw::ERRORS]) {
                    Some(Kw::WARNINGS) => ShowKind::WarningCount,
                    Some(_) => ShowKind::ErrorCount,
                    None => return self.fail(),
                }
            }
            Kw::WARNINGS => ShowKind::Warnings(self.opt_limit()?),
            Kw::ERRORS => ShowKind::Errors(self.opt_limit()?),
            Kw::GRANTS => self.show_grants()?,
            Kw::PARSE_TREE => ShowKind::ParseTree(Box::new(self.nested(|p| p.statement())?)),
            Kw::PLUGINS => ShowKind::Plugins,
            Kw::PRIVILEGES => ShowKind::Privileges,
            Kw::PROFILES => ShowKind::Profiles,
            Kw::PROFILE => self.show_profile()?,
            Kw::REPLICAS => ShowKind::Replicas,
            Kw::CHANGE => match self.eat_name("STREAMS") {
                true => ShowKind::ChangeStreams,
                false => return self.fail(),
            },
            Kw::REPLICA => {
                self.expect(Kw::STATUS)?;
                ShowKind::ReplicaStatus { channel: self.opt_channel()? }
            }
            _ => return self.fail_prev(),
        })
    }

    fn show_engine(&mut self) -> PResult<ShowKind> {
        let all = self.eat(Kw::ALL);
        let name = if all { None } else { Some(self.ident_or_text()?) };
        let what = match self.eat_one_of(&[Kw::STATUS, Kw::MUTEX, Kw::LOGS]) {
            Some(Kw::STATUS) => EngineInfo::Status,
            Some(Kw::MUTEX) => EngineInfo::Mutex,
            Some(_) => EngineInfo::Logs,
            None => return self.fail(),
        };
        Ok(ShowKind::Engine { name, what })
    }

    fn show_grants(&mut self) -> PResult<ShowKind> {
        let mut user = None;
        let mut using = Vec::new();
        if self.eat(Kw::FOR) {
            user = Some(self.user_name()?);
            if self.eat(Kw::USING) {
                using = self.user_list()?;
            }
        }
        Ok(ShowKind::Grants { user, using })
    }

    fn show_profile(&mut self) -> PResult<ShowKind> {
        let mut types: Vec<Box<str>> = Vec::new();
        loop {
            let kw = self.kw();
            let name: &str = match kw {
                Kw::BLOCK | Kw::CONTEXT | Kw::PAGE => {
                    self.bump();
                    match (kw, self.kw()) {
                        (Kw::BLOCK, Kw::IO) => "BLOCK IO",
                        (Kw::CONTEXT, Kw::SWITCHES) => "CONTEXT SWITCHES",
                        (Kw::PAGE, Kw::FAULTS) => "PAGE FAULTS",
                        _ => return self.fail(),
                    }
                }
                Kw::ALL | Kw::CPU | Kw::IPC | Kw::MEMORY | Kw::SOURCE | Kw::SWAPS => kw.name(),
                _ if types.is_empty() => break,
                _ => return self.fail(),
            };
            types.push(name.into());
            self.bump();
            if !self.eat_tok(Tok::Comma) {
                break;
            }
        }
        let mut query = None;
        if self.eat(Kw::FOR) {
            self.expect(Kw::QUERY)?;
            query = Some(self.number()?);
        }
        Ok(ShowKind::Profile { types, query, limit: self.opt_limit()? })
    }

    // --- DESCRIBE, EXPLAIN

    pub(super) fn explain(&mut self) -> PResult<Statement> {
        self.bump();
        if self.at_described_table() {
            let table = self.object_name()?;
            let column = if self.at_tok(Tok::Str) || self.at_ident() {
                Some(self.ident_or_text()?.text)
            } else {
                None
            };
            return Ok(Statement::Describe(Box::new(Describe { table, column })));
        }
        let mut explain = Box::new(Explain {
            analyze: false,
            format: None,
            extended: false,
            into: None,
            schema: None,
            target: ExplainTarget::Connection(0),
        });
        explain.analyze = self.eat(Kw::ANALYZE);
        explain.extended = self.eat(Kw::EXTENDED) || self.eat(Kw::PARTITIONS);
        if self.eat(Kw::FORMAT) {
            self.expect_tok(Tok::Eq)?;
            explain.format = Some(self.ident_or_text()?);
        }
        if self.eat(Kw::INTO) {
            explain.into = Some(self.user_var()?);
        }
        if self.at(Kw::FOR) {
            self.bump();
            if self.eat(Kw::CONNECTION) {
                explain.target = ExplainTarget::Connection(self.number()?);
                return Ok(Statement::Explain(explain));
            }
            if self.eat_one_of(&[Kw::SCHEMA, Kw::DATABASE]).is_none() {
                return self.fail();
            }
            explain.schema = Some(self.ident()?);
        }
        if !self.at_explainable() {
            return self.fail();
        }
        let statement = self.nested(|p| p.statement())?;
        explain.target = ExplainTarget::Statement(Box::new(statement));
        Ok(Statement::Explain(explain))
    }

    /// `PROFILE [FORMAT = word] statement`, `PROFILE [FORMAT = word] FOR CONNECTION id [SECONDS n]`.
    pub(super) fn profile(&mut self) -> PResult<Statement> {
        self.bump();
        let mut format = None;
        if self.eat(Kw::FORMAT) {
            self.expect_tok(Tok::Eq)?;
            format = Some(self.ident_or_text()?);
        }
        if self.eat(Kw::FOR) {
            self.expect(Kw::CONNECTION)?;
            let id = self.number()?;
            let seconds = if self.eat_name("SECONDS") { Some(self.number()?) } else { None };
            let target = ProfileTarget::Connection { id, seconds };
            return Ok(Statement::Profile(Box::new(Profile { format, target })));
        }
        if self.at(Kw::PROFILE) {
            return self.fail();
        }
        let statement = self.nested(|p| p.statement())?;
        let target = ProfileTarget::Statement(Box::new(statement));
        Ok(Statement::Profile(Box::new(Profile { format, target })))
    }

    /// Whether a table follows, not a statement or an option.
    fn at_described_table(&mut self) -> bool {
        self.at_ident() && !matches!(self.kw(), Kw::EXTENDED | Kw::PARTITIONS | Kw::FORMAT)
            || (matches!(self.kw(), Kw::EXTENDED | Kw::PARTITIONS)
                && matches!(self.peek().kind, Tok::Eof | Tok::Semi | Tok::Dot))
            || (self.at(Kw::FORMAT) && self.peek().kind != Tok::Eq)
    }

    fn at_explainable(&self) -> bool {
        self.at_tok(Tok::LParen)
            || matches!(
                self.kw(),
                Kw::SELECT
                    | Kw::TABLE
                    | Kw::VALUES
                    | Kw::WITH
                    | Kw::INSERT
                    | Kw::REPLACE
                    | Kw::UPDATE
                    | Kw::DELETE
                    | Kw::ALTER
                    | Kw::CREATE
                    | Kw::DROP
                    | Kw::SET
            )
    }
}
