//! A container engine with a store of its own, so that nobody's images and containers are touched, and images made from
//! static programs, so that no registry is needed.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Instant,
};

use tempfile::TempDir;

use crate::{Host, PATIENCE, Servers, docker_daemon::DockerDaemon, processes, programs, skipped};

/// Programs of the image [`Engine::TOOLS`], all of them busybox.
const APPLETS: [&str; 18] = [
    "sh",
    "cat",
    "cut",
    "env",
    "grep",
    "head",
    "id",
    "ls",
    "mktemp",
    "mount",
    "nc",
    "ps",
    "rm",
    "sed",
    "sha256sum",
    "sleep",
    "stty",
    "touch",
];

/// A container engine. When it goes, none of its containers may be left.
#[derive(Debug)]
pub struct Engine {
    name: &'static str,
    program: PathBuf,
    global: Vec<String>,
    run: Vec<String>,
    daemon: Option<DockerDaemon>,
    /// Mounts in its store that are no container's.
    mounts: Vec<String>,
    store: TempDir,
}

impl Engine {
    /// An image with nothing in it.
    pub const NOTHING: &'static str = "footbridge-test-nothing";

    /// An image with busybox in it and nothing else.
    pub const TOOLS: &'static str = "footbridge-test-tools";

    /// Both, as far as they are here; of each that is not, the reason why the test was skipped.
    pub fn each(test: &str) -> impl Iterator<Item = Self> {
        [Self::podman, Self::docker].into_iter().filter_map(move |engine| engine(test))
    }

    /// Podman, or nothing and the reason why the test was skipped.
    #[must_use]
    pub fn podman(test: &str) -> Option<Self> {
        let store = own_store(test, "Podman")?;
        let folder = |name: &str| store.path().join(name).display().to_string();
        let (root, runroot, tmpdir) = (folder("root"), folder("runroot"), folder("tmp"));
        let global = ["--root", &root, "--runroot", &runroot, "--tmpdir", &tmpdir, "--storage-driver", "vfs"];
        let global = global.map(String::from).into();
        let (name, program, run, daemon, mounts) = ("podman", "podman".into(), Vec::new(), None, Vec::new());
        let mut engine = Self { name, program, global, run, daemon, mounts, store };
        engine.prepare(test).then_some(())?;
        let plain = engine.tries();
        if plain.status.success() {
            return Some(engine);
        }
        // What a machine with cgroups of both versions at once needs.
        engine.global.extend(["--runtime", "runc"].map(String::from));
        engine.run = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"].map(String::from).into();
        if engine.tries().status.success() {
            return Some(engine);
        }
        skipped(test, &format!("podman runs no container here: {}", last_line(&plain)));
        None
    }

    /// Docker, or nothing and the reason why the test was skipped.
    #[must_use]
    pub fn docker(test: &str) -> Option<Self> {
        let Some(unpacked) = std::env::var_os("FOOTBRIDGE_DOCKER").filter(|folder| Path::new(folder).is_dir()) else {
            skipped(test, "no Docker: scripts/containers fetches it, and scripts/test --fast leaves it out");
            return None;
        };
        let store = own_store(test, "Docker")?;
        let daemon = match DockerDaemon::start(Path::new(&unpacked), store.path()) {
            Ok(daemon) => daemon,
            Err(why) => {
                skipped(test, &why);
                return None;
            }
        };
        let (program, global, mounts) = (daemon.program(), daemon.arguments(), mounts_below(store.path()));
        let engine = Self { name: "docker", program, global, run: Vec::new(), daemon: Some(daemon), mounts, store };
        engine.prepare(test).then_some(engine)
    }

    /// Makes the images.
    fn prepare(&self, test: &str) -> bool {
        let busybox = Path::new("/bin/busybox");
        let unmet = if !is_static(&programs::relay()) || !is_static(&programs::tool_cli()) {
            "the guest's programs are not static: run scripts/build and set FOOTBRIDGE_BIN_DIR".to_owned()
        } else if !is_static(busybox) {
            "there is no static busybox (package busybox-static)".to_owned()
        } else {
            self.builds(busybox)
        };
        if !unmet.is_empty() {
            skipped(test, &unmet);
        }
        unmet.is_empty()
    }

