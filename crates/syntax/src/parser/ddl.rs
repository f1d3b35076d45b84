//! CREATE, ALTER, DROP and RENAME of everything but tables and accounts.

use super::{PResult, Parser};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::Tok;

/// Clauses between CREATE or ALTER and the kind of object.
#[derive(Default)]
pub(super) struct Prefix {
    pub or_replace: bool,
    pub algorithm: Option<ViewAlgorithm>,
    pub definer: Option<UserName>,
    pub security: Option<SqlSecurity>,
}

impl<'a> Parser<'a> {
    pub(super) fn create(&mut self) -> PResult<Statement> {
        self.bump();
        let or_replace = self.at2(Kw::OR, Kw::REPLACE);
        if or_replace {
            self.bump();
            self.bump();
        }
        match self.kw() {
            Kw::TABLE => {
                self.bump();
                self.create_table(or_replace, false, false)
            }
            Kw::EXTERNAL => {
                self.bump();
                self.expect(Kw::TABLE)?;
                self.create_table(or_replace, false, true)
            }
            Kw::TEMPORARY => {
                self.bump();
                if self.eat(Kw::SEQUENCE) {
                    return self.create_sequence(or_replace, true);
                }
                self.expect(Kw::TABLE)?;
                self.create_table(or_replace, true, false)
            }
            Kw::SEQUENCE => {
                self.bump();
                self.create_sequence(or_replace, false)
            }
            Kw::DATABASE | Kw::SCHEMA => self.create_database(or_replace),
            Kw::UNIQUE | Kw::FULLTEXT | Kw::INDEX => self.create_index(or_replace),
            Kw::SPATIAL if self.peek_kw() == Kw::REFERENCE => self.create_srs(or_replace),
            Kw::SPATIAL => self.create_index(or_replace),
            Kw::VECTOR => self.create_index(or_replace),
            Kw::USER => self.create_user(or_replace),
            Kw::ROLE => self.create_role(or_replace),
            Kw::SERVER => self.server(false, or_replace),
            Kw::LIBRARY => self.create_library(or_replace),
            Kw::TABLESPACE | Kw::UNDO | Kw::LOGFILE if !or_replace => {
                self.tablespace(TablespaceAction::Create)
            }
            Kw::RESOURCE if !or_replace => self.create_resource_group(),
            Kw::CHANGE if !or_replace => self.create_change_stream(),
            _ => {
                let prefix = self.prefix(or_replace)?;
                self.create_program(prefix)
            }
        }
    }

    /// `[ALGORITHM = x] [DEFINER = u] [SQL SECURITY x]`.
    fn prefix(&mut self, or_replace: bool) -> PResult<Prefix> {
        let mut prefix = Prefix { or_replace, ..Prefix::default() };
        if self.eat(Kw::ALGORITHM) {
            self.expect_tok(Tok::Eq)?;
            prefix.algorithm = Some(match self.kw() {
                Kw::UNDEFINED => ViewAlgorithm::Undefined,
                Kw::MERGE => ViewAlgorithm::Merge,
                Kw::TEMPTABLE => ViewAlgorithm::Temptable,
                _ => return self.fail(),
            });
            self.bump();
        }
        if self.eat(Kw::DEFINER) {
            self.expect_tok(Tok::Eq)?;
            prefix.definer = Some(self.user_name()?);
        }
        if self.eat2(Kw::SQL, Kw::SECURITY) {
            prefix.security = Some(self.sql_security()?);
        }
        Ok(prefix)
    }

    pub(super) fn sql_security(&mut self) -> PResult<SqlSecurity> {
        match self.eat_one_of(&[Kw::DEFINER, Kw::INVOKER]) {
            Some(Kw::DEFINER) => Ok(SqlSecurity::Definer),
            Some(_) => Ok(SqlSecurity::Invoker),
            None => self.fail(),
        }
    }

    fn create_program(&mut self, prefix: Prefix) -> PResult<Statement> {
        let for_view = prefix.algorithm.is_some() || prefix.security.is_some();
        match self.kw() {
            Kw::VIEW | Kw::JSON => self.create_view(prefix, false),
            _ if for_view => self.fail(),
            Kw::PROCEDURE | Kw::FUNCTION | Kw::AGGREGATE => self.create_routine(prefix),
            Kw::TRIGGER => self.create_trigger(prefix),
            Kw::EVENT => self.create_event(prefix),
            _ => self.fail(),
        }
    }

