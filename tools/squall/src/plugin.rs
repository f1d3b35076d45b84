//! `squall plugin new NAME`: writes the beginning of a plugin in WebAssembly.

use std::path::Path;

use clap::{Parser, Subcommand, ValueEnum};

/// Work on plugins.
#[derive(Debug, Parser)]
#[command(name = "squall plugin")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Writes a plugin to begin with into a new directory.
    New {
        /// Name of the plugin and of the directory: letters, digits and underscores
        name: String,
        /// Language to write it in
        #[arg(long, value_enum, default_value_t = Language::Rust)]
        language: Language,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Language {
    /// Rust, for the target wasm32-unknown-unknown
    Rust,
    /// C, for clang and its linker for WebAssembly
    C,
    /// AssemblyScript, from npm
    Assemblyscript,
    /// WebAssembly's text form, which the server reads itself
    Wat,
}

impl Language {
    /// Paths and contents; `NAME` is the plugin's name.
    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Language::Rust => &[
                ("Cargo.toml", include_str!("../templates/rust/Cargo.toml.in")),
                ("src/lib.rs", include_str!("../templates/rust/lib.rs.in")),
            ],
            Language::C => &[("NAME.c", include_str!("../templates/c/plugin.c.in"))],
            Language::Assemblyscript => &[
                ("package.json", include_str!("../templates/assemblyscript/package.json.in")),
                ("index.ts", include_str!("../templates/assemblyscript/index.ts.in")),
            ],
            Language::Wat => &[("NAME.wat", include_str!("../templates/wat/plugin.wat.in"))],
        }
    }

    fn next_steps(self, name: &str) -> String {
        match self {
            Language::Rust => format!(
                "  cd {name}\n  rustup target add wasm32-unknown-unknown\n  \
                 cargo build --release --target wasm32-unknown-unknown\n  \
                 cp target/wasm32-unknown-unknown/release/{name}.wasm PLUGIN_DIR/\n"
            ),
            Language::C => format!(
                "  cd {name}\n  clang --target=wasm32 -O2 -nostdlib -fno-builtin -Wl,--no-entry -o {name}.wasm {name}.c\n  \
                 cp {name}.wasm PLUGIN_DIR/\n"
            ),
            Language::Assemblyscript => format!(
                "  cd {name}\n  npm install\n  npm run build\n  cp {name}.wasm PLUGIN_DIR/\n"
            ),
            Language::Wat => format!("  see the first lines of {name}/{name}.wat\n"),
        }
    }
}

/// Runs the command line after `squall plugin`.
///
/// # Errors
/// A bad name, a directory that exists, I/O.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<String, String> {
    let arguments = std::iter::once("squall plugin".to_owned()).chain(arguments);
    match Arguments::parse_from(arguments).command {
        Command::New { name, language } => new_plugin(Path::new("."), &name, language),
    }
}

fn new_plugin(parent: &Path, name: &str, language: Language) -> Result<String, String> {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) || !name.bytes().all(is_word) {
        return Err(format!("'{name}' is not a name of small letters, digits and underscores"));
    }
    let directory = parent.join(name);
    let error = |error: std::io::Error| format!("{}: {error}", directory.display());
    std::fs::create_dir(&directory).map_err(error)?;
    let mut written = String::new();
    for (path, contents) in language.files() {
        let path = directory.join(path.replace("NAME", name));
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(error)?;
        }
        std::fs::write(&path, contents.replace("NAME", name)).map_err(error)?;
        written.push_str(&format!("wrote {}\n", path.display()));
    }
    let install = match language {
        Language::Rust | Language::C | Language::Assemblyscript => format!(
            "then, with PLUGIN_DIR from SELECT @@plugin_dir:\n  INSTALL PLUGIN wasm; INSTALL PLUGIN {name} SONAME '{name}.wasm';\n  \
             SELECT {name}_reverse('one two three'), {name}_add(1, 2), {name}_product(n) FROM (VALUES ROW(2), ROW(3)) AS v (n);\n"
        ),
        Language::Wat => String::new(),
    };
    Ok(format!("{written}next:\n{}{install}", language.next_steps(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_written_once_under_its_name() {
        let parent = std::env::temp_dir().join(format!("squall-plugin-{}", std::process::id()));
        std::fs::create_dir_all(&parent).expect("a directory");
        for (language, name, path) in [
            (Language::Rust, "in_rust", "src/lib.rs"),
            (Language::C, "in_c", "in_c.c"),
            (Language::Assemblyscript, "in_as", "index.ts"),
            (Language::Wat, "in_wat", "in_wat.wat"),
        ] {
            new_plugin(&parent, name, language).expect("written");
            let text = std::fs::read_to_string(parent.join(name).join(path)).expect("a file");
            assert!(text.contains(name) && !text.contains("NAME"), "{text}");
            assert!(new_plugin(&parent, name, language).is_err(), "it exists");
        }
        for name in ["", "A", "a-b", "../a", "1a"] {
            assert!(new_plugin(&parent, name, Language::Rust).is_err(), "{name}");
        }
        std::fs::remove_dir_all(&parent).expect("removed");
    }
}
