//! ALTER CLUSTER and its EXPLAIN, by the plugin of the cluster.

use ::accounts::PrivilegeChecks;
use errors::{Error, Result};
use plugin_api::{OkInfo, ResultSink};

use crate::session::Session;

/// Runs or explains it.
///
/// # Errors
/// 1235 without such a plugin, 1227, the plugin's.
pub(crate) fn alter_cluster(
    session: &mut Session,
    change: &str,
    is_explained: bool,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let Some(control) = session.server.registry().cluster().cloned() else {
        return Err(Error::not_supported("ALTER CLUSTER without the plugin ndb"));
    };
    session.require_dynamic(control.privilege(change)?)?;
    if is_explained {
        let rows = describe::cluster_rows(&control.explain(change)?);
        let state = session.state_info();
        return statements::sink::send_rows(sink, &describe::cluster_columns(), &rows, &state);
    }
    control.run(change, &session.shared.cancel)?;
    session.send_ok(sink, OkInfo::default())
}
