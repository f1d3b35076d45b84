//! Replication control: CHANGE, START, STOP; change streams.

use super::{PResult, Parser};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::Tok;

impl<'a> Parser<'a> {
    pub(super) fn change(&mut self) -> PResult<Statement> {
        self.bump();
        self.expect(Kw::REPLICATION)?;
        let replication = if self.eat(Kw::FILTER) {
            self.change_filter()?
        } else {
            self.expect_all(&[Kw::SOURCE, Kw::TO])?;
            self.change_source()?
        };
        Ok(Statement::Replication(Box::new(replication)))
    }

    /// After SWITCH.
    pub(super) fn switch_over(&mut self) -> PResult<Statement> {
        self.expect_all(&[Kw::OVER, Kw::TO])?;
        let host = self.text()?;
        let port = if self.eat_tok(Tok::Colon) { Some(self.number()?) } else { None };
        self.expect(Kw::USER)?;
        let user = self.text()?;
        self.expect_all(&[Kw::IDENTIFIED, Kw::BY])?;
        let password = self.text()?;
        let timeout = if self.eat_name("TIMEOUT") { Some(self.number()?) } else { None };
        let require_ssl = self.require_ssl()?;
        let switch = SwitchOver { host, port, user, password, timeout, require_ssl };
        Ok(Statement::Replication(Box::new(Replication::SwitchOver(Box::new(switch)))))
    }

    fn change_source(&mut self) -> PResult<Replication> {
        let options = self.comma_list(|p| {
            let word = p.any_word()?;
            p.expect_tok(Tok::Eq)?;
            Ok((word, p.replication_value()?))
        })?;
        Ok(Replication::ChangeSource { options, channel: self.opt_channel()? })
    }

    fn replication_value(&mut self) -> PResult<ReplicationValue> {
        match self.tok() {
            Tok::Str => {
                let user = self.user_name()?;
                Ok(match user.host {
                    Some(_) => ReplicationValue::Account(user),
                    None => ReplicationValue::Text(user.user),
                })
            }
            Tok::Int | Tok::Decimal | Tok::Float => {
                Ok(ReplicationValue::Number(self.number_text()?))
            }
            Tok::LParen => {
                self.bump();
                let mut ids = Vec::new();
                if !self.at_tok(Tok::RParen) {
                    ids = self.comma_list(Self::number)?;
                }
                self.expect_tok(Tok::RParen)?;
                Ok(ReplicationValue::List(ids))
            }
            _ if self.eat(Kw::NULL) => Ok(ReplicationValue::Null),
            _ if self.at(Kw::CURRENT_USER) => Ok(ReplicationValue::Account(self.user_name()?)),
            _ => {
                let word = self.any_word()?;
                match self.opt_host()? {
                    Some(host) => Ok(ReplicationValue::Account(UserName {
                        user: word.text,
                        host: Some(host),
                        current: false,
                    })),
                    None => Ok(ReplicationValue::Word(word)),
                }
            }
        }
    }

    fn change_filter(&mut self) -> PResult<Replication> {
        let rules = self.comma_list(|p| {
            let rule = p.any_word()?;
            p.expect_tok(Tok::Eq)?;
            p.expect_tok(Tok::LParen)?;
            let mut values = Vec::new();
            while !p.at_tok(Tok::RParen) {
                p.filter_value(&mut values)?;
                if !p.eat_tok(Tok::Comma) {
                    break;
                }
            }
            p.expect_tok(Tok::RParen)?;
            Ok((rule, values))
        })?;
        Ok(Replication::ChangeFilter { rules, channel: self.opt_channel()? })
    }

    /// A database, a table, a pattern, or a pair `(from, to)`.
    fn filter_value(&mut self, values: &mut Vec<Box<str>>) -> PResult<()> {
        if self.at_tok(Tok::LParen) {
            for name in self.paren_list(Self::ident_or_text)? {
                values.push(name.text);
            }
            return Ok(());
        }
        if self.at_tok(Tok::Str) {
            values.push(self.text()?);
            return Ok(());
        }
        let name = self.object_name()?;
        values.push(match name.schema {
            Some(schema) => format!("{}.{}", schema.text, name.name.text).into(),
            None => name.name.text,
        });
        Ok(())
    }

