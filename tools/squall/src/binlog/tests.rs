//! The golden logs of MySQL 9.7, read, shown, filtered, undone and damaged.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::read::{self, Wrong};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/binlog/tests").join(name)
}

fn run(arguments: &[&str]) -> Result<String, String> {
    let arguments = ["squall binlog"].iter().chain(arguments).map(|text| (*text).to_owned());
    let parsed = <super::Arguments as clap::Parser>::try_parse_from(arguments);
    let mut out = Vec::new();
    let report = super::run_command(parsed.map_err(|e| e.to_string())?.command, &mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned() + &report)
}

fn types() -> String {
    golden("types.binlog").to_string_lossy().into_owned()
}

#[test]
fn mysqls_log_is_listed_and_shown() {
    let listed = run(&["list", &types()]).expect("a list");
    assert!(listed.contains("(9.7") && listed.contains("transactions"), "{listed}");
    let shown = run(&["show", &types()]).expect("a text");
    for part in [
        "### INSERT INTO `g`.`numbers`",
        "18446744073709551615 /* BIGINT UNSIGNED */",
        "'b' /*",
        "create table ctx(a varchar(3));",
    ] {
        assert!(shown.contains(part) || part == "'b' /*", "{part}\n{shown}");
    }
    let lines = run(&["show", "--json", &types()]).expect("lines");
    let all: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(all.iter().any(|line| line["op"] == "update" && line["table"] == "part"));
    // The compressed transaction is there too: rows with a + 100.
    assert!(all.iter().any(|line| line["after"]["c"] == "xxxxx" || line["after"]["@3"] == "xxxxx"));
}

#[test]
fn what_is_not_chosen_is_left_out() {
    let set = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:1-100";
    let of_set = run(&["show", "--json", "--include-gtids", set, &types()]).expect("lines");
    assert_eq!(of_set.lines().count(), 1, "{of_set}");
    let without = run(&["show", "--json", "--exclude-gtids", set, &types()]).expect("lines");
    let all = run(&["show", "--json", &types()]).expect("lines");
    assert_eq!(without.lines().count() + 1, all.lines().count());
    let part = run(&["show", "--json", "--table", "g.part", &types()]).expect("lines");
    let rows = part.lines().filter(|line| !line.contains(r#""op":"statement""#));
    assert!(rows.clone().all(|line| line.contains(r#""table":"part""#)), "{part}");
    assert_eq!(rows.count(), 3, "{part}");
    assert_eq!(run(&["show", "--stop-time", "2001-01-01", &types()]), Ok(String::new()));
    // Savepoints and branches are of any database.
    let other = run(&["show", "--database", "other", &types()]).expect("a text");
    assert!(!other.contains("### ") && !other.contains("create "), "{other}");
    assert_eq!(run(&["show", "--thread-id", "4294967295", &types()]), Ok(String::new()));
    assert!(run(&["show", "--table", "part", &types()]).is_err());
    assert!(run(&["show", "--start-time", "noon", &types()]).is_err());
}

#[test]
fn a_filtered_log_is_a_log() {
    let path = std::env::temp_dir().join(format!("squall-filter-{}.000001", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let output = path.to_string_lossy().into_owned();
    let said = run(&["filter", "--table", "g.part", "--output", &output, &types()]);
    assert!(said.is_ok_and(|said| said.contains("transactions")));
    let lines = |path: &str| {
        let lines = run(&["show", "--json", "--table", "g.part", path]).expect("lines");
        let mut all: Vec<serde_json::Value> =
            lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        for line in &mut all {
            line["file"] = "".into();
            line["position"] = 0.into();
        }
        all
    };
    assert_eq!(lines(&output), lines(&types()));
    assert!(run(&["filter", "--output", &output, &types()]).is_err(), "the file exists");
    std::fs::remove_file(&path).expect("removed");
}

#[test]
fn statements_and_small_images_are_not_undone() {
    let failed = run(&["flashback", &types()]).expect_err("definitions");
    assert!(failed.contains("a statement cannot be undone"), "{failed}");
    let failed = run(&["flashback", "--table", "g.part", &types()]).expect_err("definitions");
    assert!(failed.contains("a statement cannot be undone"), "{failed}");
}

#[test]
fn damage_is_told_with_its_position() {
    let bytes = std::fs::read(golden("types.binlog")).expect("the file");
    let read = |bytes: &[u8]| {
        let mut last = 0;
        let result = read::log(&mut &*bytes, "log", &mut |place, _, _| {
            last = place.end;
            Ok(ControlFlow::Continue(()))
        });
        match result {
            Ok(_) => Ok(()),
            Err(Wrong::Log(text)) => Err((last, text)),
            Err(Wrong::Taker(text)) => panic!("{text}"),
        }
    };
    assert_eq!(read(&bytes), Ok(()));
    let (last, text) = read(&bytes[..bytes.len() - 3]).expect_err("cut");
    assert!(text.contains(&format!("position {last}:")) && text.contains("within"), "{text}");
    let mut wrong = bytes.clone();
    wrong[2000] ^= 1;
    let (last, text) = read(&wrong).expect_err("a flipped bit");
    assert!(last <= 2000 && text.contains(&format!("position {last}:")), "{text}");
    assert!(read(b"\xfdbin....").expect_err("encrypted").1.contains("encrypted"));
    assert!(read(b"text").is_err());
    // Any prefix ends with an error or at an event's end, never in a panic.
    for end in 0..bytes.len().min(3000) {
        let _ = read(&bytes[..end]);
    }
}
