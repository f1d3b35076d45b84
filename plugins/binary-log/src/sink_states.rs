//! What is known of the sinks of streams: the plugins that have them, what they delivered, how long they wait.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use errors::Result;
use plugin_api::SessionFactory;
use sys::sync::Mutex;

/// The longest wait after a failure, and the shortest.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(60);
pub(crate) const WAIT_MIN: Duration = Duration::from_secs(1);
/// What has been delivered of a stream since the server started.
#[derive(Clone, Debug, Default)]
pub(crate) struct SinkStatus {
    /// Events that the receiver keeps.
    pub events: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Why the last one did; none after one that did not.
    pub error: Option<String>,
}

/// States of the streams that have sinks, by name.
#[derive(Debug, Default)]
pub(crate) struct SinkStates(Mutex<HashMap<String, SinkStatus>>);

impl SinkStates {
    pub fn of(&self, stream: &str) -> SinkStatus {
        self.0.lock().get(stream).cloned().unwrap_or_default()
    }

    pub fn update(&self, stream: &str, change: impl FnOnce(&mut SinkStatus)) {
        change(self.0.lock().entry(stream.to_owned()).or_default());
    }

    pub fn forget(&self, stream: &str) {
        self.0.lock().remove(stream);
    }
}

/// How long after the `failures`th failure in a row another attempt is made.
pub(crate) fn wait_after(failures: u32) -> Duration {
    WAIT_MIN.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(WAIT_MAX)
}

/// The sink of a name.
///
/// # Errors
/// 1220: no plugin has it.
pub(crate) fn find(
    sessions: &Arc<dyn SessionFactory>,
    name: &str,
) -> Result<Arc<dyn plugin_api::StreamSink>> {
    let found = sessions.stream_sinks().into_iter().find(|sink| sink.name() == name);
    found.ok_or_else(|| {
        let text = format!("no plugin that is loaded has the sink {name:?}");
        errors::err!(ERROR_WHEN_EXECUTING_COMMAND, "CHANGE STREAM", text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_minute() {
        let waits: Vec<u64> = (1..=8).map(|failures| wait_after(failures).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    }
}
