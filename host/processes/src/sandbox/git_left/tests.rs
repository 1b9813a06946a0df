//! Folders of git as a command may leave them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use std::path::Path;

use super::super::guarded::git_folders;
use super::*;

/// An index of version 2 with one entry.
fn index_of(path: &str) -> Vec<u8> {
    let mut all =
        [b"DIRC".as_slice(), &[0, 0, 0, 2, 0, 0, 0, 1], &[0; 60], &(path.len() as u16).to_be_bytes()].concat();
    all.extend(path.as_bytes());
    all.extend(vec![0; 8 - (all.len() - 12) % 8]);
    all.extend([1; 20]);
    all
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.writes("w/.git/HEAD", b"");
        fs::create_dir_all(place.at("w/.git/objects")).unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn writes(&self, name: &str, bytes: &[u8]) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), bytes).unwrap();
    }

    fn looks(&self) -> GitLeft {
        let held = HeldFolder::hold(&self.at("w")).unwrap();
        GitLeft::look(&[held], git_folders(&self.at("w")))
    }

    /// What was set aside, from the folder of work.
    fn set_aside(&self) -> Vec<PathBuf> {
        let left = self.looks();
        assert!(left.is_whole);
        let mut all: Vec<PathBuf> = left
            .forged
            .into_iter()
            .map(|file| {
                let ForgedFate::SetAside(name) = &file.fate else { panic!("{file:?}") };
                assert!(
                    !file.path.exists()
                        && !file.path.is_symlink()
                        && name.starts_with(file.path.file_name().unwrap().to_str().unwrap())
                );
                assert!(file.path.with_file_name(name).symlink_metadata().is_ok());
                file.path.strip_prefix(self.at("w")).unwrap().to_owned()
            })
            .collect();
        all.sort();
        all
    }
}

#[test]
fn forged_files_of_each_repository_work_tree_and_submodule_are_set_aside_and_others_stay() {
    let place = Place::new();
    let name = "0123456789abcdef0123456789abcdef01234567";
    let git = ["w/.git/worktrees/wt", "w/.git/modules/a/b", "w/deep/er/one/.git", "w/fine/.git"];
    for git in git {
        place.writes(&format!("{git}/HEAD"), b"");
        fs::create_dir_all(place.at(git).join("objects")).unwrap();
        place.writes(&format!("{git}/index"), &index_of("../x"));
    }
    place.writes("w/.git/worktrees/wt/gitdir", format!("{}\n", place.at("w/wt/.git").display()).as_bytes());
    place.writes("w/.git/worktrees/wt/commondir", b"../..\n");
    place.writes("w/.git/index", &index_of(".git/config"));
    place.writes("w/.git/MERGE_RR", format!("{name}\t/etc/passwd\0").as_bytes());
    place.writes("w/fine/.git/index", &index_of("x"));
    place.writes("w/fine/.git/MERGE_RR", format!("{name}\tf\0").as_bytes());
    place.writes("w/fine/.git/rr-cache/x/preimage", b"");
    // What is elsewhere is nothing that the command wrote.
    place.writes("out/.git/HEAD", b"");
    fs::create_dir_all(place.at("out/.git/objects")).unwrap();
    place.writes("out/.git/index", &index_of("../x"));
    symlink("../../out/.git", place.at("w/deep/.git")).unwrap();
    let all =
        [".git/MERGE_RR", ".git/index", ".git/modules/a/b/index", ".git/worktrees/wt/index", "deep/er/one/.git/index"];
    assert_eq!(place.set_aside(), all.map(PathBuf::from));
    assert!(place.set_aside().is_empty(), "once");
    assert_eq!(place.looks().resolutions, BTreeSet::from([place.at("w/fine/.git/rr-cache")]));
}

#[test]
fn what_an_index_goes_on_is_looked_at_with_it() {
    let place = Place::new();
    let mut split = index_of("f");
    let sum = split.split_off(split.len() - 20);
    split.extend([b"link".as_slice(), &20_u32.to_be_bytes(), &[0xab; 20], &sum].concat());
    let shared = format!("sharedindex.{}", "ab".repeat(20));
    place.writes("w/.git/index", &split);
    assert!(place.set_aside().is_empty(), "it is missing");
    place.writes(&format!("w/.git/{shared}"), &index_of("g"));
    assert!(place.set_aside().is_empty());
    place.writes(&format!("w/.git/{shared}"), &index_of("/g"));
    assert_eq!(place.set_aside(), [PathBuf::from(".git/index"), Path::new(".git").join(shared)]);
}

