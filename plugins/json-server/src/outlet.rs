//! Answers that go out while a statement still runs: in pieces, no faster than the client reads them.

use std::convert::Infallible;
use std::io::{self, Write as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use engine_api::CancelToken;
use errors::{Error, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use sys::sync::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

/// Pieces that wait for the client.
const PIECES_WAITING: usize = 4;
/// How long a client may take to read one.
const READ_WITHIN: Duration = Duration::from_secs(60);

/// The statement of a request whose client waits; a client that leaves cancels it.
#[derive(Clone, Default)]
pub struct Waiting(Arc<Mutex<Option<CancelToken>>>);

impl Waiting {
    /// The request runs this until the returned value is dropped.
    pub fn runs(&self, cancel: CancelToken) -> Runs<'_> {
        *self.0.lock() = Some(cancel);
        Runs(self)
    }

    /// A value that cancels what runs when it is dropped.
    pub fn guard(&self) -> ClientGuard {
        ClientGuard(self.clone())
    }
}

/// See [`Waiting::runs`].
pub struct Runs<'a>(&'a Waiting);

impl Drop for Runs<'_> {
    fn drop(&mut self) {
        *self.0.0.lock() = None;
    }
}

/// Belongs to the connection: it is dropped with it.
pub struct ClientGuard(Waiting);

impl Drop for ClientGuard {
    fn drop(&mut self) {
        if let Some(cancel) = &*self.0.0.lock() {
            cancel.kill_query();
        }
    }
}

/// The head of an answer in pieces.
pub struct Started {
    /// `Content-Type`.
    pub content_type: &'static str,
    /// Whether the pieces are one gzip stream.
    pub is_gzip: bool,
    pieces: mpsc::Receiver<Piece>,
}

/// A part of an answer.
pub enum Piece {
    /// Bytes of it.
    Data(Bytes),
    /// Its end.
    End,
}

/// Begins the answer of one request.
pub struct Starter(Mutex<Option<oneshot::Sender<Started>>>);

impl Starter {
    /// A starter, and where the started answer arrives.
    pub fn new() -> (Starter, oneshot::Receiver<Started>) {
        let (sender, receiver) = oneshot::channel();
        (Starter(Mutex::new(Some(sender))), receiver)
    }

    /// Sends the head of an answer with status 200; its body follows through the returned outlet.
    ///
    /// # Errors
    /// 1160 when the client is gone or an answer was begun before.
    pub fn start(&self, content_type: &'static str, is_gzip: bool) -> Result<Outlet> {
        let (sender, pieces) = mpsc::channel(PIECES_WAITING);
        let started = Started { content_type, is_gzip, pieces };
        let Some(head) = self.0.lock().take() else { bail!(NET_ERROR_ON_WRITE) };
        if head.send(started).is_err() {
            bail!(NET_ERROR_ON_WRITE);
        }
        let gzip = is_gzip.then(|| GzEncoder::new(Vec::new(), Compression::fast()));
        Ok(Outlet { sender, gzip })
    }
}

/// Takes the pieces of an answer. Dropped without `end`, it breaks the connection, so that no client takes a part for the whole.
pub struct Outlet {
    sender: mpsc::Sender<Piece>,
    gzip: Option<GzEncoder<Vec<u8>>>,
}

impl Outlet {
    /// Sends a piece; waits while the client reads slowly.
    ///
    /// # Errors
    /// 1160 when the client is gone, 1161 when it does not read.
    pub fn send(&mut self, piece: Vec<u8>) -> Result<()> {
        let data = match &mut self.gzip {
            None => piece,
            Some(encoder) => {
                let written = encoder.write_all(&piece).and_then(|()| encoder.flush());
                written.map_err(Error::internal)?;
                std::mem::take(encoder.get_mut())
            }
        };
        if data.is_empty() { Ok(()) } else { self.put(Piece::Data(data.into())) }
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// As `send`.
    pub fn end(mut self) -> Result<()> {
        if let Some(encoder) = self.gzip.take() {
            let rest = encoder.finish().map_err(Error::internal)?;
            self.put(Piece::Data(rest.into()))?;
        }
        self.put(Piece::End)
    }

    fn put(&self, piece: Piece) -> Result<()> {
        let piece = match self.sender.try_send(piece) {
            Ok(()) => return Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => bail!(NET_ERROR_ON_WRITE),
            Err(mpsc::error::TrySendError::Full(piece)) => piece,
        };
        let sending = async { tokio::time::timeout(READ_WITHIN, self.sender.send(piece)).await };
        match Handle::current().block_on(sending) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => bail!(NET_ERROR_ON_WRITE),
            Err(_) => bail!(NET_WRITE_INTERRUPTED),
        }
    }
}

/// The body of an answer, in one part or in pieces.
pub enum Answered {
    /// In one part.
    Whole(Full<Bytes>),
    /// In pieces.
    Pieces {
        /// They come here.
        pieces: mpsc::Receiver<Piece>,
        /// Dropped with the connection.
        _guard: ClientGuard,
    },
}

impl Answered {
    /// The body of a started answer.
    pub fn of(started: Started, guard: ClientGuard) -> Answered {
        Answered::Pieces { pieces: started.pieces, _guard: guard }
    }
}

impl Body for Answered {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Answered::Whole(body) => Pin::new(body)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map_err(|never: Infallible| match never {}))),
            Answered::Pieces { pieces, .. } => pieces.poll_recv(context).map(|piece| match piece {
                Some(Piece::Data(data)) => Some(Ok(Frame::data(data))),
                Some(Piece::End) => None,
                None => Some(Err(io::Error::other("the answer broke off"))),
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Answered::Whole(body) => body.is_end_stream(),
            Answered::Pieces { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Answered::Whole(body) => body.size_hint(),
            Answered::Pieces { .. } => SizeHint::default(),
        }
    }
}
