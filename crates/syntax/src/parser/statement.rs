//! The kind of a statement, and the statements of transactions and prepared statements.

use super::{PResult, Parser};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::Tok;

impl<'a> Parser<'a> {
    /// One statement, without its `;`.
    pub(super) fn statement(&mut self) -> PResult<Statement> {
        if self.at_tok(Tok::LParen) {
            return Ok(Statement::Query(self.query()?));
        }
        match self.kw() {
            Kw::SELECT | Kw::TABLE | Kw::VALUES => Ok(Statement::Query(self.query()?)),
            Kw::WITH => self.with_statement(),
            Kw::INSERT | Kw::REPLACE => self.nested(|p| p.insert()),
            Kw::UPDATE => self.nested(|p| p.update(None)),
            Kw::DELETE => self.nested(|p| p.delete(None)),
            Kw::SET => self.set(),
            Kw::SHOW => self.show(),
            Kw::CREATE => self.create(),
            Kw::ALTER => self.alter(),
            Kw::DROP => self.drop(),
            Kw::BEGIN
            | Kw::START
            | Kw::COMMIT
            | Kw::ROLLBACK
            | Kw::SAVEPOINT
            | Kw::RELEASE
            | Kw::LOCK
            | Kw::UNLOCK
            | Kw::XA => self.transaction_statement(),
            Kw::PREPARE | Kw::EXECUTE | Kw::DEALLOCATE => self.prepared_statement(),
            Kw::GET => self.get_diagnostics(),
            Kw::SIGNAL | Kw::RESIGNAL => self.signal(),
            _ => self.other_statement(),
        }
    }

    fn with_statement(&mut self) -> PResult<Statement> {
        self.nested(|p| {
            let start = p.start();
            let with = p.opt_with()?;
            match p.kw() {
                Kw::UPDATE => p.update(with),
                Kw::DELETE => p.delete(with),
                _ => Ok(Statement::Query(p.query_rest(start, with, None)?)),
            }
        })
    }

    fn other_statement(&mut self) -> PResult<Statement> {
        match self.kw() {
            Kw::DO => self.do_statement(),
            Kw::CALL => self.call(),
            Kw::HANDLER => self.handler(),
            Kw::USE => {
                self.bump();
                Ok(Statement::Use(self.ident()?))
            }
            Kw::DESCRIBE | Kw::DESC | Kw::EXPLAIN => self.explain(),
            Kw::PROFILE => self.profile(),
            Kw::TRUNCATE => {
                self.bump();
                self.eat(Kw::TABLE);
                Ok(Statement::TruncateTable(self.object_name()?))
            }
            Kw::RENAME => self.rename(),
            Kw::GRANT => self.grant(),
            Kw::REVOKE => self.revoke(),
            Kw::LOAD => self.load(),
            Kw::KILL => self.kill(),
            Kw::HELP => {
                self.bump();
                Ok(Statement::Help(self.ident_or_text()?.text))
            }
            Kw::FLUSH => self.flush(),
            Kw::RESET => self.reset(),
            Kw::PURGE => self.purge(),
            Kw::CHECK | Kw::ANALYZE | Kw::OPTIMIZE | Kw::REPAIR | Kw::CHECKSUM => {
                self.table_maintenance()
            }
            Kw::INSTALL | Kw::UNINSTALL => self.plugin(),
            Kw::CLONE => self.clone_statement(),
            Kw::BACKUP => self.backup(),
            Kw::BINLOG => {
                self.bump();
                Ok(Statement::Binlog(self.text()?))
            }
            Kw::CACHE => self.cache_index(),
            Kw::SHUTDOWN => {
                self.bump();
                Ok(Statement::Shutdown)
            }
            Kw::RESTART => {
                self.bump();
                Ok(Statement::Restart)
            }
            Kw::IMPORT => {
                self.bump();
                self.expect_all(&[Kw::TABLE, Kw::FROM])?;
                Ok(Statement::ImportTable(self.comma_list(Self::text)?))
            }
            Kw::CHANGE => self.change(),
            Kw::STOP => self.stop(),
            _ if self.eat_name("SWITCH") => self.switch_over(),
            _ => self.fail(),
        }
    }

    fn load(&mut self) -> PResult<Statement> {
        self.bump();
        if self.at(Kw::INDEX) {
            return self.load_index();
        }
        if !self.at(Kw::DATA) && !self.at(Kw::XML) {
            return self.fail();
        }
        self.load_data()
    }

