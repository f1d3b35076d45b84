//! TCP, UNIX socket, TLS over TCP, and compression over any of them.

use std::io::{Read, Result, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime,
};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore,
    SignatureScheme, StreamOwned, SupportedProtocolVersion, version,
};

use crate::connection::Tls;
use wire::{Compression, CompressionKind, compressed_frame_len};

/// Most plain bytes of a compressed frame.
const FRAME_PLAIN_MAX: usize = 0xff_ffff;
/// Bytes read at once.
const READ_BYTES: usize = 16 * 1024;

/// A connected byte stream.
pub enum Stream {
    /// In the clear.
    Tcp(TcpStream),
    /// On this machine.
    Unix(UnixStream),
    /// Encrypted.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
    /// Any other byte stream.
    Carried(Box<dyn Carrier>, Reach),
    /// Any other byte stream, encrypted.
    CarriedTls(Box<StreamOwned<ClientConnection, Box<dyn Carrier>>>),
    /// Compressed inside any of the others.
    Compressed(Box<Compressed>),
}

/// A byte stream supplied by the caller.
pub trait Carrier: Read + Write + Send {}

/// The distance that bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Within the machine, where no one can eavesdrop.
    Machine,
    /// Over a network.
    Network,
}

/// The two directions of a compressed stream.
pub struct Compressed {
    inner: Stream,
    framing: Compression,
    /// Received frames that are not complete.
    frames: Vec<u8>,
    /// Decoded bytes, used up to `taken`.
    plain: Vec<u8>,
    taken: usize,
    output: Vec<u8>,
}

impl Compressed {
    fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
        while self.taken == self.plain.len() {
            if !self.decode()? {
                let len = self.frames.len();
                self.frames.resize(len + READ_BYTES, 0);
                let count = self.inner.read(&mut self.frames[len..]);
                self.frames.truncate(len + *count.as_ref().unwrap_or(&0));
                if count? == 0 {
                    return Ok(0);
                }
            }
        }
        let len = buf.len().min(self.plain.len() - self.taken);
        buf[..len].copy_from_slice(&self.plain[self.taken..self.taken + len]);
        self.taken += len;
        Ok(len)
    }

    /// Decodes the frame at the front; false when it is not complete.
    fn decode(&mut self) -> Result<bool> {
        let Some(len) = compressed_frame_len(&self.frames).filter(|len| *len <= self.frames.len())
        else {
            return Ok(false);
        };
        self.plain.clear();
        self.taken = 0;
        let decoded =
            self.framing.decode_frame(&self.frames[..len], FRAME_PLAIN_MAX, &mut self.plain);
        decoded.map_err(|_| std::io::Error::from(std::io::ErrorKind::InvalidData))?;
        self.frames.drain(..len);
        Ok(true)
    }

    fn write(&mut self, buf: &[u8]) -> Result<usize> {
        self.output.clear();
        self.framing.encode(buf, &mut self.output);
        self.inner.write_all(&self.output)?;
        Ok(buf.len())
    }
}

impl Stream {
    /// Switches to encryption. Without authorities the certificate is not verified: like `--ssl-mode=PREFERRED`, this protects against
    /// eavesdroppers only.
    pub fn encrypt(self, tls: &Tls) -> Result<Stream> {
        let name = tls.name.as_ref().map(|name| ServerName::try_from(name.clone())).transpose();
        let name = name.map_err(std::io::Error::other)?;
        let config = Arc::new(client_config(tls)?);
        let begin = |name| ClientConnection::new(config, name).map_err(std::io::Error::other);
        Ok(match self {
            Stream::Tcp(tcp) => {
                let session = begin(match name {
                    Some(name) => name,
                    None => ServerName::IpAddress(tcp.peer_addr()?.ip().into()),
                })?;
                Stream::Tls(Box::new(StreamOwned::new(session, tcp)))
            }
            Stream::Carried(carrier, Reach::Network) => {
                // Where no name is verified none is needed: an address is not sent.
                let nobody = std::net::IpAddr::from([0, 0, 0, 0]);
                let session = begin(name.unwrap_or(ServerName::IpAddress(nobody.into())))?;
                Stream::CarriedTls(Box::new(StreamOwned::new(session, carrier)))
            }
            other => other,
        })
    }

    /// Goes on compressed.
    pub fn compress(self, kind: CompressionKind) -> Stream {
        Stream::Compressed(Box::new(Compressed {
            inner: self,
            framing: Compression::new(kind),
            frames: Vec::new(),
            plain: Vec::new(),
            taken: 0,
            output: Vec::new(),
        }))
    }

    /// A command begins: compressed frames are numbered from 0 again.
    pub fn begin_command(&mut self) {
        if let Stream::Compressed(stream) = self {
            stream.framing.reset_sequence();
        }
    }

    /// Whether packets travel in compressed frames.
    pub fn is_compressed(&self) -> bool {
        matches!(self, Stream::Compressed(_))
    }

