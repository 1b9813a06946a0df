//! What a server says before its answer: interim answers (1xx), which HTTP puts no end to.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::{HeaderName, HeaderValue, Request};
use hyper::ext::on_informational;
use tokio::sync::Notify;

/// About what the first line of an answer takes.
const STATUS_LINE: usize = 25;
/// What a line of a head takes besides name and value.
const SEPARATORS: usize = 4;

/// Has the interim answers to a request counted. Ends when they are more than so many bytes, about; the request does not
/// end by that.
pub fn too_much_interim<B>(request: &mut Request<B>, limit: usize) -> impl Future<Output = ()> + Send + use<B> {
    let (come, over) = (AtomicUsize::new(0), Arc::new(Notify::new()));
    let ends = Arc::clone(&over);
    on_informational(request, move |head| {
        let line = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + SEPARATORS;
        let length = STATUS_LINE + head.headers().iter().map(line).sum::<usize>();
        if come.fetch_add(length, Ordering::Relaxed) + length > limit {
            ends.notify_one();
        }
    });
    async move { over.notified().await }
}
