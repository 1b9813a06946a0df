//! The tasks by which it is counted what command-line clients cost an agent, and the command lines that each takes.
//!
//! A line is what an agent sends to its shell at once; a loop or a pipe over calls of one kind is one line, two calls
//! that differ are two. Each client does what an agent must that knows its name alone: it learns how it is used, then
//! finds what it calls. Nobody has to learn what an earlier task showed. What is read is all that a line prints. Where a
//! client has no way of its own, its line is what a careful agent would type, and where it cannot do a task at all it has
//! none, which counts for it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{Address, Bridge, Real, Servers, programs};
use serde_json::json;

/// Clients, in the order of a task's lines.
pub const CLIENTS: [&str; 3] = ["tool-cli", "mcporter", "mcpc"];

/// One thing to do.
#[derive(Debug)]
pub struct Task {
    /// As `docs/agents.md` names it.
    pub name: &'static str,
    /// The lines of each client.
    pub lines: [&'static [&'static str]; 3],
    /// A script that fails unless it was done; `$READ` is a file of what the agent read.
    pub proof: &'static str,
}

/// How many cities are asked about, and which.
const CITIES: &str = "for city in Bern Oslo Rome Lima Cairo Delhi Paris Quito Tokyo Zagreb; do";

/// All of them: how a client is used, which every agent has to learn first, then the fourteen.
pub const TASKS: [Task; 15] = [
    Task {
        name: "how it is used",
        lines: [&["tool-cli", "tool-cli skill"], &["mcporter", "mcporter call --help"], &["mcpc", "mcpc --help"]],
        proof: "true",
    },
    Task {
        name: "find a reader",
        lines: [
            &["tool-cli search read file"],
            &["mcporter list", "mcporter list files"],
            // Tools are looked for in sessions, and connecting shows them.
            &[
                "mcpc connect $SERVERS:demo @demo",
                "mcpc connect $SERVERS:everything @everything",
                "mcpc connect $SERVERS:files @files",
                "mcpc connect $SERVERS:git @git",
            ],
        ],
        proof: "grep -q read_text_file $READ",
    },
    Task {
        name: "read a file",
        lines: [
            &["tool-cli files read_text_file --path $PWD/notes.txt"],
            &["mcporter call files.read_text_file path=$PWD/notes.txt"],
            &["mcpc @files tools-call read_text_file path:=$PWD/notes.txt"],
        ],
        proof: "grep -q 'buy bread' $READ",
    },
    Task {
        name: "commit",
        lines: [
            &[
                "tool-cli git git_add --repo-path $PWD --files notes.txt",
                "tool-cli git git_commit --repo-path $PWD --message 'More to buy'",
            ],
            &[
                "mcporter list git",
                "mcporter call git.git_add --args '{\"repo_path\":\"'$PWD'\",\"files\":[\"notes.txt\"]}'",
                "mcporter call git.git_commit repo_path=$PWD message='More to buy'",
            ],
            &[
                "mcpc @git tools-call git_add repo_path:=$PWD files:='[\"notes.txt\"]'",
                "mcpc @git tools-call git_commit repo_path:=$PWD message:='More to buy'",
            ],
        ],
        proof: "git log -1 --format=%s | grep -qx 'More to buy'",
    },
    Task {
        name: "prompts",
        lines: [
            &["tool-cli prompt list", "tool-cli prompt get everything args-prompt --city Bern"],
            &[],
            &["mcpc @everything prompts-list", "mcpc @everything prompts-get args-prompt city:=Bern"],
        ],
        proof: "grep -q 'weather in Bern' $READ",
    },
    Task {
        name: "resources",
        lines: [
            &["tool-cli resource list", "tool-cli resource read everything demo://resource/static/document/startup.md"],
            &[
                "mcporter resource everything",
                "mcporter resource everything demo://resource/static/document/startup.md",
            ],
            &[
                "mcpc @everything resources-list",
                "mcpc @everything resources-read demo://resource/static/document/startup.md",
            ],
        ],
        proof: "grep -q 'Startup' $READ",
    },
    Task {
        name: "ten cities",
        lines: [
            &["CITIES tool-cli demo get_weather --city $city; done"],
            &["mcporter list demo", "CITIES mcporter call demo.get_weather city=$city; done"],
            &["CITIES mcpc @demo tools-call get_weather city:=$city; done"],
        ],
        proof: "test $(grep -c humidityPercent $READ) -ge 10 && grep -q Zagreb $READ",
    },
    Task {
        name: "an error",
        lines: [
            &["tool-cli demo count_slowly --to 3", "tool-cli demo count_slowly --n 3 --step-ms 10"],
            &["mcporter call demo.count_slowly to=3", "mcporter call demo.count_slowly n=3 stepMs=10"],
            &["mcpc @demo tools-call count_slowly to:=3", "mcpc @demo tools-call count_slowly n:=3 stepMs:=10"],
        ],
        proof: "grep -qi 'counted to 3' $READ",
    },
    Task {
        name: "1 MB",
        lines: [
            &["tool-cli files read_text_file --path $PWD/big.log --max-bytes 200"],
            &["mcporter call files.read_text_file path=$PWD/big.log --output text >out; head -c 200 out; wc -l out"],
            &["mcpc @files tools-call read_text_file path:=$PWD/big.log >out; head -c 400 out; wc -l out"],
        ],
        proof: "grep -q '0000001 line of a long log' $READ && grep -Eq '4000[0-9]|out' $READ",
    },
    Task {
        name: "an image",
        lines: [
            &["tool-cli everything get-tiny-image '{}' --out logo.png"],
            &[
                "mcporter list everything",
                "mcporter call everything.get-tiny-image --save-images . && mv *.png logo.png",
            ],
            &[
                "mcpc @everything tools-call get-tiny-image --json | python3 -c 'import base64, json, sys; open(\"logo.png\", \"wb\").write(next(base64.b64decode(b[\"data\"]) for b in json.load(sys.stdin)[\"content\"] if b[\"type\"] == \"image\"))'",
            ],
        ],
        proof: "head -c 4 logo.png | grep -q PNG",
    },
    Task {
        name: "nested arguments",
        lines: [
            &[
                "tool-cli files edit_file --path $PWD/notes.txt --edits '[{\"oldText\":\"bread\",\"newText\":\"rolls\"},{\"oldText\":\"milk\",\"newText\":\"cream\"}]'",
            ],
            &[
                "mcporter call files.edit_file --args '{\"path\":\"'$PWD/notes.txt'\",\"edits\":[{\"oldText\":\"bread\",\"newText\":\"rolls\"},{\"oldText\":\"milk\",\"newText\":\"cream\"}]}'",
            ],
            &[
                // What an edit is, its listing does not say.
                "mcpc @files tools-get edit_file",
                "mcpc @files tools-call edit_file path:=$PWD/notes.txt edits:='[{\"oldText\":\"bread\",\"newText\":\"rolls\"},{\"oldText\":\"milk\",\"newText\":\"cream\"}]'",
            ],
        ],
        proof: "grep -q rolls notes.txt && grep -q cream notes.txt",
    },
    Task {
        name: "a pipe",
        lines: [
            &["tool-cli files list_directory --path $PWD | grep -c FILE"],
            &["mcporter call files.list_directory path=$PWD --output text | grep -c FILE"],
            &["mcpc @files tools-call list_directory path:=$PWD | grep -c FILE"],
        ],
        proof: "grep -Eqx '[0-9]+' $READ",
    },
    Task {
        name: "200 calls",
        lines: [
            &[
                "for i in $(seq 200); do echo '{\"server\":\"demo\",\"tool\":\"get_weather\",\"arguments\":{\"city\":\"Bern\"}}'; done | tool-cli batch --parallel 8 | grep -c '\"ok\":true'",
            ],
            &["for i in $(seq 200); do mcporter call demo.get_weather city=Bern; done | grep -c humidityPercent"],
            &[
                "for i in $(seq 200); do mcpc @demo tools-call get_weather city:=Bern; done | grep -c 'executed successfully'",
            ],
        ],
        proof: "grep -qx 200 $READ",
    },
    Task {
        name: "parallel calls",
        lines: [
            &["for n in 3 4 5; do tool-cli demo count_slowly --n $n --step-ms 10 & done; wait"],
            &["for n in 3 4 5; do mcporter call demo.count_slowly n=$n stepMs=10 & done; wait"],
            &["for n in 3 4 5; do mcpc @demo tools-call count_slowly n:=$n stepMs:=10 & done; wait"],
        ],
        proof: "grep -qi 'counted to 5' $READ && grep -qi 'counted to 3' $READ",
    },
    Task {
        name: "a timeout",
        lines: [
            &["tool-cli everything trigger-long-running-operation --duration 60 --steps 1 --timeout 2s"],
            &["mcporter call everything.trigger-long-running-operation duration=60 steps=1 --timeout 2000"],
            &["mcpc @everything tools-call trigger-long-running-operation duration:=60 steps:=1 --timeout 2"],
        ],
        proof: "grep -qi 'time' $READ",
    },
];

