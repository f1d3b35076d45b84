//! Statements by kind, one row each: its counter, its effect on an open transaction, and its name in error 1235
//! if it is not supported.
//!
//! The table names every statement, so that a new one does not compile until it has a row here.

use syntax::Statement;
use syntax::ast::{
    Grant, HandlerAction, MaintenanceKind, PluginStatement, RevokeKind, TableMaintenance, Xa,
};

use crate::status::Counter;

/// The effect of a statement on an open transaction before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// It stays open.
    Stays,
    /// It is committed.
    Commits,
    /// It is committed, and the statement changes definitions: objects that all sessions see, other than rows.
    CommitsToDefine,
    /// The same, but with `transactional_ddl` the statement is part of the open transaction.
    CommitsOrJoins,
}

/// The dispatcher's facts about a statement by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementKind {
    /// Its Com_ counter. `None` for statements with a plan, which are counted when that runs, and for those that the reference does not count.
    pub counter: Option<Counter>,
    pub before: Before,
    /// Its name in error 1235; `None` for supported statements.
    pub unsupported: Option<&'static str>,
}

impl StatementKind {
    const fn new(counter: Option<Counter>, before: Before) -> StatementKind {
        StatementKind { counter, before, unsupported: None }
    }

    /// Whether it ends the open transaction before it begins.
    #[inline]
    pub fn commits(self) -> bool {
        self.before != Before::Stays
    }
}

/// No counter, and the transaction stays open.
const PLAIN: StatementKind = StatementKind::new(None, Before::Stays);

const fn counted(counter: Counter) -> StatementKind {
    StatementKind::new(Some(counter), Before::Stays)
}

const fn commits(counter: Counter) -> StatementKind {
    StatementKind::new(Some(counter), Before::Commits)
}

const fn defines(counter: Counter) -> StatementKind {
    StatementKind::new(Some(counter), Before::CommitsToDefine)
}

const fn may_join(counter: Counter) -> StatementKind {
    StatementKind::new(Some(counter), Before::CommitsOrJoins)
}

/// Definitions that the reference does not count separately.
const DEFINES: StatementKind = StatementKind::new(None, Before::CommitsToDefine);
const MAY_JOIN: StatementKind = StatementKind::new(None, Before::CommitsOrJoins);

const fn unsupported(name: &'static str) -> StatementKind {
    StatementKind { unsupported: Some(name), ..PLAIN }
}

/// Whether a statement ends the open transaction before it begins. Those on temporary tables decide for themselves.
pub fn commits_implicitly(statement: &Statement) -> bool {
    kind_of(statement).commits()
}

