//! Hears of a call that is kept, from its beginning until it is forgotten: the task that each has.

use tokio::time::{Instant, sleep_until};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    calls::RunningCall,
    kept_calls::{KeptCall, KeptCalls},
};
use std::sync::Arc;

/// Has a call attended in a task of these until it is forgotten, which it is when one of `ends` ends.
pub(crate) fn attend(
    calls: KeptCalls,
    tasks: &TaskTracker,
    kept: Arc<KeptCall>,
    call: RunningCall,
    ends: [CancellationToken; 2],
) {
    tasks.spawn(async move {
        let [session, harness] = ends;
        tokio::select! {
            () = attended(&kept, call) => {}
            () = session.cancelled() => {}
            () = harness.cancelled() => {}
            () = kept.forgotten.cancelled() => {}
        }
        kept.lost();
        calls.remove(&kept);
    });
}

/// Hears of a call until it ends, and keeps what came of it for its time. Dropping this cancels it.
async fn attended(kept: &KeptCall, call: RunningCall) {
    let RunningCall { mut call, events, cancel } = call;
    let Some(mut events) = events else { return };
    let mut cancel = Some(cancel);
    let until = Instant::now() + kept.time;
    let ended = loop {
        tokio::select! {
            ended = &mut call => break ended,
            Some(event) = events.recv() => kept.tells(*event),
            () = kept.cancelled.cancelled(), if cancel.is_some() => drop(cancel.take()),
            () = sleep_until(until), if cancel.is_some() => {
                kept.cancel();
            }
        }
    };
    kept.ends(ended.answer).await;
    sleep_until(until).await;
}
