//! Memory and processor time of the server's process.

/// Ticks of the kernel's clock in a second; the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Resident bytes.
pub fn resident_bytes(process: u32) -> u64 {
    memory_line(process, "VmRSS:")
}

/// Bytes of a line of the process's status.
fn memory_line(process: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// The most resident bytes so far.
pub fn peak_bytes(process: u32) -> u64 {
    memory_line(process, "VmHWM:")
}

/// Processor time so far, seconds.
pub fn cpu_seconds(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // After the name in parentheses: fields 14 and 15 of the whole line.
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / TICKS_PER_SECOND
}

/// MiB, for people.
pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
