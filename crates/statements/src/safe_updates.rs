//! `sql_safe_updates`: plans that may change a whole table without being asked to.

use errors::{Result, bail};
use plan::{Access, Physical, Plan};

/// UPDATE and DELETE need a LIMIT or an index that finds their rows.
///
/// # Errors
/// 1175: they have neither.
pub fn refuse_unsafe_update(plan: &Plan) -> Result<()> {
    let (root, limit) = match plan {
        Plan::Update(update) => (&update.root, &update.limit),
        Plan::Delete(delete) => (&delete.root, &delete.limit),
        Plan::Query(_) | Plan::Insert(_) | Plan::Do { .. } | Plan::Rows { .. } => return Ok(()),
    };
    if limit.is_none() && scans_everything(root) {
        bail!(UPDATE_WITHOUT_KEY_IN_SAFE_MODE);
    }
    Ok(())
}

fn scans_everything(root: &Physical) -> bool {
    match root {
        Physical::Scan { access, .. } => matches!(access, Access::Full { .. }),
        Physical::Filter { input, .. }
        | Physical::Project { input, .. }
        | Physical::Sort { input, .. } => scans_everything(input),
        Physical::Limit { .. } => false,
        _ => false,
    }
}
