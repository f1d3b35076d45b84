//! Embeds the web console: `web/dist` becomes a table of paths and contents.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a build program")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let folder = root.join("../../web/dist");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    collect(&folder, &mut files);
    files.sort();
    let mut table = String::from("pub const FILES: &[(&str, &[u8])] = &[\n");
    for file in files {
        let name = file.strip_prefix(&folder).expect("it was found there");
        let name = name.to_string_lossy().replace('\\', "/");
        let path = file.canonicalize().expect("it exists");
        let _ =
            writeln!(table, "    (\"/{name}\", include_bytes!({:?})),", path.display().to_string());
    }
    table.push_str("];\n");
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets it"));
    std::fs::write(out.join("console.rs"), table).expect("a build folder that can be written");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}
