//! What the operator's own arguments to an engine's `run` do: which of the host's files a container gets by them, which
//! ones would take the container out of our hands, and which take isolation away.
//!
//! They are read as both engines read them: long flags with their value behind `=` or as the next word, short ones in
//! groups. What comes from elsewhere (a volume's own options, `containers.conf`) is not seen here.

use std::ffi::OsString;
use std::path::PathBuf;

/// Short flags that have a value.
const VALUED: [char; 9] = ['a', 'c', 'e', 'h', 'l', 'm', 'p', 'u', 'w'];

/// Something of the host in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostMount {
    /// The folder or file, as it is named.
    pub source: PathBuf,
    /// Whether the container can write it.
    pub is_writable: bool,
}

/// A flag as it was typed, and its value.
struct Typed {
    flag: String,
    value: Option<String>,
}

/// All of the host that these arguments mount.
#[must_use]
pub fn host_mounts(args: &[OsString]) -> Vec<HostMount> {
    let mounts = typed(args).into_iter().filter_map(|Typed { flag, value }| match flag.as_str() {
        "-v" | "--volume" => volume(&value?),
        "--mount" => mount(&value?),
        _ => None,
    });
    mounts.collect()
}

/// The first of these arguments by which the container would not be ours to see, to signal or to remove.
#[must_use]
pub fn unfit(args: &[OsString]) -> Option<String> {
    let is_unfit = |one: &Typed| match one.flag.as_str() {
        "--name" | "--volumes-from" | "--pod" | "--replace" | "--cidfile" => true,
        "-d" | "--detach" => is_yes(one.value.as_deref()),
        "--rm" | "--interactive" | "-i" => !is_yes(one.value.as_deref()),
        // Which files that are is known to the engine alone.
        "--mount" => one.value.as_ref().is_some_and(|value| value.contains("type=glob")),
        // It is written through a path of the host that is not its source.
        "-v" | "--volume" => one.value.as_ref().is_some_and(|value| value.contains("upperdir=")),
        _ => false,
    };
    typed(args).iter().find(|one| is_unfit(one)).map(Typed::shown)
}

/// Those of these arguments that take isolation away.
#[must_use]
pub fn opening(args: &[OsString]) -> Vec<String> {
    let opens = |one: &Typed| {
        let value = one.value.as_deref().unwrap_or_default();
        match one.flag.as_str() {
            "--privileged" => is_yes(one.value.as_deref()),
            "--read-only" => !is_yes(one.value.as_deref()),
            "--pid" | "--ipc" | "--uts" | "--userns" | "--cgroupns" => {
                value == "host" || value.starts_with("container:") || value.starts_with("ns:")
            }
            "--cap-add" | "--device" | "--network" | "--net" | "--env-host" | "--publish" | "-p" => true,
            "--security-opt" => ["unconfined", "disable", "unmask", "new-privileges"]
                .iter()
                .any(|part| value.contains(part) && value != "no-new-privileges" && value != "no-new-privileges=true"),
            _ => false,
        }
    };
    typed(args).iter().filter(|one| opens(one)).map(Typed::shown).collect()
}

impl Typed {
    fn shown(&self) -> String {
        self.value.as_ref().map_or_else(|| self.flag.clone(), |value| format!("{}={value}", self.flag))
    }
}

fn typed(args: &[OsString]) -> Vec<Typed> {
    let args: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    let mut all = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        let next = || args.get(at + 1).filter(|next| !next.starts_with('-')).map(ToString::to_string);
        if arg.starts_with("--") {
            let (flag, value) = arg.split_once('=').map_or((&**arg, None), |(flag, value)| (flag, Some(value)));
            all.push(Typed { flag: flag.to_owned(), value: value.map(str::to_owned).or_else(next) });
        } else if let Some(group) = arg.strip_prefix('-') {
            all.extend(short(group, next));
        }
    }
    all
}

/// Short flags in a group: the first that has a value has all that is left of it, or the next word.
fn short(group: &str, next: impl Fn() -> Option<String>) -> Vec<Typed> {
    let mut all = Vec::new();
    for (at, letter) in group.char_indices() {
        let rest = &group[at + letter.len_utf8()..];
        let flag = format!("-{letter}");
        if letter == 'v' || VALUED.contains(&letter) || rest.starts_with('=') {
            let value = rest.strip_prefix('=').unwrap_or(rest);
            all.push(Typed { flag, value: if rest.is_empty() { next() } else { Some(value.to_owned()) } });
            break;
        }
        all.push(Typed { flag, value: None });
    }
    all
}

/// As Go reads a truth; a flag alone is one, whatever word comes next.
fn is_yes(value: Option<&str>) -> bool {
    !value.is_some_and(|value| ["0", "f", "F", "false", "False", "FALSE"].contains(&value))
}

