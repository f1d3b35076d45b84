//! The input of a connection: received bytes that are not consumed. Borrows its storage from the worker thread,
//! so that an idle connection owns none.

/// Bytes read at once.
pub(crate) const READ_BYTES: usize = 16 * 1024;
/// Storage larger than this is not kept by a worker.
const STORAGE_KEPT_MAX: usize = 64 * 1024;

/// A queue of bytes in one piece.
#[derive(Default)]
pub(crate) struct InputBuffer {
    /// All bytes are initialised; `start..end` is the content.
    data: Vec<u8>,
    start: usize,
    end: usize,
}

impl InputBuffer {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.data[self.start..self.end]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.data[self.start..self.end]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Drops the first `len` bytes.
    pub(crate) fn consume(&mut self, len: usize) {
        self.start = (self.start + len).min(self.end);
        if self.is_empty() {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Drops all but the first `len` bytes and returns the dropped ones.
    pub(crate) fn split_tail(&mut self, len: usize) -> Vec<u8> {
        let at = (self.start + len).min(self.end);
        let tail = self.data[at..self.end].to_vec();
        self.end = at;
        tail
    }

    /// Room to read into, at least one byte. Doubles when full: memory grows with the received data.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        if self.end == self.data.len() && self.start > 0 {
            self.data.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.data.len() {
            self.data.resize((2 * self.data.len()).max(READ_BYTES), 0);
        }
        &mut self.data[self.end..]
    }

    /// Counts `len` bytes of `space` as content.
    pub(crate) fn advance(&mut self, len: usize) {
        self.end = (self.end + len).min(self.data.len());
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.data.truncate(self.end);
        self.data.extend_from_slice(bytes);
        self.end = self.data.len();
    }

    /// Takes a worker's storage if this buffer has none.
    pub(crate) fn adopt(&mut self, storage: &mut Vec<u8>) {
        if self.data.is_empty() {
            self.data = std::mem::take(storage);
        }
    }

    /// Returns the storage. Unread bytes are moved to separate storage.
    pub(crate) fn release(&mut self, storage: &mut Vec<u8>) {
        if self.end - self.start >= READ_BYTES {
            // A large packet under way: moving it at every event would cost more than it saves.
            return;
        }
        let rest = if self.is_empty() { Vec::new() } else { self.bytes().to_vec() };
        *storage = std::mem::take(&mut self.data);
        if storage.len() > STORAGE_KEPT_MAX {
            storage.truncate(READ_BYTES);
            storage.shrink_to_fit();
        }
        self.start = 0;
        self.end = rest.len();
        self.data = rest;
    }
}
