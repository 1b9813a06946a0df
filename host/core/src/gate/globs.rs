//! Patterns of names, paths and URIs. Case counts.
//!
//! `*` alone is everything. In names and other texts `*` stands for any characters. In paths and URIs it ends at a `/`,
//! and `**` stands for any folders, none too: `a/**` is `a` and all below it. It is refused where it is not between
//! slashes, since there it would be no more than `*`. `?` and `[...]` stand for one ASCII character; paths and URIs have
//! no `[...]`, since it could stand for a `/`.

use std::fmt;

use globset::{GlobBuilder, GlobMatcher};
use serde_json::{Value, json};

use super::spelling::{META, spelling_of_pattern};

/// What a pattern is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Names and other texts.
    Text,
    /// Paths.
    Path,
    /// URIs, which have many spellings.
    Uri,
}

/// A pattern that compiled.
#[derive(Clone)]
pub struct Glob {
    text: String,
    of: Of,
    how: How,
    /// For URIs: the same pattern, in the one spelling that those have where they are stopped.
    spelling: Option<Box<Glob>>,
}

#[derive(Clone)]
enum How {
    All,
    Literal,
    /// Anything that starts with this.
    Prefix(usize),
    Pattern(Pattern),
}

#[derive(Clone)]
struct Pattern {
    /// It starts with so many bytes that stand for themselves, and ends with so many: any other text is not looked at.
    ends: (usize, usize),
    matchers: Vec<GlobMatcher>,
}

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadGlob {
    /// It matches nothing.
    #[error("an empty pattern never matches")]
    Empty,
    /// It does not compile.
    #[error("\"{0}\" is no pattern: {1}")]
    Syntax(String, String),
    /// A class in a path.
    #[error("\"{0}\": paths and URIs have no [...], which could stand for a \"/\": write {{a,b}}, or \\[ for itself")]
    Class(String),
    /// Two stars that are no folders.
    #[error(
        "\"{0}\": in paths and URIs ** stands for whole folders, so it is between slashes and in no {{...}}: write \
         \"/a*/**\" or \"**/*.key\", and a list of patterns in place of {{...}}"
    )]
    Stars(String),
    /// A class of characters that have more than one byte.
    #[error("\"{0}\": [...] takes ASCII characters only: write {{ä,ö}}")]
    NotAscii(String),
}

impl Glob {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// [`BadGlob`].
    pub fn new(text: &str, of: Of) -> Result<Self, BadGlob> {
        let literal = text.find(META).unwrap_or(text.len());
        let how = match &text[literal..] {
            _ if text.is_empty() => return Err(BadGlob::Empty),
            "*" | "**" if literal == 0 => How::All,
            "" => How::Literal,
            "*" if of == Of::Text => How::Prefix(literal),
            rest => {
                let matchers = compile(text, of)?;
                // What is matched besides starts with less.
                let besides = if matchers.len() > 1 { BELOW.len() } else { 0 };
                let start = literal.min(text.len().saturating_sub(besides));
                let end = rest.rfind(META).map_or(0, |at| rest[at + 1..].trim_start_matches('/').len());
                How::Pattern(Pattern { ends: (start, end), matchers })
            }
        };
        let spelling = match of {
            Of::Uri => Some(Box::new(Self::new(&spelling_of_pattern(text), Of::Path)?)),
            Of::Text | Of::Path => None,
        };
        Ok(Self { text: text.to_owned(), of, how, spelling })
    }

    /// Whether a URI in the one spelling is what the pattern says, in that spelling.
    #[must_use]
    pub(super) fn matches_spelling(&self, text: &str) -> bool {
        self.spelling.as_deref().unwrap_or(self).matches(text)
    }

    /// Whether a text is what the pattern says.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let (own, bytes) = (self.text.as_bytes(), text.as_bytes());
        match &self.how {
            How::All => true,
            How::Literal => text == self.text,
            How::Prefix(length) => bytes.starts_with(&own[..*length]),
            How::Pattern(Pattern { ends: (start, end), matchers }) => {
                bytes.starts_with(&own[..*start])
                    && bytes.ends_with(&own[own.len() - end..])
                    && matchers.iter().any(|one| one.is_match(text))
            }
        }
    }

    /// Whether it matches whatever there is.
    #[must_use]
    pub fn is_all(&self) -> bool {
        matches!(self.how, How::All)
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// All that it says, for digests.
    pub(super) fn written(&self) -> Value {
        let of = match self.of {
            Of::Text => "text",
            Of::Path | Of::Uri => "path",
        };
        json!([of, self.text])
    }

    /// Whether each text that the other one matches is matched by this one too. False where that is not plain.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match &other.how {
            How::Literal => self.matches(&other.text),
            How::Prefix(length) if matches!(self.how, How::Prefix(_)) => self.matches(&other.text[..*length]),
            _ => self.is_all() || self.text == other.text,
        }
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Glob({:?})", self.text)
    }
}

