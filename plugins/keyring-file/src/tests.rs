//! A keyring in a file: its bytes, its mode, and what is refused.

use std::os::unix::fs::PermissionsExt;

use super::*;

fn keyring(name: &str) -> FileKeyring {
    let path = std::env::temp_dir().join(format!("keyring-{name}-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    FileKeyring::new(&path)
}

fn secret(fill: u8) -> Secret {
    Secret::new(vec![fill; 32])
}

#[test]
fn keys_are_kept_in_a_file_for_the_owner_only() {
    let keyring = keyring("kept");
    assert!(keyring.ids().unwrap().is_empty() && keyring.fetch("a").unwrap().is_none());
    keyring.store("a", &secret(1)).unwrap();
    keyring.store("b", &secret(2)).unwrap();
    assert!(keyring.store("a", &secret(3)).is_err());
    for bad in ["", "a b", "a\nkey c 00", &"x".repeat(256)] {
        assert!(keyring.store(bad, &secret(3)).is_err());
    }
    let again = FileKeyring::new(&keyring.path);
    assert_eq!(again.fetch("a").unwrap(), Some(secret(1)));
    assert_eq!(again.ids().unwrap(), ["a", "b"]);
    let mode = std::fs::metadata(&keyring.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(again.remove("a").unwrap() && !again.remove("a").unwrap());
    assert_eq!(keyring.ids().unwrap(), ["b"]);
    // No secret is shown.
    assert!(!format!("{keyring:?} {:?}", keyring.status()).contains("0202"));
    std::fs::set_permissions(&keyring.path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(keyring.fetch("b").unwrap_err().message().contains("chmod"));
    std::fs::remove_file(&keyring.path).unwrap();
}

#[test]
fn a_damaged_file_is_refused_and_not_written() {
    let keyring = keyring("damaged");
    keyring.store("a", &secret(7)).unwrap();
    let good = std::fs::read(&keyring.path).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        std::fs::write(&keyring.path, &bad).unwrap();
        assert!(keyring.fetch("a").is_err() && keyring.store("b", &secret(1)).is_err());
        assert_eq!(std::fs::read(&keyring.path).unwrap(), bad);
    }
    std::fs::remove_file(&keyring.path).unwrap();
}

/// The bytes of docs/format/encryption.md.
#[test]
fn the_file_is_as_documented() {
    let text = "squall-keyring 1\nkey a-1 0001ff\nend 1f0ef965\n";
    let keys = Keys::from([("a-1".to_owned(), Secret::new(vec![0, 1, 255]))]);
    let shown = String::from_utf8(encode(&keys).bytes().to_vec()).unwrap();
    assert_eq!(shown, text);
    assert_eq!(parse(text), Some(keys));
}
