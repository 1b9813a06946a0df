//! Programs of the operator that a guest could put its own code into: by the program itself, by a script or package
//! among its arguments, by the folder that it starts in, by a variable that has it load something, by what programs take
//! from below the home folder.
//!
//! A program is what it is called, and what each link on the way to it is called. One that only starts another one is looked
//! through, and so is the first line of a script. Not seen are a copy of a program by another name, a path that a script
//! puts together out of pieces, and modules that a program imports from above a guest's folder.
//!
//! What an argument is to a program nobody knows. So every file that a guest can write counts as a script, and a folder
//! counts where runtimes and package managers take code from one: after their flags for that, or as their first word.
//! Other folders are data, such as the one that a server of files is to serve.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::{
    home_places,
    loading::is_loading,
    programs,
    writable::{InHands, Writable},
};

/// How many programs one behind the other are looked through.
const DEPTH: usize = 16;
/// Runtimes, shells and package managers: what they are given is code, folders too.
const RUNNERS: [&str; 39] = [
    "bash", "bun", "bunx", "cargo", "dash", "deno", "dotnet", "fish", "go", "gmake", "gradle", "gradlew", "hatch",
    "java", "just", "make", "mise", "mvn", "mvnw", "ninja", "nix", "node", "nodejs", "npm", "npx", "pdm", "perl",
    "php", "pipx", "pnpm", "pnpx", "poetry", "rake", "ruby", "sh", "uv", "uvx", "yarn", "zsh",
];
/// Words of theirs behind which what is to be run is named.
const RUN_WORDS: [(&str, [&str; 2]); 6] = [
    ("bun", ["run", "x"]),
    ("deno", ["run", "serve"]),
    ("dotnet", ["run", "build"]),
    ("go", ["run", "build"]),
    ("nix", ["run", "build"]),
    ("uv", ["run", "build"]),
];
/// Those of them for which any argument and variable may be a folder to go to.
const SHELLS: [&str; 5] = ["bash", "dash", "fish", "sh", "zsh"];
/// Beginnings of names of further ones, with a version behind it.
const RUNNERS_WITH_VERSIONS: [&str; 3] = ["python", "pypy", "lua"];
/// Their flags that a folder with code follows.
const FOLDER_FLAGS: [&str; 13] = [
    "--chdir",
    "--wd",
    "--working-directory",
    "-C",
    "--cwd",
    "--dir",
    "--directory",
    "--from",
    "--package",
    "--prefix",
    "--project",
    "--with",
    "--with-editable",
];
/// The same, which others of them take for something else.
const OWN_FOLDER_FLAGS: [(&str, [&str; 4]); 6] = [
    ("gradle", ["-p", "--project-dir", "-I", "--include-build"]),
    ("gradlew", ["-p", "--project-dir", "-I", "--include-build"]),
    ("just", ["-d", "-f", "--justfile", "--set"]),
    ("mvn", ["-f", "--file", "-s", "--settings"]),
    ("mvnw", ["-f", "--file", "-s", "--settings"]),
    ("php", ["-t", "--docroot", "-c", "--php-ini"]),
];
/// Programs that start the one that their arguments name, behind options and values of theirs.
const STARTERS: [&str; 35] = [
    "busybox",
    "catchsegv",
    "chroot",
    "chrt",
    "dbus-run-session",
    "direnv",
    "doas",
    "fakeroot",
    "firejail",
    "flock",
    "ionice",
    "ltrace",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "prlimit",
    "proot",
    "runuser",
    "script",
    "setpriv",
    "setsid",
    "stdbuf",
    "strace",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "toybox",
    "unbuffer",
    "unshare",
    "watch",
    "xargs",
    "xvfb-run",
];
/// Words after which `find` and `fd` start a program for what they find.
const FOR_EACH: [&str; 8] = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];
/// First lines of scripts that are followed from one to the next, as the kernel does.
const SCRIPTS: usize = 4;
/// Options of `env` that a value follows.
const ENV_VALUES: [&str; 6] = ["-u", "--unset", "-C", "--chdir", "-a", "--argv0"];

