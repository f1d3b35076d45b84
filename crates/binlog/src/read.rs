//! Integers and strings of events: a bounded reader, and functions that append.

use std::fmt;

/// The bytes are not a valid event; says which part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed event: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

impl From<Malformed> for errors::Error {
    fn from(_: Malformed) -> errors::Error {
        errors::err!(MALFORMED_PACKET)
    }
}

/// What decoders return.
pub(crate) type Result<T> = std::result::Result<T, Malformed>;

const CUT: Malformed = Malformed("it ends too early");

/// Reads from front to back; every method fails instead of reading past the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

macro_rules! fixed {
    ($($name:ident: $ty:ty;)*) => {$(
        pub(crate) fn $name(&mut self) -> Result<$ty> {
            Ok(<$ty>::from_le_bytes(self.array()?))
        }
    )*};
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(CUT)?;
        self.rest = tail;
        Ok(*head)
    }

    fixed! {
        u8: u8;
        u16: u16;
        u32: u32;
        u64: u64;
        i32: i32;
        i64: i64;
        f32: f32;
        f64: f64;
    }

    /// An unsigned little-endian integer of up to 8 bytes.
    pub(crate) fn uint(&mut self, width: usize) -> Result<u64> {
        let bytes = self.bytes(width.min(8))?;
        Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// An unsigned big-endian integer of up to 8 bytes.
    pub(crate) fn uint_be(&mut self, width: usize) -> Result<u64> {
        let bytes = self.bytes(width.min(8))?;
        Ok(bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(len).ok_or(CUT)?;
        self.rest = tail;
        Ok(head)
    }

    /// A length-encoded integer.
    pub(crate) fn lenenc(&mut self) -> Result<u64> {
        match self.u8()? {
            small @ 0..=0xfa => Ok(u64::from(small)),
            0xfc => self.uint(2),
            0xfd => self.uint(3),
            0xfe => self.uint(8),
            0xfb | 0xff => Err(Malformed("length")),
        }
    }

    pub(crate) fn lenenc_usize(&mut self) -> Result<usize> {
        usize::try_from(self.lenenc()?).map_err(|_| Malformed("length"))
    }

    pub(crate) fn lenenc_bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.lenenc_usize()?;
        self.bytes(len)
    }

    /// A string after its length in one byte.
    pub(crate) fn short_bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.u8()?;
        self.bytes(usize::from(len))
    }

    /// The bytes before the next zero byte, which is read too.
    pub(crate) fn null_terminated(&mut self) -> Result<&'a [u8]> {
        let len = self.rest.iter().position(|byte| *byte == 0).ok_or(CUT)?;
        let text = self.bytes(len)?;
        self.u8()?;
        Ok(text)
    }
}

/// Appends a length-encoded integer.
pub(crate) fn put_lenenc(number: u64, out: &mut Vec<u8>) {
    match number {
        0..=0xfa => out.push(number as u8),
        0xfb..=0xffff => {
            out.push(0xfc);
            put_uint(number, 2, out);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            put_uint(number, 3, out);
        }
        0x100_0000.. => {
            out.push(0xfe);
            put_uint(number, 8, out);
        }
    }
}

/// Appends a string after its length.
pub(crate) fn put_lenenc_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_lenenc(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends up to 255 bytes of a string after their number.
pub(crate) fn put_short_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let bytes = &bytes[..bytes.len().min(255)];
    out.push(bytes.len() as u8);
    out.extend_from_slice(bytes);
}

/// Appends the low `width` bytes, low first.
pub(crate) fn put_uint(number: u64, width: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_le_bytes()[..width.min(8)]);
}

/// Appends the low `width` bytes, high first.
pub(crate) fn put_uint_be(number: u64, width: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_be_bytes()[8 - width.min(8)..]);
}