/// The source of `SOURCE:TARGET[:OPTIONS]`, if it is a path.
fn volume(value: &str) -> Option<HostMount> {
    let mut parts = value.split(':');
    let (source, _target, options) = (parts.next()?, parts.next()?, parts.next().unwrap_or_default());
    // What is written into an overlay stays there.
    let kept = options.split(',').any(|option| matches!(option, "ro" | "O"));
    source.starts_with(['/', '.']).then(|| HostMount { source: PathBuf::from(source), is_writable: !kept })
}

/// The source of `type=bind,source=SOURCE,...`, in which a pair with a comma or a quote stands in quotes.
fn mount(value: &str) -> Option<HostMount> {
    let pairs: Vec<String> = fields(value);
    let pairs = || pairs.iter().map(|part| part.split_once('=').unwrap_or((part.as_str(), "true")));
    let kind = pairs().find(|(key, _)| *key == "type").map_or("volume", |(_, kind)| kind);
    let is_read_only = pairs().any(|(key, value)| matches!(key, "ro" | "readonly") && is_yes(Some(value)))
        || pairs().any(|(key, value)| matches!(key, "rw" | "readwrite") && !is_yes(Some(value)));
    let source = pairs().find(|(key, _)| matches!(*key, "source" | "src"))?.1;
    let is_path = kind == "bind" || source.starts_with(['/', '.']);
    is_path.then(|| HostMount { source: PathBuf::from(source), is_writable: !is_read_only })
}

/// One line of comma-separated values.
fn fields(line: &str) -> Vec<String> {
    let (mut all, mut is_quoted) = (vec![String::new()], false);
    for letter in line.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => all.push(String::new()),
            _ => all.last_mut().into_iter().for_each(|field| field.push(letter)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn what_of_the_host_a_container_gets_is_found_however_it_is_typed() {
        let one = |is_writable| [HostMount { source: PathBuf::from("/w"), is_writable }];
        for words in [
            &["--volume=/w:/work"][..],
            &["-v", "/w:/work:Z"],
            &["-v/w:/work"],
            &["-iv", "/w:/work"],
            &["-itv=/w:/work"],
            &["--memory=2g", "--mount", "type=bind,src=/w,target=/work"],
            &["--mount=type=bind,source=/w,target=/work,ro=false"],
            &["--mount=type=bind,source=/w,target=/work,readonly=False"],
            &["--mount=type=bind,\"source=/w\",target=/work"],
        ] {
            assert_eq!(host_mounts(&args(words)), one(true), "{words:?}");
        }
        for words in [
            &["--volume=/w:/work:ro"][..],
            &["-v", "/w:/work:O"],
            &["--mount=type=bind,source=/w,target=/work,readonly"],
            &["--mount=type=bind,source=/w,target=/work,rw=false"],
        ] {
            assert_eq!(host_mounts(&args(words)), one(false), "{words:?}");
        }
        for words in
            [&["--volume=named:/work"][..], &["--mount=type=tmpfs,target=/work"], &["-w/w:/work"], &["-e", "v"]]
        {
            assert_eq!(host_mounts(&args(words)), [], "{words:?}");
        }
        let relative = HostMount { source: PathBuf::from("w"), is_writable: true };
        assert_eq!(host_mounts(&args(&["--mount=type=bind,source=w,target=/work"])), [relative]);
    }

    #[test]
    fn what_would_take_the_container_away_from_us_and_what_opens_it_is_told_apart() {
        for (words, shown) in [
            (&["--name=x"][..], "--name=x"),
            (&["--name", "x"], "--name=x"),
            (&["-d"], "-d"),
            (&["-itd"], "-d"),
            (&["--detach=true"], "--detach=true"),
            (&["--mount=type=glob,src=/p*,dst=/w"], "--mount=type=glob,src=/p*,dst=/w"),
            (&["--rm=false"], "--rm=false"),
            (&["--volumes-from=a"], "--volumes-from=a"),
            (&["-v", "/l:/w:O,upperdir=/p"], "-v=/l:/w:O,upperdir=/p"),
        ] {
            assert_eq!(unfit(&args(words)).as_deref(), Some(shown), "{words:?}");
        }
        let fine = ["--memory=2g", "--detach=false", "--rm", "-it", "--env", "A=b", "--runtime=runc", "--read-only"];
        assert_eq!((unfit(&args(&fine)), opening(&args(&fine))), (None, Vec::new()));
        for one in
            ["--privileged", "--pid=host", "--security-opt=seccomp=unconfined", "--read-only=false", "--cap-add=all"]
        {
            assert_eq!(opening(&args(&[one])), [one]);
        }
        assert_eq!(opening(&args(&["--security-opt=no-new-privileges", "--ipc=private"])), Vec::<String>::new());
    }
}
