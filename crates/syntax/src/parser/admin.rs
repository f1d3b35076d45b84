//! Administration: maintenance of tables, FLUSH, RESET, plugins, key caches, CLONE, KILL.

use super::{PResult, Parser};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::Tok;

impl<'a> Parser<'a> {
    pub(super) fn kill(&mut self) -> PResult<Statement> {
        self.bump();
        let query = self.at(Kw::QUERY);
        if query || self.at(Kw::CONNECTION) {
            self.bump();
        }
        Ok(Statement::Kill { query, id: self.boxed_expr()? })
    }

    pub(super) fn table_maintenance(&mut self) -> PResult<Statement> {
        let kind = match self.kw() {
            Kw::CHECK => MaintenanceKind::Check,
            Kw::ANALYZE => MaintenanceKind::Analyze,
            Kw::OPTIMIZE => MaintenanceKind::Optimize,
            Kw::REPAIR => MaintenanceKind::Repair,
            _ => MaintenanceKind::Checksum,
        };
        self.bump();
        let logged = matches!(
            kind,
            MaintenanceKind::Analyze | MaintenanceKind::Optimize | MaintenanceKind::Repair
        );
        let no_binlog = logged && self.opt_no_binlog();
        if self.eat_one_of(&[Kw::TABLE, Kw::TABLES]).is_none() {
            return self.fail();
        }
        let tables = self.comma_list(Self::object_name)?;
        let mut options = Vec::new();
        let mut histogram = None;
        if kind == MaintenanceKind::Analyze {
            histogram = self.opt_histogram()?;
        } else if kind != MaintenanceKind::Optimize {
            options = self.maintenance_options(kind)?;
        }
        let maintenance = TableMaintenance { kind, no_binlog, tables, options, histogram };
        Ok(Statement::TableMaintenance(Box::new(maintenance)))
    }

    fn maintenance_options(&mut self, kind: MaintenanceKind) -> PResult<Vec<Box<str>>> {
        let mut options: Vec<Box<str>> = Vec::new();
        loop {
            let kw = self.kw();
            let check = kind == MaintenanceKind::Check;
            let repair = kind == MaintenanceKind::Repair;
            let known = match kw {
                Kw::QUICK | Kw::EXTENDED => true,
                Kw::FAST | Kw::MEDIUM | Kw::CHANGED => check,
                Kw::USE_FRM => repair,
                Kw::FOR if check => {
                    self.bump();
                    if !self.at(Kw::UPGRADE) {
                        return self.fail();
                    }
                    self.bump();
                    options.push("FOR UPGRADE".into());
                    continue;
                }
                _ => false,
            };
            if !known {
                return Ok(options);
            }
            options.push(kw.name().into());
            self.bump();
        }
    }

    fn opt_histogram(&mut self) -> PResult<Option<Histogram>> {
        let Some(word) = self.eat_one_of(&[Kw::UPDATE, Kw::DROP]) else { return Ok(None) };
        self.expect_all(&[Kw::HISTOGRAM, Kw::ON])?;
        let columns = self.ident_list()?;
        if word == Kw::DROP {
            return Ok(Some(Histogram::Drop { columns }));
        }
        let (mut buckets, mut auto_update, mut data) = (None, None, None);
        if self.eat(Kw::USING) {
            self.expect(Kw::DATA)?;
            data = Some(self.text()?);
        } else {
            if self.eat(Kw::WITH) {
                buckets = Some(self.number()?);
                self.expect(Kw::BUCKETS)?;
            }
            if let Some(mode) = self.eat_one_of(&[Kw::AUTO, Kw::MANUAL]) {
                self.expect(Kw::UPDATE)?;
                auto_update = Some(mode == Kw::AUTO);
            }
        }
        Ok(Some(Histogram::Update { columns, buckets, auto_update, data }))
    }

    pub(super) fn flush(&mut self) -> PResult<Statement> {
        self.bump();
        let no_binlog = self.opt_no_binlog();
        if self.eat_one_of(&[Kw::TABLES, Kw::TABLE]).is_some() {
            let mut tables = Vec::new();
            if self.at_ident() {
                tables = self.comma_list(Self::object_name)?;
            }
            let mode = if self.eat(Kw::WITH) {
                self.expect_all(&[Kw::READ, Kw::LOCK])?;
                FlushTablesMode::WithReadLock
            } else if !tables.is_empty() && self.eat(Kw::FOR) {
                self.expect(Kw::EXPORT)?;
                FlushTablesMode::ForExport
            } else {
                FlushTablesMode::Close
            };
            let items = vec![FlushItem::Tables { tables, mode }];
            return Ok(Statement::Flush(Box::new(Flush { no_binlog, items })));
        }
        let items = self.comma_list(Self::flush_item)?;
        Ok(Statement::Flush(Box::new(Flush { no_binlog, items })))
    }

