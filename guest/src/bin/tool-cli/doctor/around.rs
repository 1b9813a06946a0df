//! What of a sandbox shows from the inside: its kernel, its mounts, its users and labels. Where nothing can be read,
//! nothing is said.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Where the kernel tells, and the environment.
pub(super) struct Around {
    root: PathBuf,
    vars: BTreeMap<String, String>,
}

/// A mount, as `/proc/self/mountinfo` has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) at: PathBuf,
    pub(super) kind: String,
}

impl Around {
    /// Of this process.
    pub(super) fn here() -> Self {
        let vars =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self { root: "/".into(), vars: vars.collect() }
    }

    #[cfg(test)]
    pub(super) fn of(root: &Path, vars: &[(&str, &str)]) -> Self {
        let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self { root: root.to_owned(), vars: vars.collect() }
    }

    /// A variable that is not empty.
    pub(super) fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(super) fn vars(&self) -> impl Iterator<Item = (&String, &String)> {
        self.vars.iter()
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// Whether the kernel is gVisor's.
    pub(super) fn is_gvisor(&self) -> bool {
        self.has("proc/sentry-meminfo") || self.read("proc/version").is_some_and(|text| text.contains("gVisor"))
    }

    /// Whether commands run in Codex's own sandbox, without network.
    pub(super) fn is_codex(&self) -> bool {
        self.var("CODEX_SANDBOX_NETWORK_DISABLED").is_some() || self.var("CODEX_SANDBOX").is_some()
    }

    /// The SELinux label of this process, if it is confined by it.
    pub(super) fn label(&self) -> Option<String> {
        let label = self.read("proc/self/attr/current")?;
        let label = label.trim_end_matches(['\0', '\n']).to_owned();
        let kind = label.split(':').nth(2)?;
        (kind.ends_with("_t") && kind != "unconfined_t" && kind != "spc_t").then_some(label)
    }

    /// Whether some users of the host have no number here, and which one they show with.
    pub(super) fn unmapped_user(&self) -> Option<u32> {
        let map = self.read("proc/self/uid_map")?;
        let whole = map.lines().any(|line| {
            let numbers: Vec<u64> = line.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect();
            numbers == [0, 0, u64::from(u32::MAX)]
        });
        (!whole).then(|| self.read("proc/sys/kernel/overflowuid")?.trim().parse().ok()).flatten()
    }

    /// The innermost mount that a path is in.
    pub(super) fn mount_of(&self, path: &Path) -> Option<Mount> {
        let text = self.read("proc/self/mountinfo")?;
        let mounts = text.lines().filter_map(|line| {
            let (mount, system) = line.split_once(" - ")?;
            let at = mount.split(' ').nth(4)?.replace("\\040", " ");
            Some(Mount { at: at.into(), kind: system.split(' ').next()?.to_owned() })
        });
        // Of two at one place the later one shows.
        mounts.filter(|mount| path.starts_with(&mount.at)).max_by_key(|mount| mount.at.components().count())
    }

    /// The program that is the first process.
    pub(super) fn first_process(&self) -> Option<String> {
        self.read("proc/1/comm").map(|name| name.trim().to_owned())
    }
}
