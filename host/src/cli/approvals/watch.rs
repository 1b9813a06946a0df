//! `footbridge approvals watch`: one call at a time on the alternate screen, and an answer typed as a word.
//!
//! The harnesses are asked a few times a second, so that those which start later are seen too. For that this process
//! stays visible to others of the same user, who could run `approvals allow` just as well; it holds no secret.
//!
//! States: nothing to answer; a call is shown. A call that ends elsewhere makes place for the next. The terminal is
//! restored on every way out but `kill -9`.

mod page;
mod screen;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use super::{list, show};
use crate::{
    control::{
        self,
        client::Client,
        wire::{AllowApproval, ApprovalInfo, By, DenyApproval, ShowApproval},
    },
    report,
};
use page::{Page, Typed, Typing};
use screen::{Event, Screen};

/// How often the harnesses are asked.
const EVERY: Duration = Duration::from_millis(300);

/// The harnesses that answer.
struct Harnesses<'a> {
    runtime: &'a Path,
    clients: BTreeMap<PathBuf, Client>,
}

impl Harnesses<'_> {
    /// What waits for an answer, the oldest first. A harness that ended, or does not answer, has nothing.
    fn pending(&mut self) -> anyhow::Result<Vec<ApprovalInfo>> {
        for path in control::all(self.runtime)? {
            if !self.clients.contains_key(&path)
                && let Ok(client) = Client::connect(&path)
            {
                self.clients.insert(path, client);
            }
        }
        let mut found = Vec::new();
        self.clients.retain(|_, client| match list(std::slice::from_mut(client)) {
            Ok(theirs) => {
                found.extend(theirs.into_iter().filter(|one| one.state == "pending"));
                true
            }
            Err(_) => false,
        });
        found.sort_by(|a, b| (&a.asked, &a.id).cmp(&(&b.asked, &b.id)));
        Ok(found)
    }

    fn ask<M: control::wire::Method>(&mut self, request: &M) -> anyhow::Result<M::Answer> {
        let mut all: Vec<Client> = std::mem::take(&mut self.clients).into_values().collect();
        // They are connected to again the next time.
        Ok(super::ask_all(&mut all, request)?)
    }
}

/// Prints what comes and goes.
pub(super) fn print(runtime: &Path) -> anyhow::Result<()> {
    let mut harnesses = Harnesses { runtime, clients: BTreeMap::new() };
    let mut known: BTreeSet<String> = BTreeSet::new();
    loop {
        let pending = harnesses.pending()?;
        let now: BTreeSet<String> = pending.iter().map(|one| one.id.clone()).collect();
        let came = pending.iter().filter(|one| !known.contains(&one.id));
        let mut lines: Vec<_> = came.map(|one| serde_json::json!({"event": "pending", "approval": one})).collect();
        lines.extend(known.difference(&now).map(|id| serde_json::json!({"event": "gone", "id": id})));
        report::out(&show::json_lines(&lines)?)?;
        known = now;
        thread::sleep(EVERY);
    }
}

/// Shows and asks.
pub(super) fn on_terminal(runtime: &Path) -> anyhow::Result<()> {
    let harnesses = Harnesses { runtime, clients: BTreeMap::new() };
    let screen = Screen::open()?;
    let typing = Typing::new(Instant::now());
    Watch { harnesses, screen, typing, page: Page::default(), shown: None, note: String::new() }.run()
}

struct Watch<'a> {
    harnesses: Harnesses<'a>,
    screen: Screen,
    typing: Typing,
    page: Page,
    /// The call that is on the screen: answers are about it and no other.
    shown: Option<ApprovalInfo>,
    note: String,
}

impl Watch<'_> {
    fn run(mut self) -> anyhow::Result<()> {
        let mut waiting = Vec::new();
        let mut asked: Option<Instant> = None;
        loop {
            if asked.is_none_or(|at| at.elapsed() >= EVERY) {
                waiting = self.harnesses.pending()?;
                asked = Some(Instant::now());
            }
            if !self.shown.as_ref().is_some_and(|shown| waiting.iter().any(|one| one.id == shown.id)) {
                self.turn_to(waiting.first().cloned())?;
            }
            self.screen.draw(&self.page.lines(self.shown.as_ref(), waiting.len()), &self.note, self.typing.text())?;
            match self.screen.wait(EVERY)? {
                Event::Nothing => {}
                Event::End => return Ok(()),
                Event::Keys(keys) => {
                    for key in keys {
                        match self.typing.feed(key, Instant::now()) {
                            Typed::Nothing => {}
                            Typed::End => return Ok(()),
                            Typed::Word(word) if word == "quit" => return Ok(()),
                            Typed::Word(word) => {
                                self.answer(&word, &waiting)?;
                                asked = None;
                            }
                        }
                    }
                }
            }
        }
    }

    /// Shows another call, or none. Nothing that was typed before counts for it.
    fn turn_to(&mut self, next: Option<ApprovalInfo>) -> anyhow::Result<()> {
        if self.shown.is_some() || next.is_some() {
            self.screen.forget_keys()?;
            self.typing = Typing::new(Instant::now());
            self.page = Page::default();
            self.shown = next;
        }
        Ok(())
    }

    fn answer(&mut self, word: &str, waiting: &[ApprovalInfo]) -> anyhow::Result<()> {
        let Some(shown) = self.shown.clone() else { return Ok(()) };
        let id = shown.id.clone();
        let answered = match word {
            "" => {
                self.page.turn();
                return Ok(());
            }
            "next" => {
                let at = waiting.iter().position(|one| one.id == id).map_or(0, |at| at + 1);
                return self.turn_to(waiting.get(at).or(waiting.first()).cloned());
            }
            "all" => {
                match self.harnesses.ask(&ShowApproval { id }) {
                    Ok(whole) => self.page.show_all(whole.arguments),
                    Err(error) => self.note = error.to_string(),
                }
                return Ok(());
            }
            "allow" | "remember" => {
                let (fields, content) = (Vec::new(), None);
                let remember = word == "remember";
                self.harnesses.ask(&AllowApproval { id, remember, by: By::Watch, fields, content })
            }
            "deny" => self.harnesses.ask(&DenyApproval { id, by: By::Watch, cancel: false }),
            other => {
                self.note = format!("\"{other}\" is no answer");
                return Ok(());
            }
        };
        self.note = match answered {
            Ok(_) => format!("{}: {word}", shown.id),
            Err(error) => error.to_string(),
        };
        // The next list has it no more.
        self.turn_to(None)
    }
}
