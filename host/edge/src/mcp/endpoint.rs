//! What a path names: all servers as one, or one of them; and whether its tools are all shown.

use std::time::Duration;

use http::request::Parts;

use crate::{http::head, search};
use footbridge_calls::{auth::Principal, call::Stages, catalogue::Visible, cause::Failure};

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// The one server; none where it is all of them.
    pub(super) server: Option<String>,
    /// Whether there are three tools that find, describe and call all others.
    pub(super) search: bool,
}

/// The path of all servers.
const ALL: &str = "/mcp";
/// The only mode.
const SEARCH: &str = "search";

/// Whether a path is one of MCP's. One of all servers may end with a slash, as clients write it that join paths.
pub(super) fn is_ours(path: &str) -> bool {
    path.strip_prefix(ALL).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Why a request goes nowhere.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoEndpoint {
    /// Its path is no text.
    Path,
    /// It asks for a mode that there is not: whoever mistyped it would get all tools instead of three.
    Mode(String),
}

impl Endpoint {
    /// The endpoint of a request.
    pub(super) fn of(head: &Parts) -> Result<Self, NoEndpoint> {
        let rest = head::path(head).strip_prefix(ALL).ok_or(NoEndpoint::Path)?;
        let server = match rest.strip_prefix('/').filter(|encoded| !encoded.is_empty()) {
            Some(encoded) => Some(decoded(encoded).ok_or(NoEndpoint::Path)?),
            None => None,
        };
        let query = head.uri.query().unwrap_or_default();
        let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let modes: Vec<&str> = pairs.filter(|(name, _)| *name == "mode").map(|(_, mode)| mode).collect();
        match modes.iter().find(|mode| **mode != SEARCH) {
            Some(other) => Err(NoEndpoint::Mode((*other).to_owned())),
            None => Ok(Self { server, search: !modes.is_empty() }),
        }
    }
}

/// Who looks something up at an endpoint.
pub(super) struct Viewer<'a> {
    pub(super) stages: &'a Stages,
    pub(super) principal: &'a Principal,
    pub(super) endpoint: &'a Endpoint,
    /// How long servers that are starting get.
    pub(super) wait: Duration,
}

impl Viewer<'_> {
    /// What the session sees here, by the names of servers. Where it is all of them, those that are starting get time.
    pub(super) async fn seen(&self) -> Result<Vec<Visible>, Failure> {
        search::within(self.stages, self.principal, self.endpoint.server.as_deref(), self.wait).await
    }
}

/// A path's segment without its percent-encoding; none where that is broken.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        let byte = if *first == b'%' {
            let (digits, behind) = more.split_at_checked(2)?;
            rest = behind;
            let digits = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
            u8::from_str_radix(digits, 16).ok()?
        } else {
            *first
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn read(uri: &str) -> Result<Endpoint, NoEndpoint> {
        Endpoint::of(&Request::builder().uri(uri).body(()).unwrap().into_parts().0)
    }

    fn of(uri: &str) -> Option<(Option<String>, bool)> {
        read(uri).ok().map(|endpoint| (endpoint.server, endpoint.search))
    }

    #[test]
    fn a_path_names_all_servers_or_one() {
        assert_eq!(of("/mcp"), Some((None, false)));
        assert_eq!(of("/mcp?x=1&mode=search"), Some((None, true)));
        for mode in ["searching", ""] {
            assert!(read(&format!("/mcp?mode=search&mode={mode}")).is_err() && read("/mcp?mode").is_err());
            assert_eq!(read(&format!("/mcp?x=1&mode={mode}")).unwrap_err(), NoEndpoint::Mode(mode.to_owned()));
        }
        assert_eq!(of("/mcp/git?mode=search"), Some((Some("git".to_owned()), true)));
        assert_eq!(of("/mcp/my%20server%2F%C3%A4"), Some((Some("my server/ä".to_owned()), false)));
        for broken in ["/mcp/%", "/mcp/%2", "/mcp/%zz", "/mcp/%+1", "/mcp/%ff"] {
            assert_eq!(read(broken).unwrap_err(), NoEndpoint::Path, "{broken}");
        }
        assert_eq!(of("/mcp/?mode=search"), Some((None, true)));
        assert!(is_ours("/mcp") && is_ours("/mcp/") && is_ours("/mcp/a") && is_ours("/mcp/a/b"));
        for other in ["/mcpx", "/MCP", "//mcp", "/", ""] {
            assert!(!is_ours(other), "{other}");
        }
    }
}
