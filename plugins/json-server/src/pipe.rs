//! The output of a streaming result: it is kept while it is small, so that a failure still has its own status, and goes out in pieces
//! as soon as it is not.

use engine_api::{CancelToken, CommitHandle};
use errors::Result;
use hyper::StatusCode;
use plugin_api::OkInfo;

use crate::call::Incoming;
use crate::finish::accepts_gzip;
use crate::outlet::Outlet;
use crate::reply::Reply;

/// Bytes of a piece.
const PIECE_BYTES: usize = 64 << 10;

/// Output for one request.
pub struct Pipe<'a> {
    /// What was not sent yet.
    pub out: Vec<u8>,
    request: &'a Incoming,
    content_type: &'static str,
    outlet: Option<Outlet>,
    commits: Vec<CommitHandle>,
}

impl<'a> Pipe<'a> {
    /// Nothing yet.
    pub fn new(request: &'a Incoming, content_type: &'static str) -> Pipe<'a> {
        Pipe { out: Vec::new(), request, content_type, outlet: None, commits: Vec::new() }
    }

    /// Whether a part of the answer has been sent.
    pub fn has_begun(&self) -> bool {
        self.outlet.is_some()
    }

    /// Nothing may go out before what a statement committed is durable.
    pub fn note_commit(&mut self, state: &OkInfo) {
        if let Some(commit) = state.commit.as_ref().filter(|commit| !commit.is_durable()) {
            self.commits.push(commit.clone());
        }
    }

    /// Sends the output when there is enough of it.
    ///
    /// # Errors
    /// The client is gone or does not read; the log cannot be written.
    pub fn send_if_full(&mut self) -> Result<()> {
        if self.out.len() < PIECE_BYTES { Ok(()) } else { self.send() }
    }

    /// Sends the output, however little it is.
    ///
    /// # Errors
    /// As `send_if_full`.
    pub fn send(&mut self) -> Result<()> {
        self.wait_for_commits()?;
        if self.outlet.is_none() {
            let is_gzip = accepts_gzip(self.request);
            self.outlet = Some(self.request.starter.start(self.content_type, is_gzip)?);
        }
        let piece = std::mem::replace(&mut self.out, Vec::with_capacity(PIECE_BYTES + 1024));
        self.outlet.as_mut().map_or(Ok(()), |outlet| outlet.send(piece))
    }

    fn wait_for_commits(&mut self) -> Result<()> {
        for commit in self.commits.drain(..) {
            commit.wait().map_err(|error| error.into_error(&CancelToken::new()))?;
        }
        Ok(())
    }

    /// Ends the answer. One that has not begun gets this status.
    ///
    /// # Errors
    /// As `send_if_full`.
    pub fn finish(mut self, status: StatusCode) -> Result<Reply> {
        if self.outlet.is_some() {
            self.send()?;
            if let Some(outlet) = self.outlet.take() {
                outlet.end()?;
            }
            return Ok(Reply::empty());
        }
        self.wait_for_commits()?;
        let content_type = self.content_type;
        Ok(Reply { status, content_type, headers: Vec::new(), body: self.out })
    }
}
