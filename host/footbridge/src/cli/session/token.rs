//! Where a new token goes: to standard output in one of three forms, or into a file. It is shown this once.

use std::{
    fs::{self, File, OpenOptions},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::Args;
use footbridge_proto::{endpoint::Endpoint, vars};
use serde_json::json;

use crate::{control::wire::Created, report};

#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
pub(in crate::cli) struct TokenOutput {
    /// Print NAME=VALUE lines, for env and --env-file
    #[arg(long)]
    env: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the token into this new file, which only you can read, and print the rest
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl TokenOutput {
    /// Whether people read it.
    pub(super) fn is_for_people(&self) -> bool {
        !self.env && !self.json
    }
}

/// A file that was made for a token. Dropping it before the token is in it removes it.
#[derive(Debug)]
pub(super) struct TokenFile {
    file: File,
    path: PathBuf,
    written: bool,
}

impl TokenFile {
    /// Makes the file, if one was asked for. One that is there already, or a link, is left as it is.
    pub(super) fn reserve(output: &TokenOutput) -> anyhow::Result<Option<Self>> {
        let Some(path) = &output.token_file else { return Ok(None) };
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file =
            file.with_context(|| format!("cannot make the token's file {}: choose a new name", path.display()))?;
        Ok(Some(Self { file, path: path.clone(), written: false }))
    }

    fn write(mut self, token: &str) -> anyhow::Result<PathBuf> {
        let written = self.file.write_all(format!("{token}\n").as_bytes());
        written.with_context(|| format!("cannot write the token to {}", self.path.display()))?;
        self.written = true;
        Ok(self.path.clone())
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        if !self.written {
            // It is empty; somebody else may have removed it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Tells where a session is, and its token.
pub(super) fn tell(output: &TokenOutput, file: Option<TokenFile>, created: &Created) -> anyhow::Result<()> {
    let lost = || {
        format!("the token of session {0} is lost: get another with \"footbridge session rotate {0}\"", created.name)
    };
    let text = match file {
        Some(file) => people(created, Shown::In(&file.write(&created.token).with_context(lost)?)),
        None if output.json => format!("{}\n", json!(created)),
        None if output.env => env(created),
        None => people(created, Shown::Here(&created.token)),
    };
    report::out(&text).with_context(lost)?;
    Ok(())
}

fn env(created: &Created) -> String {
    let mut text = format!("{}={}\n", vars::TOKEN, created.token);
    if let Some(endpoint) = created.endpoints.first() {
        text.push_str(&format!("{}={endpoint}\n", vars::RELAY_TO));
        // The relay takes this out of what its command gets.
        if let Some((name, value)) = direct(endpoint) {
            text.push_str(&format!("{name}={value}\n"));
        }
    }
    for (name, value) in &created.environment {
        text.push_str(&format!("{name}={value}\n"));
    }
    text
}

/// The variable by which a client goes there itself, where it can.
fn direct(endpoint: &str) -> Option<(&'static str, String)> {
    match endpoint.parse() {
        Ok(Endpoint::Unix(path)) => Some((vars::SOCKET, path.as_path().display().to_string())),
        Ok(Endpoint::Tcp(tcp)) => Some((vars::PORT, tcp.port.to_string())),
        _ => None,
    }
}

/// Where the token is.
enum Shown<'a> {
    Here(&'a str),
    In(&'a Path),
}

impl Shown<'_> {
    fn assignment(&self) -> String {
        match self {
            Self::Here(token) => format!("{}={token}", vars::TOKEN),
            Self::In(path) => format!("{}={}", vars::TOKEN_FILE, path.display()),
        }
    }
}

fn people(created: &Created, shown: Shown<'_>) -> String {
    let mut text = format!("session:  {}\n", created.name);
    for endpoint in &created.endpoints {
        text.push_str(&format!("endpoint: {endpoint}\n"));
    }
    match shown {
        Shown::Here(token) => text.push_str(&format!("token:    {token}\n")),
        Shown::In(path) => text.push_str(&format!("token:    in {}\n", path.display())),
    }
    if let Some(expires) = &created.expires {
        text.push_str(&format!("expires:  {expires}\n"));
    }
    for (name, value) in &created.environment {
        // In a file alone is the token in no output.
        let value = if matches!(shown, Shown::In(_)) { value.replace(&created.token, "TOKEN") } else { value.clone() };
        text.push_str(&format!("set:      {name}={value}\n"));
    }
    if let Some(endpoint) = created.endpoints.first() {
        text.push_str(&format!("use:      {} {}\n", shown.assignment(), to_use(endpoint)));
    }
    text
}

/// How a guest goes there.
fn to_use(endpoint: &str) -> String {
    match direct(endpoint) {
        Some((name, value)) => format!("{name}={value} tool-cli"),
        None => format!("{}={endpoint} footbridge-relay -- CMD", vars::RELAY_TO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created(endpoint: &str) -> Created {
        Created {
            name: "a".into(),
            token: "fbt_x".into(),
            endpoints: vec![endpoint.into()],
            expires: None,
            environment: [].into(),
        }
    }

    #[test]
    fn the_line_to_use_fits_the_endpoint() {
        for (endpoint, line) in [
            ("unix:/run/x.sock", "TOOL_CLI_TOKEN=fbt_x TOOL_CLI_SOCKET=/run/x.sock tool-cli\n"),
            ("tcp:127.0.0.1:7", "TOOL_CLI_TOKEN=fbt_x TOOL_CLI_PORT=7 tool-cli\n"),
            ("vsock:host:7179", "TOOL_CLI_TOKEN=fbt_x FOOTBRIDGE_TO=vsock:host:7179 footbridge-relay -- CMD\n"),
        ] {
            let text = people(&created(endpoint), Shown::Here("fbt_x"));
            assert!(text.ends_with(line) && text.contains("token:    fbt_x\n"), "{text}");
        }
        assert_eq!(env(&created("unix:/x")), "TOOL_CLI_TOKEN=fbt_x\nFOOTBRIDGE_TO=unix:/x\nTOOL_CLI_SOCKET=/x\n");
        assert_eq!(env(&created("vsock:host:7")), "TOOL_CLI_TOKEN=fbt_x\nFOOTBRIDGE_TO=vsock:host:7\n");
        let text = people(&created("unix:/x"), Shown::In(Path::new("/t")));
        assert!(
            !text.contains("fbt_") && text.contains("TOOL_CLI_TOKEN_FILE=/t TOOL_CLI_SOCKET=/x tool-cli"),
            "{text}"
        );
    }

    #[test]
    fn a_file_that_is_there_stays_and_one_without_a_token_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let output = TokenOutput { env: false, json: false, token_file: Some(path.clone()) };
        drop(TokenFile::reserve(&output).unwrap());
        assert!(!path.exists());
        let file = TokenFile::reserve(&output).unwrap().unwrap();
        assert!(TokenFile::reserve(&output).unwrap_err().to_string().contains("choose a new name"));
        file.write("fbt_x").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "fbt_x\n");
    }
}
