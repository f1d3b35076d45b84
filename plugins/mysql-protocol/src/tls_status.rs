//! Status variables about TLS: what is in use, and how often.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plugin_api::Registrar;
use sys::sync::Mutex;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The certificates in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct InUse {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) authority: Option<PathBuf>,
    /// Since when and until when the certificate is valid, as OpenSSL writes it.
    pub(crate) validity: Option<(String, String)>,
}

/// What the status variables about TLS show. The name of a file in the data directory is shown without the directory.
#[derive(Debug, Default)]
pub(crate) struct TlsStatus {
    in_use: Mutex<Option<InUse>>,
    accepts: AtomicU64,
    finished: AtomicU64,
}

impl TlsStatus {
    /// The certificates were read, or none are in use any more.
    pub(crate) fn use_now(&self, in_use: Option<InUse>) {
        *self.in_use.lock() = in_use;
    }

    /// A client asks for TLS.
    pub(crate) fn begin(&self) {
        self.accepts.fetch_add(1, Ordering::Relaxed);
    }

    /// The client sent its log-in over TLS.
    pub(crate) fn finish(&self) {
        self.finished.fetch_add(1, Ordering::Relaxed);
    }

    /// Registers the status variables.
    pub(crate) fn register(self: &Arc<Self>, registrar: &mut Registrar<'_>) {
        let of_use = |read: fn(&InUse) -> String| {
            let status = self.clone();
            move || status.in_use.lock().as_ref().map(read).unwrap_or_default()
        };
        let authority =
            |used: &InUse| used.authority.as_deref().map(shown_name).unwrap_or_default();
        registrar.status("Current_tls_ca", of_use(authority));
        registrar.status("Current_tls_cert", of_use(|used| shown_name(&used.certificate)));
        registrar.status("Current_tls_key", of_use(|used| shown_name(&used.key)));
        registrar.status("Current_tls_version", of_use(|_| "TLSv1.2,TLSv1.3".to_owned()));
        // Directories of authorities, lists of what was revoked and chosen ciphers: there are none.
        for name in [
            "Current_tls_capath",
            "Current_tls_cipher",
            "Current_tls_ciphersuites",
            "Current_tls_crl",
            "Current_tls_crlpath",
        ] {
            registrar.status(name, String::new);
        }
        registrar.status(
            "Ssl_server_not_before",
            of_use(|used| used.validity.clone().unwrap_or_default().0),
        );
        registrar.status(
            "Ssl_server_not_after",
            of_use(|used| used.validity.clone().unwrap_or_default().1),
        );
        let status = self.clone();
        let count = move || status.accepts.load(Ordering::Relaxed).to_string();
        registrar.status("Ssl_accepts", count);
        let status = self.clone();
        let count = move || status.finished.load(Ordering::Relaxed).to_string();
        registrar.status("Ssl_finished_accepts", count);
    }
}

fn shown_name(path: &Path) -> String {
    path.display().to_string()
}

/// Since when and until when a certificate in DER is valid: `Nov 29 10:31:34 2026 GMT`.
pub(crate) fn validity(der: &[u8]) -> Option<(String, String)> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let text = |time: x509_parser::time::ASN1Time| {
        let time = time.to_datetime();
        let month = time.month().to_string();
        format!(
            "{} {:>2} {:02}:{:02}:{:02} {} GMT",
            month.get(..3).unwrap_or(&month),
            time.day(),
            time.hour(),
            time.minute(),
            time.second(),
            time.year()
        )
    };
    let validity = certificate.validity();
    Some((text(validity.not_before), text(validity.not_after)))
}
