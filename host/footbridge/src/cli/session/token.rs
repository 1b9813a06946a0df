//! Where a new token goes: to standard output in one of three forms, or into a file, which is there as a whole or not at
//! all and which only its owner can read. It is shown this once.

use std::{
    fs::OpenOptions,
    io::{self, Read as _, Write as _},
    net::Ipv4Addr,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::Args;
use footbridge_proto::{endpoint::Endpoint, token, vars};
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use serde_json::json;
use tempfile::NamedTempFile;

use crate::{
    cli::shell_words::{assigned, is_plain_value, shell_word},
    control::wire::{Created, TOKEN_FILE},
    report,
};
use footbridge_core::digest::{Digest, digest_text};

#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
pub(in crate::cli) struct TokenOutput {
    /// Print NAME=VALUE lines; --env-file keeps them from other eyes
    #[arg(long)]
    env: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write NAME=VALUE lines into this file, which only you can read, and print the rest; for --env-file of a container
    /// engine, EnvironmentFile= of systemd, or a shell
    #[arg(long, value_name = "FILE")]
    env_file: Option<PathBuf>,
    /// Write the token into this file, which only you can read, and print the rest
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl TokenOutput {
    /// Whether people read it.
    pub(super) fn is_for_people(&self) -> bool {
        !self.env && !self.json
    }
}

/// What a file may take the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    /// Nothing: whatever is there stays.
    Stays,
    /// A file that is there.
    Replaced,
}

/// A file that is being made for a token, beside its place. Dropping it before the token is in it removes it.
#[derive(Debug)]
pub(super) struct TokenFile {
    file: NamedTempFile,
    path: PathBuf,
    existing: Existing,
    /// The digest of the token in what is there.
    replaces: Option<String>,
}

impl TokenFile {
    /// Makes the file, if one was asked for. What is there already, or a link, is left as it is.
    pub(super) fn reserve(output: &TokenOutput, existing: Existing) -> anyhow::Result<Option<Self>> {
        let Some(path) = output.token_file.as_ref().or(output.env_file.as_ref()) else { return Ok(None) };
        let failed = || format!("cannot make the token's file {}", path.display());
        match path.symlink_metadata() {
            Ok(there) if existing == Existing::Stays || !there.is_file() => {
                let kind = if there.is_file() { "a file" } else { "something that is no file" };
                let there = io::Error::other(format!("there is {kind} already: choose a new name"));
                return Err(there).with_context(failed);
            }
            Ok(_) if !holds_a_token(path).with_context(failed)? => {
                let there = io::Error::other("there is a file already that holds no token: choose a new name");
                return Err(there).with_context(failed);
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).with_context(failed),
            _ => {}
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = tempfile::Builder::new().prefix(".footbridge-").tempfile_in(folder).with_context(failed)?;
        let replaces = token_in(path).map(|token| digest_text(Digest::of(token)));
        Ok(Some(Self { file, path: path.clone(), existing, replaces }))
    }

    /// The digest of the token in the file that this one takes the place of.
    pub(super) fn replaces(&self) -> Option<String> {
        self.replaces.clone()
    }

    /// Writes it and puts it into its place.
    fn write(mut self, text: &str) -> anyhow::Result<PathBuf> {
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.as_file().sync_all());
        let placed = written.and_then(|()| match self.existing {
            Existing::Stays => self.file.persist_noclobber(&self.path).map_err(|failed| failed.error),
            Existing::Replaced => self.file.persist(&self.path).map_err(|failed| failed.error),
        });
        placed.with_context(|| format!("cannot write the token to {}", self.path.display()))?;
        Ok(self.path)
    }
}

/// Whether a file begins as one that was written for a token, or is empty: anything else is somebody's own.
fn holds_a_token(path: &Path) -> io::Result<bool> {
    let first = first_line(path)?;
    Ok(first.is_some_and(|line| line.is_empty() || line.starts_with(token::PREFIX) || line.starts_with(&variable())))
}

/// Whether a file has the token of a session whose digest alone is kept: there may be another session's.
fn holds_its_token(path: &Path, created: &Created) -> bool {
    let digest = token_in(path).map(|token| digest_text(Digest::of(token)));
    digest.is_some() && digest == created.token_digest
}

/// The token in a file that was written for one.
fn token_in(path: &Path) -> Option<String> {
    let line = first_line(path).ok()??;
    let token = line.strip_prefix(&variable()).unwrap_or(&line);
    Some(token.to_owned()).filter(|token| token.starts_with(token::PREFIX))
}

fn variable() -> String {
    format!("{}=", vars::TOKEN)
}

/// The first line of a file, or its beginning; none of what is no file.
fn first_line(path: &Path) -> io::Result<Option<String>> {
    // Whoever can write to its folder may have put something else there meanwhile, which must not be waited for.
    let file = OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut beginning = Vec::new();
    file.take(256).read_to_end(&mut beginning)?;
    Ok(Some(String::from_utf8_lossy(&beginning).lines().next().unwrap_or_default().to_owned()))
}

/// A session that was there as it was asked for, and whose token is not to be had any more.
#[derive(Debug, thiserror::Error)]
#[error(
    "session {0} is there as asked for, but only the digest of its token is kept, and no file that is named holds it: \
     \"footbridge session rotate {0}\", with the same flag, gives it another"
)]
struct NotKept(String);

