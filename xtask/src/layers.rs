//! Dependencies between crates: `layers.toml` against `cargo metadata`.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::run;

/// A crate of the workspace with the workspace crates it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crate {
    /// Package name.
    pub name: String,
    /// Folder relative to the root, for example `plugins/show`.
    pub folder: String,
    /// Direct dependencies inside the workspace, dev-dependencies left out.
    pub uses: Vec<String>,
}

/// The allowed arrows.
#[derive(Debug, Default)]
pub struct Layers {
    allowed: BTreeMap<String, Vec<String>>,
    /// Crates that count as kernel.
    pub kernel: Vec<String>,
    /// Kernel share allowed, percent.
    pub kernel_share_max: u64,
    /// Lines that a crate may have, tests left out.
    pub crate_lines_max: u64,
    /// Crates with a higher limit, and that limit.
    pub oversized: BTreeMap<String, u64>,
}

impl Layers {
    /// Reads `layers.toml`.
    ///
    /// # Errors
    /// It is missing or malformed.
    pub fn read(text: &str) -> Result<Layers, String> {
        let document: toml::Table =
            text.parse().map_err(|error| format!("layers.toml: {error}"))?;
        let mut layers = Layers::default();
        let groups = document.get("layer").and_then(toml::Value::as_table).ok_or("no [layer.*]")?;
        for group in groups.values().filter_map(toml::Value::as_table) {
            for (name, uses) in group {
                layers.allowed.insert(name.clone(), strings(uses));
            }
        }
        if let Some(kernel) = document.get("kernel").and_then(toml::Value::as_table) {
            layers.kernel = kernel.get("crates").map(strings).unwrap_or_default();
            let share = kernel.get("share_max").and_then(toml::Value::as_integer).unwrap_or(100);
            layers.kernel_share_max = u64::try_from(share).unwrap_or(100);
        }
        let size = document.get("size").and_then(toml::Value::as_table);
        layers.crate_lines_max = size.and_then(|size| count(size.get("lines_max")?)).unwrap_or(0);
        let oversized = size.and_then(|size| size.get("oversized")?.as_table());
        for (name, lines) in oversized.into_iter().flatten() {
            let lines =
                count(lines).ok_or(format!("layers.toml: lines of {name} is not a count"))?;
            layers.oversized.insert(name.clone(), lines);
        }
        Ok(layers)
    }

    /// Every dependency of `crates` that is not allowed, as a message.
    pub fn violations(&self, crates: &[Crate]) -> Vec<String> {
        let mut found = Vec::new();
        for krate in crates {
            let group = krate.folder.split('/').next().unwrap_or_default().to_owned() + "/*";
            let Some(allowed) = self.allowed.get(&krate.name).or(self.allowed.get(&group)) else {
                found.push(format!("{} is not in layers.toml", krate.name));
                continue;
            };
            for used in &krate.uses {
                let folder = crates.iter().find(|other| &other.name == used).map(|c| &c.folder);
                let in_group = folder.is_some_and(|folder| {
                    allowed.iter().any(|allowed| {
                        allowed.strip_suffix("/*").is_some_and(|group| folder.starts_with(group))
                    })
                });
                if !in_group && !allowed.iter().any(|name| name == used || name == "*") {
                    found.push(format!("{} may not use {used}", krate.name));
                }
            }
        }
        found
    }
}

fn count(value: &toml::Value) -> Option<u64> {
    value.as_integer().and_then(|count| u64::try_from(count).ok())
}

fn strings(value: &toml::Value) -> Vec<String> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(toml::Value::as_str).map(str::to_owned).collect()
}

/// All crates of the workspace.
///
/// # Errors
/// `cargo metadata` fails.
pub fn workspace() -> Result<Vec<Crate>, String> {
    let text = run::output("cargo", &["metadata", "--format-version=1", "--no-deps", "--locked"])?;
    let json: Json = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let root = run::root();
    let packages = json["packages"].as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let mut crates = Vec::new();
    for package in &packages {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let folder = std::path::Path::new(manifest).parent().unwrap_or(&root);
        let uses = package["dependencies"].as_array().into_iter().flatten();
        crates.push(Crate {
            name: package["name"].as_str().unwrap_or_default().to_owned(),
            folder: folder.strip_prefix(&root).unwrap_or(folder).display().to_string(),
            uses: uses
                .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
                .filter_map(|dependency| dependency["name"].as_str())
                .filter(|name| names.contains(name))
                .map(str::to_owned)
                .collect(),
        });
    }
    Ok(crates)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn krate(name: &str, folder: &str, uses: &[&str]) -> Crate {
        let uses = uses.iter().map(|name| (*name).to_owned()).collect();
        Crate { name: name.into(), folder: folder.into(), uses }
    }

    const RULES: &str =
        "[layer.a]\nlow = []\nhigh = [\"low\", \"plugins/*\"]\n\"plugins/*\" = [\"low\"]\n";

    #[test]
    fn allowed_arrows_pass() {
        let crates = [
            krate("low", "crates/low", &[]),
            krate("high", "crates/high", &["low", "show"]),
            krate("show", "plugins/show", &["low"]),
        ];
        assert_eq!(Layers::read(RULES).unwrap().violations(&crates), Vec::<String>::new());
    }

    #[test]
    fn every_other_arrow_is_named() {
        let crates = [
            krate("low", "crates/low", &["high"]),
            krate("high", "crates/high", &[]),
            krate("show", "plugins/show", &["high"]),
            krate("stray", "elsewhere/stray", &[]),
        ];
        let found = Layers::read(RULES).unwrap().violations(&crates);
        assert_eq!(
            found,
            ["low may not use high", "show may not use high", "stray is not in layers.toml"]
        );
    }
}
