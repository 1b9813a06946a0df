//! Programs of the operator that a guest could put its own code into: by the program itself, by a script or package
//! among its arguments, by the folder that it starts in, by a variable that has it load something.
//!
//! What an argument is to a program nobody knows. So every file that a guest can write counts as a script, and a folder
//! counts where runtimes and package managers take code from one: after their flags for that, or as their first word.
//! Other folders are data, such as the one that a server of files is to serve.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::{
    programs,
    writable::{InHands, Writable},
};

/// Runtimes, shells and package managers: what they are given is code, folders too.
const RUNNERS: [&str; 28] = [
    "bash", "bun", "bunx", "cargo", "dash", "deno", "fish", "go", "hatch", "java", "make", "node", "nodejs", "npm",
    "npx", "pdm", "perl", "php", "pipx", "pnpm", "pnpx", "poetry", "ruby", "sh", "uv", "uvx", "yarn", "zsh",
];
/// Beginnings of names of further ones, with a version behind it.
const RUNNERS_WITH_VERSIONS: [&str; 3] = ["python", "pypy", "lua"];
/// Their flags that a folder with code follows.
const FOLDER_FLAGS: [&str; 10] = [
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
/// Variables that have a program load something.
const LOADING: [&str; 24] = [
    "BASH_ENV",
    "BUNDLE_GEMFILE",
    "CLASSPATH",
    "ENV",
    "GEM_HOME",
    "GEM_PATH",
    "JAVA_TOOL_OPTIONS",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LUA_PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NPM_CONFIG_PREFIX",
    "NPM_CONFIG_USERCONFIG",
    "PERL5LIB",
    "PERL5OPT",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "UV_PROJECT",
    "VIRTUAL_ENV",
];

/// A program as it is to be started.
#[derive(Debug, Clone, Copy)]
pub(super) struct Starting<'a> {
    pub(super) command: &'a str,
    pub(super) args: &'a [String],
    /// The folder that the configuration names.
    pub(super) cwd: Option<&'a Path>,
    /// The variables that the configuration names.
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

impl fmt::Display for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, hands: InHands { place, folder } } = self;
        let place = if place == folder { String::new() } else { format!(" ({})", place.display()) };
        write!(f, "{what} is in {}{place}, which the sandbox can write: ", folder.display())?;
        f.write_str("what a guest puts there would run outside, as you. ")
    }
}

/// Finds the first way for a guest to have its own code run by this program.
pub(super) fn find(program: Starting<'_>, writable: &Writable) -> Option<Exposed> {
    let exposed = |what: String, path: &Path| writable.holds(path).map(|hands| Exposed { what, hands });
    let of_folder = || program.cwd.and_then(|cwd| exposed(format!("its folder {}", cwd.display()), cwd));
    let of_program = || {
        let at = programs::find(program.command, program.cwd, program.path)?;
        exposed(format!("its program {}", at.display()), &at)
    };
    let of_argument = || {
        let what = |argument: &str| format!("its argument {argument}");
        let mut code = code_among(program);
        code.find_map(|(argument, path)| exposed(what(argument), &path)).or_else(|| {
            let script = scripts(program.args).find(|script| writable.names().any(|name| script.contains(name)))?;
            let folder = writable.names().find(|name| script.contains(name)).map(PathBuf::from)?;
            Some(Exposed { what: what(script), hands: InHands { place: folder.clone(), folder } })
        })
    };
    let of_variable = || {
        let loading = program.variables.iter().filter(|(name, _)| LOADING.contains(&name.to_uppercase().as_str()));
        let mut paths = loading.flat_map(|(name, value)| {
            value.split([':', ' ', '=', ',']).filter(|part| part.contains('/')).map(move |part| (name, part))
        });
        paths.find_map(|(name, part)| exposed(format!("{part} in its variable {name}"), &from(program.cwd, part)?))
    };
    of_folder().or_else(of_program).or_else(of_argument).or_else(of_variable)
}

/// A path as the program understands it: relative to its folder. In an empty one there is nothing.
fn from(cwd: Option<&Path>, path: &str) -> Option<PathBuf> {
    let path = Path::new(path.strip_prefix("file://").unwrap_or(path));
    if path.is_absolute() { Some(path.to_owned()) } else { cwd.map(|cwd| cwd.join(path)) }
}

/// Arguments that are code, as far as that can be told, with the paths that they are.
fn code_among(program: Starting<'_>) -> impl Iterator<Item = (&str, PathBuf)> {
    let args = program.args;
    let runs_folders = is_runner(program.command);
    let first_word = args.iter().position(|arg| !arg.starts_with('-'));
    let of = move |(at, arg): (usize, &'_ String)| -> Option<PathBuf> {
        let (flag, value) = match arg.split_once('=').filter(|_| arg.starts_with('-')) {
            Some((flag, value)) => (Some(flag), value),
            None => (at.checked_sub(1).map(|before| args[before].as_str()), arg.as_str()),
        };
        let path = from(program.cwd, value).filter(|_| !value.is_empty())?;
        let takes_folder =
            runs_folders && (first_word == Some(at) || flag.is_some_and(|flag| FOLDER_FLAGS.contains(&flag)));
        // A file that is not there yet could be made.
        (takes_folder || (!path.is_dir() && value.contains('/')) || path.is_file()).then_some(path)
    };
    args.iter().enumerate().filter_map(move |(at, arg)| Some((arg.as_str(), of((at, arg))?)))
}

/// Arguments that are scripts in full: what follows `-c`, `-lc` or `-e`.
fn scripts(args: &[String]) -> impl Iterator<Item = &str> {
    let introduces =
        |flag: &str| matches!(flag.strip_prefix('-'), Some(rest) if rest.len() <= 3 && rest.ends_with(['c', 'e']));
    args.windows(2).filter(move |pair| introduces(&pair[0])).map(|pair| pair[1].as_str())
}

fn is_runner(command: &str) -> bool {
    let name = Path::new(command).file_name().and_then(|name| name.to_str()).unwrap_or_default();
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
        symlink(guest.join("server.py"), other.join("link.py")).unwrap();
        symlink("/bin/sh", guest.join("link")).unwrap();
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
        ] {
            assert_eq!(said(words, cwd, &[("ROOT", "@g")]), None, "{words:?}");
        }
    }
}
