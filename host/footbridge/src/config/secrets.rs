//! Values of the configuration that name a secret instead of holding it.
//!
//! `${NAME}`, `${env:NAME}` and `${NAME:-default}` anywhere in a text, `{"file": "/path"}`, `{"credential": "name"}` of a
//! service manager, and `{"command": ["program", "arg"]}`, whose first line of output is the value. A secret that is not
//! there is an error, never an empty value.

use std::{
    collections::BTreeSet,
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{
    bounded::bounded,
    commands::{Commands, NoOutput},
    node::{Member, Node, NodeValue},
    obeyed::obeyed,
    programs::in_full,
    references::{self, Reference},
};
use footbridge_core::secret::Secret;

/// Variables that are no secrets: referring to them neither takes them from the command nor out of results.
const PLAIN: [&str; 10] = ["HOME", "PATH", "PWD", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TZ", "TMPDIR"];

/// Words in a variable's name that make its literal value one to take out of what servers say.
const SECRET_WORDS: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];

/// The largest file with a secret.
const MAX_SECRET_FILE: u64 = 1 << 20;

/// A value as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Written {
    Text(String),
    File { file: PathBuf },
    Command { command: Vec<String> },
    Credential { credential: String },
}

/// A value that is written as none of these.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is {0}, and a text is expected, or {{\"file\": \"PATH\"}}, {{\"command\": [\"PROGRAM\", \"ARGUMENT\"]}} or \
     {{\"credential\": \"NAME\"}}"
)]
pub(super) struct NotAValue(&'static str);

impl Written {
    /// A value of a servers file. Numbers, `true` and `false` are taken as they are written.
    pub(super) fn of(node: &Node) -> Result<Self, NotAValue> {
        let wrong = |found| Err(NotAValue(found));
        match &node.value {
            NodeValue::Text(text) => Ok(Self::Text(text.clone())),
            NodeValue::Number(number) => Ok(Self::Text(number.clone())),
            NodeValue::Bool(value) => Ok(Self::Text(value.to_string())),
            NodeValue::Object(members) => {
                let [member] = members.as_slice() else { return wrong("an object with other members") };
                let texts = member.node.elements().map(|words| words.iter().map(Node::text).collect());
                match (member.name.as_str(), member.node.text(), texts) {
                    ("file", Some(file), _) => Ok(Self::File { file: file.into() }),
                    ("credential", Some(name), _) => Ok(Self::Credential { credential: name.to_owned() }),
                    ("command", _, Some(Some(words))) => {
                        let words: Vec<&str> = words;
                        Ok(Self::Command { command: words.into_iter().map(str::to_owned).collect() })
                    }
                    _ => wrong("an object with other members"),
                }
            }
            NodeValue::Null | NodeValue::List(_) => wrong(node.kind()),
        }
    }
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
    #[error(transparent)]
    Reference(#[from] references::NotAReference),
    #[error(
        "${{input:{0}}} is asked for by VS Code alone: write ${{VARIABLE}}, {{\"file\": \"PATH\"}} or \
         {{\"command\": [...]}} instead"
    )]
    Input(String),
    #[error("\"~\" stands for the home folder, and HOME is not set: write the whole path")]
    NoHome,
    #[error("\"{0}\" is no credential's name: write that of LoadCredential= or SetCredential=, without a folder")]
    CredentialName(String),
    #[error(
        "there is no folder of credentials for {0:?}: CREDENTIALS_DIRECTORY is set by the service manager, for a unit \
         with LoadCredential={0}:PATH"
    )]
    NoCredentials(String),
    #[error("cannot read the secret file {}: {why}", path.display())]
    File { path: PathBuf, why: String },
    #[error("cannot read the secret file {}: there is no such file: write it, or correct the path", .0.display())]
    NoFile(PathBuf),
    #[error("the secret file {} can be read by others: run chmod go-rwx on it", .0.display())]
    Open(PathBuf),
    #[error("the first line of the secret file {} is empty: write the value there", .0.display())]
    Empty(PathBuf),
    #[error("{0} has a zero byte, which neither a variable nor an argument can hold: take it out, or encode the value")]
    ZeroByte(String),
    #[error("the secret command {program} failed: {why}")]
    Command { program: String, why: String },
    #[error("the secret command {program} failed: {why}")]
    Exposed { program: String, why: String },
    #[error("a secret command needs at least a program")]
    NoProgram,
}