    /// An image of the tools and a program of this machine, with the libraries that it needs.
    #[must_use]
    pub fn with_program(&self, name: &str) -> &'static str {
        const IMAGE: &str = "footbridge-test-program";
        let folder = self.store.path().join("program");
        let program = programs::find(name).unwrap();
        let copy = |from: &Path, at: &Path| {
            let to = folder.join("root").join(at.strip_prefix("/").unwrap());
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        };
        copy(&program, &Path::new("/bin").join(name));
        programs::libraries(&program).iter().for_each(|library| copy(library, library));
        self.builds_from(&folder, IMAGE, &format!("FROM {}\nCOPY root /\n", Self::TOOLS));
        IMAGE
    }

    /// An image as development containers are made from: all programs of busybox, and a user `vscode` besides root.
    #[must_use]
    pub fn development(&self) -> &'static str {
        const IMAGE: &str = "footbridge-test-development";
        let folder = self.store.path().join("development");
        let root = folder.join("root");
        for name in ["bin", "dev", "etc", "opt", "proc", "run", "sys", "tmp", "workspaces"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::create_dir_all(folder.join("home/vscode")).unwrap();
        fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
        let busybox = Path::new("/bin/busybox");
        fs::copy(busybox, root.join("bin/busybox")).unwrap();
        let applets = Command::new(busybox).arg("--list").output().unwrap();
        for applet in String::from_utf8(applets.stdout).unwrap().lines().filter(|applet| *applet != "busybox") {
            symlink("busybox", root.join("bin").join(applet)).unwrap();
        }
        for (name, text) in [
            ("passwd", "root:x:0:0::/:/bin/sh\nvscode:x:1000:1000::/home/vscode:/bin/sh\n"),
            ("group", "root:x:0:\nvscode:x:1000:\n"),
            ("os-release", "ID=test\n"),
            // What it looks for, and complains about when it is not there.
            ("profile", ""),
            ("environment", ""),
        ] {
            fs::write(root.join("etc").join(name), text).unwrap();
        }
        let text = "FROM scratch\nCOPY root /\nCOPY --chown=1000:1000 home /home\nENV PATH=/bin\n";
        self.builds_from(&folder, IMAGE, text);
        IMAGE
    }

    /// Builds an image from what is in a folder.
    fn builds_from(&self, folder: &Path, image: &str, text: &str) {
        let file = folder.join("file");
        fs::write(&file, text).unwrap();
        let (file, folder) = (file.display().to_string(), folder.display().to_string());
        let _image_id = self.says(&["build", "--quiet", "--tag", image, "--file", &file, &folder]);
    }

    /// Builds the images; says what is wrong if it cannot.
    fn builds(&self, busybox: &Path) -> String {
        let folder = self.store.path().join("image");
        let bin = folder.join("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::copy(busybox, bin.join("busybox")).unwrap();
        for applet in APPLETS {
            symlink("busybox", bin.join(applet)).unwrap();
        }
        let texts = [(Self::NOTHING, "LABEL nothing=in-it"), (Self::TOOLS, "COPY bin /bin")];
        for (image, line) in texts {
            let file = folder.join(image);
            fs::write(&file, format!("FROM scratch\n{line}\n")).unwrap();
            let (file, folder) = (file.display().to_string(), folder.display().to_string());
            let built = self.command(&["build", "--quiet", "--tag", image, "--file", &file, &folder]).output();
            match built {
                Err(error) => return format!("{}: {error}", self.name),
                Ok(output) if !output.status.success() => return format!("{}: {}", self.name, last_line(&output)),
                Ok(_) => {}
            }
        }
        String::new()
    }

    fn tries(&self) -> Output {
        let mut words = vec!["run", "--rm", "--network=none"];
        words.extend(self.run.iter().map(String::as_str));
        words.extend([Self::TOOLS, "/bin/sh", "-c", "exit 0"]);
        self.command(&words).output().unwrap()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.global).args(words);
        command
    }

    /// What it says to these words.
    #[must_use]
    pub fn says(&self, words: &[&str]) -> String {
        let output = self.command(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Somebody with the demo server who runs commands in containers of this image.
    #[must_use]
    pub fn host(&self, image: &str) -> Host {
        let mut host = Host::with(&Servers::demo()).sandbox(self.name).option("--image").option(image);
        host = host.env("PATH", self.search_path());
        for word in self.global.iter().chain([&"run".to_owned()]).chain(&self.run) {
            host = host.option(format!("--engine-arg={word}"));
        }
        host
    }

    /// The variable by which its client is found.
    #[must_use]
    pub fn search_path(&self) -> String {
        self.daemon.as_ref().map_or_else(|| std::env::var("PATH").unwrap(), DockerDaemon::path)
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What the arguments of the process hold that starts a container.
    #[must_use]
    pub fn starter(&self) -> &'static str {
        if self.daemon.is_some() { "containerd-shim" } else { "conmon " }
    }

    /// An image of Debian with its own programs, or nothing and the reason why the test was skipped.
    #[must_use]
    pub fn debian(&self, test: &str) -> Option<&'static str> {
        let archive = std::env::var_os("FOOTBRIDGE_DEBIAN").filter(|path| Path::new(path).is_file());
        let Some(archive) = archive else {
            skipped(test, "no image of Debian: scripts/containers makes one, and scripts/test --fast leaves it out");
            return None;
        };
        let archive = archive.into_string().unwrap();
        let _image_id = self.says(&["import", &archive, "footbridge-test-debian"]);
        Some("footbridge-test-debian")
    }

    /// Makes an image of this archive, with a change to what it declares.
    pub fn imports(&self, archive: &Path, change: &str, name: &str) {
        let _image_id = self.says(&["import", "--change", change, archive.to_str().unwrap(), name]);
    }

    /// Writes a program of its name into a folder, which finds its own store, and what this machine needs, by itself.
    pub fn shim(&self, folder: &Path) {
        let (global, run) = (self.global.join(" "), self.run.join(" "));
        let program = programs::find(&self.program.display().to_string()).unwrap();
        let program = program.display();
        let text = format!(
            "#!/bin/sh\nif [ \"$1\" = run ]; then shift; exec {program} {global} run {run} \"$@\"; fi\n\
             exec {program} {global} \"$@\"\n"
        );
        programs::writes(&folder.join(self.name), &text);
    }

    /// The first process of its only container.
    #[must_use]
    pub fn init(&self) -> processes::Process {
        let pid = self.says(&["inspect", "--format", "{{.State.Pid}}", &self.names()]);
        processes::open(pid.parse().unwrap()).unwrap()
    }

    /// The names of all containers, running or not.
    #[must_use]
    pub fn names(&self) -> String {
        self.says(&["ps", "--all", "--filter", "name=footbridge-run-", "--format", "{{.Names}}"])
    }

    /// Waits until it has no container, and nothing of one.
    #[track_caller]
    pub fn leaves_nothing_behind(&self) {
        let deadline = Instant::now() + PATIENCE;
        let mounts = || mounts_below(self.path()).into_iter().filter(|mount| !self.mounts.contains(mount));
        while !self.names().is_empty() || mounts().next().is_some() {
            assert!(Instant::now() < deadline, "left behind: {} {:?}", self.names(), mounts().collect::<Vec<_>>());
        }
        let is_left = |process: &processes::Process| process.arguments.contains(self.starter());
        let left = match &self.daemon {
            None => processes::left_of(self.path()),
            // The daemon stays.
            Some(_) => processes::naming(self.path()).into_iter().filter(is_left).collect(),
        };
        let left: Vec<_> = left.into_iter().filter(|process| !process.ends_by(deadline)).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    /// Where its store is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.store.path()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Also where a test failed; a test that did not has left nothing.
        let _nothing_to_remove = match &self.daemon {
            None => self.command(&["rm", "--all", "--force", "--time", "0"]).output(),
            Some(_) => self.command(&["ps", "--all", "--quiet"]).output().and_then(|listed| {
                let ids = String::from_utf8_lossy(&listed.stdout).into_owned();
                self.command(&["rm", "--force"]).args(ids.lines()).output()
            }),
        };
        drop(self.daemon.take());
        processes::end_all(self.store.path());
    }
}

/// Where an engine keeps all that it has, or nothing and the reason why the test was skipped.
fn own_store(test: &str, engine: &str) -> Option<TempDir> {
    if nix::unistd::geteuid().is_root() {
        return Some(tempfile::Builder::new().prefix("fb-store-").tempdir().unwrap());
    }
    // Without root it needs ranges of users that a test cannot take for itself.
    skipped(test, &format!("{engine} in a store of its own needs root"));
    None
}

/// The mounts below a folder, as the kernel lists them.
fn mounts_below(folder: &Path) -> Vec<String> {
    let (all, folder) = (fs::read_to_string("/proc/self/mounts").unwrap(), folder.display().to_string());
    all.lines().filter(|line| line.contains(&folder)).map(str::to_owned).collect()
}

fn last_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.trim().lines().last().unwrap_or("no reason given").to_owned()
}

/// Whether a program needs nothing else to run.
fn is_static(program: &Path) -> bool {
    let holds = |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    let loader = |bytes: &[u8]| holds(bytes, b"/ld-linux") || holds(bytes, b"/ld-musl");
    // The name of the loader stands in the first kilobytes.
    fs::read(program).is_ok_and(|bytes| !loader(&bytes[..bytes.len().min(8192)]))
}
