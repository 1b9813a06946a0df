//! What is needed of the place that keeps signed heads of the record: to hand them to it, and to forget those of a chain
//! that was removed on purpose. They are read by
//! [`StoreKind::read_heads`](super::StoreKind::read_heads), which opens nothing to write.

use futures::future::BoxFuture;

use super::StoreError;
use footbridge_audit::HeadSink;

/// A place that keeps signed heads.
pub trait HeadStore: Send + Sync {
    /// Where a harness hands its heads to.
    fn head_sink(&self) -> Box<dyn HeadSink>;

    /// Forgets the heads of a chain; says how many there were.
    fn forget_heads<'a>(&'a self, chain: &'a str) -> BoxFuture<'a, Result<u64, StoreError>>;
}
