//! `cargo xtask tidy`: rules that the compiler does not check.
//!
//! Two kinds. A *rule* has no exceptions: each breach is a finding. A *ratchet* counts something that may only improve: the kept
//! figure is in `xtask/ratchets.toml`, and a worse one is a finding. One subject a file; each has a test that plants a breach.

mod assertions;
mod atomics;
mod circles;
mod crate_size;
mod function_names;
mod functions;
mod imports;
mod ratchet;
mod session_methods;
mod source;
mod text;
mod wildcards;

use crate::layers::{Layers, workspace};
use crate::run;

pub use circles::print as print_circles;

/// Action on the ratchets.
enum Mode {
    /// Fail where a figure is worse than the kept one; report where it is better.
    Check,
    /// Fail also where it is better: the kept figure must follow.
    Strict,
    /// Lower the kept figures to the measured ones.
    Write,
    /// Print the places that a ratchet counts.
    List(String),
}

impl Mode {
    fn from_args(args: &[String]) -> Result<Mode, String> {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        match args.as_slice() {
            [] => Ok(Mode::Check),
            ["--strict"] => Ok(Mode::Strict),
            ["--ratchet"] => Ok(Mode::Write),
            ["--list", name] => Ok(Mode::List((*name).to_owned())),
            _ => Err("usage: cargo xtask tidy [--strict | --ratchet | --list RATCHET]".into()),
        }
    }
}

/// Runs every check.
///
/// # Errors
/// All findings, one a line.
pub fn tidy(args: &[String]) -> Result<(), String> {
    let mode = Mode::from_args(args)?;
    let root = run::root();
    let crates = workspace()?;
    let mut sources = Vec::new();
    for krate in &crates {
        if krate.folder.starts_with("crates/") || krate.folder.starts_with("plugins/") {
            sources.extend(source::of_crate(&root, &krate.folder)?);
        }
    }
    let kept = ratchet::Kept::read(&root)?;
    let ratchets = ratchets(&sources);
    if let Mode::List(name) = &mode {
        return ratchet::list(&ratchets, name);
    }
    if let Mode::Write = mode {
        return kept.write(&root, &ratchets);
    }
    let layers_text =
        std::fs::read_to_string(root.join("layers.toml")).map_err(|e| e.to_string())?;
    let layers = Layers::read(&layers_text)?;
    let mut findings = layers.violations(&crates);
    findings.extend(crate_size::findings(&layers, &crate_size::lines(&root, &crates)));
    findings.extend(text::findings(&root)?);
    findings.extend(function_names::findings(&layers, &sources));
    findings.extend(crate::dependencies::unused(&root)?);
    findings.extend(crate::tour::outdated(&root)?);
    findings.extend(crate::compat::outdated(&root)?);
    for verdict in kept.compare(&ratchets) {
        match verdict {
            ratchet::Verdict::Worse(finding) => findings.push(finding),
            ratchet::Verdict::Better(note) if matches!(mode, Mode::Strict) => findings.push(note),
            ratchet::Verdict::Better(note) => println!("note: {note}"),
        }
    }
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n")) }
}

/// Every ratchet with its current figure.
fn ratchets(sources: &[source::Source]) -> Vec<ratchet::Ratchet> {
    let mut ratchets = functions::ratchets(sources);
    ratchets.push(wildcards::ratchet(sources));
    ratchets.push(atomics::ratchet(sources));
    ratchets.extend(assertions::ratchets(sources));
    ratchets.push(session_methods::ratchet(sources));
    ratchets.extend(circles::ratchets(sources));
    ratchets
}