/// Tells where a session is, and its token.
pub(super) fn tell(output: &TokenOutput, file: Option<TokenFile>, created: &Created) -> anyhow::Result<()> {
    let lost = || {
        format!("the token of session {0} is lost: get another with \"footbridge session rotate {0}\"", created.name)
    };
    let text = match (&created.token, file) {
        (_, None) if output.json => format!("{}\n", json!(created)),
        (Some(token), None) if output.env => env(created, token),
        (Some(token), None) => people(created, &Shown::of(created, token)),
        (Some(token), Some(file)) if output.env_file.is_some() => {
            people(created, &Shown::of_variables(created, file.write(&env(created, token)).with_context(lost)?))
        }
        (Some(token), Some(file)) => people(created, &Shown::In(file.write(&format!("{token}\n")).with_context(lost)?)),
        // What was written for it before holds it still.
        (None, Some(TokenFile { path, .. })) if holds_its_token(&path, created) => {
            let is_sourced = output.env_file.is_some();
            people(created, &if is_sourced { Shown::of_variables(created, path) } else { Shown::In(path) })
        }
        (None, None) if !output.env => people(created, &Shown::Nowhere),
        (None, _) => return Err(NotKept(created.name.clone()).into()),
    };
    report::out(&text).with_context(lost)?;
    if !output.json {
        created.notes.iter().for_each(|note| report::note(note));
    }
    Ok(())
}

fn env(created: &Created, token: &str) -> String {
    variables(created, token).into_iter().map(|(name, value)| format!("{name}={value}\n")).collect()
}

fn variables<'c>(created: &'c Created, token: &str) -> Vec<(&'c str, String)> {
    let mut all = vec![(vars::TOKEN, token.to_owned())];
    if let Some(endpoint) = created.endpoints.first() {
        all.push((vars::RELAY_TO, endpoint.clone()));
        // The relay takes this out of what its command gets.
        all.extend(direct(endpoint));
    }
    all.extend(created.environment.iter().map(|(name, value)| (name.as_str(), value.clone())));
    all
}

/// The names of variables whose values a shell would not take as they are written.
fn not_for_shells(created: &Created) -> Vec<&str> {
    let token = created.token.as_deref().unwrap_or_default();
    variables(created, token).into_iter().filter(|(_, value)| !is_plain_value(value)).map(|(name, _)| name).collect()
}

/// The variable by which a client goes there itself, where it can.
fn direct(endpoint: &str) -> Option<(&'static str, String)> {
    match endpoint.parse() {
        Ok(Endpoint::Unix(path)) => Some((vars::SOCKET, path.as_path().display().to_string())),
        // A client that is given a port goes to 127.0.0.1.
        Ok(Endpoint::Tcp(tcp)) if tcp.primary().ip() == Ipv4Addr::LOCALHOST => Some((vars::PORT, tcp.port.to_string())),
        _ => None,
    }
}

/// Where the token is.
enum Shown<'a> {
    Here(&'a str),
    In(PathBuf),
    /// In a file of variables.
    Sourced(PathBuf),
    /// In a file of variables that is not for shells.
    Literal(PathBuf),
    /// Only its digest is kept.
    Nowhere,
}

impl<'a> Shown<'a> {
    /// A token that is new is shown; of one that was there it is said where it is.
    fn of(created: &Created, token: &'a str) -> Self {
        let kept = created.folder.as_ref().filter(|_| created.was_there);
        kept.map_or(Self::Here(token), |folder| Self::In(Path::new(folder).join(TOKEN_FILE)))
    }