/// The kind of a statement.
pub fn kind_of(statement: &Statement) -> StatementKind {
    match statement {
        // Rows.
        Statement::Empty
        | Statement::Query(_)
        | Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Do(_)
        | Statement::Call(_) => PLAIN,
        Statement::Handler(handler) => kind_of_handler(&handler.action),
        Statement::LoadData(_) => counted(Counter::LOAD),
        Statement::Explain(_) => counted(Counter::EXPLAIN),
        // The statement inside counts.
        Statement::Profile(_) => PLAIN,
        // Definitions.
        Statement::CreateDatabase(_) => may_join(Counter::CREATE_DB),
        Statement::AlterDatabase(_) => may_join(Counter::ALTER_DB),
        Statement::DropDatabase(_) => may_join(Counter::DROP_DB),
        Statement::CreateTable(create) if create.temporary => counted(Counter::CREATE_TABLE),
        Statement::CreateTable(_) => may_join(Counter::CREATE_TABLE),
        Statement::AlterTable(_) => may_join(Counter::ALTER_TABLE),
        Statement::DropTable(drop) if drop.temporary => counted(Counter::DROP_TABLE),
        Statement::DropTable(_) => may_join(Counter::DROP_TABLE),
        Statement::RenameTable(_) => may_join(Counter::RENAME_TABLE),
        Statement::TruncateTable(_) => may_join(Counter::TRUNCATE),
        Statement::CreateIndex(_) => may_join(Counter::CREATE_INDEX),
        Statement::DropIndex(_) => may_join(Counter::DROP_INDEX),
        Statement::CreateView(_) | Statement::AlterView(_) => may_join(Counter::CREATE_VIEW),
        Statement::DropView(_) => may_join(Counter::DROP_VIEW),
        Statement::CreateRoutine(_)
        | Statement::AlterRoutine(_)
        | Statement::DropRoutine(_)
        | Statement::CreateTrigger(_)
        | Statement::DropTrigger(_) => MAY_JOIN,
        Statement::CreateLibrary(_)
        | Statement::AlterLibrary(_)
        | Statement::DropLibrary(_)
        | Statement::CreateEvent(_)
        | Statement::AlterEvent(_)
        | Statement::DropEvent(_) => DEFINES,
        // Transactions.
        Statement::StartTransaction(_) => commits(Counter::BEGIN),
        Statement::Commit(_) => counted(Counter::COMMIT),
        Statement::Rollback(_) => counted(Counter::ROLLBACK),
        Statement::Savepoint(_) => counted(Counter::SAVEPOINT),
        Statement::RollbackTo(_) => counted(Counter::ROLLBACK_TO),
        Statement::ReleaseSavepoint(_) => counted(Counter::RELEASE_SAVEPOINT),
        Statement::SetTransaction(_) => counted(Counter::SET_OPTION),
        Statement::LockTables(_) => commits(Counter::LOCK_TABLES),
        Statement::UnlockTables => counted(Counter::UNLOCK_TABLES),
        Statement::LockInstance | Statement::UnlockInstance => PLAIN,
        Statement::Xa(xa) => counted(counter_of_xa(xa)),
        // Prepared statements.
        Statement::Prepare { .. } => counted(Counter::PREPARE_SQL),
        Statement::Execute { .. } | Statement::ExecuteText { .. } => counted(Counter::EXECUTE_SQL),
        Statement::Deallocate(_) => counted(Counter::DEALLOC_SQL),
        // Session.
        Statement::Set(_) => counted(Counter::SET_OPTION),
        Statement::Use(_) => counted(Counter::CHANGE_DB),
        Statement::Kill { .. } => counted(Counter::KILL),
        // Accounts.
        Statement::CreateUser(_) => defines(Counter::CREATE_USER),
        Statement::AlterUser(_) => defines(Counter::ALTER_USER),
        Statement::DropUser { .. } => defines(Counter::DROP_USER),
        Statement::RenameUser(_) => defines(Counter::RENAME_USER),
        Statement::CreateRole { .. } => defines(Counter::CREATE_ROLE),
        Statement::DropRole { .. } => defines(Counter::DROP_ROLE),
        Statement::Grant(grant) => defines(match **grant {
            Grant::Roles { .. } => Counter::GRANT_ROLES,
            Grant::Privileges { .. } | Grant::Proxy { .. } => Counter::GRANT,
        }),
        Statement::Revoke(revoke) => defines(match revoke.what {
            RevokeKind::Roles { .. } => Counter::REVOKE_ROLES,
            RevokeKind::Privileges { .. } | RevokeKind::Everything | RevokeKind::Proxy(_) => {
                Counter::REVOKE
            }
        }),
        Statement::SetPassword(_) => defines(Counter::SET_PASSWORD),
        Statement::SetRole(_) => counted(Counter::SET_ROLE),
        Statement::SetDefaultRole { .. } => defines(Counter::SET_ROLE),
        // Information.
        Statement::Show(_) | Statement::Describe(_) => counted(Counter::SHOW),
        Statement::Help(_) => counted(Counter::HELP),
        Statement::GetDiagnostics(_) => counted(Counter::GET_DIAGNOSTICS),
        Statement::Signal(_) => counted(Counter::SIGNAL),
        // Administration.
        Statement::TableMaintenance(maintenance) => kind_of_maintenance(maintenance),
        Statement::Flush(_) => commits(Counter::FLUSH),
        Statement::ResetPersist { .. } => counted(Counter::RESET),
        Statement::Plugin(plugin) => commits(counter_of_plugin(plugin)),
        Statement::Reset(_) => commits(Counter::RESET),
        Statement::Shutdown => counted(Counter::SHUTDOWN),
        Statement::PurgeBinaryLogs { .. }
        | Statement::ChangeStream(_)
        | Statement::Backup { .. }
        | Statement::Clone(_)
        | Statement::Binlog(_)
        | Statement::KeyCache(_)
        | Statement::AlterInstance(_)
        | Statement::AlterCluster(_) => PLAIN,
        // Statements that are not supported.
        Statement::ImportTable(_) => unsupported("IMPORT TABLE"),
        Statement::CreateSequence(_) => unsupported("CREATE SEQUENCE"),
        Statement::AlterSequence(_) => unsupported("ALTER SEQUENCE"),
        Statement::DropSequence(_) => unsupported("DROP SEQUENCE"),
        Statement::CreateLoadableFunction(_) => unsupported("CREATE FUNCTION ... SONAME"),
        Statement::Server(_) => unsupported("CREATE SERVER and ALTER SERVER"),
        Statement::DropServer { .. } => unsupported("DROP SERVER"),
        Statement::Tablespace(_) => unsupported("TABLESPACE"),
        Statement::LogfileGroup(_) => unsupported("LOGFILE GROUP"),
        Statement::CreateSpatialReferenceSystem(_)
        | Statement::DropSpatialReferenceSystem { .. } => unsupported("SPATIAL REFERENCE SYSTEM"),
        Statement::ResourceGroup(_) => StatementKind::new(None, Before::Commits),
        Statement::SetResourceGroup { .. } => PLAIN,
        Statement::Restart => unsupported("RESTART"),
        Statement::Replication(_) => unsupported("replication statements"),
        Statement::Program(_) => unsupported("stored programs"),
    }
}

