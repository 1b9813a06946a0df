//! What every loop around a prompt does alike. How it waits for keys and changes is its own: `run` and one-shot calls
//! wait for approvals of their own process beside other tasks, `approvals watch` asks other processes and has no runtime.

use std::{io, time::Instant};

use super::{Prompt, PromptAnswer, Step};
use footbridge_calls::{
    approval::{Answer, ApprovalInfo, Approvals},
    operator::Operator,
};

/// Who takes the answers of a prompt, and brings its terminal.
pub(crate) trait TakesAnswers {
    /// The whole arguments of an approval.
    fn arguments(&mut self, id: &str) -> anyhow::Result<String>;

    /// Answers one.
    fn answer(&mut self, id: &str, word: PromptAnswer) -> anyhow::Result<()>;

    /// Forgets the keys that nobody has read.
    fn forget_keys(&mut self) -> io::Result<()>;
}

/// What a key came to for the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterKey {
    /// It goes on.
    Stay,
    /// The same, after an answer.
    Answered,
    /// It ends.
    Leave,
    /// The same, and the command is interrupted.
    Stop,
}

impl Prompt {
    /// Takes what waits for an answer now, the oldest first, with all that is to be shown of it.
    pub(crate) fn renew(&mut self, waiting: Vec<ApprovalInfo>, takes: &mut impl TakesAnswers) -> io::Result<()> {
        let step = self.update(waiting, Instant::now());
        self.does(step, takes)?;
        if let Some(id) = self.missing() {
            self.whole(takes.arguments(&id));
        }
        Ok(())
    }

    /// Takes a key, and does what it comes to.
    pub(crate) fn typed(&mut self, key: u8, takes: &mut impl TakesAnswers) -> io::Result<AfterKey> {
        let step = self.feed(key, Instant::now());
        self.does(step, takes)
    }

    fn does(&mut self, step: Step, takes: &mut impl TakesAnswers) -> io::Result<AfterKey> {
        match step {
            Step::Nothing => Ok(AfterKey::Stay),
            Step::Turned => takes.forget_keys().map(|()| AfterKey::Stay),
            Step::Leave => Ok(AfterKey::Leave),
            Step::Stop => Ok(AfterKey::Stop),
            Step::Answer(id, word) => {
                let answered = takes.answer(&id, word);
                let step = self.answered(&id, word, answered, Instant::now());
                self.does(step, takes).map(|_| AfterKey::Answered)
            }
        }
    }
}

/// The approvals of this process, before the person at its terminal.
pub(crate) struct OwnApprovals<'a, F> {
    pub(crate) approvals: &'a Approvals,
    /// By what they are answered, for the record.
    pub(crate) means: &'static str,
    pub(crate) forget_keys: F,
}

impl<F: FnMut() -> io::Result<()>> TakesAnswers for OwnApprovals<'_, F> {
    fn arguments(&mut self, id: &str) -> anyhow::Result<String> {
        Ok(self.approvals.show(id.parse()?)?.arguments)
    }

    fn answer(&mut self, id: &str, word: PromptAnswer) -> anyhow::Result<()> {
        let answer = match word {
            PromptAnswer::Allow { remember } => Answer::Allow { remember },
            PromptAnswer::Deny => Answer::Deny,
        };
        let operator = Operator::ThisProcess { uid: nix::unistd::geteuid().as_raw() };
        Ok(self.approvals.answer(id.parse()?, answer, &operator, self.means)?)
    }

    fn forget_keys(&mut self) -> io::Result<()> {
        (self.forget_keys)()
    }
}
