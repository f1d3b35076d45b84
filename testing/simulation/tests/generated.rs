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
    let output = simulate(&["--seeds", "1..21"]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn a_seed_repeats_itself() {
    let [one, other] = [(); 2].map(|()| text(&simulate(&["--seed", "11"])));
    assert!(one.contains("trace="), "{one}");
    assert_eq!(one, other);
}

/// Seeds that find a defect soon; README.md of this crate says how many others take.
fn is_found(defect: &str, seeds: &str, rest: &[&str]) {
    let options = [&["--planted", defect, "--seeds", seeds, "--first"], rest].concat();
    let output = simulate(&options);
    let said = text(&output);
    assert!(!output.status.success() && said.contains(" breaks a rule: "), "{said}");
    let repeats = said.lines().find(|line| line.trim_start().starts_with("simulate --seed"));
    assert!(repeats.is_some_and(|line| line.contains(defect)), "{said}");
}