    /// After START.
    pub(super) fn start_replication(&mut self) -> PResult<Statement> {
        if self.eat(Kw::GROUP_REPLICATION) {
            let mut options = Vec::new();
            if matches!(self.kw(), Kw::USER | Kw::PASSWORD | Kw::DEFAULT_AUTH) {
                options = self.comma_list(Self::connection_option)?;
            }
            let start = Replication::StartGroup { options };
            return Ok(Statement::Replication(Box::new(start)));
        }
        self.expect(Kw::REPLICA)?;
        let threads = self.replica_threads()?;
        let mut until = Vec::new();
        if self.eat(Kw::UNTIL) {
            until = self.comma_list(|p| {
                let word = p.any_word()?;
                if word.is("SQL_AFTER_MTS_GAPS") {
                    return Ok((word, ReplicationValue::Null));
                }
                p.expect_tok(Tok::Eq)?;
                Ok((word, p.replication_value()?))
            })?;
        }
        let mut connection = Vec::new();
        while matches!(self.kw(), Kw::USER | Kw::PASSWORD | Kw::DEFAULT_AUTH | Kw::PLUGIN_DIR) {
            connection.push(self.connection_option()?);
        }
        let channel = self.opt_channel()?;
        let start = Replication::Start { threads, until, connection, channel };
        Ok(Statement::Replication(Box::new(start)))
    }

    fn connection_option(&mut self) -> PResult<(Ident, Box<str>)> {
        let word = self.any_word()?;
        self.expect_tok(Tok::Eq)?;
        Ok((word, self.text()?))
    }

    fn replica_threads(&mut self) -> PResult<Vec<Ident>> {
        if !matches!(self.kw(), Kw::IO_THREAD | Kw::SQL_THREAD | Kw::RELAY_THREAD) {
            return Ok(Vec::new());
        }
        self.comma_list(|p| {
            if !matches!(p.kw(), Kw::IO_THREAD | Kw::SQL_THREAD | Kw::RELAY_THREAD) {
                return p.fail();
            }
            p.any_word()
        })
    }

    pub(super) fn stop(&mut self) -> PResult<Statement> {
        self.bump();
        let stop = if self.eat(Kw::GROUP_REPLICATION) {
            Replication::StopGroup
        } else {
            self.expect(Kw::REPLICA)?;
            let threads = self.replica_threads()?;
            Replication::Stop { threads, channel: self.opt_channel()? }
        };
        Ok(Statement::Replication(Box::new(stop)))
    }

    /// After CREATE.
    pub(super) fn create_change_stream(&mut self) -> PResult<Statement> {
        self.expect_all(&[Kw::CHANGE, Kw::STREAM])?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.ident()?;
        let mut scope = StreamScope::All;
        if self.eat(Kw::FOR) {
            scope = match self.eat_one_of(&[Kw::ALL, Kw::SCHEMA, Kw::DATABASE]) {
                Some(Kw::ALL) => {
                    self.expect(Kw::TABLES)?;
                    StreamScope::All
                }
                Some(_) => StreamScope::Schema(self.ident()?),
                None => {
                    if self.eat_one_of(&[Kw::TABLE, Kw::TABLES]).is_none() {
                        return self.fail();
                    }
                    StreamScope::Tables(self.comma_list(Self::object_name)?)
                }
            };
        }
        let start = if self.eat(Kw::FROM) { self.stream_start()? } else { StreamStart::Unsaid };
        let options = if self.eat(Kw::WITH) { self.stream_options()? } else { Vec::new() };
        let create = ChangeStream::Create { if_not_exists, name, scope, start, options };
        Ok(Statement::ChangeStream(Box::new(create)))
    }

    /// After ALTER.
    pub(super) fn alter_change_stream(&mut self) -> PResult<Statement> {
        self.expect_all(&[Kw::CHANGE, Kw::STREAM])?;
        let name = self.ident()?;
        let action = if self.eat(Kw::WITH) {
            StreamAction::Options(self.stream_options()?)
        } else if self.eat(Kw::FROM) {
            StreamAction::Start(self.stream_start()?)
        } else if self.eat_name("CONFIRM") && self.eat_name("GTID") {
            StreamAction::Confirm(self.text()?)
        } else {
            return self.fail();
        };
        Ok(Statement::ChangeStream(Box::new(ChangeStream::Alter { name, action })))
    }

    /// After DROP.
    pub(super) fn drop_change_stream(&mut self) -> PResult<Statement> {
        self.expect_all(&[Kw::CHANGE, Kw::STREAM])?;
        let if_exists = self.if_exists()?;
        let name = self.ident()?;
        Ok(Statement::ChangeStream(Box::new(ChangeStream::Drop { if_exists, name })))
    }

    fn stream_start(&mut self) -> PResult<StreamStart> {
        if self.eat(Kw::SNAPSHOT) {
            return Ok(StreamStart::Snapshot);
        }
        if self.eat_name("GTID") {
            return Ok(StreamStart::Gtid(self.text()?));
        }
        Ok(StreamStart::Moment(self.ident()?))
    }

    fn stream_options(&mut self) -> PResult<Vec<(Ident, ReplicationValue)>> {
        self.paren_list(|p| {
            let word = p.any_word()?;
            p.expect_tok(Tok::Eq)?;
            Ok((word, p.replication_value()?))
        })
    }
}
