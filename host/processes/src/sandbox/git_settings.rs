//! What git's settings lead to: folders of hooks, and files with more settings. The format is that of git-config(1).
//!
//! Settings that git itself would refuse are read as far as it would read them. Bytes are read as the characters of these
//! numbers, and made bytes again in paths, which need be no text.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Read as _;
use std::iter::Peekable;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::str::Chars;

use super::git_index::ObjectFormat;
use crate::regular_file::open_regular;

/// Bytes of one file that are read.
const MAX_SETTINGS: u64 = 1 << 20;
/// The same of one that holds a path.
const MAX_LED: u64 = 8 << 10;
/// Files that are read, with those that others include, and paths that they lead to.
const MAX_FILES: usize = 100;
const MAX_PATHS: usize = 1_000;
/// Letters of a name of a section or key; longer ones are none that is looked for.
const MAX_NAME: usize = 32;

/// What some files of settings say.
#[derive(Debug, Default)]
pub(super) struct GitSettings {
    /// Files that they include, and those that these include, whether they are there or not.
    pub(super) includes: Vec<PathBuf>,
    /// Folders of hooks, each from the root of whatever work tree it is for.
    pub(super) hooks: Vec<PathBuf>,
    /// Words of commands that git runs by itself, each from the root of whatever work tree it is for: some may be files.
    pub(super) words: Vec<PathBuf>,
    /// Where the work tree is, from the folder of git.
    pub(super) work_tree: Option<PathBuf>,
    /// Whether there is more than was read.
    pub(super) is_cut: bool,
}

/// Settings that are commands which git runs without being asked for that one.
const COMMANDS: [(&str, &str); 47] = [
    ("browser", "cmd"),
    ("browser", "path"),
    ("core", "alternaterefscommand"),
    ("core", "askpass"),
    ("core", "editor"),
    ("core", "fsmonitor"),
    ("core", "gitproxy"),
    ("core", "pager"),
    ("core", "sshcommand"),
    ("credential", "helper"),
    ("diff", "command"),
    ("diff", "external"),
    ("diff", "textconv"),
    ("difftool", "cmd"),
    ("difftool", "path"),
    ("filter", "clean"),
    ("filter", "process"),
    ("filter", "smudge"),
    ("gc", "recentobjectshook"),
    ("gpg", "defaultkeycommand"),
    ("gpg", "program"),
    ("guitool", "cmd"),
    ("hook", "command"),
    ("imap", "tunnel"),
    ("instaweb", "httpd"),
    ("interactive", "difffilter"),
    ("lfs", "clean"),
    ("lfs", "path"),
    ("lfs", "smudge"),
    ("man", "cmd"),
    ("man", "path"),
    ("merge", "driver"),
    ("mergetool", "cmd"),
    ("mergetool", "path"),
    ("remote", "receivepack"),
    ("remote", "uploadpack"),
    ("sendemail", "cccmd"),
    ("sendemail", "headercmd"),
    ("sendemail", "sendmailcmd"),
    ("sendemail", "smtpserver"),
    ("sendemail", "tocmd"),
    ("sequence", "editor"),
    ("submodule", "update"),
    ("tar", "command"),
    ("trailer", "cmd"),
    ("trailer", "command"),
    ("uploadpack", "packobjectshook"),
];

/// The section whose settings are commands that show the output of others, whatever these are called.
const PAGER: &str = "pager";

/// What an address begins with that is a command (git-remote-ext).
const COMMAND_AS_ADDRESS: &str = "ext::";

/// The mark of UTF-8 that a file may begin with.
const MARK: &str = "\u{ef}\u{bb}\u{bf}";

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    section: String,
    /// Whether it is of a part of the section, which has a name of its own.
    is_of_part: bool,
    key: String,
    value: String,
}

