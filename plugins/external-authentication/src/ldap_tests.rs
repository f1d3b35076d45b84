//! `auth_ldap` against OpenLDAP's slapd where it is installed, with TLS by a certificate of the test; and against a directory that never answers.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::*;

const SLAPD: &str = "/usr/sbin/slapd";

/// A directory with two people, of whom the first is in the group; stopped when it is dropped.
struct Slapd {
    process: Child,
    directory: PathBuf,
    plain: u16,
    tls: u16,
}

impl Drop for Slapd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

const PEOPLE: &str = "dn: dc=example,dc=org
objectClass: dcObject
objectClass: organization
o: Example
dc: example

dn: ou=people,dc=example,dc=org
objectClass: organizationalUnit
ou: people

dn: uid=ann,ou=people,dc=example,dc=org
objectClass: account
objectClass: simpleSecurityObject
uid: ann
userPassword: secret

dn: uid=bob,ou=people,dc=example,dc=org
objectClass: account
objectClass: simpleSecurityObject
uid: bob
userPassword: hunter2

dn: cn=squall,dc=example,dc=org
objectClass: groupOfNames
cn: squall
member: uid=ann,ou=people,dc=example,dc=org
";

fn configuration(directory: &Path) -> String {
    let at = directory.display();
    format!(
        "include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
modulepath /usr/lib/ldap
moduleload back_mdb
TLSCertificateFile {at}/cert.pem
TLSCertificateKeyFile {at}/key.pem
database mdb
suffix \"dc=example,dc=org\"
directory {at}/db
access to attrs=userPassword by anonymous auth by * none
access to * by users read
"
    )
}

/// `None` where slapd is not installed.
fn slapd() -> Option<Slapd> {
    if !Path::new(SLAPD).exists() {
        eprintln!("SKIPPED: {SLAPD} is not installed (apt-get install slapd)");
        return None;
    }
    let directory = std::env::temp_dir().join(format!("auth-ldap-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("db")).expect("a directory");
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("made");
    let write = |name: &str, text: &str| {
        std::fs::write(directory.join(name), text).expect("a file");
        directory.join(name)
    };
    write("cert.pem", &made.cert.pem());
    write("key.pem", &made.signing_key.serialize_pem());
    let config = write("slapd.conf", &configuration(&directory));
    let people = write("people.ldif", PEOPLE);
    let mut adding = Command::new("/usr/sbin/slapadd");
    let added = adding.arg("-f").arg(&config).arg("-l").arg(&people).output();
    let added = added.expect("slapadd runs");
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    let (plain, tls) = (free_port(), free_port());
    let urls = format!("ldap://127.0.0.1:{plain} ldaps://127.0.0.1:{tls}");
    let process = Command::new(SLAPD)
        .args(["-d", "0", "-h", &urls, "-f"])
        .arg(&config)
        .stderr(Stdio::null())
        .spawn()
        .expect("slapd runs");
    let slapd = Slapd { process, directory, plain, tls };
    let begun = Instant::now();
    while [plain, tls].iter().any(|port| TcpStream::connect(("127.0.0.1", *port)).is_err()) {
        assert!(begun.elapsed() < Duration::from_secs(20), "slapd does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    Some(slapd)
}

fn directory(uri: &str) -> Directory {
    let directory = Directory::default();
    directory.uri.store(Value::text(uri));
    directory.starttls.store(Value::UInt(1));
    directory.dn_template.store(Value::text("uid={user},ou=people,dc=example,dc=org"));
    directory.timeout.store(Value::UInt(10));
    directory
}

#[test]
fn the_directory_decides_over_tls() {
    let Some(slapd) = slapd() else { return };
    let ca_file = slapd.directory.join("cert.pem");
    for uri in
        [format!("ldaps://localhost:{}", slapd.tls), format!("ldap://localhost:{}", slapd.plain)]
    {
        let directory = directory(&uri);
        let verify =
            |user, account, password| directory.verify(Attempt { user, account, password });
        assert!(verify("ann", "", "secret").is_err(), "{uri}: nobody vouches for the certificate");
        directory.ca_file.store(Value::text(ca_file.to_str().expect("a text")));
        assert_eq!(verify("ann", "", "secret"), Ok(true), "{uri}");
        assert_eq!(verify("ann", "", "Secret"), Ok(false));
        assert_eq!(verify("nobody", "", "secret"), Ok(false));
        let bob = "uid=bob,ou=people,dc=example,dc=org";
        assert_eq!(verify("robert", bob, "hunter2"), Ok(true));
        assert_eq!(verify("robert", bob, "secret"), Ok(false));
        // Escaped, it is the name of nobody; as it stands it would be Ann's.
        assert_eq!(verify("ann,ou=people,dc=example,dc=org#", "", "secret"), Ok(false));
        let inside = Attempt {
            user: "ann,ou=people",
            account: "uid={user},dc=example,dc=org",
            password: "secret",
        };
        assert_eq!(directory.verify(inside), Ok(false));
        directory.group_base.store(Value::text("dc=example,dc=org"));
        directory.group_filter.store(Value::text("(&(cn=squall)(member={dn}))"));
        assert_eq!(verify("ann", "", "secret"), Ok(true));
        assert_eq!(verify("bob", "", "hunter2"), Ok(false), "not in the group");
        directory.group_filter.store(Value::text("(&(objectClass=account)(uid={user}))"));
        assert_eq!(verify("ann", "", "secret"), Ok(true));
        let star = Attempt {
            user: "*",
            account: "uid=ann,ou=people,dc=example,dc=org",
            password: "secret",
        };
        assert_eq!(directory.verify(star), Ok(false), "a name is no pattern");
    }
    let plain = directory(&format!("ldap://127.0.0.1:{}", slapd.plain));
    plain.starttls.store(Value::UInt(0));
    assert_eq!(plain.verify(Attempt { user: "ann", account: "", password: "secret" }), Ok(true));
}

#[test]
fn a_silent_directory_costs_the_timeout_only() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    for uri in [format!("ldaps://127.0.0.1:{port}"), format!("ldap://127.0.0.1:{port}")] {
        let directory = directory(&uri);
        directory.timeout.store(Value::UInt(1));
        let begun = Instant::now();
        let asked = directory.verify(Attempt { user: "ann", account: "", password: "hunter3" });
        let reason = asked.expect_err("no answer");
        assert!(reason.contains("within 1 s") && !reason.contains("hunter3"), "{reason}");
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    }
}

#[test]
fn passwords_leave_this_machine_over_tls_only() {
    let directory = directory("ldap://directory.example.org");
    directory.starttls.store(Value::UInt(0));
    let asked = directory.verify(Attempt { user: "ann", account: "", password: "secret" });
    assert!(asked.is_err_and(|reason| reason.contains("without TLS")));
    for (uri, is_valid) in [
        ("ldaps://d.example.org", true),
        ("ldap://d.example.org:1389", true),
        ("ldapi:///run/x", false),
        ("ldaps://me:pw@d.example.org", false),
        ("d.example.org", false),
        ("", true),
    ] {
        assert_eq!(check_uri(&Value::text(uri)).is_ok(), is_valid, "{uri}");
    }
    assert!(directory.is_valid_account("cn=a") && !directory.is_valid_account("ann"));
}
