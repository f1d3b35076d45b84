//! Running other programs from the root of the checkout.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Root of the checkout.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lives in the workspace").to_owned()
}

/// Runs `program` with `args`; its output goes to ours.
///
/// # Errors
/// It cannot be started or does not exit with 0.
pub fn command<A: AsRef<str>>(program: &str, args: &[A]) -> Result<(), String> {
    command_with(&[], program, args)
}

/// As `command`, with variables of its environment set.
///
/// # Errors
/// As `command`.
pub fn command_with<A: AsRef<str>>(
    environment: &[(&str, &str)],
    program: &str,
    args: &[A],
) -> Result<(), String> {
    command_in(&root(), environment, program, args)
}

/// As `command_with`, in another folder.
///
/// # Errors
/// As `command`.
pub fn command_in<A: AsRef<str>>(
    folder: &Path,
    environment: &[(&str, &str)],
    program: &str,
    args: &[A],
) -> Result<(), String> {
    let args: Vec<&str> = args.iter().map(AsRef::as_ref).collect();
    let line = format!("{program} {}", args.join(" "));
    let status = Command::new(program)
        .args(&args)
        .envs(environment.iter().copied())
        .current_dir(folder)
        .status()
        .map_err(|error| format!("cannot start {line}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("failed: {line}")) }
}

/// Runs this program again with `args`: whether it succeeded, and all that it and its children printed. The more `nice`, the more others' work comes first.
///
/// # Errors
/// It cannot be started, or its output cannot be kept.
pub fn apart(args: &[&str], nice: u8) -> Result<(bool, String), String> {
    // A file, not a pipe: a server that a failed script left behind would hold a pipe open.
    let kept = || -> std::io::Result<(bool, String)> {
        let folder = root().join("target/ci");
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}.log", args.join("-").replace(' ', "-")));
        let file = std::fs::File::create(&path)?;
        // Not by its name: a step that builds all programs has put another file there.
        let this = format!("/proc/{}/exe", std::process::id());
        let mut command = Command::new("nice");
        command.args([format!("--adjustment={nice}"), this]);
        command.args(args).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let status = command.current_dir(root()).status()?;
        Ok((status.success(), String::from_utf8_lossy(&std::fs::read(&path)?).into_owned()))
    };
    kept().map_err(|error| format!("cannot run {}: {error}", args.join(" ")))
}

/// The output of `program`.
///
/// # Errors
/// It cannot be started, fails, or its output is not UTF-8.
pub fn output(program: &str, args: &[&str]) -> Result<String, String> {
    output_with(&[], program, args)
}

/// As `output`, with environment variables set; its standard error goes to ours.
///
/// # Errors
/// As `output`.
pub fn output_with(
    environment: &[(&str, &str)],
    program: &str,
    args: &[&str],
) -> Result<String, String> {
    let output = Command::new(program)
        .args(args)
        .envs(environment.iter().copied())
        .stderr(Stdio::inherit())
        .current_dir(root())
        .output()
        .map_err(|error| format!("cannot start {program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("failed: {program} {}", args.join(" ")));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{program} printed no text"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_program_runs_itself_apart_and_keeps_what_it_prints() {
        let (is_success, text) = super::apart(&["--list"], 10).unwrap();
        assert!(is_success && text.contains("a_program_runs_itself_apart"), "{text}");
        let (is_success, _) = super::apart(&["--no-such-option"], 0).unwrap();
        assert!(!is_success);
    }
}
