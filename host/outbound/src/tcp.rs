//! Connections of TCP, which are noticed to be gone where nobody says so.

use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;

/// How long nothing may come before it is asked whether the other side is still there, and between two such questions.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// How often it is asked in vain: after a minute of silence it is gone.
const KEEPALIVE_TRIES: u32 = 3;

/// Connects within this time, of which each address of a name has its part, so that none that is silent keeps from the
/// others. For how long the other end may take nothing is the caller's to say: the kernel's time for that
/// (`set_tcp_user_timeout`) takes the place of the tries too.
#[must_use]
pub fn tcp<R>(resolver: R, time: Duration) -> HttpConnector<R> {
    let mut tcp = HttpConnector::new_with_resolver(resolver);
    // What comes to TLS besides is up to the layer around it.
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(time));
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_keepalive_interval(Some(KEEPALIVE));
    tcp.set_keepalive_retries(Some(KEEPALIVE_TRIES));
    tcp
}
