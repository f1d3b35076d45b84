//! What of a machine a benchmark's figures depend on, as the kernel shows it: for reports. What it does not show is named as absent.

use std::collections::BTreeSet;
use std::path::Path;

use crate::topology::{Sizes, Topology};

/// The facts; `None` where the kernel does not show one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The processor's model.
    pub processor: Option<String>,
    /// Processors, cores and nodes that this process may use.
    pub usable: String,
    /// The most threads of a core that are on.
    pub smt: Option<String>,
    /// POWER's register that controls how far ahead the processor reads memory, as the kernel sets it for programs.
    pub dscr: Option<String>,
    /// What decides the processor's clock.
    pub governor: Option<String>,
    /// The hypervisor below.
    pub hypervisor: Option<String>,
}

impl Machine {
    /// This one.
    pub fn read() -> Machine {
        Machine::read_at(Path::new("/"))
    }

    /// Of a tree like the one of this machine's root folder.
    pub fn read_at(root: &Path) -> Machine {
        let topology = Topology::read_at(root);
        let sizes = Sizes::of(&topology);
        let cpuinfo = text(&root.join("proc/cpuinfo")).unwrap_or_default();
        let cpus = root.join("sys/devices/system/cpu");
        Machine {
            processor: model(&cpuinfo).or_else(|| board(root)),
            usable: format!(
                "processors: {}, cores: {}, nodes: {}",
                sizes.processors, sizes.cores, sizes.nodes
            ),
            smt: smt(&cpus, &topology),
            // A hexadecimal number without its 0x.
            dscr: text(&cpus.join("dscr_default")).map(|value| format!("0x{value}")),
            governor: governor(&cpus, &topology),
            hypervisor: hypervisor(root, &cpuinfo),
        }
    }

    /// A line for each fact: its name, and what it is.
    pub fn lines(&self) -> [(&'static str, String); 6] {
        let or = |fact: &Option<String>, absent: &str| {
            fact.clone().unwrap_or_else(|| format!("absent: {absent}"))
        };
        [
            ("Processor", or(&self.processor, "the kernel names no model")),
            ("Usable", self.usable.clone()),
            ("SMT", or(&self.smt, "the kernel shows no threads of cores")),
            ("DSCR", or(&self.dscr, "no processor of POWER, or the kernel does not show it")),
            ("Governor", or(&self.governor, "the clock is not the kernel's to decide")),
            ("Hypervisor", or(&self.hypervisor, "no sign of one")),
        ]
    }
}

/// A file's text without white space and zero bytes around it, which device trees end texts with; `None` when it is empty or not there.
fn text(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The value of the first `name : value` line of /proc/cpuinfo.
fn field<'t>(cpuinfo: &'t str, name: &str) -> Option<&'t str> {
    let pairs = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let named = pairs.filter(|(known, _)| known.trim() == name);
    named.map(|(_, value)| value.trim()).find(|value| !value.is_empty())
}

/// Each architecture calls it otherwise.
fn model(cpuinfo: &str) -> Option<String> {
    let named = ["model name", "cpu", "uarch"].iter().find_map(|name| field(cpuinfo, name));
    // ARM has numbers only.
    let arm = || {
        let (maker, part) = (field(cpuinfo, "CPU implementer")?, field(cpuinfo, "CPU part")?);
        Some(format!("ARM, implementer {maker}, part {part}"))
    };
    // s390x: `processor 0: version = 00,  identification = 123456,  machine = 3931`.
    let s390 = || {
        let first = field(cpuinfo, "processor 0")?;
        let machine = first.split(',').find_map(|part| part.trim().strip_prefix("machine = "))?;
        Some(format!("IBM Z, machine {machine}"))
    };
    named.map(str::to_owned).or_else(arm).or_else(s390)
}

/// The machine's own name, where the processor has none.
fn board(root: &Path) -> Option<String> {
    text(&root.join("proc/device-tree/model"))
}

fn smt(cpus: &Path, topology: &Topology) -> Option<String> {
    let threads = topology.threads_per_core();
    let control = text(&cpus.join("smt/control"));
    if topology.processors.is_empty() && control.is_none() {
        return None;
    }
    let control = control.map_or(String::new(), |word| format!(", control: {word}"));
    let mode = if threads == 1 { "off".to_owned() } else { format!("SMT{threads}") };
    Some(format!("{mode} (threads of a core: {threads}{control})"))
}

/// The governors of the processors that are on; several when they differ.
fn governor(cpus: &Path, topology: &Topology) -> Option<String> {
    let online = topology.processors.iter().filter(|processor| processor.is_online);
    let governors = online.filter_map(|processor| {
        text(&cpus.join(format!("cpu{}/cpufreq/scaling_governor", processor.number)))
    });
    let names: BTreeSet<String> = governors.collect();
    (!names.is_empty()).then(|| names.into_iter().collect::<Vec<String>>().join(", "))
}

