//! The pages of the documentation as a table for `squall docs`: those that `docs/SUMMARY.md` lists, in its order.

use std::fmt::Write as _;
use std::path::Path;

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let docs = Path::new(&here).join("../../docs");
    let summary = docs.join("SUMMARY.md");
    println!("cargo::rerun-if-changed={}", summary.display());
    let text = std::fs::read_to_string(&summary).expect("docs/SUMMARY.md");
    let mut table = String::from("&[\n");
    for line in text.lines() {
        let Some((title, rest)) = line.trim_start_matches("- ").split_once("](") else { continue };
        let path = rest.trim_end_matches(')');
        let title = title.trim_start_matches('[');
        let name = path.trim_start_matches("../").trim_end_matches(".md");
        let file = docs.join(path);
        writeln!(table, "({name:?}, {title:?}, include_str!({:?})),", file.display().to_string())
            .expect("a text takes everything");
    }
    table.push(']');
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    std::fs::write(Path::new(&out).join("pages.rs"), table).expect("OUT_DIR can be written");
}
