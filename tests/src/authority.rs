//! An authority of a test, and a certificate of it, as files that servers and clients of any kind can be told.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// An authority with one certificate.
#[derive(Debug)]
pub struct Authority(TempDir);

impl Authority {
    /// One with a certificate for these names.
    #[must_use]
    pub fn of(names: &[&str]) -> Self {
        let authority_key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // OpenSSL finds an issuer by its name, and Python wants to know what its key is for.
        params.distinguished_name.push(rcgen::DnType::CommonName, "an authority of a test");
        params.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign, rcgen::KeyUsagePurpose::CrlSign];
        let authority = params.self_signed(&authority_key).unwrap();
        let issuer = Issuer::new(params, authority_key);
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let all = Self(tempfile::tempdir().unwrap());
        fs::write(all.certificates(), authority.pem()).unwrap();
        fs::write(all.path().join("cert.pem"), certificate.pem()).unwrap();
        fs::write(all.path().join("key.pem"), key.serialize_pem()).unwrap();
        all
    }

    /// The folder of `ca.pem`, `cert.pem` and `key.pem`.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The file of what its clients trust.
    #[must_use]
    pub fn certificates(&self) -> PathBuf {
        self.path().join("ca.pem")
    }
}
