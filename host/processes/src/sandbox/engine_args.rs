//! What the operator's own arguments to an engine's `run` do: which of the host's files a container gets by them, which
//! ones would take the container out of our hands, and which take isolation away.
//!
//! They are read as both engines read them: long flags with their value behind `=` or as the next word, short ones in
//! groups. What comes from elsewhere (a volume's own options, `containers.conf`) is not seen here.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Short flags that have a value.
const VALUED: [char; 9] = ['a', 'c', 'e', 'h', 'l', 'm', 'p', 'u', 'w'];

/// Something of the host in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostMount {
    /// The folder or file, as it is named.
    pub source: PathBuf,
    /// Where it is inside.
    pub target: PathBuf,
    /// Whether the container can write it.
    pub is_writable: bool,
    /// Whether it is a layer over the source that is mounted, and not the source itself.
    pub is_layered: bool,
}

/// A source that the flag that names it cannot hold.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot be mounted by --volume, which ends at a colon: {}", .0.display(), by_mount(.0))]
pub struct Unmountable(PathBuf);

/// What to write for a source with a colon in it.
fn by_mount(source: &Path) -> String {
    format!("write --engine-arg=--mount=type=bind,source={},target=PATH", source.display())
}

/// A flag as it was typed, and its value, with which the argument of this number ends.
struct Typed {
    flag: String,
    value: Option<String>,
    at: usize,
}

/// All of the host that these arguments mount.
#[must_use]
pub fn host_mounts(args: &[OsString]) -> Vec<HostMount> {
    typed(args).iter().filter_map(Typed::mounts).collect()
}

/// These arguments with other sources, in the order of [`host_mounts`], so that the engine finds what was looked at.
///
/// # Errors
/// [`Unmountable`].
pub fn with_sources(args: &[OsString], sources: &[&Path]) -> Result<Vec<OsString>, Unmountable> {
    let mut all = args.to_vec();
    let typed = typed(args);
    let mounts = typed.iter().filter(|one| one.mounts().is_some());
    for (Typed { flag, value, at }, source) in mounts.zip(sources) {
        let value = value.as_deref().unwrap_or_default();
        let named = if flag == "--mount" { in_mount(value, source) } else { in_volume(value, source)? };
        let arg = args[*at].to_string_lossy();
        let mut arg = OsString::from(arg.strip_suffix(value).unwrap_or_default());
        arg.push(named);
        all[*at] = arg;
    }
    Ok(all)
}

/// The first of these arguments of which only the engine knows what of the host it opens, and what to write in its place:
/// one with a pattern, with a second folder, or with a colon in a path, which versions of an engine read in different ways.
#[must_use]
pub fn ambiguous(args: &[OsString]) -> Option<String> {
    let why = |one: &Typed| {
        let value = one.value.as_deref().unwrap_or_default();
        let is_elsewhere = || one.mounts().is_some_and(|mount| !mount.target.is_absolute());
        match one.flag.as_str() {
            "--mount" if value.to_ascii_lowercase().contains("type=glob") => {
                Some("which files a pattern names is up to the engine: name each of them, with type=bind".to_owned())
            }
            "-v" | "--volume" if value.contains("upperdir=") => Some(
                "what is written goes into a folder that is not the source: leave upperdir and workdir out".to_owned(),
            ),
            "-v" | "--volume" if value.contains("\\:") || is_elsewhere() => {
                Some(format!("if a colon is in the path, {}", by_mount(Path::new("PATH"))))
            }
            _ => None,
        }
    };
    typed(args).iter().find_map(|one| Some(format!("{}: {}", one.shown(), why(one)?)))
}

