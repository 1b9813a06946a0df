//! rmcp's transport over lines, and what this server needs around its end: what was asked is answered first.

use std::{future::Future, io};

use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, GetExtensions, JsonRpcMessage, ServerJsonRpcMessage},
    transport::{Transport, async_rw::AsyncRwTransport},
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, Chain};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::slow::STOPPED;

/// Longest line that is read: far more than any request here needs. A longer one is skipped.
pub(super) const MAX_LINE: usize = 1024 * 1024;

/// Lines in, lines out.
pub(super) struct Lines<R: AsyncRead, W: AsyncWrite> {
    lines: AsyncRwTransport<RoleServer, Chain<R, &'static [u8]>, W>,
    /// Told of the end of the input, and of an output that nobody reads.
    over: CancellationToken,
    /// Requests that are worked on.
    asked: TaskTracker,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(input: R, output: W, over: CancellationToken) -> Self {
        // A last line without its end counts.
        let input = input.chain(b"\n".as_slice());
        let lines = AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_LINE);
        Self { lines, over, asked: TaskTracker::new() }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let stopped = matches!(&message, JsonRpcMessage::Error(error) if error.error.code == STOPPED);
        let sent = (!stopped).then(|| self.lines.send(message));
        let over = self.over.clone();
        async move {
            match sent {
                Some(sent) => sent.await.inspect_err(|_| over.cancel()),
                None => Ok(()),
            }
        }
    }

    /// Says that the input ended when all requests are done: rmcp passes on no notification after that, and who waits
    /// to have sent one would wait for long.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let message = tokio::select! {
            message = self.lines.receive() => message,
            () = self.over.cancelled() => None,
        };
        match message {
            Some(ClientJsonRpcMessage::Request(mut request)) => {
                // It goes with the request, and is dropped with it.
                request.request.extensions_mut().insert(self.asked.token());
                Some(ClientJsonRpcMessage::Request(request))
            }
            Some(message) => Some(message),
            None => {
                self.over.cancel();
                self.asked.close();
                self.asked.wait().await;
                None
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Transport::<RoleServer>::close(&mut self.lines).await
    }
}
