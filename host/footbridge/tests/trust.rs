//! Whose configuration is read: only one that nobody but this user and root can change, and only secrets that nobody
//! else can read.
//!
//! Asked of the real program, as an ordinary user with files of other users around: as root the test becomes one.

#![expect(clippy::unwrap_used, reason = "a test says no more than that it failed, and where")]

#[path = "../../../tests/skipped.rs"]
mod skipped;

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, chown, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
};

use nix::unistd::geteuid;
use skipped::skipped;

const NOBODY: u32 = 65534;
const STRANGER: u32 = 12345;
const SERVERS: &str = r#"{"mcpServers":{"a":{"command":"x"}}}"#;

/// Files below a folder of root, read by an ordinary user.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// None where the test cannot become another user.
    fn for_test(test: &str) -> Option<Self> {
        if !geteuid().is_root() {
            skipped(test, "it takes root to make files of another user");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        Some(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A file, or a folder where there is no text.
    fn make(&self, name: &str, text: Option<&str>, (owner, group): (u32, u32), mode: u32) -> PathBuf {
        let path = self.path(name);
        match text {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::create_dir(&path).unwrap(),
        }
        chown(&path, Some(owner), Some(group)).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    }

    /// What `config check` says of a file as the ordinary user, and its status.
    fn check(&self, file: &Path) -> (i32, String) {
        // A copy that the ordinary user can reach, wherever the program was built.
        let program = self.path("footbridge");
        if !program.exists() {
            // By another process: a test that forks at this moment would hold it open for writing here.
            let mut copy = Command::new("install");
            copy.args(["-m", "0755", env!("CARGO_BIN_EXE_footbridge")]).arg(&program);
            assert!(copy.status().unwrap().success());
        }
        let mut command = Command::new(program);
        command.args(["config", "check", "--config"]).arg(file).env_clear().env("HOME", "/nonexistent");
        command.current_dir("/").uid(NOBODY).gid(NOBODY);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), text)
    }

    fn must_read(&self, file: &Path) {
        let (status, text) = self.check(file);
        assert_eq!(status, 0, "{}: {text}", file.display());
    }

    /// It is refused, and the file or folder to blame is named with what is wrong about it.
    fn must_refuse(&self, file: &Path, blamed: &Path, why: &str) {
        let (status, text) = self.check(file);
        assert_eq!(status, 2, "{}: {text}", file.display());
        assert!(text.contains(&format!("{} {why}", blamed.display())), "{}: {text}", file.display());
    }
}

#[test]
fn a_file_of_somebody_else_is_not_read() {
    let Some(place) = Place::for_test("a_file_of_somebody_else_is_not_read") else { return };
    let own = (NOBODY, NOBODY);
    for mode in [0o600, 0o644, 0o664, 0o400] {
        place.must_read(&place.make(&format!("own-{mode:o}.json"), Some(SERVERS), own, mode));
    }
    place.must_read(&place.make("roots.json", Some(SERVERS), (0, 0), 0o644));
    let strangers = place.make("strangers.json", Some(SERVERS), (STRANGER, NOBODY), 0o644);
    place.must_refuse(&strangers, &strangers, "belongs to uid 12345");
    let link = place.path("link.json");
    symlink(&strangers, &link).unwrap();
    place.must_refuse(&link, &strangers, "belongs to uid 12345");
}

#[test]
fn a_file_that_others_can_write_is_not_read() {
    let Some(place) = Place::for_test("a_file_that_others_can_write_is_not_read") else { return };
    for (owner, group, mode) in [
        (NOBODY, NOBODY, 0o606),
        (NOBODY, NOBODY, 0o666),
        (NOBODY, NOBODY, 0o602),
        (NOBODY, STRANGER, 0o660),
        (0, NOBODY, 0o664),
        (0, STRANGER, 0o664),
    ] {
        let file = place.make(&format!("{owner}-{group}-{mode:o}.json"), Some(SERVERS), (owner, group), mode);
        place.must_refuse(&file, &file, "can be written to by others");
    }
}

