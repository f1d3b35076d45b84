//! XA statements of a session: XA RECOVER, and those that its transactions carry out.

use ::accounts::PrivilegeChecks;
use errors::Result;
use plugin_api::{ColumnMeta, OkInfo, ResultSink};
use syntax::ast::Xa;
use types::{CollationId, DataType};

use crate::session::Session;
use transactions::Writable;
use transactions::XaContext;

impl Session {
    /// XA ...
    pub(crate) fn run_xa(&mut self, xa: &Xa, sink: &mut dyn ResultSink) -> Result<()> {
        if let Xa::Recover { convert_xid } = xa {
            self.require_dynamic("XA_RECOVER_ADMIN")?;
            let rows = self.server.xa_branches.rows(*convert_xid);
            let state = self.state_info();
            return statements::sink::send_rows(sink, &recover_columns(), &rows, &state);
        }
        if matches!(xa, Xa::Commit { .. } | Xa::Rollback(_)) {
            crate::recording::commit(self);
        }
        let (globals, privileges) = (&self.server.globals, &*self.privileges);
        let around = XaContext {
            settings: &self.settings,
            writable: Writable { globals, privileges, is_applier: self.is_applier },
            tables_locked: self.locked.is_in_force(),
        };
        let done = self.transactions.run_xa(xa, around);
        if !self.transactions.has_open_transaction() {
            self.transactions.forget_recorded();
        }
        let commit = done?;
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo { commit, ..OkInfo::default() })
    }
}

fn recover_columns() -> [ColumnMeta; 4] {
    let number = DataType::bigint();
    let text = DataType::varchar(64, CollationId::UTF8MB4_0900_AI_CI);
    [
        ColumnMeta::computed("formatID", number.clone()),
        ColumnMeta::computed("gtrid_length", number.clone()),
        ColumnMeta::computed("bqual_length", number),
        ColumnMeta::computed("data", text),
    ]
}
