//! A keyring against a small Vault of this process: both versions of the engine, TLS, and all that goes wrong.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plugin_api::{Keyring, Secret, keep_master_key};
use serde_json::{Value, json};

use super::*;

const TOKEN: &str = "hvs.TokenThatNobodyMayRead";

/// How the fake behaves.
#[derive(Clone, Copy, Default)]
enum Mood {
    #[default]
    Well,
    Sealed,
    Slow,
    /// Answers that are no JSON, with the key in them.
    Babbling,
    /// Forgets what it is given.
    Forgetful,
}

#[derive(Default)]
struct Facts {
    mood: Mood,
    /// Secrets by path.
    secrets: BTreeMap<String, Value>,
    /// Method and path of each request.
    requests: Vec<String>,
}

/// A Vault with engines of version 2 at `secret` and of version 1 at `kv`.
#[derive(Clone)]
struct FakeVault {
    facts: Arc<Mutex<Facts>>,
    port: u16,
}

impl FakeVault {
    fn start(tls: Option<Arc<rustls::ServerConfig>>) -> FakeVault {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let vault =
            FakeVault { facts: Arc::default(), port: listener.local_addr().unwrap().port() };
        let own = vault.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (own, tls) = (own.clone(), tls.clone());
                std::thread::spawn(move || match tls {
                    None => own.serve(&stream, &stream),
                    Some(config) => {
                        let mut tls = rustls::ServerConnection::new(config).unwrap();
                        let mut socket = &stream;
                        let mut stream = rustls::Stream::new(&mut tls, &mut socket);
                        let shared = std::cell::RefCell::new(&mut stream);
                        own.serve(Half(&shared), Half(&shared));
                    }
                });
            }
        });
        vault
    }

    fn set(&self, mood: Mood) {
        self.facts.lock().unwrap().mood = mood;
    }

    fn serve(&self, input: impl Read, mut output: impl Write) {
        let mut lines = BufReader::new(input);
        let mut first = String::new();
        // Who does not trust the certificate says nothing.
        if lines.read_line(&mut first).is_err() || first.is_empty() {
            return;
        }
        let (mut token, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim().split_once(": ") else { break };
            match &*name.to_ascii_lowercase() {
                "x-vault-token" => token = value.to_owned(),
                "content-length" => length = value.parse().unwrap(),
                "transfer-encoding" => panic!("the length is known"),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        lines.read_exact(&mut body).unwrap();
        let mut words = first.split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let mood = self.facts.lock().unwrap().mood;
        let (status, answer) = match mood {
            Mood::Slow => {
                std::thread::sleep(Duration::from_millis(1500));
                return;
            }
            Mood::Sealed => (503, json!({"errors": ["Vault is sealed"]}).to_string()),
            Mood::Babbling => (200, "key 0707070707 in the clear".to_owned()),
            _ if token != TOKEN => {
                let errors = ["2 errors occurred:\n\t* permission denied\n\t* invalid token"];
                (403, json!({"errors": errors}).to_string())
            }
            Mood::Well | Mood::Forgetful => self.answer(method, path, &body),
        };
        let _ = write!(
            output,
            "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
            answer.len()
        );
        let _ = output.flush();
    }

    fn answer(&self, method: &str, path: &str, body: &[u8]) -> (u16, String) {
        let mut facts = self.facts.lock().unwrap();
        facts.requests.push(format!("{method} {path}"));
        let (path, list) = path.strip_suffix("?list=true").map_or((path, false), |p| (p, true));
        let is_versioned = path.starts_with("/v1/secret/");
        if is_versioned && !path.contains("/data/") && !path.contains("/metadata/") {
            let warning = "Invalid path for a versioned K/V secrets engine.";
            return (404, json!({"warnings": [warning], "errors": null}).to_string());
        }
        let nothing = (404, json!({"errors": []}).to_string());
        let place = path.replacen("/metadata/", "/data/", 1);
        match method {
            "GET" if list => {
                let below = format!("{place}/");
                let names = facts.secrets.keys().filter_map(|name| name.strip_prefix(&below));
                let mut names: Vec<String> = names.map(str::to_owned).collect();
                if names.is_empty() {
                    return nothing;
                }
                names.push("folder/".to_owned());
                (200, json!({"data": {"keys": names}}).to_string())
            }
            "GET" => match facts.secrets.get(&place) {
                Some(data) if is_versioned => {
                    (200, json!({"data": {"data": data, "metadata": {}}}).to_string())
                }
                Some(data) => (200, json!({"data": data}).to_string()),
                None => nothing,
            },
            "POST" => {
                let mut sent: Value = serde_json::from_slice(body).unwrap();
                if is_versioned {
                    assert_eq!(sent["options"]["cas"], 0);
                    if facts.secrets.contains_key(&place) {
                        let errors = ["check-and-set parameter did not match"];
                        return (400, json!({"errors": errors}).to_string());
                    }
                    sent = sent["data"].take();
                }
                if !matches!(facts.mood, Mood::Forgetful) {
                    facts.secrets.insert(place, sent);
                }
                (200, json!({"data": {"version": 1}}).to_string())
            }
            "DELETE" => {
                facts.secrets.remove(&place);
                (204, String::new())
            }
            _ => (405, String::new()),
        }
    }
}

/// One direction of a stream that has both.
struct Half<'a, T>(&'a std::cell::RefCell<&'a mut T>);

impl<T: Read> Read for Half<'_, T> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().read(bytes)
    }
}

