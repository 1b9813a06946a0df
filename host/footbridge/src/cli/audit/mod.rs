//! `footbridge audit`: the record as people and programs read it.

mod export;
mod replay;
mod show;
mod tail;
mod usage;
mod verify;

use std::{collections::BTreeSet, io, path::PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use footbridge_proto::text::{Escaped, needs_escape, safe_json};
use serde_json::Value;

use crate::{
    config::folders::Folders,
    report,
    store::{StoreError, StoreKind},
};
use footbridge_audit::{
    forget_heads,
    read::{ChainFolder, ReadRecord, chains, find},
};

/// Status when something is wrong with the record, or what was asked for is not in it.
const BAD: i32 = 1;
/// Text is written in pieces of about this many bytes.
const PIECE: usize = 64 * 1024;

#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Show the last records, and those that come
    Tail(tail::TailArgs),
    /// Show one call: what was decided about it, and what became of it
    Show(show::ShowArgs),
    /// Check that nothing in the record was changed, cut or put in
    Verify(verify::VerifyArgs),
    /// Forget the heads of chains that were removed on purpose
    #[command(after_help = "Example:
  footbridge audit forget 20261122T025808Z-Ab12Cd34")]
    Forget {
        /// The names of the chains
        #[arg(value_name = "CHAIN", required = true)]
        chains: Vec<String>,
    },
    /// Write the record out as JSON lines or CSV
    Export(export::ExportArgs),
    /// Sum up what requests to services used: tokens of models, bytes
    Usage(usage::UsageArgs),
    /// Show which past decisions another policy, or configuration, would change
    Replay(replay::ReplayArgs),
}

/// Which records are looked at: of all runs, where nothing else is asked for.
#[derive(Debug, Args)]
pub(super) struct Which {
    /// Look at this run alone: a folder of the audit folder, by its name or path. Default: all runs
    #[arg(long)]
    pub(super) chain: Option<String>,
    /// Look at calls of this session alone
    #[arg(long)]
    pub(super) session: Option<String>,
    /// Look at calls to this server alone
    #[arg(long)]
    pub(super) server: Option<String>,
}

impl Which {
    /// Whether a record of this session and server is one.
    fn is_asked_for(&self, session: &str, server: &str) -> bool {
        let is = |asked: &Option<String>, found: &str| asked.as_deref().is_none_or(|asked| asked == found);
        is(&self.session, session) && is(&self.server, server)
    }

    /// Whether a session or a server is named, which has to be in the record.
    fn is_named(&self) -> bool {
        self.session.is_some() || self.server.is_some()
    }

    /// Says that nothing was found, and among what: `what` as in "call" or "record of type head".
    fn found_nothing(&self, what: &str, chains: &[ChainFolder], place: &Place) {
        let of = [("session", &self.session), ("server", &self.server)];
        let of: String = of
            .iter()
            .filter_map(|(name, asked)| Some(format!(" of {name} {:?}", asked.as_deref()?)))
            .collect::<Vec<_>>()
            .join(" and");
        let looked_at = match chains {
            [one] if self.chain.is_some() => format!("the chain {}", one.name),
            chains => {
                format!("{} in {}", report::counted(chains.len() as u64, "chain"), place.audit.display())
            }
        };
        report::note(&format!("no {what}{of} was found: looked at {looked_at}"));
    }
}

pub(super) fn main(command: AuditCommand) -> anyhow::Result<i32> {
    let place = Place::find()?;
    let done = match command {
        AuditCommand::Tail(args) => tail::main(&args, &place),
        AuditCommand::Show(args) => show::main(&args, &place),
        AuditCommand::Verify(args) => verify::main(args, &place),
        AuditCommand::Forget { chains } => forget(&chains.into_iter().collect(), &place),
        AuditCommand::Export(args) => export::main(&args, &place),
        AuditCommand::Usage(args) => usage::main(&args, &place),
        AuditCommand::Replay(args) => replay::main(&args, &place),
    };
    match done {
        Err(error) if error.is::<NoChain>() => {
            report::error(&error);
            Ok(BAD)
        }
        done => done,
    }
}

/// The audit folder of this user.
struct Place {
    state: PathBuf,
    audit: PathBuf,
}

impl Place {
    fn find() -> anyhow::Result<Self> {
        let folders = Folders::of_this_user()?;
        Ok(Self { audit: folders.state.join("audit"), state: folders.state })
    }

    /// All chains, the oldest first.
    fn chains(&self) -> anyhow::Result<Vec<ChainFolder>> {
        chains(&self.audit).with_context(|| format!("cannot read the record in {}", self.audit.display()))
    }

