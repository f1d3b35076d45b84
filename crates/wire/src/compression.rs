//! The compressed protocol: frames with a 7-byte header around the stream of ordinary packets.

use std::io::{Read, Write};

use crate::{FRAME_PAYLOAD_MAX, Malformed, Reader, put_u24};

/// Payloads shorter than this are sent uncompressed.
pub const MIN_COMPRESS_BYTES: usize = 50;
/// Compressed length, sequence number, uncompressed length.
const COMPRESSED_HEADER_BYTES: usize = 7;
/// Output is split into frames of this many bytes, so that a peer can start early.
const CHUNK_BYTES: usize = 1 << 20;

/// Which algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionKind {
    /// CLIENT_COMPRESS.
    Zlib,
    /// CLIENT_ZSTD_COMPRESSION_ALGORITHM with its level.
    Zstd(u8),
}

/// A level that zstd accepts: 1 to 22; 3 when the client's level is invalid.
pub fn zstd_level_clamped(level: u8) -> u8 {
    if (1..=22).contains(&level) { level } else { 3 }
}

/// State of one connection's compressed framing.
#[derive(Debug)]
pub struct Compression {
    kind: CompressionKind,
    sequence: u8,
}

/// Bytes of the first compressed frame in `buf`, once its header is there.
pub fn compressed_frame_len(buf: &[u8]) -> Option<usize> {
    let len = Reader::new(buf).u24().ok()? as usize;
    (buf.len() >= COMPRESSED_HEADER_BYTES).then_some(COMPRESSED_HEADER_BYTES + len)
}

impl Compression {
    /// Framing that starts with sequence number 0.
    pub fn new(kind: CompressionKind) -> Compression {
        Compression { kind, sequence: 0 }
    }

    /// A new command begins: numbering starts over.
    pub fn reset_sequence(&mut self) {
        self.sequence = 0;
    }

    /// Takes one complete frame (of [`compressed_frame_len`] bytes) and appends its plain bytes to `out`.
    /// At most `plain_max` bytes are produced.
    ///
    /// # Errors
    /// The data is damaged, longer than its header says, or longer than allowed.
    pub fn decode_frame(
        &mut self,
        frame: &[u8],
        plain_max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let mut reader = Reader::new(frame);
        let compressed_len = reader.u24()? as usize;
        self.sequence = reader.u8()?.wrapping_add(1);
        let plain_len = reader.u24()? as usize;
        let body = reader.bytes(compressed_len)?;
        if plain_len == 0 {
            out.extend_from_slice(body);
            return Ok(());
        }
        if plain_len > plain_max {
            return Err(Malformed);
        }
        let before = out.len();
        self.inflate(body, plain_len, out)?;
        if out.len() - before == plain_len { Ok(()) } else { Err(Malformed) }
    }

    fn inflate(&self, body: &[u8], plain_len: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
        // The reservation is bounded by the data that such a body could hold at zlib's best ratio of about 1:1032.
        out.reserve(plain_len.min(body.len().saturating_mul(1032) + 64));
        let limit = plain_len as u64;
        let copied = match self.kind {
            CompressionKind::Zlib => {
                flate2::read::ZlibDecoder::new(body).take(limit).read_to_end(out)
            }
            CompressionKind::Zstd(_) => zstd::stream::read::Decoder::with_buffer(body)
                .and_then(|decoder| decoder.take(limit).read_to_end(out)),
        };
        copied.map(|_| ()).map_err(|_| Malformed)
    }

    /// Appends `plain` to `out` as compressed frames.
    pub fn encode(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        for chunk in plain.chunks(CHUNK_BYTES) {
            self.encode_chunk(chunk, out);
        }
    }

    fn encode_chunk(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; COMPRESSED_HEADER_BYTES]);
        let mut plain_len = chunk.len();
        let body_start = out.len();
        if chunk.len() < MIN_COMPRESS_BYTES
            || self.deflate(chunk, out).is_err()
            || out.len() - body_start >= chunk.len()
        {
            out.truncate(body_start);
            out.extend_from_slice(chunk);
            plain_len = 0;
        }
        let body_len = out.len() - body_start;
        debug_assert!(body_len <= FRAME_PAYLOAD_MAX);
        let mut header = Vec::with_capacity(COMPRESSED_HEADER_BYTES);
        put_u24(&mut header, body_len as u32);
        header.push(self.sequence);
        put_u24(&mut header, plain_len as u32);
        out[start..body_start].copy_from_slice(&header);
        self.sequence = self.sequence.wrapping_add(1);
    }

    fn deflate(&self, chunk: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
        match self.kind {
            CompressionKind::Zlib => {
                let level = flate2::Compression::new(6);
                let mut encoder = flate2::write::ZlibEncoder::new(out, level);
                encoder.write_all(chunk)?;
                encoder.finish().map(|_| ())
            }
            CompressionKind::Zstd(level) => zstd::stream::copy_encode(chunk, out, i32::from(level)),
        }
    }
}
