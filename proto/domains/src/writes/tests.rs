//! What such a domain takes away, also by a folder that is held, and what it leaves: each on a thread of its own.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::{
        fs::{FileTypeExt as _, symlink},
        net::UnixListener,
    },
    path::PathBuf,
};

use nix::{
    errno::Errno,
    fcntl::{AtFlags, OFlag, openat, renameat},
    sys::stat::{Mode, mkdirat},
    unistd::{UnlinkatFlags, ftruncate, linkat, mkfifo, unlinkat},
};

use super::*;

/// Two folders with the same in them.
struct Folders(tempfile::TempDir);

impl Folders {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        for name in ["own", "foreign"] {
            fs::create_dir_all(base.path().join(name).join("folder/inner")).unwrap();
            fs::write(base.path().join(name).join("file"), "text").unwrap();
        }
        Self(base)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Does this in a domain that may write below these; nothing where the kernel has none.
    fn within<T: Send>(&self, places: &[&str], what: impl FnOnce() -> T + Send) -> Option<T> {
        if WritesBelow::nowhere().unwrap().is_none() {
            eprintln!("SKIPPED: not on this kernel");
            return None;
        }
        let places: Vec<PathBuf> = places.iter().map(|name| self.at(name)).collect();
        std::thread::scope(|scope| {
            let confined = scope.spawn(|| {
                write_below(places.iter().map(PathBuf::as_path)).unwrap();
                what()
            });
            Some(confined.join().unwrap())
        })
    }
}

/// All that replaces, removes or writes a name in a folder that is held.
fn tried(folder: &File) -> Vec<(&'static str, nix::Result<()>)> {
    let open = |name, flags| openat(folder, name, flags | OFlag::O_CLOEXEC, Mode::S_IRWXU).map(drop);
    vec![
        ("make", open("new", OFlag::O_WRONLY | OFlag::O_CREAT)),
        ("unnamed", open(".", OFlag::O_WRONLY | OFlag::O_TMPFILE)),
        ("write", open("file", OFlag::O_WRONLY)),
        ("cut", open("file", OFlag::O_RDONLY | OFlag::O_TRUNC)),
        ("link", linkat(folder, "file", folder, "link", AtFlags::empty())),
        ("rename", renameat(folder, "file", folder, "file.old")),
        ("move", renameat(folder, "folder/inner", folder, "inner")),
        ("make a folder", mkdirat(folder, "made", Mode::S_IRWXU)),
        ("remove a folder", unlinkat(folder, "inner", UnlinkatFlags::RemoveDir)),
        ("remove", unlinkat(folder, "file.old", UnlinkatFlags::NoRemoveDir)),
    ]
}

#[test]
fn a_folder_of_others_that_is_held_takes_no_change_and_its_own_takes_all() {
    let folders = Folders::new();
    let (own, foreign) = (File::open(folders.at("own")).unwrap(), File::open(folders.at("foreign")).unwrap());
    let Some((own, others)) = folders.within(&["own"], || (tried(&own), tried(&foreign))) else { return };
    for (what, done) in own {
        assert_eq!(done, Ok(()), "{what}");
    }
    for (what, done) in others {
        assert!(matches!(done, Err(Errno::EACCES | Errno::EXDEV | Errno::ENOENT)), "{what}: {done:?}");
    }
    assert_eq!(fs::read_to_string(folders.at("foreign/file")).unwrap(), "text");
    assert_eq!(fs::read_dir(folders.at("foreign")).unwrap().count(), 2);
}

#[test]
fn what_it_cannot_write_it_reads_and_what_it_has_open_it_writes() {
    let folders = Folders::new();
    let mut open = OpenOptions::new().append(true).open(folders.at("foreign/file")).unwrap();
    folders.within(&["own"], || {
        open.write_all(b" and more").unwrap();
        assert_eq!(fs::read_to_string(folders.at("foreign/file")).unwrap(), "text and more");
        assert_eq!(fs::write(folders.at("foreign/file"), "x").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    });
}

#[test]
fn fifos_sockets_links_and_files_without_a_name_are_made_and_used_in_its_own_places() {
    let folders = Folders::new();
    folders.within(&["own"], || {
        let at = |name: &str| folders.at("own").join(name);
        mkfifo(&at("fifo"), Mode::S_IRWXU).unwrap();
        let both = OpenOptions::new().read(true).write(true).open(at("fifo")).unwrap();
        assert!(both.metadata().unwrap().file_type().is_fifo());
        let _listener = UnixListener::bind(at("socket")).unwrap();
        std::os::unix::net::UnixStream::connect(at("socket")).unwrap();
        symlink("file", at("symlink")).unwrap();
        fs::hard_link(at("file"), at("folder/link")).unwrap();
        fs::rename(at("folder/link"), at("folder/inner/link")).unwrap();
        let unnamed = openat(nix::fcntl::AT_FDCWD, &at("."), OFlag::O_RDWR | OFlag::O_TMPFILE, Mode::S_IRWXU).unwrap();
        ftruncate(&unnamed, 10).unwrap();
        fs::remove_dir_all(at("folder")).unwrap();
    });
}

#[test]
fn pipes_and_memory_are_opened_again_by_their_descriptors() {
    let folders = Folders::new();
    folders.within(&[], || {
        let (_reader, writer) = io::pipe().unwrap();
        let again = |fd: &dyn std::os::fd::AsRawFd| {
            OpenOptions::new().write(true).open(format!("/proc/self/fd/{}", fd.as_raw_fd()))
        };
        again(&writer).unwrap();
        let memory = nix::sys::memfd::memfd_create("memory", nix::sys::memfd::MFdFlags::MFD_CLOEXEC).unwrap();
        again(&memory).unwrap();
    });
}

#[test]
fn a_place_can_be_one_file_and_one_that_is_missing_is_none() {
    let folders = Folders::new();
    folders.within(&["own/file", "missing"], || {
        fs::write(folders.at("own/file"), "written").unwrap();
        assert!(fs::write(folders.at("own/other"), "x").is_err());
        assert!(fs::remove_file(folders.at("own/file")).is_err());
    });
}
