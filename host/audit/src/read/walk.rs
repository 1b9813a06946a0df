//! One pass over a chain, line by line.
//!
//! A line whose digest is not what the next one says was changed, or the next one was. The one after that decides:
//! where it agrees with the second, the second is as it was written. So a pass is in doubt for one line at a time.

use std::collections::HashMap;

use serde::Deserialize;

use super::{
    KnownHeads, RawLine,
    report::{ChainProblem, ProblemKind, Report},
};
use crate::{Record, SignedHead, journal::file_name, record::Place, shared};
use footbridge_core::digest::{Digest, digest_text};

/// Calls without an outcome that are named.
const NAMED: usize = 10;

/// What of a record the chain is made of.
#[derive(Debug, Deserialize)]
struct Link {
    seq: u64,
    prev: Option<String>,
    genesis: Option<String>,
    r#type: String,
    id: Option<String>,
    head: Option<SignedHead>,
    file: Option<String>,
}

/// When a line was written.
#[derive(Deserialize)]
struct When {
    time: String,
    mono: u64,
}

impl Link {
    /// Whether the line is the record of a head and nothing more, letter for letter.
    fn is_just_a_head(&self, line: &[u8]) -> bool {
        let (Some(head), Ok(When { time, mono })) = (&self.head, serde_json::from_slice(line)) else { return false };
        let prev = self.prev.as_deref().and_then(|prev| prev.parse().ok());
        let place = Place { seq: self.seq, prev, genesis: None, time: &time, mono };
        let mut written = Vec::new();
        // To memory, nothing can fail.
        let _ = Record::head(head).write(place, &mut written);
        written == line
    }
}

/// A line that was read.
#[derive(Debug, Clone)]
struct Seen {
    file: u32,
    line: u64,
    seq: u64,
    hash: String,
    prev: Option<String>,
    is_covered: bool,
    /// Whether it is a head's record and says more than one does, or says it in another way.
    is_odd_head: bool,
}

impl Seen {
    fn problem(&self, kind: ProblemKind, what: impl Into<String>) -> ChainProblem {
        ChainProblem { kind, file: file_name(self.file), line: self.line, seq: self.seq, what: what.into() }
    }
}

/// Where the pass is.
pub(super) struct Walk<'k> {
    known: &'k KnownHeads,
    /// The folder's name, which is the chain's own when it is written.
    folder: String,
    heads: HashMap<u64, Vec<&'k SignedHead>>,
    report: Report,
    file: u32,
    line: u64,
    last: Option<Seen>,
    /// The last line does not agree with this one before it.
    doubt: Option<Seen>,
    torn: Option<Seen>,
    /// Heads from elsewhere, with signatures that hold, are of the last line: a record of one has to be the next line.
    awaited: Vec<&'k SignedHead>,
    /// Those who began to write and did not say that they ended. Of most chains it is one.
    writers: u64,
    /// Whether the last line says that one of them ended.
    just_ended: bool,
    /// Intents without an outcome so far, and the numbers of their records.
    open: HashMap<String, u64>,
}

impl<'k> Walk<'k> {
    pub(super) fn new(folder: &str, known: &'k KnownHeads) -> Self {
        let folder = folder.to_owned();
        let report = Report { folder: folder.clone(), key_known: known.has_keys(), ..Report::default() };
        Self {
            known,
            folder,
            heads: HashMap::new(),
            report,
            file: 0,
            line: 0,
            last: None,
            doubt: None,
            torn: None,
            awaited: Vec::new(),
            writers: 1,
            just_ended: false,
            open: HashMap::new(),
        }
    }

    /// Goes to the next file.
    pub(super) fn file(&mut self, number: u32) -> Result<(), ChainProblem> {
        let expected = self.file + 1;
        (self.file, self.line) = (number, 0);
        if number == expected {
            return Ok(());
        }
        Err(self.here().problem(ProblemKind::Missing, format!("the file {} is missing", file_name(expected))))
    }

    /// Takes a line.
    pub(super) fn line(&mut self, raw: &RawLine) -> Result<(), ChainProblem> {
        self.line += 1;
        if let Some(torn) = self.torn.take() {
            return Err(torn.problem(ProblemKind::Changed, "half a line in the middle of the chain"));
        }
        if !raw.is_whole {
            // Behind the end only its head was still written, or who else writes to a chain that is shared.
            if self.report.ended && !self.just_ended && !self.is_shared() {
                return Err(self.here().problem(ProblemKind::Inserted, "bytes stand behind the end"));
            }
            self.torn = Some(self.here());
            self.report.torn = raw.bytes.len();
            return Ok(());
        }
        // Members that are passed over here are text all the same.
        let text = std::str::from_utf8(&raw.bytes).ok();
        let Some(link) = text.and_then(|text| serde_json::from_str::<Link>(text).ok()) else {
            return Err(self.here().problem(ProblemKind::Changed, "it is no record"));
        };
        let seen =
            Seen { seq: link.seq, hash: digest_text(Digest::of(&raw.bytes)), prev: link.prev.clone(), ..self.here() };
        let is_odd_head = link.r#type == "head" && !link.is_just_a_head(&raw.bytes);
        self.place(&seen, &link)?;
        let is_covered = self.doubt.is_none() && self.compare(&seen, &link)?;
        self.report.records = seen.seq;
        if is_covered {
            self.report.covered = self.report.covered.max(seen.seq);
        }
        self.follow(&link);
        self.last = Some(Seen { is_covered, is_odd_head, ..seen });
        Ok(())
    }