impl GitSettings {
    /// Reads these files, as many bytes as are left. What is missing says nothing.
    pub(super) fn read(files: impl IntoIterator<Item = PathBuf>, left: &mut u64) -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let of_home = |value: &str| match (value.strip_prefix("~/"), &home) {
            (Some(rest), Some(home)) => home.join(as_path(rest)),
            _ => as_path(value),
        };
        let (mut found, mut seen) = (Self::default(), BTreeSet::new());
        let mut ahead: Vec<PathBuf> = files.into_iter().collect();
        while let Some(file) = ahead.pop() {
            if !file.canonicalize().is_ok_and(|real| seen.insert(real)) {
                continue;
            }
            let text = text(&file, (*left).min(MAX_SETTINGS)).unwrap_or_default();
            *left -= text.read;
            found.is_cut |= text.is_cut;
            let folder = file.parent().unwrap_or(Path::new("/"));
            for Entry { section, key, value, .. } in entries(&text.characters) {
                if found.includes.len() + found.hooks.len() + found.words.len() >= MAX_PATHS || seen.len() > MAX_FILES {
                    found.is_cut = true;
                    return found;
                }
                match (section.as_str(), key.as_str()) {
                    ("include" | "includeif", "path") => {
                        let included = folder.join(of_home(&value));
                        found.includes.push(included.clone());
                        ahead.push(included);
                    }
                    // The hooks of a template are those of each new repository.
                    ("core", "hookspath") | ("init", "templatedir") => found.hooks.push(of_home(&value)),
                    (section, key) if is_command(section, key, &value) => {
                        let value = value.strip_prefix(COMMAND_AS_ADDRESS).unwrap_or(&value);
                        let words = value.split(|c: char| is_blank(c) || "'\"!;|&()<>".contains(c));
                        found.words.extend(words.filter(|word| !word.is_empty()).take(MAX_PATHS).map(of_home));
                    }
                    ("core", "worktree") => found.work_tree = Some(of_home(&value)),
                    _ => {}
                }
            }
        }
        found
    }
}

fn is_command(section: &str, key: &str, value: &str) -> bool {
    section == PAGER || COMMANDS.contains(&(section, key)) || value.starts_with(COMMAND_AS_ADDRESS)
}

/// What was read of a file.
#[derive(Debug, Default)]
struct Text {
    characters: String,
    read: u64,
    is_cut: bool,
}

/// That of a regular file: an earlier command may have left a pipe in its place, or have named a device.
fn text(path: &Path, limit: u64) -> Option<Text> {
    let (file, meta) = open_regular(path).ok()?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).ok()?;
    let (read, is_cut) = (bytes.len() as u64, meta.len() > limit);
    Some(Text { characters: characters(&bytes), read, is_cut })
}

fn characters(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// To git it ends where a string of C does.
fn as_path(characters: &str) -> PathBuf {
    let bytes = characters.chars().map_while(|c| u8::try_from(c).ok().filter(|byte| *byte != 0));
    PathBuf::from(OsString::from_vec(bytes.collect()))
}

/// How long the names of objects are in a repository, by its own settings; nothing where these are not read whole.
pub(super) fn object_format(main: &Path) -> Option<ObjectFormat> {
    let text = text(&main.join("config"), MAX_SETTINGS).unwrap_or_default();
    let all = entries(&text.characters);
    let is_it = |entry: &&Entry| entry.section == "extensions" && !entry.is_of_part && entry.key == "objectformat";
    let said = all.iter().rfind(is_it);
    let is_long = said.is_some_and(|entry| entry.value == "sha256");
    (!text.is_cut).then_some(if is_long { ObjectFormat::Sha256 } else { ObjectFormat::Sha1 })
}

/// Where a small file of git's leads, as `.git`, `gitdir` and `commondir` do; from its own folder.
pub(super) fn leads_to(file: &Path) -> Option<PathBuf> {
    let text = text(file, MAX_LED)?.characters;
    let text = text.trim_end_matches(['\n', '\r']);
    let path = text.strip_prefix("gitdir: ").unwrap_or(text);
    Some(file.parent()?.join(as_path(path))).filter(|_| !path.is_empty())
}

/// Settings of all repositories of this user.
pub(super) fn of_user() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let config = config.or_else(|| Some(home.as_ref()?.join(".config")));
    let all = [home.map(|home| home.join(".gitconfig")), config.map(|config| config.join("git/config"))];
    [PathBuf::from("/etc/gitconfig")].into_iter().chain(all.into_iter().flatten()).collect()
}

