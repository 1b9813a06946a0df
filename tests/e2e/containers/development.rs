//! `docs/devcontainer.md`, with the devcontainer tool, Podman and Docker: its recipe from its own text, with the file that it has
//! people copy; that nothing inside changes that file; and what it says of each end.

use std::{
    fs,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use footbridge_tests::{Daemon, Engine, Host, PATIENCE, Person, Ran, Real, Running, Servers, programs, recipes};
use serde_json::{Value, json};

/// The user inside, and its number.
const USER: (&str, u32) = ("vscode", 1000);

/// A call, by the socket, and what shows that it was answered.
const CALL: &str = "tool-cli demo get_weather --city Bern";
const SIGN: &str = "temperature";

/// A folder with a development container of its own.
struct Project {
    daemon: Daemon,
    /// Dropped last: it holds the programs that find the engine's store.
    engine: Engine,
}

impl Project {
    /// With this engine. Nothing where something is missing, which the test says.
    fn of(test: &str, engine: Engine) -> Option<Self> {
        let (tool, node) = (Real::server(test, "devcontainer")?, Real::server(test, "node")?);
        let bin = engine.path().join("bin");
        fs::create_dir(&bin).unwrap();
        engine.shim(&bin);
        write_tool(&bin, &tool, &node);
        let path = std::env::var("PATH").unwrap();
        let host = Host::with(&Servers::demo())
            .env("PATH", format!("{}:{}:{path}", bin.display(), programs::folder().display()))
            .env("FOOTBRIDGE_PROGRAMS", programs::folder());
        let file = file(&host);
        fs::create_dir(file.parent().unwrap()).unwrap();
        fs::write(&file, text(&engine)).unwrap();
        for path in file.ancestors().take(3) {
            chown(path, Some(USER.1), Some(USER.1)).unwrap();
        }
        Some(Self { daemon: host.serves(), engine })
    }

    /// What somebody types in the folder, to its end.
    #[track_caller]
    fn types(&self, text: &str) -> Ran {
        Running::start(&mut self.daemon.host.shell_of(text)).ends()
    }

    /// What a script of the shell does inside.
    #[track_caller]
    fn inside(&self, script: &str) -> Ran {
        let exec = self.with_engine("exec devcontainer exec --docker-path podman --workspace-folder . sh -c \"$0\"");
        Running::start(self.daemon.host.shell_of(&exec).arg(script)).ends()
    }

    /// What the page says of Podman, of this engine.
    fn with_engine(&self, text: &str) -> String {
        text.replace("podman", self.engine.name())
    }

    #[track_caller]
    fn calls(&self, call: &str) {
        let ran = self.inside(call);
        assert!(ran.status == 0 && ran.stdout.contains(SIGN), "{ran:?}");
    }

    /// By the relay, for which no start waits.
    #[track_caller]
    fn calls_by_the_port(&self) {
        self.calls(&format!("until env -u TOOL_CLI_SOCKET {CALL} 2>/dev/null; do sleep 0.05; done"));
    }
}

/// The file that makes the container.
fn file(host: &Host) -> PathBuf {
    host.work().join(".devcontainer/devcontainer.json")
}

/// The file of the documentation, with an image that is here, and what the page adds where all of it is root's.
fn text(engine: &Engine) -> String {
    let text = fs::read_to_string(programs::repository().join("docs/devcontainer.json")).unwrap();
    let mut file: Value = serde_json::from_str(&text).unwrap();
    file["image"] = json!(engine.development());
    file["remoteUser"] = json!(USER.0);
    if engine.name() == "podman" {
        file["runArgs"].as_array_mut().unwrap().push(json!("--userns="));
    }
    file.to_string()
}

/// A `devcontainer` that keeps its own files here, and builds no image: root keeps the numbers of users as they are.
fn write_tool(bin: &Path, tool: &Real, node: &Real) {
    let (tool, node, data) = (tool.program(), node.program(), bin.join("data"));
    fs::create_dir(&data).unwrap();
    let (tool, node, data) = (tool.display(), node.display(), data.display());
    let text = format!(
        "#!/bin/sh\nexport TMPDIR={data}\ncommand=$1\nshift\n\
         [ $command != up ] || set -- --update-remote-user-uid-default never \"$@\"\n\
         exec {node} {tool} $command --user-data-folder {data} \"$@\"\n"
    );
    programs::writes(&bin.join("devcontainer"), &text);
}

/// What would change what the host obeys: the files are the user's own, and only the mount is in the way.
const ATTEMPTS: [&str; 9] = [
    "echo {} >.devcontainer/devcontainer.json",
    "echo {} >.devcontainer/other",
    "mkdir .devcontainer/other",
    "mv .devcontainer/devcontainer.json .devcontainer/other",
    "rm -f .devcontainer/devcontainer.json",
    "umount .devcontainer",
    "mv .devcontainer other",
    "rm -rf .devcontainer",
    "mv $PWD ../other",
];

/// Nothing inside gets at the file that makes the container, while the rest of the folder can be written.
#[track_caller]
fn keeps_its_file(project: &Project) {
    let host = &project.daemon.host;
    let before = fs::read(file(host)).unwrap();
    let attempts: String = ATTEMPTS.iter().map(|attempt| format!("({attempt}) && echo '{attempt}'\n")).collect();
    let ran = project.inside(&format!("echo own >own\n{attempts}ls -A; ls -A .devcontainer"));
    assert_eq!(ran.stdout, ".devcontainer\nown\ndevcontainer.json\n", "{ran:?}");
    assert_eq!(fs::read(file(host)).unwrap(), before);
    assert_eq!(fs::read_to_string(host.work().join("own")).unwrap(), "own\n");
}

/// Waits until what a session had is removed.
#[track_caller]
fn is_swept(host: &Host) {
    let deadline = Instant::now() + PATIENCE;
    let names = || fs::read_dir(host.runtime().join("sessions")).unwrap().map(|entry| entry.unwrap().file_name());
    while names().any(|name| name.to_string_lossy().starts_with(".gone-")) {
        assert!(Instant::now() < deadline, "what the session had is still there");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_development_container_does_what_its_page_says() {
    let test = "a_development_container_does_what_its_page_says";
    let [(name, recipe)] = &recipes::of_page("docs/devcontainer.md")[..] else { panic!("one recipe") };
    assert_eq!((name.as_str(), recipe.matches("session create dev").count()), ("devcontainer", 1));
    Engine::each(test).filter_map(|engine| Project::of(test, engine)).for_each(|project| follow(project, recipe));
}

fn follow(mut project: Project, recipe: &str) {
    let create = "session create dev --socket-mode 0666";
    let recipe = project.with_engine(&recipe.replace("session create dev", create));
    // At a terminal, as people do: what the start leaves running inside must outlive it.
    let mut person = Person::new();
    let mut shell = person.starts(&project.daemon.host.shell_of(&recipe));
    person.sees("get_weather");
    assert!(shell.status().success());
    drop(person);
    project.calls_by_the_port();
    keeps_its_file(&project);

    assert_eq!(project.daemon.ends().status, 0);
    project.daemon.starts();
    project.calls(CALL);
    assert_eq!(project.types("footbridge session rotate dev").status, 0);
    project.calls(CALL);
    assert_eq!(project.types(&format!("footbridge session revoke dev; footbridge {create}")).status, 0);
    is_swept(&project.daemon.host);
    let ran = project.inside(CALL);
    assert!(ran.status != 0 && format!("{ran:?}").contains("so its session ended"), "{ran:?}");
    let container = project.engine.says(&["ps", "--quiet"]);
    let _name = project.engine.says(&["restart", "--time", "0", &container]);
    project.calls(CALL);
    let up = project.with_engine("devcontainer up --docker-path podman --workspace-folder .");
    assert_eq!(project.types(&up).status, 0);
    project.calls_by_the_port();

    let _name = project.engine.says(&["rm", "--force", &container]);
    assert_eq!(project.engine.says(&["ps", "--all", "--quiet"]), "");
    // First: its PATH names the engine's folder.
    assert_eq!(project.daemon.ends().status, 0);
    project.engine.leaves_nothing_behind();
    project.daemon.host.leaves_nothing_behind();
}
