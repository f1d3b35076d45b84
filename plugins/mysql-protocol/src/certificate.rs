//! Whom the certificate of a client names, and who signed it, written as `REQUIRE SUBJECT` and `REQUIRE ISSUER` write them:
//! OpenSSL's one line, `/C=SE/O=Example/CN=client`.

use std::fmt::Write;

use plugin_api::PeerCertificate;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::X509Name;

/// Short names of the parts of a name, by the numbers of RFC 4519 and PKCS #9.
const SHORT_NAMES: [(&str, &str); 14] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.42", "GN"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

/// What a certificate in DER says; `None` when it cannot be read.
pub(crate) fn read(der: &[u8]) -> Option<PeerCertificate> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(PeerCertificate {
        subject: one_line(certificate.subject()),
        issuer: one_line(certificate.issuer()),
    })
}

fn one_line(name: &X509Name<'_>) -> String {
    let mut line = String::new();
    for part in name.iter_attributes() {
        let number = part.attr_type().to_id_string();
        let known = SHORT_NAMES.iter().find(|(known, _)| *known == number);
        line.push('/');
        line.push_str(known.map_or(&*number, |(_, short)| short));
        line.push('=');
        for byte in part.as_slice() {
            match byte {
                b' '..=b'~' => line.push(char::from(*byte)),
                // Writing to a String cannot fail.
                _ => _ = write!(line, "\\x{byte:02X}"),
            }
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, Issuer, KeyPair};

    use super::*;

    #[test]
    fn names_are_one_line() {
        let mut authority = CertificateParams::new(Vec::new()).expect("is made");
        authority.distinguished_name.push(DnType::OrganizationName, "An authority");
        let mut client = CertificateParams::new(Vec::new()).expect("is made");
        client.distinguished_name = DistinguishedName::new();
        client.distinguished_name.push(DnType::CountryName, "SE");
        client.distinguished_name.push(DnType::StateOrProvinceName, "Ume\u{e5}");
        client.distinguished_name.push(DnType::CommonName, "a/b");
        let email = DnType::CustomDnType(vec![1, 2, 840, 113_549, 1, 9, 1]);
        client.distinguished_name.push(email, "a@b.example");
        let other = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 99]);
        client.distinguished_name.push(other, "x");
        let key = || KeyPair::generate().expect("is made");
        let issuer = Issuer::new(authority, key());
        let made = client.signed_by(&key(), &issuer).expect("is signed");
        let known = read(made.der()).expect("is read");
        assert_eq!(
            known.subject,
            "/C=SE/ST=Ume\\xC3\\xA5/CN=a/b/emailAddress=a@b.example/1.3.6.1.4.1.99=x"
        );
        assert!(known.issuer.ends_with("/O=An authority"), "{}", known.issuer);
        assert_eq!(read(&made.der()[..20]), None);
    }
}