fn hypervisor(root: &Path, cpuinfo: &str) -> Option<String> {
    // Xen.
    let by_sys = || text(&root.join("sys/hypervisor/type"));
    // KVM on ARM and POWER: `linux,kvm`.
    let by_tree = || text(&root.join("proc/device-tree/hypervisor/compatible"));
    // PowerVM has a partition of this name, and PowerNV is the bare machine.
    let by_partition = || {
        let is_guest = field(cpuinfo, "platform") == Some("pSeries");
        let name = text(&root.join("proc/device-tree/ibm,partition-name"));
        is_guest.then(|| match name {
            Some(name) => format!("PowerVM, partition {name}"),
            None => "pSeries, of an unknown hypervisor".to_owned(),
        })
    };
    // z/VM and KVM on s390x; the last line is the nearest.
    let by_sysinfo = || {
        let sysinfo = text(&root.join("proc/sysinfo"))?;
        let program = |line: &str| {
            let (name, value) = line.split_once(':')?;
            let is_program = name.starts_with("VM") && name.trim().ends_with("Control Program");
            is_program.then(|| value.trim().to_owned())
        };
        sysinfo.lines().filter_map(program).next_back()
    };
    // x86: the processor says that there is one, the firmware who.
    let by_flag = || {
        let mut flags = field(cpuinfo, "flags")?.split_ascii_whitespace();
        flags.any(|flag| flag == "hypervisor").then(|| {
            let dmi = |name: &str| text(&root.join("sys/class/dmi/id").join(name));
            match (dmi("sys_vendor"), dmi("product_name")) {
                (Some(vendor), Some(product)) => format!("{vendor} {product}"),
                (Some(name), None) | (None, Some(name)) => name,
                (None, None) => "there is one; the firmware does not name it".to_owned(),
            }
        })
    };
    by_sys().or_else(by_tree).or_else(by_partition).or_else(by_sysinfo).or_else(by_flag)
}

/// The time of all processors since the machine started, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorTimes {
    /// In which a hypervisor ran something else while a processor had work.
    pub stolen: u64,
    /// All.
    pub all: u64,
}

impl ProcessorTimes {
    /// This machine's; `None` when the kernel does not show them.
    pub fn read() -> Option<ProcessorTimes> {
        ProcessorTimes::read_at(Path::new("/"))
    }

    /// Of a tree like the one of this machine's root folder.
    pub fn read_at(root: &Path) -> Option<ProcessorTimes> {
        /// user, nice, system, idle, iowait, irq, softirq, steal; the guests' behind it are in user and nice.
        const STEAL: usize = 7;
        let stat = text(&root.join("proc/stat"))?;
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let times = line.split_ascii_whitespace().take(STEAL + 1).map(str::parse::<u64>);
        let times: Vec<u64> = times.collect::<Result<_, _>>().ok()?;
        let all = times.iter().fold(0, |sum: u64, time| sum.saturating_add(*time));
        Some(ProcessorTimes { stolen: *times.get(STEAL)?, all })
    }

