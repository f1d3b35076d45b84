//! `change_log`: the changes of chosen tables, as JSON lines in a file that is rotated by size, and the last ones in a table.
//!
//! A transaction is written when it has committed, in the order of commits; the session that committed it waits until the operating system
//! has the lines. A write that fails is counted in `Change_log_write_errors` and its changes in `Change_log_changes_lost`.

mod log;
mod table;
mod tables;

use std::sync::Arc;

use plugin_api::variable::as_text;
use plugin_api::{Plugin, PluginInfo, Registrar};

use crate::log::{ChangeLog, ChangeLogJob};
use crate::tables::Tables;

/// The plugin.
#[derive(Debug)]
pub struct ChangeLogPlugin;

impl Plugin for ChangeLogPlugin {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("change_log", "Writes the changes of chosen tables to a file.").on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let log = Arc::new(ChangeLog::default());
        registrar.checked_variable(&log::TABLES, &log.table_names, |value| {
            Tables::parse(&as_text(value)).map(drop)
        });
        registrar.variable(&log::FILE, &log.file_name);
        registrar.variable(&log::SIZE, &log.size_bytes);
        registrar.variable(&log::KEEP, &log.keep);
        let (written, lost, failed) = (log.clone(), log.clone(), log.clone());
        registrar.status("Change_log_changes", move || written.counts.written().to_string());
        registrar.status("Change_log_changes_lost", move || lost.counts.lost().to_string());
        registrar.status("Change_log_write_errors", move || failed.counts.failed().to_string());
        registrar.change_sink(log.clone());
        registrar.log_sink(log.clone());
        registrar.information_table(log.recent.clone());
        registrar.job(Arc::new(ChangeLogJob(log)));
    }
}