    /// After ALTER CLUSTER: the plugin that runs the cluster knows the rest.
    fn alter_cluster(&mut self) -> PResult<Statement> {
        let start = self.start();
        while !matches!(self.tok(), Tok::Eof | Tok::Semi | Tok::Bad) {
            self.bump();
        }
        let span = self.span_from(start);
        let change = &self.src[span.start as usize..span.end as usize];
        Ok(Statement::AlterCluster(String::from_utf8_lossy(change).into()))
    }

    pub(super) fn alter(&mut self) -> PResult<Statement> {
        self.bump();
        if self.eat_name("CLUSTER") {
            return self.alter_cluster();
        }
        match self.kw() {
            Kw::TABLE => {
                self.bump();
                self.alter_table()
            }
            Kw::DATABASE | Kw::SCHEMA => {
                self.bump();
                let name = if self.at_database_name() { Some(self.ident()?) } else { None };
                let options = self.database_options(true)?;
                if options.is_empty() {
                    return self.fail();
                }
                Ok(Statement::AlterDatabase(Box::new(AlterDatabase { name, options })))
            }
            Kw::SEQUENCE => {
                self.bump();
                let if_exists = self.if_exists()?;
                let name = self.object_name()?;
                let options = self.sequence_options()?;
                Ok(Statement::AlterSequence(Box::new(AlterSequence { if_exists, name, options })))
            }
            Kw::USER => self.alter_user(),
            Kw::CHANGE => self.alter_change_stream(),
            Kw::SERVER => self.server(true, false),
            Kw::INSTANCE => self.alter_instance(),
            Kw::SYSTEM => self.alter_system(),
            Kw::TABLESPACE | Kw::UNDO | Kw::LOGFILE => self.tablespace(TablespaceAction::Alter),
            Kw::RESOURCE => self.alter_resource_group(),
            Kw::PROCEDURE | Kw::FUNCTION => self.alter_routine(),
            Kw::LIBRARY => {
                self.bump();
                let name = self.object_name()?;
                self.expect(Kw::COMMENT)?;
                let comment = self.text()?;
                Ok(Statement::AlterLibrary(Box::new(AlterLibrary { name, comment })))
            }
            _ => {
                let prefix = self.prefix(false)?;
                match self.kw() {
                    Kw::VIEW | Kw::JSON => self.create_view(prefix, true),
                    Kw::EVENT => self.alter_event(prefix),
                    _ => self.fail(),
                }
            }
        }
    }

    pub(super) fn drop(&mut self) -> PResult<Statement> {
        self.bump();
        let kw = self.kw();
        match kw {
            Kw::TEMPORARY | Kw::TABLE | Kw::TABLES => self.drop_table(),
            Kw::VIEW => self.drop_objects(Statement::DropView),
            Kw::SEQUENCE => self.drop_objects(Statement::DropSequence),
            Kw::DATABASE | Kw::SCHEMA => {
                self.bump();
                let if_exists = self.if_exists()?;
                let name = self.ident()?;
                Ok(Statement::DropDatabase(Box::new(DropDatabase { if_exists, name })))
            }
            Kw::INDEX => self.drop_index(),
            Kw::CHANGE => self.drop_change_stream(),
            Kw::PROCEDURE => self.drop_routine(RoutineKind::Procedure),
            Kw::FUNCTION => self.drop_routine(RoutineKind::Function),
            Kw::TRIGGER => self.drop_object(Statement::DropTrigger),
            Kw::EVENT => self.drop_object(Statement::DropEvent),
            Kw::LIBRARY => self.drop_object(Statement::DropLibrary),
            Kw::USER | Kw::ROLE => {
                self.bump();
                let if_exists = self.if_exists()?;
                let users = self.user_list()?;
                Ok(if kw == Kw::USER {
                    Statement::DropUser { if_exists, users }
                } else {
                    Statement::DropRole { if_exists, roles: users }
                })
            }
            Kw::SERVER => {
                self.bump();
                let if_exists = self.if_exists()?;
                Ok(Statement::DropServer { if_exists, name: self.ident_or_text()? })
            }
            Kw::TABLESPACE | Kw::UNDO | Kw::LOGFILE => self.tablespace(TablespaceAction::Drop),
            Kw::SPATIAL => {
                self.bump();
                self.expect_all(&[Kw::REFERENCE, Kw::SYSTEM])?;
                let if_exists = self.if_exists()?;
                Ok(Statement::DropSpatialReferenceSystem { if_exists, srid: self.number()? })
            }
            Kw::RESOURCE => {
                self.bump();
                self.expect(Kw::GROUP)?;
                let name = self.ident()?;
                let force = self.eat(Kw::FORCE);
                Ok(Statement::ResourceGroup(Box::new(ResourceGroup::Drop { name, force })))
            }
            Kw::PREPARE => {
                self.bump();
                Ok(Statement::Deallocate(self.ident()?))
            }
            _ => self.fail(),
        }
    }

