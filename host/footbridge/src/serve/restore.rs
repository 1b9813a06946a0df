//! Sessions after a restart: opened again as they were, with the same sockets and tokens.
//!
//! One whose time is over, or whose process is gone (or belongs to an earlier boot), is ended. What cannot listen is
//! tried again, with growing pauses; the session stays meanwhile, and shows why.

use std::time::{Duration, SystemTime};

use super::{
    folder::{self, SessionFolderError},
    kept::{AllKept, Kept},
    sessions::Sessions,
};
use crate::{
    approvers::NobodyToAsk,
    store::{StoreError, StoredSession},
};
use footbridge_calls::session::{Ended, Life, SessionSpec};
use footbridge_core::names::SessionName;
use footbridge_edge::listener::{BindError, Listener};
use footbridge_processes::process::ProcessWatch;

/// The first pause before a listener is tried again, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Why nothing listens at a place.
#[derive(Debug, thiserror::Error)]
enum NotBound {
    #[error(transparent)]
    Folder(#[from] SessionFolderError),
    #[error(transparent)]
    Bind(#[from] BindError),
}

/// What there is to a session that was stored.
enum Fate {
    Goes(Option<ProcessWatch>),
    Ended(Ended),
}

impl Sessions {
    /// Opens all sessions of the store; gives how many there are.
    pub(super) async fn restore(&self) -> Result<usize, StoreError> {
        let stored = self.0.store.sessions().await?;
        let mut all = self.0.kept.lock().await;
        for stored in stored {
            let name = stored.name.clone();
            match fate(&stored) {
                Ok(Fate::Ended(why)) => {
                    tracing::warn!(session = %name, why = why.as_str(), "a session ended while no daemon was running");
                    self.0.harness.ended_meanwhile(&name, why);
                    // In the list as long as it is in the store, so that it can be revoked.
                    all.insert(name.clone(), Kept { ended: Some(why), ..Kept::new(stored, None) });
                    if let Err(error) = self.forget(&mut all, &name, why).await {
                        tracing::error!(session = %name, %error, "it is still in the store");
                    }
                }
                Ok(Fate::Goes(process)) => self.open_again(&mut all, self.held(stored), process),
                Err(error) => {
                    let mut kept = self.held(stored);
                    let why = format!("its process cannot be watched: {error}; revoke it, or restart the daemon");
                    tracing::error!(session = %name, %why, "a session stays closed");
                    kept.closed = Some(why);
                    self.watch(&kept, None);
                    all.insert(name, kept);
                }
            }
        }
        folder::remove_others(&self.0.runtime, &Self::names(&all));
        self.sweep();
        Ok(all.len())
    }

    /// A session whose name is taken, and whose time runs, before it is opened.
    fn held(&self, stored: StoredSession) -> Kept {
        // The store has no name twice.
        let life = self.0.harness.hold(&stored.name, stored.expires).ok();
        Kept::new(stored, life)
    }

    fn open_again(&self, all: &mut AllKept, mut kept: Kept, process: Option<ProcessWatch>) {
        let name = kept.stored.name.clone();
        self.open(&mut kept);
        self.watch(&kept, process);
        if let Some(life) = kept.life.clone().filter(|_| kept.closed.is_some() || !kept.broken.is_empty()) {
            self.0.tasks.spawn(self.clone().retry(name.clone(), life));
        }
        all.insert(name, kept);
    }

    /// Opens a session that is not open, on those of its listeners that can be bound.
    fn open(&self, kept: &mut Kept) {
        let before = kept.closed.take();
        if let Some(what) = kept.stored.unread {
            return close(
                kept,
                before,
                format!(
                    "its {what} were written by another version of footbridge, and this one cannot read them: use that one, or revoke it"
                ),
            );
        }
        let policy = match self.0.harness.policies().get(&kept.stored.policy) {
            Ok(policy) => policy,
            Err(unknown) => return close(kept, before, unknown.to_string()),
        };
        if policy.can_ask() && !self.0.harness.approvals().can_be_answered() {
            return close(kept, before, NobodyToAsk(policy.name().to_owned()).to_string());
        }
        let listeners = self.bind(kept, true);
        let StoredSession { name, token, labels, expires, limits, services, spent, .. } = kept.stored.clone();
        let alone = self.alone(&limits);
        let spec = SessionSpec { name, token, policy, labels, expires, services, limits, alone, spent };
        if let Err(error) = self.0.harness.open(spec, listeners) {
            close(kept, before, error.to_string());
        }
    }

    /// Binds everything, or what is broken alone.
    fn bind(&self, kept: &mut Kept, is_all: bool) -> Vec<Listener> {
        let before = std::mem::take(&mut kept.broken);
        let mut bound = Vec::new();
        for (at, listen) in kept.stored.listens.iter().enumerate() {
            if !is_all && !before.contains_key(&at) {
                continue;
            }
            match self.bind_one(&kept.stored.name, listen) {
                Ok(listener) => bound.push(listener),
                Err(why) => {
                    let why = why.to_string();
                    if before.get(&at) != Some(&why) {
                        tracing::error!(session = %kept.stored.name, endpoint = %listen.endpoint, %why, "nothing listens there; it is tried again");
                    }
                    kept.broken.insert(at, why);
                }
            }
        }
        bound
    }

    fn bind_one(&self, name: &SessionName, listen: &footbridge_edge::listener::Listen) -> Result<Listener, NotBound> {
        // Its own folder may be gone: a runtime folder does not outlive a boot.
        if folder::is_of(&self.0.runtime, name, &listen.endpoint) {
            folder::make(&self.0.runtime, name)?;
        }
        // At once: others wait meanwhile, and what is in use is tried again later.
        Ok(self.0.listeners.bind_once(listen)?)
    }

    /// Tries again what could not be opened, until it can or the session ends.
    async fn retry(self, name: SessionName, life: Life) {
        let (mut pause, longest) = PAUSES;
        loop {
            tokio::select! {
                () = life.cancelled() => return,
                () = self.0.shutdown.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            let mut all = self.0.kept.lock().await;
            let Some(kept) = all.get_mut(&name).filter(|kept| kept.is(&life) && kept.goes_on()) else { return };
            self.try_again(kept);
            if kept.closed.is_none() && kept.broken.is_empty() {
                tracing::info!(session = %name, "a session listens everywhere again");
                return;
            }
            pause = longest.min(pause * 2);
        }
    }

    fn try_again(&self, kept: &mut Kept) {
        if kept.closed.is_some() {
            return self.open(kept);
        }
        for listener in self.bind(kept, false) {
            if let Err(error) = self.0.harness.listen(&kept.stored.name, listener) {
                tracing::error!(session = %kept.stored.name, %error, "a listener does not say where it listens");
            }
        }
    }
}

/// Says why it is closed, unless that was said before.
fn close(kept: &mut Kept, before: Option<String>, why: String) {
    if before.as_ref() != Some(&why) {
        tracing::error!(session = %kept.stored.name, %why, "a session stays closed; it is tried again");
    }
    kept.closed = Some(why);
}

fn fate(stored: &StoredSession) -> std::io::Result<Fate> {
    if stored.expires.is_some_and(|at| at <= SystemTime::now()) {
        return Ok(Fate::Ended(Ended::Expired));
    }
    let Some(identity) = &stored.process else { return Ok(Fate::Goes(None)) };
    Ok(match identity.open()? {
        Some(handle) => Fate::Goes(Some(handle.watch()?)),
        None => Fate::Ended(Ended::ProcessGone),
    })
}
