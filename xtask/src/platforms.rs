//! `cargo xtask platforms [TARGET..]`: builds for other processors and runs the tests under qemu's user mode: unit tests of the crates whose
//! bytes leave the process, then a server that shares its data directory with the one of this machine. `--units` stops before the
//! server; `--check` only compiles, for systems that cannot run here.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::run;

/// Everything built for one target; deleted before the next.
const FOLDER: &str = "target/platforms";

/// A processor that qemu plays.
struct Processor {
    /// As rustc names it.
    target: &'static str,
    /// Prefix of the cross compiler and its headers' folder under /usr.
    gnu: &'static str,
    /// As Debian names its C library's packages.
    debian: &'static str,
    /// The emulator, and the processors that it plays for kernels chosen at run time; the first for all else.
    qemu: &'static str,
    models: &'static [&'static str],
    /// Bytes of a page of memory there, as the usual kernels have it.
    page_bytes: u32,
    /// More options of rustc.
    rustc: &'static str,
}

const PROCESSORS: &[Processor] = &[
    Processor {
        target: "powerpc64-unknown-linux-gnu",
        gnu: "powerpc64-linux-gnu",
        debian: "ppc64",
        qemu: "qemu-ppc64",
        models: &["power8", "power10", "970"],
        page_bytes: 65_536,
        rustc: "",
    },
    Processor {
        target: "aarch64-unknown-linux-gnu",
        gnu: "aarch64-linux-gnu",
        debian: "arm64",
        qemu: "qemu-aarch64",
        // Not `max`: with pages of 64 KB, qemu 7.2 fails there when a panic unwinds.
        models: &["cortex-a72", "cortex-a53"],
        page_bytes: 65_536,
        rustc: "",
    },
    Processor {
        target: "powerpc64le-unknown-linux-gnu",
        gnu: "powerpc64le-linux-gnu",
        debian: "ppc64el",
        qemu: "qemu-ppc64le",
        models: &["power8", "power10"],
        page_bytes: 65_536,
        rustc: "",
    },
    Processor {
        target: "s390x-unknown-linux-gnu",
        gnu: "s390x-linux-gnu",
        debian: "s390x",
        qemu: "qemu-s390x",
        // The last has no vectors. qemu does not play all of a z13 or a zEC12.
        models: &["max", "max,vx=off"],
        page_bytes: 4_096,
        // The crate knows the structures of io_uring for 64 bits, but not this processor by name: they are the same there.
        rustc: "--cfg=io_uring_skip_arch_check",
    },
    Processor {
        target: "riscv64gc-unknown-linux-gnu",
        gnu: "riscv64-linux-gnu",
        debian: "riscv64",
        qemu: "qemu-riscv64",
        models: &["rv64"],
        page_bytes: 4_096,
        // The C compiler calls a library for atomic bytes, which QuickJS has. Only the library itself is there, without the name for linkers.
        rustc: "-Clink-arg=-l:libatomic.so.1",
    },
];

/// Those whose bytes matter, from the ground up: what they write must be the same everywhere.
const FORMAT_CRATES: &[&str] = &["stdx", "types", "page", "wal", "btree", "binlog", "wire"];
/// Those of a change's tests: btree takes longer than all of them.
const CHANGE_CRATES: &[&str] = &["stdx", "types", "page", "wal", "binlog", "wire"];
/// More of them, when there is time.
const MORE_CRATES: &[&str] = &["charset", "sys", "bufpool", "locks", "txn", "rows", "batch"];
/// The kernel's processor-specific parts, once for each model of a processor.
const KERNELS: &[&str] = &["page"];

/// Systems that are compiled for, and which packages: those that have no C code in them.
const CHECKED: &[&str] = &[
    "x86_64-unknown-illumos",
    "x86_64-unknown-freebsd",
    "aarch64-apple-darwin",
    "x86_64-unknown-linux-musl",
];
const CHECKED_CRATES: &[&str] =
    &["stdx", "errors", "charset", "types", "ast", "syntax", "unparse", "plan"];

