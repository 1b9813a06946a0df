//! Looking through what a session sees of servers: at once where there is little of it, and else beside the workers and
//! behind them, one lookup of a session at a time. A server may have megabytes of definitions, which any guest can have
//! listed as often as its rate lets it; whoever waits for a worker does not wait for that.
//!
//! Failure paths: the work panics, which is an internal error of its request alone.

use footbridge_calls::{
    auth::Principal,
    call::Stages,
    catalogue::Visible,
    cause::{Broken, Cause, Failure},
};

/// What is gone through at once, bytes of definitions: a fraction of a millisecond.
const LITTLE: usize = 64 * 1024;

/// Carries out what goes through so many bytes of definitions.
pub(crate) async fn through<T: Send + 'static>(
    stages: &Stages,
    principal: &Principal,
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    if bytes <= LITTLE { Ok(work()) } else { behind_others(stages, principal, work).await }
}

/// How much there is to go through.
pub(crate) fn bytes(seen: &[Visible]) -> usize {
    seen.iter().map(Visible::bytes).sum()
}

/// Carries out what takes long, however little there is to see.
pub(crate) async fn behind_others<T: Send + 'static>(
    stages: &Stages,
    principal: &Principal,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let turn = principal.session().turn().await;
    let work = move || {
        let _turn = turn;
        work()
    };
    stages.resolver.threads().run(work).await.ok_or_else(|| Cause::Internal(Broken::LookingUp).into())
}
