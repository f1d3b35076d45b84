//! Development tasks: `cargo xtask <task>`.
//!
//! Uses the workspace from outside only, through `cargo metadata` and the files.

mod book;
mod ci;
mod compat;
mod console;
mod coverage;
mod dependencies;
mod fuzz;
mod instructions;
mod layers;
mod lines;
mod models;
mod ndb_shim;
mod os_calls;
mod platforms;
mod reference;
mod release;
mod run;
mod statements;
mod static_build;
mod tidy;
mod tour;

use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask <task>

  ci      everything that must pass before a change lands
  models  loom and shuttle on the engine's concurrent parts
  platforms     builds for other processors, tests under qemu; [--units | --check] [TARGET..]
  powernv       a POWER machine from the firmware up, emulated, with the server in it: SELECT 1
  soak    what takes too long for each change: random runs on a simulated machine, random queries, a disk that is full
          at 200 moments; --simulation SECONDS: those runs alone
  tidy    layers, sizes, banned calls, names in documents, ratchets; [--strict | --ratchet | --list NAME]
  circles files that import each other in a circle; [CRATE]
  book    checks pages and links of the documentation, and builds it where mdbook is
  reference     writes docs/reference from a server in target/debug; [--check]
  compat  writes the parts of COMPAT.md that come from tags in scripts
  console rebuilds the web console and compares it with web/dist; its unit tests
  size    lines by crate, and the kernel's share
  ndb-shim      the library through which the plugin ndb reaches a MySQL Cluster: --include DIR --lib DIR [--out DIR]
  release the server, laid out by what a load runs: some minutes, some percent faster;
          --set [--sign KEY]: and all that a release publishes, in target/packages
  static  programs that need no library (musl), tried in an empty root; [--profile NAME]
  package       .deb, .rpm, archive, image and checksums of built programs; [--bins FOLDER] [--static FOLDER] [--sign KEY]
  coverage      lines that tests run, by crate; with names of crates, by their tests alone
  fuzz    decoders on bytes that coverage guides; lists the targets; [TARGET..] --seconds N runs them
  instructions  what everyday statements cost, compared with tests/instructions.toml
  bench   workloads against Squall and a peer in one run (see benches/README.md)
  help    this text
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if coverage::is_compiler(&args) {
        return coverage::compile(&args);
    }
    let mut args = args.into_iter();
    let task = args.next().unwrap_or_else(|| "help".into());
    let rest: Vec<String> = args.collect();
    let result = match task.as_str() {
        "ci" => ci::ci(&rest),
        "soak" => ci::soak(&rest),
        "models" => models::models(),
        "platforms" => platforms::platforms(&rest),
        "powernv" => platforms::powernv(),
        "tidy" => tidy::tidy(&rest),
        "circles" => tidy::print_circles(&rest),
        "book" => book::book(),
        "reference" => reference::reference(&rest),
        "compat" => compat::write(),
        "console" => console::check(),
        "size" => lines::size(),
        "ndb-shim" => ndb_shim::build(&rest),
        "release" => release::publish(&rest),
        "static" => static_build::build(&rest),
        "package" => run::command("python3", &prefixed("packaging/build.py", &rest)),
        "coverage" => coverage::coverage(&rest),
        "fuzz" => fuzz::fuzz(&rest),
        "instructions" => instructions::instructions(&rest),
        "bench" => run::command("python3", &prefixed("benches/bench.py", &rest)),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("no task called {other}\n\n{HELP}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask {task}: {message}");
            ExitCode::FAILURE
        }
    }
}

fn prefixed(first: &str, rest: &[String]) -> Vec<String> {
    std::iter::once(first.to_owned()).chain(rest.iter().cloned()).collect()
}