/// The end of a pattern of all that is below something.
const BELOW: &str = "/**";

fn compile(text: &str, of: Of) -> Result<Vec<GlobMatcher>, BadGlob> {
    check_classes(text, of)?;
    check_stars(text, of)?;
    let one = |text: &str| {
        let mut builder = GlobBuilder::new(text);
        builder.literal_separator(of != Of::Text).backslash_escape(true).case_insensitive(false);
        let glob = builder.build().map_err(|bad| BadGlob::Syntax(text.to_owned(), bad.kind().to_string()))?;
        Ok(glob.compile_matcher())
    };
    let mut all = vec![one(text)?];
    if let Some(itself) = text.strip_suffix(BELOW).filter(|itself| of != Of::Text && !itself.is_empty()) {
        all.push(one(itself)?);
    }
    Ok(all)
}

fn check_classes(text: &str, of: Of) -> Result<(), BadGlob> {
    let (mut escaped, mut inside) = (false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' if of != Of::Text => return Err(BadGlob::Class(text.to_owned())),
            '[' => inside = true,
            ']' => inside = false,
            _ if inside && !c.is_ascii() => return Err(BadGlob::NotAscii(text.to_owned())),
            _ => {}
        }
    }
    Ok(())
}

/// Elsewhere than between slashes the library takes `**` for `*`, and a rule that denies would let through what is below.
fn check_stars(text: &str, of: Of) -> Result<(), BadGlob> {
    let (mut before, mut depth, mut rest) = (None, 0_usize, text);
    while let Some(c) = rest.chars().next().filter(|_| of != Of::Text) {
        let stars = rest.len() - rest.trim_start_matches('*').len();
        let after = rest[stars..].chars().next();
        if stars > 2 || (stars == 2 && (depth > 0 || [before, after].iter().any(|c| c.is_some_and(|c| c != '/')))) {
            return Err(BadGlob::Stars(text.to_owned()));
        }
        let taken = match c {
            '*' => stars,
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            c => c.len_utf8(),
        };
        depth = match c {
            '{' => depth + 1,
            '}' => depth.saturating_sub(1),
            _ => depth,
        };
        before = rest[..taken].chars().next_back();
        rest = &rest[taken..];
    }
    Ok(())
}

/// Whether one of several patterns matches.
#[must_use]
pub fn any(globs: &[Glob], text: &str) -> bool {
    globs.iter().any(|glob| glob.matches(text))
}

