//! The stage that carries admitted calls out, over any provider.
//!
//! Failure paths, each an outcome that is recorded: the server is not there or its tool changed (nothing is sent); the
//! provider panics; it neither answers nor ends in time, or the harness ends first; its result is no object, too large,
//! too deep, has a member twice, is a task that nobody asked for, or finds no room.

use std::{borrow::Cow, fmt, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use footbridge_audit::ExchangeRecord;
use footbridge_proto::{
    json::{self, MAX_RESULT_DEPTH, with_whole_pairs},
    rpc::ErrorCode,
};

use footbridge_core::{budget::Budget, limits::CallLimits, names::ServerName, redact::Redactor};
use futures::FutureExt as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{sync::Semaphore, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    admit::{Admitted, Receipt},
    catalogues::Catalogues,
    low_threads::LowThreads,
    pause::Pause,
    pins::Pins,
    provider::{CallContext, NoAnswer, NotSent, Outcome, Outgoing, RawResult, ToolProvider, Unanswered},
    watcher::Watcher,
};

/// What a provider gets beyond each time limit, to end by itself and say what became of the call.
const GRACE: Duration = Duration::from_secs(2);

/// Results beyond this are looked over on a thread that serves nobody else, bytes.
const LARGE_RESULT: usize = 64 << 10;

/// How many large results are looked over at a time: it takes memory for the names in them.
const LARGE_AT_ONCE: usize = 2;

/// JSON-RPC's code for an error inside a server.
const INTERNAL_ERROR: i64 = ErrorCode::Internal.number();

/// What results are held against.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Where the bytes of results are taken from.
    pub budget: Budget,
    /// Takes the values of secrets out of results. One that looks for nothing costs nothing: for a provider that does
    /// it where text comes in.
    pub redactor: Redactor,
}

/// The stage in front of a provider. Clones share it.
#[derive(Clone)]
pub struct Upstream {
    provider: Arc<dyn ToolProvider>,
    guard: Arc<Guard>,
    catalogues: Catalogues,
    large_results: Arc<Semaphore>,
    threads: LowThreads,
    over: CancellationToken,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("servers", &self.provider.servers()).finish_non_exhaustive()
    }
}

impl Upstream {
    /// The stage in front of this provider.
    #[must_use]
    pub fn new(provider: Arc<dyn ToolProvider>, guard: Guard) -> Self {
        let catalogues = Catalogues::new(Arc::clone(&provider), guard.redactor.clone());
        let large_results = Arc::new(Semaphore::new(LARGE_AT_ONCE));
        Self {
            provider,
            guard: Arc::new(guard),
            catalogues,
            large_results,
            threads: LowThreads::new(),
            over: CancellationToken::new(),
        }
    }

    /// The same, which offers only what is as it was pinned.
    #[must_use]
    pub fn pinned(self, pins: Option<Pins>) -> Self {
        Self { catalogues: self.catalogues.pinned(pins), ..self }
    }

    /// What its servers offer.
    #[must_use]
    pub fn catalogues(&self) -> &Catalogues {
        &self.catalogues
    }

    /// Carries a call out, once. Cancelling `cancel` tells the provider. What happens before the answer goes to its watcher,
    /// as far as that keeps up.
    pub async fn execute(&self, admitted: Admitted, cancel: &CancellationToken, watcher: &Watcher) -> Executed {
        Executed::by(admitted, |outgoing| self.send(outgoing, cancel, watcher)).await
    }

    /// Ends the provider, and then every call that it has left running.
    pub async fn shutdown(&self) {
        self.provider.shutdown().await;
        self.over.cancel();
    }

