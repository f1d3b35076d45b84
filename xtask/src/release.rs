//! `cargo xtask release`: the server as fast as the compiler can make it (profile-guided optimisation).
//!
//! Built once with counters, trained with a load, and built again with the counters' profile: the code of hot paths lies together and
//! apart from that for rare cases, so a statement touches fewer lines of code. At one client, where caches are cold, that is a good
//! part of its time. The load is `squall-slap`'s OLTP workloads, the statements of `benches/training`, and the SQL scripts, so that
//! no tested code is treated as code that never runs.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::{run, static_build};

const TOOLS: [&str; 2] = ["squall-slap", "sqltest"];
const WORKLOADS: [&str; 11] = [
    "select1",
    "point_select",
    "read_only",
    "read_write",
    "write_only",
    "update_index",
    "update_non_index",
    "insert",
    "delete",
    "random_points",
    "random_ranges",
];
const SECONDS_PER_WORKLOAD: &str = "2";
const TABLE_ROWS: &str = "100000";
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// `cargo xtask release [--set [--sign KEY]]`: the server, or all that a release publishes.
///
/// # Errors
/// An option is unknown, a tool is missing, or a step fails.
pub fn publish(args: &[String]) -> Result<(), String> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let sign: &[&str] = match args.as_slice() {
        [] => return release().map(|_| ()),
        ["--set"] => &[],
        ["--set", rest @ ..] if rest.len() == 2 && rest[0] == "--sign" => rest,
        _ => return Err("release takes --set, and then --sign KEY".into()),
    };
    let server = release()?;
    println!("==> other programs");
    let others = ["-p", "squall", "-p", "squall-slap", "-p", "squall-check"];
    let build = ["build", "--locked", "--quiet", "--release", "--bins"];
    run::command("cargo", &[&build[..], &others].concat())?;
    println!("==> static programs");
    static_build::build(&[])?;
    println!("==> packages");
    let folder = server.parent().ok_or("the server is in no folder")?.display().to_string();
    let programs = ["--bins", &folder, "--bins", "target/release"];
    let fixed = static_build::folder("release");
    let package =
        [&["packaging/build.py"][..], &programs[..], &["--static", &fixed], sign].concat();
    run::command("python3", &package)
}

/// Builds, trains and builds; prints and returns where the server is.
///
/// # Errors
/// A tool is missing, or a step fails.
fn release() -> Result<PathBuf, String> {
    let host = host()?;
    let merge = llvm_tool("llvm-profdata")?;
    let target = run::root().join("target/release-trained");
    let profiles = target.join("profiles");
    let server = target.join(&host).join("release/squalld");
    if profiles.exists() {
        std::fs::remove_dir_all(&profiles).map_err(|error| format!("{profiles:?}: {error}"))?;
    }
    std::fs::create_dir_all(&profiles).map_err(|error| format!("{profiles:?}: {error}"))?;
    println!("==> tools of the load");
    let tools = TOOLS.iter().flat_map(|tool| ["-p", *tool]);
    let build = ["build", "--locked", "--quiet", "--profile", "fast"];
    run::command("cargo", &build.into_iter().chain(tools).collect::<Vec<_>>())?;
    println!("==> server with counters");
    build_server(&target, &host, &format!("-Cprofile-generate={}", profiles.display()))?;
    println!("==> training");
    train(&server, &profiles)?;
    println!("==> server");
    let merged = profiles.join("merged.profdata");
    let (merge, folder) = (merge.display().to_string(), profiles.display().to_string());
    run::command(&merge, &["merge", "-o", &merged.display().to_string(), &folder])?;
    build_server(&target, &host, &format!("-Cprofile-use={}", merged.display()))?;
    println!("the server: {}", server.display());
    Ok(server)
}

