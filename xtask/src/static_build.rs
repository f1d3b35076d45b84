//! `cargo xtask static [--profile NAME]`: programs that need no library, for any Linux of this processor, tried in a root that has none.

use crate::run;

/// Rust's name of this processor with musl, a C library that is linked in.
const TARGET: &str = "x86_64-unknown-linux-musl";
/// Compiles the C code of libraries against it; Debian's package is musl-tools.
const COMPILER: &str = "musl-gcc";
/// Packages with a program each.
const PROGRAMS: [&str; 8] =
    ["-p", "server", "-p", "squall", "-p", "squall-slap", "-p", "squall-check"];
/// What has no place in a program without a dynamic loader.
const LEFT_OUT: &str =
    "left out: the plugins ndb and auth_pam, which load libraries of the machine";

/// Builds the programs and tries the server; says where they are.
///
/// # Errors
/// The compiler or the target is missing, or a step fails.
pub fn build(args: &[String]) -> Result<(), String> {
    let profile = match args {
        [] => "release",
        [option, name] if option == "--profile" => name,
        _ => return Err("static takes --profile NAME alone".into()),
    };
    run::output(COMPILER, &["--version"])
        .map_err(|error| format!("{error}: apt-get install musl-tools"))?;
    println!("{LEFT_OUT}");
    let environment = [("CC_x86_64_unknown_linux_musl", COMPILER)];
    let options = ["build", "--locked", "--bins", "--profile", profile, "--target", TARGET];
    run::command_with(&environment, "cargo", &[&options[..], &PROGRAMS].concat())?;
    let folder = folder(profile);
    run::command("python3", &["packaging/test.py", "--smoke", &folder])?;
    println!("the programs: {folder}");
    Ok(())
}

/// Where they are, below the workspace.
#[must_use]
pub fn folder(profile: &str) -> String {
    // Cargo's own name of the profile `dev`.
    let place = if profile == "dev" { "debug" } else { profile };
    format!("target/{TARGET}/{place}")
}
