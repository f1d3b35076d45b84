//! Bytes to and from a peer: socket, TLS inside it, compression inside that. Knows no packets but their frames.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use engine_api::CancelToken;
use plugin_api::{PeerCertificate, Traffic};
use rustls::{ServerConfig, ServerConnection};
use sys::blocking::blocking;
use sys::clock::monotonic;
use sys::interrupt::Waiting;
use sys::net::Stream;
use wire::{Compression, CompressionKind, compressed_frame_len};

use crate::buffer::InputBuffer;

/// One read takes about this much plain text out of TLS.
const TLS_PLAIN_MAX: usize = 256 * 1024;
/// A compressed frame holds at most this much.
const COMPRESSED_PLAIN_MAX: usize = 0xff_ffff;

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// Perhaps bytes; look.
    Progress,
    /// Nothing more for now.
    Drained,
    /// The peer closed.
    Closed,
}

/// Lets rustls use the stream.
struct Io<'a>(&'a mut Stream);

impl Read for Io<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}

impl Write for Io<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// State of the compressed protocol.
struct Compressed {
    framing: Compression,
    /// Frames not complete yet.
    raw: InputBuffer,
}

/// The way to a peer.
pub(crate) struct Transport {
    pub(crate) stream: Stream,
    /// A killed connection stops waiting for its peer.
    cancel: CancelToken,
    tls: Option<Box<ServerConnection>>,
    compressed: Option<Box<Compressed>>,
    /// The socket had nothing more at the last read, and no event has arrived since.
    pub(crate) drained: bool,
    /// Reads wait for bytes: the connection has its own thread.
    pub(crate) waiting: Option<Arc<Waiting>>,
    /// The last wait for bytes was in vain.
    pub(crate) silent: bool,
    pub(crate) traffic: Traffic,
}

