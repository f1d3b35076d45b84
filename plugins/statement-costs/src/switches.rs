//! What is recorded of a thread, as the words YES and NO.

use errors::{Result, err};
use types::Value;

/// What is recorded of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switches {
    /// Anything.
    pub(crate) is_instrumented: bool,
    /// Its single statements and stages, after they ended.
    pub(crate) has_history: bool,
}

impl Default for Switches {
    fn default() -> Switches {
        Switches { is_instrumented: true, has_history: true }
    }
}

impl Switches {
    /// Nothing is recorded.
    pub(crate) const NONE: Switches = Switches { is_instrumented: false, has_history: false };

    pub(crate) fn columns(self) -> [Value; 2] {
        let word = |is_on| Value::text(if is_on { "YES" } else { "NO" });
        [word(self.is_instrumented), word(self.has_history)]
    }
}

/// Whether a word for the switch in `column` of row `number` says that it is on.
///
/// # Errors
/// 1265: neither YES nor NO.
pub(crate) fn switch(value: &Value, column: &str, number: u64) -> Result<bool> {
    match plugin_api::kit::text(value).to_ascii_uppercase().as_str() {
        "YES" => Ok(true),
        "NO" => Ok(false),
        _ => Err(err!(DATA_TRUNCATED, column, number)),
    }
}
