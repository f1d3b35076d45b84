//! Rules that a simulated run breaks on purpose, to see whether it notices. Part of `model`, apart from what models need.
#![cfg_attr(any(loom, shuttle), allow(dead_code))]

use std::sync::OnceLock;

static BROKEN: OnceLock<String> = OnceLock::new();

/// Whether a test asks for the build that breaks `rule` on purpose. Never outside of models and of programs that call [`plant`]; a constant in a build without debug
/// assertions.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub const fn breaks(_rule: &str) -> bool {
    false
}

/// Whether a test asks for the build that breaks `rule` on purpose. Never outside of models and of programs that call [`plant`]; a constant in a build without debug
/// assertions.
#[cfg(debug_assertions)]
#[inline]
pub fn breaks(rule: &str) -> bool {
    BROKEN.get().is_some_and(|broken| broken == rule)
}

/// Has this process break `rule` from now on. False where that cannot be: in a build without debug assertions, and after a call for another rule.
pub fn plant(rule: &str) -> bool {
    cfg!(debug_assertions) && BROKEN.get_or_init(|| rule.to_owned()) == rule
}