fn counter_of_plugin(plugin: &PluginStatement) -> Counter {
    match plugin {
        PluginStatement::InstallPlugin { .. } => Counter::INSTALL_PLUGIN,
        PluginStatement::UninstallPlugin { .. } => Counter::UNINSTALL_PLUGIN,
        PluginStatement::InstallComponent { .. } => Counter::INSTALL_COMPONENT,
        PluginStatement::UninstallComponent { .. } => Counter::UNINSTALL_COMPONENT,
    }
}

fn kind_of_handler(action: &HandlerAction) -> StatementKind {
    match action {
        HandlerAction::Open { .. } => counted(Counter::HA_OPEN),
        HandlerAction::Close => counted(Counter::HA_CLOSE),
        HandlerAction::Read { .. } => PLAIN,
    }
}

fn counter_of_xa(xa: &Xa) -> Counter {
    match xa {
        Xa::Start { .. } => Counter::XA_START,
        Xa::End { .. } => Counter::XA_END,
        Xa::Prepare(_) => Counter::XA_PREPARE,
        Xa::Commit { .. } => Counter::XA_COMMIT,
        Xa::Rollback(_) => Counter::XA_ROLLBACK,
        Xa::Recover { .. } => Counter::XA_RECOVER,
    }
}

/// CHECKSUM TABLE only reads.
fn kind_of_maintenance(maintenance: &TableMaintenance) -> StatementKind {
    match maintenance.kind {
        MaintenanceKind::Check => commits(Counter::CHECK),
        MaintenanceKind::Analyze => commits(Counter::ANALYZE),
        MaintenanceKind::Optimize => commits(Counter::OPTIMIZE),
        MaintenanceKind::Repair => commits(Counter::REPAIR),
        MaintenanceKind::Checksum => counted(Counter::CHECKSUM),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> StatementKind {
        let parsed = syntax::parse_one(text, &syntax::ParseOptions::default());
        kind_of(&parsed.expect(text).0)
    }

    #[test]
    fn definitions_of_temporary_tables_commit_nothing() {
        assert_eq!(kind("CREATE TABLE t (a INT)").before, Before::CommitsOrJoins);
        assert_eq!(kind("CREATE TEMPORARY TABLE t (a INT)").before, Before::Stays);
        assert_eq!(kind("DROP TABLE t").before, Before::CommitsOrJoins);
        assert_eq!(kind("DROP TEMPORARY TABLE t").before, Before::Stays);
    }

    #[test]
    fn a_new_transaction_commits_without_defining() {
        for text in ["BEGIN", "LOCK TABLES t READ", "FLUSH TABLES", "ANALYZE TABLE t"] {
            assert_eq!(kind(text).before, Before::Commits, "{text}");
        }
        for text in ["CHECKSUM TABLE t", "COMMIT", "SET a = 1", "SET ROLE NONE", "SELECT 1"] {
            assert_eq!(kind(text).before, Before::Stays, "{text}");
        }
        for text in ["SET PASSWORD = 'x'", "SET DEFAULT ROLE NONE TO u", "GRANT r TO u"] {
            assert_eq!(kind(text).before, Before::CommitsToDefine, "{text}");
        }
    }

    #[test]
    fn only_what_is_not_built_has_a_name_for_its_refusal() {
        assert_eq!(kind("SELECT 1").unsupported, None);
        assert_eq!(kind("HANDLER t OPEN").unsupported, None);
        assert_eq!(kind("RESTART").unsupported, Some("RESTART"));
        assert_eq!(kind("XA RECOVER").counter, Some(Counter::XA_RECOVER));
    }
}
