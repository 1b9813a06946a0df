//! What servers offered when they were listed last, kept so that help and completion need none of them.
//!
//! A file a server, below the cache folder of this user: its first line has names and descriptions, which is all that a
//! list needs, and each line behind it one tool in full. It is made aside and renamed into place, for its owner alone.
//! What cannot be read counts as missing, and what cannot be written is said and changes nothing.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::SystemTime,
};

use footbridge_proto::wire::ToolEntry;
use nix::libc::{O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use footbridge_audit::private_folder::{make_private, replace_private};
use footbridge_cli::layout;
use footbridge_core::human::timestamp;

/// Changes when an older program could misread a newer one.
const FORMAT: u32 = 1;
/// Most bytes of a list that are read: more than the limit on a catalogue allows.
const MOST: u64 = 32 << 20;
/// Lists that are kept; beyond that the oldest goes.
const KEPT: usize = 256;

/// What is shown in place of a description that nobody accepted.
pub(crate) const CHANGED: &str = "(its definition changed: see \"footbridge servers pins diff\")";

/// What a list begins with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Names {
    format: u32,
    /// When it was listed, RFC 3339.
    pub(crate) listed: String,
    /// Its tools, sorted by name.
    pub(crate) tools: Vec<ToolEntry>,
    /// The names of those that are not what was pinned.
    #[serde(default)]
    pub(crate) changed: Vec<String>,
}

impl Names {
    /// Of these tools, listed now.
    pub(crate) fn new(tools: Vec<ToolEntry>, changed: Vec<String>) -> Self {
        Self { format: FORMAT, listed: timestamp(SystemTime::now()), tools, changed }
    }

    /// What a listing shows of the tools.
    pub(crate) fn shown(&self) -> Vec<ToolEntry> {
        let entry = |tool: &ToolEntry| {
            let description = if self.changed.contains(&tool.name) { CHANGED } else { &tool.description };
            ToolEntry { description: description.to_owned(), ..tool.clone() }
        };
        self.tools.iter().map(entry).collect()
    }
}

/// A list in full.
#[derive(Debug, Clone)]
pub(crate) struct ToolsList {
    /// Names and descriptions.
    pub(crate) names: Names,
    /// The definition of each tool, in the same order.
    pub(crate) definitions: Vec<Box<RawValue>>,
}

impl ToolsList {
    /// Of these tools, listed now.
    pub(crate) fn new(tools: Vec<(ToolEntry, Box<RawValue>)>, changed: Vec<String>) -> Self {
        let (tools, definitions) = tools.into_iter().unzip();
        Self { names: Names::new(tools, changed), definitions }
    }

    /// Whether a tool is not what was pinned.
    pub(crate) fn is_changed(&self, tool: &str) -> bool {
        self.names.changed.iter().any(|changed| changed == tool)
    }

    /// A tool in full.
    pub(crate) fn definition(&self, tool: &str) -> Option<&RawValue> {
        let at = self.names.tools.iter().position(|one| one.name == tool)?;
        self.definitions.get(at).map(|raw| &**raw)
    }
}

/// The folder of all lists.
#[derive(Debug, Clone)]
pub(crate) struct Lists(PathBuf);

impl Lists {
    /// In this cache folder.
    pub(crate) fn below(cache: &Path) -> Self {
        Self(cache.join("tools"))
    }

    /// Names and descriptions, if they are kept.
    pub(crate) fn names(&self, key: &str) -> Option<Names> {
        Self::first(&mut self.open(key)?)
    }

    /// All of a list, if it is kept.
    pub(crate) fn whole(&self, key: &str) -> Option<ToolsList> {
        let mut file = self.open(key)?;
        let names = Self::first(&mut file)?;
        let definitions: Option<Vec<_>> = file.lines().map(|line| RawValue::from_string(line.ok()?).ok()).collect();
        let definitions = definitions.filter(|all| all.len() == names.tools.len())?;
        Some(ToolsList { names, definitions })
    }

    fn first(file: &mut impl BufRead) -> Option<Names> {
        let mut line = String::new();
        file.read_line(&mut line).ok()?;
        let names: Names = serde_json::from_str(&line).ok()?;
        (names.format == FORMAT).then_some(names)
    }