    /// The chain of this name, or all.
    fn named(&self, name: Option<&str>) -> anyhow::Result<Vec<ChainFolder>> {
        match name {
            None => self.chains(),
            Some(name) => {
                let none = || NoChain { name: name.to_owned(), audit: self.audit.clone() };
                Ok(vec![find(&self.audit, name).ok_or_else(none)?])
            }
        }
    }

    /// Says that there is nothing to read.
    fn nothing(&self) -> anyhow::Result<i32> {
        report::error(&NoRecord(self.audit.clone()).into());
        Ok(BAD)
    }
}

/// Says that a chain cannot be read, or not to its end; whoever looks at all of them goes on with the next. False where
/// it was moved away meanwhile, which is no mistake.
fn is_unread(chain: &ChainFolder, source: io::Error) -> bool {
    let is_there = is_there(chain);
    if is_there {
        report::error(&Unread { chain: chain.name.clone(), source }.into());
    }
    is_there
}

/// Whether nobody moved a chain away since it was found.
fn is_there(chain: &ChainFolder) -> bool {
    chain.path.symlink_metadata().is_ok()
}

/// A record's line as JSON that steers no terminal, whatever was put into it.
fn safe_line(record: &ReadRecord) -> String {
    if !record.line.chars().any(needs_escape) {
        return record.line.clone();
    }
    safe_json(Value::Object(record.fields.clone()).to_string())
}

/// Does something with the store.
fn in_store<T>(work: impl Future<Output = Result<T, StoreError>>) -> io::Result<Result<T, StoreError>> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work))
}

/// Takes what is kept of chains that are gone out of the file of heads and the store.
fn forget(chains: &BTreeSet<String>, place: &Place) -> anyhow::Result<i32> {
    if let Some(chain) = chains.iter().find(|chain| find(&place.audit, chain).is_some()) {
        report::error(&StillThere(chain.clone()).into());
        return Ok(BAD);
    }
    // Looked at first: where nothing is kept, no store is made.
    let mut stored: BTreeSet<String> =
        in_store(StoreKind::default().read_heads(&place.state))??.into_iter().map(|head| head.chain).collect();
    stored.retain(|chain| chains.contains(chain));
    let in_file = forget_heads(&place.audit, chains)
        .with_context(|| format!("cannot take heads out of heads.jsonl in {}", place.audit.display()))?;
    if !stored.is_empty() {
        in_store(async {
            let store = StoreKind::default().open(&place.state).await?;
            let mut forgotten = Ok(0);
            for chain in &stored {
                forgotten = store.forget_heads(chain).await;
                if forgotten.is_err() {
                    break;
                }
            }
            store.close().await;
            forgotten
        })??;
    }
    let (known, unknown): (Vec<_>, Vec<_>) =
        chains.iter().partition(|chain| stored.contains(*chain) || in_file.contains(*chain));
    for chain in known {
        report::note(&format!("the heads of the chain {} are forgotten", Escaped(chain)));
    }
    for chain in &unknown {
        report::error(&NoHeads((*chain).clone()).into());
    }
    Ok(if unknown.is_empty() { 0 } else { BAD })
}

/// Its heads say that it is whole.
#[derive(Debug, thiserror::Error)]
#[error("the chain {0:?} is still there: its heads are kept as long as it is")]
struct StillThere(String);

/// Nothing to forget.
#[derive(Debug, thiserror::Error)]
#[error("there are no heads of a chain {0:?}: \"footbridge audit verify\" names those that are gone")]
struct NoHeads(String);

/// Nothing was ever recorded here.
#[derive(Debug, thiserror::Error)]
#[error("there is no record in {}: FOOTBRIDGE_STATE names another state folder", .0.display())]
struct NoRecord(PathBuf);

/// The rest of a chain, or all of it, is left out.
#[derive(Debug, thiserror::Error)]
#[error("the chain {chain:?} cannot be read, and is left out from there on: {source}")]
struct Unread {
    chain: String,
    source: io::Error,
}

/// No such chain.
#[derive(Debug, thiserror::Error)]
#[error("there is no chain {name:?} in {}: give the name of a folder there, or the path of one", audit.display())]
struct NoChain {
    name: String,
    audit: PathBuf,
}

/// Standard output for much text, until its reader leaves.
#[derive(Default)]
struct Printer {
    text: String,
    is_left: bool,
}

impl Printer {
    /// Adds a line.
    fn line(&mut self, line: &str) -> io::Result<()> {
        self.text.push_str(line);
        self.text.push('\n');
        if self.text.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.text.is_empty() && !self.is_left {
            self.is_left = !report::piece(&self.text)?;
        }
        self.text.clear();
        Ok(())
    }

    /// Whether nobody reads any more.
    fn is_left(&self) -> bool {
        self.is_left
    }
}
