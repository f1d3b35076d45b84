//! A plugin for Squall. `docs/format/wasm.md` of the server says what each `squall_` function is for.

/// What the server reads when it loads the plugin: a line for each function, with its types.
const DESCRIPTION: &str = "
version 0.1.0
author you
licence MIT
description Functions over texts and numbers.
function text_tools_reverse(text) text deterministic
function text_tools_add(int, int) int deterministic
";

/// The words of a text in reverse order.
#[unsafe(no_mangle)]
pub extern "C" fn text_tools_reverse(pointer: *const u8, length: u32) -> u64 {
    let text = argument(pointer, length);
    result(&text.split_whitespace().rev().collect::<Vec<_>>().join(" "))
}

/// A sum.
#[unsafe(no_mangle)]
pub extern "C" fn text_tools_add(a: i64, b: i64) -> i64 {
    a.wrapping_add(b)
}

// --- The interface between the server and the module.

#[unsafe(no_mangle)]
pub extern "C" fn squall_abi_version() -> i32 {
    1
}

#[unsafe(no_mangle)]
pub extern "C" fn squall_describe() -> u64 {
    result(DESCRIPTION)
}

#[unsafe(no_mangle)]
pub extern "C" fn squall_alloc(length: u32) -> *mut u8 {
    Box::into_raw(vec![0_u8; length as usize].into_boxed_slice()).cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn squall_free(pointer: *mut u8, length: u32) {
    let slice = std::ptr::slice_from_raw_parts_mut(pointer, length as usize);
    // SAFETY: the server gives back what `squall_alloc` or `result` made, once, with its length.
    drop(unsafe { Box::from_raw(slice) });
}

/// A text that the server passes: valid until the function returns.
fn argument<'a>(pointer: *const u8, length: u32) -> &'a str {
    // SAFETY: the server passes memory from `squall_alloc`, filled with UTF-8.
    unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(pointer, length as usize)) }
}

/// A text for the server, which frees it.
fn result(text: &str) -> u64 {
    let length = text.len() as u64;
    let pointer: *mut u8 = Box::into_raw(Box::<[u8]>::from(text.as_bytes())).cast();
    (pointer as u64) << 32 | length
}
