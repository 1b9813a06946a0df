//! What the environment says about the bridge: where it is, what token to show, how long to wait.
//!
//! Read once, with every mistake named. A port that is no port means the default, as the public clients have it; a
//! socket beside a host or port is refused, since either could be meant.

use std::{
    env::VarError,
    fmt,
    fs::OpenOptions,
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use footbridge_proto::{
    endpoint::{EndpointError, SocketPath},
    text::Escaped,
    token::{Token, TokenError},
    vars,
};
use nix::libc;

/// More than a file with a token has.
const MAX_TOKEN_FILE_BYTES: u64 = 4096;

/// Where the bridge is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BridgeAddress {
    /// TCP on a host and port.
    Tcp {
        /// An address or a name.
        host: String,
        /// The port.
        port: u16,
    },
    /// A Unix socket.
    Unix(SocketPath),
}

impl BridgeAddress {
    /// TCP on a host, which is an address (in brackets or not) or a name, and a port.
    ///
    /// # Errors
    /// [`SettingsError::Host`].
    pub fn tcp(host: &str, port: u16) -> Result<Self, SettingsError> {
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        if bare.is_empty() || !bare.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:%".contains(&b)) {
            return Err(SettingsError::Host(host.to_owned()));
        }
        Ok(Self::Tcp { host: bare.to_owned(), port })
    }

    /// What goes into the `Host` header: the host and port, or the fixed `localhost` of a Unix socket.
    #[must_use]
    pub(crate) fn host_header(&self) -> String {
        match self {
            Self::Tcp { host, port } if host.contains(':') => format!("[{host}]:{port}"),
            Self::Tcp { host, port } => format!("{host}:{port}"),
            Self::Unix(_) => "localhost".to_owned(),
        }
    }
}

impl fmt::Display for BridgeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { .. } => f.write_str(&self.host_header()),
            Self::Unix(path) => write!(f, "unix:{}", path.as_path().display()),
        }
    }
}

/// What a [`crate::Client`] needs to know.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// Where the bridge is.
    pub target: BridgeAddress,
    /// What to show it; without one a bridge answers 401.
    pub token: Option<Token>,
    /// The file that the token is from, if it is from one. A harness replaces it when there is another.
    pub token_file: Option<PathBuf>,
    /// How long one request may take.
    pub timeout: Duration,
    /// Who may listen on a TCP port of this machine, besides root, this process's user and the relay's in a sandbox: a
    /// token is shown to nobody else.
    pub listener_uid: Option<u32>,
}

impl ClientSettings {
    /// A target and a token, with the default timeout.
    #[must_use]
    pub fn of(target: BridgeAddress, token: Token) -> Self {
        let timeout = Duration::from_millis(vars::DEFAULT_TIMEOUT_MS);
        Self { target, token: Some(token), token_file: None, timeout, listener_uid: None }
    }

    /// Reads this process's environment.
    ///
    /// # Errors
    /// [`SettingsError`], naming the variable.
    pub fn from_env() -> Result<Self, SettingsError> {
        Self::read(&|name| match std::env::var(name) {
            Ok(value) => Ok(Some(value)),
            Err(VarError::NotPresent) => Ok(None),
            Err(VarError::NotUnicode(_)) => Err(SettingsError::NotUnicode(name)),
        })
    }