    /// Sends what was admitted. Private: an [`Outgoing`] comes out of an admission and nowhere else.
    async fn send(&self, outgoing: Outgoing, cancel: &CancellationToken, watcher: &Watcher) -> Outcome {
        let offered = tokio::select! {
            biased;
            () = cancel.cancelled() => return Outcome::NotSent(NotSent::Cancelled),
            offered = self.catalogues.vetted(outgoing.server(), Duration::ZERO) => offered,
        };
        match offered {
            Ok(vetted) if !outgoing.request().is_current(|name| vetted.tool(name)) => {
                return Outcome::NotSent(NotSent::Changed);
            }
            Ok(_) => {}
            Err(why) => return Outcome::NotSent(NotSent::Unavailable(why.to_string())),
        }
        if cancel.is_cancelled() {
            return Outcome::NotSent(NotSent::Cancelled);
        }
        let server = outgoing.server().clone();
        let limits = outgoing.limits();
        let pause = outgoing.elicitor().map(|elicitor| elicitor.pause().clone()).unwrap_or_default();
        // What the call itself says is no secret to whoever made it, and its answer must not tell a right guess.
        let redactor = self.guard.redactor.sparing(outgoing.texts());
        let events = watcher.events(&redactor);
        let context = CallContext { cancel: cancel.clone(), events };
        let called = AssertUnwindSafe(async { self.provider.call(outgoing, context).await }).catch_unwind();
        let ended = tokio::select! {
            biased;
            ended = called => ended,
            why = self.overdue(limits.calls.total_time, &pause, cancel) => return Outcome::Unknown(why),
        };
        match ended {
            Ok(outcome) => self.checked(outcome, &server, &redactor, &limits.calls).await,
            Err(_panic) => {
                tracing::error!(%server, "a call panicked; it ended alone");
                let message = format!(
                    "Server \"{server}\" failed inside while it ran the call, which may have had its effect; do not \
                     repeat it blindly"
                );
                Outcome::ServerError { code: INTERNAL_ERROR, message }
            }
        }
    }

    /// Ends when a provider should have ended by itself, and did not.
    async fn overdue(&self, total_time: Duration, pause: &Pause, cancel: &CancellationToken) -> NoAnswer {
        tokio::select! {
            () = pause.pass(total_time.saturating_add(GRACE)) => NoAnswer::Timeout,
            () = self.over.cancelled() => NoAnswer::ServerGone,
            () = async {
                cancel.cancelled().await;
                tokio::time::sleep(GRACE).await;
            } => NoAnswer::Cancelled,
        }
    }

    /// What every provider's answer is held against.
    async fn checked(
        &self,
        outcome: Outcome,
        server: &ServerName,
        redactor: &Redactor,
        limits: &CallLimits,
    ) -> Outcome {
        let limit = limits.result_bytes;
        match outcome {
            Outcome::Result(result) if result.text.get().len() > limit => Outcome::too_large(limit),
            Outcome::Result(result) if !result.text.get().starts_with('{') => Outcome::Unknown(NoAnswer::Unusable),
            Outcome::Result(result) => match self.looked_over(result, server, redactor).await {
                Ok(result) => self.held(result, limits.busy_after).await,
                Err(why) => why,
            },
            Outcome::ServerError { code, message } => {
                Outcome::ServerError { code, message: redactor.scrub(&message).into_owned() }
            }
            Outcome::NotSent(NotSent::Unavailable(why)) => {
                Outcome::NotSent(NotSent::Unavailable(redactor.scrub(&why).into_owned()))
            }
            Outcome::Declined(why) => Outcome::Declined(redactor.scrub(&why).into_owned()),
            other => other,
        }
    }

    /// A result as it is handed on, or what to say instead. A large one does not hold up the calls of others.
    async fn looked_over(
        &self,
        result: RawResult,
        server: &ServerName,
        redactor: &Redactor,
    ) -> Result<RawResult, Outcome> {
        if result.text.get().len() <= LARGE_RESULT {
            return look_over(result, server, redactor);
        }
        let _place = self.large_results.acquire().await;
        let (server, redactor) = (server.clone(), redactor.clone());
        let looked = self.threads.run(move || look_over(result, &server, &redactor)).await;
        looked.unwrap_or(Err(Outcome::Unknown(NoAnswer::Unusable)))
    }

    /// Takes the bytes of a result from the budget, unless its provider did.
    async fn held(&self, mut result: RawResult, patience: Duration) -> Outcome {
        let bytes = result.text.get().len();
        if result.held.is_none() {
            match timeout(patience, self.guard.budget.wait(bytes)).await {
                Ok(Ok(held)) => result.held = Some(held),
                _ => return Outcome::Unknown(NoAnswer::Busy),
            }
        }
        Outcome::Result(result)
    }
}

/// A call that was carried out, or not, and its receipt. Only this stage makes one, from an [`Admitted`].
#[derive(Debug)]
pub struct Executed {
    receipt: Receipt,
    outcome: Outcome,
    passed: Option<Box<ExchangeRecord>>,
}

