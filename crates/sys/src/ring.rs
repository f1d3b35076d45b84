//! Many writes in one system call: io_uring hands them to the device side by side, where one after another each would wait for the
//! last.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::{IoUring, opcode, types::Fd};

use crate::io_times::{Call, IoTimes};

/// Writes under way at most.
const DEPTH: u32 = 64;
/// Between attempts to hand over writes when the kernel is short of something.
const RETRY_DELAY: Duration = Duration::from_millis(1);

/// Bytes for a place in a file.
pub(crate) type Part<'b> = (u64, &'b [u8]);

/// A ring of its own for one writer at a time.
pub(crate) struct WriteRing {
    ring: IoUring,
}

/// Parts that are still to be written.
struct Pending<'p, 'b> {
    parts: &'p [Part<'b>],
    /// How much of each part is written.
    written: Vec<usize>,
    /// Parts to hand over, the first one last.
    waiting: Vec<usize>,
    under_way: u32,
    failure: Option<io::Error>,
}

impl WriteRing {
    /// # Errors
    /// The kernel has no io_uring, or forbids it to this process.
    pub(crate) fn new() -> io::Result<WriteRing> {
        Ok(WriteRing { ring: IoUring::new(DEPTH)? })
    }

    /// Writes all parts, in no order. Nothing is under way when it returns.
    ///
    /// # Errors
    /// The first failure; what else was written is then unknown.
    pub(crate) fn write(
        &mut self,
        file: &std::fs::File,
        parts: &[Part<'_>],
        times: &IoTimes,
    ) -> io::Result<()> {
        let mut pending = Pending {
            parts,
            written: vec![0; parts.len()],
            waiting: (0..parts.len()).rev().collect(),
            under_way: 0,
            failure: None,
        };
        loop {
            self.hand_over(file, &mut pending);
            if pending.under_way == 0 {
                return pending.failure.map_or(Ok(()), Err);
            }
            match times.time(Call::IoUringEnter, || self.ring.submit_and_wait(1)) {
                Ok(_) => {}
                // The kernel may still read the parts: returning is no choice before it has answered.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => std::thread::sleep(RETRY_DELAY),
            }
            for completion in self.ring.completion() {
                pending.complete(completion.user_data() as usize, completion.result());
            }
        }
    }

    fn hand_over(&mut self, file: &std::fs::File, pending: &mut Pending<'_, '_>) {
        while pending.failure.is_none() && pending.under_way < DEPTH {
            let Some(part) = pending.waiting.pop() else { return };
            let (offset, bytes) = pending.parts[part];
            let written = pending.written[part];
            let rest = &bytes[written..];
            let length = u32::try_from(rest.len()).unwrap_or(u32::MAX);
            let entry = opcode::Write::new(Fd(file.as_raw_fd()), rest.as_ptr(), length)
                .offset(offset + written as u64)
                .build()
                .user_data(part as u64);
            // SAFETY: the file and the bytes are borrowed until `write` returns, which it does only when nothing is under way.
            let pushed = unsafe { self.ring.submission().push(&entry) };
            pushed.expect("no more are under way than there is room for");
            pending.under_way += 1;
        }
    }
}

impl Pending<'_, '_> {
    fn complete(&mut self, part: usize, result: i32) {
        self.under_way -= 1;
        match usize::try_from(result) {
            Ok(0) if !self.parts[part].1.is_empty() => {
                self.fail(io::ErrorKind::WriteZero.into());
            }
            Ok(count) => {
                self.written[part] += count;
                if self.written[part] < self.parts[part].1.len() {
                    self.waiting.push(part);
                }
            }
            Err(_) => {
                let error = io::Error::from_raw_os_error(-result);
                match error.kind() {
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => {
                        self.waiting.push(part);
                    }
                    _ => self.fail(error),
                }
            }
        }
    }

    fn fail(&mut self, error: io::Error) {
        self.failure.get_or_insert(error);
    }
}