#[test]
fn links_and_pipes_are_set_aside_themselves_and_hold_nothing_up() {
    let place = Place::new();
    place.writes("out", &index_of("../x"));
    symlink("../../out", place.at("w/.git/index")).unwrap();
    nix::unistd::mkfifo(&place.at("w/.git/MERGE_RR"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(place.set_aside(), [".git/MERGE_RR", ".git/index"].map(PathBuf::from));
    assert!(place.at("out").exists());
}

#[test]
fn what_another_version_of_git_may_have_written_stays_and_is_named() {
    let place = Place::new();
    let mut newer = index_of("f");
    newer[7] = 9;
    place.writes("w/.git/index", &newer);
    let left = place.looks();
    assert!(
        matches!(&left.forged[..], [ForgedFile { fate: ForgedFate::Stays(None), why, .. }] if why.contains("version 9"))
    );
    assert!(place.at("w/.git/index").exists());
}

#[test]
fn how_long_names_of_objects_are_is_what_the_repository_s_settings_say() {
    let place = Place::new();
    let mut long = index_of("f");
    long.splice(12 + 40..12 + 40, [0; 12]);
    long.splice(12 + 75..12 + 75, [0; 4]);
    long.extend([1; 12]);
    place.writes("w/.git/index", &long);
    place.writes("w/.git/config", b"[core]\nrepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n");
    assert!(place.set_aside().is_empty());
    place.writes("w/.git/config", b"");
    assert_eq!(place.set_aside(), [PathBuf::from(".git/index")]);
}

#[test]
fn a_folder_of_git_that_cannot_be_listed_hides_nothing_from_the_look() {
    let place = Place::new();
    place.writes("w/.git/index", &index_of("../x"));
    let mode = |mode| fs::set_permissions(place.at("w/.git"), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o300);
    assert_eq!(place.set_aside(), [PathBuf::from(".git/index")]);
    mode(0o700);
}

#[test]
fn what_only_looks_like_a_repository_is_named_and_stays_as_it_is() {
    let place = Place::new();
    for name in ["w/samples/one.git", "w/apart"] {
        place.writes(&format!("{name}/HEAD"), b"");
        place.writes(&format!("{name}/index"), &index_of("../x"));
        fs::create_dir_all(place.at(name).join("objects")).unwrap();
    }
    place.writes("w/tree/.git", b"gitdir: ../apart\n");
    place.writes("w/samples/text/HEAD", b"");
    place.writes("w/samples/text/index", b"words");
    let left = place.looks();
    let stays = |file: &ForgedFile| matches!(file.fate, ForgedFate::Stays(None));
    let (sample, apart): (Vec<_>, Vec<_>) = left.forged.into_iter().partition(stays);
    assert_eq!(sample.iter().map(|file| &file.path).collect::<Vec<_>>(), [&place.at("w/samples/one.git/index")]);
    assert_eq!(apart.iter().map(|file| &file.path).collect::<Vec<_>>(), [&place.at("w/apart/index")]);
}

#[test]
fn conflicts_of_a_work_tree_that_is_not_known_are_named_and_stay() {
    let place = Place::new();
    let git = "w/1/2/3/4/5/6/.git/modules/sub";
    for file in ["HEAD", "objects/x", "MERGE_RR"] {
        place.writes(&format!("{git}/{file}"), b"0123456789abcdef0123456789abcdef01234567\tf\0");
    }
    let held = [HeldFolder::hold(&place.at("w")).unwrap()];
    let folder = GitFolder { folder: place.at(git), tree: None };
    let left = GitLeft::look(&held, vec![folder]);
    assert!(matches!(left.forged.as_slice(), [ForgedFile { fate: ForgedFate::Stays(None), .. }]), "{left:?}");
    assert!(place.at(git).join("MERGE_RR").exists());
}