    fn drop_objects(&mut self, of: fn(Box<DropObjects>) -> Statement) -> PResult<Statement> {
        self.bump();
        let if_exists = self.if_exists()?;
        let names = self.comma_list(Self::object_name)?;
        let cascade = self.opt_cascade();
        Ok(of(Box::new(DropObjects { if_exists, names, cascade })))
    }

    fn drop_object(&mut self, of: fn(Box<DropObject>) -> Statement) -> PResult<Statement> {
        self.bump();
        let if_exists = self.if_exists()?;
        let name = self.object_name()?;
        Ok(of(Box::new(DropObject { if_exists, name })))
    }

    fn drop_index(&mut self) -> PResult<Statement> {
        self.bump();
        let if_exists = self.if_exists()?;
        let name = self.index_name()?;
        self.expect(Kw::ON)?;
        let table = self.object_name()?;
        let (algorithm, lock) = self.index_lock_and_algorithm()?;
        let drop = DropIndex { if_exists, name, table, algorithm, lock };
        Ok(Statement::DropIndex(Box::new(drop)))
    }

    fn drop_routine(&mut self, kind: RoutineKind) -> PResult<Statement> {
        self.bump();
        let if_exists = self.if_exists()?;
        let name = self.object_name()?;
        Ok(Statement::DropRoutine(Box::new(DropRoutine { kind, if_exists, name })))
    }

    fn drop_table(&mut self) -> PResult<Statement> {
        let temporary = self.eat(Kw::TEMPORARY);
        if self.eat_one_of(&[Kw::TABLE, Kw::TABLES]).is_none() {
            return self.fail();
        }
        let if_exists = self.if_exists()?;
        let names = self.comma_list(Self::object_name)?;
        let cascade = self.opt_cascade();
        Ok(Statement::DropTable(Box::new(DropTable { temporary, if_exists, names, cascade })))
    }

    fn opt_cascade(&mut self) -> Option<bool> {
        self.eat_one_of(&[Kw::CASCADE, Kw::RESTRICT]).map(|word| word == Kw::CASCADE)
    }

    pub(super) fn rename(&mut self) -> PResult<Statement> {
        self.bump();
        if self.eat(Kw::USER) {
            let users = self.comma_list(|p| {
                let from = p.user_name()?;
                p.expect(Kw::TO)?;
                Ok((from, p.user_name()?))
            })?;
            return Ok(Statement::RenameUser(users));
        }
        if self.eat_one_of(&[Kw::TABLE, Kw::TABLES]).is_none() {
            return self.fail();
        }
        let if_exists = self.if_exists()?;
        let renames = self.comma_list(|p| {
            let from = p.object_name()?;
            p.expect(Kw::TO)?;
            Ok((from, p.object_name()?))
        })?;
        Ok(Statement::RenameTable(Box::new(RenameTable { if_exists, renames })))
    }

    // --- databases

    fn create_database(&mut self, or_replace: bool) -> PResult<Statement> {
        self.bump();
        let if_not_exists = self.if_not_exists()?;
        let flags = CreateFlags { or_replace, if_not_exists };
        let name = self.ident()?;
        let options = self.database_options(false)?;
        Ok(Statement::CreateDatabase(Box::new(CreateDatabase { flags, name, options })))
    }

    fn at_database_name(&mut self) -> bool {
        if !self.at_ident() {
            return false;
        }
        let option = matches!(self.kw(), Kw::CHARSET | Kw::ENCRYPTION);
        !option || matches!(self.peek_kw(), Kw::DEFAULT | Kw::CHARSET | Kw::COLLATE | Kw::READ)
    }

