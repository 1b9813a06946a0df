//! A harness in this process, with one session on a socket of its own.

use std::{fs, path::Path};

use footbridge::{
    audit::FileJournal,
    config::{Variables, load},
    gate::Policy,
    harness::Harness,
    listener::{Listen, Listeners},
    servers::Launcher,
    session::Labels,
};
use footbridge_proto::endpoint::Endpoint;
use footbridge_tests::{Servers, programs};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// The harness. Dropping it ends it, and its servers.
pub(crate) struct Bridge {
    /// What opens its session.
    pub(crate) token: String,
    runtime: Runtime,
    harness: Option<Harness>,
    folder: TempDir,
}

impl Bridge {
    /// Starts it, with a session that listens there.
    pub(crate) fn start(servers: &Servers, listen: &Endpoint) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("servers.json");
        fs::write(&file, servers.text(folder.path())).unwrap();
        let config = load(&[file], Path::new("/"), &Variables::of_this_process()).unwrap();
        let journal = FileJournal::create(&folder.path().join("audit")).unwrap();
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let inside = runtime.enter();
        let launcher = Launcher::Kept { helper: Some(programs::footbridge()) };
        let harness = Harness::start(config, Policy::Open, journal, launcher).unwrap();
        let listener = Listeners::default().bind(&Listen::at(listen.clone())).unwrap();
        let token = harness.serve("vm".parse().unwrap(), listener, &Labels::new()).unwrap().expose().to_owned();
        drop(inside);
        Self { token, runtime, harness: Some(harness), folder }
    }

    /// How many calls were recorded with this outcome.
    pub(crate) fn outcomes(&self, outcome: &str) -> usize {
        let folders = fs::read_dir(self.folder.path().join("audit")).unwrap().map(|entry| entry.unwrap().path());
        let files = folders.map(|folder| folder.join("000001.jsonl")).filter(|file| file.exists());
        let text: String = files.map(|file| fs::read_to_string(file).unwrap()).collect();
        text.lines().filter(|line| line.contains(&format!("\"outcome\":\"{outcome}\""))).count()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        if let Some(harness) = self.harness.take() {
            self.runtime.block_on(harness.stop());
        }
    }
}
