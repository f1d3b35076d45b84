//! One event, and who takes it.

use std::ops::Range;

use errors::Result;
use serde_json::Value as Json;

use crate::json::write_string;

/// An event.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// What happened.
    pub op: &'static str,
    /// The transactions that a reader has after it; none within a transaction.
    pub position: Option<&'a str>,
    /// Schema and name of the table that it is about.
    pub table: Option<(&'a str, &'a str)>,
    /// The key of its row as a JSON object; none where there is no row, or no key.
    pub key: Option<&'a [u8]>,
    /// The key that an update gave the row, if it is another.
    pub new_key: Option<&'a [u8]>,
    /// The JSON object, without a line break.
    pub json: &'a [u8],
}

/// Where in an event's text the keys of its row are.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// The key that it has had until then.
    pub key: Option<Range<usize>>,
    /// The key that it has now, if it is another.
    pub new_key: Option<Range<usize>>,
}

/// Takes events.
pub trait Outlet {
    /// Takes one.
    ///
    /// # Errors
    /// The reader is gone or does not read.
    fn event(&mut self, event: &Event<'_>) -> Result<()>;

    /// Nothing happens: tells the reader that the connection lives.
    ///
    /// # Errors
    /// The reader is gone or does not read.
    fn heartbeat(&mut self) -> Result<()>;

    /// Sends what waits.
    ///
    /// # Errors
    /// The reader is gone or does not read.
    fn flush(&mut self) -> Result<()>;
}

/// Builds events for an outlet.
pub struct Post<'o> {
    /// Who takes them.
    pub outlet: &'o mut dyn Outlet,
    out: Vec<u8>,
}

impl<'o> Post<'o> {
    /// For an outlet.
    pub fn new(outlet: &'o mut dyn Outlet) -> Post<'o> {
        Post { outlet, out: Vec::new() }
    }

    /// An event: `fill` appends the fields after `op`, each with a comma before it.
    ///
    /// # Errors
    /// Those of `fill` and of the outlet.
    pub fn event(
        &mut self,
        op: &'static str,
        position: Option<&str>,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        self.build(op, |out| fill(out).map(|()| Keys::default()))?;
        let (table, key, new_key) = (None, None, None);
        self.outlet.event(&Event { op, position, table, key, new_key, json: &self.out })
    }

    /// An event about a table: `fill` also says where in the text the keys of the row are.
    ///
    /// # Errors
    /// Those of `fill` and of the outlet.
    pub fn table_event(
        &mut self,
        op: &'static str,
        table: Option<(&str, &str)>,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<Keys>,
    ) -> Result<()> {
        let keys = self.build(op, fill)?;
        let key = keys.key.and_then(|key| self.out.get(key));
        let new_key = keys.new_key.and_then(|key| self.out.get(key));
        self.outlet.event(&Event { op, position: None, table, key, new_key, json: &self.out })
    }

    fn build(
        &mut self,
        op: &'static str,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<Keys>,
    ) -> Result<Keys> {
        self.out.clear();
        self.out.extend_from_slice(b"{\"op\":\"");
        self.out.extend_from_slice(op.as_bytes());
        self.out.push(b'"');
        let keys = fill(&mut self.out)?;
        self.out.push(b'}');
        Ok(keys)
    }
}

/// Appends `,"name":"text"`.
pub fn put_text(name: &str, text: &str, out: &mut Vec<u8>) {
    put_name(name, out);
    write_string(text.as_bytes(), out);
}

/// Appends `,"name":number`.
pub fn put_number(name: &str, number: u64, out: &mut Vec<u8>) {
    put_name(name, out);
    out.extend_from_slice(number.to_string().as_bytes());
}

/// Appends `,"name":document`.
pub fn put_document(name: &str, document: &Json, out: &mut Vec<u8>) {
    put_name(name, out);
    out.extend_from_slice(document.to_string().as_bytes());
}

/// Appends `,"name":`.
pub(crate) fn put_name(name: &str, out: &mut Vec<u8>) {
    out.push(b',');
    write_string(name.as_bytes(), out);
    out.push(b':');
}
