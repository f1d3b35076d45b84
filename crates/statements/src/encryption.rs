//! ALTER INSTANCE: a new master key for the data key of the data directory; keyring and certificates are read anew.

use engine_api::Engine;
use errors::{Error, Result, err};
use plugin_api::{Registry, keep_master_key};
use syntax::ast::AlterInstance;
use sys::process::Gravity;

/// The one listener that has certificates.
const MAIN_CHANNEL: &str = "mysql_main";
/// The reference's second one, of `admin_address`.
const ADMIN_CHANNEL: &str = "mysql_admin";

/// The privilege that a form of ALTER INSTANCE needs.
///
/// # Errors
/// 1149 for an unknown channel; 1235 for forms that are not built.
pub fn alter_instance_privilege(alter: &AlterInstance) -> Result<&'static str> {
    match alter {
        AlterInstance::RotateInnodbMasterKey | AlterInstance::ReloadKeyring => {
            Ok("ENCRYPTION_KEY_ADMIN")
        }
        AlterInstance::RotateBinlogMasterKey => Ok("BINLOG_ENCRYPTION_ADMIN"),
        AlterInstance::ReloadTls { channel, .. } => {
            let name = channel.as_ref().map_or(MAIN_CHANNEL, |name| &name.text);
            if name.eq_ignore_ascii_case(MAIN_CHANNEL) {
                Ok("CONNECTION_ADMIN")
            } else if name.eq_ignore_ascii_case(ADMIN_CHANNEL) {
                Err(Error::not_supported("ALTER INSTANCE RELOAD TLS FOR CHANNEL mysql_admin"))
            } else {
                Err(err!(SYNTAX_ERROR))
            }
        }
        AlterInstance::EnableRedoLog | AlterInstance::DisableRedoLog => {
            Err(Error::not_supported("ALTER INSTANCE ENABLE and DISABLE INNODB REDO_LOG"))
        }
    }
}

/// Makes a new master key, keeps it in the keyring, and has it wrap the data key. Tables, log and binary log have one data key, so both forms of the statement do
/// the same. The key before stays in the keyring: backups need it, and a crash on the way leaves either.
///
/// # Errors
/// 3185 without a keyring, or when the data directory is not encrypted; the keyring or the directory cannot be written.
pub fn rotate_master_key(
    registry: &Registry,
    engine: &dyn Engine,
    server_uuid: &str,
) -> Result<()> {
    let (Some(keyring), Some(directory)) = (registry.keyring(), engine.directory_key()) else {
        return Err(err!(CANNOT_FIND_KEY_IN_KEYRING));
    };
    let failed = |error| Error::internal(format!("the master key was not changed: {error}"));
    sys::blocking::blocking(|| {
        let key = sys::encryption::master_key().map_err(failed)?;
        let id = keep_master_key(&**keyring, server_uuid, &key)?;
        directory.rotate(&id, &key).map_err(failed)
    })
}

/// ALTER INSTANCE RELOAD KEYRING: the keyring reads its settings anew, and must have the key of the data directory.
///
/// # Errors
/// 4035: there is no keyring, it cannot be used, or has not the key. The reason is in the error log.
pub fn reload_keyring(registry: &Registry, engine: &dyn Engine) -> Result<()> {
    let Some(keyring) = registry.keyring() else {
        return Err(err!(RELOAD_KEYRING_FAILURE));
    };
    let id = engine.directory_key().map(|key| key.master_id());
    let reloaded = sys::blocking::blocking(|| {
        keyring.reload()?;
        match &id {
            Some(id) => Ok(keyring.fetch(id)?.is_some()),
            None => Ok(true),
        }
    });
    let reason = match reloaded {
        Ok(true) => return Ok(()),
        Ok(false) => format!("it has no key {}", id.unwrap_or_default()),
        Err(error) => Error::message(&error).to_owned(),
    };
    sys::process::tell(Gravity::Error, &format!("the keyring was not reloaded: {reason}"));
    Err(err!(RELOAD_KEYRING_FAILURE))
}
