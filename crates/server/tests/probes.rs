//! The probes of the built server are those that `docs/probes.md` lists, and scripts use no others.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Names in `text` after each occurrence of `before`.
fn names_after<'t>(text: &'t str, before: &str) -> BTreeSet<&'t str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = |(at, _): (usize, &str)| {
        let rest = &text[at + before.len()..];
        &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]
    };
    text.match_indices(before).map(name).collect()
}

#[test]
fn the_document_lists_the_probes_of_the_program() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let read = |path: &Path| std::fs::read_to_string(path).expect("a file");
    let list = read(&docs.join("probes.md"));
    let listed = names_after(&list, "\n| `");
    let notes = Command::new("readelf").args(["-n", env!("CARGO_BIN_EXE_squalld")]).output();
    let notes = notes.expect("readelf (binutils) runs");
    let notes = String::from_utf8_lossy(&notes.stdout).into_owned();
    // A probe that is compiled in at several places has a note for each.
    let built: BTreeSet<&str> = notes
        .split("Provider: squall")
        .skip(1)
        .filter_map(|note| note.split("Name: ").nth(1)?.lines().next())
        .collect();
    assert!(built.len() > 10, "{notes}");
    assert_eq!(built, listed);
    let scripts = std::fs::read_dir(docs.join("bpftrace")).expect("a directory");
    let scripts: Vec<String> = scripts.flatten().map(|entry| read(&entry.path())).collect();
    assert!(scripts.len() >= 10);
    for script in &scripts {
        let used = names_after(script, "usdt:*:squall:");
        assert!(!used.is_empty() && used.is_subset(&listed), "{script}");
    }
}
