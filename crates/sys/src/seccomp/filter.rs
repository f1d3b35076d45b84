//! The filters.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter_all_threads,
};

/// What the server may call with any arguments.
#[rustfmt::skip]
const CALLS: &[i64] = &[
    // Files.
    libc::SYS_openat, libc::SYS_close, libc::SYS_read, libc::SYS_write, libc::SYS_pread64, libc::SYS_pwrite64, libc::SYS_readv, libc::SYS_writev,
    libc::SYS_preadv, libc::SYS_pwritev, libc::SYS_preadv2, libc::SYS_pwritev2, libc::SYS_lseek, libc::SYS_fstat, libc::SYS_newfstatat, libc::SYS_statx,
    libc::SYS_fstatfs, libc::SYS_statfs, libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_sync_file_range, libc::SYS_ftruncate, libc::SYS_fallocate,
    libc::SYS_fadvise64, libc::SYS_flock, libc::SYS_fcntl, libc::SYS_ioctl, libc::SYS_getdents64, libc::SYS_faccessat, SYS_FACCESSAT2, libc::SYS_readlinkat,
    libc::SYS_mkdirat, libc::SYS_unlinkat, libc::SYS_renameat2, libc::SYS_linkat, libc::SYS_symlinkat, libc::SYS_fchmod, libc::SYS_fchmodat, libc::SYS_fchownat,
    libc::SYS_utimensat, libc::SYS_umask, libc::SYS_dup, libc::SYS_dup3, libc::SYS_pipe2, libc::SYS_copy_file_range, libc::SYS_sendfile, libc::SYS_memfd_create,
    libc::SYS_getcwd, libc::SYS_close_range,
    libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register,
    // Memory.
    libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_mprotect, libc::SYS_madvise, libc::SYS_mincore, libc::SYS_msync, libc::SYS_brk, libc::SYS_mlock,
    libc::SYS_munlock, libc::SYS_membarrier, libc::SYS_get_mempolicy, libc::SYS_mbind, libc::SYS_set_mempolicy,
    // Threads, time and signals.
    libc::SYS_futex, libc::SYS_set_robust_list, libc::SYS_rseq, libc::SYS_set_tid_address, libc::SYS_gettid, libc::SYS_getpid, libc::SYS_getppid, libc::SYS_exit,
    libc::SYS_exit_group, libc::SYS_sched_yield, libc::SYS_sched_getaffinity, libc::SYS_sched_setaffinity, libc::SYS_sched_getparam, libc::SYS_sched_getscheduler,
    libc::SYS_getpriority, libc::SYS_setpriority, libc::SYS_getcpu, libc::SYS_prctl, libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn, libc::SYS_rt_sigtimedwait, libc::SYS_sigaltstack, libc::SYS_tgkill,
    libc::SYS_clock_gettime, libc::SYS_clock_getres, libc::SYS_clock_nanosleep, libc::SYS_nanosleep, libc::SYS_gettimeofday, libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime, libc::SYS_getrandom, libc::SYS_getrusage, libc::SYS_prlimit64, libc::SYS_sysinfo, libc::SYS_uname, libc::SYS_times,
    libc::SYS_getuid, libc::SYS_geteuid, libc::SYS_getgid, libc::SYS_getegid, libc::SYS_getgroups,
    // Waiting and sockets.
    libc::SYS_epoll_create1, libc::SYS_epoll_ctl, libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2, libc::SYS_eventfd2, libc::SYS_ppoll, libc::SYS_pselect6,
    libc::SYS_signalfd4, libc::SYS_inotify_init1, libc::SYS_inotify_add_watch, libc::SYS_inotify_rm_watch,
    libc::SYS_socketpair, libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4, libc::SYS_connect, libc::SYS_getsockname, libc::SYS_getpeername,
    libc::SYS_getsockopt, libc::SYS_setsockopt, libc::SYS_sendto, libc::SYS_recvfrom, libc::SYS_sendmsg, libc::SYS_recvmsg, libc::SYS_sendmmsg, libc::SYS_recvmmsg,
    libc::SYS_shutdown,
];

/// The C library of some systems names it no more than others do.
const SYS_FACCESSAT2: i64 = 439;

/// Forms that x86-64 has besides.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLD_CALLS: &[i64] = &[
    libc::SYS_open, libc::SYS_stat, libc::SYS_lstat, libc::SYS_access, libc::SYS_readlink, libc::SYS_mkdir, libc::SYS_rmdir, libc::SYS_unlink, libc::SYS_rename,
    libc::SYS_link, libc::SYS_symlink, libc::SYS_chmod, libc::SYS_chown, libc::SYS_renameat, libc::SYS_getdents, libc::SYS_dup2, libc::SYS_pipe, libc::SYS_poll, libc::SYS_select,
    libc::SYS_epoll_create, libc::SYS_epoll_wait, libc::SYS_eventfd, libc::SYS_inotify_init, libc::SYS_time, libc::SYS_getrlimit, libc::SYS_setrlimit, libc::SYS_arch_prctl, libc::SYS_alarm,
];
/// Forms that aarch64 has besides.
#[cfg(target_arch = "aarch64")]
const OLD_CALLS: &[i64] = &[libc::SYS_renameat, libc::SYS_getrlimit, libc::SYS_setrlimit];
/// RISC-V came after them.
#[cfg(target_arch = "riscv64")]
const OLD_CALLS: &[i64] = {
    /// The libraries' list lacks it: the first call of the processor's own, 244, and 15.
    const RISCV_FLUSH_ICACHE: i64 = 259;
    &[RISCV_FLUSH_ICACHE]
};

