//! Values of the configuration that name a secret instead of holding it.
//!
//! `${NAME}` and `${NAME:-default}` anywhere in a text, `{"file": "/path"}`, and `{"command": ["program", "arg"]}`,
//! whose first line of output is the value. A secret that is not there is an error, never an empty value.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{commands::Commands, obeyed::obeyed, programs::in_full};
use footbridge_core::secret::Secret;

/// Variables that are no secrets: referring to them neither takes them from the command nor out of results.
const PLAIN: [&str; 10] = ["HOME", "PATH", "PWD", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TZ", "TMPDIR"];

/// A value as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Written {
    Text(String),
    File { file: PathBuf },
    Command { command: Vec<String> },
}

/// What reading values brought together, besides the values.
#[derive(Debug, Clone, Default)]
pub struct Gathered {
    /// Variables that were referred to.
    pub names: BTreeSet<String>,
    /// Files that hold secrets.
    pub files: Vec<PathBuf>,
    /// Values to take out of what servers say.
    pub secrets: Vec<Secret>,
}

impl Gathered {
    /// Adds what another file brought together.
    pub(super) fn add(&mut self, other: Self) {
        self.names.extend(other.names);
        self.files.extend(other.files);
        self.secrets.extend(other.secrets);
    }
}

/// Why a value cannot be had. Never holds a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SecretError {
    #[error("the variable {0} is not set: set it before the harness starts, or write ${{{0}:-default}}")]
    NotSet(String),
    #[error("the variable {0} is not UTF-8")]
    NotUtf8(String),
    #[error("\"${{\" without \"}}\" and a variable's name in between")]
    NotAReference,
    #[error("cannot read the secret file {}: {why}", path.display())]
    File { path: PathBuf, why: String },
    #[error("the secret file {} can be read by others: run chmod go-rwx on it", .0.display())]
    Open(PathBuf),
    #[error("the secret command {program} failed: {why}")]
    Command { program: String, why: String },
    #[error("a secret command needs at least a program")]
    NoProgram,
}

/// Reads written values; `var` gives variables, `base` is the folder that relative paths start from. Commands start in
/// an empty one.
pub(super) struct Reader<'a> {
    pub(super) var: &'a dyn Fn(&str) -> Option<std::ffi::OsString>,
    pub(super) base: &'a Path,
    pub(super) commands: &'a Commands,
    pub(super) gathered: Gathered,
}

