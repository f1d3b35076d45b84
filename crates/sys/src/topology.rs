//! The machine's processors as the kernel shows them under /sys: nodes of memory, cores, the threads of each, caches, and which of them this process
//! may use. What is not there is unknown, never an error: containers hide parts of it, and other systems have other places.
//!
//! Numbers are the kernel's and have gaps: nodes of POWER machines are 0, 8, 252..., processors that are off keep theirs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A cache of a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// 1 is nearest.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Its size.
    pub bytes: u64,
    /// Processors that share it.
    pub shared_by: BTreeSet<u32>,
}

/// A hardware thread: what the kernel calls a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processor {
    /// The kernel's number.
    pub number: u32,
    /// Whether it runs; of one that is off the kernel tells no more than its number and node.
    pub is_online: bool,
    /// Whether this process may run on it (cpusets, affinity).
    pub is_usable: bool,
    /// The node of memory that it belongs to.
    pub node: Option<u32>,
    /// The socket.
    pub package: Option<u32>,
    /// The threads of its core that are on, with itself.
    pub siblings: BTreeSet<u32>,
    /// Its caches.
    pub caches: Vec<Cache>,
}

impl Processor {
    /// The core, named by its first thread that is on.
    pub fn core(&self) -> u32 {
        self.siblings.first().copied().unwrap_or(self.number)
    }

    /// Bytes of the cache of a level that holds data.
    pub fn cache_bytes(&self, level: u32) -> Option<u64> {
        let holds_data = |cache: &&Cache| cache.level == level && cache.kind != "Instruction";
        self.caches.iter().find(holds_data).map(|cache| cache.bytes)
    }
}

/// The processors, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// All that are plugged in.
    pub processors: Vec<Processor>,
}

impl Topology {
    /// This machine's.
    pub fn read() -> Topology {
        Topology::read_at(Path::new("/"))
    }

    /// Of a tree like the one of this machine's root folder.
    pub fn read_at(root: &Path) -> Topology {
        let cpus = root.join("sys/devices/system/cpu");
        let numbers = |path: &Path| std::fs::read_to_string(path).ok().and_then(|text| list(&text));
        let online = numbers(&cpus.join("online"));
        let present = numbers(&cpus.join("present")).or_else(|| online.clone()).unwrap_or_default();
        let usable = std::fs::read_to_string(root.join("proc/self/status"))
            .ok()
            .and_then(|text| list(field(&text, "Cpus_allowed_list")?));
        let nodes = nodes(root);
        let processors = present.into_iter().map(|number| {
            let is_online = online.as_ref().is_none_or(|online| online.contains(&number));
            let is_allowed = usable.as_ref().is_none_or(|usable| usable.contains(&number));
            let folder = cpus.join(format!("cpu{number}"));
            let topology = folder.join("topology");
            let siblings = numbers(&topology.join("thread_siblings_list"))
                .or_else(|| numbers(&topology.join("core_cpus_list")));
            Processor {
                number,
                is_online,
                is_usable: is_online && is_allowed,
                node: nodes.get(&number).copied(),
                package: number_in(&topology.join("physical_package_id")),
                siblings: siblings.unwrap_or_else(|| BTreeSet::from([number])),
                caches: caches(&folder.join("cache")),
            }
        });
        Topology { processors: processors.collect() }
    }

    /// Processors that this process may run on.
    pub fn usable(&self) -> impl Iterator<Item = &Processor> {
        self.processors.iter().filter(|processor| processor.is_usable)
    }

    /// Cores that this process may run on.
    pub fn usable_cores(&self) -> usize {
        self.usable().map(Processor::core).collect::<BTreeSet<u32>>().len()
    }

    /// The most threads of one core that are on: the SMT mode. 1 when there are none, or the kernel does not tell.
    pub fn threads_per_core(&self) -> usize {
        let online = self.processors.iter().filter(|processor| processor.is_online);
        online.map(|processor| processor.siblings.len()).max().unwrap_or(1).max(1)
    }