/// A program as it is to be started.
#[derive(Debug, Clone, Copy)]
pub(super) struct Starting<'a> {
    pub(super) command: &'a str,
    pub(super) args: &'a [String],
    /// The folder that the configuration names.
    pub(super) cwd: Option<&'a Path>,
    /// The variables that it gets.
    pub(super) variables: &'a [(String, String)],
    /// The PATH that it is looked for in.
    pub(super) path: Option<&'a str>,
}

/// What of it is in a guest's hands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exposed {
    what: String,
    hands: InHands,
}

impl Exposed {
    /// Of a file that is a guest's by another name in its folder.
    fn by_another_name(what: String, name: PathBuf, folder: &Path) -> Self {
        Self {
            what: format!("{what} has another name (hard link) and"),
            hands: InHands { place: name, folder: folder.to_owned() },
        }
    }
}

impl fmt::Display for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, hands: InHands { place, folder } } = self;
        let lies = if folder.starts_with(place) && folder != place { "has in it" } else { "is in" };
        let place = if folder.starts_with(place) { String::new() } else { format!(" ({})", place.display()) };
        write!(f, "{what} {lies} {}{place}, which the sandbox can write: ", folder.display())?;
        f.write_str("what a guest puts there would run outside, as you. ")
    }
}

/// Finds the first way for a guest to have its own code run by this program, or by one that it starts.
pub(super) fn find(program: Starting<'_>, writable: &Writable) -> Option<Exposed> {
    within(program, writable, DEPTH)
}

fn within(program: Starting<'_>, writable: &Writable, depth: usize) -> Option<Exposed> {
    let of = |Started { words, cwd, variables }: Started| {
        let (command, args) = words.split_first().filter(|_| depth > 0)?;
        // It hands its own on.
        let variables = [program.variables, &variables].concat();
        within(Starting { command, args, cwd: cwd.as_deref(), variables: &variables, ..program }, writable, depth - 1)
    };
    itself(program, writable)
        .or_else(|| by_first_line(program, writable, SCRIPTS))
        .or_else(|| started(program).and_then(of))
        .or_else(|| of_home(program, writable))
}

/// Whether the first line of a script names something of a guest's, or one of what that starts.
fn by_first_line(program: Starting<'_>, writable: &Writable, deeper: usize) -> Option<Exposed> {
    let script = programs::find(program.command, program.cwd, program.path)?;
    let mut words = programs::first_line(&script)?;
    let line = format!("#!{}", words.join(" "));
    words.push(script.to_string_lossy().into_owned());
    let (command, args) = words.split_first()?;
    let interpreter = Starting { command, args, ..program };
    let deeper = deeper.checked_sub(1)?;
    let found =
        itself(interpreter, writable).or_else(|| by_first_line(interpreter, writable, deeper)).or_else(|| {
            let Started { words, cwd, variables } = started(interpreter)?;
            let (command, args) = words.split_first()?;
            itself(Starting { command, args, cwd: cwd.as_deref(), variables: &variables, ..program }, writable)
        })?;
    Some(Exposed { what: format!("of its program's first line {line}, {}", found.what), ..found })
}

/// What it takes by itself from below the home folder.
fn of_home(program: Starting<'_>, writable: &Writable) -> Option<Exposed> {
    let shell = by_each_name(program, |named| SHELLS.contains(&file_name(named.command)).then_some(()));
    let is_shell = shell.is_some();
    let (place, hands) = home_places::exposed(program.variables, is_shell, writable)?;
    let what = format!("{}, from which programs take code or settings,", place.display());
    Some(Exposed { what, hands })
}

/// What a program starts that only starts another one.
struct Started {
    words: Vec<String>,
    cwd: Option<PathBuf>,
    variables: Vec<(String, String)>,
}

fn started(program: Starting<'_>) -> Option<Started> {
    by_each_name(program, started_by_name)
}

/// The first that is found by one of the names of a program.
fn by_each_name<T>(program: Starting<'_>, look: impl Fn(Starting<'_>) -> Option<T>) -> Option<T> {
    let names = programs::names(program.command, program.cwd, program.path);
    names.iter().find_map(|command| look(Starting { command, ..program }))
}

