//! The program `simulate` by itself: a few seeds break no rule, a seed repeats itself, and planted defects are found. `cargo xtask soak` runs more.
#![cfg(debug_assertions)]

use std::process::{Command, Output};

/// Runs the program.
fn simulate(options: &[&str]) -> Output {
    let program = Command::new(env!("CARGO_BIN_EXE_simulate")).args(options).output();
    program.expect("the program starts")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_few_seeds_break_no_rule() {
    let output = simulate(&["--seeds", "1..6"]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn a_seed_repeats_itself() {
    let [one, other] = [(); 2].map(|()| text(&simulate(&["--seed", "8"])));
    assert!(one.contains("trace="), "{one}");
    assert_eq!(one, other);
}

/// Defects, and the first seed that found each; when the server changes, another one of the next few may be it.
const FOUND_BY: [(&str, u64); 6] = [
    ("skipped-sync", 2),
    ("early-reply", 1),
    ("lost-row-lock", 4),
    ("stale-plan", 2),
    ("eager-purge", 1),
    ("leaked-metadata-lock", 1),
];

#[test]
fn planted_defects_are_found() {
    for (defect, seed) in FOUND_BY {
        let seeds = format!("{seed}..{}", seed + 8);
        let output = simulate(&["--planted", defect, "--seeds", &seeds, "--first"]);
        let said = text(&output);
        assert!(!output.status.success() && said.contains(" breaks a rule: "), "{said}");
        let mut lines = said.lines();
        let repeats = lines.find(|line| line.trim_start().starts_with("simulate --seed"));
        assert!(repeats.is_some_and(|line| line.contains(defect)), "{said}");
    }
}
