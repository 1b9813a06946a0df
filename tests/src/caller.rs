//! Somebody who calls tools without a daemon: by `footbridge call` and `tools`, and by `mcp-tool`.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::{
    host::Host,
    running::{Ran, Running},
};

impl Host {
    /// The folder of what can be had again.
    #[must_use]
    pub fn cache(&self) -> PathBuf {
        self.path().join("cache")
    }

    /// `footbridge` with these words and, unless they are about a session, this host's configuration files behind the first one.
    #[must_use]
    pub fn one_shot_of(&self, words: &[&str]) -> Command {
        let (first, rest) = words.split_first().unwrap();
        let mut all = vec![OsStr::new(first)];
        for config in self.configs.iter().filter(|_| !rest.contains(&"--via")) {
            all.extend([OsStr::new("--config"), config.as_os_str()]);
        }
        all.extend(rest.iter().map(OsStr::new));
        let mut command = self.footbridge(&all);
        command.env("XDG_CACHE_HOME", self.cache());
        command
    }

    /// The same, to its end.
    #[track_caller]
    #[must_use]
    pub fn one_shot(&self, words: &[&str]) -> Ran {
        Running::start(&mut self.one_shot_of(words)).ends()
    }

    /// `mcp-tool` with these words, and this host's configuration files before them.
    #[must_use]
    pub fn mcp_tool_of(&self, words: &[&str]) -> Command {
        let configs = self.configs.iter().filter(|_| !words.contains(&"--via"));
        let configs = configs.flat_map(|config| ["--config", config.to_str().unwrap()]);
        self.only_mcp_tool(&configs.chain(words.iter().copied()).collect::<Vec<_>>())
    }

    /// `mcp-tool` with these words and no others.
    #[must_use]
    pub fn only_mcp_tool(&self, words: &[&str]) -> Command {
        let program = self.path().join("mcp-tool");
        if program.symlink_metadata().is_err() {
            symlink(self.footbridge(&[]).get_program(), &program).unwrap();
        }
        let own = self.footbridge(&[]);
        let mut command = Command::new(program);
        command.args(words).env_clear().current_dir(own.get_current_dir().unwrap_or(Path::new("/")));
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("XDG_CACHE_HOME", self.cache());
        self.as_its_user(&mut command);
        command
    }

    /// The same, to its end.
    #[track_caller]
    #[must_use]
    pub fn mcp_tool(&self, words: &[&str]) -> Ran {
        Running::start(&mut self.mcp_tool_of(words)).ends()
    }

    /// The chains of one-shot calls.
    #[must_use]
    pub fn one_shot_chains(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.state().join("audit")).into_iter().flatten().map(|entry| entry.unwrap().path());
        let is_one =
            |path: &PathBuf| path.is_dir() && path.file_name().unwrap().to_string_lossy().starts_with("one-shot-");
        folders.filter(is_one).collect()
    }

    /// Records of a type.
    #[must_use]
    pub fn recorded(&self, kind: &str) -> Vec<Value> {
        self.record().into_iter().filter(|line| line["type"] == kind).collect()
    }
}