    /// A file of variables, with a note where a shell would not take it as it is: quotes would be part of the values for
    /// whoever takes them literally.
    fn of_variables(created: &Created, path: PathBuf) -> Self {
        let names = not_for_shells(created);
        if names.is_empty() {
            return Self::Sourced(path);
        }
        let (names, path_shown) = (names.join(", "), path.display());
        report::note(&format!(
            "a shell would act on what is in the value of {names}: do not source {path_shown}; systemd (EnvironmentFile=) \
             and container engines (--env-file) take it as it is"
        ));
        Self::Literal(path)
    }

    /// What stands before a program that is to use it; the file of variables says the rest as well.
    fn before(&self, program: &str, place: &str) -> Option<String> {
        let path = |path: &Path| shell_word(&path.display().to_string());
        Some(match self {
            Self::Here(token) => format!("{}={token} {place} {program}", vars::TOKEN),
            Self::In(file) => format!("{}={} {place} {program}", vars::TOKEN_FILE, path(file)),
            // Without a slash a shell would look for it on the PATH.
            Self::Sourced(file) if file.components().count() == 1 => {
                format!("set -a; . {}; set +a; {program}", path(&Path::new(".").join(file)))
            }
            Self::Sourced(file) => format!("set -a; . {}; set +a; {program}", path(file)),
            Self::Literal(_) => return None,
            Self::Nowhere => format!("{}=... {place} {program}", vars::TOKEN),
        })
    }
}

