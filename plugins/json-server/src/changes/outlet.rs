//! Writes events: one JSON document a line (NDJSON), or as server-sent events.

use changes::{Event, Outlet};
use errors::Result;
use hyper::{StatusCode, header};

use crate::call::Incoming;
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

    /// Ends the answer.
    ///
    /// # Errors
    /// The client is gone.
    pub fn finish(self) -> Result<Reply> {
        self.pipe.finish(StatusCode::OK)
    }
}

impl Outlet for EventOutlet<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let out = &mut self.pipe.out;
        if self.is_sse {
            out.extend_from_slice(format!("event: {}\n", event.op).as_bytes());
            // A reader that comes back says the last one that it saw.
            if let Some(position) = event.position {
                out.extend_from_slice(format!("id: {position}\n").as_bytes());
            }
            out.extend_from_slice(b"data: ");
        }
        out.extend_from_slice(event.json);
        out.extend_from_slice(if self.is_sse { b"\n\n" } else { b"\n" });
        self.pipe.send_if_full()
    }

    fn heartbeat(&mut self) -> Result<()> {
        if self.is_sse {
            self.pipe.out.extend_from_slice(b": heartbeat\n\n");
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        if self.pipe.out.is_empty() { Ok(()) } else { self.pipe.send() }
    }
}
