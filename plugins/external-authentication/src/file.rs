//! `auth_file`: users and hashed passwords in a file, one `user:hash` a line, as `htpasswd -B` writes them. `#` begins a comment.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use argon2::Argon2;
use argon2::password_hash::PasswordVerifier;
use argon2::password_hash::phc::PasswordHash;
use errors::{Error, ErrorCode, Result};
use plugin_api::variable::{Definition, Kind, as_text};
use plugin_api::{GlobalValue, Plugin, PluginInfo, Registrar};
use sys::private_file::{self, Stamp};
use sys::sync::Mutex;
use types::Value;

use crate::password::{Attempt, Backend, PasswordMethod};

/// A larger file is refused.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// A hash that takes more memory to check is refused, in KiB.
const ARGON2_KIB_MAX: u32 = 64 << 10;
/// A bcrypt hash that takes longer to check (2^n rounds) is refused.
const BCRYPT_COST_MAX: u32 = 15;

static USERS: Definition = Definition::global(
    "auth_file_users",
    Kind::Text,
    "",
    "Path of the file with the users of auth_file and their bcrypt or Argon2 hashes; empty: nobody",
);

/// The plugin.
#[derive(Debug)]
pub(crate) struct AuthFile;

impl Plugin for AuthFile {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("auth_file", "Authenticates users by a file of hashed passwords.")
            .on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let users = UsersFile::default();
        registrar.checked_variable(&USERS, &users.path, check_path);
        registrar.authenticator(Arc::new(PasswordMethod::new(users)));
    }
}

/// # Errors
/// 1231 for a relative path, and for a file that cannot be used.
fn check_path(value: &Value) -> Result<()> {
    let path = PathBuf::from(as_text(value));
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    let read = match path.is_absolute() {
        true => Users::read(&path).map(drop),
        false => Err("the path is not absolute".to_owned()),
    };
    read.map_err(|reason| {
        Error::new(ErrorCode::WRONG_VALUE_FOR_VAR, format!("auth_file_users: {reason}"))
    })
}

#[derive(Clone, Debug)]
enum Hash {
    Bcrypt(String),
    Argon2(String),
}

impl Hash {
    /// # Errors
    /// What is wrong; the text is not repeated, as it may be a password.
    fn parse(text: &str) -> std::result::Result<Hash, &'static str> {
        if ["$2a$", "$2b$", "$2y$"].iter().any(|prefix| text.starts_with(prefix)) {
            let parts = text.parse::<bcrypt::HashParts>();
            let parts = parts.map_err(|_| "an invalid bcrypt hash")?;
            if parts.get_cost() > BCRYPT_COST_MAX {
                return Err("a bcrypt hash of a cost above 15");
            }
            return Ok(Hash::Bcrypt(text.to_owned()));
        }
        if text.starts_with("$argon2") {
            let parsed = PasswordHash::new(text).map_err(|_| "an invalid Argon2 hash")?;
            let memory = parsed.params.get_decimal("m").unwrap_or(0);
            let is_large = memory > ARGON2_KIB_MAX
                || parsed.params.get_decimal("t").unwrap_or(0) > 16
                || parsed.params.get_decimal("p").unwrap_or(0) > 16;
            if is_large || parsed.hash.is_none() {
                return Err("an Argon2 hash above m=65536, t=16, p=16, or without its result");
            }
            return Ok(Hash::Argon2(text.to_owned()));
        }
        Err("the password is not hashed: bcrypt ($2y$..) or Argon2 ($argon2id$..) is wanted")
    }

    fn is_of(&self, password: &str) -> bool {
        match self {
            // Of a longer password bcrypt would ignore the end.
            Hash::Bcrypt(hash) => bcrypt::non_truncating_verify(password, hash).unwrap_or(false),
            Hash::Argon2(hash) => {
                let verified =
                    Argon2::default().verify_password(password.as_bytes(), hash.as_str());
                verified.is_ok()
            }
        }
    }
}

#[derive(Debug, Default)]
struct Users {
    hashes: HashMap<String, Hash>,
    stamp: Stamp,
}

impl Users {
    fn read(path: &Path) -> std::result::Result<Users, String> {
        let name = path.display();
        let read = private_file::read(path, FILE_BYTES_MAX);
        let (stamp, text) = read.map_err(|error| format!("'{name}': {error}"))?;
        let mut hashes = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let at = |reason: &str| format!("'{name}', line {}: {reason}", number + 1);
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (user, hash) = line.split_once(':').ok_or_else(|| at("no 'user:hash'"))?;
            let hash = Hash::parse(hash).map_err(at)?;
            if hashes.insert(user.to_owned(), hash).is_some() {
                return Err(at("the user is there already"));
            }
        }
        Ok(Users { hashes, stamp })
    }
}

/// The file, as it was when it was read last.
#[derive(Debug, Default)]
struct UsersFile {
    path: GlobalValue,
    read: Mutex<(PathBuf, Arc<Users>)>,
    /// An Argon2 check takes up to 64 MiB: one at a time.
    memory: Mutex<()>,
}

