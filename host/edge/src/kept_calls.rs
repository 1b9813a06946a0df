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
use serde::Deserialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What comes of a call.
type Answer = Result<RawResult, Failure>;

/// Bytes of a result that a worker may read.
const QUICK: usize = 64 << 10;

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
    /// Whether that is a result which says that its tool failed.
    pub(crate) is_error: bool,
}

/// With whether a result says that its tool failed. Most do not even have the word, and are not read for it.
fn read(answer: Answer) -> (Answer, bool) {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Ended {
        #[serde(default)]
        is_error: bool,
    }
    let text = answer.as_ref().map(|result| result.text.get()).unwrap_or_default();
    let is_error = text.contains("\"isError\"") && serde_json::from_str(text).is_ok_and(|Ended { is_error }| is_error);
    (answer, is_error)
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

    /// It ended with this. A result is read once for whether its tool failed, a long one beside the workers: its client
    /// may ask for that a hundred times a second.
    pub(crate) async fn ends(&self, answer: Answer) {
        let is_long = answer.as_ref().is_ok_and(|result| result.text.get().len() > QUICK);
        let (answer, is_error) = if is_long {
            let read = tokio::task::spawn_blocking(move || read(answer));
            read.await.unwrap_or((Err(Cause::HarnessFailed.into()), true))
        } else {
            read(answer)
        };
        self.progress.send_modify(|progress| {
            progress.change(|progress| {
                progress.answer = Some(Arc::new(answer));
                progress.is_error = is_error;
            });
        });
    }

    /// Nobody hears any more how it ends. Who waits for that is told so.
    pub(crate) fn lost(&self) {
        self.progress.send_if_modified(|progress| {
            let is_lost = progress.answer.is_none();
            if is_lost {
                progress.change(|progress| progress.answer = Some(Arc::new(Err(Cause::HarnessFailed.into()))));
            }
            is_lost
        });
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
        let progress = KeptProgress { told: None, changed: since, is_cancelled: false, answer: None, is_error: false };
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

#[cfg(test)]
mod tests {
    use serde_json::{json, value::to_raw_value};

    use super::*;

    fn running() -> KeptCall {
        let since = SystemTime::now();
        let progress = KeptProgress { told: None, changed: since, is_cancelled: false, answer: None, is_error: false };
        KeptCall {
            id: "x".into(),
            session: 1,
            client: "c".into(),
            since,
            time: Duration::from_secs(1),
            progress: watch::Sender::new(progress),
            cancelled: CancellationToken::new(),
            forgotten: CancellationToken::new(),
        }
    }

    #[tokio::test]
    async fn who_waits_for_a_call_that_is_lost_hears_so() {
        let kept = running();
        let (answer, ()) = tokio::join!(kept.answer(), async { kept.lost() });
        assert_eq!(answer.unwrap().as_ref().as_ref().err().map(|lost| &*lost.cause), Some(&Cause::HarnessFailed));
    }

    #[tokio::test]
    async fn a_result_says_whether_its_tool_failed_however_long_it_is() {
        for (length, is_error) in [(1, true), (1, false), (QUICK, true), (QUICK, false)] {
            let kept = running();
            let text = to_raw_value(&json!({"content": ["x".repeat(length)], "isError": is_error})).unwrap();
            kept.ends(Ok(RawResult { text, held: None })).await;
            kept.lost();
            let progress = kept.progress();
            assert_eq!((progress.is_error, progress.answer.is_some_and(|answer| answer.is_ok())), (is_error, true));
        }
    }
}
