//! Trees as machines show them.

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
        let caches = [("1", "Data", "32K"), ("1", "Instruction", "48K"), ("3", "Unified", "10M")];
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
            ("proc/self/status", "Name:\tsqualld\nCpus_allowed:\tffff\nCpus_allowed_list:\t0-15"),
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
    assert_eq!((ninth.number, ninth.core(), ninth.node, ninth.package), (9, 8, Some(8), Some(8)));
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
        &[("sys/devices/system/cpu/present", "0-15"), ("sys/devices/system/cpu/online", "0-1,8-9")],
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
