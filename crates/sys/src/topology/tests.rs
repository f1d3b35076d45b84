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

/// A machine of nodes with cores, by the numbers of the processors of each core.
fn machine(name: &str, nodes: &[(u32, &[&[u32]])]) -> Tree {
    let tree = Tree::new(name, &[]);
    let mut present = BTreeSet::new();
    let set = |numbers: &[u32]| numbers.iter().copied().collect::<BTreeSet<u32>>();
    for (node, cores) in nodes {
        let own: BTreeSet<u32> = cores.iter().flat_map(|core| set(core)).collect();
        tree.write(&format!("sys/devices/system/node/node{node}/cpulist"), &list_text(&own));
        for core in *cores {
            for number in *core {
                tree.cpu(*number, &list_text(&set(core)), node.cast_signed());
            }
        }
        present.extend(own);
    }
    let present = list_text(&present);
    tree.write("sys/devices/system/cpu/present", &present);
    tree.write("sys/devices/system/cpu/online", &present);
    tree.write("proc/self/status", &format!("Cpus_allowed_list:\t{present}"));
    tree
}

fn sizes(topology: &Topology) -> (usize, usize, usize) {
    let sizes = Sizes::of(topology);
    (sizes.processors, sizes.cores, sizes.nodes)
}

#[test]
fn a_small_machine_has_the_sizes_that_were_measured_on_it() {
    let tree = machine("small", &[(0, &[&[0], &[1]])]);
    let topology = Topology::read_at(&tree.0);
    assert_eq!((sizes(&topology), topology.seats(2)), ((2, 2, 1), vec![0, 1]));
    assert_eq!(topology.seats(5), [0, 1, 0, 1, 0]);
    let sizes = Sizes::of(&topology);
    assert_eq!((sizes.lanes(), sizes.partitions(64), sizes.partitions(0)), (2, 4, 1));
    assert_eq!((sizes.shards(16), sizes.flights(), sizes.helpers()), (16, 2, 4));
    assert_eq!(sizes.waiting_workers(), 8);
}

/// Two nodes, 0 and 8, of eight cores with eight threads; the second core of the second node is missing, and its numbers with it.
fn smt8(name: &str) -> Tree {
    let core = |at: u32| -> Vec<u32> { (at * 8..at * 8 + 8).collect() };
    let first: Vec<Vec<u32>> = (0..8).map(core).collect();
    let second: Vec<Vec<u32>> = (8..16).filter(|at| *at != 9).map(core).collect();
    let first: Vec<&[u32]> = first.iter().map(Vec::as_slice).collect();
    let second: Vec<&[u32]> = second.iter().map(Vec::as_slice).collect();
    machine(name, &[(0, &first), (8, &second)])
}

#[test]
fn a_large_power_machine_gets_one_seat_a_core_before_the_second_threads() {
    let tree = smt8("smt8-full");
    let topology = Topology::read_at(&tree.0);
    assert_eq!(sizes(&topology), (120, 15, 2));
    // Fewer threads than cores: on a core each, spread over the nodes, those of a node together.
    assert_eq!(topology.seats(4), [0, 8, 64, 80]);
    let one_each = topology.seats(15);
    let cores: BTreeSet<u32> = one_each.iter().map(|number| number / 8).collect();
    assert_eq!((cores.len(), one_each.iter().all(|number| number % 8 == 0)), (15, true));
    let all = topology.seats(120);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 120);
    // The reactors of a node have neighbouring numbers; in a node the second threads come behind all first ones.
    assert!(all[..64].iter().all(|number| *number < 64));
    assert_eq!((&all[..9], all[64]), (&[0, 8, 16, 24, 32, 40, 48, 56, 1][..], 64));
    assert_eq!(topology.around(70).len(), 56);
    let sizes = Sizes::of(&topology);
    assert_eq!((sizes.lanes(), sizes.partitions(64), sizes.shards(16)), (64, 64, 128));
    assert_eq!((sizes.flights(), sizes.helpers()), (4, 240));
}

