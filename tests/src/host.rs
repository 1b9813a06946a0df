//! Whoever runs `footbridge`: with configuration, state and runtime folders of its own, and an environment of nothing
//! but what the test gives it.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    guest::Guest,
    processes, programs,
    running::{Ran, Running},
    servers::Servers,
};

/// A user who is nobody.
pub const NOBODY: u32 = 65534;

/// Somebody who runs `footbridge`. When it goes, every process that came of it must be gone.
#[derive(Debug)]
pub struct Host {
    place: Place,
    sandbox: &'static str,
    policy: Option<&'static str>,
    pub(crate) configs: Vec<PathBuf>,
    options: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    user: Option<u32>,
    bin: PathBuf,
    work: Option<PathBuf>,
}

impl Host {
    /// With these servers, the sandbox `net`, and the policy `open`: most tests are not about who may call what.
    #[must_use]
    pub fn with(servers: &Servers) -> Self {
        let folder = tempfile::Builder::new().prefix("fb-").tempdir_in(temporary()).unwrap();
        let config = folder.path().join("servers.json");
        fs::write(&config, servers.text(folder.path())).unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        let host = Self {
            place: Place(folder),
            sandbox: "net",
            policy: Some("open"),
            configs: vec![config],
            options: Vec::new(),
            env: Vec::new(),
            user: None,
            bin: programs::folder(),
            work: None,
        };
        let home = std::env::var_os("HOME").unwrap_or_else(|| "/".into());
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        host.env("HOME", home).env("PATH", path).env("LANG", "C.UTF-8")
    }

    /// With these servers, and no sandbox.
    #[must_use]
    pub fn open_with(servers: &Servers) -> Self {
        Self { sandbox: "none", ..Self::with(servers) }
    }

    /// In this sandbox.
    #[must_use]
    pub fn sandbox(self, name: &'static str) -> Self {
        Self { sandbox: name, ..self }
    }

    /// With this policy, for runs and for sessions.
    #[must_use]
    pub fn policy(self, name: &'static str) -> Self {
        Self { policy: Some(name), ..self }
    }

    /// With the policy that users get who name none.
    #[must_use]
    pub fn default_policy(self) -> Self {
        Self { policy: None, ..self }
    }

