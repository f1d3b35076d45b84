//! No crate is larger than one person can know: `[size]` in `layers.toml`. Crates that were larger when the limit came are named
//! there with a separate ceiling, which may only fall, and leave the list when they keep to the limit.

use std::path::Path;

use crate::layers::{Crate, Layers};
use crate::lines;

/// The crates of the product with their lines, tests left out.
pub fn lines(root: &Path, crates: &[Crate]) -> Vec<(String, u64)> {
    let product =
        |krate: &&Crate| ["crates/", "plugins/"].iter().any(|f| krate.folder.starts_with(f));
    let counted = crates.iter().filter(product);
    counted.map(|krate| (krate.name.clone(), lines::of_crate(root, krate).code)).collect()
}

/// Crates above their limit, and ceilings that are no longer needed.
pub fn findings(layers: &Layers, crates: &[(String, u64)]) -> Vec<String> {
    let limit = layers.crate_lines_max;
    let mut findings = Vec::new();
    for (name, lines) in crates {
        let ceiling = layers.oversized.get(name).copied();
        let allowed = ceiling.unwrap_or(limit);
        if *lines > allowed {
            findings.push(format!("{name}: {lines} lines, its limit is {allowed}: split it"));
        } else if ceiling.is_some() && *lines <= limit {
            findings.push(format!(
                "{name}: keeps to the limit: take it out of layers.toml's [size.oversized]"
            ));
        }
    }
    for name in layers.oversized.keys() {
        if crates.iter().all(|(krate, _)| krate != name) {
            findings
                .push(format!("layers.toml: [size.oversized] names {name}, which is not a crate"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_above_its_limit_is_found() {
        let text = "[layer.a]\n[size]\nlines_max = 100\noversized = { b = 200, c = 200, d = 150, e = 200 }\n";
        let layers = Layers::read(text).unwrap();
        let crates = [("a", 101), ("b", 200), ("c", 201), ("d", 100), ("f", 100)];
        let crates = crates.map(|(name, lines)| (name.to_owned(), lines));
        let found = findings(&layers, &crates);
        assert_eq!(found.len(), 4);
        assert!(found[0].starts_with("a: 101 lines"));
        assert!(found[1].starts_with("c: 201 lines"));
        assert!(found[2].starts_with("d: keeps to the limit"));
        assert!(found[3].contains("names e"));
    }
}
