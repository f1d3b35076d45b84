//! Statements by kind, one row each: its counter, its effect on an open transaction, and its name in error 1235
//! if it is not supported.
//!
//! The table names every statement, so that a new one does not compile until it has a row here.

use syntax::Statement;
use syntax::ast::{
    Grant, HandlerAction, MaintenanceKind, PluginStatement, Replication, ResourceGroup, RevokeKind,
    RoutineKind, TableMaintenance, Xa,
};

use crate::show_kind::counter_of_show;
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

const fn unsupported(counter: Counter, name: &'static str) -> StatementKind {
    StatementKind { unsupported: Some(name), ..counted(counter) }
}

/// What a statement cannot be as a whole: it has no counter.
const fn never(name: &'static str) -> StatementKind {
    StatementKind { unsupported: Some(name), ..PLAIN }
}

/// Names in error 1235.
const SONAME: &str = "CREATE FUNCTION ... SONAME";

/// Whether a statement ends the open transaction before it begins. Those on temporary tables decide for themselves.
pub fn commits_implicitly(statement: &Statement) -> bool {
    kind_of(statement).commits()
}

/// The kind of a statement.
pub fn kind_of(statement: &Statement) -> StatementKind {
    match statement {
        // Rows.
        Statement::Query(_)
        | Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Do(_) => PLAIN,
        Statement::Empty => counted(Counter::EMPTY_QUERY),
        Statement::Call(_) => counted(Counter::CALL_PROCEDURE),
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
        Statement::CreateRoutine(create) => may_join(CREATED_ROUTINE.of(create.kind)),
        Statement::AlterRoutine(alter) => may_join(ALTERED_ROUTINE.of(alter.kind)),
        Statement::DropRoutine(drop) => may_join(DROPPED_ROUTINE.of(drop.kind)),
        Statement::CreateTrigger(_) => may_join(Counter::CREATE_TRIGGER),
        Statement::DropTrigger(_) => may_join(Counter::DROP_TRIGGER),
        Statement::CreateLibrary(_) => defines(Counter::CREATE_LIBRARY),
        Statement::AlterLibrary(_) => defines(Counter::ALTER_LIBRARY),
        Statement::DropLibrary(_) => defines(Counter::DROP_LIBRARY),
        Statement::CreateEvent(_) => defines(Counter::CREATE_EVENT),
        Statement::AlterEvent(_) => defines(Counter::ALTER_EVENT),
        Statement::DropEvent(_) => defines(Counter::DROP_EVENT),
        // The reference has none.
        Statement::CreateSequence(_) | Statement::AlterSequence(_) | Statement::DropSequence(_) => {
            StatementKind::new(None, Before::CommitsToDefine)
        }
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
        Statement::LockInstance => counted(Counter::LOCK_INSTANCE),
        Statement::UnlockInstance => counted(Counter::UNLOCK_INSTANCE),
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
        Statement::Grant(grant) => defines(counter_of_grant(grant)),
        Statement::Revoke(revoke) => defines(counter_of_revoke(&revoke.what)),
        Statement::SetPassword(_) => defines(Counter::SET_PASSWORD),
        Statement::SetRole(_) => counted(Counter::SET_ROLE),
        Statement::SetDefaultRole { .. } => defines(Counter::ALTER_USER_DEFAULT_ROLE),
        // Information.
        Statement::Show(show) => StatementKind::new(counter_of_show(&show.kind), Before::Stays),
        Statement::Describe(_) => counted(Counter::SHOW_FIELDS),
        Statement::Help(_) => counted(Counter::HELP),
        Statement::GetDiagnostics(_) => counted(Counter::GET_DIAGNOSTICS),
        Statement::Signal(signal) if signal.resignal => counted(Counter::RESIGNAL),
        Statement::Signal(_) => counted(Counter::SIGNAL),
        // Administration.
        Statement::TableMaintenance(maintenance) => kind_of_maintenance(maintenance),
        Statement::Flush(_) => commits(Counter::FLUSH),
        Statement::ResetPersist { .. } => counted(Counter::RESET),
        Statement::Plugin(plugin) => commits(counter_of_plugin(plugin)),
        Statement::Reset(_) => commits(Counter::RESET),
        Statement::Shutdown => counted(Counter::SHUTDOWN),
        Statement::Restart => counted(Counter::RESTART),
        Statement::PurgeBinaryLogs { to: Some(_), .. } => counted(Counter::PURGE),
        Statement::PurgeBinaryLogs { .. } => counted(Counter::PURGE_BEFORE_DATE),
        Statement::Clone(_) => counted(Counter::CLONE),
        Statement::Binlog(_) => counted(Counter::BINLOG),
        Statement::KeyCache(cache) if cache.load => counted(Counter::PRELOAD_KEYS),
        Statement::KeyCache(_) => counted(Counter::ASSIGN_TO_KEYCACHE),
        Statement::AlterInstance(_) => counted(Counter::ALTER_INSTANCE),
        Statement::Server(server) if server.alter => commits(Counter::ALTER_SERVER),
        Statement::Server(_) => commits(Counter::CREATE_SERVER),
        Statement::DropServer { .. } => commits(Counter::DROP_SERVER),
        Statement::CreateSpatialReferenceSystem(_) => defines(Counter::CREATE_SRS),
        Statement::DropSpatialReferenceSystem { .. } => defines(Counter::DROP_SRS),
        Statement::ResourceGroup(group) => commits(counter_of_group(group)),
        Statement::SetResourceGroup { .. } => counted(Counter::SET_RESOURCE_GROUP),
        // The reference has none of them.
        Statement::ChangeStream(_) | Statement::Backup { .. } | Statement::AlterCluster(_) => PLAIN,
        Statement::Replication(replication) => kind_of_replication(replication),
        Statement::ImportTable(_) => defines(Counter::IMPORT),
        // Statements that are not supported.
        Statement::CreateLoadableFunction(_) => unsupported(Counter::CREATE_UDF, SONAME),
        Statement::Tablespace(_) => defines(Counter::ALTER_TABLESPACE),
        Statement::LogfileGroup(_) => commits(Counter::ALTER_TABLESPACE),
        Statement::Program(_) => never("stored programs"),
    }
}