/// The first of these arguments by which the container would not be ours to see, to signal or to remove.
#[must_use]
pub fn unfit(args: &[OsString]) -> Option<String> {
    let is_unfit = |one: &Typed| match one.flag.as_str() {
        "--name" | "--volumes-from" | "--pod" | "--pod-id-file" | "--replace" | "--cidfile" => true,
        "-d" | "--detach" => is_yes(one.value.as_deref()),
        "--rm" | "--interactive" | "-i" => !is_yes(one.value.as_deref()),
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
            "-v" | "--volume" | "--mount" => one.mounts().is_some_and(|mount| is_of_the_kernel(&mount.source)),
            "--privileged" => is_yes(one.value.as_deref()),
            "--read-only" => !is_yes(one.value.as_deref()),
            "--pid" | "--ipc" | "--uts" | "--userns" | "--cgroupns" => {
                value == "host" || value.starts_with("container:") || value.starts_with("ns:")
            }
            "--cap-add" | "--device" | "--network" | "--net" | "--env-host" | "--publish" | "-p" => true,
            "--use-api-socket" => is_yes(one.value.as_deref()),
            "--group-add" => value == "keep-groups",
            "--security-opt" => ["unconfined", "disable", "unmask", "new-privileges"]
                .iter()
                .any(|part| value.contains(part) && value != "no-new-privileges" && value != "no-new-privileges=true"),
            _ => false,
        }
    };
    typed(args).iter().filter(|one| opens(one)).map(Typed::shown).collect()
}

/// Whether a folder is the kernel's own, by which root in a container changes the machine.
fn is_of_the_kernel(source: &Path) -> bool {
    ["/proc", "/sys", "/dev"].iter().any(|folder| source.starts_with(folder))
}

impl Typed {
    /// A flag of this argument, with a value of its own or the next argument for one.
    fn new(at: usize, flag: String, value: Option<&str>, next: Option<&str>) -> Self {
        let at = if value.is_none() && next.is_some() { at + 1 } else { at };
        Self { flag, value: value.or(next).map(str::to_owned), at }
    }

    /// What it mounts of the host.
    fn mounts(&self) -> Option<HostMount> {
        let value = self.value.as_deref()?;
        match self.flag.as_str() {
            "-v" | "--volume" => volume(value),
            "--mount" => mount(value),
            _ => None,
        }
    }

    fn shown(&self) -> String {
        self.value.as_ref().map_or_else(|| self.flag.clone(), |value| format!("{}={value}", self.flag))
    }
}

fn typed(args: &[OsString]) -> Vec<Typed> {
    let args: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    let mut all = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        let next = args.get(at + 1).filter(|next| !next.starts_with('-')).map(|next| &**next);
        if arg.starts_with("--") {
            let (flag, value) = arg.split_once('=').map_or((&**arg, None), |(flag, value)| (flag, Some(value)));
            all.push(Typed::new(at, flag.to_owned(), value, next));
        } else if let Some(group) = arg.strip_prefix('-') {
            all.extend(short(at, group, next));
        }
    }
    all
}