/// All that is set, up to what git would refuse.
fn entries(text: &str) -> Vec<Entry> {
    let mut all = Vec::new();
    let text = text.strip_prefix(MARK).unwrap_or(text);
    let (mut rest, mut section, mut is_of_part) = (text.chars().peekable(), String::new(), false);
    while let Some(&next) = rest.peek() {
        match next {
            '#' | ';' => skip_line(&mut rest),
            '[' => match header(&mut rest) {
                Some(found) => (section, is_of_part) = found,
                None => break,
            },
            blank if is_blank(blank) => drop(rest.next()),
            letter if letter.is_ascii_alphabetic() => {
                let mut key = String::new();
                while let Some(part) = rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
                    push_in(&mut key, part);
                }
                while rest.next_if(|c| *c == ' ' || *c == '\t').is_some() {}
                // Without a value it is a yes.
                let value = if rest.next_if_eq(&'=').is_some() { value(&mut rest) } else { Some(String::new()) };
                let Some(value) = value else { break };
                all.push(Entry { section: section.clone(), is_of_part, key, value });
            }
            _ => break,
        }
    }
    all
}

/// The name of a section, without that of its part, and whether it has one; none where it does not end.
fn header(rest: &mut Peekable<Chars<'_>>) -> Option<(String, bool)> {
    let (mut name, mut is_quoted, mut is_name) = (String::new(), false, true);
    rest.next();
    loop {
        match rest.next()? {
            ']' if !is_quoted => return Some((name, !is_name)),
            '\\' if is_quoted => drop(rest.next()),
            '"' => (is_quoted, is_name) = (!is_quoted, false),
            '.' | ' ' | '\t' => is_name = false,
            '\n' => return None,
            letter if is_name => push_in(&mut name, letter),
            _ => {}
        }
    }
}

/// A value up to the end of its line, or of those that it goes on in; none where git would refuse it.
fn value(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    let (mut value, mut is_quoted, mut kept) = (String::new(), false, 0);
    while let Some(next) = rest.next() {
        match next {
            '\n' if !is_quoted => break,
            '\n' => return None,
            '\\' => {
                let escaped = rest.next()?;
                if escaped == '\r' {
                    let _end = rest.next_if_eq(&'\n');
                }
                match escaped {
                    '\n' | '\r' => {}
                    'n' => value.push('\n'),
                    't' => value.push('\t'),
                    'b' => value.push('\u{8}'),
                    '"' | '\\' => value.push(escaped),
                    _ => return None,
                }
            }
            '"' => is_quoted = !is_quoted,
            '#' | ';' if !is_quoted => {
                skip_line(rest);
                break;
            }
            blank if !is_quoted && is_blank(blank) => {
                if !value.is_empty() {
                    value.push(blank);
                }
                continue;
            }
            other => value.push(other),
        }
        kept = value.len();
    }
    // Blanks at the end are none of it, but for those in quotes.
    value.truncate(kept);
    Some(value)
}

fn push_in(name: &mut String, letter: char) {
    if name.len() < MAX_NAME {
        name.push(letter.to_ascii_lowercase());
    }
}

/// What git takes for a blank.
fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