    /// The usable processors in the order in which to fill them: one thread of each core before the second of any, nodes in turn.
    pub fn placement(&self) -> Vec<u32> {
        let mut of_core: BTreeMap<u32, u32> = BTreeMap::new();
        let mut of_node: BTreeMap<(u32, Option<u32>), u32> = BTreeMap::new();
        let mut order: Vec<(u32, u32, u32)> = Vec::new();
        for processor in self.usable() {
            let thread = of_core.entry(processor.core()).or_default();
            let turn = of_node.entry((*thread, processor.node)).or_default();
            order.push((*thread, *turn, processor.number));
            *thread += 1;
            *turn += 1;
        }
        order.sort_unstable();
        order.into_iter().map(|(_, _, number)| number).collect()
    }
}

/// The node of each processor.
fn nodes(root: &Path) -> BTreeMap<u32, u32> {
    let folder = root.join("sys/devices/system/node");
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("node")?.parse().ok());
        let text = std::fs::read_to_string(entry.path().join("cpulist"));
        if let (Some(number), Ok(text)) = (number, text) {
            found.extend(list(&text).unwrap_or_default().into_iter().map(|cpu| (cpu, number)));
        }
    }
    found
}

fn caches(folder: &Path) -> Vec<Cache> {
    let one = |at: u32| {
        let index = folder.join(format!("index{at}"));
        let text = |name: &str| std::fs::read_to_string(index.join(name)).ok();
        Some(Cache {
            level: number_in(&index.join("level"))?,
            kind: text("type")?.trim().to_owned(),
            bytes: size(text("size")?.trim())?,
            shared_by: list(&text("shared_cpu_list")?)?,
        })
    };
    // Some have no size; later ones may.
    (0..CACHES_MAX).filter_map(one).collect()
}

/// More than any processor has.
const CACHES_MAX: u32 = 16;