    fn database_options(&mut self, is_altered: bool) -> PResult<Vec<DatabaseOption>> {
        let mut options = Vec::new();
        loop {
            let default = self.eat(Kw::DEFAULT);
            let kw = self.kw();
            match kw {
                Kw::CHARACTER | Kw::CHAR | Kw::CHARSET | Kw::COLLATE | Kw::ENCRYPTION => {}
                Kw::READ if !default && is_altered => {}
                Kw::COMMENT if !default => {}
                _ if default => return self.fail(),
                _ => return Ok(options),
            }
            self.bump();
            if matches!(kw, Kw::CHARACTER | Kw::CHAR) {
                self.expect(Kw::SET)?;
            } else if kw == Kw::READ {
                self.expect(Kw::ONLY)?;
            }
            self.opt_eq();
            options.push(match kw {
                Kw::COLLATE => DatabaseOption::Collation(self.charset_or_default()?),
                Kw::ENCRYPTION => DatabaseOption::Encryption(self.text()?),
                Kw::COMMENT => DatabaseOption::Comment(self.text()?),
                Kw::READ => {
                    if self.eat(Kw::DEFAULT) {
                        DatabaseOption::ReadOnly(None)
                    } else {
                        match self.text_of(self.cur.tok) {
                            digit @ (b"0" | b"1") => {
                                let wanted = digit == b"1";
                                self.bump();
                                DatabaseOption::ReadOnly(Some(wanted))
                            }
                            _ => return self.fail(),
                        }
                    }
                }
                _ => DatabaseOption::Charset(self.charset_or_default()?),
            });
        }
    }

    // --- indexes

    fn create_index(&mut self, or_replace: bool) -> PResult<Statement> {
        let start = self.start();
        let word = self.kw();
        self.bump();
        let kind = match word {
            Kw::UNIQUE => IndexKind::Unique,
            Kw::FULLTEXT => IndexKind::Fulltext,
            Kw::SPATIAL => IndexKind::Spatial,
            Kw::VECTOR => IndexKind::Vector,
            _ => IndexKind::Plain,
        };
        if kind != IndexKind::Plain {
            self.expect(Kw::INDEX)?;
        }
        let if_not_exists = self.if_not_exists()?;
        let name = self.ident()?;
        let using = self.opt_index_using()?;
        self.expect(Kw::ON)?;
        let table = self.object_name()?;
        let mut index = self.index_body(kind, start)?;
        index.name = Some(name);
        index.if_not_exists = if_not_exists;
        if let Some(using) = using {
            index.options.insert(0, IndexOption::Using(using));
        }
        let (algorithm, lock) = self.index_lock_and_algorithm()?;
        let flags = CreateFlags { or_replace, if_not_exists };
        let create = CreateIndex { flags, table, index, algorithm, lock };
        Ok(Statement::CreateIndex(Box::new(create)))
    }

    fn index_lock_and_algorithm(&mut self) -> PResult<(Option<Ident>, Option<Ident>)> {
        let (mut algorithm, mut lock) = (None, None);
        loop {
            if self.at(Kw::ALGORITHM) && algorithm.is_none() {
                self.bump();
                self.opt_eq();
                algorithm = Some(self.any_word()?);
            } else if self.at(Kw::LOCK) && lock.is_none() {
                self.bump();
                self.opt_eq();
                lock = Some(self.any_word()?);
            } else {
                return Ok((algorithm, lock));
            }
        }
    }

    // --- views

    /// At VIEW or JSON.
    fn create_view(&mut self, prefix: Prefix, alter: bool) -> PResult<Statement> {
        let is_duality = self.eat(Kw::JSON);
        if is_duality {
            self.eat(Kw::RELATIONAL);
            self.expect(Kw::DUALITY)?;
        }
        self.expect(Kw::VIEW)?;
        let takes_condition = !(alter || is_duality && prefix.or_replace);
        let if_not_exists = takes_condition && self.if_not_exists()?;
        let name = self.object_name()?;
        let columns = if self.at_tok(Tok::LParen) { self.paren_idents()? } else { Vec::new() };
        self.expect(Kw::AS)?;
        let start = self.start();
        let mut query = *self.query()?;
        let query_span = self.span_from(start);
        if is_duality && let Some(root) = query.duality_root() {
            root.is_root = true;
        }
        let mut check_option = None;
        if self.eat(Kw::WITH) {
            check_option = Some(if self.eat(Kw::LOCAL) {
                CheckOption::Local
            } else {
                self.eat(Kw::CASCADED);
                CheckOption::Cascaded
            });
            self.expect_all(&[Kw::CHECK, Kw::OPTION])?;
        }
        let view = Box::new(CreateView {
            flags: CreateFlags { or_replace: prefix.or_replace, if_not_exists },
            is_duality,
            algorithm: prefix.algorithm.unwrap_or_default(),
            definer: prefix.definer,
            security: prefix.security,
            name,
            columns,
            query,
            query_span,
            check_option,
        });
        Ok(if alter { Statement::AlterView(view) } else { Statement::CreateView(view) })
    }

