//! A transport that says when it has ended: the library keeps that to itself.

use std::borrow::Cow;

use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio_util::sync::CancellationToken;

/// A transport, and what is cancelled when no message comes from it any more.
pub(super) struct Watched<T> {
    inner: T,
    ended: CancellationToken,
}

impl<T> Watched<T> {
    /// Watches a transport.
    pub(super) fn new(inner: T, ended: CancellationToken) -> Self {
        Self { inner, ended }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        Cow::Borrowed("HTTP")
    }

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let message = self.inner.receive().await;
        if message.is_none() {
            self.ended.cancel();
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // The inner one first: it may have a session to give back, which only an open connection can.
        let closed = self.inner.close().await;
        self.ended.cancel();
        closed
    }
}
