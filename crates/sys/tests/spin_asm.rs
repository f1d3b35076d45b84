//! The spin loop as the compiler makes it: a pause, no locked instruction, and the compiler has not deleted it. For this machine's processor, and for
//! each other one of `PROCESSORS` that rustc has its library for; `SQUALL_SPIN_TARGETS` names those that it must have.

use std::path::Path;
use std::process::Command;

struct Processor {
    target: &'static str,
    /// One of these is in the loop. An `or` of a register with itself is printed as a move.
    pauses: &'static [&'static str],
    /// One of these comes after it.
    ends: &'static [&'static str],
    /// How a jump begins.
    jump: &'static str,
    /// How an instruction begins that owns the cache line.
    locks: &'static [&'static str],
}

const POWER: Processor = Processor {
    target: "powerpc64le-unknown-linux-gnu",
    pauses: &["mr1,1", "or1,1,1"],
    ends: &["mr2,2", "or2,2,2"],
    jump: "b",
    locks: &["ldarx", "stdcx"],
};

const PROCESSORS: &[Processor] = &[
    Processor {
        target: "x86_64-unknown-linux-gnu",
        pauses: &["pause"],
        ends: &[],
        jump: "j",
        locks: &["lock", "xchg"],
    },
    Processor {
        target: "aarch64-unknown-linux-gnu",
        pauses: &["isb", "isbsy"],
        ends: &[],
        jump: "b",
        locks: &["ldx", "ldax", "stx", "stlx", "cas", "swp"],
    },
    POWER,
    Processor { target: "powerpc64-unknown-linux-gnu", ..POWER },
];

fn rustc() -> Command {
    Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into()))
}

fn is_installed(target: &str) -> bool {
    let output = rustc().args(["--print", "target-libdir", "--target", target]).output();
    let output = output.expect("rustc runs");
    Path::new(String::from_utf8_lossy(&output.stdout).trim()).exists()
}

/// The instructions and labels of the spin loop, without spaces and comments.
fn instructions(target: &str) -> Vec<String> {
    let folder = env!("CARGO_TARGET_TMPDIR");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/spin.rs");
    let root = format!("{folder}/spin_root_{target}.rs");
    let hint = "pub use core::hint::spin_loop as spin_hint;";
    let modules = format!(
        "pub mod sync {{ {hint} pub mod atomic {{ pub use core::sync::atomic::*; }} }}\n\
         #[path = {source:?}] pub mod spin;\n"
    );
    std::fs::write(&root, modules).expect("a writable target folder");
    let assembly = format!("{folder}/spin_{target}.s");
    let status = rustc()
        .args(["--edition=2024", "--crate-type=lib", "-O", "--emit=asm", "--target", target])
        .args(["-o", &assembly, &root])
        .status()
        .expect("rustc runs");
    assert!(status.success());
    let text = std::fs::read_to_string(&assembly).expect("the assembly");
    text.lines()
        .map(str::trim)
        .skip_while(|line| !(line.contains("spin_until_clear") && line.ends_with(':')))
        .take_while(|line| !line.starts_with(".Lfunc_end"))
        .filter(|line| !line.starts_with('.') || line.ends_with(':'))
        .map(|line| line.split_whitespace().collect())
        .collect()
}

fn check(processor: &Processor) {
    let body = instructions(processor.target);
    let target = processor.target;
    let is_one = |line: &&String, of: &[&str]| of.contains(&line.as_str());
    let pause = body.iter().position(|line| is_one(&line, processor.pauses));
    let pause = pause.unwrap_or_else(|| panic!("{target}: no pause in {body:#?}"));
    let goes_back = |line: &String| {
        line.starts_with(processor.jump)
            && body[..pause]
                .iter()
                .filter_map(|label| label.strip_suffix(':'))
                .any(|label| line.ends_with(label))
    };
    assert!(body[pause..].iter().any(goes_back), "{target}: no loop around the pause in {body:#?}");
    let locked = |line: &String| processor.locks.iter().any(|lock| line.starts_with(lock));
    assert!(!body.iter().any(locked), "{target}: a locked instruction in {body:#?}");
    let has_end = body.iter().any(|line| is_one(&line, processor.ends));
    assert!(processor.ends.is_empty() || has_end, "{target}: priority stays low in {body:#?}");
}

#[test]
fn the_spin_loop_pauses_and_locks_nothing() {
    let wanted = std::env::var("SQUALL_SPIN_TARGETS").unwrap_or_default();
    for processor in PROCESSORS {
        let target = processor.target;
        if is_installed(target) {
            check(processor);
            println!("{target}: checked");
        } else {
            assert!(!wanted.split(',').any(|one| one == target), "no library for {target}");
            println!("SKIPPED: no library for {target}; `rustup target add {target}`");
        }
    }
}