/// Kinds of sockets: of this machine, and of the Internet; netlink for the C library's look at the addresses of the machine.
const FAMILIES: [i32; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

#[cfg(target_arch = "x86_64")]
const ARCH: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCH: TargetArch = TargetArch::aarch64;
#[cfg(target_arch = "riscv64")]
const ARCH: TargetArch = TargetArch::riscv64;

pub(super) fn confine_all() -> io::Result<()> {
    programs()?
        .iter()
        .try_for_each(|program| apply_filter_all_threads(program).map_err(io::Error::other))
}

/// The filters, in the order in which they are put on.
fn programs() -> io::Result<[BpfProgram; 2]> {
    let condition = |argument: u8, operator: SeccompCmpOp, value: u64| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
            .and_then(|condition| SeccompRule::new(vec![condition]))
            .map_err(io::Error::other)
    };
    let calls = CALLS.iter().chain(OLD_CALLS);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        calls.map(|call| (*call, Vec::new())).collect();
    // A thread, and no process.
    let thread = libc::CLONE_THREAD as u64;
    let is_thread = condition(0, SeccompCmpOp::MaskedEq(thread), thread)?;
    rules.insert(libc::SYS_clone, vec![is_thread]);
    let families = FAMILIES.iter().map(|family| condition(0, SeccompCmpOp::Eq, *family as u64));
    rules.insert(libc::SYS_socket, families.collect::<io::Result<_>>()?);
    // Its own process only; signal 0 asks whether a process is there.
    let probes = condition(1, SeccompCmpOp::Eq, 0)?;
    let own = condition(0, SeccompCmpOp::Eq, std::process::id().into())?;
    // A look at memory of its own that may not be there: stacks of threads.
    rules.insert(libc::SYS_process_vm_readv, vec![own.clone()]);
    rules.insert(libc::SYS_kill, vec![probes, own]);
    // Its arguments are in memory, where a filter does not see them: the C library then takes `clone`.
    rules.insert(libc::SYS_clone3, Vec::new());
    let forms = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let compile = |rules, others, these| {
        let filter = SeccompFilter::new(rules, others, these, ARCH).map_err(io::Error::other)?;
        BpfProgram::try_from(filter).map_err(io::Error::other)
    };
    let (refused, missing) = (libc::EPERM as u32, libc::ENOSYS as u32);
    Ok([
        compile(forms, SeccompAction::Allow, SeccompAction::Errno(missing))?,
        compile(rules, SeccompAction::Errno(refused), SeccompAction::Allow)?,
    ])
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]
mod tests {
    use super::*;

    /// In a thread of its own, so that the other tests stay as they are.
    #[test]
    fn what_is_not_on_the_list_is_refused_and_the_rest_works() {
        let thread = std::thread::spawn(|| {
            for program in programs().unwrap() {
                match seccompiler::apply_filter(&program) {
                    Err(seccompiler::Error::Seccomp(error))
                        if error.raw_os_error() == Some(libc::ENOSYS) =>
                    {
                        eprintln!("left out: this kernel, or its emulator, has no filters");
                        return;
                    }
                    applied => applied.unwrap(),
                }
            }
            let is_refused = |done: io::Result<()>| {
                done.is_err_and(|error| error.raw_os_error() == Some(libc::EPERM))
            };
            // No process, hence no program.
            assert!(is_refused(std::process::Command::new("true").spawn().map(drop)));
            // SAFETY: none of these calls reads or writes memory of the process.
            let call = |number: i64, first: i64, second: i64| unsafe {
                match libc::syscall(number, first, second, 0, 0) {
                    -1 => Err(io::Error::last_os_error()),
                    _ => Ok(()),
                }
            };
            assert!(is_refused(call(libc::SYS_unshare, libc::CLONE_NEWUSER.into(), 0)));
            assert!(is_refused(call(libc::SYS_ptrace, 16, 1)));
            assert!(is_refused(call(libc::SYS_socket, libc::AF_PACKET.into(), 3)));
            assert!(is_refused(call(libc::SYS_kill, 1, libc::SIGTERM.into())));
            call(libc::SYS_kill, std::process::id().into(), 0).unwrap();
            call(libc::SYS_getpid, 0, 0).unwrap();
            // Threads, files and sockets as ever; threads have the filter too.
            let inner = std::thread::spawn(|| std::fs::read("/proc/thread-self/status").unwrap());
            let status = String::from_utf8(inner.join().unwrap()).unwrap();
            assert!(status.contains("Seccomp:\t2"), "{status}");
            std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        });
        thread.join().unwrap();
    }
}
