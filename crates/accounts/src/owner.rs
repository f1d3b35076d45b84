//! The administrator's method: over the UNIX socket the owner of the data directory needs no password, all others do.

use std::sync::Arc;

use errors::Result;
use plugin_api::{AccountSecret, AuthChannel, AuthContext, AuthStep, Authenticator, Exchange};

/// A method that lets one user of the operating system pass without a password.
pub(crate) struct OwnerOrPassword {
    owner: u32,
    inner: Arc<dyn Authenticator>,
}

impl OwnerOrPassword {
    pub(crate) fn new(owner: u32, inner: Arc<dyn Authenticator>) -> OwnerOrPassword {
        OwnerOrPassword { owner, inner }
    }
}

impl Authenticator for OwnerOrPassword {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn client_plugin(&self) -> &'static str {
        self.inner.client_plugin()
    }

    fn start(&self, ctx: AuthContext, secret: AccountSecret) -> Result<Box<dyn Exchange>> {
        let is_owner = ctx.channel == AuthChannel::Local && ctx.peer_uid == Some(self.owner);
        let inner = self.inner.start(ctx, secret)?;
        Ok(Box::new(Running { is_owner, inner }))
    }

    fn hash_password(&self, password: &[u8]) -> Result<Vec<u8>> {
        self.inner.hash_password(password)
    }

    fn is_valid_stored(&self, stored: &[u8]) -> bool {
        self.inner.is_valid_stored(stored)
    }

    fn is_password(&self, stored: &[u8], password: &[u8]) -> bool {
        self.inner.is_password(stored, password)
    }

    fn verifies(&self, ctx: &AuthContext, secret: &AccountSecret, password: &[u8]) -> Result<bool> {
        self.inner.verifies(ctx, secret, password)
    }

    fn is_decided_by_secret(&self) -> bool {
        self.inner.is_decided_by_secret()
    }

    fn bearer_user(&self, token: &str) -> Option<String> {
        self.inner.bearer_user(token)
    }
}

struct Running {
    is_owner: bool,
    inner: Box<dyn Exchange>,
}

impl Exchange for Running {
    fn next(&mut self, packet: &[u8]) -> Result<AuthStep> {
        // Only a reply without a password: a given password is checked.
        let has_password = packet.iter().any(|byte| *byte != 0);
        if std::mem::take(&mut self.is_owner) && !has_password {
            return Ok(AuthStep::Accept);
        }
        self.inner.next(packet)
    }
}
