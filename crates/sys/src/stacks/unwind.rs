//! Walks a copied stack with the unwind tables that the program and its libraries have in memory.

use std::sync::{Mutex, PoisonError};

use super::capture::Copy;

/// A part of memory that belongs to a file of the program.
pub(super) struct Image {
    /// Path of the file; empty for the program itself.
    pub path: String,
    /// Added to the addresses in the file.
    pub base: u64,
    pub range: std::ops::Range<u64>,
    /// The index of the unwind tables, and the tables up to the end of their segment.
    tables: Option<Tables>,
}

struct Tables {
    index: std::ops::Range<u64>,
    frames: std::ops::Range<u64>,
}

/// The program, its libraries, and what the kernel adds.
pub(super) fn images() -> Vec<Image> {
    let mut images: Vec<Image> = Vec::new();
    // SAFETY: the callback gets the pointer to `images`, which is alive during the call and used by nobody else.
    unsafe { libc::dl_iterate_phdr(Some(add_image), (&raw mut images).cast()) };
    images
}

unsafe extern "C" fn add_image(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    images: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: `images` passed the pointer, and the loader passes a description that is valid during the call.
    let (info, images) = unsafe { (&*info, &mut *images.cast::<Vec<Image>>()) };
    // SAFETY: the loader says how many headers there are.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let path = match info.dlpi_name.is_null() {
        true => String::new(),
        // SAFETY: a name ends with a zero byte.
        false => unsafe { std::ffi::CStr::from_ptr(info.dlpi_name) }.to_string_lossy().into_owned(),
    };
    let base = info.dlpi_addr;
    let range = |header: &libc::Elf64_Phdr| {
        let start = base.wrapping_add(header.p_vaddr);
        start..start.wrapping_add(header.p_memsz)
    };
    let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD).map(range);
    let start = loads().map(|load| load.start).min();
    let end = loads().map(|load| load.end).max();
    let (Some(start), Some(end)) = (start, end) else { return 0 };
    let index = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME).map(range);
    let tables = index.and_then(|index| {
        let load = loads().find(|load| load.contains(&index.start))?;
        // SAFETY: the index lies in a segment that is loaded, and has a header of eight bytes.
        let header = unsafe { *(index.start as *const [u8; 8]) };
        /// The place of the tables as a signed distance of four bytes from itself: what linkers write.
        const RELATIVE: u8 = 0x1b;
        if header[0] != 1 || header[1] != RELATIVE {
            return None;
        }
        let distance = i32::from_ne_bytes([header[4], header[5], header[6], header[7]]);
        let frames = (index.start + 4).wrapping_add_signed(distance.into());
        let until = loads().find(|load| load.contains(&frames))?.end;
        let index = index.start..index.end.min(load.end);
        Some(Tables { index, frames: frames..until })
    });
    images.push(Image { path, base, range: start..end, tables });
    0
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod native {
    use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};

    use super::{Copy, Image, images};

    #[cfg(target_arch = "aarch64")]
    use framehop::aarch64::{CacheAarch64 as Cache, UnwinderAarch64 as Unwinder};
    #[cfg(target_arch = "x86_64")]
    use framehop::x86_64::{CacheX86_64 as Cache, UnwinderX86_64 as Unwinder};

    pub(super) struct Walker {
        unwinder: Unwinder<&'static [u8]>,
        cache: Cache,
    }

    /// # Safety
    /// Readable memory that stays as it is for the life of the process.
    unsafe fn memory(range: &std::ops::Range<u64>) -> &'static [u8] {
        let length = (range.end - range.start) as usize;
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(range.start as *const u8, length) }
    }

    fn module(image: Image) -> Module<&'static [u8]> {
        let mut sections = ExplicitModuleSectionInfo::default();
        if let Some(tables) = &image.tables {
            let in_file = |range: &std::ops::Range<u64>| {
                range.start.wrapping_sub(image.base)..range.end.wrapping_sub(image.base)
            };
            // SAFETY: unwind tables are constant, in a segment that is loaded; the server unloads no libraries.
            let (index, frames) = unsafe { (memory(&tables.index), memory(&tables.frames)) };
            sections.eh_frame_hdr = Some(index);
            sections.eh_frame_hdr_svma = Some(in_file(&tables.index));
            sections.eh_frame = Some(frames);
            sections.eh_frame_svma = Some(in_file(&tables.frames));
        }
        Module::new(image.path, image.range, image.base, sections)
    }

    impl Walker {
        pub fn new() -> Walker {
            let mut unwinder = Unwinder::new();
            images().into_iter().for_each(|image| unwinder.add_module(module(image)));
            Walker { unwinder, cache: Cache::new() }
        }

        pub fn walk(&mut self, copy: &Copy<'_>, frames_max: usize, frames: &mut Vec<u64>) {
            #[cfg(target_arch = "x86_64")]
            let registers = framehop::x86_64::UnwindRegsX86_64::new(copy.pc, copy.sp, copy.fp);
            #[cfg(target_arch = "aarch64")]
            let registers = framehop::aarch64::UnwindRegsAarch64::new(copy.lr, copy.sp, copy.fp);
            let mut word = |address| copy.word(address).ok_or(());
            let mut steps =
                self.unwinder.iter_frames(copy.pc, registers, &mut self.cache, &mut word);
            while frames.len() < frames_max
                && let Ok(Some(frame)) = steps.next()
            {
                frames.push(frame.address_for_lookup());
            }
        }
    }
}

/// Adds the addresses of a copied stack to `frames`, the innermost first.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn walk(copy: &Copy<'_>, frames_max: usize, frames: &mut Vec<u64>) {
    /// Libraries that are loaded later are walked by frame pointers.
    static WALKER: Mutex<Option<native::Walker>> = Mutex::new(None);
    let mut walker = WALKER.lock().unwrap_or_else(PoisonError::into_inner);
    walker.get_or_insert_with(native::Walker::new).walk(copy, frames_max, frames);
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn walk(_: &Copy<'_>, _: usize, _: &mut Vec<u64>) {}
