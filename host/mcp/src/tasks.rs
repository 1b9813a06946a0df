//! Calls that a server runs as tasks (MCP 2025-11-25): where a tool demands it its call is one, and looks like any other.
//!
//! States: working (the server is asked how it is, as often as it wants, within bounds; what it says is progress); then
//! its result is asked for, once it is over, or once it waits for a person, since questions to one come that way, and
//! how it is all the while. Failure paths: what the server says of it cannot be read; it does not answer about it in
//! time; it cancels it itself; the call's time is over or its client left, and then it is told so, if it takes that.

use std::time::Duration;

use footbridge_proto::rpc::ErrorCode;
use rmcp::model::{ClientRequest, CustomRequest};
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    NoAnswer,
    ask::{Ended, TELLING, Times, ask},
    interceptor::cut_message,
    live::Live,
    pending_request::{Answer, PendingRequest},
};

/// Between two looks at a task, whatever its server would like.
const LEAST_PAUSE: Duration = Duration::from_millis(100);
const MOST_PAUSE: Duration = Duration::from_secs(5);
/// The same where it does not say.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest name of a task, bytes: it is repeated with each look.
const MAX_ID: usize = 1024;

const INTERNAL_ERROR: i64 = ErrorCode::Internal.number();

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

/// How a task is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskState {
    status: Status,
    #[serde(default)]
    status_message: Option<String>,
    #[serde(default)]
    poll_interval: Option<f64>,
}

impl TaskState {
    /// What a server says of a task; of its message no more than is kept of an error's, since it outlives the answer.
    fn read(text: &RawValue) -> Option<Self> {
        let state: Self = serde_json::from_str(text.get()).ok()?;
        Some(Self { status_message: state.status_message.map(cut_message), ..state })
    }

    /// How long it is left alone.
    fn pause(&self) -> Duration {
        let wanted = self.poll_interval.and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok());
        wanted.unwrap_or(PAUSE).clamp(LEAST_PAUSE, MOST_PAUSE)
    }

    fn is_over(&self) -> bool {
        matches!(self.status, Status::Completed | Status::Failed | Status::Cancelled)
    }
}

/// A task that a server has begun for a call.
pub(super) struct Task<'a> {
    live: &'a Live,
    call: &'a PendingRequest,
    /// How long the server may take to answer about it.
    idle: Duration,
    id: String,
    state: TaskState,
    /// What of it was told to whoever waits for the call.
    steps: f64,
}

