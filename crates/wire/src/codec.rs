//! Integers and strings of the protocol: a bounded reader, and functions that append to a buffer.

use std::fmt;

/// The bytes are not a valid packet. Becomes error 1835.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed packet")
    }
}

impl std::error::Error for Malformed {}

impl From<Malformed> for errors::Error {
    fn from(_: Malformed) -> errors::Error {
        errors::err!(MALFORMED_PACKET)
    }
}

/// Reads a packet's payload from front to back. Every method fails instead of reading past the end.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

macro_rules! fixed {
    ($($(#[$doc:meta])* $name:ident: $ty:ty;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// Fewer bytes are left.
        #[inline]
        pub fn $name(&mut self) -> Result<$ty, Malformed> {
            Ok(<$ty>::from_le_bytes(self.array()?))
        }
    )*};
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// Bytes not read yet.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether everything was read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte without reading it.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(Malformed)?;
        self.rest = tail;
        Ok(*head)
    }

    fixed! {
        /// One byte.
        u8: u8;
        /// A 2-byte little-endian integer.
        u16: u16;
        /// A 4-byte little-endian integer.
        u32: u32;
        /// An 8-byte little-endian integer.
        u64: u64;
        /// A 4-byte float.
        f32: f32;
        /// An 8-byte float.
        f64: f64;
    }

    /// A 3-byte little-endian integer.
    ///
    /// # Errors
    /// Fewer bytes are left.
    #[inline]
    pub fn u24(&mut self) -> Result<u32, Malformed> {
        let [a, b, c] = self.array::<3>()?;
        Ok(u32::from_le_bytes([a, b, c, 0]))
    }

    /// Exactly `len` bytes.
    ///
    /// # Errors
    /// Fewer bytes are left.
    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.rest.split_at_checked(len).ok_or(Malformed)?;
        self.rest = tail;
        Ok(head)
    }

    /// Skips `len` bytes.
    ///
    /// # Errors
    /// Fewer bytes are left.
    #[inline]
    pub fn skip(&mut self, len: usize) -> Result<(), Malformed> {
        self.bytes(len).map(|_| ())
    }

    /// A length-encoded integer. 0xFB (NULL) and 0xFF are malformed here.
    ///
    /// # Errors
    /// Fewer bytes are left, or the first byte does not start an integer.
    pub fn lenenc_int(&mut self) -> Result<u64, Malformed> {
        match self.u8()? {
            small @ 0..=0xfa => Ok(u64::from(small)),
            0xfc => self.u16().map(u64::from),
            0xfd => self.u24().map(u64::from),
            0xfe => self.u64(),
            0xfb | 0xff => Err(Malformed),
        }
    }

    /// A length-encoded string.
    ///
    /// # Errors
    /// The string is longer than the rest of the packet.
    pub fn lenenc_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.lenenc_int()?;
        self.bytes(usize::try_from(len).map_err(|_| Malformed)?)
    }

    /// A cell of a text row: a length-encoded string, or `None` for NULL.
    ///
    /// # Errors
    /// The string is longer than the rest of the packet.
    pub fn nullable_lenenc_bytes(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        if self.peek() == Some(0xfb) {
            self.rest = &self.rest[1..];
            return Ok(None);
        }
        self.lenenc_bytes().map(Some)
    }

    /// A string up to a NUL, which is read too.
    ///
    /// # Errors
    /// The string has no NUL.
    pub fn null_terminated(&mut self) -> Result<&'a [u8], Malformed> {
        let end = self.rest.iter().position(|byte| *byte == 0).ok_or(Malformed)?;
        let text = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(text)
    }

    /// A string up to a NUL or, as some clients leave the last one out, up to the end.
    pub fn null_terminated_or_rest(&mut self) -> &'a [u8] {
        match self.null_terminated() {
            Ok(text) => text,
            Err(Malformed) => self.rest(),
        }
    }

    /// Everything that is left.
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}

/// Appends a 3-byte integer.
#[inline]
pub fn put_u24(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes()[..3]);
}

/// Appends a length-encoded integer.
#[inline]
pub fn put_lenenc_int(out: &mut Vec<u8>, number: u64) {
    match number {
        0..=0xfa => out.push(number as u8),
        0xfb..=0xffff => {
            let [a, b] = (number as u16).to_le_bytes();
            out.extend_from_slice(&[0xfc, a, b]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            put_u24(out, number as u32);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
}

/// Bytes that [`put_lenenc_int`] appends.
pub fn lenenc_int_len(number: u64) -> usize {
    match number {
        0..=0xfa => 1,
        0xfb..=0xffff => 3,
        0x1_0000..=0xff_ffff => 4,
        _ => 9,
    }
}

/// Appends a length-encoded string.
#[inline]
pub fn put_lenenc_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_lenenc_int(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends `bytes` up to their first NUL, and a NUL.
pub fn put_null_terminated(out: &mut Vec<u8>, bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    out.extend_from_slice(&bytes[..end]);
    out.push(0);
}
