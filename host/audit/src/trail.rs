//! The record as the rest of the harness has it: what is handed to the writer, and whether it became durable in time.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::oneshot::{self, error::TryRecvError},
    time::timeout,
};

use super::{
    Recorder,
    record::{OutcomeRecord, Record},
    writer::{RecordLost, Writer, Writing},
};
use footbridge_core::limits::AuditLimits;

/// A record that is being written. Clones share one writer.
#[derive(Clone)]
pub struct Trail {
    writing: Arc<Writing>,
    writer: Arc<Mutex<Writer>>,
    intent_time: Duration,
    /// An outcome stands in line for its turn: whoever is told that it is not recorded while it is about to be would be
    /// told wrong.
    outcome_time: Duration,
}

impl Trail {
    /// Starts to write, as a [`Recorder`] says.
    ///
    /// # Errors
    /// When not even the first line can be written.
    pub fn start(recorder: impl Into<Recorder>, limits: AuditLimits) -> io::Result<Self> {
        let (recorder, intent_time) = (recorder.into(), limits.intent_time);
        let outcome_time = intent_time + recorder.journal.turn_time();
        let (writer, writing) = Writer::start(recorder, limits)?;
        Ok(Self { writing, writer: Arc::new(Mutex::new(writer)), intent_time, outcome_time })
    }

    /// Writes what is queued and ends the writer. Blocks while it does.
    ///
    /// # Errors
    /// [`RecordLost`].
    pub fn close(&self) -> Result<(), RecordLost> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).close()
    }

    /// Records that something of this id is about to happen, and keeps room for its outcome. False if that is not
    /// durable in time: then it must not happen, and if the intent becomes durable late, an outcome says `not_sent`.
    pub async fn intent(&self, id: &str, record: Record) -> bool {
        durable(self.writing.push(record, Some(id.to_owned())), self.intent_time).await
    }

    /// Records something that may be given up; it is in line before this returns. False if that is not durable in time.
    pub fn note(&self, record: Record) -> impl Future<Output = bool> + use<> {
        durable(self.writing.push(record, None), self.intent_time)
    }

    /// Records something that must not be lost. Not waited for: nothing is admitted before it is written.
    pub fn keep(&self, record: Record) {
        drop(self.writing.push_kept(record));
    }

    /// Records what became of an intent. False if that is not written in time; it is tried until it is.
    pub async fn outcome(&self, outcome: &OutcomeRecord) -> bool {
        durable(Some(self.writing.push_outcome(outcome)), self.outcome_time).await
    }

    /// As [`Self::outcome`], and not waited for: it is written with the next record, or a few milliseconds later.
    pub fn keep_outcome(&self, outcome: &OutcomeRecord) {
        self.writing.put_off_outcome(outcome);
    }

    /// Counts what was refused over a limit: those of a session and a reason share one line a second.
    pub fn count(&self, session: String, reason: &'static str) {
        self.writing.count_limited(session, reason);
    }

    /// Whether an intent would be queued right now.
    #[must_use]
    pub fn takes_records(&self) -> bool {
        self.writing.takes_more()
    }

    /// Why the last record could not be written, if it could not.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.writing.failure()
    }
}

/// Whether a queued record became durable in this time. If not, the writer finds that nobody waits for it.
async fn durable(queued: Option<oneshot::Receiver<()>>, time: Duration) -> bool {
    let Some(mut receiver) = queued else { return false };
    match receiver.try_recv() {
        Ok(()) => return true,
        Err(TryRecvError::Closed) => return false,
        Err(TryRecvError::Empty) => {}
    }
    match timeout(time, &mut receiver).await {
        Ok(written) => written.is_ok(),
        Err(_) => {
            // Closed first, so that whatever the writer sent before is seen, and nothing is sent after.
            receiver.close();
            receiver.try_recv().is_ok()
        }
    }
}