    /// Reads variables through `look`; empty ones count as absent, and so does `${NAME}` in one of this name: agents
    /// leave it there for a variable that they do not have.
    ///
    /// # Errors
    /// [`SettingsError`], naming the variable.
    pub fn read(look: &dyn Fn(&'static str) -> Result<Option<String>, SettingsError>) -> Result<Self, SettingsError> {
        let get = |name| look(name).map(|value| value.filter(|text| is_value(name, text)));
        Ok(Self {
            target: target(&get)?,
            token: token(&get)?,
            token_file: if get(vars::TOKEN)?.is_some() { None } else { get(vars::TOKEN_FILE)?.map(PathBuf::from) },
            timeout: timeout(get(vars::TIMEOUT_MS)?)?,
            listener_uid: listener_uid(get(vars::LISTENER_UID)?)?,
        })
    }
}

impl ClientSettings {
    /// Why the value of [`vars::PORT`] is left alone, where it is no port: the default is used then, as by the public clients,
    /// and the token is shown there.
    #[must_use]
    pub fn ignored_port(value: Option<&str>) -> Option<String> {
        let value = value.filter(|text| is_value(vars::PORT, text) && port_of(text).is_none())?;
        let (name, default) = (vars::PORT, vars::DEFAULT_PORT);
        Some(format!("{name} is \"{}\", which is no port from 1 to 65535: {default} is used", Escaped(value)))
    }

