//! Who is asked about the calls of a run: the person in front of its terminal, while its command is held; whoever uses
//! `footbridge approvals`; the operator's command; or nobody, which is said once.

mod pace;

use std::{
    collections::BTreeSet,
    io,
    ops::ControlFlow::{Break, Continue},
    time::{Duration, Instant},
};

use tokio::{sync::watch, time::sleep};

use crate::{
    approvers::prompt::{
        Prompt, PromptContext,
        loops::{AfterKey, OwnApprovals},
    },
    report,
};
use footbridge_calls::approval::{ApprovalInfo, Approvals};
use footbridge_processes::pty::{self, BorrowedTerminal, Unaskable};
use pace::Pace;

/// What the terminal shows, where others answer too.
const HERE: PromptContext = PromptContext { name: "footbridge run", leave: "later", stop: Some("stop"), others: true };

/// How long the operator's command may answer before the person is asked as well: a quick one takes no keys away.
const COMMAND_FIRST: Duration = Duration::from_secs(1);

/// How long a call waits in any case: what others answer at once is not worth a prompt.
const SETTLE: Duration = Duration::from_millis(300);

/// How often it is looked how long is left.
const EVERY: Duration = Duration::from_secs(1);

/// Asks on the terminal of the run.
pub(super) struct Person {
    approvals: Approvals,
    place: PromptContext,
    changed: watch::Receiver<u64>,
    pace: Pace,
}

impl Person {
    /// What was left for later comes back where `others` than this person do not answer.
    pub(super) fn new(approvals: &Approvals, others: bool) -> Self {
        let settle = if approvals.asks_approvers() { COMMAND_FIRST } else { SETTLE };
        let pace = Pace::new(settle, !others);
        let place = PromptContext { others, ..HERE };
        Self { approvals: approvals.clone(), place, changed: approvals.watch(), pace }
    }

    async fn change(&mut self) {
        if self.changed.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// What waits, and last what was left.
    fn waiting(&self, left: &BTreeSet<String>) -> Vec<ApprovalInfo> {
        let mut waiting = self.approvals.pending();
        waiting.sort_by_key(|one| left.contains(&one.id));
        waiting
    }
}

impl pty::Borrower for Person {
    async fn wants(&mut self) {
        let look = || {
            let (waiting, now) = (self.approvals.pending(), Instant::now());
            match self.pace.opens_at(waiting.iter().map(|one| one.id.as_str()), now) {
                Some(at) if at <= now => Break(()),
                due => Continue(due.map(Into::into)),
            }
        };
        self.approvals.look_until(look).await;
    }

    async fn uses(&mut self, terminal: &BorrowedTerminal<'_>) -> io::Result<()> {
        self.asks(terminal).await
    }
}

impl Person {
    /// Asks until nothing waits any more, or the person leaves.
    async fn asks(&mut self, terminal: &BorrowedTerminal<'_>) -> io::Result<()> {
        let (left, approvals) = (self.pace.opened(Instant::now()), self.approvals.clone());
        let forget_keys = || terminal.forget_keys();
        let mut takes = OwnApprovals { approvals: &approvals, means: "terminal of run", forget_keys };
        let mut prompt = Prompt::new(self.place, Instant::now());
        let (mut drawn, mut answered) = (String::new(), false);
        loop {
            self.changed.borrow_and_update();
            prompt.renew(self.waiting(&left), &mut takes)?;
            if prompt.waiting().all(|id| self.pace.is_left(id)) {
                self.pace.closed(answered, Instant::now());
                return Ok(());
            }
            let text = prompt.text(terminal.size());
            if text != drawn {
                terminal.write(&text).await?;
                drawn = text;
                prompt.drawn(Instant::now());
            }
            tokio::select! {
                keys = terminal.keys() => for key in keys? {
                    let after = prompt.typed(key, &mut takes)?;
                    match after {
                        AfterKey::Stay => {}
                        AfterKey::Answered => answered = true,
                        AfterKey::Leave | AfterKey::Stop => {
                            if after == AfterKey::Stop {
                                terminal.interrupt();
                            }
                            self.pace.leave(prompt.waiting(), Instant::now());
                            return Ok(());
                        }
                    }
                },
                () = self.change() => {}
                // It has less time left.
                () = sleep(EVERY) => {}
                // Some terminals move what is drawn.
                () = terminal.resized() => drawn.clear(),
            }
        }
    }
}

/// Says, once, that nobody can be asked and what to do about it.
pub(super) fn say_that_nobody_is_asked(policy: &str, unaskable: Option<Unaskable>) {
    let why = unaskable.map_or_else(String::new, |why| format!(": {why}"));
    let start = match unaskable {
        None | Some(Unaskable::Nowhere) => "start it on a terminal",
        Some(Unaskable::Input) => "start it with its standard input on a terminal",
        Some(Unaskable::Error) => "start it with its standard error on a terminal",
        Some(Unaskable::Piped) => "start it with its standard output on a terminal or into a file",
        Some(Unaskable::Background) => "start it in the foreground",
        Some(Unaskable::Dumb) => "start it on one that draws",
    };
    report::note(&format!(
        "footbridge: a call that policy {policy:?} asks about was denied, as all such calls of this run will be: there is no \
         terminal to ask on{why}. To be asked, {start}, or set watch = true (then use \"footbridge approvals watch\" \
         in another one), a command or a webhook in [approval] of footbridge.toml. To ask nothing, choose --policy readonly or \
         --policy open"
    ));
}