    fn path(&self, key: &str) -> PathBuf {
        self.0.join(format!("{key}.jsonl"))
    }

    /// Nobody else may say what a server offers.
    fn open(&self, key: &str) -> Option<BufReader<io::Take<File>>> {
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC).open(self.path(key)).ok()?;
        let meta = file.metadata().ok()?;
        let ours = meta.is_file() && meta.uid() == nix::unistd::geteuid().as_raw() && meta.mode() & 0o077 == 0;
        ours.then(|| BufReader::with_capacity(64 * 1024, file.take(MOST)))
    }

    /// Keeps a list in place of the one before.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn keep(&self, key: &str, list: &ToolsList) -> io::Result<()> {
        make_private(&self.0).map_err(io::Error::other)?;
        replace_private(&self.path(key), |file| write(file, list))?;
        self.prune();
        Ok(())
    }

    /// Takes the oldest away where there are too many.
    fn prune(&self) {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut all: Vec<(SystemTime, PathBuf)> =
            entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
        if all.len() > KEPT {
            all.sort();
            for (_, path) in &all[..all.len() - KEPT] {
                // Another command may have been first.
                let _ = fs::remove_file(path);
            }
        }
    }
}

fn write(file: &mut File, list: &ToolsList) -> io::Result<()> {
    let mut text = serde_json::to_string(&list.names)?;
    for definition in &list.definitions {
        text.push('\n');
        text.push_str(&layout::one_line(definition));
    }
    text.push('\n');
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn list(names: &[&str]) -> ToolsList {
        let tool = |name: &&str| {
            let entry =
                ToolEntry { name: (*name).to_owned(), description: "d\n".to_owned(), has_structured_output: false };
            let raw = format!("{{\n \"name\": \"{name}\", \"inputSchema\": {{}}\n}}");
            (entry, RawValue::from_string(raw).unwrap())
        };
        ToolsList::new(names.iter().map(tool).collect(), vec!["c".to_owned()])
    }

    #[test]
    fn a_list_comes_back_as_it_was_kept_and_the_next_takes_its_place() {
        let cache = tempfile::tempdir().unwrap();
        let lists = Lists::below(cache.path());
        assert!(lists.names("k").is_none());
        lists.keep("k", &list(&["a", "b"])).unwrap();
        let whole = lists.whole("k").unwrap();
        assert_eq!(whole.definition("b").unwrap().get(), r#"{"name":"b","inputSchema":{}}"#);
        assert_eq!(whole.names.changed, ["c"]);
        assert_eq!(fs::metadata(lists.path("k")).unwrap().permissions().mode() & 0o7777, 0o600);
        assert_eq!(fs::metadata(&lists.0).unwrap().permissions().mode() & 0o7777, 0o700);
        lists.keep("k", &list(&["z"])).unwrap();
        assert_eq!(lists.names("k").unwrap().tools[0].name, "z");
        assert_eq!(fs::read_dir(&lists.0).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_is_broken_of_another_format_or_open_to_others_counts_as_missing() {
        let cache = tempfile::tempdir().unwrap();
        let lists = Lists::below(cache.path());
        lists.keep("k", &list(&["a"])).unwrap();
        let good = fs::read_to_string(lists.path("k")).unwrap();
        for text in ["", "{", "{}\n", &good.replace("\"format\":1", "\"format\":2")] {
            fs::write(lists.path("k"), text).unwrap();
            assert!(lists.names("k").is_none(), "{text}");
        }
        fs::write(lists.path("k"), good.lines().next().unwrap()).unwrap();
        assert!(lists.names("k").is_some() && lists.whole("k").is_none(), "its definitions are gone");
        fs::write(lists.path("k"), good).unwrap();
        assert!(lists.whole("k").is_some());
        fs::set_permissions(lists.path("k"), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(lists.names("k").is_none());
    }

    #[test]
    fn there_are_never_more_than_so_many() {
        let cache = tempfile::tempdir().unwrap();
        let lists = Lists::below(cache.path());
        for n in 0..KEPT + 3 {
            lists.keep(&n.to_string(), &list(&[])).unwrap();
        }
        assert_eq!(fs::read_dir(&lists.0).unwrap().count(), KEPT);
    }
}
