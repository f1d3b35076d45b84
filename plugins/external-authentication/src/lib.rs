//! Authentication by others: a file of hashed passwords, an HTTP server, an OpenID Connect provider, an LDAP directory, PAM.
//!
//! Each method is a plugin that is loaded on request. A method gets a password (or an ID token) only over TLS or the UNIX socket, or from a
//! protocol that has it in clear anyway. Whatever goes wrong refuses the log-in; the error log gets the reason, never the secret.

mod complaints;
mod file;
mod http;
mod ldap;
mod openid;
mod outbound;
#[cfg(not(target_feature = "crt-static"))]
mod pam;
mod password;

use plugin_api::Plugin;

/// The plugins: `auth_file`, `auth_http`, `authentication_openid_connect`, `auth_ldap`, and `auth_pam` unless the program is static.
pub fn plugins() -> Vec<Box<dyn Plugin>> {
    vec![
        Box::new(file::AuthFile),
        Box::new(http::AuthHttp),
        Box::new(openid::OpenIdConnect),
        Box::new(ldap::AuthLdap),
        // Its modules are shared libraries.
        #[cfg(not(target_feature = "crt-static"))]
        Box::new(pam::AuthPam),
    ]
}