fn started_by_name(program: Starting<'_>) -> Option<Started> {
    let name = file_name(program.command);
    let mut all = Started { words: Vec::new(), cwd: program.cwd.map(Path::to_owned), variables: Vec::new() };
    if name == "env" {
        all.read_env(program.args);
    } else if STARTERS.contains(&name) {
        // Which of the words before it are values of options nobody knows.
        let is_other =
            |word: &&String| word.starts_with('-') || programs::find(word, program.cwd, program.path).is_none();
        all.words = program.args.iter().skip_while(is_other).cloned().collect();
    }
    (!all.words.is_empty()).then_some(all)
}

/// `--chdir`, which may be cut.
fn is_chdir(flag: &str) -> bool {
    flag.len() > 2 && "--chdir".starts_with(flag)
}

impl Started {
    /// As coreutils reads the arguments of `env`.
    fn read_env(&mut self, args: &[String]) {
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let (flag, value) = match arg.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, Some(value)),
                _ if arg.len() > 2 && ["-C", "-S", "-u"].iter().any(|flag| arg.starts_with(flag)) => {
                    (&arg[..2], Some(&arg[2..]))
                }
                _ => (arg.as_str(), None),
            };
            let value = match value {
                None if ENV_VALUES.contains(&flag) || is_chdir(flag) || matches!(flag, "-S" | "--split-string") => {
                    args.next().map(String::as_str)
                }
                value => value,
            };
            match (flag, value, arg.split_once('=')) {
                (flag, Some(folder), _) if flag == "-C" || is_chdir(flag) => {
                    self.cwd = from(self.cwd.as_deref(), folder);
                }
                ("-S" | "--split-string", Some(text), _) => {
                    let text = text.replace(['\'', '"', '\\'], "");
                    let words: Vec<String> = text.split_whitespace().map(str::to_owned).chain(args.cloned()).collect();
                    return self.read_env(&words);
                }
                (flag, _, _) if flag.starts_with('-') => {}
                (_, _, Some((name, value))) => self.variables.push((name.to_owned(), value.to_owned())),
                _ => {
                    self.words = std::iter::once(arg).chain(args).cloned().collect();
                    return;
                }
            }
        }
    }
}

/// The first way that the program itself is.
fn itself(program: Starting<'_>, writable: &Writable) -> Option<Exposed> {
    by_each_name(program, |named| itself_by_name(named, writable))
}

fn itself_by_name(program: Starting<'_>, writable: &Writable) -> Option<Exposed> {
    let exposed = |what: String, path: &Path| match writable.holds(path) {
        Some(hands) => Some(Exposed { what, hands }),
        None => writable.another_name(path).map(|(name, folder)| Exposed::by_another_name(what, name, folder)),
    };
    let of_folder = || program.cwd.and_then(|cwd| exposed(format!("its folder {}", cwd.display()), cwd));
    let of_program = || {
        let at = programs::find(program.command, program.cwd, program.path)?;
        exposed(format!("its program {}", at.display()), &at)
    };
    let of_argument = || {
        let what = |argument: &str| format!("its argument {argument}");
        let mut code = code_among(program);
        code.find_map(|(argument, path)| exposed(what(argument), &path)).or_else(|| {
            let named = |script| Some((script, writable.names().find(|folder| names(script, folder, program.cwd))?));
            let (script, folder) = scripts(program.args).find_map(named)?;
            let folder = PathBuf::from(folder);
            Some(Exposed { what: what(script), hands: InHands { place: folder.clone(), folder } })
        })
    };
    let of_variable = || {
        let loading = program.variables.iter().filter(|(name, _)| has_script(program) || is_loading(name));
        let mut paths = loading.flat_map(|(name, value)| {
            let is_path = |part: &&str| part.contains('/') || (program.cwd.is_some() && !part.is_empty());
            value.split([':', ' ', '=', ',']).filter(is_path).map(move |part| (name, attached(part)))
        });
        paths.find_map(|(name, part)| exposed(format!("{part} in its variable {name}"), &from(program.cwd, part)?))
    };
    let of_module = || modules(program).find_map(|(name, path)| exposed(format!("its module {name}"), &path));
    of_folder().or_else(of_program).or_else(of_argument).or_else(of_variable).or_else(of_module)
}

/// A path as the program understands it: relative to its folder. In an empty one there is nothing.
fn from(cwd: Option<&Path>, path: &str) -> Option<PathBuf> {
    let local = ["git+file://", "file://", "file:", "link:"].iter().find_map(|start| path.strip_prefix(start));
    let path = Path::new(local.unwrap_or(path));
    if path.is_absolute() { Some(path.to_owned()) } else { cwd.map(|cwd| cwd.join(path)) }
}

