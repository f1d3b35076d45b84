//! Packet framing: 3-byte length, sequence number, payload; payloads of 2^24-1 bytes and more are split.

use crate::{Reader, put_u24};

/// Length and sequence number.
pub const FRAME_HEADER_BYTES: usize = 4;
/// Payload of one frame; a frame of exactly this length is followed by another.
pub const FRAME_PAYLOAD_MAX: usize = 0xff_ffff;

/// A complete packet at the start of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Bytes the packet takes, headers included.
    pub frame_bytes: usize,
    /// Bytes of payload over all parts.
    pub payload_bytes: usize,
    /// Number of frames.
    pub parts: usize,
    /// Sequence number of the last frame.
    pub last_sequence: u8,
}

/// Why no packet can be taken from a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanError {
    /// More bytes are needed: at least this many in all.
    Incomplete { needed: usize },
    /// The payload is longer than allowed; the sequence number of the frame that exceeds the limit.
    TooLarge { last_sequence: u8 },
    /// A sequence number is not the expected one.
    OutOfOrder,
}

/// Searches for a complete packet at the start of `buf`. `first_sequence` is the number its first frame must
/// have. A packet that announces more than `payload_max` bytes is refused before its bytes arrive.
///
/// # Errors
/// See [`ScanError`].
#[inline]
pub fn scan_packet(
    buf: &[u8],
    first_sequence: u8,
    payload_max: usize,
) -> Result<Packet, ScanError> {
    let mut packet =
        Packet { frame_bytes: 0, payload_bytes: 0, parts: 0, last_sequence: first_sequence };
    loop {
        let mut header = Reader::new(&buf[packet.frame_bytes.min(buf.len())..]);
        let (Ok(len), Ok(sequence)) = (header.u24(), header.u8()) else {
            return Err(ScanError::Incomplete { needed: packet.frame_bytes + FRAME_HEADER_BYTES });
        };
        let len = len as usize;
        if sequence != first_sequence.wrapping_add(packet.parts as u8) {
            return Err(ScanError::OutOfOrder);
        }
        packet.payload_bytes += len;
        if packet.payload_bytes > payload_max {
            return Err(ScanError::TooLarge { last_sequence: sequence });
        }
        packet.frame_bytes += FRAME_HEADER_BYTES + len;
        packet.parts += 1;
        packet.last_sequence = sequence;
        if packet.frame_bytes > buf.len() {
            return Err(ScanError::Incomplete { needed: packet.frame_bytes });
        }
        if len < FRAME_PAYLOAD_MAX {
            return Ok(packet);
        }
    }
}

/// Joins the parts of `packet`, which starts `buf`, so that the payload is contiguous from
/// [`FRAME_HEADER_BYTES`] on. Returns the payload.
#[inline]
pub fn join_parts(buf: &mut [u8], packet: Packet) -> &[u8] {
    for part in 1..packet.parts {
        let source = part * (FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX) + FRAME_HEADER_BYTES;
        let target = FRAME_HEADER_BYTES + part * FRAME_PAYLOAD_MAX;
        let end = (source + FRAME_PAYLOAD_MAX).min(packet.frame_bytes);
        buf.copy_within(source..end, target);
    }
    &buf[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + packet.payload_bytes]
}

/// The start of an open packet in its output buffer.
#[derive(Clone, Copy, Debug)]
#[must_use = "an open packet has to be finished"]
pub struct FrameStart(usize);

impl FrameStart {
    /// Offset of the packet's first payload byte.
    #[inline]
    pub fn payload_offset(self) -> usize {
        self.0 + FRAME_HEADER_BYTES
    }

    /// Removes the packet: `out` is as it was before `begin_packet`.
    pub fn abandon(self, out: &mut Vec<u8>) {
        out.truncate(self.0);
    }
}

/// Opens a packet at the end of `out`; the payload is appended next.
#[inline]
pub fn begin_packet(out: &mut Vec<u8>) -> FrameStart {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
    FrameStart(start)
}

/// Closes a packet: fills in its header and advances `sequence`. Splits a payload that is too long.
#[inline]
pub fn finish_packet(out: &mut Vec<u8>, start: FrameStart, sequence: &mut u8) {
    let len = out.len() - start.payload_offset();
    if len >= FRAME_PAYLOAD_MAX {
        split_packet(out, start, sequence);
        return;
    }
    set_header(out, start.0, len, sequence);
}

#[inline]
fn set_header(out: &mut [u8], at: usize, len: usize, sequence: &mut u8) {
    let [a, b, c, _] = (len as u32).to_le_bytes();
    out[at..at + FRAME_HEADER_BYTES].copy_from_slice(&[a, b, c, *sequence]);
    *sequence = sequence.wrapping_add(1);
}

#[cold]
fn split_packet(out: &mut Vec<u8>, start: FrameStart, sequence: &mut u8) {
    let payload = out.split_off(start.payload_offset());
    out.truncate(start.0);
    put_packet(out, &payload, sequence);
}

/// Appends a finished payload as one packet.
pub fn put_packet(out: &mut Vec<u8>, payload: &[u8], sequence: &mut u8) {
    let mut rest = payload;
    loop {
        let (part, tail) = rest.split_at(rest.len().min(FRAME_PAYLOAD_MAX));
        put_u24(out, part.len() as u32);
        out.push(*sequence);
        *sequence = sequence.wrapping_add(1);
        out.extend_from_slice(part);
        rest = tail;
        if part.len() < FRAME_PAYLOAD_MAX {
            return;
        }
    }
}
