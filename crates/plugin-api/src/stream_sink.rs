//! The slot for sinks of change streams: plugins that bring the events of a stream somewhere else.

use std::fmt;
use std::time::Duration;

use engine_api::CancelToken;
use errors::Result;

/// Options of a sink, as `CREATE CHANGE STREAM .. WITH (..)` names them, in order of name.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SinkOptions(Vec<(String, String)>);

impl SinkOptions {
    /// The value of an option, by its name in lower case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Sets an option; an empty value takes it away.
    pub fn set(&mut self, name: &str, value: &str) {
        self.0.retain(|(known, _)| known != name);
        if !value.is_empty() {
            let at = self.0.partition_point(|(known, _)| known.as_str() < name);
            self.0.insert(at, (name.to_owned(), value.to_owned()));
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

// Values may be secret.
impl fmt::Debug for SinkOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// An event of a change stream: `docs/format/changes.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkEvent {
    /// What happened.
    pub op: &'static str,
    /// Schema and name of the table that it is about.
    pub table: Option<(String, String)>,
    /// The key of its row as a JSON object.
    pub key: Option<Vec<u8>>,
    /// The key that an update gave the row, if it is another.
    pub new_key: Option<Vec<u8>>,
    /// The event as a JSON object.
    pub json: Vec<u8>,
}

/// Events that are delivered together.
#[derive(Clone, Copy, Debug)]
pub struct SinkBatch<'a> {
    /// The stream.
    pub stream: &'a str,
    /// Its events, in order.
    pub events: &'a [SinkEvent],
    /// The transactions that the receiver has afterwards; none when the batch ends within a transaction.
    pub position: Option<&'a str>,
}

/// Why a batch was not delivered.
#[derive(Clone, Debug)]
pub struct SinkFailure {
    /// The reason.
    pub message: String,
    /// When the receiver wants it again.
    pub retry_after: Option<Duration>,
}

impl SinkFailure {
    /// A failure for a reason.
    pub fn new(message: impl fmt::Display) -> SinkFailure {
        SinkFailure { message: message.to_string(), retry_after: None }
    }
}

/// Brings streams to receivers of one kind.
pub trait StreamSink: Send + Sync {
    /// What `WITH (sink = '..')` calls it.
    fn name(&self) -> &'static str;
    /// Options whose values are not shown.
    fn secrets(&self) -> &'static [&'static str];
    /// Checks the options of a stream.
    ///
    /// # Errors
    /// An option that is missing, unknown or wrong.
    fn check(&self, options: &SinkOptions) -> Result<()>;
    /// Connects, or makes ready to. `cancel` ends waiting for the receiver.
    ///
    /// # Errors
    /// The receiver cannot be reached.
    fn open(
        &self,
        options: &SinkOptions,
        cancel: &CancelToken,
    ) -> std::result::Result<Box<dyn SinkConnection>, SinkFailure>;
}

/// A connection to a receiver.
pub trait SinkConnection: Send {
    /// Delivers a batch: returns when the receiver has said that it keeps it. After a failure the same batch comes again.
    ///
    /// # Errors
    /// The receiver has not, or not yet, said so.
    fn deliver(&mut self, batch: &SinkBatch<'_>) -> std::result::Result<(), SinkFailure>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_set_and_taken_away() {
        let mut options = SinkOptions::default();
        options.set("url", "http://a/");
        options.set("secret", "x");
        options.set("url", "http://b/");
        assert_eq!(options.get("url"), Some("http://b/"));
        assert_eq!(format!("{options:?}"), r#"["secret", "url"]"#);
        options.set("secret", "");
        assert_eq!(options.iter().count(), 1);
    }
}
