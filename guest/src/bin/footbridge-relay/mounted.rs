//! Whether what is mounted in a container is what whoever started it looked at: a path on the host can lead elsewhere by the
//! time that an engine mounts it, and the engine follows it.
//!
//! Files are told apart by the numbers of their device and inode, which are the same in every view of a file system that
//! one kernel shows. Runtimes with a kernel or a file system of their own show others; what nobody can have replaced comes
//! first, this program itself, and says whether numbers mean anything here. Second is the folder that each container has.

use std::{
    ffi::{OsStr, OsString},
    io::ErrorKind,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::MetadataExt,
    },
    path::PathBuf,
};

use crate::say;

/// A file, and where it is to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mounted {
    device: u64,
    inode: u64,
    path: PathBuf,
}

/// Something else is there.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} is not what was looked at before: it was replaced on the host while the container was made, or a volume of the image is \
     there, so the command is not started; start it again, and see what else writes there, and what the image declares", .0.display()
)]
pub(crate) struct Replaced(PathBuf);

impl Mounted {
    /// Reads `DEVICE:INODE:PATH`.
    pub(crate) fn read(text: &OsStr) -> Option<Self> {
        let mut parts = text.as_bytes().splitn(3, |byte| *byte == b':');
        let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse().ok();
        let (device, inode) = (number()?, number()?);
        let path = PathBuf::from(OsString::from_vec(parts.next()?.to_owned()));
        path.is_absolute().then_some(Self { device, inode, path })
    }

    /// Whether it is there; none where this user may not look, and the command may not either.
    fn is_there(&self) -> Option<bool> {
        match self.path.metadata() {
            Ok(meta) => Some((meta.dev(), meta.ino()) == (self.device, self.inode)),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
            Err(_) => Some(false),
        }
    }
}

/// Refuses what is not what it is to be. The first one cannot have been replaced.
pub(crate) fn check(all: &[Mounted]) -> Result<(), Replaced> {
    let Some((first, others)) = all.split_first() else { return Ok(()) };
    if first.is_there() != Some(true) {
        if others.len() > 1 {
            say(
                &"this container does not show the numbers of the host's files, so whether one of its mounts was replaced \
                  while it was made is not known",
            );
        }
        return Ok(());
    }
    for one in others {
        match one.is_there() {
            Some(true) => {}
            Some(false) => return Err(Replaced(one.path.clone())),
            None => say(&format_args!(
                "{} is nothing that this user may look at, so whether it was replaced while the container was made is not \
                 known",
                one.path.display()
            )),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_replaced_is_found_where_numbers_mean_anything() {
        let place = std::env::temp_dir().canonicalize().unwrap();
        let meta = fs::metadata(&place).unwrap();
        let at =
            |device: u64, path: &str| Mounted::read(OsStr::new(&format!("{device}:{}:{path}", meta.ino()))).unwrap();
        let (here, there) = (place.to_str().unwrap(), "/proc");
        assert!(check(&[]).is_ok() && check(&[at(meta.dev(), here), at(meta.dev(), here)]).is_ok());
        let replaced = check(&[at(meta.dev(), here), at(meta.dev(), there)]).unwrap_err();
        assert!(replaced.to_string().starts_with("/proc is not what was looked at"), "{replaced}");
        assert!(check(&[at(meta.dev() + 1, here), at(meta.dev(), there)]).is_ok());
        for text in ["1:2", "1:x:/p", ":2:/p", "1:2:p", ""] {
            assert_eq!(Mounted::read(OsStr::new(text)), None, "{text}");
        }
        assert_eq!(Mounted::read(OsStr::new("1:2:/a:b")).unwrap().path, PathBuf::from("/a:b"));
    }
}