/// All that patterns say, for digests; none is no restriction.
pub(super) fn all_written(globs: Option<&[Glob]>) -> Value {
    globs.map_or(Value::Null, |globs| globs.iter().map(Glob::written).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, of: Of, text: &str) -> bool {
        Glob::new(pattern, of).unwrap().matches(text)
    }

    #[test]
    fn names_are_matched_whole_and_by_case() {
        for (pattern, yes, no) in [
            ("push", vec!["push"], vec!["Push", "push ", "pus", "pushy", "", "рush"]),
            ("push*", vec!["push", "push_all", "push/x", "push\n"], vec!["xpush", "PUSH"]),
            ("*", vec!["", "x", "a/b", "\n"], vec![]),
            ("*_delete", vec!["_delete", "a/b_delete", "x\n_delete"], vec!["_delete_", "_Delete"]),
            ("a*b*c", vec!["abc", "a/b/c", "abcbc"], vec!["ab", "abcd"]),
            ("a**c", vec!["ac", "a/c"], vec!["a"]),
            ("[a-c]x", vec!["ax", "cx"], vec!["dx", "x", "Ax"]),
            ("{get,list}_*", vec!["get_x", "list_"], vec!["set_x", "get"]),
            (r"a\*", vec!["a*"], vec!["ab", r"a\*"]),
            ("a?c", vec!["abc", "a/c"], vec!["ac", "abbc"]),
        ] {
            yes.iter().for_each(|text| assert!(matches(pattern, Of::Text, text), "{pattern} {text:?}"));
            no.iter().for_each(|text| assert!(!matches(pattern, Of::Text, text), "{pattern} {text:?}"));
        }
    }

    #[test]
    fn a_star_in_a_path_ends_at_a_slash() {
        for (pattern, yes, no) in [
            ("*", vec!["/a/b", "x"], vec![]),
            ("/srv/*", vec!["/srv/a"], vec!["/srv/a/b", "/srv", "/srvx/a"]),
            ("/srv/**", vec!["/srv", "/srv/a", "/srv/a/b", "/srv/"], vec!["/srvx", "/sr", "/", "srv"]),
            ("/srv/*/x", vec!["/srv/a/x"], vec!["/srv/a/b/x", "/srv/x"]),
            ("/srv/**/x", vec!["/srv/x", "/srv/a/b/x"], vec!["/srvx", "/srv/ax"]),
            ("**/.ssh/**", vec!["/h/.ssh/id", "/h/.ssh", ".ssh"], vec!["/h/ssh", "/h/.sshx"]),
            ("**/.ssh", vec!["/h/.ssh", ".ssh", "/.ssh"], vec!["/h/x.ssh", "x.ssh"]),
            ("**/*.key", vec!["/a/b.key", "b.key", "/b.key"], vec!["/b.key/x"]),
            ("/srv/a*/**", vec!["/srv/ab", "/srv/ab/c/d", "/srv/a"], vec!["/srv/b/a"]),
            ("/a?b", vec!["/axb"], vec!["/a/b"]),
            ("file:///srv/{a,b}/**", vec!["file:///srv/a/x", "file:///srv/b"], vec!["file:///srv/c/x"]),
            ("/**", vec!["/", "/a", "/a/b"], vec!["a"]),
            ("**", vec!["/a/b", "a"], vec![]),
        ] {
            yes.iter().for_each(|text| assert!(matches(pattern, Of::Path, text), "{pattern} {text:?}"));
            no.iter().for_each(|text| assert!(!matches(pattern, Of::Path, text), "{pattern} {text:?}"));
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for (pattern, of) in [("", Of::Text), ("[a", Of::Text), ("{a", Of::Text), ("a\\", Of::Text), ("[é]", Of::Text)]
        {
            assert!(Glob::new(pattern, of).is_err(), "{pattern}");
        }
        assert!(matches!(Glob::new("/a[!x]b", Of::Path), Err(BadGlob::Class(_))));
        for pattern in ["/a**", "/a/**.key", "/a**b/c", "**key", "/a/***", "/a/{b/**,c}", "{**/a,b}", "/a/{**,x}/b"] {
            assert!(matches!(Glob::new(pattern, Of::Path), Err(BadGlob::Stars(_))), "{pattern}");
            assert!(matches!(Glob::new(pattern, Of::Uri), Err(BadGlob::Stars(_))), "{pattern}");
            assert!(Glob::new(pattern, Of::Text).is_ok(), "{pattern}");
        }
        for of in [Of::Path, Of::Uri] {
            assert!(Glob::new("/a/\\é", of).unwrap().matches("/a/é"), "as many bytes as it has");
            assert!(matches!(Glob::new("/a*\\", of), Err(BadGlob::Syntax(..))), "one that nothing is behind");
        }
        assert!(
            Glob::new(r"/a/\**", Of::Path).unwrap().matches("/a/*b"),
            "one that stands for itself, and one that does not"
        );
        assert!(Glob::new(r"http://\[::1\]/*", Of::Path).unwrap().matches("http://[::1]/x"));
    }

    #[test]
    fn a_wider_pattern_covers_a_narrower_one() {
        let glob = |text| Glob::new(text, Of::Text).unwrap();
        for (wide, narrow) in [("*", "a?"), ("a*", "ab"), ("a*", "ab*"), ("a?", "a?"), ("{a,b}", "a")] {
            assert!(glob(wide).covers(&glob(narrow)), "{wide} {narrow}");
        }
        for (one, other) in [("a", "a*"), ("ab*", "a*"), ("a?", "*"), ("b*", "a")] {
            assert!(!glob(one).covers(&glob(other)), "{one} {other}");
        }
    }
}
