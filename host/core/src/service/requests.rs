//! Patterns of requests, and what a service's configuration says with them.

use std::{fmt, str::FromStr};

use super::RequestPath;
use crate::gate::{
    Effect, Effects,
    globs::{BadGlob, Glob, Of},
    readings,
};

/// A method and a pattern of paths, as in `GET /v2/**`. The method `*` is any.
#[derive(Clone)]
pub struct RequestPattern {
    method: Option<String>,
    path: Glob,
}

/// Why a text is no pattern of requests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    /// It is not a method and a path.
    #[error("\"{0}\" is no pattern of requests: write a method and a path, as in \"GET /v2/**\"")]
    Form(String),
    /// It has a query, which no pattern is compared with.
    #[error(
        "\"{0}\" has a query, and requests are told apart by method and path alone: leave out what begins with \"?\""
    )]
    Query(String),
    /// Its path is no pattern.
    #[error(transparent)]
    Path(#[from] BadGlob),
}

impl FromStr for RequestPattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, BadPattern> {
        let form = || BadPattern::Form(text.to_owned());
        let (method, path) = text.split_once(' ').ok_or_else(form)?;
        if path.starts_with('/') && path.contains('?') {
            return Err(BadPattern::Query(text.to_owned()));
        }
        let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
        if !(is_method || method == "*") || !path.starts_with('/') || path.contains([' ', '?', '#']) {
            return Err(form());
        }
        Ok(Self { method: (method != "*").then(|| method.to_owned()), path: Glob::new(path, Of::Path)? })
    }
}

impl RequestPattern {
    /// The method; none for any.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// The pattern of paths.
    #[must_use]
    pub fn path(&self) -> &str {
        self.path.as_str()
    }

    /// Whether a request is what it says. A GET pattern takes HEAD too.
    #[must_use]
    pub fn matches(&self, method: &str, path: &RequestPath) -> bool {
        self.is_of(method) && self.path.matches(path.decoded())
    }

    /// Whether a request is what it says to some server, as one that takes parameters off the segments of a path.
    fn may_match(&self, method: &str, path: &RequestPath) -> bool {
        let matches = |text: &String| self.path.matches(text) || self.path.matches(text.trim_end_matches('/'));
        self.is_of(method) && readings(path.as_written()).iter().any(matches)
    }

    fn is_of(&self, method: &str) -> bool {
        self.method.as_deref().is_none_or(|own| own == method || (own == "GET" && method == "HEAD"))
    }
}

impl fmt::Display for RequestPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method.as_deref().unwrap_or("*"), self.path.as_str())
    }
}

impl fmt::Debug for RequestPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which requests a service takes, and what is known of them.
#[derive(Debug, Clone, Default)]
pub struct ServiceRules {
    /// What may be asked; none is everything.
    pub requests: Option<Vec<RequestPattern>>,
    /// Requests that change nothing, whatever their method.
    pub reads: Vec<RequestPattern>,
    /// Requests that change something, whatever their method.
    pub writes: Vec<RequestPattern>,
    /// Whether a request may become a WebSocket.
    pub websocket: bool,
}

impl ServiceRules {
    /// Whether a request may be asked at all.
    #[must_use]
    pub fn allows(&self, method: &str, path: &RequestPath) -> bool {
        self.requests.as_ref().is_none_or(|requests| requests.iter().any(|one| one.matches(method, path)))
    }

    /// What a request can do: by its method, unless more is known of it. All of it reaches what is outside.
    #[must_use]
    pub fn effects(&self, method: &str, path: &RequestPath) -> Effects {
        let reads = !self.is_written(method, path) && (self.is_read(method, path) || reads_by_itself(method));
        match (reads, method) {
            (true, _) => Effects::of_reading(),
            (false, "DELETE") => Effects::of(&[Effect::Write, Effect::Destructive, Effect::Egress]),
            (false, _) => Effects::of(&[Effect::Write, Effect::Egress]),
        }
    }
}

