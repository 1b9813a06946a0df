//! What sessions have spent of their budgets, kept in the store, so that a restart gives none of it back.
//!
//! It is kept once a second, where there is anything new, and at the end of the daemon. One that is killed loses what was
//! spent in the second before. Where it cannot be kept, budgets hold all the same as long as the daemon runs; that is said
//! once, and tried again.

use std::{sync::Arc, time::Duration};

use tokio::sync::Mutex;

use super::kept::AllKept;
use crate::store::{StateStore, StoreError, StoredSession};
use footbridge_calls::session::Session;

/// How often.
pub(super) const EVERY: Duration = Duration::from_secs(1);

/// Keeps what these sessions have spent, where that is not what is kept already. Others are made and ended meanwhile: a disk
/// may take long.
pub(super) async fn keep(
    store: &dyn StateStore,
    all: &Mutex<AllKept>,
    open: &[Arc<Session>],
) -> Result<(), StoreError> {
    let new = news(&*all.lock().await, open);
    if new.is_empty() {
        return Ok(());
    }
    store.set_spent(&new).await?;
    let mut all = all.lock().await;
    for StoredSession { name, created, spent, .. } in new {
        if let Some(kept) = all.get_mut(&name).filter(|kept| kept.stored.created == created) {
            kept.stored.spent = spent;
        }
    }
    Ok(())
}

/// Sessions that have spent more than is kept.
fn news(all: &AllKept, open: &[Arc<Session>]) -> Vec<StoredSession> {
    let new = |session: &Arc<Session>| {
        // Another one of its name has spent nothing of this.
        let kept = all.get(session.name()).filter(|kept| kept.is(session.over()))?;
        let spent = session.all_spent();
        (kept.stored.spent != spent).then(|| StoredSession { spent, ..kept.stored.clone() })
    };
    open.iter().filter_map(new).collect()
}

/// Says that what was spent could not be kept.
pub(super) fn not_kept(error: &StoreError) {
    tracing::error!(%error, "what sessions spend cannot be kept: after a restart budgets would have it again");
}
