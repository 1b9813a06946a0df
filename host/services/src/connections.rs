//! The connections of one session to one service: made, kept while nothing goes over them, and shared where they are of
//! HTTP/2.
//!
//! One of HTTP/1.1 is a request's alone until its answer has come, and whoever reads that gives it back ([`Lease`]): a
//! client that waits for that by itself, as hyper-util's does, makes a task for each answer.
//!
//! Nothing is sent twice: a request gets another connection only where not one byte of it was written, and the first one
//! was kept.

use std::{
    error::Error,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt as _, future::Either};
use http::{Extensions, HeaderValue, Request, Response, Uri, header, uri};
use hyper::{
    body::{Body, Incoming},
    client::conn::{TrySendError, http1, http2},
    rt::{Executor as _, Read, Write},
};
use hyper_util::client::legacy::connect::Connection;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};
use tower_service::Service;

use crate::{connection_task::ConnectionTasks, origin_stream::Meter};

/// How long a connection is kept that nothing goes over.
pub(crate) const IDLE_TIME: Duration = Duration::from_secs(60);

/// Makes requests over connections, and keeps those.
pub(crate) struct Connections<C, B> {
    connector: C,
    http1: http1::Builder,
    http2: http2::Builder<ConnectionTasks>,
    tasks: ConnectionTasks,
    /// None where each request has a connection of its own.
    kept: Option<Arc<Kept<B>>>,
}

/// What is kept.
struct Kept<B> {
    /// How many of HTTP/1.1, at most.
    most: usize,
    now: Mutex<KeptNow<B>>,
    /// Tells those who wait for a connection of their own that there is another.
    given: Notify,
    tasks: ConnectionTasks,
}

struct KeptNow<B> {
    idle: Vec<Idle<http1::SendRequest<B>>>,
    shared: Option<Idle<http2::SendRequest<B>>>,
    /// Whether a task looks after them.
    is_tended: bool,
}

/// A connection that is kept, and since when nothing was asked over it.
struct Idle<S> {
    sender: S,
    known: Known,
    since: Instant,
}

/// A connection, as whoever waits for what comes over it knows it.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    is_silent: Arc<AtomicBool>,
    meter: Option<Meter>,
}

impl Known {
    fn new(extras: &mut Extensions) -> Self {
        Self { is_silent: Arc::default(), meter: extras.remove() }
    }

    /// Has a connection whose origin was silent carry no other request: it may be that nobody is there. Those that it
    /// carries go on.
    pub(crate) fn gives_no_more(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }
}

/// What carries a request, once it has a connection.
#[derive(Debug, Default)]
pub(crate) struct Carrier(Mutex<Option<Known>>);