    // --- sequences

    fn create_sequence(&mut self, or_replace: bool, temporary: bool) -> PResult<Statement> {
        if self.at(Kw::SEQUENCE) {
            self.bump();
        }
        let if_not_exists = self.if_not_exists()?;
        let flags = CreateFlags { or_replace, if_not_exists };
        let name = self.object_name()?;
        let options = self.sequence_options()?;
        let mut table_options = Vec::new();
        while let Some(option) = self.opt_table_option()? {
            table_options.push(option);
            self.eat_tok(Tok::Comma);
        }
        let create = CreateSequence { flags, temporary, name, options, table_options };
        Ok(Statement::CreateSequence(Box::new(create)))
    }

    fn sequence_options(&mut self) -> PResult<Vec<SequenceOption>> {
        use SequenceOption as S;
        let mut options = Vec::new();
        loop {
            let kw = self.kw();
            let option = match kw {
                Kw::AS => {
                    self.bump();
                    S::As(Box::new(self.data_type()?))
                }
                Kw::START if self.peek_kw() != Kw::TRANSACTION => {
                    self.bump();
                    self.eat(Kw::WITH);
                    S::Start(self.sequence_number()?)
                }
                Kw::INCREMENT => {
                    self.bump();
                    self.eat(Kw::BY);
                    S::Increment(self.sequence_number()?)
                }
                Kw::MINVALUE => {
                    self.bump();
                    S::MinValue(Some(self.sequence_number()?))
                }
                Kw::MAXVALUE => {
                    self.bump();
                    S::MaxValue(Some(self.sequence_number()?))
                }
                Kw::CACHE => {
                    self.bump();
                    S::Cache(Some(self.sequence_number()?))
                }
                Kw::RESTART => {
                    self.bump();
                    let with = self.eat(Kw::WITH) || self.eat_tok(Tok::Eq);
                    let number = with || matches!(self.tok(), Tok::Int | Tok::Minus | Tok::Plus);
                    S::Restart(if number { Some(self.signed_number()?) } else { None })
                }
                Kw::CYCLE | Kw::NOCYCLE => {
                    self.bump();
                    S::Cycle(kw == Kw::CYCLE)
                }
                Kw::NOMINVALUE | Kw::NOMAXVALUE | Kw::NOCACHE => {
                    self.bump();
                    match kw {
                        Kw::NOMINVALUE => S::MinValue(None),
                        Kw::NOMAXVALUE => S::MaxValue(None),
                        _ => S::Cache(None),
                    }
                }
                Kw::NO => self.negated_sequence_option()?,
                _ => return Ok(options),
            };
            options.push(option);
        }
    }

    /// `NO MINVALUE` and the like.
    fn negated_sequence_option(&mut self) -> PResult<SequenceOption> {
        self.bump();
        Ok(match self.eat_one_of(&[Kw::MINVALUE, Kw::MAXVALUE, Kw::CACHE, Kw::CYCLE]) {
            Some(Kw::MINVALUE) => SequenceOption::MinValue(None),
            Some(Kw::MAXVALUE) => SequenceOption::MaxValue(None),
            Some(Kw::CACHE) => SequenceOption::Cache(None),
            Some(_) => SequenceOption::Cycle(false),
            None => return self.fail(),
        })
    }

    fn sequence_number(&mut self) -> PResult<i128> {
        self.opt_eq();
        self.signed_number()
    }

    // --- servers, tablespaces, reference systems, resource groups

