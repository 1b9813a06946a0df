//! The one provider of cryptography for TLS, chosen before the first HTTP client is made.

use std::sync::OnceLock;

static INSTALLED: OnceLock<()> = OnceLock::new();

/// Chooses ring, once. A provider that the program chose before stays.
pub fn install() {
    INSTALLED.get_or_init(|| {
        let _chosen_before = rustls::crypto::ring::default_provider().install_default();
    });
}