impl Carrier {
    /// The connection, if there was one yet.
    pub(crate) fn connection(&self) -> Option<Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is(&self, connection: &Known) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection.clone());
    }
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// Nothing was sent.
    #[error("there is no connection")]
    Connect(#[source] Box<dyn Error + Send + Sync>),
    /// It may have been sent.
    #[error("the connection has no answer")]
    Send(#[source] hyper::Error),
}

/// A connection that is open.
struct Open<B> {
    sender: Sender<B>,
    known: Known,
}

enum Sender<B> {
    Own(http1::SendRequest<B>),
    Shared(http2::SendRequest<B>),
}

impl<C, B> Connections<C, B>
where
    C: Service<Uri, Future: Send> + Clone + Send + Sync + 'static,
    C::Response: Read + Write + Connection + Unpin + Send + 'static,
    C::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// Of which so many are kept at most.
    pub(crate) fn new(
        connector: C,
        http1: http1::Builder,
        http2: http2::Builder<ConnectionTasks>,
        tasks: ConnectionTasks,
        most: usize,
    ) -> Self {
        let kept = || Kept {
            most,
            now: Mutex::new(KeptNow { idle: Vec::new(), shared: None, is_tended: false }),
            given: Notify::new(),
            tasks: tasks.clone(),
        };
        let kept = (most > 0).then(|| Arc::new(kept()));
        Self { connector, http1, http2, tasks, kept }
    }

    /// Makes a request, to an absolute URI, and gives its answer once the head of that is there, with what that comes over.
    ///
    /// # Errors
    /// [`RequestError`].
    pub(crate) async fn request(
        self: &Arc<Self>,
        mut request: Request<B>,
        carrier: &Carrier,
    ) -> Result<(Response<Incoming>, Lease<B>), RequestError> {
        let uri = request.uri().clone();
        loop {
            let (mut open, is_kept) = match self.kept.as_ref().and_then(|kept| kept.take()) {
                Some(open) => (open, true),
                // In a place of its own, which most requests have no need of.
                None => Box::pin(self.open(uri.clone())).await?,
            };
            carrier.is(&open.known);
            match open.sender.send(request, &uri).await {
                Ok(response) => return Ok((response, Lease::of(open, self.kept.as_ref()))),
                Err(mut error) => match error.take_message().filter(|_| is_kept) {
                    Some(unsent) => request = unsent,
                    None => return Err(RequestError::Send(error.into_error())),
                },
            }
        }
    }

    /// A new connection, or one that is given back before that is there, which is said: an origin may serve few at a time.
    async fn open(self: &Arc<Self>, uri: Uri) -> Result<(Open<B>, bool), RequestError> {
        let Some(kept) = &self.kept else { return Ok((self.connect(uri).await?, false)) };
        let connections = Arc::clone(self);
        let mut connecting = Box::pin(async move { connections.connect(uri).await });
        tokio::select! {
            biased;
            open = kept.given() => {
                // The new one is for the next request.
                let kept = Arc::downgrade(kept);
                self.tasks.spawn(async move {
                    if let (Ok(open), Some(kept)) = (connecting.await, kept.upgrade()) {
                        kept.put(open);
                    }
                });
                Ok((open, true))
            }
            open = &mut connecting => Ok((open?, false)),
        }
    }

    async fn connect(&self, uri: Uri) -> Result<Open<B>, RequestError> {
        let io = self.connector.clone().call(uri).await.map_err(|error| RequestError::Connect(error.into()))?;
        let (connected, mut extras) = (io.connected(), Extensions::new());
        connected.get_extras(&mut extras);
        let known = Known::new(&mut extras);
        if connected.is_negotiated_h2() {
            // In a place of its own, as large as several connections, which HTTP/1.1 has no need of.
            let (mut sender, connection) = Box::pin(self.http2.handshake(io)).await.map_err(RequestError::Send)?;
            self.tasks.execute(connection.map(ended));
            sender.ready().await.map_err(RequestError::Send)?;
            return Ok(match &self.kept {
                Some(kept) => kept.share(sender, known),
                None => Open { sender: Sender::Shared(sender), known },
            });
        }
        let (mut sender, connection) = self.http1.handshake(io).await.map_err(RequestError::Send)?;
        self.tasks.execute(connection.with_upgrades().map(ended));
        sender.ready().await.map_err(RequestError::Send)?;
        Ok(Open { sender: Sender::Own(sender), known })
    }
}

/// How a connection ended is nobody's concern: its requests hear of it.
fn ended(result: hyper::Result<()>) {
    if let Err(error) = result {
        tracing::debug!(%error, "a connection to an origin broke");
    }
}

impl<B: Body + Send + 'static> Sender<B> {
    /// Begins to send at once; no future has the request besides hyper's.
    fn send(
        &mut self,
        mut request: Request<B>,
        uri: &Uri,
    ) -> impl Future<Output = Result<Response<Incoming>, TrySendError<Request<B>>>> + use<B> {
        match self {
            Self::Own(sender) => {
                if let Some(host) = host(uri).filter(|_| !request.headers().contains_key(header::HOST)) {
                    request.headers_mut().insert(header::HOST, host);
                }
                *request.uri_mut() = origin_form(uri);
                Either::Left(sender.try_send_request(request))
            }
            Self::Shared(sender) => {
                *request.uri_mut() = uri.clone();
                Either::Right(sender.try_send_request(request))
            }
        }
    }
}

/// What stands for the host of a URI in a request, without the port where that is the scheme's own (RFC 9110, 7.2).
fn host(uri: &Uri) -> Option<HeaderValue> {
    let authority = uri.authority()?;
    let usual = match uri.scheme_str() {
        Some("https") => 443,
        _ => 80,
    };
    let host = if authority.port_u16() == Some(usual) { authority.host() } else { authority.as_str() };
    HeaderValue::from_str(host).ok()
}

