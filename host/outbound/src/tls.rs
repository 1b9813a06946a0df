//! TLS by ring, and which certificates are trusted.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// With one's own authorities, where there are some, in place of those of the machine. Where it `checks` nobody nothing is
/// trusted: the machine's take a while to read. What is spoken over it (ALPN) is the caller's to say.
///
/// # Errors
/// Where the certificates of the machine cannot be read.
pub fn tls(authorities: &[CertificateDer<'static>], checks: bool) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = if checks && authorities.is_empty() {
        builder.with_platform_verifier()?
    } else {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities.iter().cloned());
        builder.with_root_certificates(roots)
    };
    Ok(builder.with_no_client_auth())
}