impl Executed {
    /// Takes the admission apart and carries it out. The only way to an [`Executed`].
    async fn by<F>(admitted: Admitted, send: impl FnOnce(Outgoing) -> F) -> Self
    where
        F: Future<Output = Outcome>,
    {
        let (outgoing, receipt) = admitted.depart();
        Self { receipt, outcome: send(outgoing).await, passed: None }
    }

    /// Of a request to a service that has no answer; its carrier took the admission apart.
    pub(crate) fn without_answer(receipt: Receipt, unanswered: Unanswered) -> Self {
        let Unanswered { outcome, passed } = unanswered;
        Self { receipt, outcome, passed }
    }

    /// For `close`, which turns it into a reply.
    pub(crate) fn into_parts(self) -> (Receipt, Outcome, Option<Box<ExchangeRecord>>) {
        (self.receipt, self.outcome, self.passed)
    }
}

/// A result that readers take alike, without the values of secrets.
fn look_over(result: RawResult, server: &ServerName, redactor: &Redactor) -> Result<RawResult, Outcome> {
    if let Err(why) = json::check_result(result.text.get(), MAX_RESULT_DEPTH) {
        return Err(refused(server, why));
    }
    let members = ToolMembers::of(&result);
    if members.is_task() {
        return Err(Outcome::Unknown(NoAnswer::Unusable));
    }
    members.check().map_err(|why| refused(server, why))?;
    let RawResult { text, held } = scrubbed(redactor, result).map_err(Outcome::Unknown)?;
    Ok(RawResult { text: with_whole_pairs(text), held })
}

fn refused(server: &ServerName, why: impl fmt::Display) -> Outcome {
    let message = format!(
        "The result of server \"{server}\" is refused: {why}. The call was made; do not repeat it blindly, ask for less or \
         tell whoever wrote the server"
    );
    Outcome::ServerError { code: INTERNAL_ERROR, message }
}

/// What everybody reads of a tool's result (`CallToolResult` of MCP). Results of other requests have no such members.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolMembers<'r> {
    #[serde(borrow)]
    content: Option<&'r RawValue>,
    #[serde(borrow)]
    structured_content: Option<&'r RawValue>,
    #[serde(borrow)]
    is_error: Option<&'r RawValue>,
    #[serde(borrow)]
    task: Option<&'r RawValue>,
}

impl<'r> ToolMembers<'r> {
    /// Those of a result that is an object and has no name twice: what is otherwise is refused for that.
    fn of(result: &'r RawResult) -> Self {
        serde_json::from_str(result.text.get()).unwrap_or_default()
    }

    /// Whether it says that the call goes on as a task, which nobody asked for: a task that was asked for is awaited by
    /// whoever asked, and its result is what comes here.
    fn is_task(&self) -> bool {
        let is_object = self.task.is_some_and(|task| task.get().starts_with('{'));
        is_object && self.content.is_none() && self.structured_content.is_none()
    }

    /// Whether they are as they have to be: some would take another for a success, and others for no answer. A result that
    /// leaves them out, or says null, is understood alike.
    fn check(&self) -> Result<(), &'static str> {
        let is_object = |item: &&RawValue| item.get().starts_with('{');
        let items = self.content.map(|content| serde_json::from_str::<Vec<&RawValue>>(content.get()));
        if items.is_some_and(|items| !items.is_ok_and(|items| items.iter().all(is_object))) {
            return Err("its \"content\" is no list of objects");
        }
        match self.is_error.map(RawValue::get) {
            None | Some("true" | "false") => Ok(()),
            Some(_) => Err("its \"isError\" is neither true nor false"),
        }
    }
}

/// A result without the values of secrets. One that was a number leaves no JSON, and then there is no result.
fn scrubbed(redactor: &Redactor, result: RawResult) -> Result<RawResult, NoAnswer> {
    let clean = match redactor.scrub(result.text.get()) {
        Cow::Borrowed(_) => return Ok(result),
        Cow::Owned(clean) => clean,
    };
    let text = RawValue::from_string(clean).map_err(|_| NoAnswer::Unusable)?;
    Ok(RawResult { text, ..result })
}

#[cfg(test)]
mod tests;