    /// Reads the token anew, where it is in a file. One that cannot be read stays what it was.
    pub(crate) fn read_token_again(&mut self) {
        let Some(text) = self.token_file.as_ref().and_then(|path| read_token_file(path).ok()) else { return };
        if let Ok(token) = Token::parse(text.trim()) {
            self.token = Some(token);
        }
    }
}

type Get<'a> = &'a dyn Fn(&'static str) -> Result<Option<String>, SettingsError>;

fn target(get: Get<'_>) -> Result<BridgeAddress, SettingsError> {
    let (host, port, socket) = (get(vars::HOST)?, get(vars::PORT)?, get(vars::SOCKET)?);
    if let Some(path) = socket {
        if host.is_some() || port.is_some() {
            return Err(SettingsError::Ambiguous);
        }
        return SocketPath::new(path).map(BridgeAddress::Unix).map_err(SettingsError::Socket);
    }
    let host = host.unwrap_or_else(|| vars::DEFAULT_HOST.to_owned());
    BridgeAddress::tcp(&host, port.and_then(|text| port_of(&text)).unwrap_or(vars::DEFAULT_PORT))
}

/// The port that a value names, if it is one.
fn port_of(text: &str) -> Option<u16> {
    text.trim().parse().ok().filter(|port| *port != 0)
}

/// Whether a variable says anything: `${NAME}` in one of this name is what an agent leaves that does not have it.
fn is_value(name: &str, text: &str) -> bool {
    !text.is_empty() && !text.starts_with(&format!("${{{name}"))
}

fn token(get: Get<'_>) -> Result<Option<Token>, SettingsError> {
    if let Some(text) = get(vars::TOKEN)? {
        return Token::parse(text.trim())
            .map(Some)
            .map_err(|source| SettingsError::Token { name: vars::TOKEN, source });
    }
    let Some(path) = get(vars::TOKEN_FILE)?.map(PathBuf::from) else { return Ok(None) };
    let text = read_token_file(&path).map_err(|source| SettingsError::TokenFile { path: path.clone(), source })?;
    Token::parse(text.trim()).map(Some).map_err(|source| SettingsError::Token { name: vars::TOKEN_FILE, source })
}

/// Reads a file with a token, which waits for nobody and has an end: a pipe or a device is none.
fn read_token_file(path: &Path) -> io::Result<String> {
    let wrong = |why: String| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if !file.metadata()?.is_file() {
        return wrong("it is no regular file: name the one that has the token".to_owned());
    }
    let mut text = String::new();
    file.take(MAX_TOKEN_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_TOKEN_FILE_BYTES {
        return wrong(format!(
            "it has more than {MAX_TOKEN_FILE_BYTES} bytes: name the file that has nothing but the token"
        ));
    }
    Ok(text)
}

fn listener_uid(text: Option<String>) -> Result<Option<u32>, SettingsError> {
    text.map(|text| text.trim().parse().map_err(|_| SettingsError::ListenerUid(text.clone()))).transpose()
}

fn timeout(text: Option<String>) -> Result<Duration, SettingsError> {
    let Some(text) = text else { return Ok(Duration::from_millis(vars::DEFAULT_TIMEOUT_MS)) };
    match text.trim().parse() {
        Ok(ms @ 1..=vars::MAX_TIMEOUT_MS) => Ok(Duration::from_millis(ms)),
        _ => Err(SettingsError::Timeout(text)),
    }
}

/// What mends it where the session ended, or the file is another user's.
fn token_hint(path: &Path, error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied if is_in_removed_folder(path) => ENDED,
        io::ErrorKind::PermissionDenied => {
            " (a session that was created with --socket-mode 0666 has one that every user of this sandbox can read)"
        }
        _ => "",
    }
}

/// What to do where the folder of a session was removed.
pub const ENDED: &str = " (its folder was removed on the host, so its session ended; what is made there anew is not seen \
                         here: create the session, then start this sandbox again)";

/// Whether a file is in a folder that was removed and is still mounted here.
#[must_use]
pub fn is_in_removed_folder(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    path.parent().and_then(|folder| folder.metadata().ok()).is_some_and(|folder| folder.nlink() == 0)
}

/// What is wrong with the environment. Never holds the token.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A value that is not UTF-8.
    #[error("{0} is not UTF-8: set it again")]
    NotUnicode(&'static str),
    /// A socket and a host or port.
    #[error(
        "ambiguous endpoint: {socket} is set together with {host} or {port}; unset one of them",
        socket = vars::SOCKET, host = vars::HOST, port = vars::PORT
    )]
    Ambiguous,
    /// A socket path that cannot be one.
    #[error("{}: {_0}", vars::SOCKET)]
    Socket(#[source] EndpointError),
    /// A host that cannot be one.
    #[error("{} is \"{_0}\", which is no host: write an address or a name", vars::HOST)]
    Host(String),
    /// A token that no header can carry.
    #[error("{name}: {source}; set it to the token that the harness printed")]
    Token {
        /// The variable.
        name: &'static str,
        /// What is wrong with it.
        source: TokenError,
    },
    /// A token file that cannot be read.
    #[error(
        "cannot read the token from {path} ({name}): {source}{hint}", path = path.display(), name = vars::TOKEN_FILE,
        hint = token_hint(path, .source)
    )]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A user that is no number.
    #[error("{} is \"{_0}\": write the number of a user", vars::LISTENER_UID)]
    ListenerUid(String),
    /// A timeout out of range.
    #[error("{} is \"{_0}\": write milliseconds from 1 to {}", vars::TIMEOUT_MS, vars::MAX_TIMEOUT_MS)]
    Timeout(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)]) -> Result<ClientSettings, SettingsError> {
        ClientSettings::read(&|name| Ok(vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())))
    }

    #[test]
    fn nothing_set_means_the_defaults() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.target.to_string(), "127.0.0.1:7179");
        assert_eq!(settings.timeout, Duration::from_secs(30));
        assert!(settings.token.is_none());
    }

    #[test]
    fn a_port_that_is_no_port_means_the_default() {
        for port in ["", "0", "65536", "abc", "-1"] {
            assert_eq!(read(&[("TOOL_CLI_PORT", port)]).unwrap().target.to_string(), "127.0.0.1:7179", "{port}");
            let told = ClientSettings::ignored_port(Some(port));
            assert_eq!(told.is_none(), port.is_empty(), "{port}: {told:?}");
        }
        assert_eq!(read(&[("TOOL_CLI_PORT", "80")]).unwrap().target.to_string(), "127.0.0.1:80");
    }

    #[test]
    fn what_an_agent_left_unfilled_is_not_there() {
        let settings = read(&[("TOOL_CLI_SOCKET", "/run/b.sock"), ("TOOL_CLI_PORT", "${TOOL_CLI_PORT}")]).unwrap();
        assert_eq!(settings.target.to_string(), "unix:/run/b.sock");
        let settings = read(&[("TOOL_CLI_SOCKET", "${TOOL_CLI_SOCKET:-}"), ("TOOL_CLI_TOKEN", "${TOOL_CLI_TOKEN}")]);
        assert!(settings.is_ok_and(|settings| settings.token.is_none()));
    }

    #[test]
    fn a_socket_beside_a_port_is_ambiguous() {
        let error = read(&[("TOOL_CLI_SOCKET", "/s"), ("TOOL_CLI_PORT", "80")]).unwrap_err();
        assert!(error.to_string().starts_with("ambiguous endpoint"), "{error}");
        let socket = read(&[("TOOL_CLI_SOCKET", "/s")]).unwrap().target;
        assert_eq!(socket.host_header(), "localhost");
    }

    #[test]
    fn a_host_cannot_add_a_header() {
        assert!(matches!(read(&[("TOOL_CLI_HOST", "a\r\nX: y")]), Err(SettingsError::Host(_))));
        assert_eq!(read(&[("TOOL_CLI_HOST", "[::1]")]).unwrap().target.host_header(), "[::1]:7179");
    }

    #[test]
    fn a_bad_token_is_named_and_not_shown() {
        let error = read(&[("TOOL_CLI_TOKEN", "se cret")]).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("cret"), "{error}");
    }

    #[test]
    fn a_folder_that_was_removed_is_told_from_a_file_that_is_not_there() {
        use std::os::fd::AsRawFd as _;
        let folder = std::env::temp_dir().join(format!("footbridge-removed-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        // As a mount, this is still there when the folder is not.
        let kept = std::fs::File::open(&folder).unwrap();
        let path = format!("/proc/self/fd/{}/token", kept.as_raw_fd());
        let error = || read(&[("TOOL_CLI_TOKEN_FILE", &path)]).unwrap_err().to_string();
        assert!(!error().contains("ended"), "{}", error());
        std::fs::remove_dir(&folder).unwrap();
        assert!(error().contains("its session ended"), "{}", error());
    }

    #[test]
    fn a_file_that_can_hold_no_token_is_neither_waited_for_nor_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        nix::unistd::mkfifo(path("fifo").as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::write(path("long"), "x".repeat(5000)).unwrap();
        std::fs::write(path("token"), "fbt_token\n").unwrap();
        // The device with an end first: without a look at what it is, the test ends there.
        for (path, why) in [
            ("/dev/null", "no regular file"),
            (&path("long"), "more than 4096 bytes"),
            ("/dev/zero", "no regular file"),
            (&path("fifo"), "no regular file"),
        ] {
            let error = read(&[("TOOL_CLI_TOKEN_FILE", path)]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("cannot read the token from {path}")) && error.contains(why), "{error}");
        }
        let mut settings = read(&[("TOOL_CLI_TOKEN_FILE", &path("token"))]).unwrap();
        settings.token_file = Some(path("fifo").into());
        settings.read_token_again();
        assert_eq!(settings.token.unwrap().expose(), "fbt_token");
    }

    #[test]
    fn who_may_listen_is_a_number() {
        assert_eq!(read(&[("TOOL_CLI_LISTENER_UID", "998")]).unwrap().listener_uid, Some(998));
        assert_eq!(read(&[]).unwrap().listener_uid, None);
        assert!(matches!(read(&[("TOOL_CLI_LISTENER_UID", "bridge")]), Err(SettingsError::ListenerUid(_))));
    }

    #[test]
    fn the_timeout_has_a_range() {
        assert_eq!(read(&[("TOOL_CLI_TIMEOUT_MS", "300000")]).unwrap().timeout, Duration::from_secs(300));
        for text in ["0", "300001", "5s"] {
            assert!(matches!(read(&[("TOOL_CLI_TIMEOUT_MS", text)]), Err(SettingsError::Timeout(_))), "{text}");
        }
    }
}
