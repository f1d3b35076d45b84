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
    let output = simulate(&["--seeds", "1..9"]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn a_seed_repeats_itself() {
    let [one, other] = [(); 2].map(|()| text(&simulate(&["--seed", "8"])));
    assert!(one.contains("trace="), "{one}");
    assert_eq!(one, other);
}

/// Whether one of a few seeds finds a defect. README.md of this crate says how many it takes.
fn is_found(defect: &str) {
    let output = simulate(&["--planted", defect, "--seeds", "1..7", "--first"]);
    let said = text(&output);
    assert!(!output.status.success() && said.contains(" breaks a rule: "), "{said}");
    let mut lines = said.lines();
    let repeats = lines.find(|line| line.trim_start().starts_with("simulate --seed"));
    assert!(repeats.is_some_and(|line| line.contains(defect)), "{said}");
}

#[test]
fn planted_defects_are_found() {
    let names = simulation::plan::PLANTED.map(|(name, _)| name);
    names.into_iter().for_each(is_found);
}