    /// At SERVER.
    fn server(&mut self, alter: bool, or_replace: bool) -> PResult<Statement> {
        self.bump();
        let if_not_exists = !alter && self.if_not_exists()?;
        let flags = CreateFlags { or_replace, if_not_exists };
        let name = self.ident_or_text()?;
        let mut wrapper = None;
        if !alter {
            self.expect(Kw::FOREIGN)?;
            self.expect_all(&[Kw::DATA, Kw::WRAPPER])?;
            wrapper = Some(self.ident_or_text()?);
        }
        self.expect(Kw::OPTIONS)?;
        let options = self.paren_list(|p| {
            let option = match p.kw() {
                Kw::HOST => ServerOption::Host,
                Kw::DATABASE => ServerOption::Database,
                Kw::USER => ServerOption::User,
                Kw::PASSWORD => ServerOption::Password,
                Kw::SOCKET => ServerOption::Socket,
                Kw::OWNER => ServerOption::Owner,
                Kw::PORT => ServerOption::Port,
                _ => return p.fail(),
            };
            p.bump();
            let value = match (option, p.at_tok(Tok::Int)) {
                (ServerOption::Port, true) => p.number_text()?,
                (ServerOption::Port, false) => return p.fail(),
                (
                    ServerOption::Host
                    | ServerOption::Database
                    | ServerOption::User
                    | ServerOption::Password
                    | ServerOption::Socket
                    | ServerOption::Owner,
                    _,
                ) => p.text()?,
            };
            Ok((option, value))
        })?;
        Ok(Statement::Server(Box::new(ServerDef { alter, flags, name, wrapper, options })))
    }

    /// At TABLESPACE, UNDO or LOGFILE.
    fn tablespace(&mut self, action: TablespaceAction) -> PResult<Statement> {
        let logfile = self.eat(Kw::LOGFILE);
        let undo = !logfile && self.eat(Kw::UNDO);
        self.expect(if logfile { Kw::GROUP } else { Kw::TABLESPACE })?;
        let name = self.ident()?;
        let mut options = Vec::new();
        while self.tok() == Tok::Word {
            options.push(self.tablespace_option()?);
            self.eat_tok(Tok::Comma);
        }
        let tablespace = Box::new(Tablespace { action, undo, name, options });
        Ok(if logfile {
            Statement::LogfileGroup(tablespace)
        } else {
            Statement::Tablespace(tablespace)
        })
    }

    fn tablespace_option(&mut self) -> PResult<(Box<str>, Box<str>)> {
        let kw = self.kw();
        let word = |name: &str| -> Box<str> { name.into() };
        match kw {
            Kw::ADD | Kw::DROP => {
                self.bump();
                let what =
                    match self.eat_one_of(&[Kw::DATAFILE, Kw::UNDOFILE, Kw::REDO_BUFFER_SIZE]) {
                        Some(what) => format!("{} {}", kw.name(), what.name()),
                        None => return self.fail(),
                    };
                Ok((what.into(), self.text()?))
            }
            Kw::USE => {
                self.bump();
                self.expect_all(&[Kw::LOGFILE, Kw::GROUP])?;
                Ok((word("USE LOGFILE GROUP"), self.ident()?.text))
            }
            Kw::RENAME => {
                self.bump();
                self.expect(Kw::TO)?;
                Ok((word("RENAME TO"), self.ident()?.text))
            }
            Kw::SET => {
                self.bump();
                match self.eat_one_of(&[Kw::ACTIVE, Kw::INACTIVE]) {
                    Some(state) => Ok((word("SET"), state.name().into())),
                    None => self.fail(),
                }
            }
            Kw::WAIT | Kw::NO_WAIT => {
                self.bump();
                Ok((kw.name().into(), word("")))
            }
            Kw::STORAGE | Kw::ENGINE => {
                self.eat(Kw::STORAGE);
                self.expect(Kw::ENGINE)?;
                self.opt_eq();
                Ok((word("ENGINE"), self.ident_or_text()?.text))
            }
            Kw::COMMENT | Kw::ENCRYPTION | Kw::ENGINE_ATTRIBUTE => {
                self.bump();
                self.opt_eq();
                Ok((kw.name().into(), self.text()?))
            }
            Kw::AUTOEXTEND_SIZE
            | Kw::MAX_SIZE
            | Kw::EXTENT_SIZE
            | Kw::INITIAL_SIZE
            | Kw::NODEGROUP
            | Kw::FILE_BLOCK_SIZE
            | Kw::UNDO_BUFFER_SIZE
            | Kw::REDO_BUFFER_SIZE => {
                self.bump();
                self.opt_eq();
                Ok((kw.name().into(), self.size_number()?.to_string().into()))
            }
            _ => self.fail(),
        }
    }

