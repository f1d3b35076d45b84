//! Writes events: one JSON document a line (NDJSON), or as server-sent events.

use errors::Result;
use hyper::{StatusCode, header};
use serde_json::Value as Json;

use crate::call::Incoming;
use crate::json::write_string;
use crate::lines;
use crate::pipe::Pipe;
use crate::reply::Reply;

/// The media type of server-sent events.
const EVENTS: &str = "text/event-stream";

/// Takes events for one reader.
pub struct EventOutlet<'a> {
    pipe: Pipe<'a>,
    is_sse: bool,
}

impl<'a> EventOutlet<'a> {
    /// For the form that the request accepts.
    pub fn new(request: &'a Incoming) -> EventOutlet<'a> {
        let accepted = request.header(header::ACCEPT).unwrap_or("");
        let is_sse = accepted
            .split(',')
            .any(|range| range.split(';').next().unwrap_or("").trim().eq_ignore_ascii_case(EVENTS));
        let media = if is_sse { EVENTS } else { lines::MEDIA_TYPE };
        EventOutlet { pipe: Pipe::new(request, media), is_sse }
    }

    /// Whether the answer has begun.
    pub fn has_begun(&self) -> bool {
        self.pipe.has_begun()
    }

    /// Writes an event: `fill` appends the fields after `op`, each with a comma before it. A reader that comes back says the last `id` that it saw.
    ///
    /// # Errors
    /// The client is gone or does not read; those of `fill`.
    pub fn event(
        &mut self,
        op: &str,
        id: Option<&str>,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let out = &mut self.pipe.out;
        let start = out.len();
        if self.is_sse {
            out.extend_from_slice(format!("event: {op}\n").as_bytes());
            if let Some(id) = id {
                out.extend_from_slice(format!("id: {id}\n").as_bytes());
            }
            out.extend_from_slice(b"data: ");
        }
        out.extend_from_slice(format!("{{\"op\":\"{op}\"").as_bytes());
        if let Err(error) = fill(out) {
            // A part of an event is no event.
            out.truncate(start);
            return Err(error);
        }
        out.extend_from_slice(if self.is_sse { b"}\n\n" } else { b"}\n" });
        self.pipe.send_if_full()
    }

    /// Tells the client that the connection lives.
    ///
    /// # Errors
    /// The client is gone or does not read.
    pub fn heartbeat(&mut self) -> Result<()> {
        if self.is_sse {
            self.pipe.out.extend_from_slice(b": heartbeat\n\n");
        }
        self.flush()
    }

    /// Sends what waits.
    ///
    /// # Errors
    /// The client is gone or does not read.
    pub fn flush(&mut self) -> Result<()> {
        if self.pipe.out.is_empty() { Ok(()) } else { self.pipe.send() }
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// The client is gone.
    pub fn finish(self) -> Result<Reply> {
        self.pipe.finish(StatusCode::OK)
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
pub fn put_name(name: &str, out: &mut Vec<u8>) {
    out.push(b',');
    write_string(name.as_bytes(), out);
    out.push(b':');
}