/// Arguments that are code, as far as that can be told, with the paths that they are.
fn code_among(program: Starting<'_>) -> impl Iterator<Item = (&str, PathBuf)> {
    let args = program.args;
    let runs_folders = is_runner(program.command) || STARTERS.contains(&file_name(program.command));
    let has_script = has_script(program) || starts_for_each(program);
    let first_word = args.iter().position(|arg| !arg.starts_with('-'));
    let is_run = |word: &str| {
        let mut known = RUN_WORDS.iter().filter(|(name, _)| *name == file_name(program.command));
        known.any(|(_, words)| words.contains(&word))
    };
    let behind = first_word.filter(|at| is_run(&args[*at])).map_or(args.len(), |at| at + 1);
    // Behind that there are the program's own.
    let own = args.len() - args[behind..].iter().skip_while(|arg| *arg != "--").count();
    let run_word = (behind..own).find(|at| !args[*at].starts_with('-'));
    let own_flags = OWN_FOLDER_FLAGS.iter().find(|(name, _)| *name == file_name(program.command));
    let own_flags = own_flags.map_or(&[][..], |(_, flags)| flags);
    let of = move |(at, arg): (usize, &'_ String)| -> Option<PathBuf> {
        let (flag, value) = match arg.split_once('=').filter(|_| arg.starts_with('-')) {
            Some((flag, value)) => (Some(flag), value),
            None => (at.checked_sub(1).map(|before| args[before].as_str()), arg.as_str()),
        };
        let value = attached(value);
        let path = from(program.cwd, value).filter(|_| !value.is_empty())?;
        let is_flagged = arg.starts_with('-') && !arg.starts_with("--") && value.starts_with('/')
            || flag.is_some_and(|flag| FOLDER_FLAGS.contains(&flag) || own_flags.contains(&flag));
        // A script may do anything with what it is given.
        let takes_folder = has_script || runs_folders && (first_word == Some(at) || run_word == Some(at) || is_flagged);
        // A file that is not there yet could be made.
        (takes_folder || (!path.is_dir() && value.contains('/')) || path.is_file()).then_some(path)
    };
    args.iter().enumerate().filter_map(move |(at, arg)| Some((arg.as_str(), of((at, arg))?)))
}

/// Modules that a runtime is to run (`-m a.b`), by the paths at which it would find them: in its folder and in those of
/// `PYTHONPATH`.
fn modules(program: Starting<'_>) -> impl Iterator<Item = (&str, PathBuf)> {
    let is_runtime = RUNNERS_WITH_VERSIONS.iter().any(|start| file_name(program.command).starts_with(start));
    let args = program.args.iter().map(String::as_str);
    let next = program.args.iter().skip(1).map(|arg| Some(arg.as_str())).chain([None]);
    let named = args.zip(next).filter(move |_| is_runtime).filter_map(|(flag, next)| {
        let (before, rest) = flag.strip_prefix('-')?.split_once('m')?;
        let is_it = before.chars().all(|c| c.is_ascii_alphabetic() && c != 'c');
        if rest.is_empty() { next } else { Some(rest) }.filter(|_| is_it)
    });
    let listed = program.variables.iter().filter(|(name, _)| name == "PYTHONPATH");
    let listed = listed.flat_map(|(_, value)| value.split(':')).map(PathBuf::from);
    let folders: Vec<PathBuf> = program.cwd.map(Path::to_owned).into_iter().chain(listed).collect();
    named.flat_map(move |name| {
        let below = name.replace('.', "/");
        folders.iter().map(|folder| (name, folder.join(&below))).collect::<Vec<_>>()
    })
}

/// Arguments that are scripts in full: what follows `-c`, `-lc` or `-e`.
fn scripts(args: &[String]) -> impl Iterator<Item = &str> {
    let introduces =
        |flag: &str| matches!(flag.strip_prefix('-'), Some(rest) if rest.len() <= 3 && rest.ends_with(['c', 'e']));
    args.windows(2).filter(move |pair| introduces(&pair[0])).map(|pair| pair[1].as_str())
}