    fn flush_item(&mut self) -> PResult<FlushItem> {
        let kw = self.kw();
        let logs = match kw {
            Kw::ERROR => Some(FlushItem::ErrorLogs),
            Kw::ENGINE => Some(FlushItem::EngineLogs),
            Kw::GENERAL => Some(FlushItem::GeneralLogs),
            Kw::SLOW => Some(FlushItem::SlowLogs),
            Kw::BINARY => Some(FlushItem::BinaryLogs),
            _ => None,
        };
        if let Some(item) = logs {
            self.bump();
            self.expect(Kw::LOGS)?;
            return Ok(item);
        }
        let item = match kw {
            Kw::RELAY => {
                self.bump();
                self.expect(Kw::LOGS)?;
                return Ok(FlushItem::RelayLogs { channel: self.opt_channel()? });
            }
            Kw::LOGS => FlushItem::Logs,
            Kw::PRIVILEGES => FlushItem::Privileges,
            Kw::OPTIMIZER_COSTS => FlushItem::OptimizerCosts,
            Kw::STATUS => FlushItem::Status,
            Kw::USER_RESOURCES | Kw::RESOURCES => FlushItem::UserResources,
            _ => return self.fail(),
        };
        self.bump();
        Ok(item)
    }

    pub(super) fn reset(&mut self) -> PResult<Statement> {
        self.bump();
        if self.eat(Kw::PERSIST) {
            let if_exists = self.if_exists()?;
            let mut name = None;
            if if_exists || self.at_ident() {
                let first = self.ident()?;
                name = Some(Box::new(if self.eat_tok(Tok::Dot) {
                    let inner = self.ident()?;
                    SystemVar { scope: None, component: Some(first), name: inner }
                } else {
                    SystemVar { scope: None, component: None, name: first }
                }));
            }
            return Ok(Statement::ResetPersist { if_exists, name });
        }
        Ok(Statement::Reset(self.comma_list(Self::reset_item)?))
    }

    fn reset_item(&mut self) -> PResult<ResetItem> {
        match self.kw() {
            Kw::REPLICA => {
                self.bump();
                let all = self.eat(Kw::ALL);
                Ok(ResetItem::Replica { all, channel: self.opt_channel()? })
            }
            Kw::BINARY => {
                self.bump();
                self.expect_all(&[Kw::LOGS, Kw::AND, Kw::GTIDS])?;
                let to = if self.eat(Kw::TO) { Some(self.number()?) } else { None };
                Ok(ResetItem::BinaryLogsAndGtids { to })
            }
            _ => self.fail(),
        }
    }

    pub(super) fn purge(&mut self) -> PResult<Statement> {
        self.bump();
        self.expect_all(&[Kw::BINARY, Kw::LOGS])?;
        if self.eat(Kw::TO) {
            return Ok(Statement::PurgeBinaryLogs { to: Some(self.text()?), before: None });
        }
        self.expect(Kw::BEFORE)?;
        Ok(Statement::PurgeBinaryLogs { to: None, before: Some(self.boxed_expr()?) })
    }

    pub(super) fn plugin(&mut self) -> PResult<Statement> {
        let install = self.at(Kw::INSTALL);
        self.bump();
        let plugin = if self.eat(Kw::PLUGIN) {
            if install {
                let if_not_exists = self.if_not_exists()?;
                let name = self.ident()?;
                let soname = if self.eat(Kw::SONAME) { Some(self.text()?) } else { None };
                PluginStatement::InstallPlugin { name, soname, if_not_exists }
            } else {
                let if_exists = self.if_exists()?;
                PluginStatement::UninstallPlugin { name: self.ident()?, if_exists }
            }
        } else {
            self.expect(Kw::COMPONENT)?;
            let urns = self.comma_list(Self::text)?;
            if install {
                let set = self.component_settings()?;
                PluginStatement::InstallComponent { urns, set }
            } else {
                PluginStatement::UninstallComponent { urns }
            }
        };
        Ok(Statement::Plugin(Box::new(plugin)))
    }

    #[allow(clippy::type_complexity)]
    fn component_settings(&mut self) -> PResult<Vec<(Option<VarScope>, SystemVar, Expr)>> {
        if !self.eat(Kw::SET) {
            return Ok(Vec::new());
        }
        self.comma_list(|p| {
            let scope = match p.eat_one_of(&[Kw::GLOBAL, Kw::PERSIST]) {
                Some(Kw::GLOBAL) => Some(VarScope::Global),
                Some(_) => Some(VarScope::Persist),
                None => None,
            };
            let first = p.ident()?;
            let (component, name) =
                if p.eat_tok(Tok::Dot) { (Some(first), p.ident()?) } else { (None, first) };
            p.set_eq()?;
            let value = *p.set_value()?;
            Ok((scope, SystemVar { scope, component, name }, value))
        })
    }

    pub(super) fn backup(&mut self) -> PResult<Statement> {
        self.bump();
        self.expect_all(&[Kw::DATABASE, Kw::TO])?;
        let directory = if self.eat_name("STREAM") { None } else { Some(self.text()?) };
        let is_plain = directory.is_none() && self.eat_name("PLAIN");
        Ok(Statement::Backup { directory, is_plain })
    }

