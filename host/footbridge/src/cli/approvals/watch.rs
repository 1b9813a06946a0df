//! `footbridge approvals watch`: asks on a terminal of its own about what waits at any harness of this user.
//!
//! The harnesses are asked a few times a second, so that those which start later are seen too. For that this process
//! stays visible to others of the same user, who could run `approvals allow` just as well; it holds no secret. They are
//! asked side by side and have little time, since keys and signals wait meanwhile: one that does not answer, as where it is
//! stopped by Ctrl-Z, is left alone for a while.
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

use super::{Connected, NoHarness, connected, show};
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
use footbridge_proto::approval::ApprovalStatus;
use terminal::{Event, Terminal};

/// How often the harnesses are asked.
const EVERY: Duration = Duration::from_millis(300);

/// How long each answer of theirs may take. Nothing that is asked here takes them any.
const PATIENCE: Duration = Duration::from_secs(1);

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
        let Connected { clients, silent } = connected(&paths, |path| ControlClient::connect_within(path, PATIENCE));
        for (path, client) in clients {
            self.silent.remove(&path);
            self.clients.insert(path, client);
        }
        Ok(silent.into_iter().filter_map(|(path, error)| self.fell_silent(path, error)).collect())
    }

    /// One does not answer; gives why, where that is new.
    fn fell_silent(&mut self, path: PathBuf, error: ControlClientError) -> Option<ControlClientError> {
        self.clients.remove(&path);
        self.silent.insert(path, Instant::now()).is_none().then_some(error)
    }

    /// What waits for an answer from here, the oldest first, and why those that are new do not answer. A harness that
    /// ended, or does not answer, has nothing.
    fn pending(&mut self) -> anyhow::Result<(Vec<ApprovalInfo>, Vec<ControlClientError>)> {
        let mut silent = self.connect()?;
        let mut found = Vec::new();
        for (path, answer) in self.lists() {
            match answer {
                Ok(theirs) => {
                    let is_ours =
                        |one: &ApprovalInfo| one.state == ApprovalStatus::Pending && !one.is_answered_elsewhere;
                    found.extend(theirs.into_iter().filter(is_ours));
                }
                Err(error @ ControlClientError::Busy { .. }) => silent.extend(self.fell_silent(path, error)),
                Err(_) => drop(self.clients.remove(&path)),
            }
        }
        found.sort_by(|a, b| (&a.asked, &a.id).cmp(&(&b.asked, &b.id)));
        Ok((found, silent))
    }

    /// What each of them has, asked side by side.
    fn lists(&mut self) -> Vec<(PathBuf, Result<Vec<ApprovalInfo>, ControlClientError>)> {
        thread::scope(|scope| {
            let clients = self.clients.iter_mut();
            let asking: Vec<_> =
                clients.map(|(path, client)| (path, scope.spawn(|| client.call(&ListApprovals {})))).collect();
            asking.into_iter().filter_map(|(path, asked)| Some((path.clone(), asked.join().ok()?))).collect()
        })
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
    let (mut known, mut was_there): (BTreeSet<String>, bool) = (BTreeSet::new(), true);
    loop {
        let (pending, silent) = harnesses.pending()?;
        let is_there = !harnesses.clients.is_empty();
        if was_there && !is_there {
            report::note(&format!("footbridge approvals: {NoHarness}; waiting for one"));
        }
        was_there = is_there;
        for error in silent {
            report::error(&anyhow::Error::new(error));
        }
        let now: BTreeSet<String> = pending.iter().map(|one| one.id.clone()).collect();
        let came = pending.iter().filter(|one| !known.contains(&one.id));
        let mut lines: Vec<_> = came.map(|one| serde_json::json!({"event": "pending", "approval": one})).collect();
        lines.extend(known.difference(&now).map(|id| serde_json::json!({"event": "gone", "id": id})));
        report::out(&show::json_lines(&lines)?)?;
        known = now;
        if !report::stays_read(EVERY) {
            return Ok(());
        }
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
                prompt.idles(self.harnesses.clients.is_empty().then(|| NoHarness.to_string()));
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

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::{BufRead as _, BufReader, Write as _},
        os::unix::net::UnixListener,
    };

    use super::*;
    use crate::control::wire::HarnessInfo;

    /// A harness that says who it is, and nothing else.
    fn says_hello_alone(runtime: &Path, name: &str) {
        fs::create_dir(runtime.join(name)).unwrap();
        let listener = UnixListener::bind(control::in_folder(&runtime.join(name))).unwrap();
        thread::spawn(move || {
            let mut kept = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut line = String::new();
                BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
                let hello = serde_json::to_string(&HarnessInfo::this("run")).unwrap();
                writeln!(stream, "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{hello}}}").unwrap();
                kept.push(stream);
            }
        });
    }

    #[test]
    fn harnesses_that_do_not_answer_are_waited_for_briefly_and_at_once_and_then_left_alone() {
        let runtime = tempfile::tempdir().unwrap();
        for number in 0..8 {
            says_hello_alone(runtime.path(), &format!("run-{number}"));
        }
        let mut harnesses = Harnesses::of(runtime.path()).unwrap();
        assert_eq!(harnesses.clients.len(), 8);
        let began = Instant::now();
        let (pending, silent) = harnesses.pending().unwrap();
        assert!(began.elapsed() < PATIENCE * 6, "{:?}", began.elapsed());
        assert_eq!((pending.len(), silent.len(), harnesses.silent.len()), (0, 8, 8));
        assert!(silent[0].to_string().contains("gave no answer within 1s"), "{}", silent[0]);
        let (_, silent) = harnesses.pending().unwrap();
        assert!(silent.is_empty() && harnesses.clients.is_empty(), "they are asked later");
    }
}
