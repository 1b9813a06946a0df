//! A container of Podman or Docker: any image, `FROM scratch` too, by one path for both engines.
//!
//! The guest's programs are static and mounted read-only, and the relay is the entry point, so the image needs nothing.
//! There is no network, no capability, a read-only root and a private /tmp; of the host's files only the session's
//! folder shows. The relay installs the system call filter of the other sandboxes, since an engine's own refuses less: with
//! that alone AF_VSOCK, which knows no network namespaces, and the keyrings of the same user are open. The token goes by name: its value is in the environment of the engine's client alone.
//!
//! The engine's processes may be out of the keeper's reach (Docker's are its daemon's), so the container has a name of
//! its own, by which the keeper has it removed at the end, however that comes. Should nobody be left to do that, the
//! relay ends with its lifeline and the engine removes the container (`--rm`).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::Nesting;
use super::engine::{Engine, EngineError, EngineKind, RUN};
use crate::keeper::{Kept, KeptCommand};

/// Where the session's folder is inside.
pub const INSIDE: &str = "/run/footbridge";

/// One container to be.
#[derive(Debug)]
pub struct Container<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its image.
    pub image: &'a str,
    /// The session's folder, with empty files in `bin` that the programs are mounted on.
    pub folder: &'a Path,
    /// The guest's programs, the relay first.
    pub programs: [&'a Path; 2],
    /// Where the relay is besides, to be started from: a name that no image knows. A volume of an image, by a link that it
    /// has, may come over what is at any path that it does know.
    pub entry: &'a str,
    /// Variables that it gets: by name if their value is in the client's environment, or with a value.
    pub env: Vec<(String, Option<OsString>)>,
    /// Whether it has a terminal.
    pub terminal: bool,
    /// Whether it may make namespaces of its own.
    pub nesting: Nesting,
    /// The relay's other arguments.
    pub relay_args: Vec<OsString>,
}

impl Engine {
    /// The container's command under a keeper; `env` is the client's own environment, and holds the token.
    ///
    /// # Errors
    /// [`EngineError::Path`], [`EngineError::Pattern`].
    pub fn command(
        &self,
        container: Container<'_>,
        env: Vec<(OsString, OsString)>,
        token: &str,
    ) -> Result<KeptCommand, EngineError> {
        let args = self.run_args(container.name, &container)?;
        let mut removal = vec![self.program.clone().into_os_string()];
        removal.extend(self.global.iter().cloned());
        removal.extend(self.kind.removal().iter().map(OsString::from));
        removal.push(container.name.into());
        let without_token: Vec<_> = env.iter().filter(|(name, _)| name != token).cloned().collect();
        Ok(Kept::command(&self.program).args(args).env(env).cleanup(&removal, &without_token, self.kind.late()))
    }

    fn run_args(&self, name: &str, container: &Container<'_>) -> Result<Vec<OsString>, EngineError> {
        let mut args = self.global.clone();
        let mut add = |words: &[&str]| args.extend(words.iter().map(OsString::from));
        // Signals come by the engine's kill: its client is not ready for them from the start.
        add(&[RUN, "--rm", "--pull=never", "--name", name, "--interactive", "--sig-proxy=false"]);
        if container.terminal {
            add(&["--tty", self.kind.detach_keys()]);
        }
        add(&["--network=none", "--read-only", "--cap-drop=all", "--security-opt=no-new-privileges"]);
        add(&["--tmpfs=/tmp:rw,exec,nosuid,nodev,mode=1777", "--log-driver=none", "--no-healthcheck"]);
        add(self.kind.own_args());
        let bin = format!("{INSIDE}/bin");
        args.extend(self.mount(container.folder, INSIDE)?);
        for program in container.programs {
            let file = program.file_name().unwrap_or_default().to_string_lossy();
            args.extend(self.mount(program, &format!("{bin}/{file}"))?);
        }
        args.extend(self.mount(container.programs[0], container.entry)?);
        args.extend(environment(&container.env)?);
        args.extend(self.kind.without_proxies(|name| container.env.iter().any(|(asked, _)| asked == name)));
        args.extend(self.own.iter().cloned());
        args.push(format!("--entrypoint={}", container.entry).into());
        args.push(container.image.into());
        args.extend(["--path-first".into(), bin.into(), "--filter".into()]);
        if container.nesting == Nesting::Allowed {
            args.push("--allow-user-namespaces".into());
        }
        args.extend(container.relay_args.iter().cloned());
        Ok(args)
    }

    fn mount(&self, from: &Path, at: &str) -> Result<[OsString; 2], EngineError> {
        if from.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
            return Err(EngineError::Path { name: self.name(), path: from.to_owned() });
        }
        let mut words = OsString::from("type=bind,source=");
        words.push(from);
        words.push(format!(",target={at},readonly"));
        Ok(["--mount".into(), words])
    }
}

fn environment(variables: &[(String, Option<OsString>)]) -> Result<Vec<OsString>, EngineError> {
    let mut args = Vec::new();
    for (name, value) in variables {
        if name.ends_with('*') {
            return Err(EngineError::Pattern(name.clone()));
        }
        let mut word = OsString::from(name);
        if let Some(value) = value {
            word.push("=");
            word.push(value);
        }
        args.extend([OsString::from("--env"), word]);
    }
    Ok(args)
}