    // --- transactions

    fn transaction_statement(&mut self) -> PResult<Statement> {
        let kw = self.kw();
        self.bump();
        match kw {
            Kw::BEGIN => {
                self.eat(Kw::WORK);
                Ok(Statement::StartTransaction(StartTransaction::default()))
            }
            Kw::START => {
                if self.eat(Kw::TRANSACTION) {
                    return self.start_transaction();
                }
                self.start_replication()
            }
            Kw::COMMIT => {
                self.eat(Kw::WORK);
                Ok(Statement::Commit(self.completion()?))
            }
            Kw::ROLLBACK => {
                self.eat(Kw::WORK);
                if self.eat(Kw::TO) {
                    self.eat(Kw::SAVEPOINT);
                    return Ok(Statement::RollbackTo(self.ident()?));
                }
                Ok(Statement::Rollback(self.completion()?))
            }
            Kw::SAVEPOINT => Ok(Statement::Savepoint(self.ident()?)),
            Kw::RELEASE => {
                self.expect(Kw::SAVEPOINT)?;
                Ok(Statement::ReleaseSavepoint(self.ident()?))
            }
            Kw::LOCK => self.lock(),
            Kw::UNLOCK => match self.eat_one_of(&[Kw::TABLES, Kw::TABLE, Kw::INSTANCE]) {
                Some(Kw::INSTANCE) => Ok(Statement::UnlockInstance),
                Some(_) => Ok(Statement::UnlockTables),
                None => self.fail(),
            },
            _ => self.xa(),
        }
    }

    fn start_transaction(&mut self) -> PResult<Statement> {
        let mut start = StartTransaction::default();
        if !self.at(Kw::WITH) && !self.at(Kw::READ) {
            return Ok(Statement::StartTransaction(start));
        }
        loop {
            if self.at(Kw::READ) && start.read_only.is_none() {
                self.bump();
                start.read_only = match self.eat_one_of(&[Kw::ONLY, Kw::WRITE]) {
                    Some(word) => Some(word == Kw::ONLY),
                    None => return self.fail(),
                };
            } else {
                self.expect_all(&[Kw::WITH, Kw::CONSISTENT, Kw::SNAPSHOT])?;
                start.consistent_snapshot = true;
            }
            if !self.eat_tok(Tok::Comma) {
                return Ok(Statement::StartTransaction(start));
            }
        }
    }

    fn completion(&mut self) -> PResult<Completion> {
        let mut completion = Completion::default();
        if self.eat(Kw::AND) {
            completion.chain = Some(!self.eat(Kw::NO));
            self.expect(Kw::CHAIN)?;
        }
        if self.at(Kw::NO) && self.peek_kw() == Kw::RELEASE {
            self.bump();
            self.bump();
            completion.release = Some(false);
        } else if self.at(Kw::RELEASE) && completion.chain != Some(true) {
            self.bump();
            completion.release = Some(true);
        }
        Ok(completion)
    }

    fn lock(&mut self) -> PResult<Statement> {
        if self.eat(Kw::INSTANCE) {
            self.expect_all(&[Kw::FOR, Kw::BACKUP])?;
            return Ok(Statement::LockInstance);
        }
        if self.eat_one_of(&[Kw::TABLES, Kw::TABLE]).is_none() {
            return self.fail();
        }
        let tables = self.comma_list(|p| {
            let name = p.object_name()?;
            let alias = p.opt_table_alias()?;
            let mode = if p.eat(Kw::READ) {
                if p.eat(Kw::LOCAL) { LockTableMode::ReadLocal } else { LockTableMode::Read }
            } else {
                p.expect(Kw::WRITE)?;
                LockTableMode::Write
            };
            Ok(LockTable { name, alias, mode })
        })?;
        Ok(Statement::LockTables(tables))
    }