/// What the lines of one task came to.
#[derive(Debug, Clone)]
pub struct Cost {
    /// How many lines it took.
    pub commands: usize,
    /// All that an agent read.
    pub read: Vec<u8>,
}

impl Cost {
    /// Whether a picture's bytes are in it, as base64.
    #[must_use]
    pub fn has_picture(&self) -> bool {
        String::from_utf8_lossy(&self.read).contains("iVBORw0KGgo")
    }

    /// Whether the place of an error in its program is in it.
    #[must_use]
    pub fn has_trace(&self) -> bool {
        let text = String::from_utf8_lossy(&self.read);
        text.lines().any(|line| line.trim_start().starts_with("at ") && line.contains(':') && line.ends_with(')'))
            || ["Traceback (most recent", "panicked at"].iter().any(|sign| text.contains(sign))
    }
}

/// The folder that an agent works in, and the servers that it has.
#[derive(Debug)]
pub struct TaskFolder {
    folder: PathBuf,
}

impl TaskFolder {
    /// A repository with a change to commit, and a long file.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        let script = "set -e; git init -q .; git config user.name Agent; git config user.email agent@example.org
            echo 'buy bread' >notes.txt; git add notes.txt; git commit -qm First; echo 'buy milk' >>notes.txt
            for i in $(seq 40000); do printf '%07d line of a long log\\n' $i; done >big.log";
        let made = Command::new("bash").args(["-c", script]).current_dir(folder).status().unwrap();
        assert!(made.success());
        Self { folder: folder.to_owned() }
    }

    /// The servers, where they are installed.
    #[must_use]
    pub fn servers(&self, test: &str) -> Option<Servers> {
        let [everything, files, git] = ["everything", "filesystem", "git"].map(|name| format!("mcp-server-{name}"));
        let program = |name: &str| Some(Real::server(test, name)?.program());
        let (everything, files, git) = (program(&everything)?, program(&files)?, program(&git)?);
        let servers = Servers::none()
            .and("demo", json!({"command": programs::footbridge(), "args": ["demo-server"]}))
            .and("everything", json!({"command": everything, "args": []}))
            .and("files", json!({"command": files, "args": [self.folder], "cwd": self.folder}))
            .and("git", json!({"command": git, "args": ["--repository", self.folder]}));
        Some(servers)
    }

    /// What a line finds in its environment that is typed in a run of this bridge.
    #[must_use]
    pub fn environment(&self, bridge: &Bridge) -> Vec<(&'static str, String)> {
        let Address::Port(port) = &bridge.guest.address else { panic!("{bridge:?} has no port") };
        let path = std::env::var("PATH").unwrap_or_default();
        vec![
            ("TOOL_CLI_STYLE", "agent".to_owned()),
            ("TOOL_CLI_PORT", port.to_string()),
            ("TOOL_CLI_TOKEN", bridge.guest.token.clone()),
            ("PATH", format!("{}:{path}", programs::folder().display())),
            ("TMPDIR", self.folder.display().to_string()),
        ]
    }

    /// What the lines of a task print, with this environment; fails where they do not do it.
    #[must_use]
    pub fn does(&self, task: &Task, client: usize, env: &[(&'static str, String)]) -> Cost {
        let mut read = Vec::new();
        for line in task.lines[client] {
            let line = format!("exec 2>&1\n{}", line.replace("CITIES", CITIES));
            let mut command = Command::new("bash");
            command.args(["-c", &line]).current_dir(&self.folder).stdin(Stdio::null());
            command.envs(env.iter().map(|(name, value)| (name, value)));
            read.extend(command.output().unwrap().stdout);
        }
        let cost = Cost { commands: task.lines[client].len(), read };
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &cost.read).unwrap();
        let mut proof = Command::new("bash");
        proof.args(["-c", task.proof]).current_dir(&self.folder).env("READ", file.path());
        let is_done = cost.commands == 0 || proof.status().unwrap().success();
        let (who, name) = (CLIENTS[client], task.name);
        assert!(is_done, "{who} does not do \"{name}\": {}", String::from_utf8_lossy(&cost.read));
        cost
    }
}
