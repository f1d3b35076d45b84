//! The machine's processors as the kernel shows them under /sys: nodes of memory, cores, the threads of each, caches, and which of them this process
//! may use. What is not there is unknown, never an error: containers hide parts of it, and other systems have other places.
//!
//! Numbers are the kernel's and have gaps: nodes of POWER machines are 0, 8, 252..., processors that are off keep theirs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

mod quota;
mod sizes;

pub use sizes::Sizes;

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
    /// The node whose memory is nearest: its own, unless that has none.
    pub memory_node: Option<u32>,
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
    /// As many processors as a limit of time lets this process use at once (the quota of a control group), if there is one.
    pub quota: Option<usize>,
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
        let memory_nodes = memory_nodes(root);
        let processors = present.into_iter().map(|number| {
            let is_online = online.as_ref().is_none_or(|online| online.contains(&number));
            let is_allowed = usable.as_ref().is_none_or(|usable| usable.contains(&number));
            let folder = cpus.join(format!("cpu{number}"));
            let topology = folder.join("topology");
            let node = nodes.get(&number).copied();
            let siblings = numbers(&topology.join("thread_siblings_list"))
                .or_else(|| numbers(&topology.join("core_cpus_list")));
            Processor {
                number,
                is_online,
                is_usable: is_online && is_allowed,
                node,
                memory_node: node.map(|node| memory_nodes.get(&node).copied().unwrap_or(node)),
                package: number_in(&topology.join("physical_package_id")),
                siblings: siblings.unwrap_or_else(|| BTreeSet::from([number])),
                caches: caches(&folder.join("cache")),
            }
        });
        Topology { processors: processors.collect(), quota: quota::read(root) }
    }

    /// Processors that this process may run on.
    pub fn usable(&self) -> impl Iterator<Item = &Processor> {
        self.processors.iter().filter(|processor| processor.is_usable)
    }

    /// Cores that this process may run on.
    pub fn usable_cores(&self) -> usize {
        self.usable().map(Processor::core).collect::<BTreeSet<u32>>().len()
    }

    /// Nodes near whose memory this process may run, by number.
    pub fn usable_nodes(&self) -> BTreeSet<u32> {
        self.usable().filter_map(|processor| processor.memory_node).collect()
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

    /// Processors for `count` threads that are bound to one each: the first ones of `placement`, several times if they are fewer, with those of a node
    /// one after the other.
    pub fn seats(&self, count: usize) -> Vec<u32> {
        let mut seats: Vec<u32> = self.placement().into_iter().cycle().take(count).collect();
        let node = |number: &u32| {
            let known = self.processors.iter().find(|processor| processor.number == *number);
            known.and_then(|processor| processor.memory_node)
        };
        // Stable: within a node they stay in their order.
        seats.sort_by_key(node);
        seats
    }

    /// The usable processors near the same memory as `number`, with itself.
    pub fn around(&self, number: u32) -> BTreeSet<u32> {
        let own = self.usable().find(|processor| processor.number == number);
        let Some(own) = own else { return BTreeSet::from([number]) };
        let is_near = |other: &&Processor| other.memory_node == own.memory_node;
        self.usable().filter(is_near).map(|processor| processor.number).collect()
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

/// For each node the one whose memory its processors use: its own, or of those that have memory the nearest. Empty when the kernel does not tell.
fn memory_nodes(root: &Path) -> BTreeMap<u32, u32> {
    let folder = root.join("sys/devices/system/node");
    let text = |path: &Path| std::fs::read_to_string(path).ok();
    let numbers = |name: &str| text(&folder.join(name)).and_then(|text| list(&text));
    let (Some(online), Some(with_memory)) = (numbers("online"), numbers("has_memory")) else {
        return BTreeMap::new();
    };
    let nearest = |node: u32| {
        if with_memory.contains(&node) {
            return Some((node, node));
        }
        // A distance for each node that is online, in their order.
        let distances = text(&folder.join(format!("node{node}/distance")))?;
        let distances = distances.split_ascii_whitespace().map(str::parse::<u32>);
        let of_nodes = online.iter().zip(distances);
        let with_memory = of_nodes.filter(|(other, _)| with_memory.contains(other));
        let known = with_memory.filter_map(|(other, distance)| Some((distance.ok()?, *other)));
        known.min().map(|(_, other)| (node, other))
    };
    online.iter().copied().filter_map(nearest).collect()
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
pub(crate) const PROCESSORS_MAX: u32 = 65_536;

/// The kernel's lists: `0-3,8,10-11`; an empty one has none.
pub(crate) fn list(text: &str) -> Option<BTreeSet<u32>> {
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

/// Numbers as the kernel writes them: `0-3,8`.
pub fn list_text(numbers: &BTreeSet<u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            Some(_) | None => runs.push((*number, *number)),
        }
    }
    let texts = runs.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    texts.collect::<Vec<String>>().join(",")
}

/// Whether the processor has the vector instructions of POWER8 for checksums.
#[cfg(target_arch = "powerpc64")]
pub fn has_vector_crypto() -> bool {
    // PPC_FEATURE2_VEC_CRYPTO.
    rustix::param::linux_hwcap().1 & 0x0200_0000 != 0
}

/// Whether the processor has the vector instructions of IBM z13, and the system lets programs use them.
#[cfg(target_arch = "s390x")]
pub fn has_vectors() -> bool {
    // HWCAP_S390_VXRS.
    rustix::param::linux_hwcap().0 & 0x800 != 0
}

#[cfg(test)]
mod tests;
