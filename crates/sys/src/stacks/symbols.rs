//! Names of functions by address, from the symbols of the program's files. Where the functions are is read at the first request and kept, 16 bytes for each; a name is read from the
//! file when it is asked for: all names of a program with debug information take a hundred megabytes.

use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;

use object::read::elf::{ElfFile64, FileHeader, SectionHeader as _, Sym as _, SymbolTable};
use object::{ReadCache, ReadRef, elf};

use super::unwind::{Image, images};

/// A function: where it begins in its file, its length, and the place of its name in the table of names.
struct Function {
    start: u64,
    length: u32,
    name: u32,
}

/// A table of symbols.
struct Symbols {
    /// By start.
    functions: Vec<Function>,
    /// Where the names are in the file.
    names: std::ops::Range<u64>,
}

struct File {
    image: Image,
    file: Option<std::fs::File>,
    tables: Vec<Symbols>,
}

/// The longest name that is read: those of generic functions are long.
const NAME_BYTES_MAX: usize = 8192;

fn files() -> &'static [File] {
    static FILES: OnceLock<Vec<File>> = OnceLock::new();
    FILES.get_or_init(|| images().into_iter().map(read).collect())
}

/// A file whose symbols cannot be read has none.
fn read(image: Image) -> File {
    let path = if image.path.is_empty() { "/proc/self/exe" } else { &image.path };
    let mut found = File { file: std::fs::File::open(path).ok(), tables: Vec::new(), image };
    if let Some(Ok(file)) = found.file.as_ref().map(std::fs::File::try_clone) {
        let cache = ReadCache::new(file);
        if let Ok(elf) = ElfFile64::<object::Endianness, _>::parse(&cache) {
            for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
                let symbols = elf.elf_section_table().symbols(elf.endian(), elf.data(), kind);
                found.tables.extend(symbols.ok().and_then(|symbols| table(&elf, &symbols)));
            }
        }
    }
    found
}

/// The functions of a table of symbols; `None` where it has no names.
fn table<'data, H: FileHeader, R: ReadRef<'data>>(
    elf: &object::read::elf::ElfFile<'data, H, R>,
    symbols: &SymbolTable<'data, H, R>,
) -> Option<Symbols> {
    let endian = elf.endian();
    let names = elf.elf_section_table().section(symbols.string_section()).ok()?;
    let (start, length) = names.file_range(endian)?;
    let functions = symbols.iter().filter(|symbol| symbol.st_type() == elf::STT_FUNC);
    let mut functions: Vec<Function> = functions
        .map(|symbol| Function {
            start: symbol.st_value(endian).into(),
            length: u32::try_from(symbol.st_size(endian).into()).unwrap_or(u32::MAX),
            name: symbol.st_name(endian),
        })
        .filter(|function| function.length > 0)
        .collect();
    functions.sort_unstable_by_key(|function| function.start);
    functions.shrink_to_fit();
    Some(Symbols { functions, names: start..start.saturating_add(length) })
}

impl File {
    /// The name of the function that holds a place of this file.
    fn name(&self, place: u64) -> Option<String> {
        self.tables.iter().find_map(|table| {
            let after = table.functions.partition_point(|function| function.start <= place);
            let function = &table.functions[after.checked_sub(1)?];
            let is_within = place - function.start < u64::from(function.length);
            let start = table.names.start + u64::from(function.name);
            let length = table.names.end.checked_sub(start).filter(|_| is_within)?;
            let mut name = vec![0; NAME_BYTES_MAX.min(usize::try_from(length).ok()?)];
            self.file.as_ref()?.read_exact_at(&mut name, start).ok()?;
            let name = std::ffi::CStr::from_bytes_until_nul(&name).ok()?.to_str().ok()?;
            Some(format!("{:#}", rustc_demangle::demangle(name)).replace([';', '\n'], ","))
        })
    }
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
    file.name(place).unwrap_or_else(|| {
        let path = if file.image.path.is_empty() { "squalld" } else { &file.image.path };
        format!("{}+{place:#x}", path.rsplit('/').next().unwrap_or(path))
    })
}
