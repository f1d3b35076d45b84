//! Copies a thread's registers and stack, by a signal to it. One copy at a time.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use crate::clock::monotonic;

/// Bytes of a stack that are copied at most, from its innermost frame outwards.
const COPY_BYTES: usize = 256 << 10;
/// Pieces that the kernel copies as a whole or not at all.
const PIECE_BYTES: usize = 4096;
const PIECES: usize = COPY_BYTES / PIECE_BYTES;
/// The time for a thread to answer: one that waits for a processor on a busy machine needs a while.
const ANSWER_MAX: Duration = Duration::from_millis(200);
const LOOK_AGAIN: Duration = Duration::from_micros(20);

/// Registers and the copied part of a stack.
pub(super) struct Copy<'c> {
    pub pc: u64,
    pub sp: u64,
    pub fp: u64,
    /// The return address, on processors that keep it in a register.
    #[cfg_attr(not(target_arch = "aarch64"), allow(dead_code, reason = "on the stack there"))]
    pub lr: u64,
    bytes: &'c [u8],
}

impl Copy<'_> {
    /// The eight bytes at an address of the stack.
    pub fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.sp)?).ok()?;
        let bytes = self.bytes.get(at..at.checked_add(8)?)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }
}

const IDLE: u32 = 0;
const REQUESTED: u32 = 1;
const COPYING: u32 = 2;
const DONE: u32 = 3;

/// The one place where a thread puts its copy.
struct Place {
    phase: AtomicU32,
    /// The thread that is asked.
    thread: AtomicI32,
    registers: [AtomicU64; 4],
    length: AtomicUsize,
    bytes: UnsafeCell<[u8; COPY_BYTES]>,
}

// SAFETY: `bytes` is written by the handler that moved `phase` from REQUESTED to COPYING, until it stores DONE, and read by the holder of `ASKING` between DONE and the next REQUESTED.
unsafe impl Sync for Place {}

static PLACE: Place = Place {
    phase: AtomicU32::new(IDLE),
    thread: AtomicI32::new(0),
    registers: [const { AtomicU64::new(0) }; 4],
    length: AtomicUsize::new(0),
    bytes: UnsafeCell::new([0; COPY_BYTES]),
};

/// Held by the thread that asks.
static ASKING: Mutex<()> = Mutex::new(());

fn signal() -> libc::c_int {
    // The first of the real-time signals that the C library leaves to programs.
    libc::SIGRTMIN()
}

/// Passes a copy of the thread's stack to `body`. `None` when it has ended or did not answer in time.
pub(super) fn with_copy<T>(thread_id: u32, body: impl FnOnce(&Copy<'_>) -> T) -> Option<T> {
    let _asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    install();
    PLACE.thread.store(thread_id.cast_signed(), Ordering::Relaxed);
    // Pairs with the handler's exchange: it sees which thread is asked.
    PLACE.phase.store(REQUESTED, Ordering::Release);
    let process = rustix::process::getpid().as_raw_pid();
    // SAFETY: sends a signal that has a handler to a thread of this process; if the thread has ended the call fails.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, thread_id, signal()) };
    if sent != 0 || !wait_for_answer() {
        PLACE.phase.store(IDLE, Ordering::Relaxed);
        return None;
    }
    let [pc, sp, fp, lr] = PLACE.registers.each_ref().map(|one| one.load(Ordering::Relaxed));
    let length = PLACE.length.load(Ordering::Relaxed);
    // SAFETY: the phase is DONE, so no handler writes, and `ASKING` is held: see `Place`.
    let bytes = unsafe { &(&*PLACE.bytes.get())[..length] };
    let result = body(&Copy { pc, sp, fp, lr, bytes });
    PLACE.phase.store(IDLE, Ordering::Relaxed);
    Some(result)
}

fn wait_for_answer() -> bool {
    let deadline = monotonic() + ANSWER_MAX;
    let (mut is_late, mut looks) = (false, 0_u32);
    loop {
        // Pairs with the handler's store of DONE: what it wrote is seen.
        match PLACE.phase.load(Ordering::Acquire) {
            DONE => return true,
            REQUESTED if is_late => {
                // The signal may arrive later: then it finds no request. Pairs with nothing, it only has to be one step.
                let taken_back = PLACE.phase.compare_exchange(
                    REQUESTED,
                    IDLE,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                if taken_back.is_ok() {
                    return false;
                }
            }
            // One that copies will be done.
            _ => {}
        }
        looks += 1;
        if looks > 100 {
            std::thread::sleep(LOOK_AGAIN);
            is_late = monotonic() > deadline;
        } else {
            std::thread::yield_now();
        }
    }
}

fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = answer;
        // SAFETY: an all-zero `sigaction` is a valid one.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        // SAFETY: `action` is initialised, and the handler only does what is safe at any point (see there).
        unsafe { libc::sigaction(signal(), &action, std::ptr::null_mut()) };
    });
}

