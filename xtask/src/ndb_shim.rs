//! `cargo xtask ndb-shim`: builds ndb-shim/ against the headers and the client library of a MySQL Cluster. Nothing of it is in the Rust build.

use std::path::{Path, PathBuf};

use crate::run;

const USAGE: &str = "cargo xtask ndb-shim --include DIR --lib DIR [--out DIR]\n\
  --include DIR  the headers: DIR/storage-ndb/ndbapi/NdbApi.hpp, or DIR/storage/ndb/ndbapi/NdbApi.hpp\n\
  --lib DIR      has libndbclient.so\n\
  --out DIR      gets libsquall_ndb.so (target/ndb-shim)";

/// Folders of the headers in the packages of MySQL Cluster.
const HEADERS: [&str; 2] = ["storage-ndb", "storage/ndb"];

/// Builds `libsquall_ndb.so`.
///
/// # Errors
/// Options, missing files, the compiler's.
pub fn build(options: &[String]) -> Result<(), String> {
    let value = |name: &str| {
        let at = options.iter().position(|option| option == name)?;
        options.get(at + 1).map(PathBuf::from)
    };
    let (Some(include), Some(library)) = (value("--include"), value("--lib")) else {
        return Err(USAGE.to_owned());
    };
    let out = value("--out").unwrap_or_else(|| run::root().join("target/ndb-shim"));
    let headers = HEADERS.iter().map(|folder| include.join(folder));
    let headers = headers.into_iter().find(|folder| folder.join("ndbapi/NdbApi.hpp").exists());
    let headers =
        headers.ok_or_else(|| format!("no NdbApi.hpp below {}\n{USAGE}", include.display()))?;
    if !library.join("libndbclient.so").exists() {
        return Err(format!("no libndbclient.so in {}\n{USAGE}", library.display()));
    }
    std::fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let built = out.join("libsquall_ndb.so");
    let library = std::path::absolute(&library).map_err(|error| error.to_string())?;
    let text = |path: &Path| path.display().to_string();
    let folder = |path: PathBuf| format!("-isystem{}", text(&path));
    let arguments = [
        "-std=c++20".to_owned(),
        "-O2".to_owned(),
        "-Wall".to_owned(),
        "-Wextra".to_owned(),
        "-Werror".to_owned(),
        "-fPIC".to_owned(),
        "-shared".to_owned(),
        "-fvisibility=hidden".to_owned(),
        "-Wl,-z,defs".to_owned(),
        folder(include),
        folder(headers.clone()),
        folder(headers.join("ndbapi")),
        folder(headers.join("mgmapi")),
        text(&run::root().join("ndb-shim/squall_ndb.cpp")),
        format!("-L{}", text(&library)),
        "-lndbclient".to_owned(),
        format!("-Wl,-rpath,{}", text(&library)),
        "-o".to_owned(),
        text(&built),
    ];
    run::command("g++", &arguments)?;
    println!(
        "built {}: squalld --plugin-add=ndb --ndb-shim={0} --ndb-connectstring=HOST:PORT",
        text(&built)
    );
    Ok(())
}
