//! Pluggable authentication modules of the operating system: a name and a password checked by a PAM service.
//!
//! The library is looked up when it is first used, so that a server without it starts. Its modules run in this process and may wait for a
//! network: callers give a check a thread that may wait.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

/// Library names, the present one first.
const LIBRARIES: [&CStr; 2] = [c"libpam.so.0", c"libpam.so"];
/// Messages that a module may send at once; what the library itself allows.
const MESSAGES_MAX: c_int = 32;

const SUCCESS: c_int = 0;
const BUFFER_ERROR: c_int = 5;
const CONVERSATION_ERROR: c_int = 19;
const PROMPT_ECHO_OFF: c_int = 1;
const PROMPT_ECHO_ON: c_int = 2;
const ITEM_USER: c_int = 2;
const SILENT: c_int = 0x8000;
const DISALLOW_NULL_PASSWORD: c_int = 1;

#[repr(C)]
struct Message {
    style: c_int,
    text: *const c_char,
}

#[repr(C)]
struct Response {
    text: *mut c_char,
    code: c_int,
}

type Converse =
    unsafe extern "C" fn(c_int, *mut *const Message, *mut *mut Response, *mut c_void) -> c_int;

#[repr(C)]
struct Conversation {
    converse: Converse,
    data: *mut c_void,
}

type Handle = *mut c_void;
type Start = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const Conversation,
    *const c_char,
    *mut Handle,
) -> c_int;
type Act = unsafe extern "C" fn(Handle, c_int) -> c_int;
type GetItem = unsafe extern "C" fn(Handle, c_int, *mut *const c_void) -> c_int;
type Describe = unsafe extern "C" fn(Handle, c_int) -> *const c_char;

/// The library's functions.
struct Library {
    start: Start,
    authenticate: Act,
    check_account: Act,
    get_item: GetItem,
    describe: Describe,
    end: Act,
}

static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();

impl Library {
    fn open() -> Option<Library> {
        // SAFETY: the names are C strings, and the system's libpam runs nothing of ours while it is loaded. It is never closed, so that
        // its functions stay valid for the process's life.
        let library = LIBRARIES
            .iter()
            .map(|name| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) })
            .find(|library| !library.is_null())?;
        let find = |name: &CStr| {
            // SAFETY: `library` is open, `name` is a C string.
            let found = unsafe { libc::dlsym(library, name.as_ptr()) };
            (!found.is_null()).then_some(found)
        };
        // SAFETY: these are the declarations of Linux-PAM's <security/pam_appl.h> for these names; a function pointer and a data pointer
        // have the same size and form on every platform that has dlsym.
        unsafe {
            Some(Library {
                start: std::mem::transmute::<*mut c_void, Start>(find(c"pam_start_confdir")?),
                authenticate: std::mem::transmute::<*mut c_void, Act>(find(c"pam_authenticate")?),
                check_account: std::mem::transmute::<*mut c_void, Act>(find(c"pam_acct_mgmt")?),
                get_item: std::mem::transmute::<*mut c_void, GetItem>(find(c"pam_get_item")?),
                describe: std::mem::transmute::<*mut c_void, Describe>(find(c"pam_strerror")?),
                end: std::mem::transmute::<*mut c_void, Act>(find(c"pam_end")?),
            })
        }
    }
}

fn library() -> Option<&'static Library> {
    LIBRARY.get_or_init(Library::open).as_ref()
}

/// Whether this machine has PAM.
pub fn is_available() -> bool {
    library().is_some()
}

/// What a service says of a name and a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The password is right and the account may be used.
    Accepted,
    /// Not so, with PAM's reason. Wrong passwords and failures of modules are not told apart: each module has its own numbers.
    Refused(String),
}