/// A URI as an origin reads it in a request of HTTP/1.1 (RFC 9112, 3.2.1).
fn origin_form(uri: &Uri) -> Uri {
    let mut parts = uri::Parts::default();
    parts.path_and_query = uri.path_and_query().cloned();
    Uri::from_parts(parts).unwrap_or_default()
}

impl<B> Kept<B> {
    fn lock(&self) -> MutexGuard<'_, KeptNow<B>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B: Body + Send + 'static> Kept<B> {
    /// One that is open: the one that is shared, or the last that was given back.
    fn take(&self) -> Option<Open<B>> {
        let (mut kept, now) = (self.lock(), Instant::now());
        kept.shared(now).or_else(|| kept.own(now))
    }

    /// One that is given back, or shared, from now on.
    async fn given(&self) -> Open<B> {
        loop {
            let given = self.given.notified();
            if let Some(open) = self.take() {
                return open;
            }
            given.await;
        }
    }

    /// Has others share a new connection, unless there is one that they share: then that is what is given.
    fn share(self: &Arc<Self>, sender: http2::SendRequest<B>, known: Known) -> Open<B> {
        let (mut kept, now) = (self.lock(), Instant::now());
        if let Some(open) = kept.shared(now) {
            return open;
        }
        kept.shared = Some(Idle { sender: sender.clone(), known: known.clone(), since: now });
        self.tend(&mut kept);
        self.given.notify_waiters();
        Open { sender: Sender::Shared(sender), known }
    }

    fn put(self: &Arc<Self>, open: Open<B>) {
        match open.sender {
            Sender::Own(sender) => self.keep(sender, open.known),
            // It is there.
            Sender::Shared(_) => {}
        }
    }

    fn keep(self: &Arc<Self>, sender: http1::SendRequest<B>, known: Known) {
        let mut kept = self.lock();
        if kept.idle.len() < self.most {
            kept.idle.push(Idle { sender, known, since: Instant::now() });
            self.tend(&mut kept);
            self.given.notify_one();
        }
    }

    /// Has a task end what is kept for too long.
    fn tend(self: &Arc<Self>, kept: &mut KeptNow<B>) {
        if std::mem::replace(&mut kept.is_tended, true) {
            return;
        }
        let tended = Arc::downgrade(self);
        self.tasks.spawn(async move {
            loop {
                sleep(IDLE_TIME).await;
                match tended.upgrade() {
                    Some(kept) if kept.clear() => {}
                    _ => return,
                }
            }
        });
    }

    /// Ends what was kept for too long; false where nothing is kept any more.
    fn clear(&self) -> bool {
        let (mut kept, now) = (self.lock(), Instant::now());
        kept.idle.retain(|idle| idle.is_fresh(now) && !idle.sender.is_closed());
        kept.shared = kept.shared.take().filter(|shared| shared.is_fresh(now) && !shared.sender.is_closed());
        kept.is_tended = !kept.idle.is_empty() || kept.shared.is_some();
        kept.is_tended
    }
}

impl<B: Body + Send + 'static> KeptNow<B> {
    fn shared(&mut self, now: Instant) -> Option<Open<B>> {
        self.shared = self.shared.take().filter(|shared| shared.is_fresh(now) && shared.sender.is_ready());
        let shared = self.shared.as_mut()?;
        shared.since = now;
        Some(Open { sender: Sender::Shared(shared.sender.clone()), known: shared.known.clone() })
    }

    fn own(&mut self, now: Instant) -> Option<Open<B>> {
        let is_open = |idle: &Idle<http1::SendRequest<B>>| idle.is_fresh(now) && idle.sender.is_ready();
        let idle = std::iter::from_fn(|| self.idle.pop()).find(is_open)?;
        Some(Open { sender: Sender::Own(idle.sender), known: idle.known })
    }
}

impl<S> Idle<S> {
    fn is_fresh(&self, now: Instant) -> bool {
        !self.known.is_silent() && now.duration_since(self.since) < IDLE_TIME
    }
}

/// What an answer comes over. Dropped before all of that has come, its connection ends, unless others share it.
pub(crate) struct Lease<B> {
    known: Known,
    is_shared: bool,
    /// None where it goes to nobody else.
    own: Option<(http1::SendRequest<B>, Weak<Kept<B>>)>,
}