    /// Which calls have no outcome yet.
    fn follow(&mut self, link: &Link) {
        let Some(id) = &link.id else { return };
        match link.r#type.as_str() {
            "intent" => drop(self.open.insert(id.clone(), link.seq)),
            "outcome" => drop(self.open.remove(id)),
            _ => {}
        }
    }

    /// Where the next line is, and the number it should have.
    fn here(&self) -> Seen {
        let seq = self.last.as_ref().map_or(1, |last| last.seq + 1);
        let (hash, prev) = (String::new(), None);
        let (file, line) = (self.file.max(1), self.line.max(1));
        Seen { file, line, seq, hash, prev, is_covered: false, is_odd_head: false }
    }

    /// Whether a line belongs behind the one before it.
    fn place(&mut self, seen: &Seen, link: &Link) -> Result<(), ChainProblem> {
        let Some(last) = self.last.clone() else { return self.first(seen, link) };
        if let Some(first) = self.doubt.take() {
            return Err(decided(&first, &last, Some(seen)));
        }
        let (expected, follows) = (last.seq + 1, seen.prev.as_deref() == Some(&last.hash));
        if seen.seq == last.seq && seen.prev == last.prev && last.prev.is_some() {
            return Err(last
                .problem(ProblemKind::Inserted, "the record behind it has its number and follows the one before it"));
        }
        if seen.seq != expected {
            let gap = ChainProblem { seq: expected, ..seen.problem(ProblemKind::Missing, "") };
            return Err(if follows {
                seen.problem(ProblemKind::Changed, format!("its number should be {expected}"))
            } else if seen.seq > expected {
                let what = format!("records {expected} to {} are not before record {}", seen.seq - 1, seen.seq);
                ChainProblem { what, ..gap }
            } else {
                seen.problem(ProblemKind::Inserted, format!("record {expected} should stand here"))
            });
        }
        if !follows {
            self.doubt = Some(last);
            return Ok(());
        }
        self.kind_fits(seen, link)
    }

    fn first(&mut self, seen: &Seen, link: &Link) -> Result<(), ChainProblem> {
        match &link.genesis {
            // A folder that was copied elsewhere may have any name there; one that heads are of has its own chain.
            Some(id) if *id != self.folder && !self.known.of_chain(&self.folder).is_empty() => {
                let what =
                    format!("the chain {id:?} begins here, and there are signed heads of the one of this folder");
                Err(seen.problem(ProblemKind::Changed, what))
            }
            Some(id) if seen.seq == 1 && seen.prev.is_none() => {
                self.report.chain.clone_from(id);
                for head in self.known.of_chain(id) {
                    self.heads.entry(head.seq).or_default().push(head);
                }
                Ok(())
            }
            _ if seen.seq > 1 => {
                let what = format!("the chain begins with record {}", seen.seq);
                Err(ChainProblem { seq: 1, ..seen.problem(ProblemKind::Missing, what) })
            }
            _ => Err(seen.problem(ProblemKind::Changed, "it is no beginning of a chain")),
        }
    }

    /// Whether processes write to it in turn.
    fn is_shared(&self) -> bool {
        self.report.chain.starts_with(shared::PREFIX)
    }

    /// Whether a record of this type may stand here.
    fn kind_fits(&mut self, seen: &Seen, link: &Link) -> Result<(), ChainProblem> {
        let begins = self.line == 1;
        if link.genesis.is_some() {
            return Err(seen.problem(ProblemKind::Changed, "it says that the chain begins here"));
        }
        if begins != (link.r#type == "rotated") || (begins && link.file.as_deref() != Some(&file_name(self.file))) {
            return Err(
                seen.problem(ProblemKind::Changed, "it is not what a file begins with, or stands elsewhere in it")
            );
        }
        // What processes write in turn goes on with the next of them.
        let is_shared = self.is_shared();
        let goes_on = is_shared && matches!(link.r#type.as_str(), "started" | "rotated");
        // The head that is signed of the end comes with it.
        let is_of_the_end = link.r#type == "head" && std::mem::take(&mut self.just_ended);
        if self.report.ended && !is_of_the_end && !goes_on {
            return Err(seen.problem(ProblemKind::Inserted, "it stands behind the end"));
        }
        self.just_ended = link.r#type == "ended";
        match link.r#type.as_str() {
            "started" if is_shared => self.writers += 1,
            "ended" => self.writers = self.writers.saturating_sub(1),
            _ => {}
        }
        self.report.ended = self.writers == 0;
        Ok(())
    }

    /// Compares a line with heads, its own and those from elsewhere. Whether there was one that covers it.
    fn compare(&mut self, seen: &Seen, link: &Link) -> Result<bool, ChainProblem> {
        let awaited = std::mem::take(&mut self.awaited);
        if link.r#type == "head" {
            if !link.head.as_ref().is_some_and(|head| self.holds(head, &awaited)) {
                let what = "the signed head in it does not hold for the record before it, or another key signed it";
                return Err(seen.problem(ProblemKind::Forged, what));
            }
            self.report.heads += 1;
            self.report.covered = self.report.covered.max(seen.seq);
        }
        if !awaited.is_empty() && link.r#type != "head" {
            return Err(
                seen.problem(ProblemKind::Changed, "a head that was signed of the record before it should stand here")
            );
        }
        let Some(heads) = self.heads.remove(&seen.seq) else { return Ok(false) };
        if let Some(other) = heads.iter().find(|head| head.hash != seen.hash) {
            let what = format!("a head that was signed at {} says that it was another", other.time);
            return Err(seen.problem(ProblemKind::Changed, what));
        }
        self.report.heads += heads.len() as u64;
        // A head is handed out once its own record is written; that of the first line alone has none.
        if seen.seq > 1 {
            self.awaited = heads;
        }
        Ok(true)
    }

    /// Whether a head is of the last line, and signed by a key that counts. Checking a signature takes longer than all
    /// else of a line, so that one which was checked where it was read is not checked again.
    fn holds(&self, head: &SignedHead, checked: &[&SignedHead]) -> bool {
        let says = self.last.as_ref().is_some_and(|last| head.seq == last.seq && head.hash == last.hash);
        let is_signed = || checked.contains(&head) || head.is_signed();
        says && head.chain == self.report.chain && self.known.is_trusted(&head.key) && is_signed()
    }

    /// A problem, unless one that was in doubt before it comes first.
    pub(super) fn settled(&mut self, problem: ChainProblem) -> ChainProblem {
        match (self.doubt.take(), &self.last) {
            (Some(first), Some(last)) => decided(&first, last, None),
            _ => problem,
        }
    }

    /// The end of the chain.
    pub(super) fn end(&mut self) -> Result<(), ChainProblem> {
        if let (Some(first), Some(last)) = (self.doubt.take(), &self.last) {
            return Err(decided(&first, last, None));
        }
        let Some(last) = &self.last else {
            // Killed before its very first line was whole, unless something was signed.
            let is_known = !self.known.of_chain(&self.folder).is_empty();
            let gone =
                || self.here().problem(ProblemKind::Missing, "there are signed heads of this chain, and no record");
            return if is_known { Err(gone()) } else { Ok(()) };
        };
        // No digest is of the very last line: of a head's it is known what it has to be, but for when it was written.
        if last.is_odd_head && !last.is_covered {
            return Err(
                last.problem(ProblemKind::Changed, "it says more than the signed head in it, or in another way")
            );
        }
        // Heads from elsewhere that nothing was found for.
        let Some(beyond) = self.heads.keys().max().copied() else {
            let what = "a signed head says that the record of that head was behind it";
            return if !self.awaited.is_empty() { Err(last.problem(ProblemKind::Cut, what)) } else { Ok(()) };
        };
        let what = format!("a signed head says that there was a record {beyond}");
        Err(last.problem(ProblemKind::Cut, what))
    }

    pub(super) fn into_report(self) -> Report {
        let mut open: Vec<(u64, String)> = self.open.into_iter().map(|(id, seq)| (seq, id)).collect();
        open.sort_unstable();
        let unknown = open.len();
        let unknown_calls = open.into_iter().take(NAMED).map(|(_, id)| id).collect();
        Report { unknown, unknown_calls, ..self.report }
    }
}

/// Which of two neighbours that do not agree is wrong, by what is known of the first and by the line after them.
fn decided(first: &Seen, second: &Seen, after: Option<&Seen>) -> ChainProblem {
    if let Some(after) = after
        && after.seq == second.seq
        && after.prev.as_deref() == Some(&first.hash)
    {
        return second
            .problem(ProblemKind::Inserted, "the record behind it has its number and follows the one before it");
    }
    let second_holds = after.is_none_or(|after| after.prev.as_deref() == Some(&second.hash));
    if second_holds && !first.is_covered {
        let what = format!("record {} has another digest of it", second.seq);
        return first.problem(ProblemKind::Changed, what);
    }
    second.problem(
        ProblemKind::Changed,
        format!("its digest of record {} is another, and so is record {}'s of it", first.seq, second.seq + 1),
    )
}