fn number_in(path: &Path) -> Option<u32> {
    // -1 where it is unknown.
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// `512K`, `8M` or bytes.
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|end: char| end.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The value of a `Name: value` line.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

/// No machine has more; a damaged list stays small.
const PROCESSORS_MAX: u32 = 65_536;

/// The kernel's lists: `0-3,8,10-11`; an empty one has none.
fn list(text: &str) -> Option<BTreeSet<u32>> {
    let mut numbers = BTreeSet::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last >= PROCESSORS_MAX {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// Whether the processor has the vector instructions of POWER8 for checksums.
#[cfg(target_arch = "powerpc64")]
pub fn has_vector_crypto() -> bool {
    // PPC_FEATURE2_VEC_CRYPTO.
    rustix::param::linux_hwcap().1 & 0x0200_0000 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree under the test's own folder, removed with it.
    struct Tree(std::path::PathBuf);

    impl Tree {
        fn new(name: &str, files: &[(&str, &str)]) -> Tree {
            let own = format!("squall-topology-{name}-{}", std::process::id());
            let tree = Tree(std::env::temp_dir().join(own));
            for (path, text) in files {
                tree.write(path, text);
            }
            tree
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        }

        fn cpu(&self, number: u32, siblings: &str, package: i32) {
            let folder = format!("sys/devices/system/cpu/cpu{number}");
            self.write(&format!("{folder}/topology/thread_siblings_list"), siblings);
            self.write(&format!("{folder}/topology/physical_package_id"), &package.to_string());
            let caches =
                [("1", "Data", "32K"), ("1", "Instruction", "48K"), ("3", "Unified", "10M")];
            for (at, (level, kind, bytes)) in caches.into_iter().enumerate() {
                let index = format!("{folder}/cache/index{at}");
                self.write(&format!("{index}/level"), level);
                self.write(&format!("{index}/type"), kind);
                self.write(&format!("{index}/size"), bytes);
                self.write(&format!("{index}/shared_cpu_list"), siblings);
            }
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _gone_already = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Two sockets of two cores with four threads; nodes 0 and 8, and one of a graphics card without processors.
    fn power9(name: &str) -> Tree {
        let tree = Tree::new(
            name,
            &[
                ("sys/devices/system/cpu/present", "0-15"),
                ("sys/devices/system/cpu/online", "0-15"),
                ("sys/devices/system/node/node0/cpulist", "0-7"),
                ("sys/devices/system/node/node8/cpulist", "8-15"),
                ("sys/devices/system/node/node252/cpulist", ""),
                (
                    "proc/self/status",
                    "Name:\tsqualld\nCpus_allowed:\tffff\nCpus_allowed_list:\t0-15",
                ),
            ],
        );
        for number in 0..16 {
            let first = number / 4 * 4;
            tree.cpu(number, &format!("{first}-{}", first + 3), (number / 8 * 8).cast_signed());
        }
        tree
    }

    #[test]
    fn a_power9_has_four_threads_in_a_core_and_sparse_nodes() {
        let tree = power9("power9");
        let topology = Topology::read_at(&tree.0);
        assert_eq!((topology.threads_per_core(), topology.usable_cores()), (4, 4));
        let ninth = &topology.processors[9];
        assert_eq!(
            (ninth.number, ninth.core(), ninth.node, ninth.package),
            (9, 8, Some(8), Some(8))
        );
        assert_eq!((ninth.cache_bytes(1), ninth.cache_bytes(3)), (Some(32 << 10), Some(10 << 20)));
        assert_eq!(ninth.cache_bytes(2), None);
        // One thread of each core first, the nodes in turn.
        let order = topology.placement();
        assert_eq!(order[..6], [0, 8, 4, 12, 1, 9]);
    }

    #[test]
    fn smt8_with_most_threads_off_runs_in_smt2() {
        let tree = Tree::new(
            "smt8",
            &[
                ("sys/devices/system/cpu/present", "0-15"),
                ("sys/devices/system/cpu/online", "0-1,8-9"),
            ],
        );
        for (number, siblings) in [(0, "0-1"), (1, "0-1"), (8, "8-9"), (9, "8-9")] {
            tree.cpu(number, siblings, 0);
        }
        let topology = Topology::read_at(&tree.0);
        assert_eq!((topology.processors.len(), topology.usable().count()), (16, 4));
        assert_eq!((topology.threads_per_core(), topology.usable_cores()), (2, 2));
        assert_eq!(topology.placement(), [0, 8, 1, 9]);
        assert!(!topology.processors[2].is_online && !topology.processors[2].is_usable);
    }

    #[test]
    fn a_cpuset_leaves_out_what_it_does_not_name() {
        let tree = power9("cpuset");
        tree.write("proc/self/status", "Cpus_allowed_list:\t5,8-9");
        let topology = Topology::read_at(&tree.0);
        assert_eq!((topology.usable().count(), topology.usable_cores()), (3, 2));
        assert_eq!(topology.placement(), [5, 8, 9]);
        // The core has four threads whoever may use them.
        assert_eq!(topology.threads_per_core(), 4);
    }

    #[test]
    fn where_nothing_is_shown_nothing_is_known() {
        let tree = Tree::new("none", &[("sys/devices/system/cpu/online", "a-b")]);
        let topology = Topology::read_at(&tree.0);
        assert_eq!(topology, Topology::default());
        assert_eq!((topology.threads_per_core(), topology.usable_cores()), (1, 0));
        assert_eq!(list("0-4000000000"), None);
        assert_eq!(list("3-1"), Some(BTreeSet::new()));
        assert_eq!((size("12X"), size("99999999999999999999K")), (None, None));
    }

    #[test]
    fn this_machine_has_a_processor_for_this_process() {
        let topology = Topology::read();
        if Path::new("/sys/devices/system/cpu/online").exists() {
            assert!(topology.usable().count() >= 1);
            assert_eq!(topology.placement().len(), topology.usable().count());
        }
    }
}
