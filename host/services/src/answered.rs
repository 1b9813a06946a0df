//! A request whose answer is whole, while its body may still be on its way: an origin may answer first and read on.
//!
//! The request goes on as any does: it keeps its place, silence and time end it, and what passes counts. States: sending, then
//! over: the body came to its end, or was stopped; then recorded. Where it is the origin that takes no more, it is read past
//! what its client still sends, for a while, since to end the connection at once would take the answer away from it.

use std::{sync::Arc, time::Duration};

use footbridge_audit::{ExchangeRecord, RecordedOutcome, UsageRecord};
use footbridge_calls::{service::OpenExchange, session::Spending};
use tokio::time::Instant;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use crate::{
    connections::Known,
    upload::{Tally, UploadError},
    usage::UsageReader,
};

/// What goes on behind an answer counts among these tasks, and ends when this is cancelled, which dropping the guard does.
#[derive(Debug)]
pub struct Behind {
    /// Where it is waited for.
    pub tasks: TaskTracker,
    /// Its session is over, or its harness is.
    pub cancel: CancellationToken,
    /// For as long as anything of the request goes on.
    pub guard: DropGuard,
}

/// What an answer that is over said of a model's use.
pub(crate) struct ModelUse {
    pub(crate) said: Box<UsageReader>,
    /// What tokens are counted for.
    pub(crate) spending: Option<Spending>,
    pub(crate) received: u64,
    pub(crate) is_of_events: bool,
    /// Whether no more than it said was used.
    pub(crate) is_all: bool,
}

impl ModelUse {
    /// For the record of a request of which so much was sent, with the tokens that were used and not said, about: a client
    /// may leave before an answer says them, or ask a stream not to. They are counted, or a budget would hold only who is
    /// honest.
    fn record(self, sent: u64) -> Option<UsageRecord> {
        // What is asked for without a body may be a stream that another request began, and is no list of files.
        let may_be = !self.is_all && (self.is_of_events || sent > 0);
        let unsaid = may_be.then(|| self.said.unsaid(sent, self.received, self.is_of_events));
        let unsaid = unsaid.filter(|tokens| *tokens > 0);
        // Whoever is over its budget by it hears so at the next request.
        let _over = self.spending.zip(unsaid).map(|(spending, tokens)| spending.tokens(tokens));
        self.said.into_found(unsaid)
    }
}

/// A request whose answer is over.
pub(crate) struct Answered {
    pub(crate) exchange: OpenExchange,
    /// What became of the answer.
    pub(crate) outcome: RecordedOutcome,
    pub(crate) detail: Option<String>,
    /// What passed of the answer.
    pub(crate) passed: ExchangeRecord,
    pub(crate) model_use: Option<ModelUse>,
    pub(crate) upload: Arc<Tally>,
    /// Its connection, where other requests share it.
    pub(crate) shared: Option<Known>,
}

impl Answered {
    /// Records it once nothing more of its body passes: nothing for so long ends that, and this time does.
    pub(crate) fn end(self, behind: Behind, silence: Duration, until: Instant) {
        if self.upload.is_over() && self.upload.why().is_none() {
            return self.record();
        }
        let Behind { tasks, cancel, guard } = behind;
        self.upload.moves();
        tasks.spawn(async move {
            self.rest(&cancel, silence, until).await;
            drop(guard);
        });
    }

    async fn rest(self, cancel: &CancellationToken, silence: Duration, until: Instant) {
        let upload = Arc::clone(&self.upload);
        let stopped = tokio::select! {
            biased;
            () = upload.over() => None,
            () = cancel.cancelled() => Some(UploadError::Ended),
            is_silent = upload.silent(silence, until) => {
                Some(if is_silent { UploadError::Silence } else { UploadError::TooLong })
            }
        };
        if stopped == Some(UploadError::Silence) {
            self.shared.iter().for_each(Known::gives_no_more);
        }
        if let Some(why) = stopped {
            upload.stop(why);
            upload.forget();
        }
        self.record();
        let _told_to_end = cancel.run_until_cancelled(upload.read_past()).await;
    }

    /// Records it as it is.
    pub(crate) fn record(self) {
        let Self { exchange, outcome, detail, passed, model_use, upload, shared: _ } = self;
        let usage = model_use.and_then(|model_use| model_use.record(upload.bytes()));
        let passed = ExchangeRecord { sent: upload.bytes(), sent_digest: upload.digest(), usage, ..passed };
        let why = upload.why().filter(|_| detail.is_none());
        let detail = why.map(|why| format!("answered before the end of the request's body: {why}")).or(detail);
        let outcome = if why == Some(UploadError::Spent) { RecordedOutcome::BudgetSpent } else { outcome };
        exchange.close(outcome, detail, passed);
    }
}
