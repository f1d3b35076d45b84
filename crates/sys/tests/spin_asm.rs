//! The spin loop as the compiler makes it: a pause, no locked instruction, and the compiler has not deleted it.

use std::process::Command;

#[test]
fn the_spin_loop_pauses_and_locks_nothing() {
    if !cfg!(target_arch = "x86_64") {
        println!("SKIPPED: this machine has other instructions than x86-64");
        return;
    }
    let folder = env!("CARGO_TARGET_TMPDIR");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/spin.rs");
    let root = format!("{folder}/spin_root.rs");
    let hint = "pub use core::hint::spin_loop as spin_hint;";
    let modules = format!(
        "pub mod sync {{ {hint} pub mod atomic {{ pub use core::sync::atomic::*; }} }}\n\
         #[path = {source:?}] pub mod spin;\n"
    );
    std::fs::write(&root, modules).expect("a writable target folder");
    let assembly = format!("{folder}/spin.s");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let status = Command::new(rustc)
        .args(["--edition=2024", "--crate-type=lib", "-O", "--emit=asm", "-o", &assembly, &root])
        .status()
        .expect("rustc runs");
    assert!(status.success());
    let text = std::fs::read_to_string(&assembly).expect("the assembly");
    let body: Vec<&str> = text
        .lines()
        .map(str::trim)
        .skip_while(|line| !(line.contains("spin_until_clear") && line.ends_with(':')))
        .take_while(|line| !line.starts_with(".Lfunc_end"))
        .filter(|line| !line.starts_with('.') || line.ends_with(':'))
        .collect();
    let pause = body.iter().position(|line| *line == "pause");
    let pause = pause.unwrap_or_else(|| panic!("no pause in {body:#?}"));
    let goes_back = |line: &&str| {
        let target = line.split_whitespace().last().unwrap_or("");
        line.starts_with('j')
            && body[..pause].iter().any(|label| label.strip_suffix(':') == Some(target))
    };
    assert!(body[pause..].iter().any(goes_back), "no loop around the pause in {body:#?}");
    let locked = |line: &&str| line.starts_with("lock") || line.starts_with("xchg");
    assert!(!body.iter().any(locked), "a locked instruction in {body:#?}");
}
