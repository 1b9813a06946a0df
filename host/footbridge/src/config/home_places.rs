//! Places below a home folder from which programs take code or settings by themselves, whatever starts them: a guest that
//! writes one of these is outside at a server's next start. `docs/configuration.md` has the same lists, and a test
//! compares them.
//!
//! Where else programs look is not known here: a list is never whole.

use std::path::{Path, PathBuf};

use super::writable::{InHands, Writable};

/// What any program may take, or one that it starts: interpreters, package managers, git, and clients that run helpers.
const OF_PROGRAMS: [&str; 82] = [
    ".asdf",
    ".asdfrc",
    ".aws/config",
    ".bun",
    ".bunfig.toml",
    ".bundle",
    ".cache/bun",
    ".cache/deno",
    ".cache/node",
    ".cache/pip",
    ".cache/pnpm",
    ".cache/pre-commit",
    ".cache/pypoetry",
    ".cache/uv",
    ".cache/yarn",
    ".cargo",
    ".composer",
    ".condarc",
    ".config/containers",
    ".config/deno",
    ".config/direnv",
    ".config/git",
    ".config/mise",
    ".config/npm",
    ".config/pip",
    ".config/pnpm",
    ".config/pypoetry",
    ".config/uv",
    ".config/yarn",
    ".curlrc",
    ".deno",
    ".docker",
    ".dotnet",
    ".fnm",
    ".gem",
    ".gemrc",
    ".gitconfig",
    ".gnupg",
    ".gradle",
    ".hgrc",
    ".irbrc",
    ".ivy2",
    ".kube",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/gem",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/pypoetry",
    ".local/share/uv",
    ".local/share/virtualenv",
    ".local/share/virtualenvs",
    ".m2",
    ".mavenrc",
    ".node_libraries",
    ".node_modules",
    ".nodenv",
    ".npm",
    ".npm-global",
    ".npmrc",
    ".nuget",
    ".nvm",
    ".pip",
    ".pnpmfile.cjs",
    ".pydistutils.cfg",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rvm",
    ".sdkman",
    ".ssh",
    ".volta",
    ".wgetrc",
    ".yarn",
    ".yarnrc",
    ".yarnrc.yml",
    "go/bin",
    "go/pkg",
    "node_modules",
];

/// What shells read when they start.
const OF_SHELLS: [&str; 10] = [
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config/fish",
    ".profile",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

/// Which variable moves what has this beginning.
const MOVED: [(&str, &str); 3] =
    [(".cache/", "XDG_CACHE_HOME"), (".config/", "XDG_CONFIG_HOME"), (".local/share/", "XDG_DATA_HOME")];

/// The first place that is in a guest's hands, for a program with these variables: it lies in what the guest can write, is
/// reached through it, or has it inside.
pub(super) fn exposed(
    variables: &[(String, String)],
    is_shell: bool,
    writable: &Writable,
) -> Option<(PathBuf, InHands)> {
    let value = |name: &str| {
        let found = variables.iter().rev().find(|(other, _)| other == name);
        found.map(|(_, value)| Path::new(value)).filter(|path| path.is_absolute())
    };
    let home = value("HOME");
    let of_shells: &[&str] = if is_shell { &OF_SHELLS } else { &[] };
    let places = OF_PROGRAMS.iter().chain(of_shells).filter_map(|name| {
        let moved = MOVED.iter().find_map(|(start, variable)| Some(value(variable)?.join(name.strip_prefix(start)?)));
        moved.or_else(|| Some(home?.join(name)))
    });
    places.into_iter().find_map(|place| Some((place.clone(), writable.holds_or_is_in(&place)?)))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_place_in_what_a_guest_writes_through_it_or_around_it_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        for name in ["work", "shared", ".local/lib/python3.11", "xdg"] {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        symlink("work/gitconfig", home.join(".gitconfig")).unwrap();
        symlink("shared/profile", home.join(".bash_profile")).unwrap();
        let found = |written: &str, is_shell, more: &[(&str, &str)]| {
            let text = |name: &str, value: &Path| (name.to_owned(), value.display().to_string());
            let mut variables = vec![text("HOME", &home)];
            variables.extend(more.iter().map(|(name, value)| text(name, &home.join(value))));
            let place = exposed(&variables, is_shell, &Writable::folders([home.join(written)]))?.0;
            Some(place.strip_prefix(&home).unwrap().display().to_string())
        };
        assert_eq!(found("work", false, &[]).unwrap(), ".gitconfig");
        assert_eq!(found("shared", false, &[]), None);
        assert_eq!(found("shared", true, &[]).unwrap(), ".bash_profile");
        assert_eq!(found(".local", false, &[]).unwrap(), ".local/bin");
        assert_eq!(found(".local/lib/python3.11", false, &[]).unwrap(), ".local/lib");
        assert_eq!(found("xdg", false, &[]), None);
        assert_eq!(found("xdg", false, &[("XDG_CONFIG_HOME", "xdg")]).unwrap(), "xdg/containers");
        assert_eq!(exposed(&[], true, &Writable::folders([home.clone()])), None, "without a home there is none");
    }

    #[test]
    fn the_documentation_has_the_same_lists() {
        let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md")).unwrap();
        for name in OF_PROGRAMS.iter().chain(&OF_SHELLS) {
            assert!(text.contains(&format!("`{name}`")), "docs/configuration.md does not name {name}");
        }
    }
}