/// Short flags in a group: the first that has a value has all that is left of it, or the next word.
fn short(at: usize, group: &str, next: Option<&str>) -> Vec<Typed> {
    let mut all = Vec::new();
    for (start, letter) in group.char_indices() {
        let rest = &group[start + letter.len_utf8()..];
        let flag = format!("-{letter}");
        if letter == 'v' || VALUED.contains(&letter) || rest.starts_with('=') {
            let value = rest.strip_prefix('=').unwrap_or(rest);
            all.push(Typed::new(at, flag, (!rest.is_empty()).then_some(value), next));
            break;
        }
        all.push(Typed::new(at, flag, None, None));
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
    let (source, target, options) = (parts.next()?, parts.next()?, parts.next().unwrap_or_default());
    // What is written into an overlay stays there.
    let is_layered = options.split(',').any(|option| option == "O");
    let is_writable = !is_layered && !options.split(',').any(|option| option == "ro");
    let (source, target) = (PathBuf::from(source), PathBuf::from(target));
    let is_path = value.starts_with(['/', '.']);
    is_path.then_some(HostMount { source, target, is_writable, is_layered })
}

/// That with another source.
fn in_volume(value: &str, source: &Path) -> Result<OsString, Unmountable> {
    if source.as_os_str().as_encoded_bytes().contains(&b':') {
        return Err(Unmountable(source.to_owned()));
    }
    let mut named = OsString::from(source);
    named.push(value.find(':').map_or("", |at| &value[at..]));
    Ok(named)
}

/// The source of `type=bind,source=SOURCE,...`, in which a pair with a comma or a quote stands in quotes, and Docker takes
/// its keys and its type in large letters too.
fn mount(value: &str) -> Option<HostMount> {
    let pairs: Vec<(String, String)> = fields(value).iter().map(|field| pair(field)).collect();
    let pairs = || pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let kind =
        pairs().find(|(key, _)| *key == "type").map_or("volume".to_owned(), |(_, kind)| kind.to_ascii_lowercase());
    let is_read_only = pairs().any(|(key, value)| matches!(key, "ro" | "readonly") && is_yes(Some(value)))
        || pairs().any(|(key, value)| matches!(key, "rw" | "readwrite") && !is_yes(Some(value)));
    // The last one holds.
    let source = pairs().rfind(|(key, _)| is_source(key))?.1;
    let target = pairs().rfind(|(key, _)| matches!(*key, "target" | "destination" | "dst"));
    let is_path = kind == "bind" || source.starts_with(['/', '.']);
    is_path.then(|| HostMount {
        source: PathBuf::from(source),
        target: PathBuf::from(target.map_or("", |(_, target)| target)),
        is_writable: !is_read_only,
        is_layered: false,
    })
}

/// Its key in small letters, and its value.
fn pair(field: &str) -> (String, String) {
    let (key, value) = field.split_once('=').unwrap_or((field, "true"));
    (key.trim().to_ascii_lowercase(), value.to_owned())
}

fn is_source(key: &str) -> bool {
    matches!(key, "source" | "src")
}

/// That with another source.
fn in_mount(value: &str, source: &Path) -> OsString {
    let mut named = OsString::new();
    for field in fields(value) {
        if !named.is_empty() {
            named.push(",");
        }
        match field.split_once('=') {
            Some((key, _)) if is_source(&key.trim().to_ascii_lowercase()) => {
                let mut pair = OsString::from(format!("{key}="));
                pair.push(source);
                named.push(quoted(&pair));
            }
            _ => named.push(quoted(OsStr::new(&field))),
        }
    }
    named
}

/// A field as it stands in such a line.
fn quoted(field: &OsStr) -> OsString {
    let bytes = field.as_bytes();
    if !bytes.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        return field.to_owned();
    }
    let inner = bytes.iter().flat_map(|byte| if *byte == b'"' { vec![b'"'; 2] } else { vec![*byte] });
    OsString::from_vec([b'"'].into_iter().chain(inner).chain([b'"']).collect())
}