fn people(created: &Created, shown: &Shown<'_>) -> String {
    let mut text = format!("session:  {}\n", created.name);
    created.folder.iter().for_each(|folder| text.push_str(&format!("folder:   {folder}\n")));
    for endpoint in &created.endpoints {
        text.push_str(&format!("endpoint: {endpoint}\n"));
    }
    match shown {
        Shown::Here(token) => text.push_str(&format!("token:    {token}\n")),
        Shown::In(path) | Shown::Sourced(path) | Shown::Literal(path) => {
            text.push_str(&format!("token:    in {}\n", path.display()))
        }
        Shown::Nowhere => text.push_str(&format!(
            "token:    as it was; only its digest is kept (\"footbridge session rotate {}\" makes another)\n",
            created.name
        )),
    }
    if let Some(expires) = &created.expires {
        text.push_str(&format!("expires:  {expires}\n"));
    }
    // A file that is sourced sets them itself.
    let is_set = matches!(shown, Shown::Sourced(_) | Shown::Literal(_));
    for (name, value) in created.environment.iter().filter(|_| !is_set) {
        // In a file alone is the token in no output.
        let token = created.token.as_deref().filter(|_| !matches!(shown, Shown::Here(_)));
        let value = token.map_or_else(|| value.clone(), |token| value.replace(token, "TOKEN"));
        text.push_str(&format!("set:      {name}={value}\n"));
    }
    if let Some(endpoint) = created.endpoints.first() {
        let (place, program) = match direct(endpoint) {
            Some((name, value)) => (assigned(name, &value), "tool-cli"),
            None => (assigned(vars::RELAY_TO, endpoint), "footbridge-relay -- CMD"),
        };
        let line = shown.before(program, &place);
        text.extend(line.map(|line| format!("use:      {line}\n")));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn created(endpoint: &str) -> Created {
        Created {
            name: "a".into(),
            was_there: false,
            token: Some("fbt_x".into()),
            token_digest: None,
            folder: None,
            endpoints: vec![endpoint.into()],
            expires: None,
            environment: [("KEY".to_owned(), "fbt_x".to_owned())].into(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_line_to_use_fits_the_endpoint() {
        for (endpoint, line) in [
            ("unix:/run/x.sock", "TOOL_CLI_TOKEN=fbt_x TOOL_CLI_SOCKET=/run/x.sock tool-cli\n"),
            ("tcp:127.0.0.1:7", "TOOL_CLI_TOKEN=fbt_x TOOL_CLI_PORT=7 tool-cli\n"),
            ("tcp:[::1]:7", "TOOL_CLI_TOKEN=fbt_x FOOTBRIDGE_TO=tcp:[::1]:7 footbridge-relay -- CMD\n"),
            ("vsock:host:7179", "TOOL_CLI_TOKEN=fbt_x FOOTBRIDGE_TO=vsock:host:7179 footbridge-relay -- CMD\n"),
        ] {
            let text = people(&created(endpoint), &Shown::Here("fbt_x"));
            assert!(text.ends_with(line) && text.contains("token:    fbt_x\n"), "{text}");
            assert!(text.contains("set:      KEY=fbt_x\n"), "{text}");
        }
        let env = |endpoint: &str| env(&created(endpoint), "fbt_x");
        assert_eq!(env("unix:/x"), "TOOL_CLI_TOKEN=fbt_x\nFOOTBRIDGE_TO=unix:/x\nTOOL_CLI_SOCKET=/x\nKEY=fbt_x\n");
        assert_eq!(env("vsock:host:7"), "TOOL_CLI_TOKEN=fbt_x\nFOOTBRIDGE_TO=vsock:host:7\nKEY=fbt_x\n");
        for (shown, line) in [
            (Shown::In("/t".into()), "TOOL_CLI_TOKEN_FILE=/t TOOL_CLI_SOCKET=/x tool-cli\n"),
            (Shown::Sourced("t".into()), "set -a; . ./t; set +a; tool-cli\n"),
            (Shown::Sourced("d/t".into()), "set -a; . d/t; set +a; tool-cli\n"),
            (Shown::In("/a b".into()), "TOOL_CLI_TOKEN_FILE='/a b' TOOL_CLI_SOCKET=/x tool-cli\n"),
            (Shown::Sourced("a b".into()), "set -a; . './a b'; set +a; tool-cli\n"),
        ] {
            let text = people(&created("unix:/x"), &shown);
            let is_listed = matches!(shown, Shown::In(_));
            assert!(!text.contains("fbt_") && text.ends_with(line), "{text}");
            assert_eq!(text.contains("KEY=TOKEN"), is_listed, "{text}");
        }
    }

    #[test]
    fn what_a_shell_would_act_on_is_quoted_and_no_file_of_it_is_to_be_sourced() {
        let odd = created("unix:/run/$(touch x)/it's.sock");
        let text = people(&odd, &Shown::Here("fbt_x"));
        assert!(text.contains(r"TOOL_CLI_SOCKET='/run/$(touch x)/it'\''s.sock' tool-cli"), "{text}");
        assert_eq!(not_for_shells(&odd), [vars::RELAY_TO, vars::SOCKET]);
        assert!(!people(&odd, &Shown::of_variables(&odd, "/t".into())).contains("use:"));
        assert!(env(&odd, "fbt_x").contains("\nTOOL_CLI_SOCKET=/run/$(touch x)/it's.sock\n"), "it stays literal");
        for endpoint in ["unix:/run/x.sock", "tcp:[::1]:7"] {
            assert!(not_for_shells(&created(endpoint)).is_empty(), "{endpoint}");
        }
    }

    #[test]
    fn a_file_with_another_session_s_token_is_not_where_this_one_s_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let digest = Some(digest_text(Digest::of("fbt_x")));
        let there = Created { was_there: true, token: None, token_digest: digest, ..created("unix:/x") };
        assert!(!holds_its_token(&path, &there));
        for (text, is_its) in [
            ("fbt_x\n", true),
            ("TOOL_CLI_TOKEN=fbt_x\nFOOTBRIDGE_TO=unix:/x\n", true),
            ("fbt_y\n", false),
            ("TOOL_CLI_TOKEN=fbt_y\n", false),
            ("", false),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(holds_its_token(&path, &there), is_its, "{text}");
        }
    }

    #[test]
    fn a_file_is_there_whole_or_not_at_all_and_only_a_new_token_takes_the_place_of_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let output = TokenOutput { env: false, json: false, token_file: Some(path.clone()), env_file: None };
        let reserve = |existing| TokenFile::reserve(&output, existing);
        let left = || fs::read_dir(folder.path()).unwrap().count();
        drop(reserve(Existing::Stays).unwrap());
        assert_eq!(left(), 0);
        let (first, second) = (reserve(Existing::Stays).unwrap().unwrap(), reserve(Existing::Stays).unwrap().unwrap());
        assert!(!path.exists(), "not before there is a token");
        first.write("fbt_x").unwrap();
        assert!(second.write("fbt_y").unwrap_err().to_string().contains("cannot write the token"));
        assert!(format!("{:#}", reserve(Existing::Stays).unwrap_err()).contains("choose a new name"));
        reserve(Existing::Replaced).unwrap().unwrap().write("fbt_z").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), left()), ("fbt_z", 1));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, "my notes\n").unwrap();
        assert!(format!("{:#}", reserve(Existing::Replaced).unwrap_err()).contains("holds no token"));
        for own in ["", "TOOL_CLI_TOKEN=fbt_x\n", "fbt_x\n"] {
            fs::write(&path, own).unwrap();
            drop(reserve(Existing::Replaced).unwrap());
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "fbt_x\n");
        fs::rename(&path, folder.path().join("kept")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("kept"), &path).unwrap();
        assert!(format!("{:#}", reserve(Existing::Replaced).unwrap_err()).contains("choose a new name"), "no link");
    }
}
