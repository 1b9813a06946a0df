//! Folders and files of other users.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown, lchown, symlink},
        net::{UnixListener, UnixStream},
    },
};

use footbridge_edge::listener::{Access, BindError, FolderFault};
use nix::unistd::geteuid;

use crate::{
    places::{NOBODY, as_ordinary_user, bind, bind_with, folder, given, mode, must_pass, names, part},
    skipped::skipped,
};

#[tokio::test]
async fn a_folder_that_others_can_write_to_is_refused_but_a_sticky_one_will_do() {
    let folder = folder();
    for (bits, fits) in [(0o700, true), (0o755, true), (0o711, true), (0o770, false), (0o707, false), (0o1777, true)] {
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(bits)).unwrap();
        let bound = bind(&folder.path().join("s"));
        match bound {
            Ok(_) => assert!(fits, "{bits:o}"),
            Err(BindError::UnsafeFolder { path, why: FolderFault::Writable(mode) }) => {
                assert!(!fits && path == folder.path() && mode == bits, "{bits:o}");
            }
            Err(error) => panic!("{bits:o}: {error}"),
        }
    }
    assert!(matches!(bind(&folder.path().join("none/s")), Err(BindError::Io { .. })));
}

#[test]
fn what_belongs_to_another_user_is_refused_and_left_as_it_is() {
    let test = "what_belongs_to_another_user_is_refused_and_left_as_it_is";
    if !geteuid().is_root() {
        return skipped(test, "it takes root to make files of another user");
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    for (name, owner) in [("strangers", 12345), ("roots", 0), ("own", NOBODY), ("sticky", 0)] {
        fs::create_dir(at(name)).unwrap();
        chown(at(name), Some(owner), Some(owner)).unwrap();
        fs::set_permissions(at(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(at("sticky"), PermissionsExt::from_mode(0o1777)).unwrap();
    for (link, owner) in [("strangers-link", 12345), ("roots-link", 0)] {
        symlink(at("own"), at(link)).unwrap();
        lchown(at(link), Some(owner), Some(owner)).unwrap();
    }
    // A socket of a stranger in a folder that everybody may write to, alive but closed to us, and a lock of theirs.
    let strangers = UnixListener::bind(at("sticky/closed")).unwrap();
    chown(at("sticky/closed"), Some(12345), Some(12345)).unwrap();
    fs::set_permissions(at("sticky/closed"), PermissionsExt::from_mode(0o600)).unwrap();
    fs::write(at("sticky/locked.lock"), "").unwrap();
    chown(at("sticky/locked.lock"), Some(12345), Some(12345)).unwrap();
    let inode = at("sticky/closed").symlink_metadata().unwrap().ino();
    must_pass(as_ordinary_user("strangers::among_strangers", folder.path()));
    assert_eq!(at("sticky/closed").symlink_metadata().unwrap().ino(), inode);
    drop(strangers);
}

#[tokio::test]
#[ignore = "a part that another test starts"]
async fn among_strangers() {
    let at = |name: &str| given().join(name);
    let error = bind(&at("strangers/s")).unwrap_err();
    let BindError::UnsafeFolder { path, why: FolderFault::Strangers(12345) } = &error else { panic!("{error}") };
    assert_eq!(path, &at("strangers"));
    assert!(error.to_string().contains("--allow-uid 12345"), "{error}");
    assert!(matches!(bind(&at("roots/s")), Err(BindError::Lock { .. })), "it may not write there");
    assert!(bind(&at("own/s")).is_ok());
    assert!(bind(&at("roots-link/s")).is_ok(), "as /var/run is one");
    let error = bind(&at("strangers-link/s")).unwrap_err();
    assert!(matches!(error, BindError::UnsafeFolder { why: FolderFault::Link(12345), .. }), "{error}");
    assert!(bind(&at("sticky/s")).is_ok());
    assert!(bind(&at("sticky/closed")).is_err(), "it cannot be asked whether somebody answers there");
    assert!(matches!(bind(&at("sticky/locked")), Err(BindError::Lock { .. })), "the lock is not ours");
}

#[tokio::test]
async fn the_folder_of_a_user_who_is_named_will_do() {
    if !geteuid().is_root() {
        return skipped("the_folder_of_a_user_who_is_named_will_do", "it takes root to make files of another user");
    }
    let folder = folder();
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let path = folder.path().join("s");
    let error = bind(&path).unwrap_err().to_string();
    assert!(error.contains("uid 65534") && error.contains("--allow-uid 65534"), "{error}");
    let named = |owner, allowed: &[u32]| {
        let allowed_uids = Some(BTreeSet::from_iter(allowed.iter().copied()));
        bind_with(&path, Access { mode: 0o600, owner, allowed_uids })
    };
    assert!(named(Some(12345), &[12346]).is_err());
    for (owner, allowed) in [(None, &[NOBODY][..]), (Some(NOBODY), &[])] {
        let listener = named(owner, allowed).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        listener.accept(|_, _| {}).await.unwrap();
        drop((listener, client));
        assert!(names(folder.path()).is_empty());
    }
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o770)).unwrap();
    assert!(named(None, &[NOBODY]).unwrap_err().to_string().contains("mode 0770"));
}

#[test]
fn what_the_folder_s_owner_puts_in_our_way_is_left_as_it_is() {
    let folder = folder();
    must_pass(part("strangers::names_that_are_taken", folder.path()));
}

#[tokio::test]
#[ignore = "a part that another test starts"]
async fn names_that_are_taken() {
    let at = |name: &str| given().join(name);
    fs::create_dir(at("target")).unwrap();
    fs::set_permissions(at("target"), PermissionsExt::from_mode(0o755)).unwrap();
    // What this process calls the folder that it makes a socket in.
    let aside = |n: u32| at(&format!(".fb{}-{n}", std::process::id()));
    symlink(at("target"), aside(0)).unwrap();
    symlink(at("nothing"), aside(1)).unwrap();
    fs::write(aside(2), "").unwrap();
    fs::create_dir(aside(3)).unwrap();
    let listener = bind(&at("s")).unwrap();
    let client = UnixStream::connect(at("s")).unwrap();
    listener.accept(|_, _| {}).await.unwrap();
    assert_eq!((mode(&at("target")), mode(&at("s"))), (0o755, 0o600));
    assert!(aside(2).is_file() && aside(3).is_dir() && !aside(4).exists() && !at("nothing").exists());
    drop((listener, client));
}