/// Counters of a statement about a procedure, and about a function.
struct OfRoutines(Counter, Counter);

const CREATED_ROUTINE: OfRoutines = OfRoutines(Counter::CREATE_PROCEDURE, Counter::CREATE_FUNCTION);
const ALTERED_ROUTINE: OfRoutines = OfRoutines(Counter::ALTER_PROCEDURE, Counter::ALTER_FUNCTION);
const DROPPED_ROUTINE: OfRoutines = OfRoutines(Counter::DROP_PROCEDURE, Counter::DROP_FUNCTION);

impl OfRoutines {
    fn of(&self, kind: RoutineKind) -> Counter {
        match kind {
            RoutineKind::Procedure => self.0,
            RoutineKind::Function => self.1,
        }
    }
}

fn counter_of_grant(grant: &Grant) -> Counter {
    match grant {
        Grant::Roles { .. } => Counter::GRANT_ROLES,
        Grant::Privileges { .. } | Grant::Proxy { .. } => Counter::GRANT,
    }
}

fn counter_of_revoke(what: &RevokeKind) -> Counter {
    match what {
        RevokeKind::Roles { .. } => Counter::REVOKE_ROLES,
        RevokeKind::Everything => Counter::REVOKE_ALL,
        RevokeKind::Privileges { .. } | RevokeKind::Proxy(_) => Counter::REVOKE,
    }
}

fn counter_of_group(group: &ResourceGroup) -> Counter {
    match group {
        ResourceGroup::Create { .. } => Counter::CREATE_RESOURCE_GROUP,
        ResourceGroup::Alter { .. } => Counter::ALTER_RESOURCE_GROUP,
        ResourceGroup::Drop { .. } => Counter::DROP_RESOURCE_GROUP,
    }
}

fn kind_of_replication(statement: &Replication) -> StatementKind {
    let counter = match statement {
        Replication::ChangeSource { .. } => Counter::CHANGE_REPLICATION_SOURCE,
        Replication::ChangeFilter { .. } => Counter::CHANGE_REPL_FILTER,
        Replication::Start { .. } => Counter::REPLICA_START,
        Replication::Stop { .. } => Counter::REPLICA_STOP,
        Replication::StartGroup { .. } => Counter::GROUP_REPLICATION_START,
        Replication::StopGroup => Counter::GROUP_REPLICATION_STOP,
        // The reference has no such statement.
        Replication::SwitchOver(_) => return never("replication statements"),
    };
    unsupported(counter, "replication statements")
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
        assert_eq!(kind("IMPORT TABLE FROM 'x'").unsupported, None);
        assert_eq!(kind("CREATE FUNCTION f RETURNS STRING SONAME 'x'").unsupported, Some(SONAME));
        assert_eq!(kind("XA RECOVER").counter, Some(Counter::XA_RECOVER));
    }
}
