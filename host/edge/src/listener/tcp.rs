//! A port of loopback: that of one address, or for `localhost` that of both.

use std::{
    io,
    net::{Ipv6Addr, SocketAddr},
};

use footbridge_proto::endpoint::{TcpEndpoint, TcpHost};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::BACKLOG;

/// What listens there.
#[derive(Debug)]
pub(super) struct TcpEntrance {
    host: TcpHost,
    listener: TcpListener,
    /// On `::1`, besides.
    six: Option<TcpListener>,
}

/// Binds it. For `localhost` a port that somebody else has on `::1` is in use: clients would reach them.
pub(super) fn bind_tcp(tcp: &TcpEndpoint) -> io::Result<TcpEntrance> {
    let listener = bound(tcp.primary())?;
    let six = match tcp.host {
        TcpHost::Ip(_) => None,
        TcpHost::Localhost => match bound((Ipv6Addr::LOCALHOST, listener.local_addr()?.port()).into()) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
            // Or there is no IPv6 here.
            bound => bound.ok(),
        },
    };
    Ok(TcpEntrance { host: tcp.host, listener, six })
}

impl TcpEntrance {
    /// One that listens already.
    pub(super) fn adopted(listener: TcpListener) -> io::Result<Self> {
        Ok(Self { host: TcpHost::Ip(listener.local_addr()?.ip()), listener, six: None })
    }

    /// Where, with the port that the system chose.
    pub(super) fn endpoint(&self) -> io::Result<TcpEndpoint> {
        Ok(TcpEndpoint { host: self.host, port: self.listener.local_addr()?.port() })
    }

    /// The next connection, on either. Dropping the future loses none.
    pub(super) async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let Some(six) = &self.six else { return self.listener.accept().await };
        tokio::select! {
            accepted = self.listener.accept() => accepted,
            accepted = six.accept() => accepted,
        }
    }
}

fn bound(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use footbridge_proto::endpoint::Endpoint;

    use super::super::{BindError, Listen, Listeners};
    use super::*;

    #[tokio::test]
    async fn localhost_is_both_loopback_addresses() {
        // A machine may have no IPv6.
        let Ok(other) = std::net::TcpListener::bind("[::1]:0") else { return };
        let localhost = |port| Listen::at(Endpoint::Tcp(TcpEndpoint { host: TcpHost::Localhost, port }));
        let taken = Listeners::default().bind(&localhost(other.local_addr().unwrap().port()));
        assert!(matches!(taken, Err(BindError::InUse(_))), "clients would reach somebody else");

        let listener = Listeners::default().bind(&localhost(0)).unwrap();
        let Endpoint::Tcp(TcpEndpoint { host, port }) = listener.endpoint().unwrap() else { panic!("not TCP") };
        assert!(host == TcpHost::Localhost && port != 0, "it can be listened on again, and reads as it was asked for");
        for address in ["127.0.0.1", "::1"] {
            let client = TcpStream::connect((address, port)).await.unwrap();
            let (_, peer) = listener.accept(|_, _| {}).await.unwrap();
            assert_eq!(peer, footbridge_calls::auth::Peer::Tcp(client.local_addr().unwrap()));
        }
    }
}