/// Whether a script names this folder: in full, by its own name behind a slash, as in `~/NAME` and `../NAME`, or, where it
/// starts in a folder that somebody chose, by its name alone.
fn names(script: &str, folder: &str, cwd: Option<&Path>) -> bool {
    let name = file_name(folder);
    let changes_folder = script.split(|c: char| !c.is_alphanumeric()).any(|word| matches!(word, "cd" | "pushd"));
    let is_edge = |c: Option<char>| c.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.')));
    let by_name = |(at, _): (usize, &str)| {
        let (before, after) = (script[..at].chars().next_back(), script[at + name.len()..].chars().next());
        is_edge(after) && (before == Some('/') || ((cwd.is_some() || changes_folder) && is_edge(before)))
    };
    script.contains(folder) || (!name.is_empty() && script.match_indices(name).any(by_name))
}

/// The path in a flag that it is attached to, as in `-I/path`.
fn attached(text: &str) -> &str {
    text.find('/').filter(|_| text.starts_with('-')).map_or(text, |at| &text[at..])
}

/// Whether it is a shell that is told in full what to do, with arguments and variables for that.
fn has_script(program: Starting<'_>) -> bool {
    SHELLS.contains(&file_name(program.command)) && scripts(program.args).next().is_some()
}

/// Whether it starts a program for each thing that it finds.
fn starts_for_each(program: Starting<'_>) -> bool {
    let is_finder = matches!(file_name(program.command), "find" | "fd" | "fdfind");
    is_finder && program.args.iter().any(|arg| FOR_EACH.contains(&arg.as_str()))
}

fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Whether it only starts the program that its arguments name.
pub(super) fn is_starter(command: &str) -> bool {
    let name = file_name(command);
    name == "env" || STARTERS.contains(&name)
}

