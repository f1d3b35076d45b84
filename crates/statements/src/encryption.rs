//! ALTER INSTANCE: a new master key for the data key of the data directory.

use engine_api::Engine;
use errors::{Error, Result, err};
use plugin_api::{Registry, keep_master_key};
use syntax::ast::AlterInstance;

/// The privilege that a form of ALTER INSTANCE needs.
///
/// # Errors
/// 1235 for forms that are not built.
pub fn alter_instance_privilege(alter: &AlterInstance) -> Result<&'static str> {
    match alter {
        AlterInstance::RotateInnodbMasterKey => Ok("ENCRYPTION_KEY_ADMIN"),
        AlterInstance::RotateBinlogMasterKey => Ok("BINLOG_ENCRYPTION_ADMIN"),
        AlterInstance::ReloadTls { .. } => Err(Error::not_supported("ALTER INSTANCE RELOAD TLS")),
        AlterInstance::EnableRedoLog | AlterInstance::DisableRedoLog => {
            Err(Error::not_supported("ALTER INSTANCE ENABLE and DISABLE INNODB REDO_LOG"))
        }
        AlterInstance::ReloadKeyring => Err(Error::not_supported("ALTER INSTANCE RELOAD KEYRING")),
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
