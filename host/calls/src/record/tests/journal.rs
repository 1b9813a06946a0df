//! A journal in memory that fails and waits on demand. What is durable is in a file too, so that an MCP server of
//! another process can see how much was written when a call reached it.

use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    ops::Range,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex},
};

use footbridge_audit::Journal;

/// What goes wrong.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    Nothing,
    /// The operations with these numbers, counted from 1.
    Operations(Range<usize>),
    /// Every commit of an intent.
    Intents,
    /// Every commit of an outcome.
    Outcomes,
    /// Every commit of the use of an approval.
    Uses,
    /// Every sync of what was appended.
    Syncs,
    /// What goes beyond this many bytes.
    Beyond(usize),
    All,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    durable: String,
    operations: usize,
    commits: usize,
    syncs: usize,
    fault: Fault,
    /// Operations wait while this is set.
    holds: bool,
    waiting: bool,
}

/// The journal. Clones are the same one.
#[derive(Debug, Clone)]
pub(super) struct Memory(Arc<(Mutex<Inner>, Condvar)>);

impl Memory {
    pub(super) fn new(path: PathBuf, fault: Fault) -> Self {
        std::fs::write(&path, "").unwrap();
        let durable = String::new();
        let inner = Inner { path, durable, operations: 0, commits: 0, syncs: 0, fault, holds: false, waiting: false };
        Self(Arc::new((Mutex::new(inner), Condvar::new())))
    }

    fn change(&self, change: impl FnOnce(&mut Inner)) {
        change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
    }

    pub(super) fn fault(&self, fault: Fault) {
        self.change(|inner| inner.fault = fault);
    }

    /// From now on, operations wait.
    pub(super) fn hold(&self) {
        self.change(|inner| inner.holds = true);
    }

    pub(super) fn release(&self) {
        self.change(|inner| inner.holds = false);
    }

    /// Blocks until an operation waits.
    pub(super) fn until_waiting(&self) {
        drop(self.0.1.wait_while(self.0.0.lock().unwrap(), |inner| !inner.waiting).unwrap());
    }

    pub(super) fn durable(&self) -> String {
        self.0.0.lock().unwrap().durable.clone()
    }

    pub(super) fn commits(&self) -> usize {
        self.0.0.lock().unwrap().commits
    }

    /// Syncs that nothing was written with, those that failed too.
    pub(super) fn syncs(&self) -> usize {
        self.0.0.lock().unwrap().syncs
    }

    /// How many there were, those that failed too.
    pub(super) fn operations(&self) -> usize {
        self.0.0.lock().unwrap().operations
    }

    fn operate(&self, bytes: usize, text: Option<&str>) -> io::Result<()> {
        let mut inner = self.0.0.lock().unwrap();
        while inner.holds {
            inner.waiting = true;
            self.0.1.notify_all();
            inner = self.0.1.wait(inner).unwrap();
        }
        inner.waiting = false;
        inner.operations += 1;
        inner.syncs += usize::from(text.is_none() && bytes == 0);
        let says = |what: &str| text.is_some_and(|text| text.contains(what));
        let fails = match &inner.fault {
            Fault::Nothing => false,
            Fault::Operations(numbers) => numbers.contains(&inner.operations),
            Fault::Intents => says(r#""type":"intent""#),
            Fault::Outcomes => says(r#""type":"outcome""#),
            Fault::Uses => says(r#""state":"used""#),
            Fault::Syncs => text.is_none() && bytes == 0,
            Fault::Beyond(room) => inner.durable.len() + bytes > *room,
            Fault::All => true,
        };
        if fails {
            return Err(io::Error::other("made to fail"));
        }
        if let Some(text) = text {
            inner.commits += 1;
            inner.durable.push_str(text);
            OpenOptions::new().append(true).open(&inner.path)?.write_all(text.as_bytes())?;
        }
        Ok(())
    }
}

impl Journal for Memory {
    fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        self.operate(usize::try_from(bytes).unwrap(), None)
    }

    fn commit(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.operate(bytes.len(), Some(std::str::from_utf8(bytes).unwrap()))
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.commit(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.operate(0, None)
    }
}
