//! The values of Kafka's protocol: big-endian numbers, texts and lists with their lengths before them, and numbers of variable length.

/// An answer that is not what the protocol says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Builds a request.
#[derive(Default)]
pub(crate) struct Writer(pub Vec<u8>);

impl Writer {
    pub fn i8(&mut self, value: i8) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    pub fn i16(&mut self, value: i16) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    pub fn i32(&mut self, value: i32) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    pub fn i64(&mut self, value: i64) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    pub fn bool(&mut self, value: bool) {
        self.i8(i8::from(value));
    }

    /// A text of at most 32,767 bytes: names of topics and of accounts are shorter.
    pub fn text(&mut self, text: &str) {
        let mut end = text.len().min(i16::MAX as usize);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.i16(end as i16);
        self.0.extend_from_slice(&text.as_bytes()[..end]);
    }

    /// No text.
    pub fn null_text(&mut self) {
        self.i16(-1);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.len(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// The length of a list, or of bytes that follow.
    pub fn len(&mut self, len: usize) {
        self.i32(i32::try_from(len).unwrap_or(i32::MAX));
    }

    /// A signed number of variable length.
    pub fn varint(&mut self, value: i64) {
        let mut rest = (value << 1 ^ value >> 63) as u64;
        while rest >= 0x80 {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
    }

    /// Bytes whose length is a number of variable length.
    pub fn varbytes(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as i64);
        self.0.extend_from_slice(bytes);
    }
}

/// Reads an answer.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    pub fn i8(&mut self) -> Result<i8, Malformed> {
        self.array().map(i8::from_be_bytes)
    }

    pub fn i16(&mut self) -> Result<i16, Malformed> {
        self.array().map(i16::from_be_bytes)
    }

    pub fn i32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    pub fn i64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_be_bytes)
    }

    /// A text; none when it is null.
    pub fn text(&mut self) -> Result<Option<String>, Malformed> {
        let len = self.i16()?;
        let Ok(len) = usize::try_from(len) else { return Ok(None) };
        let text = std::str::from_utf8(self.take(len)?).map_err(|_| Malformed)?;
        Ok(Some(text.to_owned()))
    }

    /// Bytes; none when they are null.
    pub fn bytes(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        let len = self.i32()?;
        let Ok(len) = usize::try_from(len) else { return Ok(None) };
        self.take(len).map(Some)
    }

    /// A list: `read` is called for each member. Each has a byte at least, so that no length makes this endless.
    pub fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Reader<'a>) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let len = usize::try_from(self.i32()?.max(0)).map_err(|_| Malformed)?;
        if len > self.0.len() {
            return Err(Malformed);
        }
        let mut members = Vec::new();
        for _ in 0..len {
            members.push(read(self)?);
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_variable_length() {
        // From the description of the format: zigzag, seven bits a byte.
        let known: [(i64, &[u8]); 6] =
            [(0, &[0]), (-1, &[1]), (1, &[2]), (63, &[126]), (64, &[128, 1]), (300, &[216, 4])];
        for (value, bytes) in known {
            let mut writer = Writer::default();
            writer.varint(value);
            assert_eq!(writer.0, bytes, "{value}");
        }
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        assert_eq!(Reader(&[0x7f, 0xff, 0xff, 0xff, 1]).list(|r| r.i8()), Err(Malformed));
        assert_eq!(Reader(&[0, 9, b'a']).text(), Err(Malformed));
        assert_eq!(Reader(&[0, 0, 0, 9, b'a']).bytes(), Err(Malformed));
        assert_eq!(Reader(&[0xff, 0xff]).text(), Ok(None));
        assert_eq!(Reader(&[1]).i32(), Err(Malformed));
    }
}
