//! Authentication methods: `caching_sha2_password`, `mysql_native_password`, `auth_socket`.
//!
//! Contains secrets and exchanges only: no packets, accounts or sessions.

mod auth_socket;
mod caching_sha2;
mod native_password;
mod rsa_keys;
mod sha256_crypt;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use plugin_api::{Plugin, PluginInfo, Registrar};

pub use auth_socket::AuthSocket;
pub use caching_sha2::{CachingSha2Password, scramble as caching_sha2_scramble};
pub use native_password::{NativePassword, scramble as native_scramble};

/// The family of built-in authentication methods.
pub struct Authentication;

impl Plugin for Authentication {
    fn info(&self) -> PluginInfo {
        PluginInfo::new(
            "authentication",
            "caching_sha2_password, mysql_native_password and auth_socket.",
        )
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.authenticator(Arc::new(CachingSha2Password::new()));
        registrar.authenticator(Arc::new(NativePassword));
        registrar.authenticator(Arc::new(AuthSocket));
    }
}

/// The plugin.
pub fn plugin() -> Box<dyn Plugin> {
    Box::new(Authentication)
}

/// Compares in constant time, so that the duration does not reveal the position of a difference.
fn equal_in_constant_time(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (x, y)| differs | (x ^ y)) == 0
}
