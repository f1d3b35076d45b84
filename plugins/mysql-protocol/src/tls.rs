//! Certificates and the TLS configuration. At first start a CA and a server certificate are created in the data
//! directory, under the names that the reference uses.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use sys::files::{self, Existing, File};
use sys::io_times::IoTimes;

use crate::tls_status::{self, InUse};

const CA_CERTIFICATE: &str = "ca.pem";
const CA_KEY: &str = "ca-key.pem";
const SERVER_CERTIFICATE: &str = "server-cert.pem";
const SERVER_KEY: &str = "server-key.pem";
const CLIENT_CERTIFICATE: &str = "client-cert.pem";
const CLIENT_KEY: &str = "client-key.pem";
const NO_CERTIFICATE: &str = "Unable to get certificate";
const NO_KEY: &str = "Unable to get private key";
const NO_AUTHORITY: &str = "Unable to get the certificates of authorities";
const OTHER_KEY: &str = "Private key does not match the certificate public key";
const PRIVATE_FILE_MODE: u32 = 0o600;
const PUBLIC_FILE_MODE: u32 = 0o644;

/// Certificate, key and authority, when the start named them.
type Files = (PathBuf, PathBuf, Option<PathBuf>);

/// Why there is no configuration.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What could not be had, as the reference words it.
    pub(crate) subject: &'static str,
    /// The file and what is wrong with it.
    pub(crate) reason: String,
}

/// The configuration from `files`, or from certificates in `data_directory`, which are made when they are not there.
pub(crate) fn configure(
    files: Option<&Files>,
    data_directory: &Path,
    io_times: &IoTimes,
) -> io::Result<(Arc<ServerConfig>, InUse)> {
    let (certificate, key) = names(files, data_directory);
    if files.is_none() && !(files::exists(&certificate) && files::exists(&key)) {
        make_certificates(data_directory, io_times)?;
    }
    read(files, data_directory).map_err(|failure| io::Error::other(failure.reason))
}

fn names(files: Option<&Files>, data_directory: &Path) -> (PathBuf, PathBuf) {
    match files {
        Some((certificate, key, _)) => (certificate.clone(), key.clone()),
        None => (data_directory.join(SERVER_CERTIFICATE), data_directory.join(SERVER_KEY)),
    }
}

/// The configuration from files that are there.
pub(crate) fn read(
    files: Option<&Files>,
    data_directory: &Path,
) -> Result<(Arc<ServerConfig>, InUse), Failure> {
    let (certificate_name, key_name) = names(files, data_directory);
    let failure = |subject, name: &Path, error: &dyn std::fmt::Display| Failure {
        subject,
        reason: format!("{}: {error}", name.display()),
    };
    let no_certificate =
        |error: &dyn std::fmt::Display| failure(NO_CERTIFICATE, &certificate_name, error);
    let no_key = |error: &dyn std::fmt::Display| failure(NO_KEY, &key_name, error);
    let text = files::read(&certificate_name).map_err(|error| no_certificate(&error))?;
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| no_certificate(&error))?;
    if chain.is_empty() {
        return Err(no_certificate(&"it holds no certificate in PEM"));
    }
    let text = files::read(&key_name).map_err(|error| no_key(&error))?;
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| no_key(&error))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
    let config =
        ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(&versions);
    let config = config.map_err(|error| no_certificate(&error))?;
    let authority = match files {
        Some((_, _, authority)) => authority.clone(),
        None => Some(data_directory.join(CA_CERTIFICATE)).filter(|name| files::exists(name)),
    };
    let shown = |path: &Path| path.strip_prefix(data_directory).unwrap_or(path).to_owned();
    let in_use = InUse {
        certificate: shown(&certificate_name),
        key: shown(&key_name),
        authority: authority.as_deref().map(shown),
        validity: chain.first().and_then(|first| tls_status::validity(first)),
    };
    let config = match authority {
        None => config.with_no_client_auth(),
        Some(name) => {
            let no_authority = |error: &dyn std::fmt::Display| failure(NO_AUTHORITY, &name, error);
            let text = files::read(&name).map_err(|error| no_authority(&error))?;
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(&text) {
                let certificate = certificate.map_err(|error| no_authority(&error))?;
                roots.add(certificate).map_err(|error| no_authority(&error))?;
            }
            // A client may have no certificate; one that it has must be signed. The account says whether it needs one.
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = verifier.allow_unauthenticated().build();
            config.with_client_cert_verifier(verifier.map_err(|error| no_authority(&error))?)
        }
    };
    let config = config.with_single_cert(chain, key);
    match config {
        Ok(config) => Ok((Arc::new(config), in_use)),
        Err(error @ rustls::Error::InconsistentKeys(_)) => {
            Err(failure(OTHER_KEY, &key_name, &error))
        }
        Err(error) => Err(no_certificate(&error)),
    }
}

fn make_certificates(directory: &Path, io_times: &IoTimes) -> io::Result<()> {
    let ca_key = KeyPair::generate().map_err(io::Error::other)?;
    let mut ca = CertificateParams::new(Vec::new()).map_err(io::Error::other)?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.distinguished_name.push(DnType::CommonName, "Squall_Auto_Generated_CA_Certificate");
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let ca_certificate = ca.self_signed(&ca_key).map_err(io::Error::other)?;

    let server_key = KeyPair::generate().map_err(io::Error::other)?;
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let mut server = CertificateParams::new(names).map_err(io::Error::other)?;
    let name = "Squall_Auto_Generated_Server_Certificate";
    server.distinguished_name.push(DnType::CommonName, name);
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    let ca_key_pem = ca_key.serialize_pem();
    let issuer = Issuer::new(ca, ca_key);
    let certificate = server.signed_by(&server_key, &issuer).map_err(io::Error::other)?;

    let client_key = KeyPair::generate().map_err(io::Error::other)?;
    let mut client = CertificateParams::new(Vec::new()).map_err(io::Error::other)?;
    let name = "Squall_Auto_Generated_Client_Certificate";
    client.distinguished_name.push(DnType::CommonName, name);
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    client.use_authority_key_identifier_extension = true;
    let of_client = client.signed_by(&client_key, &issuer).map_err(io::Error::other)?;

    let write_file = |name: &str, text: String, mode: u32| {
        write_file(&directory.join(name), &text, mode, io_times)
    };
    write_file(CA_KEY, ca_key_pem, PRIVATE_FILE_MODE)?;
    write_file(CA_CERTIFICATE, ca_certificate.pem(), PUBLIC_FILE_MODE)?;
    write_file(CLIENT_KEY, client_key.serialize_pem(), PRIVATE_FILE_MODE)?;
    write_file(CLIENT_CERTIFICATE, of_client.pem(), PUBLIC_FILE_MODE)?;
    write_file(SERVER_KEY, server_key.serialize_pem(), PRIVATE_FILE_MODE)?;
    write_file(SERVER_CERTIFICATE, certificate.pem(), PUBLIC_FILE_MODE)?;
    // Clients have copies of the authority's: a crash must not replace it.
    files::sync_directory(directory, io_times)
}

fn write_file(path: &Path, text: &str, mode: u32, io_times: &IoTimes) -> io::Result<()> {
    let mut file = File::create(path, mode, Existing::Replace)?;
    file.write_all(text.as_bytes())?;
    file.sync(io_times)
}
