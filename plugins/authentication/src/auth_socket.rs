//! `auth_socket`: over a UNIX socket, the operating system's user is proof enough.

use errors::{Result, err};
use plugin_api::{AccountSecret, AuthChannel, AuthContext, AuthStep, Authenticator, Exchange};

/// The method. An account may name another OS user as its string.
pub struct AuthSocket;

impl Authenticator for AuthSocket {
    fn name(&self) -> &'static str {
        "auth_socket"
    }

    /// Any client method is accepted: its answer is ignored.
    fn client_plugin(&self) -> &'static str {
        ""
    }

    fn start(&self, ctx: AuthContext, secret: AccountSecret) -> Result<Box<dyn Exchange>> {
        Ok(Box::new(Running { accepted: is_owner(&ctx, &secret.authentication_string) }))
    }

    fn hash_password(&self, _password: &[u8]) -> Result<Vec<u8>> {
        Err(err!(SET_PASSWORD_AUTH_PLUGIN))
    }

    fn is_valid_stored(&self, _stored: &[u8]) -> bool {
        true
    }

    fn is_password(&self, _stored: &[u8], _password: &[u8]) -> bool {
        false
    }
}

fn is_owner(ctx: &AuthContext, stored: &[u8]) -> bool {
    let Some(peer) = &ctx.peer_user else { return false };
    let named = !stored.is_empty() && stored == peer.as_bytes();
    ctx.channel == AuthChannel::Local && (*peer == ctx.user || named)
}

struct Running {
    accepted: bool,
}

impl Exchange for Running {
    fn next(&mut self, _packet: &[u8]) -> Result<AuthStep> {
        Ok(if self.accepted { AuthStep::Accept } else { AuthStep::Refuse })
    }
}
