//! Consistent reads of the rows of many keys.

use engine_api::{EngineError, EngineResult, FoundRows, KeyList, TableId};

use crate::error::io_error;
use crate::read::visible;
use crate::row::append_record;
use crate::transaction::Txn;

impl Txn {
    /// Reads rows in the order of their keys, so that those of a leaf need one descent.
    pub(crate) fn get_many_consistent(
        &mut self,
        table: TableId,
        keys: &KeyList,
        out: &mut FoundRows,
    ) -> EngineResult<()> {
        let tree = self.table_ref(table)?.clustered;
        let view = self.view()?;
        self.check_known(&view, table)?;
        keys.sort_into(&mut self.key_order);
        let Txn { shared, value, key_order, cancel, .. } = self;
        let system = &shared.system;
        let order = key_order.iter().map(|at| *at as usize);
        let mut near = None;
        for at in order {
            let key = keys.key(at);
            value.clear();
            let found =
                tree.get_ascending(&system.pool, key, &mut near, value).map_err(io_error)?;
            if !found || !visible(system, &view, value)? {
                continue;
            }
            let mut appended = Ok(());
            out.put_with(at, |rows| {
                rows.push_with(key, |record| appended = append_record(&system.pool, value, record));
            });
            appended.map_err(io_error)?;
        }
        match cancel.is_cancelled() {
            true => Err(EngineError::Cancelled),
            false => Ok(()),
        }
    }
}