    /// The words that name its policy.
    pub(crate) fn policy_words(&self) -> Vec<&'static str> {
        self.policy.map_or_else(Vec::new, |policy| vec!["--policy", policy])
    }

    /// With this variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.retain(|(n, _)| n != name.as_ref());
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// With one more word between `run` and `--`.
    #[must_use]
    pub fn option(mut self, word: impl AsRef<OsStr>) -> Self {
        self.options.push(word.as_ref().to_owned());
        self
    }

    /// With a settings file.
    #[must_use]
    pub fn settings(self, text: &str) -> Self {
        self.config("footbridge.toml", text)
    }

    /// In another working folder.
    #[must_use]
    pub fn working_in(self, folder: impl Into<PathBuf>) -> Self {
        Self { work: Some(folder.into()), ..self }
    }

    /// With one more configuration file.
    #[must_use]
    pub fn config(mut self, name: &str, text: &str) -> Self {
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        self.configs.push(path);
        self
    }

    /// With other configuration files than its own.
    #[must_use]
    pub fn only_configs(self, configs: &[PathBuf]) -> Self {
        Self { configs: configs.to_vec(), ..self }
    }

    /// As another user, to whom everything of it belongs, the programs too.
    #[must_use]
    pub fn as_user(mut self, user: u32) -> Self {
        self.bin = self.path().join("bin");
        fs::create_dir(&self.bin).unwrap();
        for program in [programs::footbridge(), programs::tool_cli(), programs::relay()] {
            // By another process: a test that forks at this moment would hold it open for writing here.
            let copied = Command::new("cp").arg("-p").arg(&program).arg(&self.bin).status().unwrap();
            assert!(copied.success(), "{}", program.display());
        }
        fs::create_dir(self.path().join("home")).unwrap();
        give(self.path(), user);
        self.user = Some(user);
        let home = self.path().join("home");
        self.env("HOME", home)
    }

    /// The folder that all of this is in.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.place.0.path()
    }

    /// Its state folder.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// Its runtime folder.
    #[must_use]
    pub fn runtime(&self) -> PathBuf {
        self.path().join("rt")
    }

    /// The folder that commands start in.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.path().join("work")
    }

    /// The folders of its runs.
    #[must_use]
    pub fn run_folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.runtime()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    }

    /// Its servers file.
    #[must_use]
    pub fn servers_file(&self) -> PathBuf {
        self.path().join("servers.json")
    }

    /// `footbridge` with these words.
    #[must_use]
    pub fn footbridge(&self, words: &[&OsStr]) -> Command {
        let mut command = Command::new(self.bin.join("footbridge"));
        command.args(words).env_clear().current_dir(self.work.clone().unwrap_or_else(|| self.work()));
        command.env("FOOTBRIDGE_STATE", self.state()).env("FOOTBRIDGE_RUNTIME", self.runtime());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        self.as_its_user(&mut command);
        command
    }

    /// As the user who does all of it, where that is another one.
    pub(crate) fn as_its_user(&self, command: &mut Command) {
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
    }

    /// What somebody types into a shell here, to its first line that fails.
    #[must_use]
    pub fn shell_of(&self, text: &str) -> Command {
        let footbridge = self.footbridge(&[]);
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", text]).env_clear().current_dir(self.work());
        shell.envs(footbridge.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell
    }

    /// `footbridge run` of this command.
    #[must_use]
    pub fn run_of(&self, cmd: &[&str]) -> Command {
        let mut words: Vec<&OsStr> = vec![OsStr::new("run")];
        for config in &self.configs {
            words.extend([OsStr::new("--config"), config.as_os_str()]);
        }
        if !self.sandbox.is_empty() {
            words.extend(["--sandbox", self.sandbox].map(OsStr::new));
        }
        words.extend(self.policy_words().into_iter().map(OsStr::new));
        words.extend(self.options.iter().map(OsString::as_os_str));
        words.push(OsStr::new("--"));
        words.extend(cmd.iter().map(OsStr::new));
        self.footbridge(&words)
    }

    /// Starts a command.
    #[track_caller]
    #[must_use]
    pub fn starts(&self, cmd: &[&str]) -> Running {
        Running::start(&mut self.run_of(cmd))
    }

    /// Starts a script of the shell.
    #[track_caller]
    #[must_use]
    pub fn starts_script(&self, script: &str) -> Running {
        self.starts(&["bash", "-c", script])
    }

    /// Runs a command to its end.
    #[track_caller]
    #[must_use]
    pub fn runs(&self, cmd: &[&str]) -> Ran {
        self.starts(cmd).ends()
    }

    /// Runs a script of the shell to its end.
    #[track_caller]
    #[must_use]
    pub fn runs_script(&self, script: &str) -> Ran {
        self.starts_script(script).ends()
    }

    /// Starts a run without a sandbox whose session is the test's to use.
    #[track_caller]
    #[must_use]
    pub fn opens(self) -> Bridge {
        let host = Self { sandbox: "none", ..self };
        let mut running = host.starts_script("echo $TOOL_CLI_PORT $TOOL_CLI_TOKEN; read end; exit 0");
        let line = running.stdout.line();
        let (port, token) = line.split_once(' ').unwrap();
        let guest = Guest { listener: host.user, ..Guest::at_port(port.parse().unwrap(), token) };
        Bridge { guest, running: Some(running), host }
    }

    /// Every line of every record, oldest file first.
    #[must_use]
    pub fn record(&self) -> Vec<Value> {
        let mut files = self.record_files();
        files.sort();
        let text: String = files.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The files of the record.
    #[must_use]
    pub fn record_files(&self) -> Vec<PathBuf> {
        let list = |folder: &Path| -> Vec<PathBuf> {
            fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
        };
        list(&self.state().join("audit")).iter().flat_map(|folder| list(folder)).collect()
    }

    /// Waits until nothing that came of it is left.
    #[track_caller]
    pub fn leaves_nothing_behind(&self) {
        let left: Vec<_> = processes::left_of(self.path()).into_iter().map(|left| (left.pid, left.arguments)).collect();
        assert!(left.is_empty(), "left behind: {left:#?}");
    }
}

/// Where folders of tests are: the temporary folder, or, where other users cannot get to that, the system's.
fn temporary() -> PathBuf {
    let folder = std::env::temp_dir();
    let is_open = |folder: &Path| folder.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0);
    let all_the_way = fs::canonicalize(&folder).is_ok_and(|folder| folder.ancestors().all(is_open));
    if all_the_way { folder } else { "/tmp".into() }
}

/// The folder of a host, which nothing may outlive.
#[derive(Debug)]
struct Place(TempDir);

impl Drop for Place {
    fn drop(&mut self) {
        let left = if thread::panicking() { Vec::new() } else { processes::left_of(self.0.path()) };
        processes::end_all(self.0.path());
        assert!(left.is_empty(), "left behind: {left:#?}");
    }
}

fn give(path: &Path, user: u32) {
    chown(path, Some(user), Some(user)).unwrap();
    if path.is_dir() {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path(), user);
        }
    }
}

/// A run whose session is the test's to use.
#[derive(Debug)]
pub struct Bridge {
    /// Who holds its token.
    pub guest: Guest,
    running: Option<Running>,
    /// Who runs it. Dropped last.
    pub host: Host,
}

impl Bridge {
    /// The harness.
    #[track_caller]
    pub fn harness(&mut self) -> &mut Running {
        self.running.as_mut().unwrap()
    }

    /// Ends it in order.
    #[track_caller]
    pub fn ends(&mut self) -> Ran {
        self.running.take().unwrap().ends()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        if let Some(running) = self.running.take().filter(|_| !thread::panicking()) {
            let _any_status_will_do = running.ends();
        }
    }
}