    /// At SPATIAL.
    fn create_srs(&mut self, or_replace: bool) -> PResult<Statement> {
        self.bump();
        self.expect_all(&[Kw::REFERENCE, Kw::SYSTEM])?;
        let if_not_exists = !or_replace && self.if_not_exists()?;
        let mut srs = CreateSpatialReferenceSystem {
            flags: CreateFlags { or_replace, if_not_exists },
            srid: self.number()?,
            name: None,
            definition: None,
            organization: None,
            description: None,
            repeated: None,
        };
        loop {
            let repeated = match self.kw() {
                Kw::NAME if srs.name.is_some() => Some("NAME"),
                Kw::DEFINITION if srs.definition.is_some() => Some("DEFINITION"),
                Kw::ORGANIZATION if srs.organization.is_some() => Some("ORGANIZATION"),
                Kw::DESCRIPTION if srs.description.is_some() => Some("DESCRIPTION"),
                _ => None,
            };
            srs.repeated = srs.repeated.or(repeated);
            match self.eat_one_of(&[Kw::NAME, Kw::DEFINITION, Kw::ORGANIZATION, Kw::DESCRIPTION]) {
                Some(Kw::NAME) => srs.name = Some(self.text()?),
                Some(Kw::DEFINITION) => srs.definition = Some(self.text()?),
                Some(Kw::ORGANIZATION) => {
                    let organization = self.text()?;
                    self.expect_all(&[Kw::IDENTIFIED, Kw::BY])?;
                    srs.organization = Some((organization, self.number()?));
                }
                Some(_) => srs.description = Some(self.text()?),
                None => break,
            }
        }
        Ok(Statement::CreateSpatialReferenceSystem(Box::new(srs)))
    }

    fn create_resource_group(&mut self) -> PResult<Statement> {
        self.bump();
        self.expect(Kw::GROUP)?;
        let name = self.ident()?;
        self.expect(Kw::TYPE)?;
        self.opt_eq();
        let Some(kind) = self.eat_one_of(&[Kw::SYSTEM, Kw::USER]) else { return self.fail() };
        let system = kind == Kw::SYSTEM;
        let (vcpus, priority, enabled) = self.resource_group_options()?;
        let group = ResourceGroup::Create { name, system, vcpus, priority, enabled };
        Ok(Statement::ResourceGroup(Box::new(group)))
    }

    fn alter_resource_group(&mut self) -> PResult<Statement> {
        self.bump();
        self.expect(Kw::GROUP)?;
        let name = self.ident()?;
        let ((vcpus, priority, enabled), force) =
            (self.resource_group_options()?, self.eat(Kw::FORCE));
        let group = ResourceGroup::Alter { name, vcpus, priority, enabled, force };
        Ok(Statement::ResourceGroup(Box::new(group)))
    }

    /// Items that begin with a number, with or without commas between them.
    pub(super) fn loose_list<T>(
        &mut self,
        item: impl Fn(&mut Self) -> PResult<T>,
    ) -> PResult<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat_tok(Tok::Comma) || self.tok() == Tok::Int {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// A number of 31 bits, in digits.
    fn short_number(&mut self) -> PResult<u64> {
        let number = if self.tok() == Tok::Int { self.number()? } else { return self.fail() };
        if number > i32::MAX as u64 { self.fail_prev() } else { Ok(number) }
    }

    #[allow(clippy::type_complexity)]
    fn resource_group_options(&mut self) -> PResult<(Vec<(u64, u64)>, Option<i64>, Option<bool>)> {
        let mut vcpus = Vec::new();
        if self.eat(Kw::VCPU) {
            self.opt_eq();
            vcpus = self.loose_list(|own| {
                let low = own.short_number()?;
                Ok((low, if own.eat_tok(Tok::Minus) { own.short_number()? } else { low }))
            })?;
        }
        let mut priority = None;
        if self.eat(Kw::THREAD_PRIORITY) {
            self.opt_eq();
            let is_negative = self.eat_tok(Tok::Minus);
            let _plus = !is_negative && self.eat_tok(Tok::Plus);
            let number = self.short_number()?.cast_signed();
            priority = Some(if is_negative { -number } else { number });
        }
        let enabled = self.eat_one_of(&[Kw::ENABLE, Kw::DISABLE]).map(|word| word == Kw::ENABLE);
        Ok((vcpus, priority, enabled))
    }
}