impl SecretError {
    /// Whether the value is not there, or not yet, and nothing is wrong with how it is written.
    pub(super) fn is_absent(&self) -> bool {
        match self {
            Self::NotSet(_)
            | Self::NotUtf8(_)
            | Self::NoCredentials(_)
            | Self::NoFile(_)
            | Self::Empty(_)
            | Self::Command { .. } => true,
            Self::Reference(_)
            | Self::Input(_)
            | Self::NoHome
            | Self::CredentialName(_)
            | Self::File { .. }
            | Self::Open(_)
            | Self::ZeroByte(_)
            | Self::Exposed { .. }
            | Self::NoProgram => false,
        }
    }
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
            Written::File { file } => self.file(&file.to_string_lossy()),
            Written::Command { command } => self.command(command),
            Written::Credential { credential } => self.credential(credential),
        }
    }

    /// As [`Self::read`], where a text may be a path.
    pub(super) fn read_path(&mut self, written: &Written) -> Result<Secret, SecretError> {
        if let Written::Text(text) = written { self.path(text) } else { self.read(written) }
    }

    /// As [`Self::read_path`], of what a program's variable of this name is set to.
    pub(super) fn read_variable(&mut self, name: &str, written: &Written) -> Result<Secret, SecretError> {
        let value = self.read_path(written)?;
        let name_tells = SECRET_WORDS.iter().any(|word| name.to_ascii_uppercase().contains(word));
        Ok(if name_tells { self.keep(value.expose()) } else { value })
    }

    /// Fills in the references of a text.
    pub(super) fn text(&mut self, text: &str) -> Result<Secret, SecretError> {
        let parts = references::parts(text)?;
        // First, since what comes after a value that is not there is named all the same.
        parts.iter().for_each(|part| self.note_name(part));
        let mut out = String::new();
        for part in parts {
            match part {
                Reference::Plain(plain) => out.push_str(plain),
                Reference::Variable { name, default } => out.push_str(self.variable(name, default)?.expose()),
                Reference::Home => out.push_str(&self.home()?),
                Reference::Project => out.push_str(&references::project(self.base).to_string_lossy()),
                Reference::Input(id) => return Err(SecretError::Input(id.to_owned())),
            }
        }
        if out.contains('\0') {
            return Err(SecretError::ZeroByte("it".to_owned()));
        }
        Ok(Secret::new(out))
    }

    /// Fills in the references of a text that may be a path: `~` at its beginning is the home folder.
    pub(super) fn path(&mut self, text: &str) -> Result<Secret, SecretError> {
        match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                let rest = self.text(rest)?;
                Ok(Secret::new(format!("{}{}", self.home()?, rest.expose())))
            }
            _ => self.text(text),
        }
    }

    /// Takes note of a variable that is referred to.
    fn note_name(&mut self, part: &Reference<'_>) {
        if let Reference::Variable { name, .. } = part
            && !PLAIN.contains(name)
        {
            self.gathered.names.insert((*name).to_owned());
        }
    }

    fn home(&self) -> Result<String, SecretError> {
        let home = (self.var)("HOME").and_then(|home| home.into_string().ok()).filter(|home| home.starts_with('/'));
        home.ok_or(SecretError::NoHome)
    }

    fn variable(&mut self, name: &str, default: Option<&str>) -> Result<Secret, SecretError> {
        let plain = PLAIN.contains(&name);
        match ((self.var)(name).filter(|value| !value.is_empty()), default) {
            (Some(value), _) => {
                let value = value.into_string().map_err(|_| SecretError::NotUtf8(name.to_owned()))?;
                Ok(if plain { Secret::new(value) } else { self.keep(value) })
            }
            (None, Some(default)) => Ok(Secret::new(default)),
            (None, None) => Err(SecretError::NotSet(name.to_owned())),
        }
    }

    fn file(&mut self, file: &str) -> Result<Secret, SecretError> {
        let path = self.base.join(self.path(file)?.expose());
        let (text, mode) = self.read_file(&path)?;
        if mode & 0o044 != 0 {
            return Err(SecretError::Open(path));
        }
        self.keep_first_line(&text, path)
    }

    /// What the service manager passed to this unit. Who else may read it is up to the manager: the folder is the unit's
    /// alone, and files in it have the mode of their access list.
    fn credential(&mut self, name: &str) -> Result<Secret, SecretError> {
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return Err(SecretError::CredentialName(name.to_owned()));
        }
        let folder = (self.var)("CREDENTIALS_DIRECTORY").map(PathBuf::from).filter(|folder| folder.is_absolute());
        let folder = folder.ok_or_else(|| SecretError::NoCredentials(name.to_owned()))?;
        let path = folder.join(name);
        let (text, _) = self.read_file(&path)?;
        self.keep_first_line(&text, path)
    }

    /// The text and mode of a file with a secret.
    fn read_file(&mut self, path: &Path) -> Result<(String, u32), SecretError> {
        let failed = |why: String| SecretError::File { path: path.to_owned(), why };
        if path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            // The next run would hand on what a guest of this one wrote there.
            return Err(self.commands.writable().holds(path).map_or(SecretError::NoFile(path.to_owned()), |held| {
                let folder = held.folder.display();
                failed(format!(
                    "it is not there, and the sandbox can write {folder}: write it first, or keep it elsewhere"
                ))
            }));
        }
        let obeyed = obeyed(path, self.commands.writable());
        // Kept from guests whatever is wrong with it, but what may be theirs already.
        let refused = || path.canonicalize().ok().filter(|real| self.commands.writable().holds(real).is_none());
        self.gathered.files.extend(obeyed.as_ref().ok().cloned().or_else(refused));
        let real = obeyed.map_err(failed)?;
        let (text, meta) = bounded(&real, MAX_SECRET_FILE).map_err(|error| failed(error.to_string()))?;
        Ok((text, meta.mode()))
    }

    fn command(&mut self, command: &[String]) -> Result<Secret, SecretError> {
        let named = command.iter().filter_map(|word| references::parts(word).ok()).flatten();
        named.for_each(|part| self.note_name(&part));
        let words = command.iter().map(|word| Ok(self.path(word)?.expose().to_owned()));
        let words: Vec<String> = words.collect::<Result<_, SecretError>>()?;
        let (program, args) = words.split_first().ok_or(SecretError::NoProgram)?;
        let failed = |why: String| SecretError::Command { program: program.clone(), why };
        let no_output = |error: NoOutput| match error {
            NoOutput::Exposed(_) => SecretError::Exposed { program: program.clone(), why: error.to_string() },
            other => failed(other.to_string()),
        };
        let full = in_full(self.base, program);
        let Some(printed) = self.commands.output(&full, args).map_err(no_output)? else {
            return Ok(Secret::new(""));
        };
        let text = String::from_utf8(printed).map_err(|_| failed("its output is not UTF-8".to_owned()))?;
        let value = first_line(&text);
        if value.is_empty() {
            return Err(failed("it printed nothing".to_owned()));
        }
        if value.contains('\0') {
            return Err(SecretError::ZeroByte(format!("what the secret command {program} prints")));
        }
        Ok(self.keep(value))
    }

    fn keep_first_line(&mut self, text: &str, path: PathBuf) -> Result<Secret, SecretError> {
        match first_line(text) {
            "" => Err(SecretError::Empty(path)),
            line if line.contains('\0') => {
                Err(SecretError::ZeroByte(format!("the first line of the secret file {}", path.display())))
            }
            line => Ok(self.keep(line)),
        }
    }

    /// Reads a value that nobody is going to use: no command is run for it, and what it names is kept from guests all the
    /// same.
    pub(super) fn aside(&mut self, base: &Path, written: &Written) -> Result<Secret, SecretError> {
        let commands = self.commands.clone().not_run();
        let mut reader = Reader { var: self.var, base, commands: &commands, gathered: Gathered::default() };
        let read = reader.read_path(written);
        self.gathered.add(reader.gathered);
        read
    }

    /// The same of all values in the entry of a server.
    pub(super) fn entry_aside(&mut self, entry: &Node) {
        for Member { name, node, .. } in entry.members().unwrap_or_default() {
            match name.as_str() {
                // Their names are whatever a program wants, and no words of ours.
                "env" | "headers" => node.members().into_iter().flatten().for_each(|value| self.all_aside(&value.node)),
                _ => self.all_aside(node),
            }
        }
    }

    fn all_aside(&mut self, node: &Node) {
        if let Ok(written) = Written::of(node) {
            // What cannot be had is nothing to keep from anybody.
            return drop(self.aside(node.at.folder(), &written));
        }
        let members = node.members().into_iter().flatten().map(|member| &member.node);
        members.chain(node.elements().into_iter().flatten()).for_each(|node| self.all_aside(node));
    }

    /// Remembers a value as one to take out of what servers say.
    pub(super) fn keep(&mut self, value: impl Into<String>) -> Secret {
        let secret = Secret::new(value);
        self.gathered.secrets.push(secret.clone());
        secret
    }
}

