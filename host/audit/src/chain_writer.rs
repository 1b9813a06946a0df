//! What puts records down: it numbers and chains them, adds heads that are due, and goes on in the next file.

use std::{
    io,
    time::{Duration, Instant},
};

use super::{
    chain::{Chain, Draft, End},
    heads::Heads,
    journal::{ChainEnd, Journal},
    record::Record,
};
use footbridge_core::sparingly::Sparingly;

/// How long what was appended waits for the next commit, whose sync makes both durable.
const SYNC_SHARED: Duration = Duration::from_millis(5);

/// Room for lines that is kept from one write to the next, bytes.
const ROOM_KEPT: usize = 64 * 1024;

/// A journal, the chain in it, and its heads.
pub(super) struct ChainWriter {
    journal: Box<dyn Journal>,
    chain: Chain,
    heads: Option<Heads>,
    /// Room for each call that is open, bytes.
    each: u64,
    /// A file that was begun and says nothing yet.
    begun: Option<String>,
    /// Room for lines, from one write to the next.
    room: Vec<u8>,
    /// Since when something is appended that is not synced.
    unsynced: Option<Instant>,
    /// That there is no next file is so for each record.
    not_rotated: Sparingly,
}

impl ChainWriter {
    pub(super) fn new(journal: Box<dyn Journal>, chain: Chain, heads: Option<Heads>, each: u64) -> Self {
        Self {
            journal,
            chain,
            heads,
            each,
            begun: None,
            room: Vec::new(),
            unsynced: None,
            not_rotated: Sparingly::default(),
        }
    }

    /// Writes the first line.
    pub(super) fn begin(&mut self, sync: bool) -> io::Result<()> {
        let head_key = self.heads.as_ref().map(|heads| heads.key().to_owned());
        let version = env!("CARGO_PKG_VERSION");
        let started = Record::started(version, std::process::id(), sync, head_key.as_deref());
        self.commit([&started], None).inspect_err(|_| self.journal.abandon())?;
        let end = self.chain.end();
        let Some(heads) = &mut self.heads else { return Ok(()) };
        if end.seq > 1 {
            // One that others began, whose records before this one are theirs to sign.
            heads.begin_behind(end.seq - 1);
        } else if let Some(head) = heads.sign(&self.chain, end) {
            // Known elsewhere from the start, so that not even a whole chain can go unseen.
            heads.publish(head, end.seq, self.journal.to_sync());
        }
        Ok(())
    }

    /// Whether a write ends in memory.
    pub(super) fn is_quick(&self) -> bool {
        self.journal.is_quick()
    }

    /// Goes on from where the chain ends by now, if others write to it.
    fn take_turn(&mut self) -> io::Result<()> {
        if let Some(ChainEnd { seq, hash, begun }) = self.journal.take_turn()? {
            self.chain.adopt(End { seq, hash });
            self.begun = begun;
        }
        Ok(())
    }

    /// Says that this is the end, signs it, and waits until all heads are handed on. False where that cannot be written.
    pub(super) fn finish(&mut self, open: u64) -> bool {
        let ended = self.commit([&Record::ended(open)], Some(0));
        if let Err(error) = &ended {
            tracing::error!(%error, "the end of the record cannot be written");
        }
        self.journal.give_back_room();
        self.heads = None;
        ended.is_ok()
    }

    pub(super) fn head_is_due(&self) -> bool {
        self.heads.as_ref().is_some_and(|heads| heads.is_due(self.chain.end().seq))
    }

    /// How long until one is, where there is anything new.
    pub(super) fn head_wait(&self) -> Option<Duration> {
        self.heads.as_ref().and_then(|heads| heads.wait(self.chain.end().seq))
    }

    /// Writes records, all or none. Those that may be given up say how many calls will be open then: the room of their
    /// outcomes stays untouched, a full file is followed by the next one, and a head goes with them where it is due.
    pub(super) fn commit<'r>(
        &mut self,
        records: impl IntoIterator<Item = &'r Record>,
        open: Option<u64>,
    ) -> io::Result<()> {
        let room = open.map(|open| open * self.each);
        if let Err(error) = self.take_turn() {
            self.heads.iter_mut().for_each(Heads::put_off);
            return Err(error);
        }
        if let Some(room) = room {
            self.rotate(room);
        }
        let mut last = false;
        let records = records.into_iter().inspect(|record| last = record.is_end());
        let mut draft = draft(&self.chain, std::mem::take(&mut self.room), self.begun.as_ref(), records);
        let (mut head, end) = (None, draft.end());
        if let Some(heads) = self.heads.as_mut().filter(|heads| room.is_some() && (last || heads.is_due(end.seq))) {
            head = heads.sign(&self.chain, end);
        }
        if let Some(head) = &head {
            draft.add(&Record::head(head));
        }
        let (text, end) = draft.finish();
        if let Some(room) = room {
            self.journal.reserve(room + text.len() as u64)?;
        }
        self.journal.commit(&text)?;
        self.adopt(end, text);
        self.unsynced = None;
        if let (Some(heads), Some(head)) = (&mut self.heads, head) {
            heads.publish(head, end.seq, self.journal.to_sync());
        }
        Ok(())
    }

    /// Writes records that nobody can take back, all or none, into the room that is kept for them. They outlive this
    /// process, and are durable with the next commit, or a [`sync`](Self::sync) that is due.
    pub(super) fn append<'r>(&mut self, records: impl IntoIterator<Item = &'r Record>) -> io::Result<()> {
        self.take_turn()?;
        let room = std::mem::take(&mut self.room);
        let (text, end) = draft(&self.chain, room, self.begun.as_ref(), records).finish();
        self.journal.append(&text)?;
        self.adopt(end, text);
        if !self.journal.is_quick() {
            self.unsynced.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    /// How long until what was appended is to be synced by itself, where there is any.
    pub(super) fn sync_wait(&self) -> Option<Duration> {
        self.unsynced.map(|since| SYNC_SHARED.saturating_sub(since.elapsed()))
    }

    /// Makes durable what was appended, if that is due.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.sync_wait().is_some_and(|wait| wait.is_zero()) {
            self.journal.sync()?;
            self.unsynced = None;
        }
        Ok(())
    }

    /// Goes on behind what was written.
    fn adopt(&mut self, end: End, written: Vec<u8>) {
        self.chain.adopt(end);
        self.begun = None;
        self.room = if written.capacity() > ROOM_KEPT { Vec::new() } else { written };
    }

    /// Goes on in the next file where this one is full. Where that fails, this one is used on.
    fn rotate(&mut self, room: u64) {
        match self.journal.next_file(room) {
            Ok(Some(file)) => self.begun = Some(file),
            Ok(None) => {}
            Err(error) if self.not_rotated.may_say(1, Instant::now()).is_some() => {
                tracing::warn!(%error, "the record's next file cannot be begun; this one grows on");
            }
            Err(_said_already) => {}
        }
    }
}

/// Records behind a chain, and before them that a file was begun.
fn draft<'c, 'r>(
    chain: &'c Chain,
    room: Vec<u8>,
    begun: Option<&String>,
    records: impl IntoIterator<Item = &'r Record>,
) -> Draft<'c> {
    let mut draft = chain.draft(room);
    if let Some(file) = begun {
        draft.add(&Record::rotated(file));
    }
    records.into_iter().for_each(|record| draft.add(record));
    draft
}
