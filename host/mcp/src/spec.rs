//! What the configuration says of one server: how to start it, where it is, or which programs are its tools.
//!
//! Only the operator's configuration makes one; nothing that a guest or a server sent ever does.

use std::collections::BTreeSet;

use crate::wrapped::CliSpec;
use footbridge_outbound::HttpSpec;
use footbridge_processes::launch::ProgramSpec;
use serde_json::{Map, Value, json};
use url::form_urlencoded;

use footbridge_core::names::ServerName;
use footbridge_core::{
    catalogue::Origin,
    redact::{Redactor, shapes},
};

/// One server of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    /// Its name.
    pub name: ServerName,
    /// How to reach it.
    pub transport: TransportSpec,
    /// Which revision of MCP to speak.
    pub protocol: ProtocolChoice,
    /// Tools that are left out, by their names, as if the server had none of them.
    pub disabled_tools: BTreeSet<String>,
    /// What of its entry is odd, and may be why its program does not start.
    pub hint: Option<String>,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportSpec {
    /// A program of ours that speaks on its standard input and output.
    Stdio(ProgramSpec),
    /// Streamable HTTP.
    Http(HttpSpec),
    /// The older transport over HTTP (HTTP+SSE).
    Sse(HttpSpec),
    /// No server at all: programs of ours, each a tool.
    Cli(CliSpec),
    /// Not at all, for want of values that the configuration refers to.
    Lacking {
        /// What it would be.
        kind: &'static str,
        /// Which values, for the operator.
        why: String,
    },
}

impl TransportSpec {
    /// The word for it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(_) => "http",
            Self::Sse(_) => "sse",
            Self::Cli(_) => "cli",
            Self::Lacking { kind, .. } => kind,
        }
    }

    /// Why there is no connection to start, where there never is one.
    pub(super) fn never_starts(&self) -> Option<String> {
        match self {
            Self::Stdio(_) | Self::Http(_) | Self::Sse(_) => None,
            Self::Cli(CliSpec { missing: Some(program), .. }) => Some(not_installed(program)),
            Self::Cli(_) => {
                Some("each of its calls starts a program of its own, and nothing of it runs between them".to_owned())
            }
            Self::Lacking { why, .. } => Some(format!("a value that its configuration needs is missing: {why}")),
        }
    }

    /// What makes it this server and no other: command, arguments and folder, or the address; of programs that are tools
    /// themselves and a digest of how they are run. Without values of
    /// secrets, which may be replaced; the environment and headers are left out, since they are full of them.
    #[must_use]
    pub fn origin(&self, redactor: &Redactor) -> Origin {
        let shown = |text: &str| Value::from(shapes::hide(&redactor.hide(text)).into_owned());
        let mut origin = Map::new();
        match self {
            Self::Cli(cli) => return Origin::new(cli.origin(shown)),
            // It offers nothing that an origin could be part of.
            Self::Lacking { .. } => {}
            Self::Stdio(ProgramSpec { command, args, cwd, .. }) => {
                origin.insert("command".to_owned(), shown(command));
                origin.insert("args".to_owned(), args.iter().map(|arg| shown(arg.expose())).collect());
                origin.extend(cwd.iter().map(|cwd| ("cwd".to_owned(), shown(&cwd.to_string_lossy()))));
            }
            Self::Http(HttpSpec { url, .. }) | Self::Sse(HttpSpec { url, .. }) => {
                // As it is written first, since a value may hold what a query means something by; then apart from the rest,
                // decoded: in the text of a URL a value may be spelled in other ways.
                let written = redactor.hide(url.query().unwrap_or_default());
                let pairs = form_urlencoded::parse(written.as_bytes());
                let query: Vec<Value> = pairs.map(|(key, value)| json!([shown(&key), shown(&value)])).collect();
                let mut plain = url.clone();
                plain.set_query(None);
                // An address without a host has none of these either.
                let _no_host = (plain.set_username(""), plain.set_password(None));
                origin.insert("url".to_owned(), shown(plain.as_str()));
                origin.extend((!query.is_empty()).then(|| ("query".to_owned(), query.into())));
            }
        }
        Origin::new(Value::Object(origin))
    }
}

/// Which revision of MCP to speak with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProtocolChoice {
    /// The handshake of 2025-11-25 and before, which nearly every server speaks.
    #[default]
    Initialize,
    /// The stateless revision of 2026-07-28 only.
    Discover,
    /// Ask for the stateless one first, fall back to the handshake, and remember the answer.
    Auto,
}

/// What an operator reads of a program that a server's tools need.
pub(super) fn not_installed(program: &str) -> String {
    format!("its program {program:?} is not there: install it, and reload the configuration")
}

#[cfg(test)]
mod tests {
    use footbridge_core::secret::Secret;

    use super::*;

    #[test]
    fn an_origin_holds_no_secret_and_does_not_change_with_one() {
        let origin = |secret: &str| {
            let redactor = Redactor::new(&[Secret::new(secret)]);
            let stdio = TransportSpec::Stdio(ProgramSpec {
                command: "npx".into(),
                args: vec![Secret::new(format!("--key={secret}")), Secret::new(format!("fbt_{}", "x".repeat(43)))],
                env: vec![("KEY".into(), Secret::new(secret))],
                cwd: Some("/srv".into()),
                confine: true,
            });
            let url = format!("https://user:{secret}@example.org/mcp?key={}&b=1", secret.replace('+', "%2B"));
            let headers = vec![(http::header::AUTHORIZATION, Secret::new(secret))];
            let http = TransportSpec::Http(HttpSpec { url: url.parse().unwrap(), headers, allow_private: false });
            [stdio, http].map(|transport| transport.origin(&redactor))
        };
        let expected = [
            json!({"command": "npx", "args": ["--key=[redacted]", "[redacted]"], "cwd": "/srv"}),
            json!({"url": "https://example.org/mcp", "query": [["key", "[redacted]"], ["b", "1"]]}),
        ];
        assert_eq!(origin("s3cret-one"), expected.clone().map(Origin::new));
        assert_eq!(origin("s3cret+two"), expected.clone().map(Origin::new));
        // In a query as it stands, where these mean something.
        for secret in ["s3cret+two", "s3cret&two=x", "s3cret value=="] {
            let redactor = Redactor::new(&[Secret::new(secret)]);
            let url = format!("https://example.org/mcp?key={secret}&b=1").parse().unwrap();
            let http = TransportSpec::Http(HttpSpec { url, headers: Vec::new(), allow_private: false });
            assert_eq!(http.origin(&redactor), Origin::new(expected[1].clone()), "{secret}");
        }
    }
}
