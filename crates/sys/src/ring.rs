//! Many writes in one system call: io_uring hands them to the device side by side, where one after another each would wait for the
//! last.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::{IoUring, opcode, types::Fd};

use crate::io_times::{Call, IoTimes, Target};

/// Writes under way at most: enough to keep a device busy, few enough that a write of the log does not wait long behind them. Measured with pieces of
/// 128 KiB and four clients that commit: of 64, one commit in a hundred took 7.9 times the median, of 8 3.4 times, for the same rate of commits.
const DEPTH: u32 = 8;
/// Between attempts to hand over writes when the kernel is short of something.
const RETRY_DELAY: Duration = Duration::from_millis(1);
/// Attempts before the ring is abandoned.
const ATTEMPTS: u32 = 100;

/// Bytes for a place in a file.
pub(crate) type Part<'b> = (u64, &'b [u8]);

/// A separate ring for one writer at a time. Without one, which the kernel may refuse at any time, writes go out one after another.
#[derive(Default)]
pub(crate) struct WriteRing {
    state: State,
}

#[derive(Default)]
enum State {
    #[default]
    Unused,
    Open(IoUring),
    /// The kernel has no io_uring, forbids it to this process, or took no more writes.
    Refused,
}

/// How a ring's writes ended.
enum End {
    Written,
    /// The kernel took some of them, or none, and holds none any more.
    Refused,
}

/// Parts that are still to be written.
struct Pending<'p, 'b> {
    parts: &'p [Part<'b>],
    /// The number of bytes written of each part.
    written: Vec<usize>,
    /// Parts to hand over, the first one last.
    waiting: Vec<usize>,
    under_way: u32,
    failure: Option<io::Error>,
}

impl WriteRing {
    /// Writes all parts, in no order. Nothing is under way when it returns.
    ///
    /// # Errors
    /// The first failure; which other parts were written is then unknown.
    pub(crate) fn write(
        &mut self,
        file: (&Target, &std::fs::File),
        parts: &[Part<'_>],
        times: &IoTimes,
    ) -> io::Result<()> {
        if matches!(self.state, State::Unused) {
            self.state = IoUring::new(DEPTH).map_or(State::Refused, State::Open);
        }
        if let State::Open(ring) = &mut self.state {
            match write_side_by_side(ring, file, parts, times)? {
                End::Written => return Ok(()),
                // Requests still in the ring must never reach the kernel: the ring is dropped.
                End::Refused => self.state = State::Refused,
            }
        }
        parts.iter().try_for_each(|(offset, bytes)| times.write_all(file.0, file.1, bytes, *offset))
    }
}

fn write_side_by_side(
    ring: &mut IoUring,
    (target, file): (&Target, &std::fs::File),
    parts: &[Part<'_>],
    times: &IoTimes,
) -> io::Result<End> {
    let mut pending = Pending {
        parts,
        written: vec![0; parts.len()],
        waiting: (0..parts.len()).rev().collect(),
        under_way: 0,
        failure: None,
    };
    let mut attempts = 0;
    loop {
        if attempts < ATTEMPTS {
            hand_over(ring, file, &mut pending);
        }
        // The kernel may still read the parts that it took: this must not return before its answer.
        let not_taken = ring.submission().len() as u32;
        if pending.under_way == 0 {
            return pending.failure.map_or(Ok(End::Written), Err);
        }
        if attempts >= ATTEMPTS && pending.under_way == not_taken {
            return Ok(End::Refused);
        }
        match times.time((target, Call::IoUringEnter), || ring.submit_and_wait(1)) {
            Ok(_) => attempts = 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => {
                attempts += 1;
                std::thread::sleep(RETRY_DELAY);
            }
        }
        for completion in ring.completion() {
            if let Ok(bytes) = usize::try_from(completion.result()) {
                times.add_part(target, bytes);
            }
            pending.complete(completion.user_data() as usize, completion.result());
        }
    }
}

fn hand_over(ring: &mut IoUring, file: &std::fs::File, pending: &mut Pending<'_, '_>) {
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
        // SAFETY: the file and the bytes are borrowed until `write` returns, which it does only when the kernel has none of them, and
        // a ring that still holds some is closed then.
        let pushed = unsafe { ring.submission().push(&entry) };
        pushed.expect("no more are under way than there is room for");
        pending.under_way += 1;
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::io_times::FileClass;

    #[test]
    fn writes_go_out_when_the_kernel_takes_none_from_the_ring() {
        let path = std::env::temp_dir().join(format!("squall-ring-{}", std::process::id()));
        let file = std::fs::OpenOptions::new();
        let file = file.clone().read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.unwrap();
        std::fs::remove_file(&path).unwrap();
        let (mut ring, times) = (WriteRing::default(), IoTimes::default());
        for round in 0..3u8 {
            let bytes = [round + 1; 512];
            let parts: Vec<Part<'_>> = (0..100).map(|at| (at * 1024, &bytes[..])).collect();
            if let (1, State::Open(open)) = (round, &ring.state) {
                let other = std::fs::File::open("/dev/null").unwrap();
                // SAFETY: both are open; the ring's number then means a file that takes no requests.
                assert!(unsafe { libc::dup2(other.as_raw_fd(), open.as_raw_fd()) } >= 0);
            }
            ring.write((&FileClass::Pages.into(), &file), &parts, &times).unwrap();
            for (offset, _) in parts {
                let mut seen = [0; 512];
                file.read_exact_at(&mut seen, offset).unwrap();
                assert_eq!(seen, bytes, "round {round} at {offset}");
            }
        }
        assert!(matches!(ring.state, State::Refused));
    }
}
