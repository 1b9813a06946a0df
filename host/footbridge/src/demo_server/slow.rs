//! Counting slowly, and stopping it.

use std::time::Duration;

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, ErrorCode},
    service::RequestContext,
};
use serde_json::json;
use tokio::{sync::Semaphore, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{notify::tell, tools};

/// Most counts at a time.
const MAX_COUNTS: usize = 32;

/// Marks what a stopped count ends with. It is not sent: a cancelled request gets no answer, as MCP wants it, and
/// after the end of the input nobody waits for one.
pub(super) const STOPPED: ErrorCode = ErrorCode(-32800);

/// The counts that go on.
pub(super) struct Counts {
    room: Semaphore,
    over: CancellationToken,
}

impl Counts {
    /// All of them stop when it is `over`.
    pub(super) fn new(over: CancellationToken) -> Self {
        Self { room: Semaphore::new(MAX_COUNTS), over }
    }

    /// Counts, and reports progress where the caller wants it.
    ///
    /// # Errors
    /// [`STOPPED`].
    pub(super) async fn count(
        &self,
        to: u64,
        step: Duration,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let Ok(_room) = self.room.try_acquire() else {
            return Ok(tools::failure(format!("{MAX_COUNTS} counts go on already. Try again later.")));
        };
        let token = context.meta.get_progress_token();
        for n in 1..=to {
            tokio::select! {
                () = sleep(step) => {}
                () = context.ct.cancelled() => return Err(stopped()),
                () = self.over.cancelled() => return Err(stopped()),
            }
            if let Some(token) = &token {
                let message = format!("{n} of {to}");
                let params = json!({"progressToken": token, "progress": n, "total": to, "message": message});
                tell(&context.peer, "notifications/progress", params).await;
            }
        }
        Ok(tools::text(format!("Counted to {to}.")))
    }
}

fn stopped() -> ErrorData {
    ErrorData::new(STOPPED, "stopped", None)
}
