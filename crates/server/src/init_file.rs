//! `init_file`: statements that run at each start, before clients are served.

use std::path::Path;
use std::sync::Arc;

use plugin_api::{Answer, SessionFactory as _};
use session::Server;
use sys::files;
use tracing::{error, info};

/// Runs the statements of the file, as root@localhost, until one fails: that is in the error log, and the server starts.
///
/// # Errors
/// The file cannot be read, or no session is to be had: the server does not start, because what it was told to do first is unknown.
pub(crate) fn run(server: &Arc<Server>, directory: &Path) -> Result<(), String> {
    let name = server.global_text("init_file");
    if name.is_empty() {
        return Ok(());
    }
    let text = files::read(&directory.join(&name));
    let text = text.map_err(|reason| format!("init_file {name} cannot be read: {reason}"))?;
    let mut session = server.open_at_start().map_err(|error| format!("init_file: {error}"))?;
    session.set_multi_statements(true);
    // Results are of no use to anybody.
    let mut answer = Answer::new(usize::MAX);
    let outcome = session.query(&text, &[], &mut answer);
    match outcome.and_then(|_| answer.finish()) {
        Ok(_) => info!(file = name, "the statements of init_file have run"),
        Err(error) => error!(
            file = name,
            code = error.code().0,
            "a statement of init_file failed, and those after it were not run: {error}"
        ),
    }
    Ok(())
}