#[test]
fn a_file_or_folder_that_an_access_list_opens_is_not_read() {
    const NAME: &str = "system.posix_acl_access";
    let Some(place) = Place::for_test("a_file_or_folder_that_an_access_list_opens_is_not_read") else { return };
    // Version 2; then tag, permissions and id of each entry: the owner, a stranger, the group, the mask, the others.
    let list = |of_stranger: u16, mask: u16| {
        let entries =
            [(1, 6, u32::MAX), (2, of_stranger, STRANGER), (4, 0, u32::MAX), (16, mask, u32::MAX), (32, 0, u32::MAX)];
        let entry = |(tag, bits, id): &(u16, u16, u32)| {
            [&tag.to_le_bytes()[..], &bits.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        [2_u32.to_le_bytes().to_vec(), entries.iter().flat_map(entry).collect()].concat()
    };
    let set = |path: &Path, list: &[u8]| rustix::fs::setxattr(path, NAME, list, rustix::fs::XattrFlags::empty());
    let file = place.make("listed.json", Some(SERVERS), (NOBODY, NOBODY), 0o600);
    if let Err(error) = set(&file, &list(4, 4)) {
        return skipped("access lists of a configuration", format!("this file system has none: {error}"));
    }
    place.must_read(&file);
    set(&file, &list(6, 6)).unwrap();
    place.must_refuse(&file, &file, "has an access list");
    let folder = place.make("listed", None, (NOBODY, NOBODY), 0o700);
    let inside = place.make("listed/a.json", Some(SERVERS), (NOBODY, NOBODY), 0o600);
    set(&folder, &list(7, 7)).unwrap();
    place.must_refuse(&inside, &folder, "has an access list");
}

#[test]
fn every_folder_on_the_way_counts_and_a_sticky_one_will_do() {
    let Some(place) = Place::for_test("every_folder_on_the_way_counts_and_a_sticky_one_will_do") else { return };
    for (name, owner, mode, why) in
        [("open", NOBODY, 0o777, "can be written to by others"), ("strangers", STRANGER, 0o755, "belongs to uid 12345")]
    {
        let folder = place.make(name, None, (owner, owner), mode);
        let file = place.make(&format!("{name}/a.json"), Some(SERVERS), (NOBODY, NOBODY), 0o600);
        place.must_refuse(&file, &folder, why);
        place.make(&format!("{name}/deep"), None, (NOBODY, NOBODY), 0o700);
        let file = place.make(&format!("{name}/deep/a.json"), Some(SERVERS), (NOBODY, NOBODY), 0o600);
        place.must_refuse(&file, &folder, why);
        let link = place.path(&format!("{name}.json"));
        symlink(&file, &link).unwrap();
        place.must_refuse(&link, &folder, why);
    }
    place.make("sticky", None, (0, 0), 0o1777);
    place.must_read(&place.make("sticky/a.json", Some(SERVERS), (NOBODY, NOBODY), 0o600));
}

#[test]
fn a_link_that_a_stranger_can_point_elsewhere_is_not_followed() {
    let Some(place) = Place::for_test("a_link_that_a_stranger_can_point_elsewhere_is_not_followed") else { return };
    let good = place.make("good.json", Some(SERVERS), (NOBODY, NOBODY), 0o600);
    // The file is good. Who decides that it is this one, and not another good file of ours, is a stranger.
    let folder = place.make("strangers", None, (STRANGER, STRANGER), 0o755);
    let link = folder.join("a.json");
    symlink(&good, &link).unwrap();
    place.must_refuse(&link, &folder, "belongs to uid 12345");
    let sticky = place.make("sticky", None, (0, 0), 0o1777);
    let link = sticky.join("a.json");
    symlink(&good, &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(STRANGER), Some(STRANGER)).unwrap();
    place.must_refuse(&link, &link, "belongs to uid 12345");
}

#[test]
fn a_secret_that_others_can_read_is_not_used() {
    let Some(place) = Place::for_test("a_secret_that_others_can_read_is_not_used") else { return };
    let uses = |secret: &Path| {
        let text = serde_json::json!({"mcpServers": {"a": {"command": "x", "env": {"A": {"file": secret}}}}});
        let name = format!("{}.json", secret.file_name().unwrap().to_str().unwrap());
        place.make(&name, Some(&text.to_string()), (NOBODY, NOBODY), 0o600)
    };
    let own = (NOBODY, NOBODY);
    place.must_read(&uses(&place.make("own", Some("s3cret"), own, 0o600)));
    for mode in [0o604, 0o640, 0o644] {
        let secret = place.make(&format!("open-{mode:o}"), Some("s3cret"), own, mode);
        place.must_refuse(&uses(&secret), &secret, "can be read by others");
    }
    let strangers = place.make("theirs", Some("s3cret"), (STRANGER, NOBODY), 0o640);
    let (status, text) = place.check(&uses(&strangers));
    assert!(status == 2 && text.contains("belongs to uid 12345") && !text.contains("s3cret"), "{text}");
    let folder = place.make("open", None, own, 0o777);
    let inside = place.make("open/key", Some("s3cret"), own, 0o600);
    let (status, text) = place.check(&uses(&inside));
    assert!(status == 2 && text.contains(&format!("{} can be written to", folder.display())), "{text}");
}