impl<'a> Task<'a> {
    /// The task that the answer to a call is; none where it is a result, as of any other call.
    pub(super) fn begun(
        live: &'a Live,
        call: &'a PendingRequest,
        answer: &RawValue,
        idle: Duration,
    ) -> Option<Result<Self, Ended>> {
        #[derive(Deserialize)]
        struct Created<'t> {
            #[serde(borrow)]
            task: &'t RawValue,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Named {
            task_id: String,
        }
        let Created { task } = serde_json::from_str(answer.get()).ok()?;
        let id = serde_json::from_str::<Named>(task.get()).ok().map(|named| named.task_id);
        let known = id.filter(|id| id.len() <= MAX_ID).zip(TaskState::read(task));
        let task = known.map(|(id, state)| Self { live, call, idle, id, state, steps: 0.0 });
        Some(task.ok_or(Ended::Answered(Answer::Unusable)))
    }

    /// Follows it to its end.
    pub(super) async fn ended(mut self, total: Duration, cancel: &CancellationToken) -> Ended {
        let (live, pause) = (self.live, self.call.pause());
        let why = tokio::select! {
            ended = self.followed() => return ended,
            () = cancel.cancelled() => NoAnswer::Cancelled,
            () = live.gone.cancelled() => NoAnswer::ServerGone,
            () = pause.pass(total) => NoAnswer::Timeout,
        };
        if why != NoAnswer::ServerGone && live.interceptor.tasks().cancels {
            let _told = timeout(TELLING, self.asks("tasks/cancel", self.idle)).await;
        }
        Ended::Unanswered { left: true, why }
    }

    async fn followed(&mut self) -> Ended {
        self.tell();
        while self.state.status == Status::Working {
            if let Err(ended) = self.look().await {
                return ended;
            }
        }
        if self.state.status == Status::Cancelled {
            let said = self.state.status_message.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
            let message = format!("The server cancelled the task that it ran for the call{said}");
            return Ended::Answered(Answer::Error { code: INTERNAL_ERROR, message });
        }
        // Until it is over its end is nearer with each look alone.
        let patience = if self.state.is_over() { self.idle } else { Duration::MAX };
        let result = {
            let (live, call, id) = (self.live, self.call.clone(), self.id.clone());
            async move { about(live, &call, &id, "tasks/result", patience).await }
        };
        tokio::select! {
            ended = result => ended,
            ended = self.attended() => ended,
        }
    }

    /// Looks at it while its result is waited for. Ends where that is in vain.
    async fn attended(&mut self) -> Ended {
        while !self.state.is_over() {
            match self.look().await {
                Ok(()) => {}
                // It may be forgotten as soon as its result is on the way.
                Err(Ended::Answered(_)) => break,
                Err(ended) => return ended,
            }
        }
        sleep(self.idle).await;
        Ended::Unanswered { left: true, why: NoAnswer::Silent }
    }

    /// Waits, and asks how it is.
    async fn look(&mut self) -> Result<(), Ended> {
        sleep(self.state.pause()).await;
        let state = match self.asks("tasks/get", self.idle).await {
            Ended::Answered(Answer::Result(text, _)) => TaskState::read(&text),
            Ended::Unanswered { why, .. } => return Err(Ended::Unanswered { left: true, why }),
            ended => return Err(ended),
        };
        let state = state.ok_or(Ended::Answered(Answer::Unusable))?;
        let is_news = state.status != self.state.status || state.status_message != self.state.status_message;
        self.state = state;
        if is_news {
            self.tell();
        }
        Ok(())
    }

    /// Tells whoever waits for the call how it is, where the server has words for it.
    fn tell(&mut self) {
        if let Some(text) = &self.state.status_message {
            self.steps += 1.0;
            self.call.progressed(self.steps, None, Some(text));
        }
    }

    async fn asks(&self, method: &str, idle: Duration) -> Ended {
        about(self.live, self.call, &self.id, method, idle).await
    }
}

/// Sends a request about a task.
async fn about(live: &Live, call: &PendingRequest, id: &str, method: &str, idle: Duration) -> Ended {
    let request = ClientRequest::CustomRequest(CustomRequest::new(method, Some(json!({"taskId": id}))));
    let times = Times { idle, total: idle };
    ask(live, request, PendingRequest::about(call), times, &CancellationToken::new()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn of_a_long_message_a_part_is_kept() {
        let text = json!({"status": "cancelled", "statusMessage": "x".repeat(9_000_000)}).to_string();
        let message = TaskState::read(&raw(&text)).unwrap().status_message.unwrap();
        assert!(message.len() < 70_000 && message.capacity() < 100_000 && message.ends_with("too long]"));
    }

    #[test]
    fn a_task_is_looked_at_as_often_as_its_server_wants_within_bounds() {
        let pause = |interval: &str| {
            TaskState::read(&raw(&format!(r#"{{"status":"working","taskId":"t"{interval}}}"#))).unwrap().pause()
        };
        assert_eq!(pause(""), PAUSE);
        assert_eq!(pause(r#","pollInterval":null"#), PAUSE);
        assert_eq!(pause(r#","pollInterval":250"#), Duration::from_millis(250));
        assert_eq!(pause(r#","pollInterval":0"#), LEAST_PAUSE);
        assert_eq!(pause(r#","pollInterval":-1"#), PAUSE);
        assert_eq!(pause(r#","pollInterval":1e300"#), PAUSE);
        assert_eq!(pause(r#","pollInterval":86400000"#), MOST_PAUSE);
    }
}