/// Runs as the file's head says.
///
/// # Errors
/// A tool is missing and cannot be installed, a target is unknown, or what failed.
pub fn platforms(args: &[String]) -> Result<(), String> {
    let (flags, names): (Vec<&String>, Vec<&String>) =
        args.iter().partition(|arg| arg.starts_with("--"));
    let has = |flag: &str| flags.iter().any(|given| *given == flag);
    if let Some(other) = flags.iter().find(|flag| !["--units", "--check"].contains(&flag.as_str()))
    {
        return Err(format!("no option {other}: --units and --check are there"));
    }
    if has("--check") {
        return check();
    }
    let chosen: Vec<&Processor> = if names.is_empty() {
        PROCESSORS.iter().collect()
    } else {
        names.iter().map(|name| find(name)).collect::<Result<_, _>>()?
    };
    let mut report = String::new();
    let mut failures = Vec::new();
    for processor in chosen {
        let started = Instant::now();
        let result = try_out(processor, has("--units"));
        let seconds = started.elapsed().as_secs();
        let verdict = if result.is_ok() { "passed" } else { "FAILED" };
        let _ = writeln!(report, "{}: {verdict}, {seconds} s", processor.target);
        if let Err(error) = result {
            failures.push(format!("{}: {error}", processor.target));
        }
        remove_builds()?;
    }
    print!("{report}");
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// What each change is tested with: the formats on a big-endian processor and on ARM.
///
/// # Errors
/// As `platforms`.
pub fn formats() -> Result<(), String> {
    for name in ["powerpc64", "aarch64"] {
        let processor = find(name)?;
        install(processor)?;
        unit_tests(processor, CHANGE_CRATES, processor.models[0])?;
        remove_builds()?;
    }
    Ok(())
}

/// `cargo xtask powernv`: a POWER machine from its firmware up, with the server in an image of ours; the log is kept in the documentation.
///
/// # Errors
/// A tool is missing and cannot be installed, or what failed.
pub fn powernv() -> Result<(), String> {
    let processor = find("powerpc64le")?;
    install(processor)?;
    apt_unless(
        "qemu-system-ppc64",
        &["qemu-system-ppc".to_owned(), "qemu-system-data".to_owned()],
    )?;
    apt_unless("cpio", &["cpio".to_owned()])?;
    let programs = ["build", "-p", "server", "-p", "squall", "--bin", "squalld", "--bin", "squall"];
    cargo(processor, processor.models[0], &programs)?;
    let bins = format!("{FOLDER}/{}/platforms", processor.target);
    let script = "tests/platforms/powernv.py";
    run::command("python3", &[script, "--bins", &bins, "--log", "docs/power-boot.log"])?;
    remove_builds()
}

/// By its full name, or the part before the first dash.
fn find(name: &str) -> Result<&'static Processor, String> {
    let is_meant =
        |one: &&Processor| one.target == name || one.target.split('-').next() == Some(name);
    PROCESSORS.iter().find(is_meant).ok_or_else(|| {
        let known: Vec<&str> = PROCESSORS.iter().map(|one| one.target).collect();
        format!("no target {name}: {} are known", known.join(", "))
    })
}

fn try_out(processor: &Processor, only_units: bool) -> Result<(), String> {
    install(processor)?;
    unit_tests(processor, &[FORMAT_CRATES, MORE_CRATES].concat(), processor.models[0])?;
    for model in &processor.models[1..] {
        unit_tests(processor, KERNELS, model)?;
    }
    // Read as assembly here: an emulator shows nothing of priorities.
    let spins = [("SQUALL_SPIN_TARGETS", processor.target)];
    let spin_test = ["test", "--quiet", "--locked", "-p", "sys", "--test", "spin_asm"];
    run::command_with(&spins, "cargo", &spin_test)?;
    if only_units { Ok(()) } else { server(processor) }
}

/// Installs the emulator, the cross compiler and Rust's library for the target where they are missing.
fn install(processor: &Processor) -> Result<(), String> {
    let packages = [
        "qemu-user".to_owned(),
        format!("gcc-{}", processor.gnu),
        format!("g++-{}", processor.gnu),
        format!("libc6-dev-{}-cross", processor.debian),
    ];
    apt_unless(processor.qemu, &packages)?;
    apt_unless(&format!("{}-gcc", processor.gnu), &packages)?;
    // Says nothing and asks nobody when it is there.
    run::command("rustup", &["--quiet", "target", "add", processor.target])
}

