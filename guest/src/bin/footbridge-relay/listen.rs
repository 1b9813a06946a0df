//! Binding the port and accepting on it, for as long as the relay runs.
//!
//! `tcp:127.0.0.1:P` is exactly that. `tcp:localhost:P` also takes `::1` where there is one, but a port that somebody
//! else holds on either is an error: clients would reach them. Once bound, no error ends the loop.

use std::{
    io,
    net::{Ipv6Addr, SocketAddr},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use footbridge_proto::endpoint::{TcpEndpoint, TcpHost};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::sleep,
};

use crate::{
    descriptors::{Pair, Pairs},
    pump::{self, Limits},
    reach::{Reach, is_exhausted},
    refuse, say,
    scratch::Scratch,
    stream::Stream,
};

/// How long accepting waits when the machine has nothing to accept with.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// Why the relay does not listen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListenError {
    #[error("address in use: something else listens on {0}; end it, or choose another port with --listen")]
    Taken(SocketAddr),
    #[error("cannot listen on {address}: {source}")]
    Other { address: SocketAddr, source: io::Error },
}

/// Listening sockets.
pub(crate) struct Bound {
    listeners: Vec<TcpListener>,
    /// What clients connect to.
    pub(crate) address: SocketAddr,
}

impl Bound {
    pub(crate) async fn bind(endpoint: &TcpEndpoint) -> Result<Self, ListenError> {
        let wanted = endpoint.primary();
        let first = TcpListener::bind(wanted).await.map_err(|source| failed(wanted, source))?;
        let address = first.local_addr().map_err(|source| ListenError::Other { address: wanted, source })?;
        let mut listeners = vec![first];
        if endpoint.host == TcpHost::Localhost {
            let six = SocketAddr::from((Ipv6Addr::LOCALHOST, address.port()));
            match TcpListener::bind(six).await.map_err(|source| failed(six, source)) {
                Ok(listener) => listeners.push(listener),
                Err(taken @ ListenError::Taken(_)) => return Err(taken),
                // No IPv6 here.
                Err(ListenError::Other { .. }) => {}
            }
        }
        Ok(Self { listeners, address })
    }

    /// Accepts until it is dropped, and ends its connections with it.
    pub(crate) async fn serve(self, relay: Rc<Relay>) {
        let mut loops = JoinSet::new();
        for listener in self.listeners {
            loops.spawn_local(accept(listener, Rc::clone(&relay)));
        }
        while loops.join_next().await.is_some() {}
    }
}

fn failed(address: SocketAddr, source: io::Error) -> ListenError {
    match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::Taken(address),
        _ => ListenError::Other { address, source },
    }
}

/// What all connections share.
pub(crate) struct Relay {
    reach: Rc<Reach>,
    scratch: Scratch,
    places: Arc<Semaphore>,
    pairs: Rc<Pairs>,
}

/// What a connection has to have before it is accepted.
struct Place {
    _place: OwnedSemaphorePermit,
    _pair: Pair,
}

impl Relay {
    pub(crate) fn new(reach: Rc<Reach>, max_connections: usize, pairs: Pairs) -> Self {
        let (places, pairs) = (Arc::new(Semaphore::new(max_connections)), Rc::new(pairs));
        Self { reach, scratch: Scratch::new(Rc::clone(&pairs)), places, pairs }
    }

    /// A place for one more connection, once there is one.
    async fn place(&self) -> Option<Place> {
        // The semaphore is never closed, so this is never none.
        let _place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        Some(Place { _place, _pair: self.pairs.for_connection().await? })
    }
}

async fn accept(listener: TcpListener, relay: Rc<Relay>) {
    let mut connections = JoinSet::new();
    let mut exhausted = false;
    // This never ends.
    while let Some(place) = relay.place().await {
        match accept_one(&listener, &mut connections).await {
            Ok(client) => {
                exhausted = false;
                connections.spawn_local(carry(client, Rc::clone(&relay), place));
            }
            Err(e) if is_exhausted(&e) => {
                if !exhausted {
                    say(&format_args!("cannot accept for now: {e}; waiting"));
                }
                exhausted = true;
                sleep(EXHAUSTED_PAUSE).await;
            }
            // This one left before it was accepted.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// The next client; connections that ended meanwhile are cleared away.
async fn accept_one(listener: &TcpListener, connections: &mut JoinSet<()>) -> io::Result<TcpStream> {
    loop {
        tokio::select! {
            accepted = listener.accept() => return accepted.map(|(stream, _)| stream),
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn carry(client: TcpStream, relay: Rc<Relay>, _place: Place) {
    let client = Stream::tcp(client);
    match relay.reach.connect().await {
        Ok(harness) => {
            let end = pump::join(&client, &harness, &relay.scratch, Limits::DEFAULT).await;
            drop(harness);
            // Closing on what it still sends would reset the connection, and its answer might go unread.
            if end == pump::Client::Sending {
                refuse::drain(&client, &relay.scratch).await;
            }
        }
        Err(unreached) => refuse::refuse(&client, &refuse::answer(unreached), &relay.scratch).await,
    }
}
