//! Limits of processor time by control groups: a container with a limit of two processors sees all of the machine's.

use std::path::Path;

/// Where the controller of version 1 is mounted.
const VERSION_1: [&str; 3] =
    ["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/cpuacct,cpu"];
const VERSION_2: [&str; 2] = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];

/// As many whole processors as the narrowest limit of this process's groups gives, at least one. `None` without a limit.
pub(super) fn read(root: &Path) -> Option<usize> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let limits = groups.lines().filter_map(|line| {
        // Number, controllers, path; the number of version 2 is 0, and it names no controllers.
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        if number == "0" && controllers.is_empty() {
            return narrowest(root, &VERSION_2, path, of_version_2);
        }
        let is_cpu = controllers.split(',').any(|controller| controller == "cpu");
        is_cpu.then(|| narrowest(root, &VERSION_1, path, of_version_1)).flatten()
    });
    limits.min()
}

/// The least limit of a group and those around it.
fn narrowest(
    root: &Path,
    mounts: &[&str],
    path: &str,
    limit: fn(&Path) -> Option<usize>,
) -> Option<usize> {
    let relative = Path::new(path.trim_start_matches('/'));
    let groups = mounts.iter().flat_map(|mount| {
        // The last of the ancestors is empty: the mount itself, which is what a container sees of its group.
        relative.ancestors().map(move |group| root.join(mount).join(group))
    });
    groups.filter_map(|group| limit(&group)).min()
}

/// `cpu.max`: a time and a period in microseconds, or `max` and a period.
fn of_version_2(group: &Path) -> Option<usize> {
    let text = std::fs::read_to_string(group.join("cpu.max")).ok()?;
    let (time, period) = text.trim().split_once(' ')?;
    processors(time, period)
}

/// The time is -1 without a limit.
fn of_version_1(group: &Path) -> Option<usize> {
    let text = |name: &str| std::fs::read_to_string(group.join(name)).ok();
    processors(text("cpu.cfs_quota_us")?.trim(), text("cpu.cfs_period_us")?.trim())
}

fn processors(time: &str, period: &str) -> Option<usize> {
    let (time, period): (usize, usize) = (time.parse().ok()?, period.parse().ok()?);
    Some(time.checked_div(period)?.max(1))
}
