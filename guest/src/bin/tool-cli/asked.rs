//! The client of a step: asking, and asking again where that is right, and printing what was listed.

use std::{
    hash::{BuildHasher as _, RandomState},
    thread,
    time::{Duration, Instant},
};

use footbridge_cli::{
    destination::Prepared,
    layout, output,
    render::{Rendered, Shape},
    result,
};
use footbridge_guest::{
    Client, ClientError,
    answers::{CallResult, ToolDescription},
    client::parse_result,
};
use footbridge_proto::{approval::ApprovalStatus, wire::method};
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{json, value::RawValue};

use crate::{
    failure::Failure,
    pauses::Pauses,
    progress::{Line, ToldToo},
};

/// How long after a question what became of an approval is asked for again, where the bridge did not wait itself.
const AWAIT_EVERY: Duration = Duration::from_secs(5);

/// What became of an approval, or the result of the call that it was for.
#[derive(Deserialize)]
struct Waited {
    state: Option<ApprovalStatus>,
    content: Option<IgnoredAny>,
    contents: Option<IgnoredAny>,
}

/// Whether a method has effects, may take long, and tells what happens meanwhile.
fn is_call(method: &str) -> bool {
    matches!(method, method::CALL_TOOL | method::READ_RESOURCE | method::GET_PROMPT)
}

/// Bits that no other process has: the standard library takes its keys from the system.
pub(crate) fn at_random() -> u64 {
    RandomState::new().hash_one(())
}

/// A tool, and all that is known of it.
pub(crate) fn described(
    asked: &mut Asked,
    server: &str,
    tool: &str,
) -> Result<(Box<RawValue>, ToolDescription), Failure> {
    asked.get::<ToolDescription>(method::DESCRIBE_TOOL, &json!({ "server": server, "tool": tool }))
}

/// Waiting is no call: where no answer came in time, nothing was cancelled and nothing may have happened.
fn waits_on(failure: Failure, approval: &str) -> Failure {
    match failure {
        Failure::Client { source: ClientError::TimedOut { sent: true, .. } | ClientError::Silent { .. }, .. } => {
            Failure::request(ClientError::Unanswered { approval: approval.to_owned() }, false)
        }
        failure => failure,
    }
}

/// The client, and how results are printed.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) client: Client,
    pub(crate) json: bool,
    /// How results are.
    pub(crate) shape: Shape,
    /// What is told of a call that takes long.
    pub(crate) told_too: ToldToo,
    /// Whether whoever reads errors is helped by more than the bridge says.
    pub(crate) hints: bool,
    /// When asking again is over.
    pub(crate) deadline: Instant,
}

impl Asked {
    /// Asks, and reads the result, which is given as its text too.
    pub(crate) fn get<T: DeserializeOwned>(
        &mut self,
        method: &'static str,
        params: &impl Serialize,
    ) -> Result<(Box<RawValue>, T), Failure> {
        let raw = self.ask(method, params)?;
        let result = parse_result(method, &raw).map_err(|e| Failure::request(e, is_call(method)))?;
        Ok((raw, result))
    }

    /// Asks, and asks again where the bridge says that nothing was sent on and when to come back: a loop in a script, or
    /// many at once, need not know of rates and places. What may have happened is never asked again.
    fn ask(&mut self, method: &'static str, params: &impl Serialize) -> Result<Box<RawValue>, Failure> {
        let mut pauses = Pauses::default();
        loop {
            let answer = if is_call(method) {
                let mut line = Line::new(self.json, self.told_too);
                self.client.request_watched(method, params, &mut |event| line.tell(&event))
            } else {
                self.client.request(method, params)
            };
            let error = match answer {
                Err(error) => error,
                Ok(raw) => return Ok(raw),
            };
            match self.client.come_back(&error).and_then(|told| pauses.next(told, self.left(), at_random())) {
                Some(pause) => thread::sleep(pause),
                None => return Err(Failure::request(error, is_call(method))),
            }
        }
    }

    /// What became of an approval. A bridge says after a while that nobody has answered yet: then it is asked again, as long
    /// as there is time.
    fn awaited(&mut self, id: &str) -> Result<(Box<RawValue>, Waited), Failure> {
        loop {
            let began = Instant::now();
            let answered = self.get::<Waited>(method::AWAIT_APPROVAL, &json!({ "id": id }));
            let (raw, waited) = answered.map_err(|failure| waits_on(failure, id))?;
            let rest = AWAIT_EVERY.saturating_sub(began.elapsed());
            if waited.state != Some(ApprovalStatus::Pending) || self.left() <= rest {
                return Ok((raw, waited));
            }
            thread::sleep(rest);
            // No longer than all of it may take.
            self.client = self.client.clone().with_timeout(self.left().max(Duration::from_millis(1)));
        }
    }

    /// How much time is left.
    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// A grant may bring the result of the call that it is for; without one, its state is all there is.
    pub(crate) fn wait(&mut self, id: String, to: Option<Prepared>) -> Result<(), Failure> {
        let (raw, waited) = self.awaited(&id)?;
        let shape = |e| Failure::request(e, true);
        match waited {
            Waited { contents: Some(_), .. } => {
                let resource = parse_result(method::AWAIT_APPROVAL, &raw).map_err(shape)?;
                Ok(result::print(&raw, Rendered::resource(resource), &self.shape, to)?)
            }
            Waited { state: Some(state), content: None, .. } => {
                let granted = state.is_allowed();
                if self.json {
                    output::print(&(layout::one_line(&raw) + "\n"))?;
                } else if granted {
                    output::print(&format!("approval {id} is {state}\n"))?;
                }
                if granted { Ok(()) } else { Err(Failure::Approval { id, state }) }
            }
            _ => {
                let answer = parse_result(method::AWAIT_APPROVAL, &raw).map_err(shape)?;
                self.finish_call(&raw, answer, to)
            }
        }
    }

    /// Asks for a listing, and prints it.
    pub(crate) fn list<T: DeserializeOwned>(
        &mut self,
        method: &'static str,
        params: &impl Serialize,
        show: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        let (raw, result) = self.get(method, params)?;
        Ok(output::print(&if self.json { layout::one_line(&raw) + "\n" } else { show(&result) })?)
    }

    /// Prints what a tool answered.
    pub(crate) fn finish_call(&self, raw: &RawValue, answer: CallResult, to: Option<Prepared>) -> Result<(), Failure> {
        if result::print_call(raw, answer, &self.shape, to)? { Ok(()) } else { Err(Failure::Tool) }
    }
}