/// This machine's target: flags are given for it, and not for programs that run while building.
pub fn host() -> Result<String, String> {
    let version = run::output("rustc", &["-vV"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc -vV names no host".into())
}

/// A tool of the compiler's own LLVM.
///
/// # Errors
/// It is not installed.
pub fn llvm_tool(name: &str) -> Result<PathBuf, String> {
    let sysroot = run::output("rustc", &["--print", "sysroot"])?;
    let folder = Path::new(sysroot.trim()).join("lib/rustlib").join(host()?).join("bin");
    let tool = folder.join(name);
    if tool.exists() {
        return Ok(tool);
    }
    Err(format!("{name} is missing: rustup component add llvm-tools"))
}

fn build_server(target: &Path, host: &str, flags: &str) -> Result<(), String> {
    let target = target.display().to_string();
    // The variable replaces the flags of `.cargo/config.toml`.
    let flags = format!("-Cforce-frame-pointers=yes {flags}");
    let environment = [
        ("RUSTFLAGS", flags.as_str()),
        ("CARGO_TARGET_DIR", &target),
        // The profile gains more than compilation as a single unit does, and both together were slower.
        ("CARGO_PROFILE_RELEASE_LTO", "thin"),
        ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "4"),
    ];
    let build = ["build", "--locked", "--quiet", "--release", "--target", host];
    let what = ["-p", "server", "--bin", "squalld"];
    run::command_with(&environment, "cargo", &[&build[..], &what].concat())
}

/// Runs the load on the server with counters; each process of it leaves its counts in `profiles`.
fn train(server: &Path, profiles: &Path) -> Result<(), String> {
    let directory = profiles.join("data");
    let port = free_port()?;
    let socket = std::env::temp_dir().join(format!("squall-training-{}.sock", std::process::id()));
    let running = Running(
        Command::new(server)
            .arg(format!("--datadir={}", directory.display()))
            .arg(format!("--port={port}"))
            // Paths of sockets are short.
            .arg(format!("--socket={}", socket.display()))
            .arg("--insecure-root")
            .env("LLVM_PROFILE_FILE", profiles.join("load.profraw"))
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", server.display()))?,
    );
    wait_for(port)?;
    let port = port.to_string();
    let slap = |args: &[&str]| {
        let program = built("squall-slap");
        run::command(&program, &[&["--silent", "-P", &port, "--tables", "4"], args].concat())
    };
    let rows = ["--table-size", TABLE_ROWS, "--create-schema", "oltp", "--no-drop"];
    slap(
        &[&rows[..], &["--prepare", "--workload", "select1", "--number-of-queries", "1"]].concat(),
    )?;
    for workload in WORKLOADS {
        for clients in ["1", "8"] {
            for text in [&[][..], &["--text"]] {
                let load = ["--workload", workload, "-c", clients];
                let time = ["--timer-length", SECONDS_PER_WORKLOAD];
                slap(&[&rows[..], &load, &time, text].concat())?;
            }
        }
    }
    let files = ["--create", "benches/training/schema.sql", "-q", "benches/training/queries.sql"];
    slap(&[&files[..], &["--create-schema", "training", "--iterations", "3"]].concat())?;
    running.stop()?;
    // Processes of the same program add to one file.
    let scripts = profiles.join("scripts-%m.profraw").display().to_string();
    let server = server.display().to_string();
    let environment = [("LLVM_PROFILE_FILE", scripts.as_str())];
    if let Err(error) = run::command_with(&environment, &built("sqltest"), &["--squalld", &server])
    {
        // It tells the compiler what runs, not whether the answers are right: tests do.
        println!("{error}; the server counted all the same");
    }
    std::fs::remove_dir_all(&directory).map_err(|error| format!("{directory:?}: {error}"))
}

fn built(tool: &str) -> String {
    run::root().join("target/fast").join(tool).display().to_string()
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}

fn wait_for(port: u16) -> Result<(), String> {
    let begun = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if begun.elapsed() > START_TIMEOUT {
            return Err("the server with counters does not start".into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// A server that ends with its owner.
struct Running(Child);

impl Running {
    /// In order, so that it writes its counts.
    fn stop(mut self) -> Result<(), String> {
        run::command("kill", &[self.0.id().to_string()])?;
        let status = self.0.wait().map_err(|error| format!("the server: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}")) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nothing to do about one that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
