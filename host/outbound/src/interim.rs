//! What a server says before its answer: interim answers (1xx), which HTTP puts no end to.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::{HeaderMap, HeaderName, HeaderValue, Request};
use hyper::ext::on_informational;
use tokio::sync::Notify;

/// About what the first line of an answer takes.
const STATUS_LINE: usize = 25;
/// What a line of a head takes besides name and value.
const SEPARATORS: usize = 4;

/// The interim answers to one request, counted as they come.
#[derive(Debug)]
pub struct InterimAnswers(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    bytes: AtomicUsize,
    over: Notify,
}

impl InterimAnswers {
    /// Has those to a request counted.
    pub fn count<B>(request: &mut Request<B>, limit: usize) -> Self {
        let count = Arc::new(Count::default());
        let counted = Arc::clone(&count);
        on_informational(request, move |head| {
            let length = head_bytes(head.headers());
            if counted.bytes.fetch_add(length, Ordering::Relaxed) + length > limit {
                counted.over.notify_one();
            }
        });
        Self(count)
    }

    /// Waits until they are more than the limit. The request does not end by that.
    pub async fn too_much(&self) {
        self.0.over.notified().await;
    }

    /// How long they are so far, about, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }
}

/// How long a head is, about, bytes.
#[must_use]
pub fn head_bytes(headers: &HeaderMap) -> usize {
    let line = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + SEPARATORS;
    STATUS_LINE + headers.iter().map(line).sum::<usize>()
}
