//! What goes through a tunnel first: a TLS ClientHello that names the host that was allowed.

use std::io;

use footbridge_core::hosts::address;
use rustls::{Error, server::Acceptor};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Most bytes of a ClientHello: what rustls takes.
const GREETING: usize = 64 * 1024;

/// Why what came first does not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotGreeted {
    #[error("what came first was no TLS")]
    NoTls,
    #[error("its client left without a word")]
    Nothing,
    #[error("its TLS is older than 1.2, or says less than is read here")]
    OldTls,
    #[error("the server name of its TLS was {0:?}")]
    OtherName(String),
    #[error("a connection broke: {0}")]
    Broken(#[from] io::Error),
}

/// What a client says first, where that is a ClientHello with this name.
pub(crate) async fn greeting<C: AsyncRead + Unpin>(client: &mut C, host: &str) -> Result<Vec<u8>, NotGreeted> {
    let (mut said, mut chunk) = (Vec::new(), [0; 4096]);
    let mut acceptor = Acceptor::default();
    while said.len() < GREETING {
        let count = client.read(&mut chunk).await?;
        let mut new = &chunk[..count];
        if new.is_empty() {
            return Err(if said.is_empty() { NotGreeted::Nothing } else { NotGreeted::NoTls });
        }
        said.extend_from_slice(new);
        while !new.is_empty() {
            acceptor.read_tls(&mut new).map_err(|_| NotGreeted::NoTls)?;
            let Some(accepted) = acceptor.accept().map_err(|(error, _)| not_accepted(&error))? else { continue };
            let name = accepted.client_hello().server_name().unwrap_or_default().to_ascii_lowercase();
            // An address has no server name (RFC 6066).
            let is_meant = name == host || (name.is_empty() && address(host).is_some());
            return if is_meant { Ok(said) } else { Err(NotGreeted::OtherName(name)) };
        }
    }
    Err(NotGreeted::NoTls)
}

fn not_accepted(error: &Error) -> NotGreeted {
    match error {
        Error::PeerIncompatible(_) => NotGreeted::OldTls,
        _ => NotGreeted::NoTls,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncWriteExt as _, duplex};

    use super::*;

    /// A ClientHello of rustls for this name.
    fn hello(name: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
        let mut client = rustls::ClientConnection::new(Arc::new(config), name.to_owned().try_into().unwrap()).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    async fn greeted(said: &[u8], host: &str) -> Result<Vec<u8>, String> {
        let (mut client, mut ours) = duplex(1 << 20);
        client.write_all(said).await.unwrap();
        drop(client);
        greeting(&mut ours, host).await.map_err(|why| why.to_string())
    }

    #[tokio::test]
    async fn only_tls_for_the_host_that_was_allowed_goes_on_and_whole() {
        let own = hello("a.test");
        assert_eq!(greeted(&own, "a.test").await.unwrap(), own);
        let longer = [&own[..], b"early"].concat();
        assert_eq!(greeted(&longer, "a.test").await.unwrap(), longer);
        assert!(greeted(&own, "b.test").await.unwrap_err().contains("a.test"));
        assert!(greeted(&hello("127.0.0.1"), "127.0.0.1").await.is_ok());
        assert!(greeted(&hello("127.0.0.1"), "a.test").await.is_err());
        // TLS 1.0: a client hello with a random, no session, one suite and no extensions.
        let old =
            [&b"\x16\x03\x01\x00\x2d\x01\x00\x00\x29\x03\x01"[..], &[7; 32], b"\x00\x00\x02\x00\x2f\x01\x00"].concat();
        assert!(greeted(&old, "a.test").await.unwrap_err().contains("older than 1.2"));
        assert!(greeted(b"", "a.test").await.unwrap_err().contains("left without a word"));
        for said in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"SSH-2.0-x\r\n", &own[..own.len() / 2], &[0x16; 70_000]] {
            assert_eq!(greeted(said, "a.test").await.unwrap_err(), "what came first was no TLS");
        }
    }
}