/// Variables that lead to proxies, in either kind of letters.
const PROXIES: [&str; 5] = ["http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy"];

impl EngineKind {
    /// What keeps the proxies of its client's own configuration from a container, passwords among them: such a variable is
    /// named, and has no value where it is looked for.
    fn without_proxies(self, is_asked: impl Fn(&str) -> bool) -> Vec<OsString> {
        let all = PROXIES.iter().flat_map(|name| [(*name).to_owned(), name.to_ascii_uppercase()]);
        let own = all.filter(|name| self == Self::Docker && !is_asked(name));
        own.flat_map(|name| [OsString::from("--env"), name.into()]).collect()
    }
}

/// Variables that an engine's client hands to containers unasked: proxies, and what a service manager gave this process to
/// be told by.
#[must_use]
pub fn is_handed_on(name: &OsStr) -> bool {
    let name = name.as_bytes().to_ascii_lowercase();
    let managers = [
        b"notify_socket".as_slice(),
        b"listen_fds",
        b"listen_pid",
        b"listen_fdnames",
        b"watchdog_usec",
        b"watchdog_pid",
    ];
    PROXIES.iter().any(|proxy| proxy.as_bytes() == name) || managers.contains(&name.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    fn container(folder: &Path) -> Container<'_> {
        Container {
            name: "footbridge-run-x",
            image: "img",
            folder,
            programs: [Path::new("/g/footbridge-relay"), Path::new("/g/tool-cli")],
            entry: "/run/entry-x",
            env: vec![("TOKEN".into(), None), ("A".into(), Some("b c".into()))],
            terminal: false,
            nesting: Nesting::Refused,
            relay_args: words("--to unix:/s -- true"),
        }
    }

    #[test]
    fn arguments_before_a_run_are_the_engine_s_and_the_others_its_run_s() {
        let args = words("--root /r run --ulimit nofile=9:9");
        let engine = Engine::new(EngineKind::Podman, "/p".into(), &args);
        let all = engine.run_args("n", &container(Path::new("/s"))).unwrap();
        assert_eq!(all[..3], words("--root /r run")[..]);
        assert!(all.windows(2).any(|pair| pair == words("--ulimit nofile=9:9")), "{all:?}");
        let engine = Engine::new(EngineKind::Docker, "/d".into(), &words("--runtime runsc"));
        assert_eq!(engine.run_args("n", &container(Path::new("/s"))).unwrap()[0], "run");
    }

    #[test]
    fn the_operator_s_arguments_come_after_ours_and_the_entry_point_last() {
        let engine = Engine::new(EngineKind::Podman, "/p".into(), &words("--network=x"));
        let all = engine.run_args("n", &container(Path::new("/s"))).unwrap();
        let text: Vec<&str> = all.iter().map(|word| word.to_str().unwrap()).collect();
        let at = |word: &str| text.iter().position(|w| *w == word).unwrap_or_else(|| panic!("{word} in {text:?}"));
        assert!(at("--network=none") < at("--network=x") && at("--network=x") < at("img"));
        assert_eq!(text[at("img") - 1], "--entrypoint=/run/entry-x");
        let _mounted = at("type=bind,source=/g/footbridge-relay,target=/run/entry-x,readonly");
        let relays = ["--path-first", "/run/footbridge/bin", "--filter", "--to", "unix:/s", "--", "true"];
        assert_eq!(text[at("img") + 1..], relays);
        assert!(at("TOKEN") > 0 && at("A=b c") > 0 && !text.contains(&"--tty"));
    }

    #[test]
    fn proxies_that_docker_has_by_its_configuration_stay_outside_unless_they_are_asked_for() {
        let named = |kind: EngineKind| {
            let engine = Engine::new(kind, "/e".into(), &[]);
            let env = vec![("HTTPS_PROXY".into(), Some("http://asked".into()))];
            let all = engine.run_args("n", &Container { env, ..container(Path::new("/s")) }).unwrap();
            let pairs =
                all.windows(2).filter(|pair| pair[0] == "--env").map(|pair| pair[1].to_str().unwrap().to_owned());
            pairs.collect::<Vec<_>>()
        };
        let docker = named(EngineKind::Docker);
        assert!(
            docker.len() == 10 && docker.contains(&"http_proxy".to_owned()) && docker.contains(&"ALL_PROXY".to_owned())
        );
        assert!(docker.contains(&"HTTPS_PROXY=http://asked".to_owned()) && !docker.contains(&"HTTPS_PROXY".to_owned()));
        assert_eq!(named(EngineKind::Podman), ["HTTPS_PROXY=http://asked"]);
    }

    #[test]
    fn what_an_engine_would_misread_is_refused() {
        let engine = Engine::new(EngineKind::Docker, "/d".into(), &[]);
        let error = engine.run_args("n", &container(Path::new("/a,readonly=false"))).unwrap_err();
        assert!(error.to_string().contains("comma"), "{error}");
        assert!(environment(&[("AWS_*".into(), None)]).unwrap_err().to_string().contains("pattern"));
        for name in ["HTTPS_PROXY", "no_proxy", "NOTIFY_SOCKET"] {
            assert!(is_handed_on(OsStr::new(name)), "{name}");
        }
        assert!(!is_handed_on(OsStr::new("PROXY")));
    }
}