    /// The share of the time since `earlier` that was stolen, in percent. `None` when no time has passed.
    pub fn stolen_percent_since(&self, earlier: &ProcessorTimes) -> Option<f64> {
        let all = self.all.checked_sub(earlier.all).filter(|all| *all > 0)?;
        Some(self.stolen.saturating_sub(earlier.stolen) as f64 * 100.0 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree under the test's own folder, removed with it.
    struct Tree(std::path::PathBuf);

    impl Tree {
        fn new(name: &str, files: &[(&str, &str)]) -> Tree {
            let own = format!("squall-machine-{name}-{}", std::process::id());
            let tree = Tree(std::env::temp_dir().join(own));
            for (path, text) in files {
                let path = tree.0.join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            tree
        }

        fn line(&self, name: &str) -> String {
            let lines = Machine::read_at(&self.0).lines();
            lines.into_iter().find(|(known, _)| *known == name).unwrap().1
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _gone_already = std::fs::remove_dir_all(&self.0);
        }
    }

    const CPU: &str = "sys/devices/system/cpu";

    fn siblings(number: u32) -> String {
        format!("{CPU}/cpu{number}/topology/thread_siblings_list")
    }

    #[test]
    fn a_power9_in_a_partition() {
        let (first, second) = (siblings(0), siblings(1));
        let tree = Tree::new(
            "power9",
            &[
                (
                    "proc/cpuinfo",
                    "processor\t: 0\ncpu\t\t: POWER9 (architected)\n\nplatform\t: pSeries\nmachine\t\t: CHRP IBM,9009-42A\n",
                ),
                ("proc/device-tree/ibm,partition-name", "db7\0"),
                ("sys/devices/system/cpu/present", "0-1\n"),
                ("sys/devices/system/cpu/online", "0-1\n"),
                ("sys/devices/system/cpu/dscr_default", "10\n"),
                ("sys/devices/system/cpu/smt/control", "on\n"),
                (&first, "0-1\n"),
                (&second, "0-1\n"),
            ],
        );
        let lines = Machine::read_at(&tree.0).lines();
        let expected = [
            ("Processor", "POWER9 (architected)"),
            ("Usable", "processors: 2, cores: 1, nodes: 1"),
            ("SMT", "SMT2 (threads of a core: 2, control: on)"),
            ("DSCR", "0x10"),
            ("Governor", "absent: the clock is not the kernel's to decide"),
            ("Hypervisor", "PowerVM, partition db7"),
        ];
        assert_eq!(lines, expected.map(|(name, text)| (name, text.to_owned())));
    }

    #[test]
    fn an_x86_guest_with_firmware_and_without() {
        let cpuinfo = "model name\t: AMD EPYC 9000\nflags\t\t: fpu sse hypervisor lm\n";
        let files = [
            ("proc/cpuinfo", cpuinfo),
            ("sys/devices/system/cpu/present", "0-1\n"),
            ("sys/devices/system/cpu/online", "0-1\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n"),
            ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
            ("sys/class/dmi/id/product_name", "Standard PC (Q35 + ICH9, 2009)\n"),
        ];
        let tree = Tree::new("x86", &files);
        assert_eq!(tree.line("Processor"), "AMD EPYC 9000");
        assert_eq!(tree.line("SMT"), "off (threads of a core: 1)");
        assert_eq!(tree.line("Governor"), "performance, powersave");
        assert_eq!(tree.line("Hypervisor"), "QEMU Standard PC (Q35 + ICH9, 2009)");
        assert!(tree.line("DSCR").starts_with("absent: "));
        let bare = Tree::new("x86-bare", &files[..1]);
        assert_eq!(bare.line("Hypervisor"), "there is one; the firmware does not name it");
    }

    #[test]
    fn others_say_it_in_other_places() {
        let arm = Tree::new(
            "arm",
            &[
                ("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"),
                ("proc/device-tree/hypervisor/compatible", "linux,kvm\0"),
            ],
        );
        assert_eq!(arm.line("Processor"), "ARM, implementer 0x41, part 0xd0c");
        assert_eq!(arm.line("Hypervisor"), "linux,kvm");
        let mainframe = Tree::new(
            "s390x",
            &[
                (
                    "proc/cpuinfo",
                    "vendor_id : IBM/S390\nprocessor 0: version = 00,  identification = 1,  machine = 3931\n",
                ),
                (
                    "proc/sysinfo",
                    "Type: 3931\nVM00 Name: DB7\nVM00 Control Program: z/VM    7.3.0\n",
                ),
            ],
        );
        assert_eq!(mainframe.line("Processor"), "IBM Z, machine 3931");
        assert_eq!(mainframe.line("Hypervisor"), "z/VM    7.3.0");
        let xen = Tree::new("xen", &[("sys/hypervisor/type", "xen\n")]);
        assert_eq!(xen.line("Hypervisor"), "xen");
        let bare = Tree::new("powernv", &[("proc/cpuinfo", "cpu : POWER8E\nplatform : PowerNV\n")]);
        assert_eq!(bare.line("Hypervisor"), "absent: no sign of one");
    }

    #[test]
    fn where_nothing_is_shown_everything_is_named_as_absent() {
        let tree = Tree::new("none", &[]);
        let lines = Machine::read_at(&tree.0).lines();
        let absent = lines.iter().filter(|(_, text)| text.starts_with("absent: ")).count();
        assert_eq!(absent, lines.len() - 1, "{lines:?}");
        assert_eq!(ProcessorTimes::read_at(&tree.0), None);
    }

    #[test]
    fn stolen_time_is_a_share_of_all_time() {
        let times = |text: &str| {
            let tree = Tree::new("stat", &[("proc/stat", text)]);
            ProcessorTimes::read_at(&tree.0)
        };
        let before = times("cpu  100 0 50 800 10 0 20 20 7 0\ncpu0 1 2 3\n").unwrap();
        assert_eq!(before, ProcessorTimes { stolen: 20, all: 1000 });
        let after = times("cpu  160 0 60 800 10 0 20 150 9 0\n").unwrap();
        assert_eq!(after.stolen_percent_since(&before), Some(65.0));
        assert_eq!(before.stolen_percent_since(&before), None);
        assert_eq!(before.stolen_percent_since(&after), None);
        assert_eq!(times("cpu  1 2 3\n"), None);
        assert_eq!(times("cpu  1 2 3 4 5 6 7 many\n"), None);
    }
}
