//! Programs and folders that the configuration names and that are not there. They may come later, so this is no
//! mistake.

use std::{
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use footbridge_processes::regular_file::open_regular;

/// What the kernel reads of a script at most.
const FIRST_LINE: u64 = 256;

/// Says that a program is not to be found: by its path, from this folder on, or on this PATH. Without a PATH nothing is
/// said of a bare name.
pub(super) fn not_found(command: &str, cwd: Option<&Path>, path: Option<&str>) -> Option<String> {
    if let Some(cwd) = cwd.filter(|cwd| !cwd.is_dir()) {
        return Some(format!("its folder {} is not there", cwd.display()));
    }
    if !command.contains('/') {
        path?;
    }
    match find(command, cwd, path) {
        Some(at) => (!is_program(&at)).then(|| format!("its command {} is no program that can be run", at.display())),
        None if command.contains(char::is_whitespace) => Some(format!(
            "its command \"{command}\" is not found on PATH: all of it is taken for the name, and the words after the \
             program belong into \"args\""
        )),
        None => Some(format!("its command \"{command}\" is not found on PATH")),
    }
}

/// Where a program is that is started so, or why it cannot be.
pub(crate) fn program_of(command: &str, cwd: Option<&Path>, path: Option<&str>) -> Result<PathBuf, String> {
    match not_found(command, cwd, path.or(Some(""))) {
        Some(why) => Err(why),
        None => Ok(find(command, cwd, path).unwrap_or_else(|| PathBuf::from(command))),
    }
}

/// Where a program is, or would be: by its path, from this folder on, or the first on this PATH.
pub(super) fn find(command: &str, cwd: Option<&Path>, path: Option<&str>) -> Option<PathBuf> {
    if command.contains('/') {
        return Some(cwd.map_or_else(|| PathBuf::from(command), |cwd| cwd.join(command)));
    }
    path?.split(':').map(|folder| Path::new(folder).join(command)).find(|path| is_program(path))
}

/// Links from one to the next that are followed, at most.
const LINKS: usize = 16;
/// Programs that are many: which one is told by the name that they are started by, and not by what a link leads to.
const MANY: [&str; 5] = ["busybox", "coreutils", "mise", "toybox", "volta-shim"];

/// All names that a program has on the way from the one that is written to what links lead to, the written one first: it
/// behaves as what it is, whatever it is called.
pub(super) fn names(command: &str, cwd: Option<&Path>, path: Option<&str>) -> Vec<String> {
    let mut all = vec![command.to_owned()];
    let Some(mut at) = find(command, cwd, path) else { return all };
    let mut add = |at: &Path| {
        let name = at.file_name().and_then(|name| name.to_str()).filter(|name| !MANY.contains(name));
        if let (Some(name), Some(whole)) = (name, at.to_str())
            && all.iter().all(|known| Path::new(known).file_name().is_none_or(|known| known != name))
        {
            all.push(whole.to_owned());
        }
    };
    for _ in 0..LINKS {
        let Ok(to) = at.read_link() else { break };
        at = at.parent().map_or(to.clone(), |folder| folder.join(to));
        add(&at);
    }
    // A folder on the way may be a link, too; the name is the same then, unless there were more links than that.
    at.canonicalize().iter().for_each(|real| add(real));
    all
}

/// A program that is written with a folder, in full: relative to this one.
pub(super) fn in_full(base: &Path, command: &str) -> String {
    let relative = command.contains('/') && !command.starts_with('/');
    if relative { base.join(command).to_string_lossy().into_owned() } else { command.to_owned() }
}

/// The words of a script's first line, as the kernel takes them apart: an interpreter, and all the rest as one. The rest
/// is given in words here, as `env -S` reads it.
pub(super) fn first_line(script: &Path) -> Option<Vec<String>> {
    let (file, _) = open_regular(script).ok()?;
    let mut start = Vec::new();
    file.take(FIRST_LINE).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let words: Vec<String> = String::from_utf8_lossy(line).split_whitespace().map(str::to_owned).collect();
    (!words.is_empty()).then_some(words)
}

/// Whether a file can be run.
pub(super) fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn a_program_has_the_names_of_all_links_on_the_way_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        program(&at("python3.11"));
        program(&at("busybox"));
        for (name, to) in [("python3", "python3.11"), ("report", "./python3"), ("cat", "busybox"), ("round", "round")] {
            std::os::unix::fs::symlink(to, at(name)).unwrap();
        }
        let named = |command: &str| {
            let all = names(command, None, folder.path().to_str());
            all.iter().map(|name| Path::new(name).file_name().unwrap().to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(named("report"), ["report", "python3", "python3.11"]);
        assert_eq!(named(at("python3").to_str().unwrap()), ["python3", "python3.11"]);
        for one in ["cat", "round", "nowhere"] {
            assert_eq!(named(one), [one]);
        }
    }

    /// Makes a file that can be run.
    pub(in crate::config) fn program(path: &Path) {
        std::fs::write(path, "").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn what_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        std::fs::write(here.join("text"), "").unwrap();
        program(&here.join("program"));
        let path = format!("/nowhere:{}", here.display());
        for (command, cwd, path, says) in [
            ("program", None, Some(path.as_str()), None),
            ("text", None, Some(path.as_str()), Some("\"text\" is not found on PATH")),
            ("text", None, None, None),
            ("npx -y foo", None, Some(path.as_str()), Some("the words after the program belong into \"args\"")),
            ("./program", Some(here), None, None),
            ("./text", Some(here), None, Some("text is no program")),
            ("program", Some(Path::new("/nowhere")), Some(path.as_str()), Some("folder /nowhere is not there")),
        ] {
            let found = not_found(command, cwd, path);
            let fits = match says {
                Some(says) => found.as_ref().is_some_and(|found| found.contains(says)),
                None => found.is_none(),
            };
            assert!(fits, "{command}: {found:?}");
        }
    }
}
