//! Calls that outlive the request that made them: whoever made one asks later how it is, and for what came of it.
//!
//! States: running, ended, forgotten. So many are kept of a session, and each for so long from its beginning; one that
//! still runs then is cancelled. A new one takes the place of the one that ended first of all; where all run there is no place.
//! All are forgotten with their session, those of a client with it, and when the harness ends. What they hold counts
//! for their session like any answer that nobody has read yet.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use footbridge_calls::{
    cause::{Broken, Cause, Failure},
    events::CallEvent,
    provider::RawResult,
    session::{OverLimit, Session},
};
use footbridge_core::random::random_text;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What comes of a call.
type Answer = Result<RawResult, Failure>;

/// Most calls that are kept of a session.
const KEPT: usize = 32;

/// The kept calls of all sessions, by their ids. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct KeptCalls(Arc<Mutex<HashMap<Arc<str>, Arc<KeptCall>>>>);

/// A kept call.
pub(crate) struct KeptCall {
    /// What it is asked for by: nobody else can guess it.
    pub(crate) id: Arc<str>,
    /// The number of its session.
    session: u64,
    /// Who made it.
    client: Arc<str>,
    pub(crate) since: SystemTime,
    /// How long it is kept, from its beginning.
    pub(crate) time: Duration,
    progress: watch::Sender<KeptProgress>,
    /// Whoever attends it looks at both.
    pub(crate) cancelled: CancellationToken,
    pub(crate) forgotten: CancellationToken,
}

/// How far a kept call is.
#[derive(Clone)]
pub(crate) struct KeptProgress {
    /// What it told last.
    pub(crate) told: Option<CallEvent>,
    /// When anything of this changed.
    pub(crate) changed: SystemTime,
    pub(crate) is_cancelled: bool,
    /// What came of it.
    pub(crate) answer: Option<Arc<Answer>>,
}

impl KeptProgress {
    fn change(&mut self, change: impl FnOnce(&mut Self)) {
        self.changed = SystemTime::now();
        change(self);
    }
}

impl KeptCall {
    /// How far it is.
    pub(crate) fn progress(&self) -> KeptProgress {
        self.progress.borrow().clone()
    }

    /// What came of it, once it ended.
    pub(crate) async fn answer(&self) -> Result<Arc<Answer>, Cause> {
        let mut progress = self.progress.subscribe();
        // This call is what tells of it.
        let ended = progress.wait_for(|progress| progress.answer.is_some()).await;
        ended.ok().and_then(|progress| progress.answer.clone()).ok_or(Cause::HarnessFailed)
    }

    /// It tells something of itself.
    pub(crate) fn tells(&self, event: CallEvent) {
        self.progress.send_modify(|progress| progress.change(|progress| progress.told = Some(event)));
    }

    /// It ended with this.
    pub(crate) fn ends(&self, answer: Answer) {
        self.progress.send_modify(|progress| progress.change(|progress| progress.answer = Some(Arc::new(answer))));
    }

    /// Cancels it. False if it has ended, or was cancelled before.
    pub(crate) fn cancel(&self) -> bool {
        let is_first = self.progress.send_if_modified(|progress| {
            let runs = progress.answer.is_none() && !progress.is_cancelled;
            if runs {
                progress.change(|progress| progress.is_cancelled = true);
            }
            runs
        });
        self.cancelled.cancel();
        is_first
    }
}

impl KeptCalls {
    /// A place for another call of this client.
    pub(crate) fn place(&self, session: &Session, client: Arc<str>, time: Duration) -> Result<Arc<KeptCall>, Cause> {
        let mut all = self.all();
        let of_session = all.values().filter(|kept| kept.session == session.serial());
        let (mut count, mut first_ended) = (0, None::<(SystemTime, Arc<KeptCall>)>);
        for kept in of_session {
            count += 1;
            let progress = kept.progress();
            if progress.answer.is_some() && first_ended.as_ref().is_none_or(|(at, _)| progress.changed < *at) {
                first_ended = Some((progress.changed, Arc::clone(kept)));
            }
        }
        if count >= KEPT {
            let (_, ended) = first_ended.ok_or(Cause::OverLimit(OverLimit::Busy))?;
            all.remove(&ended.id);
            ended.forgotten.cancel();
        }
        let since = SystemTime::now();
        let progress = KeptProgress { told: None, changed: since, is_cancelled: false, answer: None };
        let kept = Arc::new(KeptCall {
            id: random_text::<24>().map_err(|_| Cause::Internal(Broken::Randomness))?.into(),
            session: session.serial(),
            client,
            since,
            time,
            progress: watch::Sender::new(progress),
            cancelled: CancellationToken::new(),
            forgotten: CancellationToken::new(),
        });
        all.insert(Arc::clone(&kept.id), Arc::clone(&kept));
        Ok(kept)
    }

    /// Forgets one.
    pub(crate) fn remove(&self, kept: &KeptCall) {
        self.all().remove(&kept.id);
    }

    /// The kept call of this id, for the client that made it.
    pub(crate) fn find(&self, session: &Session, client: &str, id: &str) -> Option<Arc<KeptCall>> {
        let found = self.all().get(id).cloned();
        found.filter(|kept| kept.session == session.serial() && *kept.client == *client)
    }

    /// Those of a client, the oldest first.
    pub(crate) fn of_client(&self, session: &Session, client: &str) -> Vec<Arc<KeptCall>> {
        let is_its = |kept: &&Arc<KeptCall>| kept.session == session.serial() && *kept.client == *client;
        let mut its: Vec<_> = self.all().values().filter(is_its).cloned().collect();
        its.sort_by(|a, b| (a.since, &a.id).cmp(&(b.since, &b.id)));
        its
    }

    /// Forgets those of a client that leaves; what runs of them is cancelled.
    pub(crate) fn forget(&self, session: &Session, client: &str) {
        for kept in self.of_client(session, client) {
            kept.forgotten.cancel();
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<KeptCall>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