/// Without the mark that some editors begin a file with, which is no part of a value.
fn first_line(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text).lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, fs, os::unix::fs::PermissionsExt};

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
            assert!(matches!(reader.text("${KEY"), Err(SecretError::Reference(_))));
            assert!(matches!(reader.text("${a b}"), Err(SecretError::Reference(_))));
            assert_eq!(reader.text("${env:KEY}").unwrap().expose(), "s3cret-value");
            assert_eq!(reader.text("${input:key}"), Err(SecretError::Input("key".to_owned())));
            assert!(reader.gathered.names.contains("KEY") && reader.gathered.names.contains("NONE"));
            assert!(reader.gathered.secrets.iter().all(|secret| secret.expose() == "s3cret-value"));
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
            assert_eq!(reader.file("key").unwrap().expose(), "file-value");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            assert_eq!(reader.file("key"), Err(SecretError::Open(file)));
            assert_eq!(reader.file("none"), Err(SecretError::NoFile(reader.base.join("none"))));
        });
    }

    #[test]
    fn a_file_with_an_empty_first_line_is_no_secret_and_a_mark_of_editors_is_no_part_of_one() {
        with_reader(|reader| {
            let file = reader.base.join("key");
            for (text, value) in
                [("\u{feff}value\r\n", Some("value")), ("", None), ("\nvalue\n", None), ("\u{feff}\n", None)]
            {
                fs::write(&file, text).unwrap();
                fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
                let found = reader.file("key");
                let found = found.as_ref().map(Secret::expose).map_err(ToString::to_string);
                match value {
                    Some(value) => assert_eq!(found, Ok(value), "{text:?}"),
                    None => assert!(found.unwrap_err().contains("key is empty: write the value there"), "{text:?}"),
                }
            }
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

    #[test]
    fn what_no_program_can_be_given_is_refused_where_it_is() {
        with_reader(|reader| {
            let file = reader.base.join("key");
            fs::write(&file, "a\0b\n").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            let found = [reader.file("key"), reader.command(&["printf".into(), "a\\0b".into()]), reader.text("a\0b")];
            for (found, what) in found.into_iter().zip(["key has", "the secret command printf prints has", "it has"]) {
                let why = found.unwrap_err();
                assert!(!why.is_absent() && why.to_string().contains(&format!("{what} a zero byte")), "{why}");
            }
        });
    }
}