fn is_runner(command: &str) -> bool {
    let name = file_name(command);
    RUNNERS.contains(&name) || RUNNERS_WITH_VERSIONS.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    /// What is said of a program; `@g` stands for the guest's folder, `@o` for another.
    fn said(words: &[&str], cwd: Option<&str>, variables: &[(&str, &str)]) -> Option<String> {
        let place = tempfile::tempdir().unwrap();
        let [guest, other] = ["guest", "other"].map(|name| place.path().canonicalize().unwrap().join(name));
        fs::create_dir_all(guest.join("package")).unwrap();
        fs::create_dir(&other).unwrap();
        for file in [guest.join("server.py"), other.join("server.py"), guest.join("sh")] {
            crate::config::programs::tests::program(&file);
        }
        crate::config::programs::tests::program(&other.join("wrapped"));
        fs::write(other.join("wrapped"), format!("#!{} -u\n", guest.join("sh").display())).unwrap();
        symlink(guest.join("server.py"), other.join("link.py")).unwrap();
        fs::hard_link(guest.join("server.py"), other.join("hard.py")).unwrap();
        fs::write(other.join("twice"), "x").unwrap();
        fs::hard_link(other.join("twice"), other.join("twice.py")).unwrap();
        for (name, line) in [
            ("inside", format!("#! {}/sh -e\n", guest.display())),
            ("through", format!("#!{}/inside\n", other.display())),
            ("env", format!("#!/usr/bin/env -S python3 {}/server.py\n", guest.display())),
            ("plain", "#!/usr/bin/env python3\n".to_owned()),
        ] {
            crate::config::programs::tests::program(&other.join(name));
            fs::write(other.join(name), line).unwrap();
        }
        symlink("/bin/sh", guest.join("link")).unwrap();
        // What they lead to need not be there: what it is called says what it is.
        for (name, to) in [("builds", "twice-removed"), ("twice-removed", "make"), ("around", "/usr/bin/env")] {
            symlink(to, other.join(name)).unwrap();
        }
        crate::config::programs::tests::program(&other.join("make"));
        let real =
            |text: &str| text.replace("@g", &guest.display().to_string()).replace("@o", &other.display().to_string());
        let words: Vec<String> = words.iter().map(|word| real(word)).collect();
        let variables: Vec<_> = variables.iter().map(|(name, value)| ((*name).to_owned(), real(value))).collect();
        let cwd = cwd.map(|cwd| PathBuf::from(real(cwd)));
        let path = real("/usr/bin:/bin:@o");
        let (command, args) = words.split_first().unwrap();
        let starting = Starting { command, args, cwd: cwd.as_deref(), variables: &variables, path: Some(&path) };
        find(starting, &Writable::folders([guest])).map(|exposed| exposed.to_string())
    }

    #[test]
    fn whatever_a_guest_could_have_run_is_named() {
        for (words, cwd, variables, says) in [
            (&["@g/server.py"][..], None, &[][..], "its program"),
            (&["@g/link"], None, &[], "its program"),
            (&["link.py"], None, &[], "its program"),
            (&["@o/wrapped"], None, &[], "of its program's first line"),
            (&["nice", "wrapped", "x"], None, &[], "of its program's first line"),
            (&["./sh"], Some("@g"), &[], "its folder"),
            (&["sh"], Some("@g/package"), &[], "its folder"),
            (&["python3", "@g/server.py"], None, &[], "its argument"),
            (&["python3", "@o/link.py"], None, &[], "its argument"),
            (&["python3", "../guest/server.py"], Some("@o"), &[], "its argument"),
            (&["node", "--require=@g/x.js", "@o/y.js"], None, &[], "its argument"),
            (&["node", "--import", "file://@g/x.js", "@o/y.js"], None, &[], "its argument"),
            (&["python3.12", "@g/package"], None, &[], "its argument"),
            (&["npx", "-y", "@g/package"], None, &[], "its argument"),
            (&["uv", "--directory", "@g", "run", "server.py"], None, &[], "its argument"),
            (&["uv", "run", "--project=@g", "server"], None, &[], "its argument"),
            (&["bash", "-lc", "cd @g && exec npm start"], None, &[], "its argument"),
            (&["python3", "-m", "server"], None, &[("PYTHONPATH", "/usr/lib/x:@g")], "its variable PYTHONPATH"),
            (&["node", "@o/y.js"], None, &[("NODE_OPTIONS", "--require @g/x.js")], "its variable NODE_OPTIONS"),
            (&["python3", "-m", "server"], None, &[("HOME", "@g")], "its variable HOME"),
            (&["python3", "-m", "server"], None, &[("XDG_CACHE_HOME", "@g/x")], "its variable XDG_CACHE_HOME"),
            (
                &["python3", "-m", "server"],
                Some("@o/.."),
                &[("PYTHONUSERBASE", "guest")],
                "its variable PYTHONUSERBASE",
            ),
            (&["env", "-C", "@g", "python3", "-m", "server"], None, &[], "its folder"),
            (&["/usr/bin/env", "--chdir=../guest", "python3"], Some("@o"), &[], "its folder"),
            (&["env", "-i", "-u", "X", "PYTHONPATH=@g", "python3", "-m", "x"], None, &[], "its variable PYTHONPATH"),
            (&["env", "-S", "HOME=@g python3", "-m", "x"], None, &[], "its variable HOME"),
            (&["nice", "-n", "5", "timeout", "10s", "env", "-C@g", "npx", "x"], None, &[], "its argument"),
            (&["setsid", "python3", "@g/package"], None, &[], "its argument"),
            (&["timeout", "-s", "KILL", "9", "env", "-C", "@g", "sh", "x"], None, &[], "its argument"),
            (&["env", "PATH=@g:/usr/bin", "tool"], None, &[], "its variable PATH"),
            (&["env", "--chd=@g", "sh", "x"], None, &[], "its folder"),
            (&["env", "-S", "-C '@g' sh x"], None, &[], "its folder"),
            (&["perl", "-I@g", "-mX"], None, &[], "its argument"),
            (&["perl", "-mX"], None, &[("PERL5OPT", "-I@g")], "its variable PERL5OPT"),
            (&["make", "-C@g"], None, &[], "its argument"),
            (&["setpriv", "--wd", "@g", "sh", "x"], None, &[], "its argument"),
            (&["sh", "-c", "cd \"$1\" && exec ./x", "_", "@g"], None, &[], "its argument"),
            (&["sh", "-c", "cd \"$D\" && exec ./x"], None, &[("D", "@g")], "its variable D"),
            (&["sh", "-c", "cd; cd guest; ./x"], None, &[], "its argument"),
            (&["sh", "-c", "cd .. && cd guest && exec npm start"], Some("@o"), &[], "its argument"),
            (&["sh", "-c", "cd ~/guest; exec npm start"], None, &[], "its argument"),
            (&["bash", "-c", "exec node $HOME/guest/x.js"], None, &[], "its argument"),
            (&["python3", "-m", "guest.package.server"], Some("@o/.."), &[], "its module guest.package.server"),
            (&["nice", "python3", "-Im", "guest.x"], Some("@o/.."), &[], "its module guest.x"),
            (&["python3", "-mguest.package"], None, &[("PYTHONPATH", "@o:@o/..")], "its module guest.package"),
            (&["@o/inside"], None, &[], "of its program's first line"),
            (&["through"], None, &[], "of its program's first line"),
            (&["@o/env"], None, &[], "of its program's first line"),
            (&["python3", "@o/hard.py"], None, &[], "hard.py has another name"),
            (&["@o/hard.py"], None, &[], "hard.py has another name"),
            (&["python3", "@o/server.py"], None, &[("PYTHONPYCACHEPREFIX", "@g")], "its variable PYTHONPYCACHEPREFIX"),
            (&["python3", "@o/server.py"], None, &[("OPENSSL_CONF", "@g/x")], "its variable OPENSSL_CONF"),
            (&["npx", "-y", "file:@g/package"], None, &[], "its argument"),
            (&["find", "@g", "-name", "x", "-exec", "python3", "{}", ";"], None, &[], "its argument"),
            (&["@o/builds", "-C", "@g/package"], None, &[], "its argument"),
            (&["builds", "--directory", "@g"], None, &[], "its argument"),
            (&["@o/around", "-C@g", "sh", "x"], None, &[], "its folder"),
            (&["nice", "around", "PYTHONPATH=@g", "python3", "-m", "x"], None, &[], "its variable PYTHONPATH"),
            (&["gmake", "-C", "@g"], None, &[], "its argument"),
            (&["dotnet", "run", "--project", "@g/package"], None, &[], "its argument"),
            (&["go", "run", "@g/package"], None, &[], "its argument"),
            (&["nix", "run", "@g"], None, &[], "its argument"),
            (&["mvn", "-q", "-f", "@g", "exec:java"], None, &[], "its argument"),
            (&["gradle", "-p", "@g", "run"], None, &[], "its argument"),
            (&["just", "-d@g", "serve"], None, &[], "its argument"),
            (&["just", "--justfile", "@g", "serve"], None, &[], "its argument"),
        ] {
            let found = said(words, cwd, variables).unwrap_or_default();
            assert!(found.contains(says) && found.contains("/guest"), "{words:?}: {found:?}");
        }
    }

    #[test]
    fn what_is_elsewhere_or_data_is_not() {
        for (words, cwd) in [
            (&["sh", "-c", "exec server"][..], None),
            (&["python3", "@o/server.py"], Some("@o")),
            (&["python3", "-m", "server"], None),
            (&["npx", "-y", "@modelcontextprotocol/server-filesystem", "@g", "@g/package"], None),
            (&["mcp-server-git", "--repository", "@g"], None),
            (&["python3", "server.py"], None),
            (&["python3", "-c", "import server", "@g"], None),
            (&["env", "X=1", "npx", "-y", "server-filesystem", "@g"], None),
            (&["sh", "-c", "exec guest --of ~/guests /not-guest"], None),
            (&["timeout", "5"], None),
            (&["@o/plain"], None),
            (&["python3", "@o/twice.py"], None),
            (&["python3", "-m", "guest.server"], Some("@o")),
            (&["find", "@g", "-name", "x"], None),
            (&["docker", "run", "-v", "@g:/x", "image"], None),
            (&["uvx", "mcp-server-git", "--repository", "@g"], None),
            (&["go", "run", "./cmd", "@g"], None),
            (&["uv", "run", "mcp-server-git", "@g"], None),
            (&["node", "server.js", "-d", "@g"], None),
            (&["cargo", "run", "-q", "--release", "--", "@g"], None),
            (&["npm", "start", "--", "@g"], None),
            (&["yarn", "start", "@g"], None),
            (&["dotnet", "run", "--no-build", "--", "@g"], None),
            (&["env"], None),
        ] {
            let variables: &[_] = if words[0] == "sh" { &[] } else { &[("ROOT", "@g")] };
            assert_eq!(said(words, cwd, variables), None, "{words:?}");
        }
    }
}
