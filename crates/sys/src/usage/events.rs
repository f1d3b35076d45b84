//! Event counters of one thread: those of the processor where there are any, and the kernel's count of moves between processors.
//! Opened once for each thread that is measured, closed with it.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsRawFd, FromRawFd};

/// The first version of the kernel's `perf_event_attr`, which every kernel takes.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_kind: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint_kind: u32,
    breakpoint_address: u64,
}

const KIND_HARDWARE: u32 = 0;
const KIND_SOFTWARE: u32 = 1;
/// The counters of the hardware group: cycles, instructions, cache misses.
const HARDWARE: [u64; 3] = [0, 1, 3];
const SOFTWARE_MIGRATIONS: u64 = 4;
/// A read returns the whole group, and how long it was enabled and how long it really counted.
const READ_FORMAT: u64 = 1 | 2 | 1 << 3;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// Words before the values: their number, and the two times.
const HEAD_WORDS: usize = 3;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Events {
    /// The group's first counter, and the others, which live as long.
    hardware: Option<(File, Vec<File>)>,
    migrations: Option<File>,
}

impl Events {
    pub(super) fn open() -> Events {
        let group = |flags| {
            let first = open(KIND_HARDWARE, HARDWARE[0], flags, None)?;
            let rest = HARDWARE[1..].iter();
            let rest = rest.map(|config| open(KIND_HARDWARE, *config, flags, Some(&first)));
            let rest = rest.collect::<Option<Vec<File>>>()?;
            Some((first, rest))
        };
        // Where only the kernel's administrator may count in the kernel, count in the program.
        let hardware = group(EXCLUDE_HYPERVISOR);
        let hardware = hardware.or_else(|| group(EXCLUDE_HYPERVISOR | EXCLUDE_KERNEL));
        Events { hardware, migrations: open(KIND_SOFTWARE, SOFTWARE_MIGRATIONS, 0, None) }
    }

    /// Cycles, instructions and cache misses.
    pub(super) fn hardware(&self) -> Option<[u64; 3]> {
        read(&self.hardware.as_ref()?.0)
    }

    pub(super) fn cycles(&self) -> Option<u64> {
        self.hardware().map(|[cycles, ..]| cycles)
    }

    pub(super) fn migrations(&self) -> Option<u64> {
        read(self.migrations.as_ref()?).map(|[count]: [u64; 1]| count)
    }
}

/// Opens a counter of the calling thread on whichever processor it runs.
fn open(kind: u32, config: u64, flags: u64, group: Option<&File>) -> Option<File> {
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        period: 0,
        sample_kind: 0,
        read_format: READ_FORMAT,
        flags,
        wakeup: 0,
        breakpoint_kind: 0,
        breakpoint_address: 0,
    };
    let (this_thread, any_processor) = (0, -1);
    let group = group.map_or(-1, AsRawFd::as_raw_fd);
    // SAFETY: the kernel reads the structure, which lives during the call and whose size is in it.
    let number = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(&attributes),
            this_thread,
            any_processor,
            group,
            CLOSE_ON_EXEC,
        )
    };
    let number = i32::try_from(number).ok().filter(|number| *number >= 0)?;
    // SAFETY: the call has just made this descriptor, and nobody else knows it.
    Some(unsafe { File::from_raw_fd(number) })
}

/// The values of a group. A group that had to share the processor's counters with others is extrapolated.
fn read<const N: usize>(mut file: &File) -> Option<[u64; N]> {
    let mut bytes = [0; 8 * (HEAD_WORDS + HARDWARE.len())];
    let wanted = 8 * (HEAD_WORDS + N);
    if file.read(&mut bytes[..wanted]).ok()? != wanted {
        return None;
    }
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[8 * at..8 * at + 8]);
        u64::from_ne_bytes(word)
    };
    let (enabled, counted) = (word(1), word(2));
    let whole = |value: u64| match counted {
        _ if counted == enabled => value,
        0 => 0,
        counted => (u128::from(value) * u128::from(enabled) / u128::from(counted)) as u64,
    };
    Some(std::array::from_fn(|at| whole(word(HEAD_WORDS + at))))
}