/// Installs Debian packages when `program` is not there.
fn apt_unless(program: &str, packages: &[String]) -> Result<(), String> {
    if Command::new(program).arg("--version").output().is_ok() {
        return Ok(());
    }
    println!("    {program} is missing: apt-get installs {}, which needs root", packages.join(" "));
    let options = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"];
    let line: Vec<&str> = options.into_iter().chain(packages.iter().map(String::as_str)).collect();
    let is_root = run::output("id", &["-u"])?.trim() == "0";
    let (program, args) = if is_root { ("apt-get", &line[1..]) } else { ("sudo", &line[..]) };
    run::command(program, args)
}

/// How cargo links for a target and runs what it linked.
fn environment(processor: &Processor, model: &str) -> Vec<(String, String)> {
    let name = processor.target.to_uppercase().replace('-', "_");
    vec![
        ("CARGO_INCREMENTAL".into(), "0".into()),
        ("CARGO_TARGET_DIR".into(), FOLDER.into()),
        (format!("CARGO_TARGET_{name}_LINKER"), format!("{}-gcc", processor.gnu)),
        (format!("CARGO_TARGET_{name}_RUNNER"), emulator(processor, model)),
        (format!("CARGO_TARGET_{name}_RUSTFLAGS"), processor.rustc.to_owned()),
    ]
}

fn emulator(processor: &Processor, model: &str) -> String {
    let Processor { qemu, gnu, page_bytes, .. } = processor;
    format!("{qemu} -cpu {model} -p {page_bytes} -L /usr/{gnu}")
}

fn cargo(processor: &Processor, model: &str, args: &[&str]) -> Result<(), String> {
    let environment = environment(processor, model);
    let environment: Vec<(&str, &str)> =
        environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let options = ["--locked", "--quiet", "--profile", "platforms", "--target", processor.target];
    run::command_with(&environment, "cargo", &[&args[..1], &options, &args[1..]].concat())
}

fn unit_tests(processor: &Processor, crates: &[&str], model: &str) -> Result<(), String> {
    let started = Instant::now();
    let mut args = vec!["test", "--lib", "--no-fail-fast"];
    args.extend(crates.iter().flat_map(|name| ["-p", name]));
    cargo(processor, model, &args)?;
    let seconds = started.elapsed().as_secs();
    println!(
        "    {} as {model}: unit tests of {}: {seconds} s",
        processor.target,
        crates.join(", ")
    );
    Ok(())
}

/// A server under the emulator: files of earlier builds, and a data directory that it shares with this machine's server.
fn server(processor: &Processor) -> Result<(), String> {
    let model = processor.models[0];
    cargo(processor, model, &["build", "-p", "server", "--bin", "squalld"])?;
    let native = ["build", "--quiet", "--locked", "-p", "server", "--bin", "squalld"];
    run::command("cargo", &native)?;
    let program = run::root().join(FOLDER).join(processor.target).join("platforms/squalld");
    let script = run::root().join(FOLDER).join("squalld");
    let emulator = emulator(processor, model);
    let text = format!("#!/bin/sh\nexec {emulator} {} \"$@\"\n", program.display());
    std::fs::write(&script, text).map_err(|error| error.to_string())?;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&script, mode).map_err(|error| error.to_string())?;
    let script = script.display().to_string();
    for file in ["open.py", "upgrade.py"] {
        run::command("python3", &[&format!("tests/format/{file}"), "--squalld", &script])?;
    }
    run::command("python3", &["tests/platforms/exchange.py", "--other", &script])
}

fn remove_builds() -> Result<(), String> {
    let folder = run::root().join(FOLDER);
    if Path::new(&folder).exists() {
        std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Compiles for systems that nothing here runs.
fn check() -> Result<(), String> {
    let mut failures = Vec::new();
    for target in CHECKED {
        run::command("rustup", &["--quiet", "target", "add", target])?;
        let mut args = vec!["check", "--locked", "--quiet", "--target", target];
        args.extend(CHECKED_CRATES.iter().flat_map(|name| ["-p", name]));
        match run::command_with(&[("CARGO_TARGET_DIR", FOLDER)], "cargo", &args) {
            Ok(()) => println!("{target}: {} compile", CHECKED_CRATES.join(", ")),
            Err(error) => failures.push(format!("{target}: {error}")),
        }
    }
    remove_builds()?;
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}
