//! INSTALL PLUGIN, UNINSTALL PLUGIN, INSTALL COMPONENT and UNINSTALL COMPONENT: two spellings for one set of plugins.

use ::accounts::PrivilegeChecks;
use catalog::PrivilegeSet;
use errors::{Error, ErrorCode, Level, Result, bail, err};
use plugin_api::{OkInfo, Registry, ResultSink};
use programs::Running;
use syntax::ast::{Expr, ExprKind, PluginStatement, SystemVar, VarScope};
use types::Value;
use variables::{convert, shown};

use crate::session::Session;
use crate::set::changed_by;
use statements::components::{install, install_component, repeated, uninstall_component};
use statements::live_plugins::{Change, Setting};

/// Runs one of them.
///
/// # Errors
/// 1142; those of the plugin: it does not exist, is loaded already, is not loaded, must stay.
pub(crate) fn run_plugin(
    session: &mut Session,
    statement: &PluginStatement,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (table, needed) = match statement {
        PluginStatement::InstallPlugin { .. } => ("plugin", PrivilegeSet::INSERT),
        PluginStatement::UninstallPlugin { .. } => ("plugin", PrivilegeSet::DELETE),
        PluginStatement::InstallComponent { .. } => ("component", PrivilegeSet::INSERT),
        PluginStatement::UninstallComponent { .. } => ("component", PrivilegeSet::DELETE),
    };
    require_on_mysql(session, table, needed)?;
    session.check_writable()?;
    let registry = session.server.registry();
    let mut settings = Vec::new();
    let changes = match statement {
        PluginStatement::InstallPlugin { name, soname, if_not_exists } => {
            if *if_not_exists && registry.module(&name.text).is_some_and(|known| known.is_loaded) {
                let error = err!(UDF_EXISTS, name.text);
                return note_and_finish(session, &error, sink);
            }
            let directory = session.server.globals.text("plugin_dir");
            vec![install(&registry, &name.text, soname.as_deref(), &directory)?]
        }
        PluginStatement::UninstallPlugin { name, if_exists } => {
            if *if_exists && !registry.module(&name.text).is_some_and(|known| known.is_loaded) {
                let error = err!(SP_DOES_NOT_EXIST, "PLUGIN", name.text);
                return note_and_finish(session, &error, sink);
            }
            vec![Change::Remove(name.text.to_string())]
        }
        PluginStatement::InstallComponent { urns, set } => {
            let directory = session.server.globals.text("plugin_dir");
            let changes = urns.iter().map(|urn| install_component(&registry, urn, &directory));
            let changes: Vec<Change> = changes.collect::<Result<_>>()?;
            if let Some(urn) = repeated(urns) {
                bail!(COMPONENTS_CANT_LOAD, urn);
            }
            for set in set {
                settings.push(setting(session, &registry, &changes, set, running)?);
            }
            changes
        }
        PluginStatement::UninstallComponent { urns } => {
            if let Some(urn) = repeated(urns) {
                bail!(COMPONENTS_UNLOAD_DUPLICATE_IN_GROUP, urn);
            }
            let mut changes = Vec::with_capacity(urns.len());
            for urn in urns {
                let change = uninstall_component(&registry, urn);
                let unknown =
                    |error: &Error| error.code() == ErrorCode::COMPONENTS_UNLOAD_NOT_LOADED;
                if change.as_ref().is_err_and(unknown) {
                    session.working.warn(ErrorCode::WARN_COMPONENT_UNLOAD_NOT_LOADED, &[urn]);
                }
                changes.push(change?);
            }
            changes
        }
    };
    let changed = changed_by(session);
    let (server, cancel) = (&session.server, &session.shared.cancel);
    let commit = server.change_plugins(&changes, &settings, &changed, cancel)?;
    session.send_ok(sink, OkInfo { commit: Some(commit), ..OkInfo::default() })
}

/// `SET name = value` of INSTALL COMPONENT, for a variable of a plugin that it loads. Also those are set that only a start sets otherwise: the
/// plugin starts now.
fn setting(
    session: &mut Session,
    registry: &Registry,
    changes: &[Change],
    (scope, variable, value): &(Option<VarScope>, SystemVar, Expr),
    running: &Running<'_>,
) -> Result<Setting> {
    let name = match &variable.component {
        Some(component) => format!("{}.{}", component.text, variable.name.text),
        None => variable.name.text.to_string(),
    };
    let written = name.clone();
    // A component's variable has the name of MySQL's, or that of the plugin which the component was before.
    let is_dotted = session.server.globals.definitions.find_known(&name).is_some();
    let name = if is_dotted { name } else { name.replacen('.', "_", 1) };
    let is_own = |change: &Change| match change {
        Change::Load(plugin) => registry.module(plugin).is_some_and(|module| {
            let mut own = module.slots().variables().iter();
            own.any(|own| own.definition.name.eq_ignore_ascii_case(&name))
        }),
        Change::Add(_) | Change::Remove(_) => false,
    };
    let id = session.server.globals.definitions.find_known(&name);
    let id = id.filter(|_| changes.iter().any(is_own));
    let id = id.ok_or_else(|| err!(INSTALL_COMPONENT_SET_UNUSED_VALUE, written))?;
    let wanted = match &value.kind {
        // Bare words, like ON.
        ExprKind::Column(column) if column.table.is_none() => Value::text(&column.name.text),
        _ => session.evaluate(value, running)?.0,
    };
    let globals = &session.server.globals;
    let definition = globals.definitions.get(id);
    let converted = convert(definition, &wanted, &globals.get(id))?;
    if converted.truncated {
        let words: [&dyn std::fmt::Display; 2] = [&definition.name, &shown(&wanted)];
        session.working.warn(ErrorCode::TRUNCATED_WRONG_VALUE, &words);
    }
    let persists = *scope == Some(VarScope::Persist);
    Ok(Setting { id, value: converted.value, persists })
}

/// IF EXISTS and IF NOT EXISTS: what would have been an error is a note.
fn note_and_finish(session: &mut Session, error: &Error, sink: &mut dyn ResultSink) -> Result<()> {
    session.working.push_error(Level::Note, error);
    session.send_ok(sink, OkInfo::default())
}

fn require_on_mysql(session: &Session, table: &str, needed: PrivilegeSet) -> Result<()> {
    if session.privileges.allows_table("mysql", table, needed) {
        return Ok(());
    }
    let account = &session.account;
    let word = needed.names().next().unwrap_or_default();
    let host = session.shown_host(account);
    Err(err!(TABLEACCESS_DENIED_ERROR, word, account.user, host, table))
}
