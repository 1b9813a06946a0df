//! Who gets the connections of one vsock port: a table from context ids to the sessions that claim them.
//!
//! It knows no sockets: whoever accepts hands over a stream and the id it came from. A claim has a queue of its own,
//! so a session that does not accept loses connections of its own guest and nobody else's. The last claim that is
//! dropped says so to whoever waits in [`Claims::unclaimed`].

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, mpsc};

use super::turned_away::TurnedAway;

/// Connections of one machine that may wait for its session: as many as a session may have by default.
pub(super) const WAITING: usize = 64;

type Senders<S> = HashMap<u32, mpsc::Sender<(S, u32)>>;

/// The claims on one port.
#[derive(Debug)]
pub(super) struct Claims<S> {
    senders: Mutex<Senders<S>>,
    last_dropped: Notify,
    strangers: TurnedAway,
    too_many: TurnedAway,
}

impl<S> Default for Claims<S> {
    fn default() -> Self {
        Self {
            senders: Mutex::default(),
            last_dropped: Notify::new(),
            strangers: TurnedAway::default(),
            too_many: TurnedAway::default(),
        }
    }
}

impl<S> Claims<S> {
    fn senders(&self) -> MutexGuard<'_, Senders<S>> {
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims the connections of a context id; nothing if somebody has them already.
    pub(super) fn claim(self: &Arc<Self>, cid: u32) -> Option<Claim<S>> {
        let mut senders = self.senders();
        if senders.contains_key(&cid) {
            return None;
        }
        let (sender, queue) = mpsc::channel(WAITING);
        senders.insert(cid, sender);
        Some(Claim { cid, queue: tokio::sync::Mutex::new(queue), claims: Arc::clone(self) })
    }

    /// Gives a connection to whoever claims its context id. Without one, or with a full queue, it is closed.
    pub(super) fn hand_over(&self, stream: S, cid: u32, port: u32) {
        let senders = self.senders();
        let Some(sender) = senders.get(&cid) else {
            if let Some(count) = self.strangers.one_more() {
                tracing::warn!(cid, count, "vsock connections of machines without a session here were closed");
            }
            return;
        };
        // A claim leaves the table before its queue ends, so this is about room.
        if sender.try_send((stream, port)).is_err()
            && let Some(count) = self.too_many.one_more()
        {
            tracing::warn!(cid, count, "vsock connections beyond what a session accepts were closed");
        }
    }

    /// Whether nobody claims anything.
    pub(super) fn is_unclaimed(&self) -> bool {
        self.senders().is_empty()
    }

    /// Waits until the last claim may have been dropped; a new one may have come since.
    pub(super) async fn unclaimed(&self) {
        self.last_dropped.notified().await;
    }
}

/// The connections of one context id. Dropping it closes those that wait.
#[derive(Debug)]
pub(super) struct Claim<S> {
    cid: u32,
    queue: tokio::sync::Mutex<mpsc::Receiver<(S, u32)>>,
    claims: Arc<Claims<S>>,
}

impl<S> Claim<S> {
    pub(super) fn cid(&self) -> u32 {
        self.cid
    }

    /// The next connection and the port it came from. Dropping the future loses none.
    pub(super) async fn next(&self) -> (S, u32) {
        match self.queue.lock().await.recv().await {
            Some(connection) => connection,
            // The sender is in the table for as long as this claim lives.
            None => std::future::pending().await,
        }
    }
}

impl<S> Drop for Claim<S> {
    fn drop(&mut self) {
        let mut senders = self.claims.senders();
        senders.remove(&self.cid);
        if senders.is_empty() {
            self.claims.last_dropped.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
        time::timeout,
    };

    use super::*;

    type Table = Arc<Claims<DuplexStream>>;

    /// A machine connects; gives its end.
    fn connect(table: &Table, cid: u32, port: u32) -> DuplexStream {
        let (ours, theirs) = duplex(64);
        table.hand_over(ours, cid, port);
        theirs
    }

    async fn is_closed(mut theirs: DuplexStream) -> bool {
        matches!(timeout(Duration::from_secs(5), theirs.read(&mut [0; 1])).await, Ok(Ok(0)))
    }

    #[tokio::test]
    async fn each_machine_comes_to_the_session_that_claims_it() {
        let table = Table::default();
        let (four, five) = (table.claim(4).unwrap(), table.claim(5).unwrap());
        let mut of_five = connect(&table, 5, 1025);
        let mut of_four = connect(&table, 4, 1024);
        of_four.write_all(b"4").await.unwrap();
        of_five.write_all(b"5").await.unwrap();
        let (mut stream, port) = four.next().await;
        assert_eq!((stream.read_u8().await.unwrap(), port, four.cid()), (b'4', 1024, 4));
        let (mut stream, port) = five.next().await;
        assert_eq!((stream.read_u8().await.unwrap(), port, five.cid()), (b'5', 1025, 5));
        assert!(four.next().now_or_never().is_none() && five.next().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_machine_that_nobody_claims_is_closed_and_counted() {
        let table = Table::default();
        let four = table.claim(4).unwrap();
        for cid in [0, 1, 2, 3, 5, u32::MAX] {
            assert!(is_closed(connect(&table, cid, 1024)).await, "{cid}");
        }
        assert_eq!(table.strangers.so_far(), 6);
        assert!(four.next().now_or_never().is_none());
    }

    #[tokio::test]
    async fn one_machine_has_one_session_a_port_at_a_time() {
        let table = Table::default();
        let first = table.claim(4).unwrap();
        assert!(table.claim(4).is_none());
        drop(first);
        assert!(table.claim(4).is_some());
    }

    #[tokio::test]
    async fn a_session_that_does_not_accept_loses_only_its_own() {
        let table = Table::default();
        let (slow, quick) = (table.claim(4).unwrap(), table.claim(5).unwrap());
        let waiting: Vec<DuplexStream> = (0..WAITING).map(|_| connect(&table, 4, 1024)).collect();
        for _ in 0..3 {
            assert!(is_closed(connect(&table, 4, 1024)).await);
        }
        assert_eq!(table.too_many.so_far(), 3);
        let _theirs = connect(&table, 5, 7);
        assert_eq!(quick.next().await.1, 7);
        for _ in &waiting {
            slow.next().await;
        }
        let _theirs = connect(&table, 4, 9);
        assert_eq!(slow.next().await.1, 9, "there is room again");
    }

    #[tokio::test]
    async fn what_waits_is_closed_with_its_claim_and_the_last_one_is_told() {
        let table = Table::default();
        let (four, five) = (table.claim(4).unwrap(), table.claim(5).unwrap());
        let (of_four, _of_five) = (connect(&table, 4, 1), connect(&table, 5, 1));
        drop(four);
        assert!(is_closed(of_four).await);
        assert!(is_closed(connect(&table, 4, 2)).await);
        assert!(table.unclaimed().now_or_never().is_none() && !table.is_unclaimed());
        drop(five);
        assert!(table.unclaimed().now_or_never().is_some() && table.is_unclaimed());
    }

    #[tokio::test]
    async fn waiting_that_is_given_up_loses_nothing() {
        let table = Table::default();
        let claim = table.claim(4).unwrap();
        assert!(timeout(Duration::from_millis(1), claim.next()).await.is_err());
        let _theirs = connect(&table, 4, 1);
        assert_eq!(claim.next().await.1, 1);
    }
}