/// Asks `service` whether `password` is right for `user` and whether the account may be used now. `directory`: where service files are, instead
/// of the system's. Waits as long as the modules do.
///
/// # Errors
/// There is no PAM; a NUL in an argument.
pub fn check(
    directory: Option<&Path>,
    service: &str,
    user: &str,
    password: &str,
) -> Result<Verdict, String> {
    let library = library().ok_or("this machine has no libpam.so.0 with pam_start_confdir")?;
    let c_string =
        |text: &str| CString::new(text).map_err(|_| "a name or password with NUL".to_owned());
    let directory = match directory {
        Some(path) => Some(c_string(path.to_str().ok_or("a directory that is no text")?)?),
        None => None,
    };
    let (service, user) = (c_string(service)?, c_string(user)?);
    let answers = Answers { user: user.clone(), password: c_string(password)? };
    let conversation =
        Conversation { converse: answer, data: ptr::from_ref(&answers).cast_mut().cast() };
    let mut handle: Handle = ptr::null_mut();
    let path = directory.as_ref().map_or(ptr::null(), |directory| directory.as_ptr());
    // SAFETY: all strings and `conversation` with its `answers` live until `end` below; `handle` is written on success only.
    let mut status = unsafe {
        (library.start)(service.as_ptr(), user.as_ptr(), &raw const conversation, path, &mut handle)
    };
    if status == SUCCESS {
        status = transact(library, handle, &user);
    }
    let verdict = match status {
        SUCCESS => Verdict::Accepted,
        RENAMED => Verdict::Refused("a module chose another user".into()),
        status => Verdict::Refused(reason(library, handle, status)),
    };
    if !handle.is_null() {
        // SAFETY: `start` made the handle; nobody uses it afterwards.
        unsafe { (library.end)(handle, status.max(SUCCESS)) };
    }
    Ok(verdict)
}

/// Our own status: no number of PAM's is negative.
const RENAMED: c_int = -1;

fn transact(library: &Library, handle: Handle, user: &CStr) -> c_int {
    let flags = SILENT | DISALLOW_NULL_PASSWORD;
    // SAFETY: the handle is open, and `answer` follows the library's protocol.
    let mut status = unsafe { (library.authenticate)(handle, flags) };
    if status == SUCCESS {
        // SAFETY: as above.
        status = unsafe { (library.check_account)(handle, flags) };
    }
    if status != SUCCESS {
        return status;
    }
    let mut found: *const c_void = ptr::null();
    // SAFETY: the handle is open; the item is a C string that belongs to the handle.
    let got = unsafe { (library.get_item)(handle, ITEM_USER, &mut found) };
    // SAFETY: on success a pointer that is not null is that string.
    let is_same = got == SUCCESS
        && !found.is_null()
        && unsafe { CStr::from_ptr(found.cast::<c_char>()) } == user;
    if is_same { SUCCESS } else { RENAMED }
}

fn reason(library: &Library, handle: Handle, status: c_int) -> String {
    // SAFETY: Linux-PAM ignores the handle here and returns a static string.
    let text = unsafe { (library.describe)(handle, status) };
    if text.is_null() {
        return format!("PAM error {status}");
    }
    // SAFETY: a C string that stays.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// What modules get when they ask.
struct Answers {
    user: CString,
    password: CString,
}

/// Answers each hidden prompt with the password and each other prompt with the name; texts get none.
///
/// # Safety
/// PAM calls it with `count` messages and the pointer of [`Conversation::data`].
unsafe extern "C" fn answer(
    count: c_int,
    messages: *mut *const Message,
    responses: *mut *mut Response,
    data: *mut c_void,
) -> c_int {
    if !(1..=MESSAGES_MAX).contains(&count) || messages.is_null() || data.is_null() {
        return CONVERSATION_ERROR;
    }
    // SAFETY: `data` is the `Answers` of the running `check`, which outlives the conversation.
    let answers = unsafe { &*data.cast::<Answers>() };
    let count = count as usize;
    // SAFETY: plain allocation, as PAM frees the array and each text with free().
    let array = unsafe { libc::calloc(count, size_of::<Response>()) }.cast::<Response>();
    if array.is_null() {
        return BUFFER_ERROR;
    }
    for index in 0..count {
        // SAFETY: Linux-PAM passes an array of `count` pointers to messages.
        let style = unsafe { (**messages.add(index)).style };
        let text = match style {
            PROMPT_ECHO_OFF => &answers.password,
            PROMPT_ECHO_ON => &answers.user,
            _ => continue,
        };
        // SAFETY: `array` has `count` zeroed elements.
        unsafe { (*array.add(index)).text = libc::strdup(text.as_ptr()) };
    }
    // SAFETY: PAM gives a place for the array.
    unsafe { *responses = array };
    SUCCESS
}