impl Reader<'_> {
    pub(super) fn read(&mut self, written: &Written) -> Result<Secret, SecretError> {
        match written {
            Written::Text(text) => self.text(text),
            Written::File { file } => self.file(file),
            Written::Command { command } => self.command(command),
        }
    }

    /// Fills in the references of a text.
    pub(super) fn text(&mut self, text: &str) -> Result<Secret, SecretError> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            out.push_str(&rest[..start]);
            let end = rest[start..].find('}').ok_or(SecretError::NotAReference)? + start;
            out.push_str(self.variable(&rest[start + 2..end])?.expose());
            rest = &rest[end + 1..];
        }
        out.push_str(rest);
        Ok(Secret::new(out))
    }

    fn variable(&mut self, reference: &str) -> Result<Secret, SecretError> {
        let (name, default) = match reference.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (reference, None),
        };
        let known = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(known) {
            return Err(SecretError::NotAReference);
        }
        let plain = PLAIN.contains(&name);
        if !plain {
            self.gathered.names.insert(name.to_owned());
        }
        match ((self.var)(name).filter(|value| !value.is_empty()), default) {
            (Some(value), _) => {
                let value = value.into_string().map_err(|_| SecretError::NotUtf8(name.to_owned()))?;
                Ok(if plain { Secret::new(value) } else { self.keep(value) })
            }
            (None, Some(default)) => Ok(Secret::new(default)),
            (None, None) => Err(SecretError::NotSet(name.to_owned())),
        }
    }

    fn file(&mut self, file: &Path) -> Result<Secret, SecretError> {
        let path = self.base.join(file);
        let failed = |why: String| SecretError::File { path: path.clone(), why };
        let real = obeyed(&path, self.commands.writable()).map_err(failed)?;
        let meta = real.metadata().map_err(|error| failed(error.to_string()))?;
        if std::os::unix::fs::MetadataExt::mode(&meta) & 0o044 != 0 {
            return Err(SecretError::Open(path));
        }
        let text = fs::read_to_string(&real).map_err(|error| failed(error.to_string()))?;
        self.gathered.files.push(real);
        Ok(self.keep(first_line(&text)))
    }

    fn command(&mut self, command: &[String]) -> Result<Secret, SecretError> {
        let (program, args) = command.split_first().ok_or(SecretError::NoProgram)?;
        let failed = |why: String| SecretError::Command { program: program.clone(), why };
        let full = in_full(self.base, program);
        let printed = self.commands.output(&full, args).map_err(|error| failed(error.to_string()))?;
        let text = String::from_utf8(printed).map_err(|_| failed("its output is not UTF-8".to_owned()))?;
        let value = first_line(&text);
        if value.is_empty() {
            return Err(failed("it printed nothing".to_owned()));
        }
        Ok(self.keep(value))
    }

    /// Remembers a value as one to take out of what servers say.
    pub(super) fn keep(&mut self, value: impl Into<String>) -> Secret {
        let secret = Secret::new(value);
        self.gathered.secrets.push(secret.clone());
        secret
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, os::unix::fs::PermissionsExt};

    use super::*;

    fn with_reader<T>(work: impl FnOnce(&mut Reader<'_>) -> T) -> T {
        let folder = tempfile::tempdir().unwrap();
        let var = |name: &str| (name == "KEY").then(|| OsString::from("s3cret-value"));
        work(&mut Reader {
            var: &var,
            base: folder.path(),
            commands: &Commands::default(),
            gathered: Gathered::default(),
        })
    }

    #[test]
    fn references_are_filled_in_and_what_is_missing_is_named() {
        with_reader(|reader| {
            assert_eq!(reader.text("Bearer ${KEY}, ${NONE:-x}").unwrap().expose(), "Bearer s3cret-value, x");
            assert_eq!(reader.text("plain $KEY").unwrap().expose(), "plain $KEY");
            assert_eq!(reader.text("${NONE}"), Err(SecretError::NotSet("NONE".to_owned())));
            assert_eq!(reader.text("${KEY"), Err(SecretError::NotAReference));
            assert_eq!(reader.text("${a b}"), Err(SecretError::NotAReference));
            assert!(reader.gathered.names.contains("KEY") && reader.gathered.names.contains("NONE"));
            assert_eq!(reader.gathered.secrets, [Secret::new("s3cret-value")]);
        });
    }

    #[test]
    fn a_home_is_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        let var = |_: &str| Some(OsString::from("/home/somebody"));
        let mut reader =
            Reader { var: &var, base: folder.path(), commands: &Commands::default(), gathered: Gathered::default() };
        assert_eq!(reader.text("${HOME}/notes").unwrap().expose(), "/home/somebody/notes");
        assert!(reader.gathered.names.is_empty() && reader.gathered.secrets.is_empty());
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        with_reader(|reader| {
            let file = reader.base.join("key");
            fs::write(&file, "file-value\nrest\n").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            assert_eq!(reader.file(Path::new("key")).unwrap().expose(), "file-value");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            assert_eq!(reader.file(Path::new("key")), Err(SecretError::Open(file)));
            assert!(matches!(reader.file(Path::new("none")), Err(SecretError::File { .. })));
        });
    }

    #[test]
    fn a_command_that_fails_or_prints_nothing_is_named() {
        with_reader(|reader| {
            let mut run = |words: &[&str]| reader.command(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
            assert_eq!(run(&["echo", "from-command"]).unwrap().expose(), "from-command");
            assert!(run(&["false"]).unwrap_err().to_string().contains("false failed"));
            assert!(run(&["true"]).unwrap_err().to_string().contains("printed nothing"));
            assert_eq!(run(&[]), Err(SecretError::NoProgram));
        });
    }
}
