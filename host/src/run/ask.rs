//! Who is asked about the calls of a run: the person in front of its terminal, while its command is held; whoever uses
//! `footbridge approvals`; the operator's command; or nobody, which is said once.

use std::{
    collections::BTreeSet,
    io,
    time::{Duration, Instant},
};

use tokio::{sync::watch, time::sleep};

use crate::{
    approval::{
        Answer, Approvals,
        prompt::{Place, Prompt, Step, Word},
    },
    log, pty,
    pty::Visited,
    report,
};

/// What the terminal shows.
const HERE: Place = Place { name: "footbridge run", leave: "later" };

/// How long the operator's command may answer before the person is asked as well: a quick one takes no keys away.
const COMMAND_FIRST: Duration = Duration::from_secs(1);

/// Asks on the terminal of the run.
pub(super) struct Person {
    approvals: Approvals,
    changed: watch::Receiver<u64>,
    /// Those that the person left for later: they do not open the prompt again.
    put_off: BTreeSet<String>,
    /// What the harness logs would be drawn over the question.
    held: Option<log::Held>,
}

impl Person {
    pub(super) fn new(approvals: &Approvals) -> Self {
        let changed = approvals.watch();
        Self { approvals: approvals.clone(), changed, put_off: BTreeSet::new(), held: None }
    }

    fn is_asked(&self) -> bool {
        self.approvals.pending().iter().any(|one| !self.put_off.contains(&one.id))
    }

    async fn change(&mut self) {
        if self.changed.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Does what a key came to. True to leave.
    fn does(&mut self, step: Step, prompt: &mut Prompt, terminal: &Visited<'_>) -> io::Result<bool> {
        match step {
            Step::Nothing => {}
            Step::Turned => terminal.forget_keys()?,
            Step::Leave => {
                self.put_off = prompt.waiting().map(str::to_owned).collect();
                return Ok(true);
            }
            Step::Whole(id) => {
                let parsed = id.parse().map_err(|error| format!("{error}"));
                let shown = parsed.and_then(|id| self.approvals.show(id).map_err(|error| error.to_string()));
                prompt.whole(shown.map(|shown| shown.arguments));
            }
            Step::Answer(id, word) => {
                let answered = self.answer(&id, word);
                let step = prompt.answered(&id, word, answered, Instant::now());
                return self.does(step, prompt, terminal);
            }
        }
        Ok(false)
    }

    fn answer(&self, id: &str, word: Word) -> Result<(), String> {
        let answer = match word {
            Word::Allow { remember } => Answer::Allow { remember },
            Word::Deny => Answer::Deny,
        };
        let approver = format!("terminal of run (uid {})", nix::unistd::geteuid());
        let id = id.parse().map_err(|error| format!("{error}"))?;
        self.approvals.answer(id, answer, &approver).map_err(|error| error.to_string())
    }
}

impl pty::Visitor for Person {
    async fn wants(&mut self) {
        self.held = None;
        loop {
            self.changed.borrow_and_update();
            if self.is_asked() {
                if self.approvals.asks_programs() {
                    sleep(COMMAND_FIRST).await;
                }
                if self.is_asked() {
                    return;
                }
            }
            self.change().await;
        }
    }

    async fn uses(&mut self, terminal: &Visited<'_>) -> io::Result<()> {
        self.held = Some(log::hold());
        let mut prompt = Prompt::new(HERE, Instant::now());
        let mut drawn = String::new();
        loop {
            self.changed.borrow_and_update();
            let step = prompt.update(self.approvals.pending(), Instant::now());
            self.does(step, &mut prompt, terminal)?;
            if prompt.waiting().all(|id| self.put_off.contains(id)) {
                return Ok(());
            }
            let text = prompt.text(terminal.size());
            if text != drawn {
                terminal.write(&text).await?;
                drawn = text;
            }
            tokio::select! {
                keys = terminal.keys() => for key in keys? {
                    let step = prompt.feed(key, Instant::now());
                    if self.does(step, &mut prompt, terminal)? {
                        return Ok(());
                    }
                },
                () = self.change() => {}
                // Some terminals move what is drawn.
                () = terminal.resized() => drawn.clear(),
            }
        }
    }
}

/// Says, once, that nobody can be asked and what to do about it.
pub(super) fn say_that_nobody_is_asked(policy: &str) {
    report::note(&format!(
        "footbridge: a call that policy {policy:?} asks about was denied, as all such calls of this run will be: there is no \
         terminal to ask on. To be asked, start it on a terminal, or set watch = true (then use \"footbridge approvals watch\" \
         in another one), a command or a webhook in [approval] of footbridge.toml. To ask nothing, choose --policy readonly or \
         --policy open"
    ));
}
