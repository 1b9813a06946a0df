//! Whether a configuration file is the operator's: nobody else may be able to change what it says.
//!
//! It may be a link. The file it resolves to, and each folder on the way, that of a link too, must belong to this user
//! or root and not be writable by others. The owner's own private group may write, and a folder may be sticky like
//! `/tmp`.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
};

use rustix::fs::lgetxattr;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum Untrusted {
    /// It cannot be found or looked at.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Somebody else owns it.
    #[error("{} belongs to uid {owner}, which could change it: it must belong to this user or root", path.display())]
    Owner {
        /// The file or folder.
        path: PathBuf,
        /// Who owns it.
        owner: u32,
    },
    /// Others may write to it.
    #[error("{} can be written to by others (mode {mode:o}): run chmod go-w on it", path.display())]
    Writable {
        /// The file or folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Others may write to it by an access list.
    #[error(
        "{} has an access list that may let others write to it: look at it with getfacl, and take it away with setfacl -b",
        .0.display()
    )]
    Listed(PathBuf),
}

/// The attribute by which the kernel keeps an access list that says more than the mode does.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Links on the way to one file, as the kernel counts them.
const MAX_LINKS: usize = 40;

/// One thing on the way to a path.
#[derive(Debug)]
pub(crate) struct Step {
    /// Where it is; no part of it before the last is a link.
    pub(crate) path: PathBuf,
    /// Whether it is a link.
    pub(crate) is_link: bool,
}

/// Checks a file and everything on the way to it, and gives the path it resolves to.
///
/// # Errors
/// [`Untrusted`].
pub(crate) fn check(path: &Path) -> Result<PathBuf, Untrusted> {
    let (steps, real) = walk(path)?;
    for step in &steps {
        if step.is_link { check_owner(&step.path)? } else { check_one(&step.path)? }
    }
    Ok(real)
}

/// Checks all that is there of the way to a path; what is missing will be this user's.
///
/// # Errors
/// [`Untrusted`].
pub(crate) fn check_way(path: &Path) -> Result<(), Untrusted> {
    let (steps, _) = walk(path)?;
    let there = steps.iter().filter(|step| step.path.symlink_metadata().is_ok());
    there.into_iter().try_for_each(|step| if step.is_link { check_owner(&step.path) } else { check_one(&step.path) })
}

/// All that is on the way to a path, from `/` on, links and where they lead, and what it resolves to. Where something
/// is missing that is the last step, and the rest of the path is taken as it is written.
pub(crate) fn walk(path: &Path) -> io::Result<(Vec<Step>, PathBuf)> {
    let mut real = PathBuf::from("/");
    let mut steps = vec![Step { path: real.clone(), is_link: false }];
    // What is still to be walked, the next part last.
    let mut ahead = parts(&std::path::absolute(path)?);
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        if part == ".." {
            real.pop();
            continue;
        }
        real.push(&part);
        let found = real.symlink_metadata();
        let is_link = found.as_ref().is_ok_and(fs::Metadata::is_symlink);
        steps.push(Step { path: real.clone(), is_link });
        if found.is_err() {
            real.extend(ahead.drain(..).rev());
        } else if is_link {
            links += 1;
            if links > MAX_LINKS {
                return Err(nix::errno::Errno::ELOOP.into());
            }
            let target = fs::read_link(&real)?;
            if target.is_absolute() {
                real = PathBuf::from("/");
            } else {
                real.pop();
            }
            ahead.extend(parts(&target));
        }
    }
    Ok((steps, real))
}

/// The parts of a path but its root, the first one last.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    parts.rev().map(|part| part.as_os_str().to_owned()).collect()
}

/// Whoever owns a link says where it leads; its mode says nothing.
fn check_owner(path: &Path) -> Result<(), Untrusted> {
    let owner = path.symlink_metadata()?.uid();
    if owner != 0 && owner != nix::unistd::geteuid().as_raw() {
        return Err(Untrusted::Owner { path: path.to_owned(), owner });
    }
    Ok(())
}

fn check_one(path: &Path) -> Result<(), Untrusted> {
    let meta = path.symlink_metadata()?;
    let (owner, mode) = (meta.uid(), meta.mode() & 0o7777);
    check_owner(path)?;
    let sticky = meta.is_dir() && mode & 0o1000 != 0;
    // By convention the private group of a user has the user's own number.
    let private_group = meta.gid() == owner;
    let others = mode & 0o002 != 0 || (mode & 0o020 != 0 && !private_group);
    if others && !sticky {
        return Err(Untrusted::Writable { path: path.to_owned(), mode });
    }
    // With an access list the bits of the group are the most that anybody in it may do.
    if mode & 0o020 != 0 && !sticky && lgetxattr(path, ACCESS_LIST, &mut [0_u8; 0]).is_ok() {
        return Err(Untrusted::Listed(path.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_that_others_can_write_is_named_also_behind_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a.json"), folder.path().join("link.json"));
        fs::write(&file, "{}").unwrap();
        symlink(&file, &link).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(check(&link).unwrap(), fs::canonicalize(&file).unwrap());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o606)).unwrap();
        let error = check(&link).unwrap_err().to_string();
        assert!(error.contains("a.json") && error.contains("chmod"), "{error}");
    }

    #[test]
    fn links_lead_where_the_kernel_says() {
        let folder = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(folder.path()).unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/b/f"), "").unwrap();
        symlink("a/b", at("relative")).unwrap();
        symlink(at("relative"), at("absolute")).unwrap();
        symlink("../b/./f", at("a/b/f-link")).unwrap();
        symlink("loop", at("loop")).unwrap();
        for path in
            ["a/b/f", "relative/f", "absolute/f", "absolute/f-link", "relative/../b/f", "a/./b/../../absolute/f"]
        {
            assert_eq!(check(&at(path)).unwrap(), real.join("a/b/f"), "{path}");
            assert_eq!(fs::canonicalize(at(path)).unwrap(), real.join("a/b/f"), "{path}");
        }
        for path in ["loop", "none", "a/b/f/x", "relative/none"] {
            assert!(matches!(check(&at(path)), Err(Untrusted::Io(_))), "{path}");
        }
    }

    #[test]
    fn a_folder_on_the_way_counts_too() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.json");
        fs::write(&file, "{}").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(check(&file), Err(Untrusted::Writable { .. })));
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(check(&file).is_ok());
    }

    #[test]
    fn a_way_is_checked_as_far_as_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("missing/state");
        assert!(check_way(&inside).is_ok());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(check_way(&inside), Err(Untrusted::Writable { .. })));
    }
}