    pub(super) fn clone_statement(&mut self) -> PResult<Statement> {
        self.bump();
        if self.eat(Kw::LOCAL) {
            self.expect_all(&[Kw::DATA, Kw::DIRECTORY])?;
            self.opt_eq();
            let directory = self.text()?;
            return Ok(Statement::Clone(Box::new(CloneStatement::Local { directory })));
        }
        self.expect_all(&[Kw::INSTANCE, Kw::FROM])?;
        let user = self.user_name()?;
        self.expect_tok(Tok::Colon)?;
        let port = self.number()?;
        self.expect_all(&[Kw::IDENTIFIED, Kw::BY])?;
        let password = self.text()?;
        let mut directory = None;
        if self.eat(Kw::DATA) {
            self.expect(Kw::DIRECTORY)?;
            self.opt_eq();
            directory = Some(self.text()?);
        }
        let require_ssl = self.require_ssl()?;
        let (host, user) = (user.host.unwrap_or_default(), user.user);
        let clone = CloneStatement::Instance { user, host, port, password, directory, require_ssl };
        Ok(Statement::Clone(Box::new(clone)))
    }

    /// `[REQUIRE [NO] SSL]`.
    pub(super) fn require_ssl(&mut self) -> PResult<Option<bool>> {
        if !self.eat(Kw::REQUIRE) {
            return Ok(None);
        }
        let is_required = !self.eat(Kw::NO);
        self.expect(Kw::SSL).map(|()| Some(is_required))
    }

    pub(super) fn cache_index(&mut self) -> PResult<Statement> {
        self.bump();
        self.expect(Kw::INDEX)?;
        let tables = self.comma_list(|p| p.key_cache_table(false))?;
        self.expect(Kw::IN)?;
        let cache = if self.eat(Kw::DEFAULT) { None } else { Some(self.ident()?) };
        Ok(Statement::KeyCache(Box::new(KeyCache { load: false, tables, cache })))
    }

    /// After LOAD, at INDEX.
    pub(super) fn load_index(&mut self) -> PResult<Statement> {
        self.expect_all(&[Kw::INDEX, Kw::INTO, Kw::CACHE])?;
        let tables = self.comma_list(|p| p.key_cache_table(true))?;
        Ok(Statement::KeyCache(Box::new(KeyCache { load: true, tables, cache: None })))
    }

    fn key_cache_table(&mut self, load: bool) -> PResult<KeyCacheTable> {
        let name = self.object_name()?;
        let mut partitions = None;
        if self.eat(Kw::PARTITION) {
            self.expect_tok(Tok::LParen)?;
            partitions = Some(if self.eat(Kw::ALL) {
                PartitionNames::All
            } else {
                PartitionNames::List(self.ident_list()?)
            });
            self.expect_tok(Tok::RParen)?;
        }
        let mut indexes = Vec::new();
        if self.eat(Kw::INDEX) || self.eat(Kw::KEY) {
            self.expect_tok(Tok::LParen)?;
            if !self.at_tok(Tok::RParen) {
                indexes = self.comma_list(Self::index_name)?;
            }
            self.expect_tok(Tok::RParen)?;
        }
        let ignore_leaves = load && self.eat2(Kw::IGNORE, Kw::LEAVES);
        Ok(KeyCacheTable { name, partitions, indexes, ignore_leaves })
    }

    // --- ALTER INSTANCE

    /// At INSTANCE.
    pub(super) fn alter_instance(&mut self) -> PResult<Statement> {
        self.bump();
        let alter = match self.eat_one_of(&[Kw::ROTATE, Kw::RELOAD, Kw::ENABLE, Kw::DISABLE]) {
            Some(Kw::ROTATE) => {
                let binlog = self.eat(Kw::BINLOG);
                if !binlog && !self.eat_name("INNODB") {
                    return self.fail();
                }
                self.expect(Kw::MASTER)?;
                self.expect(Kw::KEY)?;
                match binlog {
                    true => AlterInstance::RotateBinlogMasterKey,
                    false => AlterInstance::RotateInnodbMasterKey,
                }
            }
            Some(Kw::RELOAD) => {
                if self.eat(Kw::KEYRING) {
                    AlterInstance::ReloadKeyring
                } else {
                    self.reload_tls()?
                }
            }
            Some(word) => {
                if !self.eat_name("INNODB") || !self.eat_name("REDO_LOG") {
                    return self.fail();
                }
                match word == Kw::ENABLE {
                    true => AlterInstance::EnableRedoLog,
                    false => AlterInstance::DisableRedoLog,
                }
            }
            None => return self.fail(),
        };
        Ok(Statement::AlterInstance(alter))
    }

    fn reload_tls(&mut self) -> PResult<AlterInstance> {
        self.expect(Kw::TLS)?;
        let mut channel = None;
        if self.eat(Kw::FOR) {
            self.expect(Kw::CHANNEL)?;
            channel = Some(self.ident()?);
        }
        let no_rollback_on_error = self.eat(Kw::NO);
        if no_rollback_on_error {
            self.expect_all(&[Kw::ROLLBACK, Kw::ON, Kw::ERROR])?;
        }
        Ok(AlterInstance::ReloadTls { channel, no_rollback_on_error })
    }
}