#[test]
fn processors_that_are_off_get_no_seat() {
    let tree = smt8("smt8-off");
    // SMT2 on the first node, the second one off.
    tree.write("sys/devices/system/cpu/online", "0-1,8-9,16-17");
    let topology = Topology::read_at(&tree.0);
    assert_eq!((sizes(&topology), topology.seats(6)), ((6, 3, 1), vec![0, 8, 16, 1, 9, 17]));
    assert_eq!(Sizes::of(&topology).lanes(), 8);
}

#[test]
fn a_node_without_memory_belongs_to_the_nearest_that_has_some() {
    let tree = machine("memoryless", &[(0, &[&[0], &[1]]), (4, &[&[4]]), (8, &[&[8], &[9]])]);
    // Node 252 is memory alone.
    let folder = "sys/devices/system/node";
    tree.write(&format!("{folder}/online"), "0,4,8,252");
    tree.write(&format!("{folder}/has_memory"), "0,8,252");
    tree.write(&format!("{folder}/node4/distance"), "40 10 20 80");
    tree.write(&format!("{folder}/node252/cpulist"), "");
    let topology = Topology::read_at(&tree.0);
    let fourth = topology.processors.iter().find(|one| one.number == 4).unwrap();
    assert_eq!((fourth.node, fourth.memory_node), (Some(4), Some(8)));
    assert_eq!((sizes(&topology), topology.seats(5)), ((5, 5, 2), vec![0, 1, 4, 8, 9]));
    assert_eq!(topology.around(4), BTreeSet::from([4, 8, 9]));
    // Ten would be two for each processor; as many for each node.
    assert_eq!(Sizes::of(&topology).partitions(64), 10);
    assert_eq!(Sizes::of(&topology).partitions(7), 6);
    // Nobody says how far it is: it is a node of its own.
    std::fs::remove_file(tree.0.join(format!("{folder}/node4/distance"))).unwrap();
    assert_eq!(sizes(&Topology::read_at(&tree.0)), (5, 5, 3));
}

#[test]
fn a_quota_of_time_counts_like_fewer_processors() {
    let tree = smt8("quota");
    let quota = |path: &str, text: &str| {
        tree.write(&format!("sys/fs/cgroup/{path}cpu.max"), text);
        Topology::read_at(&tree.0)
    };
    tree.write("proc/self/cgroup", "0::/service/squalld");
    assert_eq!(sizes(&quota("service/squalld/", "max 100000")), (120, 15, 2));
    let topology = quota("service/squalld/", "350000 100000");
    assert_eq!((topology.quota, sizes(&topology)), (Some(3), (3, 3, 2)));
    // Half a processor is one; the narrowest of the groups around counts, and a period of 0 is no limit.
    assert_eq!(sizes(&quota("service/", "50000 100000")), (1, 1, 1));
    assert_eq!(quota("service/", "50000 0").quota, Some(3));
    assert_eq!(quota("service/squalld/", "nonsense").quota, None);
    // Version 1, as a container sees it: the group's path is not there, its files are at the top.
    tree.write("proc/self/cgroup", "3:cpuset:/\n2:cpu,cpuacct:/docker/0123\n0::/");
    tree.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
    tree.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
    assert_eq!(Topology::read_at(&tree.0).quota, None);
    tree.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "800000");
    assert_eq!(sizes(&Topology::read_at(&tree.0)), (8, 8, 2));
}

#[test]
fn a_cpuset_narrows_seats_and_sizes() {
    let tree = smt8("narrow");
    tree.write("proc/self/status", "Cpus_allowed_list:\t2,6,80-81");
    let topology = Topology::read_at(&tree.0);
    // Two threads of one core on each node.
    assert_eq!((sizes(&topology), topology.seats(4)), ((4, 2, 2), vec![2, 6, 80, 81]));
    assert_eq!(topology.seats(2), [2, 80]);
}

#[test]
fn lists_are_written_as_they_are_read() {
    for text in ["", "0", "0-3,8", "0-1,3,5-7"] {
        assert_eq!(list_text(&list(text).unwrap()), text);
    }
}