/// The handler. It calls the operating system directly, writes to `PLACE` and its own frame, and leaves the error number as it was.
extern "C" fn answer(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: both only ask the operating system, or for the address of a word of this thread.
    let (own, errno) = unsafe { (libc::syscall(libc::SYS_gettid), libc::__errno_location()) };
    if own != libc::c_long::from(PLACE.thread.load(Ordering::Relaxed)) {
        return;
    }
    // Acquire: pairs with the release of the request.
    let mine =
        PLACE.phase.compare_exchange(REQUESTED, COPYING, Ordering::Acquire, Ordering::Relaxed);
    if mine.is_err() {
        return;
    }
    // SAFETY: the address of this thread's own error number.
    let error_number = unsafe { *errno };
    // SAFETY: the kernel passes a `ucontext_t` to handlers that were set with SA_SIGINFO.
    let registers = unsafe { registers(&*context.cast::<libc::ucontext_t>()) };
    for (place, value) in PLACE.registers.iter().zip(registers) {
        place.store(value, Ordering::Relaxed);
    }
    PLACE.length.store(copy(registers[1]), Ordering::Relaxed);
    // SAFETY: as above.
    unsafe { *errno = error_number };
    // Release: pairs with the acquire of the thread that asked.
    PLACE.phase.store(DONE, Ordering::Release);
}

/// Copies the stack from `sp` on, as far as there is memory; returns the number of bytes. The kernel copies, so that a place that cannot be read ends the copy and not the process.
fn copy(sp: u64) -> usize {
    let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    let mut pieces = [empty; PIECES];
    let (mut from, mut left, mut count) = (sp as usize, COPY_BYTES, 0);
    while left > 0 && count < PIECES {
        let length = (PIECE_BYTES - from % PIECE_BYTES).min(left);
        pieces[count] = libc::iovec { iov_base: from as *mut libc::c_void, iov_len: length };
        (from, left, count) = (from.wrapping_add(length), left - length, count + 1);
    }
    let to = libc::iovec { iov_base: PLACE.bytes.get().cast(), iov_len: COPY_BYTES };
    // SAFETY: the phase is COPYING, so that only this handler uses the buffer (see `Place`); the kernel checks what it reads.
    let copied = unsafe {
        let own = libc::syscall(libc::SYS_getpid);
        let (to, from) = (&raw const to, pieces.as_ptr());
        libc::syscall(libc::SYS_process_vm_readv, own, to, 1_usize, from, count, 0_usize)
    };
    usize::try_from(copied).unwrap_or(0).min(COPY_BYTES)
}

#[cfg(target_arch = "x86_64")]
fn registers(context: &libc::ucontext_t) -> [u64; 4] {
    let of = |number: libc::c_int| context.uc_mcontext.gregs[number as usize].cast_unsigned();
    [of(libc::REG_RIP), of(libc::REG_RSP), of(libc::REG_RBP), 0]
}

#[cfg(target_arch = "aarch64")]
fn registers(context: &libc::ucontext_t) -> [u64; 4] {
    let machine = &context.uc_mcontext;
    [machine.pc, machine.sp, machine.regs[29], machine.regs[30]]
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn registers(_: &libc::ucontext_t) -> [u64; 4] {
    [0; 4]
}
