//! The task of each approval while it is pending or granted: the operator's programs are asked, and it ends in time
//! though nobody looks.

use footbridge_proto::text::Escaped;
use tokio::{sync::Semaphore, time::sleep_until};

use super::{Answer, ApprovalId, Approvals, CommandSpec, NotAnswered, Webhook, command, view, webhook};

/// Questions to one program of the operator at a time.
const AT_A_TIME: usize = 4;

/// The operator's programs, and who waits for them.
pub(super) struct Programs {
    command: Option<CommandSpec>,
    commands: Semaphore,
    webhook: Option<Webhook>,
    webhooks: Semaphore,
}

impl Programs {
    pub(super) fn new(command: Option<CommandSpec>, webhook: Option<Webhook>) -> Self {
        let (commands, webhooks) = (Semaphore::new(AT_A_TIME), Semaphore::new(AT_A_TIME));
        Self { command, commands, webhook, webhooks }
    }

    /// Whether there is one.
    pub(super) fn any(&self) -> bool {
        self.command.is_some() || self.webhook.is_some()
    }
}

impl Approvals {
    /// Has the operator's programs asked about a pending approval, and ends it in time.
    pub(super) async fn attend(self, id: ApprovalId) {
        let all = async { tokio::join!(self.ask_programs(id), self.end_in_time(id)) };
        tokio::select! {
            () = self.0.over.cancelled() => {}
            ((), ()) = all => {}
        }
    }

    async fn end_in_time(&self, id: ApprovalId) {
        let mut changed = self.watch();
        loop {
            changed.borrow_and_update();
            let until = self.with(|book, now| {
                book.sweep(now);
                book.get(id).map(|entry| entry.until)
            });
            let Some(until) = until else { return };
            tokio::select! {
                () = sleep_until(until) => {}
                // The sender is as old as this.
                _ = changed.changed() => {}
            }
        }
    }

    /// Asks all of them at once. What still runs when it is decided is cut off.
    async fn ask_programs(&self, id: ApprovalId) {
        let all = async { tokio::join!(self.ask_command(id), self.ask_webhook(id)) };
        tokio::select! {
            ((), ()) = all => {}
            () = self.decided(id) => {}
        }
    }

    async fn ask_command(&self, id: ApprovalId) {
        let Some(spec) = &self.0.programs.command else { return };
        // Never closed.
        let Ok(_turn) = self.0.programs.commands.acquire().await else { return };
        let Some(question) = self.question(id) else { return };
        match command::ask(spec, &question, self.0.limits.command_time).await {
            Ok(answer) => self.answered(id, answer, &format!("command {}", spec.name())),
            Err(error) => tracing::warn!(approval = %id, %error, "the approval command gave no answer"),
        }
    }

    async fn ask_webhook(&self, id: ApprovalId) {
        let Some(webhook) = &self.0.programs.webhook else { return };
        // Never closed.
        let Ok(_turn) = self.0.programs.webhooks.acquire().await else { return };
        let Some(question) = self.question(id) else { return };
        match webhook::ask(webhook, question).await {
            Ok(answer) => self.answered(id, answer, &format!("webhook {}", webhook.name())),
            Err(error) => {
                // Names in a certificate are the other side's words.
                let error = error.to_string();
                tracing::warn!(approval = %id, error = %Escaped(&error), "the approval webhook gave no answer");
            }
        }
    }

    /// What is asked, while it is pending.
    fn question(&self, id: ApprovalId) -> Option<String> {
        self.with(|book, _| {
            book.get(id).filter(|entry| entry.granted.is_none()).and_then(|entry| view::for_programs(id, entry))
        })
    }

    fn answered(&self, id: ApprovalId, answer: Answer, by: &str) {
        match self.answer(id, answer, by) {
            Ok(()) => {}
            Err(NotAnswered::Unfit(_, why)) => {
                let why = why.to_string();
                tracing::warn!(approval = %id, by, why = %Escaped(&why), "an answer does not fit what was asked");
            }
            Err(late) => tracing::debug!(%late, by, "an answer was late"),
        }
    }

    /// Waits until it is not pending any more.
    async fn decided(&self, id: ApprovalId) {
        let mut changed = self.watch();
        loop {
            changed.borrow_and_update();
            if self.with(|book, _| book.get(id).is_none_or(|entry| entry.granted.is_some())) {
                return;
            }
            // The sender is as old as this.
            let _ = changed.changed().await;
        }
    }
}
