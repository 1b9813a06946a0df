//! Who is asked about approvals: the operator's command, their webhook, and people at a prompt.

mod command;
mod decision;
pub(crate) mod prompt;
mod webhook;

use std::time::Duration;

pub use command::CommandSpec;
pub(crate) use webhook::OURS;
pub use webhook::Webhook;

use footbridge_calls::approval::Approver;
use footbridge_core::redact::Redactor;
use footbridge_processes::launch::Launcher;

/// Who can be asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalSettings {
    /// Whether people answer over the control socket. Where nothing is said, they do for `serve`, and for a `run` that
    /// has somebody in front of its terminal.
    pub watch: Option<bool>,
    /// The operator's command.
    pub command: Option<CommandSpec>,
    /// The operator's webhook.
    pub webhook: Option<Webhook>,
}

impl ApprovalSettings {
    /// Whether anybody can be asked, once people can come in.
    #[must_use]
    pub(crate) fn asks_anybody(&self) -> bool {
        self.watch.unwrap_or(true) || self.command.is_some() || self.webhook.is_some()
    }

    /// Those who are asked besides people; a command may take so long.
    pub(crate) fn approvers(
        &self,
        command_time: Duration,
        launcher: Launcher,
        redactor: Redactor,
    ) -> Vec<Box<dyn Approver>> {
        let command = self.command.clone();
        let command =
            command.map(|spec| Box::new(command::Command { spec, time: command_time, launcher, redactor }) as _);
        command.into_iter().chain(self.webhook.clone().map(|webhook| Box::new(webhook) as _)).collect()
    }
}

/// A session that could ask nobody.
#[derive(Debug, thiserror::Error)]
#[error(
    "policy {0:?} asks for approvals, and nobody can be asked: set watch = true, a command or a webhook in [approval] of footbridge.toml, \
     or take a policy that asks nothing, such as readonly or open"
)]
pub(crate) struct NobodyToAsk(pub(crate) String);