fn skip_line(rest: &mut Peekable<Chars<'_>>) {
    while rest.next().is_some_and(|c| c != '\n') {}
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn how_long_names_of_objects_are_is_said_by_the_section_itself() {
        let folder = tempfile::tempdir().unwrap();
        let format = |text: &str| {
            fs::write(folder.path().join("config"), text).unwrap();
            object_format(folder.path())
        };
        assert!(matches!(format("[extensions]\nobjectformat = sha256\n"), Some(ObjectFormat::Sha256)));
        assert!(matches!(format("[extensions \"x\"]\nobjectformat = sha256\n"), Some(ObjectFormat::Sha1)));
        assert!(format(&"#".repeat(MAX_SETTINGS as usize + 1)).is_none());
    }

    #[test]
    fn settings_are_read_as_git_reads_them() {
        let text = "\u{feff}# note\n[include]path=one # why\n[core] hooksPath = \"two words\" ; x\n\tbare\n\
                    [includeIf \"gitdir:~/]a\\\"b\"]\n  PATH = thr\\\nee  \n[Core]HOOKSPATH=C:\\\\x\\ty\n\
                    [core.old]\nworktree = ../..\n[url \"x\"]\ninsteadOf = y\nworktree = \"un\nended\"\n[include]\npath = never";
        let all = entries(&characters(text.as_bytes()));
        let found: Vec<(&str, &str, &str)> =
            all.iter().map(|e| (e.section.as_str(), e.key.as_str(), e.value.as_str())).collect();
        assert_eq!(
            found,
            [
                ("include", "path", "one"),
                ("core", "hookspath", "two words"),
                ("core", "bare", ""),
                ("includeif", "path", "three"),
                ("core", "hookspath", "C:\\x\ty"),
                ("core", "worktree", "../.."),
                ("url", "insteadof", "y"),
            ]
        );
    }

    #[test]
    fn files_that_include_each_other_are_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("conf")).unwrap();
        fs::write(at("a"), "[include]path=conf/b").unwrap();
        fs::write(at("conf/b"), "[include]\npath=../a\npath=c\n").unwrap();
        fs::write(at("conf/c"), "[core]hooksPath=hk\n[filter \"a.b\"]clean = sh -c 'tools/c %f'\nrequired\n").unwrap();
        let found = GitSettings::read([at("a")], &mut 1_000);
        assert_eq!(found.hooks, [Path::new("hk")]);
        assert_eq!(found.words, ["sh", "-c", "tools/c", "%f"].map(Path::new));
        assert_eq!(found.includes, [at("conf/b"), at("conf/../a"), at("conf/c")]);
    }

    #[test]
    fn commands_that_git_runs_by_itself_are_found_whatever_they_are_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        for (text, word) in [
            ("[gc]recentObjectsHook = t/gc", "t/gc"),
            ("[hook \"lint\"]command = t/lint --all\nevent = pre-commit", "t/lint"),
            ("[uploadpack]packObjectsHook = t/pack", "t/pack"),
            ("[remote \"o\"]\nurl = ext::t/address %S", "t/address"),
            ("[remote \"o\"]\npushurl = ext::sh -c t/push", "t/push"),
            ("[branch \"b\"]remote = ext::t/branch", "t/branch"),
            ("[tar \"x\"]command = t/tar", "t/tar"),
            ("[mergetool \"x\"]cmd = t/merge $LOCAL", "t/merge"),
            ("[sendemail]ccCmd = t/cc", "t/cc"),
        ] {
            fs::write(&file, text).unwrap();
            let found = GitSettings::read([file.clone()], &mut 1_000);
            assert!(found.words.contains(&PathBuf::from(word)), "{text}: {:?}", found.words);
        }
        fs::write(&file, "[remote \"o\"]url = ./t/address\n[init]templateDir = t/new\n[alias]x = !t/alias").unwrap();
        let found = GitSettings::read([file], &mut 1_000);
        assert!(found.words.is_empty() && found.hooks == [Path::new("t/new")]);
    }

    #[test]
    fn paths_are_those_that_git_finds_whatever_bytes_they_have() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &[u8]| folder.path().join(OsStr::from_bytes(name));
        let names = [&b"a\xff"[..], "\u{a0}b\u{3000}".as_bytes(), b"c\0d"];
        let said = [b"[core]", &names.map(|name| [b"hooksPath = ", name, b"\n"].concat()).concat()[..]].concat();
        fs::write(at(b"s"), said).unwrap();
        let found = GitSettings::read([at(b"s")], &mut 1_000);
        assert_eq!(found.hooks, [names[0], names[1], b"c"].map(|name| Path::new(OsStr::from_bytes(name))));
        for (text, to) in
            [(&b"gitdir: ../x\ny\n"[..], &b"../x\ny"[..]), (b"gitdir:  x \r\n", b" x "), (b"\xfe/..\n", b"\xfe/..")]
        {
            fs::write(at(b"f"), text).unwrap();
            assert_eq!(leads_to(&at(b"f")), Some(at(to)));
        }
    }

    #[test]
    fn what_an_earlier_command_filled_is_read_in_part_and_that_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("many"), format!("[core]\n{}", "hooksPath=a\n".repeat(MAX_PATHS + 1))).unwrap();
        fs::write(at("long"), format!("[{}]\n", "a".repeat(2 << 20))).unwrap();
        let mut left = 10 << 20;
        let found = GitSettings::read([at("many")], &mut left);
        assert!(found.is_cut && found.hooks.len() == MAX_PATHS);
        assert!(GitSettings::read([at("long")], &mut left).is_cut);
        assert!(GitSettings::read([at("many")], &mut 10).is_cut);
        assert_eq!(left, (10 << 20) - at("many").metadata().unwrap().len() - MAX_SETTINGS);
    }
}