    /// Whether a secret may be sent in clear.
    pub fn is_safe(&self) -> bool {
        match self {
            Stream::Tcp(_) => false,
            Stream::Carried(_, reach) => *reach == Reach::Machine,
            Stream::Unix(_) | Stream::Tls(_) | Stream::CarriedTls(_) => true,
            Stream::Compressed(stream) => stream.inner.is_safe(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buf),
            Stream::Unix(stream) => stream.read(buf),
            Stream::Tls(stream) => stream.read(buf),
            Stream::Carried(stream, _) => stream.read(buf),
            Stream::CarriedTls(stream) => stream.read(buf),
            Stream::Compressed(stream) => stream.read(buf),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buf: &[u8]) -> Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(buf),
            Stream::Unix(stream) => stream.write(buf),
            Stream::Tls(stream) => stream.write(buf),
            Stream::Carried(stream, _) => stream.write(buf),
            Stream::CarriedTls(stream) => stream.write(buf),
            Stream::Compressed(stream) => stream.write(buf),
        }
    }

    fn flush(&mut self) -> Result<()> {
        match self {
            Stream::Tcp(stream) => stream.flush(),
            Stream::Unix(stream) => stream.flush(),
            Stream::Tls(stream) => stream.flush(),
            Stream::Carried(stream, _) => stream.flush(),
            Stream::CarriedTls(stream) => stream.flush(),
            Stream::Compressed(stream) => stream.inner.flush(),
        }
    }
}

fn client_config(tls: &Tls) -> Result<ClientConfig> {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    if !tls.ciphers.is_empty() {
        let is_wanted = |suite: CipherSuite| tls.ciphers.contains(&openssl_name(suite));
        provider.cipher_suites.retain(|suite| is_wanted(suite.suite()));
    }
    let provider = Arc::new(provider);
    let verifier: Arc<dyn ServerCertVerifier> = if tls.authorities.is_empty() {
        Arc::new(AnyCertificate(provider.clone()))
    } else {
        Arc::new(KnownCertificate::new(tls, &provider)?)
    };
    let known: [(&str, &SupportedProtocolVersion); 2] =
        [("TLSv1.2", &version::TLS12), ("TLSv1.3", &version::TLS13)];
    let is_wanted = |name: &str| {
        tls.versions.is_empty()
            || tls.versions.iter().any(|wanted| wanted.eq_ignore_ascii_case(name))
    };
    let versions: Vec<_> =
        known.iter().filter(|(name, _)| is_wanted(name)).map(|(_, version)| *version).collect();
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(std::io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let Some((certificates, key)) = &tls.identity else {
        return Ok(builder.with_no_client_auth());
    };
    let chain = CertificateDer::pem_slice_iter(certificates)
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(std::io::Error::other)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(std::io::Error::other)?;
    builder.with_client_auth_cert(chain, key).map_err(std::io::Error::other)
}

/// The name that OpenSSL has for a cipher: `ECDHE-RSA-AES128-GCM-SHA256`, `TLS_AES_128_GCM_SHA256`.
fn openssl_name(suite: CipherSuite) -> String {
    let name = format!("{suite:?}");
    if let Some(rest) = name.strip_prefix("TLS13_") {
        return format!("TLS_{rest}");
    }
    let name = name.trim_start_matches("TLS_").replace("_WITH_", "-").replace("AES_", "AES");
    name.replace("POLY1305_SHA256", "POLY1305").replace('_', "-")
}

/// Accepts what an authority signed, for one name or for any.
#[derive(Debug)]
struct KnownCertificate {
    inner: Arc<WebPkiServerVerifier>,
    any_name: bool,
}

impl KnownCertificate {
    fn new(tls: &Tls, provider: &Arc<CryptoProvider>) -> Result<KnownCertificate> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&tls.authorities) {
            roots
                .add(certificate.map_err(std::io::Error::other)?)
                .map_err(std::io::Error::other)?;
        }
        let mut made =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        if !tls.revoked.is_empty() {
            let lists = CertificateRevocationListDer::pem_slice_iter(&tls.revoked)
                .collect::<std::result::Result<Vec<_>, _>>()
                .map_err(std::io::Error::other)?;
            made = made.with_crls(lists).enforce_revocation_expiration();
        }
        let inner = made.build().map_err(std::io::Error::other)?;
        Ok(KnownCertificate { inner, any_name: tls.name.is_none() })
    }
}

impl ServerCertVerifier for KnownCertificate {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        revocation: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        use rustls::CertificateError::{NotValidForName, NotValidForNameContext};
        let verified = self.inner.verify_server_cert(certificate, between, name, revocation, now);
        match verified {
            // The name is compared last.
            Err(rustls::Error::InvalidCertificate(
                NotValidForName | NotValidForNameContext { .. },
            )) if self.any_name => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ciphers_have_the_names_of_openssl() {
        for (suite, name) in [
            (CipherSuite::TLS13_AES_256_GCM_SHA384, "TLS_AES_256_GCM_SHA384"),
            (CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, "TLS_CHACHA20_POLY1305_SHA256"),
            (CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "ECDHE-RSA-AES128-GCM-SHA256"),
            (
                CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
                "ECDHE-ECDSA-CHACHA20-POLY1305",
            ),
        ] {
            assert_eq!(openssl_name(suite), name);
        }
    }
}
