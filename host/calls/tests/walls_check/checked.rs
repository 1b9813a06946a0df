//! What cargo said of the cases and their twins, and what of it is wrong.

use std::{collections::BTreeSet, process::Output};

use serde_json::Value;

use crate::{case::Case, manifest::twin_of};

/// All that was said.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    errors: Vec<Error>,
    /// Names of what was built.
    built: BTreeSet<String>,
    /// What cargo itself wrote.
    stderr: String,
}

/// An error of rustc.
#[derive(Debug, Clone)]
struct Error {
    target: String,
    /// Its line, where it has one, and its code, or an empty text.
    place: (usize, String),
    rendered: String,
}

impl Checked {
    pub(crate) fn read(output: &Output) -> Self {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let mut checked = Self { stderr, ..Self::default() };
        for line in output.stdout.split(|byte| *byte == b'\n') {
            let Ok(said) = serde_json::from_slice::<Value>(line) else { continue };
            let target = said["target"]["name"].as_str().unwrap_or_default().to_owned();
            match said["reason"].as_str() {
                Some("compiler-artifact") => {
                    checked.built.insert(target);
                }
                Some("compiler-message") => checked.errors.extend(Error::read(target, &said["message"])),
                _ => {}
            }
        }
        checked
    }

    /// What is wrong about a case, each in a text with all that rustc said about it.
    pub(crate) fn wrong_about(&self, case: &Case) -> Vec<String> {
        let twin = twin_of(&case.name);
        let mut wrong = Vec::new();
        let mut unseen = case.errors.clone();
        for error in self.of(&case.name) {
            match unseen.iter().position(|expected| *expected == error.place) {
                Some(at) => drop(unseen.remove(at)),
                None => wrong.push(format!("{}: this is not marked:\n{}", case.name, error.rendered)),
            }
        }
        for (line, code) in unseen {
            let text = case.text.lines().nth(line - 1).unwrap_or_default().trim();
            wrong.push(format!("{}:{line}: there is no {code} here: {text}", case.name));
        }
        let of_twin: Vec<_> = self.of(&twin).map(|error| error.rendered.as_str()).collect();
        if !of_twin.is_empty() {
            wrong.push(format!("{}: its twin does not build:\n{}", case.name, of_twin.join("\n")));
        } else if !self.built.contains(&twin) {
            wrong.push(format!("{}: its twin was not checked; cargo says:\n{}", case.name, self.stderr));
        }
        wrong
    }

    fn of(&self, target: &str) -> impl Iterator<Item = &Error> {
        self.errors.iter().filter(move |error| error.target == target)
    }
}

impl Error {
    /// None for what is no error, and for the count of them at the end.
    fn read(target: String, message: &Value) -> Option<Self> {
        let spans = message["spans"].as_array()?;
        let text = message["message"].as_str()?;
        if !message["level"].as_str()?.starts_with("error") || spans.is_empty() && text.starts_with("aborting due to") {
            return None;
        }
        let primary = spans.iter().find(|span| span["is_primary"] == true);
        let line = primary.and_then(|span| span["line_start"].as_u64()).and_then(|line| usize::try_from(line).ok());
        let code = message["code"]["code"].as_str().unwrap_or_default().to_owned();
        let rendered = message["rendered"].as_str().unwrap_or(text).to_owned();
        Some(Self { target, place: (line.unwrap_or_default(), code), rendered })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case() -> Case {
        let errors = vec![(3, "E0001".to_owned())];
        Case { name: "x".to_owned(), text: "\n\nf();\n".to_owned(), twin: String::new(), errors }
    }

    fn error(target: &str, line: usize, code: &str) -> Error {
        Error { target: target.to_owned(), place: (line, code.to_owned()), rendered: "said".to_owned() }
    }

    fn wrong(errors: &[Error], built: &[&str]) -> usize {
        let built = built.iter().map(|name| (*name).to_owned()).collect();
        Checked { errors: errors.to_vec(), built, stderr: String::new() }.wrong_about(&case()).len()
    }

    #[test]
    fn exactly_what_is_marked_is_right() {
        let right = error("x", 3, "E0001");
        assert_eq!(wrong(std::slice::from_ref(&right), &["x_twin"]), 0);
        assert_eq!(wrong(&[], &["x", "x_twin"]), 1);
        // Another code, another line, and twice.
        assert_eq!(wrong(&[error("x", 3, "E0002")], &["x_twin"]), 2);
        assert_eq!(wrong(&[error("x", 4, "E0001")], &["x_twin"]), 2);
        assert_eq!(wrong(&[right.clone(), error("x", 3, "")], &["x_twin"]), 1);
        assert_eq!(wrong(&[right.clone(), right.clone()], &["x_twin"]), 1);
        // A twin that does not build, and one that nobody looked at.
        assert_eq!(wrong(&[right.clone(), error("x_twin", 3, "E0001")], &[]), 1);
        assert_eq!(wrong(&[right], &[]), 1);
    }

    #[test]
    fn errors_are_read_and_warnings_and_counts_are_not() {
        let said = serde_json::json!({
            "message": "m", "code": {"code": "E0001"}, "level": "error", "rendered": "r",
            "spans": [{"is_primary": false, "line_start": 1}, {"is_primary": true, "line_start": 7}]
        });
        assert_eq!(Error::read("x".to_owned(), &said).unwrap().place, (7, "E0001".to_owned()));
        let mut warning = said.clone();
        warning["level"] = "warning".into();
        assert!(Error::read("x".to_owned(), &warning).is_none());
        let count = serde_json::json!({"message": "aborting due to 1 previous error", "level": "error", "spans": []});
        assert!(Error::read("x".to_owned(), &count).is_none());
        let broken =
            serde_json::json!({"message": "no such thing", "level": "error: internal compiler error", "spans": []});
        assert_eq!(Error::read("x".to_owned(), &broken).unwrap().place, (0, String::new()));
    }
}