impl ServiceRules {
    /// The methods that its patterns name.
    pub fn methods(&self) -> impl Iterator<Item = &str> {
        let patterns = self.requests.iter().flatten().chain(&self.reads).chain(&self.writes);
        patterns.filter_map(RequestPattern::method)
    }

    /// What a WebSocket can do, whose messages nobody looks at: it reads only where that is said of it.
    #[must_use]
    pub fn effects_of_websocket(&self, path: &RequestPath) -> Effects {
        let reads = self.is_read("GET", path) && !self.is_written("GET", path);
        if reads { Effects::of_reading() } else { Effects::of(&[Effect::Write, Effect::Egress]) }
    }

    fn is_read(&self, method: &str, path: &RequestPath) -> bool {
        self.reads.iter().any(|one| one.matches(method, path))
    }

    fn is_written(&self, method: &str, path: &RequestPath) -> bool {
        self.writes.iter().any(|one| one.may_match(method, path))
    }
}

fn reads_by_itself(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Vec<RequestPattern> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn path(text: &str) -> RequestPath {
        RequestPath::read(text).unwrap()
    }

    #[test]
    fn only_what_is_named_may_be_asked() {
        let rules = ServiceRules {
            requests: Some(patterns(&["GET /v2/**", "POST /v2/issues", "* /any/*"])),
            ..ServiceRules::default()
        };
        for (method, asked, allowed) in [
            ("GET", "/v2", true),
            ("GET", "/v2/a/b", true),
            ("HEAD", "/v2/a", true),
            ("GET", "/v2a", false),
            ("GET", "/V2/a", false),
            ("GET", "/%76%32/a", true),
            ("POST", "/v2/issues", true),
            ("POST", "/v2/issues/1", false),
            ("DELETE", "/v2/issues", false),
            ("PATCH", "/any/x", true),
            ("PATCH", "/any/x/y", false),
        ] {
            assert_eq!(rules.allows(method, &path(asked)), allowed, "{method} {asked}");
        }
        assert!(ServiceRules::default().allows("DELETE", &path("/x")));
    }

    #[test]
    fn effects_go_by_the_method_unless_more_is_known() {
        let rules = ServiceRules {
            reads: patterns(&["POST /v1/messages"]),
            writes: patterns(&["GET /trigger", "GET /v1/fire"]),
            ..ServiceRules::default()
        };
        for (method, asked, effects) in [
            ("GET", "/x", "read egress"),
            ("OPTIONS", "/x", "read egress"),
            ("POST", "/x", "write egress"),
            ("PROPFIND", "/x", "write egress"),
            ("DELETE", "/x", "write destructive egress"),
            ("POST", "/v1/messages", "read egress"),
            ("GET", "/trigger", "write egress"),
            ("GET", "/trigger;v=1", "write egress"),
            ("GET", "/v1;v/fire/", "write egress"),
            ("HEAD", "/%761%3bv/fire", "write egress"),
            ("GET", "/v1/x;v/fire", "read egress"),
            ("POST", "/v1;v/messages", "write egress"),
        ] {
            assert_eq!(rules.effects(method, &path(asked)).words().join(" "), effects, "{method} {asked}");
        }
        let rules = ServiceRules { reads: patterns(&["GET /ticker"]), ..ServiceRules::default() };
        for (asked, effects) in [("/x", "write egress"), ("/ticker", "read egress")] {
            assert_eq!(rules.effects_of_websocket(&path(asked)).words().join(" "), effects, "{asked}");
        }
    }

    #[test]
    fn what_is_no_pattern_says_how_to_write_one() {
        for bad in ["", "/v1", "get /v1", "GET", "GET v1", "GET /a b", "G-T /a"] {
            let error = bad.parse::<RequestPattern>().unwrap_err().to_string();
            assert!(error.contains("GET /v2/**"), "{bad}: {error}");
        }
        let query = "GET /a?b=1".parse::<RequestPattern>().unwrap_err().to_string();
        assert!(query.contains("has a query"), "{query}");
        assert!("GET /[ab]".parse::<RequestPattern>().is_err());
        assert_eq!("POST /a/**".parse::<RequestPattern>().unwrap().to_string(), "POST /a/**");
    }
}