impl<T: Write> Write for Half<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

fn file(text: &str, mode: u32) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("vault-{}-{number}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

fn keyring_at(url: &str, path: &str, token: &str, ca_file: Option<PathBuf>) -> VaultKeyring {
    let token_file = file(token, 0o600).display().to_string();
    let ca_file = ca_file.map(|path| path.display().to_string()).unwrap_or_default();
    let given = [
        ("keyring_hashicorp_server_url", url),
        ("keyring_hashicorp_store_path", path),
        ("keyring_hashicorp_token_file", &token_file),
        ("keyring_hashicorp_ca_path", &ca_file),
        ("keyring_hashicorp_timeout", "1"),
    ];
    let last = |name: &str| given.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    VaultKeyring::new(VaultOptions::collect(last).unwrap().unwrap())
}

fn keyring(vault: &FakeVault, path: &str, token: &str) -> VaultKeyring {
    keyring_at(&format!("http://127.0.0.1:{}", vault.port), path, token, None)
}

fn secret(fill: u8) -> Secret {
    Secret::new(vec![fill; 32])
}

/// The message of error 3185, in which there is no secret.
fn message<T>(result: errors::Result<T>) -> String {
    let Err(error) = result else { panic!("no error") };
    assert_eq!(error.code(), errors::ErrorCode::CANNOT_FIND_KEY_IN_KEYRING);
    let text = error.message().to_owned();
    assert!(!text.contains(TOKEN) && !text.contains("0707"), "{text}");
    text
}

#[test]
fn keys_are_kept_in_both_versions_of_the_engine() {
    for (path, place) in [
        ("/v1/secret/data/squall", "/v1/secret/data/squall/"),
        ("/v1/kv/a/squall/", "/v1/kv/a/squall/"),
    ] {
        let vault = FakeVault::start(None);
        let keyring = keyring(&vault, path, &format!("{TOKEN}\n"));
        assert!(keyring.ids().unwrap().is_empty() && keyring.fetch("a").unwrap().is_none());
        keyring.store("a-1", &secret(7)).unwrap();
        keyring.store("b", &secret(2)).unwrap();
        assert!(message(keyring.store("b", &secret(3))).contains("there is a key b already"));
        for bad in ["", "..", "a/b", "a?b", "a b", &"x".repeat(256)] {
            message(keyring.store(bad, &secret(3)));
        }
        assert_eq!(keyring.fetch("a-1").unwrap(), Some(secret(7)));
        assert_eq!(keyring.ids().unwrap(), ["a-1", "b"]);
        assert!(keyring.remove("a-1").unwrap() && !keyring.remove("a-1").unwrap());
        assert_eq!(keyring.ids().unwrap(), ["b"]);
        let kept = vault.facts.lock().unwrap().secrets.clone();
        assert_eq!(kept[&format!("{place}b")], json!({"key": "02".repeat(32)}));
        assert!(keyring.reload().is_ok());
        let shown = format!("{keyring:?} {:?}", keyring.status());
        assert!(!shown.contains(TOKEN) && shown.contains("Active"), "{shown}");
    }
}

#[test]
fn a_rotation_keeps_a_key_under_the_next_name() {
    let vault = FakeVault::start(None);
    let keyring = keyring(&vault, "/v1/secret/data/squall", TOKEN);
    for number in 1..=3 {
        let id = keep_master_key(&keyring, "u", &secret(number)).unwrap();
        assert_eq!(id, format!("INNODBKey-u-{number}"));
    }
    // Another process, with another token file.
    let again = self::keyring(&vault, "/v1/secret/data/squall", TOKEN);
    assert_eq!(again.fetch("INNODBKey-u-3").unwrap(), Some(secret(3)));
}

#[test]
fn what_goes_wrong_is_error_3185_with_the_reason() {
    let vault = FakeVault::start(None);
    let path = "/v1/secret/data/squall";
    let keyring = keyring(&vault, path, TOKEN);
    keyring.store("a", &secret(7)).unwrap();
    let wrong = self::keyring(&vault, path, "hvs.another");
    let text = message(wrong.fetch("a"));
    assert!(text.contains("403") && text.contains("permission denied"), "{text}");
    assert!(!text.contains("hvs.another") && !text.contains('\n'), "{text}");
    // A path of version 1 in an engine of version 2 is no empty one.
    let text = message(self::keyring(&vault, "/v1/secret/squall", TOKEN).fetch("a"));
    assert!(text.contains("Invalid path for a versioned"), "{text}");
    vault.set(Mood::Sealed);
    let text = message(keyring.store("b", &secret(7)));
    assert!(text.contains("503") && text.contains("unseal"), "{text}");
    vault.set(Mood::Slow);
    let start = Instant::now();
    let text = message(keyring.fetch("a"));
    assert!(text.contains("no answer within keyring_hashicorp_timeout (1 s)"), "{text}");
    assert!(start.elapsed() < Duration::from_secs(10));
    vault.set(Mood::Babbling);
    message(keyring.fetch("a"));
    message(keyring.ids());
    vault.set(Mood::Forgetful);
    assert!(message(keyring.store("c", &secret(7))).contains("not read back"));
    vault.set(Mood::Well);
    assert_eq!(keyring.fetch("a").unwrap(), Some(secret(7)));
    // Nobody listens there.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = message(keyring_at(&format!("http://{free}"), path, TOKEN, None).fetch("a"));
    assert!(text.contains("refused"), "{text}");
    let shown = keyring_at(&format!("http://{free}"), path, TOKEN, None).status();
    assert!(shown.contains(&("Component_status", "Disabled".to_owned())));
}

#[test]
fn a_token_that_others_can_read_is_not_sent() {
    let vault = FakeVault::start(None);
    let keyring = keyring(&vault, "/v1/kv/squall", TOKEN);
    let path = keyring.status().into_iter().find(|(name, _)| *name == "Token_file").unwrap().1;
    vault.facts.lock().unwrap().requests.clear();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(message(keyring.ids()).contains("chmod"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&path, "\n").unwrap();
    assert!(message(keyring.ids()).contains("it is empty"));
    std::fs::write(&path, "hvs.two\nlines").unwrap();
    assert!(!message(keyring.ids()).contains("hvs"));
    std::fs::remove_file(&path).unwrap();
    message(keyring.ids());
    assert!(vault.facts.lock().unwrap().requests.is_empty());
    // It is read anew: a renewed one works at once.
    std::fs::write(&path, TOKEN).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    keyring.reload().unwrap();
}

#[test]
fn the_certificate_must_be_of_the_named_authority() {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let vault = FakeVault::start(Some(Arc::new(config)));
    let url = format!("https://127.0.0.1:{}", vault.port);
    let path = "/v1/secret/data/squall";
    let own = keyring_at(&url, path, TOKEN, Some(file(&made.cert.pem(), 0o644)));
    own.store("a", &secret(7)).unwrap();
    assert_eq!(own.fetch("a").unwrap(), Some(secret(7)));
    vault.facts.lock().unwrap().requests.clear();
    let other = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let other = keyring_at(&url, path, TOKEN, Some(file(&other.cert.pem(), 0o644)));
    assert!(message(other.fetch("a")).contains("certificate"));
    message(keyring_at(&url, path, TOKEN, Some(file("no PEM", 0o644))).fetch("a"));
    assert!(vault.facts.lock().unwrap().requests.is_empty());
}
