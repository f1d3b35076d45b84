//! Log-ins that last: tokens for `Authorization: Bearer` and for the console's cookie.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plugin_api::AccountSecret;
use sys::sync::Mutex;

/// A token ends this long after its last use.
pub const TOKEN_LIFE: Duration = Duration::from_secs(30 * 60);
/// Tokens at one time; the one used longest ago makes room.
const TOKENS_MAX: usize = 1024;

struct Token {
    user: String,
    /// Of the account when it logged in: a changed password ends the token.
    secret: AccountSecret,
    used: Duration,
}

/// All tokens.
#[derive(Default)]
pub struct Tokens(Mutex<HashMap<String, Token>>);

impl Tokens {
    /// A new token for an account.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn create(&self, user: &str, secret: AccountSecret) -> std::io::Result<String> {
        let mut bytes = [0; 32];
        sys::entropy::fill(&mut bytes)?;
        let name = URL_SAFE_NO_PAD.encode(bytes);
        let now = sys::clock::monotonic();
        let mut tokens = self.0.lock();
        tokens.retain(|_, token| now.saturating_sub(token.used) < TOKEN_LIFE);
        if tokens.len() >= TOKENS_MAX {
            let oldest = tokens.iter().min_by_key(|(_, token)| token.used);
            let oldest = oldest.map(|(name, _)| name.clone());
            oldest.map(|name| tokens.remove(&name));
        }
        tokens.insert(name.clone(), Token { user: user.to_owned(), secret, used: now });
        Ok(name)
    }

    /// The user of a token that is still good, and the secret that the account had; this use prolongs it.
    pub fn user(&self, name: &str) -> Option<(String, AccountSecret)> {
        let now = sys::clock::monotonic();
        let mut tokens = self.0.lock();
        let token = tokens.get_mut(name)?;
        if now.saturating_sub(token.used) >= TOKEN_LIFE {
            tokens.remove(name);
            return None;
        }
        token.used = now;
        Some((token.user.clone(), token.secret.clone()))
    }

    /// Ends a token.
    pub fn remove(&self, name: &str) {
        self.0.lock().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_belongs_to_a_user_until_it_is_removed() {
        let tokens = Tokens::default();
        let one = tokens.create("a", AccountSecret::default()).unwrap();
        let other = tokens.create("b", AccountSecret::default()).unwrap();
        assert_ne!(one, other);
        assert_eq!(tokens.user(&one).unwrap().0, "a");
        tokens.remove(&one);
        assert!(tokens.user(&one).is_none() && tokens.user("").is_none());
        for _ in 0..2 * TOKENS_MAX {
            tokens.create("c", AccountSecret::default()).unwrap();
        }
        assert_eq!(tokens.0.lock().len(), TOKENS_MAX);
    }
}