/// One line of comma-separated values; in quotes two of them are one.
fn fields(line: &str) -> Vec<String> {
    let (mut all, mut is_quoted) = (vec![String::new()], false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.next_if_eq(&'"').is_some() => {
                all.last_mut().into_iter().for_each(|field| field.push('"'));
            }
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
        let found = |words: &[&str]| {
            let mounts = host_mounts(&args(words)).into_iter();
            mounts.map(|mount| (mount.source, mount.target, mount.is_writable)).collect::<Vec<_>>()
        };
        let one = |is_writable| [(PathBuf::from("/w"), PathBuf::from("/work"), is_writable)];
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
            &["--mount=TYPE=Bind,SRC=/w,Dst=/work"],
        ] {
            assert_eq!(found(words), one(true), "{words:?}");
        }
        for words in [
            &["--volume=/w:/work:ro"][..],
            &["-v", "/w:/work:O"],
            &["--mount=type=bind,source=/w,target=/work,readonly"],
            &["--mount=type=bind,source=/w,target=/work,rw=false"],
            &["--mount=type=bind,Source=/w,Target=/work,ReadOnly"],
        ] {
            assert_eq!(found(words), one(false), "{words:?}");
        }
        for words in
            [&["--volume=named:/work"][..], &["--mount=type=tmpfs,target=/work"], &["-w/w:/work"], &["-e", "v"]]
        {
            assert_eq!(host_mounts(&args(words)), [], "{words:?}");
        }
        let last = &["--mount=type=bind,source=/x,source=w,target=/work"];
        assert_eq!(found(last), [(PathBuf::from("w"), PathBuf::from("/work"), true)]);
    }

    #[test]
    fn the_engine_is_given_what_was_looked_at_wherever_the_source_stands() {
        let (real, odd) = (Path::new("/real"), Path::new("/a,\"b:c"));
        for (words, named) in [
            (&["--volume=/w:/work:ro"][..], &["--volume=/real:/work:ro"][..]),
            (&["-v", "./w:/w"], &["-v", "/real:/w"]),
            (&["-itv=/w:/w"], &["-itv=/real:/w"]),
            (&["-v/w:/w", "--rm"], &["-v/real:/w", "--rm"]),
            (&["--mount", "type=bind,\"src=/a,b\",dst=/w"], &["--mount", "type=bind,src=/real,dst=/w"]),
            (&["--mount=type=bind,SRC=/w,DST=/w"], &["--mount=type=bind,SRC=/real,DST=/w"]),
            (&["--volume=named:/w", "-v/w:/w"], &["--volume=named:/w", "-v/real:/w"]),
        ] {
            assert_eq!(with_sources(&args(words), &[real]).unwrap(), args(named), "{words:?}");
        }
        let quoted = with_sources(&args(&["--mount=type=bind,src=/w,dst=/w"]), &[odd]).unwrap();
        assert_eq!(quoted, args(&["--mount=type=bind,\"src=/a,\"\"b:c\",dst=/w"]));
        assert_eq!(host_mounts(&quoted)[0].source, odd);
        let error = with_sources(&args(&["-v/w:/w"]), &[odd]).unwrap_err();
        assert!(error.to_string().contains("--engine-arg=--mount=type=bind,source=/a,"), "{error}");
    }

    #[test]
    fn what_only_the_engine_can_read_is_told_with_what_to_write_in_its_place() {
        for (words, told) in [
            (
                &["--mount=type=glob,src=/p*,dst=/w"][..],
                "--mount=type=glob,src=/p*,dst=/w: which files a pattern names",
            ),
            (&["-v", "/l:/w:O,upperdir=/p"], "-v=/l:/w:O,upperdir=/p: what is written"),
        ] {
            let said = ambiguous(&args(words)).unwrap();
            assert!(said.starts_with(told), "{said}");
        }
        for one in ["--volume=/a\\:b:/w", "-v/a:b:/w"] {
            let told = ambiguous(&args(&[one])).unwrap();
            assert!(told.contains("--engine-arg=--mount=type=bind,source=PATH"), "{told}");
        }
        let fine = ["--volume=/a:/w:ro", "--volume=named:/w", "-v", "/w", "--mount=type=bind,src=/a:b,dst=/w"];
        assert_eq!(ambiguous(&args(&fine)), None);
    }

    #[test]
    fn what_would_take_the_container_away_from_us_and_what_opens_it_is_told_apart() {
        for (words, shown) in [
            (&["--name=x"][..], "--name=x"),
            (&["--name", "x"], "--name=x"),
            (&["-d"], "-d"),
            (&["-itd"], "-d"),
            (&["--detach=true"], "--detach=true"),
            (&["--pod-id-file=x"], "--pod-id-file=x"),
            (&["--rm=false"], "--rm=false"),
            (&["--volumes-from=a"], "--volumes-from=a"),
        ] {
            assert_eq!(unfit(&args(words)).as_deref(), Some(shown), "{words:?}");
        }
        let fine = ["--memory=2g", "--detach=false", "--rm", "-it", "--env", "A=b", "--runtime=runc", "--read-only"];
        assert_eq!((unfit(&args(&fine)), opening(&args(&fine))), (None, Vec::new()));
        for one in [
            "--privileged",
            "--pid=host",
            "--security-opt=seccomp=unconfined",
            "--read-only=false",
            "--cap-add=all",
            "--use-api-socket",
            "--group-add=keep-groups",
            "--volume=/proc:/w",
            "--mount=type=bind,src=/sys/fs,dst=/w",
        ] {
            assert_eq!(opening(&args(&[one])), [one]);
        }
        let fine = ["--security-opt=no-new-privileges", "--ipc=private", "--group-add=video", "--volume=/w:/proc"];
        assert_eq!(opening(&args(&fine)), Vec::<String>::new());
    }
}
