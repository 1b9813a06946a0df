//! What is behind the stages: anything that has tools and carries calls out.
//!
//! [`ToolProvider`] is what it has to be able to do. `Servers` of footbridge-mcp is one: MCP servers. [`InProcess`] has
//! functions of this process, and [`Several`] makes one of many.
//!
//! [`Upstream`](crate::upstream::Upstream) is the stage in front of any of them: it alone takes an [`Admitted`](crate::admit::Admitted) apart, so
//! no provider sees a call that was not admitted, nor one call twice. What holds for every provider is kept there: that
//! a definition is what was pinned and still the one that was decided about, the limit on results, the budget, the
//! time, and that a panic ends one call and no more.

mod elicit;
mod in_process;
mod outcome;
mod several;
mod tool;
mod unavailable;

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::events::Events;
pub use elicit::{Elicit, Elicited, MAX_QUESTION};
pub use in_process::{BadTools, InProcess, InProcessBuilder};
pub use outcome::{NoAnswer, NotSent, Outcome, Outgoing, RawResult, Unanswered};
pub use several::Several;
pub use tool::{ToolContext, ToolDefinition, ToolResult};
pub use unavailable::Unavailable;

use footbridge_core::{catalogue::Offered, names::ServerName};

/// Servers with tools, by name.
///
/// Methods may run side by side. What they say goes to guests as it is, so it holds no path, no address and no
/// credential of the host.
pub trait ToolProvider: Send + Sync + 'static {
    /// The names of all servers, sorted. The set may change while the harness runs.
    fn servers(&self) -> Arc<[ServerName]>;

    /// What a server offers now. One that is starting gets up to `wait`; with none it is only looked at.
    ///
    /// # Errors
    /// [`Unavailable`] with the text for the guest.
    fn catalogue<'a>(
        &'a self,
        server: &'a ServerName,
        wait: Duration,
    ) -> BoxFuture<'a, Result<Arc<Offered>, Unavailable>>;

    /// What a server offers, if it is ready at this moment. Nothing is started or waited for. A provider that cannot say
    /// has nothing, and what its servers offer is not watched.
    fn offered_now(&self, server: &ServerName) -> Option<Arc<Offered>> {
        let _ = server;
        None
    }

    /// Has a server asked again what it offers, unless that is known of this moment, and waits up to `wait` for it. What
    /// it offers is always known to a provider that need not ask.
    fn refresh<'a>(&'a self, server: &'a ServerName, wait: Duration) -> BoxFuture<'a, ()> {
        let _known = (server, wait);
        Box::pin(std::future::ready(()))
    }

    /// Carries a call out, once. Only a recorded admission makes an [`Outgoing`]. A resource is asked for only of a
    /// server whose catalogue has resources or templates, a prompt only where the catalogue has it; for any other
    /// request that it does not know a provider gives [`Outcome::not_offered`]. A tool's arguments fit its input schema, but
    /// for patterns that look ahead or back: what is left of the schema without those was checked, and they are the
    /// provider's to check.
    ///
    /// When `context.cancel` is cancelled nobody waits any more: end soon, and say what became of the call.
    fn call(&self, outgoing: Outgoing, context: CallContext) -> BoxFuture<'_, Outcome>;

    /// Ends what it has running, within a deadline of its own. Called once, when the harness ends.
    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// What goes with a call.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// Cancelled when the client left.
    pub cancel: CancellationToken,
    /// Where signs of life go.
    pub events: Events,
}
