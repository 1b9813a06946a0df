//! Signed heads that a chain is compared with, and whose signatures count.

use std::{
    collections::{HashMap, HashSet},
    io::{self, Read as _},
    path::Path,
};

use super::super::head::{HEADS, HeadKey, SignedHead};
use super::files::open;

/// Heads from outside the chains: of the file beside them, of the store, and given by hand.
#[derive(Debug, Clone, Default)]
pub struct KnownHeads {
    /// Public keys whose signatures count. Empty means that none is known here.
    keys: Vec<String>,
    /// By chain.
    heads: HashMap<String, Vec<SignedHead>>,
    /// How many of them are of the file beside the chains; none if that cannot be read.
    pub in_file: Option<usize>,
    /// What is wrong with heads, or with the file of heads.
    pub bad: Vec<String>,
    /// What is no sign of a change, and keeps something from being compared.
    pub notes: Vec<String>,
}

/// A text that is no head.
#[derive(Debug, thiserror::Error)]
pub enum NoHead {
    /// It cannot be read.
    #[error("the heads cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is not a head's JSON.
    #[error("line {0} is no head: give a line of heads.jsonl, or what head_command got")]
    Line(usize),
    /// Its signature does not hold.
    #[error("the head in line {0} was changed: its signature does not hold")]
    Signature(usize),
}

/// Reads heads that somebody kept: one a line.
///
/// # Errors
/// [`NoHead`].
pub fn parse_heads(text: &str) -> Result<Vec<SignedHead>, NoHead> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let heads: Vec<SignedHead> = lines
        .map(|(at, line)| {
            let head: SignedHead = serde_json::from_str(line).map_err(|_| NoHead::Line(at + 1))?;
            if head.is_signed() { Ok(head) } else { Err(NoHead::Signature(at + 1)) }
        })
        .collect::<Result<_, _>>()?;
    if heads.is_empty() { Err(NoHead::Line(1)) } else { Ok(heads) }
}

impl KnownHeads {
    /// What an audit folder knows, and heads that were kept elsewhere. The signatures of `keys` count alone; where none
    /// is named, those of the folder's own key; where there is none either, those of whoever signed what was kept.
    #[must_use]
    pub fn of(audit: &Path, keys: &[String], kept: Vec<SignedHead>) -> Self {
        let mut known = Self { keys: keys.to_vec(), ..Self::default() };
        if known.keys.is_empty() {
            // Whoever changed the folder may have replaced its key: it says nothing beside keys that were named.
            match HeadKey::read(audit) {
                Ok(key) => known.keys.extend(key.map(|key| key.public().to_owned())),
                Err(error) => known.notes.push(format!("{error}. So whose signatures these are is not known")),
            }
        }
        if known.keys.is_empty() {
            known.keys.extend(kept.iter().map(|head| head.key.clone()));
        }
        for head in kept {
            if !known.is_trusted(&head.key) {
                let SignedHead { chain, seq, key, .. } = &head;
                known.bad.push(format!(
                    "the head that was kept of the chain {chain}, record {seq}, is signed with another key, {key}: the \
                     key in the audit folder was replaced, or --key is another"
                ));
            }
            known.add(head);
        }
        known.add_file(&audit.join(HEADS));
        known
    }

    /// Adds the file beside the chains.
    fn add_file(&mut self, path: &Path) {
        let (mut bytes, mut found) = (Vec::new(), 0);
        match open(path).and_then(|mut file| file.read_to_end(&mut bytes)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return self.bad.push(format!("the heads beside the chains cannot be read: {error}")),
            Ok(_) => {}
        }
        let lines = String::from_utf8_lossy(&bytes);
        for (at, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let place = format!("{HEADS} line {}", at + 1);
            match parse_heads(line).map(|mut heads| heads.remove(0)) {
                Ok(head) if self.is_trusted(&head.key) => {
                    found += 1;
                    self.add(head);
                }
                Ok(_) => self.bad.push(format!("{place}: signed with another key")),
                Err(NoHead::Signature(_)) => self.bad.push(format!("{place}: its signature does not hold")),
                // Half a line says nothing, for or against.
                Err(_) => self.notes.push(format!("{place} is no head: a crash left it, or somebody changed it")),
            }
        }
        self.in_file = Some(found);
    }

    /// Adds what the store has. A head that is signed with another key, or not at all, is one more that is bad.
    pub fn add_stored(&mut self, heads: Vec<SignedHead>) {
        // A signature is over all that a head says; looking through a chain's heads for each would take hours for a
        // year.
        let known: HashSet<String> = self.heads.values().flatten().map(|head| head.signature.clone()).collect();
        for head in heads {
            if !head.is_signed() || !self.is_trusted(&head.key) {
                let SignedHead { chain, seq, .. } = &head;
                self.bad
                    .push(format!("a head in the store, of chain {chain}, record {seq}: its signature does not hold"));
            } else if !known.contains(&head.signature) {
                self.add(head);
            }
        }
    }

    fn add(&mut self, head: SignedHead) {
        self.heads.entry(head.chain.clone()).or_default().push(head);
    }

    /// The heads of a chain.
    #[must_use]
    pub(crate) fn of_chain(&self, chain: &str) -> &[SignedHead] {
        self.heads.get(chain).map_or(&[], Vec::as_slice)
    }

    /// The chains that there are heads of.
    pub fn chains(&self) -> impl Iterator<Item = &str> {
        self.heads.keys().map(String::as_str)
    }

    /// Whether it is known who may sign.
    #[must_use]
    pub(crate) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Whether a key counts: any, where none is known.
    #[must_use]
    pub(crate) fn is_trusted(&self, key: &str) -> bool {
        self.keys.is_empty() || self.keys.iter().any(|known| known == key)
    }
}
