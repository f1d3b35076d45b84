//! `cargo xtask size`: lines by crate, and the kernel's share of them.

use std::path::{Path, PathBuf};

use crate::layers::{Crate, Layers, workspace};
use crate::run;

/// Rust files below `folder`, sorted, build output left out.
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return files };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target" && name != ".git") {
                files.extend(rust_files(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Whether a file holds only tests.
pub fn is_test_file(path: &Path) -> bool {
    let text = path.to_string_lossy();
    text.ends_with("tests.rs")
        || text.ends_with("/fuzz.rs") && !text.contains("xtask/")
        || text.contains("/tests/")
        || text.contains("/examples/")
        || text.contains("/benches/")
}

/// Lines that are neither blank nor in a trailing `mod tests` of the file.
pub fn code_lines(text: &str) -> u64 {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    code.lines().filter(|line| !line.trim().is_empty()).count() as u64
}

/// Lines of a crate.
pub struct Lines {
    /// Lines of product code.
    pub code: u64,
    /// Tests, examples and benchmarks.
    pub tests: u64,
}

/// Counts the lines of `krate`.
pub fn of_crate(root: &Path, krate: &Crate) -> Lines {
    let mut lines = Lines { code: 0, tests: 0 };
    for path in rust_files(&root.join(&krate.folder)) {
        let counted = std::fs::read_to_string(&path).map_or(0, |text| code_lines(&text));
        if is_test_file(&path) { lines.tests += counted } else { lines.code += counted }
    }
    lines
}

/// Prints the table and checks the budget of `layers.toml`.
///
/// # Errors
/// The kernel is over its budget.
pub fn size() -> Result<(), String> {
    let root = run::root();
    let text = std::fs::read_to_string(root.join("layers.toml")).map_err(|e| e.to_string())?;
    let layers = Layers::read(&text)?;
    let mut rows = Vec::new();
    for krate in workspace()? {
        let lines = of_crate(&root, &krate);
        let kernel = layers.kernel.contains(&krate.name);
        rows.push((krate.name, krate.folder, lines.code, lines.tests, kernel));
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.2));
    println!("{:<22} {:>8} {:>8}  kernel", "crate", "lines", "tests");
    for (name, _, lines, tests, kernel) in &rows {
        println!("{name:<22} {lines:>8} {tests:>8}  {}", if *kernel { "yes" } else { "" });
    }
    let counted = rows.iter().filter(|row| !row.1.starts_with("testing") && row.0 != "xtask");
    let (kernel, total) = counted.fold((0, 0), |(kernel, total), row| {
        (kernel + if row.4 { row.2 } else { 0 }, total + row.2)
    });
    let share = (kernel * 100u64).checked_div(total).unwrap_or(0);
    println!("kernel {kernel} of {total} lines: {share} % (budget {} %)", layers.kernel_share_max);
    if share > layers.kernel_share_max {
        return Err(format!("the kernel is over its budget of {} %", layers.kernel_share_max));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn blank_lines_and_test_modules_do_not_count() {
        let text = "//! A.\n\nfn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\n";
        assert_eq!(super::code_lines(text), 2);
    }
}
