//! Shared libraries that are loaded while the process runs.

use std::ffi::{CStr, CString, c_void};

/// A loaded library. It is never unloaded, so that its functions stay valid for the process's life.
#[derive(Clone, Copy, Debug)]
pub struct Library(*mut c_void);

// SAFETY: the handle is only given to dlsym, which any thread may call.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

fn last_error() -> String {
    // SAFETY: dlerror returns null or a C string that is valid until the thread's next call of this family.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "unknown error".to_owned();
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

impl Library {
    /// Loads the library in the file `path`, or of this name in the directories that the system searches. Its names stay its own.
    ///
    /// # Safety
    /// Its initialisers run.
    ///
    /// # Errors
    /// What the system's loader says.
    pub unsafe fn open(path: &str) -> Result<Library, String> {
        let path = CString::new(path).map_err(|error| error.to_string())?;
        // SAFETY: `path` is a C string; the caller answers for what the library does.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() { Err(last_error()) } else { Ok(Library(handle)) }
    }

    /// The address of a function or variable.
    ///
    /// # Errors
    /// What the system's loader says.
    pub fn symbol(&self, name: &CStr) -> Result<*mut c_void, String> {
        // SAFETY: the library is open, `name` is a C string.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        if found.is_null() { Err(last_error()) } else { Ok(found) }
    }
}

#[cfg(test)]
mod tests {
    use super::Library;

    #[test]
    fn a_library_is_found_by_name_and_has_its_functions() {
        // SAFETY: the C library is loaded already.
        let c = unsafe { Library::open("libc.so.6") }.expect("every test machine has it");
        assert!(c.symbol(c"strlen").is_ok());
        assert!(c.symbol(c"no_such_function_anywhere").is_err());
        // SAFETY: nothing is loaded.
        assert!(unsafe { Library::open("/no/such/library.so") }.is_err());
    }
}
