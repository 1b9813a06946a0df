//! `footbridge approvals watch`: asks on a terminal of its own about what waits at any harness of this user.
//!
//! The harnesses are asked a few times a second, so that those which start later are seen too. For that this process
//! stays visible to others of the same user, who could run `approvals allow` just as well; it holds no secret.
//!
//! What is shown and what keys mean is [`prompt`](crate::approvers::prompt)'s. The terminal is restored on every way out but `kill -9`.

mod terminal;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use super::{Connected, connected, show};
use crate::{
    approvers::prompt::{
        Prompt, PromptAnswer, PromptContext,
        loops::{AfterKey, TakesAnswers},
    },
    control::{
        self,
        client::{ControlClient, ControlClientError},
        wire::{AllowApproval, By, DenyApproval, ListApprovals, ShowApproval},
    },
    report,
};
use footbridge_calls::approval::ApprovalInfo;
use terminal::{Event, Terminal};

/// How often the harnesses are asked.
const EVERY: Duration = Duration::from_millis(300);

/// When one that did not answer is asked again.
const TRIED_AGAIN: Duration = Duration::from_secs(30);

/// The harnesses that answer.
struct Harnesses<'a> {
    runtime: &'a Path,
    clients: BTreeMap<PathBuf, ControlClient>,
    /// Those that run and do not answer, and when they were tried last.
    silent: BTreeMap<PathBuf, Instant>,
}

impl<'a> Harnesses<'a> {
    /// Those of this folder. Who does not answer now is said.
    fn of(runtime: &'a Path) -> anyhow::Result<Self> {
        let mut harnesses = Self { runtime, clients: BTreeMap::new(), silent: BTreeMap::new() };
        for error in harnesses.connect()? {
            report::error(&anyhow::Error::new(error));
        }
        Ok(harnesses)
    }

    /// Connects to those that came, and gives why new ones do not answer.
    fn connect(&mut self) -> anyhow::Result<Vec<ControlClientError>> {
        let mut paths = control::all(self.runtime)?;
        self.silent.retain(|path, _| paths.contains(path));
        let is_silent = |path: &PathBuf| self.silent.get(path).is_some_and(|at| at.elapsed() < TRIED_AGAIN);
        paths.retain(|path| !self.clients.contains_key(path) && !is_silent(path));
        let Connected { clients, silent } = connected(&paths);
        self.clients.extend(clients);
        let new = silent.into_iter().filter_map(|(path, error)| {
            let known = self.silent.insert(path, Instant::now());
            known.is_none().then_some(error)
        });
        Ok(new.collect())
    }

    /// What waits for an answer from here, the oldest first, and why those that are new do not answer. A harness that
    /// ended, or does not answer, has nothing.
    fn pending(&mut self) -> anyhow::Result<(Vec<ApprovalInfo>, Vec<ControlClientError>)> {
        let silent = self.connect()?;
        let mut found = Vec::new();
        self.clients.retain(|_, client| match client.call(&ListApprovals {}) {
            Ok(theirs) => {
                let is_ours = |one: &ApprovalInfo| one.state == "pending" && !one.is_answered_elsewhere;
                found.extend(theirs.into_iter().filter(is_ours));
                true
            }
            Err(_) => false,
        });
        found.sort_by(|a, b| (&a.asked, &a.id).cmp(&(&b.asked, &b.id)));
        Ok((found, silent))
    }

    fn ask<M: control::wire::Method>(&mut self, request: &M) -> anyhow::Result<M::Answer> {
        let mut all: Vec<ControlClient> = std::mem::take(&mut self.clients).into_values().collect();
        // They are connected to again the next time.
        Ok(super::ask_all(&mut all, request)?)
    }
}

/// Prints what comes and goes.
pub(super) fn print(runtime: &Path) -> anyhow::Result<()> {
    let mut harnesses = Harnesses::of(runtime)?;
    let mut known: BTreeSet<String> = BTreeSet::new();
    loop {
        let (pending, silent) = harnesses.pending()?;
        for error in silent {
            report::error(&anyhow::Error::new(error));
        }
        let now: BTreeSet<String> = pending.iter().map(|one| one.id.clone()).collect();
        let came = pending.iter().filter(|one| !known.contains(&one.id));
        let mut lines: Vec<_> = came.map(|one| serde_json::json!({"event": "pending", "approval": one})).collect();
        lines.extend(known.difference(&now).map(|id| serde_json::json!({"event": "gone", "id": id})));
        report::out(&show::json_lines(&lines)?)?;
        known = now;
        thread::sleep(EVERY);
    }
}

/// What the terminal shows.
const HERE: PromptContext = PromptContext { name: "footbridge approvals", leave: "quit", stop: None, others: true };

/// Shows and asks.
pub(super) fn on_terminal(runtime: &Path) -> anyhow::Result<()> {
    let harnesses = Harnesses::of(runtime)?;
    Watch { harnesses, terminal: Terminal::open()?, asked: None }.run()
}

struct Watch<'a> {
    harnesses: Harnesses<'a>,
    terminal: Terminal,
    /// When the harnesses were asked last; none when they are to be asked at once.
    asked: Option<Instant>,
}

impl Watch<'_> {
    fn run(mut self) -> anyhow::Result<()> {
        let mut prompt = Prompt::new(HERE, Instant::now());
        loop {
            if self.asked.is_none_or(|at| at.elapsed() >= EVERY) {
                // Who falls silent while the terminal is taken is said by the other commands.
                let (pending, _) = self.harnesses.pending()?;
                self.asked = Some(Instant::now());
                prompt.renew(pending, &mut self)?;
            }
            self.terminal.draw(prompt.text(self.terminal.size()))?;
            prompt.drawn(Instant::now());
            match self.terminal.wait(EVERY)? {
                Event::Nothing => {}
                Event::End => return Ok(()),
                Event::Keys(keys) => {
                    for key in keys {
                        match prompt.typed(key, &mut self)? {
                            AfterKey::Stay | AfterKey::Answered => {}
                            AfterKey::Leave | AfterKey::Stop => return Ok(()),
                        }
                    }
                }
            }
        }
    }
}

impl TakesAnswers for Watch<'_> {
    fn arguments(&mut self, id: &str) -> anyhow::Result<String> {
        Ok(self.harnesses.ask(&ShowApproval { id: id.to_owned() })?.arguments)
    }

    fn answer(&mut self, id: &str, word: PromptAnswer) -> anyhow::Result<()> {
        let (id, by) = (id.to_owned(), By::Watch);
        let answered = match word {
            PromptAnswer::Allow { remember } => {
                self.harnesses.ask(&AllowApproval { id, remember, by, fields: Vec::new(), content: None })
            }
            PromptAnswer::Deny => self.harnesses.ask(&DenyApproval { id, by, cancel: false }),
        };
        self.asked = None;
        answered.map(drop)
    }

    fn forget_keys(&mut self) -> io::Result<()> {
        // What is shown now may lack its arguments.
        self.asked = None;
        self.terminal.forget_keys()
    }
}