impl<B> fmt::Debug for Lease<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("known", &self.known).field("is_shared", &self.is_shared).finish_non_exhaustive()
    }
}

impl<B> Lease<B> {
    fn of(open: Open<B>, kept: Option<&Arc<Kept<B>>>) -> Self {
        let Open { sender, known } = open;
        match sender {
            Sender::Own(sender) => {
                Self { known, is_shared: false, own: kept.map(|kept| (sender, Arc::downgrade(kept))) }
            }
            Sender::Shared(_) => Self { known, is_shared: true, own: None },
        }
    }

    /// The connection, where other answers share it.
    pub(crate) fn shared(&self) -> Option<&Known> {
        self.is_shared.then_some(&self.known)
    }

    /// What counts what comes besides.
    pub(crate) fn meter(&self) -> Option<&Meter> {
        self.known.meter.as_ref()
    }
}

impl<B: Body + Send + 'static> Lease<B> {
    /// All of the answer has come: another request may have its connection.
    pub(crate) fn give_back(&mut self) {
        let Some((mut sender, kept)) = self.own.take() else { return };
        let (Some(kept), known) = (kept.upgrade(), self.known.clone()) else { return };
        if sender.is_ready() {
            kept.keep(sender, known);
        } else if !sender.is_closed() {
            // The body of its request is still on its way, behind the answer.
            let (tasks, kept) = (kept.tasks.clone(), Arc::downgrade(&kept));
            tasks.spawn(async move {
                if sender.ready().await.is_ok()
                    && let Some(kept) = kept.upgrade()
                {
                    kept.keep(sender, known);
                }
            });
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{
        convert::Infallible,
        io,
        sync::atomic::AtomicUsize,
        task::{Context, Poll},
    };

    use bytes::Bytes;
    use futures::{TryFutureExt as _, future::BoxFuture};
    use http_body_util::{BodyExt as _, Full, StreamBody};
    use hyper::{body::Frame, service::service_fn};
    use hyper_util::{
        client::legacy::connect::Connected,
        rt::{TokioExecutor, TokioIo},
    };
    use tokio::{
        io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex},
        sync::{Semaphore, mpsc, oneshot},
        time::{advance, timeout},
    };

    use super::*;

    /// Connects to whoever takes the other ends, as often as it may.
    #[derive(Clone)]
    pub(crate) struct Dialler {
        others: mpsc::UnboundedSender<DuplexStream>,
        may: Arc<Semaphore>,
        is_shared: bool,
    }

    impl Dialler {
        /// And those other ends.
        pub(crate) fn new(is_shared: bool) -> (Self, mpsc::UnboundedReceiver<DuplexStream>) {
            let (others, taken) = mpsc::unbounded_channel();
            (Self { others, may: Arc::new(Semaphore::new(100)), is_shared }, taken)
        }
    }

    pub(crate) struct Ours(TokioIo<DuplexStream>, bool);

    impl Service<Uri> for Dialler {
        type Response = Ours;
        type Error = io::Error;
        type Future = BoxFuture<'static, io::Result<Ours>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Uri) -> Self::Future {
            let Self { others, may, is_shared } = self.clone();
            Box::pin(async move {
                may.acquire().await.map_err(io::Error::other)?.forget();
                let (ours, other) = duplex(1 << 16);
                others.send(other).map_err(|_| io::ErrorKind::ConnectionRefused)?;
                Ok(Ours(TokioIo::new(ours), is_shared))
            })
        }
    }

    impl Connection for Ours {
        fn connected(&self) -> Connected {
            if self.1 { Connected::new().negotiated_h2() } else { Connected::new() }
        }
    }

    impl Read for Ours {
        fn poll_read(
            mut self: std::pin::Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: hyper::rt::ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            std::pin::Pin::new(&mut self.0).poll_read(cx, buffer)
        }
    }

    impl Write for Ours {
        fn poll_write(
            mut self: std::pin::Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            std::pin::Pin::new(&mut self.0).poll_write(cx, bytes)
        }

        fn poll_flush(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            std::pin::Pin::new(&mut self.0).poll_flush(cx)
        }

        fn poll_shutdown(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            std::pin::Pin::new(&mut self.0).poll_shutdown(cx)
        }
    }

    type TestConnections = Arc<Connections<Dialler, Full<Bytes>>>;

    fn connections<B>(
        most: usize,
        is_shared: bool,
    ) -> (Arc<Connections<Dialler, B>>, mpsc::UnboundedReceiver<DuplexStream>)
    where
        B: Body + Send + Unpin + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let ((dialler, taken), tasks) = (Dialler::new(is_shared), ConnectionTasks::default());
        let (http1, http2) = (http1::Builder::new(), http2::Builder::new(tasks.clone()));
        (Arc::new(Connections::new(dialler, http1, http2, tasks, most)), taken)
    }

    async fn asks(connections: &TestConnections) -> Result<(Bytes, Lease<Full<Bytes>>), RequestError> {
        let request = Request::get("http://a.test:80/path?q").body(Full::default()).unwrap();
        let (answer, lease) = connections.request(request, &Carrier::default()).await?;
        Ok((answer.into_body().collect().await.map_err(RequestError::Send)?.to_bytes(), lease))
    }

    /// Reads the head of a request.
    async fn head(other: &mut BufReader<DuplexStream>) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(other.read_line(&mut head).await.unwrap(), 0, "after {head:?}");
        }
        head
    }

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nye";

    /// Answers each request, on as many connections as there are, whose number it gives.
    async fn answers(mut taken: mpsc::UnboundedReceiver<DuplexStream>, count: Arc<AtomicUsize>) {
        while let Some(other) = taken.recv().await {
            count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut other = BufReader::new(other);
                loop {
                    let said = head(&mut other).await;
                    assert!(
                        said.starts_with("GET /path?q HTTP/1.1\r\n") && said.contains("host: a.test\r\n"),
                        "{said}"
                    );
                    other.write_all(ANSWER).await.unwrap();
                }
            });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_given_back_is_used_again_until_it_was_idle_for_too_long() {
        let ((connections, taken), count) = (connections(2, false), Arc::default());
        tokio::spawn(answers(taken, Arc::clone(&count)));
        for _ in 0..3 {
            let (answer, mut lease) = asks(&connections).await.unwrap();
            assert_eq!(answer, "ye");
            lease.give_back();
        }
        assert_eq!(count.load(Ordering::SeqCst), 1);
        let (_, held) = asks(&connections).await.unwrap();
        let (_, mut other) = asks(&connections).await.unwrap();
        assert_eq!(count.load(Ordering::SeqCst), 2, "that of an answer is nobody else's");
        other.give_back();
        drop(held);
        asks(&connections).await.unwrap();
        assert_eq!(count.load(Ordering::SeqCst), 2, "the other one was given back");
        asks(&connections).await.unwrap().1.give_back();
        assert_eq!(count.load(Ordering::SeqCst), 3, "what is not given back is gone");
        let kept = connections.kept.as_ref().unwrap();
        assert_eq!(kept.lock().idle.len(), 1);
        advance(IDLE_TIME * 3).await;
        tokio::task::yield_now().await;
        assert!(kept.lock().idle.is_empty() && !kept.lock().is_tended);
    }

    #[tokio::test]
    async fn whoever_waits_for_a_new_one_has_what_is_given_back_meanwhile() {
        let ((connections, taken), count) = (connections(2, false), Arc::default());
        tokio::spawn(answers(taken, Arc::clone(&count)));
        connections.connector.may.forget_permits(99);
        let (_, mut lease) = asks(&connections).await.unwrap();
        let mut second = Box::pin(asks(&connections));
        assert!((&mut second).now_or_never().is_none(), "no other can be made");
        lease.give_back();
        let second = timeout(Duration::from_secs(60), second).await.expect("it waits for its own");
        let (answer, mut lease) = second.unwrap();
        assert_eq!((answer.as_ref(), count.load(Ordering::SeqCst)), (&b"ye"[..], 1));
        // The one that it did not wait for is for others.
        connections.connector.may.add_permits(1);
        let kept = connections.kept.as_ref().unwrap();
        while kept.lock().idle.is_empty() {
            tokio::task::yield_now().await;
        }
        lease.give_back();
        assert_eq!((kept.lock().idle.len(), count.load(Ordering::SeqCst)), (2, 2));
    }

    #[tokio::test]
    async fn where_none_is_kept_each_request_has_its_own_and_no_more_than_the_most_are() {
        let ((alone, taken), count) = (connections(0, false), Arc::default());
        tokio::spawn(answers(taken, Arc::clone(&count)));
        for _ in 0..2 {
            asks(&alone).await.unwrap().1.give_back();
        }
        assert_eq!(count.load(Ordering::SeqCst), 2);
        let (few, taken) = connections(1, false);
        tokio::spawn(answers(taken, count));
        let mut leases = [asks(&few).await.unwrap().1, asks(&few).await.unwrap().1];
        leases.iter_mut().for_each(Lease::give_back);
        assert_eq!(few.kept.as_ref().unwrap().lock().idle.len(), 1);
    }

    #[tokio::test]
    async fn a_request_of_which_nothing_was_written_goes_over_another_connection_once() {
        let (connections, mut taken) = connections(2, false);
        let origin = async {
            let mut other = BufReader::new(taken.recv().await.unwrap());
            head(&mut other).await;
            other.write_all(ANSWER).await.unwrap();
            (other, taken)
        };
        let (first, (other, mut taken)) = tokio::join!(asks(&connections), origin);
        first.unwrap().1.give_back();
        // It ends while it is kept: unheard of where it is taken.
        drop(other);
        let second = async {
            let mut other = BufReader::new(taken.recv().await.unwrap());
            head(&mut other).await;
            drop(other);
            taken
        };
        let (answered, mut taken) = tokio::join!(asks(&connections), second);
        assert!(matches!(answered, Err(RequestError::Send(_))), "written, and not sent again");
        assert!(taken.try_recv().is_err());
        drop(taken);
        assert!(matches!(asks(&connections).await, Err(RequestError::Connect(_))));
    }

    #[tokio::test]
    async fn a_connection_whose_request_is_still_on_its_way_is_kept_once_that_is_over() {
        let ((connections, mut taken), (goes, held)) = (connections(1, false), oneshot::channel());
        let rest = futures::stream::once(held.map_ok(|()| Frame::data(Bytes::from_static(b"late"))));
        let request = Request::post("http://a.test/").body(StreamBody::new(rest)).unwrap();
        let carrier = Carrier::default();
        let early = async {
            let mut other = BufReader::new(taken.recv().await.unwrap());
            head(&mut other).await;
            other.write_all(ANSWER).await.unwrap();
            other
        };
        let (answered, mut other) = tokio::join!(connections.request(request, &carrier), early);
        let (answer, mut lease) = answered.unwrap();
        answer.into_body().collect().await.unwrap();
        lease.give_back();
        let kept = connections.kept.as_ref().unwrap();
        assert!(kept.lock().idle.is_empty());
        goes.send(()).unwrap();
        let mut late = [0; 14];
        other.read_exact(&mut late).await.unwrap();
        assert_eq!(&late, b"4\r\nlate\r\n0\r\n\r\n");
        while kept.lock().idle.is_empty() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_share_one_of_http2_until_it_is_silent_or_idle_for_too_long() {
        let ((connections, mut taken), count) = (connections(1, true), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&count);
        tokio::spawn(async move {
            while let Some(other) = taken.recv().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let answer = |_| async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("ye"))) };
                let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                tokio::spawn(server.serve_connection(TokioIo::new(other), service_fn(answer)));
            }
        });
        let (first, second) = tokio::join!(asks(&connections), asks(&connections));
        let ((_, first), (_, second)) = (first.unwrap(), second.unwrap());
        assert!(Arc::ptr_eq(&first.shared().unwrap().is_silent, &second.shared().unwrap().is_silent));
        let so_far = count.load(Ordering::SeqCst);
        first.shared().unwrap().gives_no_more();
        let (_, third) = asks(&connections).await.unwrap();
        assert_eq!(count.load(Ordering::SeqCst), so_far + 1);
        assert!(!Arc::ptr_eq(&first.shared().unwrap().is_silent, &third.shared().unwrap().is_silent));
        advance(IDLE_TIME * 3).await;
        tokio::task::yield_now().await;
        assert!(connections.kept.as_ref().unwrap().lock().shared.is_none());
    }
}
