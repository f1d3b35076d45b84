//! Names of functions by address, from the symbols of the program's files. They are read at the first request and kept.

use std::sync::OnceLock;

use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSymbol as _, ReadCache, SymbolKind};

use super::unwind::{Image, images};

/// A function: where it begins in its file, its length, and the place of its name.
struct Function {
    start: u64,
    length: u64,
    name: std::ops::Range<usize>,
}

struct File {
    image: Image,
    /// By start.
    functions: Vec<Function>,
    names: String,
}

fn files() -> &'static [File] {
    static FILES: OnceLock<Vec<File>> = OnceLock::new();
    FILES.get_or_init(|| images().into_iter().map(read).collect())
}

/// A file whose symbols cannot be read has none.
fn read(image: Image) -> File {
    let path = if image.path.is_empty() { "/proc/self/exe" } else { &image.path };
    let opened = std::fs::File::open(path);
    let mut found = File { functions: Vec::new(), names: String::new(), image };
    let Ok(file) = opened else { return found };
    let cache = ReadCache::new(file);
    let Ok(elf) = ElfFile64::<object::Endianness, _>::parse(&cache) else { return found };
    for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
        let is_function = symbol.kind() == SymbolKind::Text && symbol.size() > 0;
        let (true, Ok(name)) = (is_function, symbol.name()) else { continue };
        let start = found.names.len();
        found.names.push_str(name);
        let name = start..found.names.len();
        found.functions.push(Function { start: symbol.address(), length: symbol.size(), name });
    }
    found.functions.sort_by_key(|function| function.start);
    found
}

/// The names of the functions that hold these addresses, without the hashes of the compiler; where none is known, the file and the place in it.
pub fn symbolise(addresses: &[u64]) -> Vec<String> {
    addresses.iter().map(|address| name(*address)).collect()
}

fn name(address: u64) -> String {
    let Some(file) = files().iter().find(|file| file.image.range.contains(&address)) else {
        return format!("{address:#x}");
    };
    let place = address.wrapping_sub(file.image.base);
    let after = file.functions.partition_point(|function| function.start <= place);
    let candidate = after.checked_sub(1).map(|at| &file.functions[at]);
    match candidate.filter(|function| place < function.start + function.length) {
        Some(function) => {
            let name = &file.names[function.name.clone()];
            format!("{:#}", rustc_demangle::demangle(name)).replace([';', '\n'], ",")
        }
        None => {
            let path = if file.image.path.is_empty() { "squalld" } else { &file.image.path };
            format!("{}+{place:#x}", path.rsplit('/').next().unwrap_or(path))
        }
    }
}
