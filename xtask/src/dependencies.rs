//! Unused dependencies: each costs build time, and hides a crate's real needs.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value as Json;

use crate::lines::rust_files;
use crate::run;

/// Packages whose library has another name.
const OTHER_NAMES: &[(&str, &str)] = &[("md-5", "md5")];

/// Every dependency of a crate of the workspace that its Rust files do not name.
///
/// # Errors
/// `cargo metadata` fails, or a file cannot be read.
pub fn unused(root: &Path) -> Result<Vec<String>, String> {
    let args = ["metadata", "--no-deps", "--format-version", "1", "--locked"];
    let document: Json =
        serde_json::from_str(&run::output("cargo", &args)?).map_err(|error| error.to_string())?;
    let mut findings = Vec::new();
    for package in document["packages"].as_array().ok_or("no packages")? {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let folder = manifest.parent().ok_or("a manifest without a folder")?;
        let words = words(folder)?;
        let crate_name = folder.strip_prefix(root).unwrap_or(folder).display();
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        for name in dependencies.filter_map(|dependency| dependency["name"].as_str()) {
            if !words.contains(&library(name)) {
                findings.push(format!("{crate_name}: does not use its dependency {name}"));
            }
        }
    }
    Ok(findings)
}

/// Name of a package's library in Rust.
fn library(package: &str) -> String {
    let other = OTHER_NAMES.iter().find(|(name, _)| *name == package);
    other.map_or_else(|| package.replace('-', "_"), |(_, library)| (*library).to_owned())
}

/// All words of the Rust files under `folder`, and of those elsewhere that they take in by `#[path = ".."]`.
fn words(folder: &Path) -> Result<BTreeSet<String>, String> {
    let mut words = BTreeSet::new();
    let mut files = rust_files(folder);
    while let Some(path) = files.pop() {
        let text =
            std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let elsewhere = text.lines().filter_map(|line| line.strip_prefix("#[path = \"../"));
        let here = path.parent().ok_or("a file without a folder")?;
        files.extend(
            elsewhere.filter_map(|rest| Some(here.join("..").join(rest.split('"').next()?))),
        );
        let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.extend(parts.filter(|word| !word.is_empty()).map(str::to_owned));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::library;

    #[test]
    fn packages_have_libraries() {
        assert_eq!(
            ["io-uring", "md-5", "toml"].map(library),
            ["io_uring", "md5", "toml"].map(str::to_owned)
        );
    }
}