impl UsersFile {
    /// The users of the present file: read again when its name, size or times differ.
    fn users(&self) -> std::result::Result<Arc<Users>, String> {
        let path = PathBuf::from(self.path.text());
        if path.as_os_str().is_empty() {
            return Err("auth_file_users is empty".into());
        }
        let stamp = private_file::stamp(&path);
        let stamp = stamp.map_err(|error| format!("'{}': {error}", path.display()))?;
        let known = self.read.lock().clone();
        if known.0 == path && known.1.stamp == stamp {
            return Ok(known.1);
        }
        let users = Arc::new(Users::read(&path)?);
        *self.read.lock() = (path, users.clone());
        Ok(users)
    }

    fn is_of(&self, hash: &Hash, password: &str) -> bool {
        let _memory = match hash {
            Hash::Argon2(_) => Some(self.memory.lock()),
            Hash::Bcrypt(_) => None,
        };
        hash.is_of(password)
    }
}

impl Backend for UsersFile {
    fn name(&self) -> &'static str {
        "auth_file"
    }

    /// The user's name in the file, where it differs.
    fn is_valid_account(&self, account: &str) -> bool {
        !account.contains(':') && !account.chars().any(char::is_control)
    }

    fn verify(&self, attempt: Attempt<'_>) -> std::result::Result<bool, String> {
        let users = self.users()?;
        let name = if attempt.account.is_empty() { attempt.user } else { attempt.account };
        if let Some(hash) = users.hashes.get(name) {
            return Ok(self.is_of(hash, attempt.password));
        }
        // As slow as for a user that is there.
        if let Some(hash) = users.hashes.values().next() {
            self.is_of(hash, attempt.password);
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Of `secret`, made by the Python packages bcrypt and argon2-cffi.
    const BCRYPT: &str = "$2y$05$bdBABJbQp8cx20yCAfwz6OK/r1yAY3z24LF6GD6tUDD5JTEoOHxNm";
    const ARGON2: &str = "$argon2id$v=19$m=1024,t=1,p=1$mrB4Jd2zWQkhgQ6upBvFpA$Ke6kRod7RW+vm0lhCCdj6kopKCI6SfJywmL65fLFlks";

    fn write(path: &Path, text: &str, mode: u32) {
        std::fs::write(path, text).expect("a file");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    }

    fn verify(file: &UsersFile, user: &str, password: &str) -> std::result::Result<bool, String> {
        file.verify(Attempt { user, account: "", password })
    }

    #[test]
    fn hashed_passwords_open_and_the_file_is_read_again_when_it_changes() {
        let path = std::env::temp_dir().join(format!("auth-file-{}", std::process::id()));
        write(&path, &format!("# users\nann:{BCRYPT}\n\nbob:{ARGON2}\n"), 0o600);
        let file = UsersFile::default();
        assert!(verify(&file, "ann", "secret").is_err(), "no file is named");
        file.path.store(Value::text(path.to_str().expect("a text")));
        for user in ["ann", "bob"] {
            assert_eq!(verify(&file, user, "secret"), Ok(true), "{user}");
            assert_eq!(verify(&file, user, "Secret"), Ok(false), "{user}");
        }
        assert_eq!(verify(&file, "eve", "secret"), Ok(false));
        let mapped = Attempt { user: "eve", account: "ann", password: "secret" };
        assert_eq!(file.verify(mapped), Ok(true));
        write(&path, &format!("bob:{ARGON2}\n"), 0o600);
        assert_eq!(verify(&file, "ann", "secret"), Ok(false));
        write(&path, &format!("bob:{ARGON2}\n "), 0o644);
        assert!(verify(&file, "bob", "secret").is_err_and(|reason| reason.contains("chmod")));
        std::fs::remove_file(&path).expect("a file");
        assert!(verify(&file, "bob", "secret").is_err());
    }

    #[test]
    fn plain_passwords_and_costly_hashes_are_refused_and_not_repeated() {
        let path = std::env::temp_dir().join(format!("auth-file-plain-{}", std::process::id()));
        let value = Value::text(path.to_str().expect("a text"));
        let costly = ARGON2.replace("m=", "m=9");
        for (text, reason) in [
            ("ann:hunter2", "line 1: the password is not hashed"),
            ("ann", "line 1: no 'user:hash'"),
            (&format!("ann:{costly}"), "line 1: an Argon2 hash above"),
            (&format!("ann:{BCRYPT}\nann:{BCRYPT}"), "line 2: the user is there already"),
        ] {
            write(&path, text, 0o600);
            let error = check_path(&value).expect_err(text);
            assert!(error.message().contains(reason), "{}", error.message());
            assert!(!error.message().contains("hunter2"));
        }
        std::fs::remove_file(&path).expect("a file");
        assert!(check_path(&value).is_err() && check_path(&Value::text("users")).is_err());
        assert!(check_path(&Value::text("")).is_ok());
    }
}
