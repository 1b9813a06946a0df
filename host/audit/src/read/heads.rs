//! Signed heads that a chain is compared with, and whose signatures count.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::Path,
};

use super::super::head::{HEADS, HeadKey, SignedHead};

/// Heads from outside the chains: of the file beside them, of the store, and given by hand.
#[derive(Debug, Clone, Default)]
pub struct KnownHeads {
    /// Public keys whose signatures count. Empty means that none is known here.
    keys: Vec<String>,
    /// By chain.
    heads: HashMap<String, Vec<SignedHead>>,
    /// Lines of the file of heads that cannot be used, and why.
    pub bad: Vec<String>,
    /// What keeps the key from being read.
    pub no_key: Option<String>,
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
    ///
    /// # Errors
    /// When the file of heads is there and cannot be read.
    pub fn of(audit: &Path, keys: &[String], kept: Vec<SignedHead>) -> io::Result<Self> {
        let mut known = Self { keys: keys.to_vec(), ..Self::default() };
        if known.keys.is_empty() {
            // Whoever changed the folder may have replaced its key: it says nothing beside keys that were named.
            match HeadKey::read(audit) {
                Ok(key) => known.keys.extend(key.map(|key| key.public().to_owned())),
                Err(error) => known.no_key = Some(error.to_string()),
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
        let path = audit.join(HEADS);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(known),
            bytes => String::from_utf8_lossy(&bytes?).into_owned(),
        };
        for (at, line) in text.lines().enumerate() {
            match parse_heads(line).map(|mut heads| heads.remove(0)) {
                Ok(head) if known.is_trusted(&head.key) => known.add(head),
                Ok(_) => known.bad.push(format!("{HEADS} line {}: signed with another key", at + 1)),
                // What a crash left of a line says nothing, for or against.
                Err(NoHead::Line(_)) => {}
                Err(_) => known.bad.push(format!("{HEADS} line {}: its signature does not hold", at + 1)),
            }
        }
        Ok(known)
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