    fn xa(&mut self) -> PResult<Statement> {
        let kw = self.kw();
        self.bump();
        let xa = match kw {
            Kw::START | Kw::BEGIN => {
                let xid = self.xid()?;
                let word = self.eat_one_of(&[Kw::JOIN, Kw::RESUME]);
                Xa::Start { xid, join: word == Some(Kw::JOIN), resume: word == Some(Kw::RESUME) }
            }
            Kw::END => {
                let xid = self.xid()?;
                let suspend = self.eat(Kw::SUSPEND);
                let for_migrate = suspend && self.eat(Kw::FOR);
                if for_migrate {
                    self.expect(Kw::MIGRATE)?;
                }
                Xa::End { xid, suspend, for_migrate }
            }
            Kw::PREPARE => Xa::Prepare(self.xid()?),
            Kw::COMMIT => {
                let xid = self.xid()?;
                let one_phase = self.eat(Kw::ONE);
                if one_phase {
                    self.expect(Kw::PHASE)?;
                }
                Xa::Commit { xid, one_phase }
            }
            Kw::ROLLBACK => Xa::Rollback(self.xid()?),
            Kw::RECOVER => {
                let convert_xid = self.eat(Kw::CONVERT);
                if convert_xid {
                    self.expect(Kw::XID)?;
                }
                Xa::Recover { convert_xid }
            }
            _ => return self.fail_prev(),
        };
        Ok(Statement::Xa(xa))
    }

    fn xid(&mut self) -> PResult<Xid> {
        let gtrid = self.xid_part()?;
        let (mut bqual, mut format) = (Box::default(), 1);
        if self.eat_tok(Tok::Comma) {
            bqual = self.xid_part()?;
            if self.eat_tok(Tok::Comma) {
                format = self.number()?;
            }
        }
        Ok(Xid { gtrid, bqual, format })
    }

    fn xid_part(&mut self) -> PResult<Box<[u8]>> {
        /// Limit of the X/Open specification: either part of a branch's name.
        const BYTES_MAX: usize = 64;
        let part = self.bytes_or_hex()?;
        if part.len() > BYTES_MAX { self.fail() } else { Ok(part) }
    }

    // --- prepared statements

    fn prepared_statement(&mut self) -> PResult<Statement> {
        let kw = self.kw();
        self.bump();
        match kw {
            Kw::PREPARE => {
                let name = self.ident()?;
                self.expect(Kw::FROM)?;
                Ok(Statement::Prepare { name, source: self.prepare_source()? })
            }
            Kw::DEALLOCATE => {
                self.expect(Kw::PREPARE)?;
                Ok(Statement::Deallocate(self.ident()?))
            }
            _ => self.execute(),
        }
    }

    fn prepare_source(&mut self) -> PResult<PrepareSource> {
        if self.at_tok(Tok::Str) {
            return Ok(PrepareSource::Text(self.bytes()?));
        }
        Ok(PrepareSource::UserVar(self.user_var()?))
    }

    /// After EXECUTE.
    fn execute(&mut self) -> PResult<Statement> {
        if self.at(Kw::IMMEDIATE) && self.peek().kind != Tok::Semi && self.peek().kind != Tok::Eof {
            self.bump();
            let source = if matches!(self.tok(), Tok::Str | Tok::UserVar) {
                self.prepare_source()?
            } else {
                PrepareSource::Expr(self.boxed_expr()?)
            };
            return self.execute_tail(source);
        }
        if matches!(self.tok(), Tok::Str | Tok::UserVar) {
            let source = self.prepare_source()?;
            return self.execute_tail(source);
        }
        let name = self.ident()?;
        let using = if self.eat(Kw::USING) { self.comma_list(Self::user_var)? } else { Vec::new() };
        Ok(Statement::Execute { name, using })
    }

    /// `[WITH CONCURRENT] [NO RETURN] [WAIT] [USING ..]`.
    fn execute_tail(&mut self, source: PrepareSource) -> PResult<Statement> {
        let (mut concurrent, mut no_return, mut wait) = (false, false, false);
        let mut using = Vec::new();
        loop {
            match self.kw() {
                Kw::WITH if self.peek_kw() == Kw::CONCURRENT => {
                    self.bump();
                    concurrent = true;
                }
                Kw::WITH if self.peek_kw() == Kw::NO => {}
                Kw::NO if self.peek_kw() == Kw::RETURN => {
                    self.bump();
                    no_return = true;
                }
                Kw::CONCURRENT => concurrent = true,
                Kw::WAIT => wait = true,
                Kw::USING if using.is_empty() => {
                    self.bump();
                    using = self.expr_list()?;
                    continue;
                }
                _ => break,
            }
            self.bump();
        }
        Ok(Statement::ExecuteText { source, using, concurrent, no_return, wait })
    }
}