impl Transport {
    pub(crate) fn new(stream: Stream, cancel: CancelToken) -> Transport {
        let traffic = Traffic::over(stream.descriptor(), stream.peer_address());
        Transport {
            stream,
            cancel,
            tls: None,
            compressed: None,
            drained: true,
            waiting: None,
            silent: false,
            traffic,
        }
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Switches to TLS. `received` is the data after the request: the start of the handshake.
    pub(crate) fn start_tls(
        &mut self,
        config: Arc<ServerConfig>,
        received: &[u8],
        input: &mut InputBuffer,
    ) -> io::Result<()> {
        let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
        tls.set_buffer_limit(None);
        let mut rest = received;
        while !rest.is_empty() {
            tls.read_tls(&mut rest)?;
            tls.process_new_packets().map_err(io::Error::other)?;
        }
        let mut tls = Box::new(tls);
        drain_plain(&mut tls, input)?;
        self.tls = Some(tls);
        self.drained = false;
        self.flush_tls(TLS_HANDSHAKE_WRITE_LIMIT)
    }

    /// Protocol version and cipher, as the reference names them.
    pub(crate) fn tls_facts(&self) -> Option<(String, String)> {
        let tls = self.tls.as_ref()?;
        let version = match tls.protocol_version()? {
            rustls::ProtocolVersion::TLSv1_2 => "TLSv1.2",
            rustls::ProtocolVersion::TLSv1_3 => "TLSv1.3",
            _ => "unknown",
        };
        let suite = format!("{:?}", tls.negotiated_cipher_suite()?.suite());
        Some((version.to_owned(), openssl_name(&suite)))
    }

    /// The peer's certificate. One that no authority signed ends the connection.
    pub(crate) fn certificate(&self) -> Option<PeerCertificate> {
        let certificates = self.tls.as_ref()?.peer_certificates()?;
        crate::certificate::read(certificates.first()?)
    }

    /// From the next byte on, both directions are compressed.
    pub(crate) fn start_compression(&mut self, kind: CompressionKind, input: &mut InputBuffer) {
        let mut raw = InputBuffer::default();
        let early = input.split_tail(0);
        raw.append(&early);
        self.compressed = Some(Box::new(Compressed { framing: Compression::new(kind), raw }));
    }

    /// Reads the available bytes into `input`.
    pub(crate) fn fill(&mut self, input: &mut InputBuffer) -> io::Result<Fill> {
        let Some(mut compressed) = self.compressed.take() else {
            return self.fill_stream(input);
        };
        // Data that arrived with the log-in is decoded before the socket is read.
        let result = if compressed.decode(input)? {
            Ok(Fill::Progress)
        } else {
            let fill = self.fill_stream(&mut compressed.raw)?;
            compressed.decode(input)?;
            compressed.raw.release(&mut Vec::new());
            Ok(fill)
        };
        self.compressed = Some(compressed);
        result
    }

    fn fill_stream(&mut self, input: &mut InputBuffer) -> io::Result<Fill> {
        if self.tls.is_some() {
            return self.fill_tls(input);
        }
        let space = input.space();
        let room = space.len();
        let read = match &self.waiting {
            Some(waiting) => self.stream.read_waiting(space, waiting),
            None => self.stream.read(space),
        };
        match read {
            Ok(0) => Ok(Fill::Closed),
            Ok(len) => {
                input.advance(len);
                self.traffic.add_received(len as u64);
                // A short read empties the socket: with edge-triggered events the next bytes announce themselves.
                self.drained = len < room;
                Ok(Fill::Progress)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.drained = true;
                Ok(Fill::Drained)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.drained = true;
                self.silent = true;
                Ok(Fill::Drained)
            }
            Err(error) => Err(error),
        }
    }

    fn fill_tls(&mut self, input: &mut InputBuffer) -> io::Result<Fill> {
        if let Some(waiting) = &self.waiting
            && !waiting.wait(|| self.stream.wait_readable(TLS_SILENCE))?
        {
            self.drained = true;
            self.silent = true;
            return Ok(Fill::Drained);
        }
        let Some(tls) = &mut self.tls else { return Ok(Fill::Closed) };
        let mut fill = Fill::Drained;
        let enough = input.bytes().len() + TLS_PLAIN_MAX;
        while input.bytes().len() < enough {
            match tls.read_tls(&mut Io(&mut self.stream)) {
                Ok(0) => {
                    fill = if fill == Fill::Progress { fill } else { Fill::Closed };
                    break;
                }
                Ok(len) => {
                    self.traffic.add_received(len as u64);
                    fill = Fill::Progress;
                    if let Err(error) = tls.process_new_packets() {
                        // The peer gets the alert, if it can be sent at once.
                        let _ = tls.write_tls(&mut Io(&mut self.stream));
                        return Err(io::Error::other(error));
                    }
                    if drain_plain(tls, input)? == Fill::Closed {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.drained = true;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        self.flush_tls(TLS_HANDSHAKE_WRITE_LIMIT)?;
        Ok(fill)
    }

    /// Sends everything. Waits while the peer does not read, at most `limit` at a time.
    pub(crate) fn send(&mut self, bytes: &[u8], limit: Duration) -> io::Result<()> {
        match &mut self.compressed {
            Some(compressed) => {
                let mut framed = Vec::with_capacity(bytes.len() / 2 + 64);
                compressed.framing.encode(bytes, &mut framed);
                self.send_plain(&framed, limit)
            }
            None => self.send_plain(bytes, limit),
        }
    }

    fn send_plain(&mut self, bytes: &[u8], limit: Duration) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(bytes)?;
            return self.flush_tls(limit);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(len) => {
                    self.traffic.add_sent(len as u64);
                    rest = &rest[len..];
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_writable(limit)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn flush_tls(&mut self, limit: Duration) -> io::Result<()> {
        loop {
            let Some(tls) = &mut self.tls else { return Ok(()) };
            if !tls.wants_write() {
                return Ok(());
            }
            match tls.write_tls(&mut Io(&mut self.stream)) {
                Ok(len) => self.traffic.add_sent(len as u64),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_writable(limit)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn wait_writable(&self, limit: Duration) -> io::Result<()> {
        let start = monotonic();
        let ready = blocking(|| {
            wait_in_slices(&self.cancel, limit, |slice| self.stream.wait_writable(slice))
        })?;
        self.traffic.add_send_wait(monotonic().saturating_sub(start));
        if ready { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
    }

    /// Waits for input inside a command. False when `limit` has passed.
    pub(crate) fn wait_readable(&mut self, limit: Duration) -> io::Result<bool> {
        if !self.drained {
            return Ok(true);
        }
        let start = monotonic();
        let ready = blocking(|| {
            wait_in_slices(&self.cancel, limit, |slice| self.stream.wait_readable(slice))
        })?;
        self.traffic.add_receive_wait(monotonic().saturating_sub(start));
        self.drained = !ready;
        Ok(ready)
    }

    /// Shuts down sending, after a close notification over TLS.
    pub(crate) fn finish_sending(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = tls.write_tls(&mut Io(&mut self.stream));
        }
        self.stream.shutdown_sending();
    }

    /// Reads the available bytes and discards them: their number, 0 at the end.
    pub(crate) fn discard(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let len = self.stream.read(room)?;
        self.traffic.add_received(len as u64);
        Ok(len)
    }

    /// Sends a close notification if that is possible without waiting.
    pub(crate) fn close(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = tls.write_tls(&mut Io(&mut self.stream));
        }
        self.stream.shutdown();
    }
}

/// A waiting thread checks this often whether its connection was killed.
const WAIT_SLICE: Duration = Duration::from_millis(500);

fn wait_in_slices(
    cancel: &CancelToken,
    limit: Duration,
    wait: impl Fn(Duration) -> io::Result<bool>,
) -> io::Result<bool> {
    let mut left = limit;
    loop {
        let slice = left.min(WAIT_SLICE);
        if wait(slice)? {
            return Ok(true);
        }
        left -= slice;
        if left.is_zero() {
            return Ok(false);
        }
        if cancel.is_connection_killed() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
    }
}

/// Inside TLS a connection releases its thread after this time without a byte.
const TLS_SILENCE: Duration = Duration::from_millis(20);
/// Waiting for a peer inside a TLS handshake is bounded by this, before session settings exist.
const TLS_HANDSHAKE_WRITE_LIMIT: Duration = Duration::from_secs(10);

fn drain_plain(tls: &mut ServerConnection, input: &mut InputBuffer) -> io::Result<Fill> {
    loop {
        match tls.reader().read(input.space()) {
            Ok(0) => return Ok(Fill::Closed),
            Ok(len) => input.advance(len),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Fill::Drained),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Fill::Closed),
            Err(error) => return Err(error),
        }
    }
}

impl Compressed {
    /// Decodes complete frames. True if there was one.
    fn decode(&mut self, input: &mut InputBuffer) -> io::Result<bool> {
        let mut any = false;
        let mut plain = Vec::new();
        while let Some(len) = compressed_frame_len(self.raw.bytes()) {
            let Some(frame) = self.raw.bytes().get(..len) else { break };
            plain.clear();
            let decoded = self.framing.decode_frame(frame, COMPRESSED_PLAIN_MAX, &mut plain);
            decoded.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            input.append(&plain);
            self.raw.consume(len);
            any = true;
        }
        Ok(any)
    }
}

/// `TLS13_AES_256_GCM_SHA384` and the like under the names of OpenSSL, which clients and tools expect.
fn openssl_name(suite: &str) -> String {
    if let Some(rest) = suite.strip_prefix("TLS13_") {
        return format!("TLS_{rest}");
    }
    let Some(rest) = suite.strip_prefix("TLS_") else { return suite.to_owned() };
    let name = rest.replace("_WITH_", "-").replace("AES_", "AES").replace("_SHA256", "-SHA256");
    let name = name.replace("CHACHA20_POLY1305-SHA256", "CHACHA20-POLY1305");
    name.replace('_', "-")
}
