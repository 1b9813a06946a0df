//! Folders of git with links as commands may leave them.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::SystemTime;

use super::super::git_left::GitLeft;
use super::super::guarded::git_folders;
use super::super::new_links::NewLinks;
use super::*;

struct Place(tempfile::TempDir);

impl Place {
    /// With a repository in its folder of work, and something of its owner beside that.
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.has_git("w/.git");
        place.writes("home/mine", b"");
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn writes(&self, name: &str, bytes: &[u8]) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), bytes).unwrap();
    }

    fn has_git(&self, name: &str) {
        self.writes(&format!("{name}/HEAD"), b"");
        fs::create_dir_all(self.at(name).join("objects")).unwrap();
    }

    fn links(&self, name: &str, to: &str) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        symlink(to, self.at(name)).unwrap();
    }

    fn held(&self, name: &str) -> [HeldFolder; 1] {
        [HeldFolder::hold(&self.at(name)).unwrap()]
    }

    fn before(&self) -> GitLinksBefore {
        GitLinksBefore::of(&found(&self.held("w")).repositories)
    }

    /// Sets aside what is new there, and all that changed, if all of that is of now.
    fn sets_aside(&self, name: &str, before: &GitLinksBefore, since: SystemTime) -> GitLinksLeft {
        let held = self.held(name);
        let changed = NewLinks::look(&[self.at(name)], since, &[]).in_git;
        GitLinksAfter { held: &held, found: &found(&held), before }.set_aside(changed)
    }

    /// As where nothing is known of before, and what was set aside, each from where it is held.
    fn all_set_aside(&self, name: &str) -> Vec<PathBuf> {
        let left = self.sets_aside(name, &GitLinksBefore::default(), SystemTime::UNIX_EPOCH);
        assert!(!left.is_cut && left.more == 0);
        left.links.into_iter().map(|link| self.was_set_aside(link, name)).collect()
    }

    fn was_set_aside(&self, link: GitLink, name: &str) -> PathBuf {
        let GitLinkFate::SetAside(now) = &link.fate else { panic!("{link:?}") };
        assert!(!link.path.is_symlink() && now.read_link().unwrap() == link.to, "{link:?}");
        link.path.strip_prefix(self.at(name)).unwrap().to_owned()
    }
}

fn found(held: &[HeldFolder]) -> GitLeft {
    GitLeft::look(held, held.iter().flat_map(|held| git_folders(&held.now().unwrap())).collect())
}

#[test]
fn links_of_each_repository_work_tree_and_submodule_are_set_aside_wherever_they_lead() {
    let place = Place::new();
    let links = [
        (".git/COMMIT_EDITMSG", "config"),
        (".git/logs/HEAD", "../../../home/mine"),
        (".git/modules/a/b/logs/refs/heads/main", "/home"),
        (".git/objects/ab", "/home"),
        (".git/refs/heads/main", "../heads/other"),
        (".git/worktrees/wt/logs/HEAD", "../../../config"),
        (".git/worktrees/x", "/home"),
        ("bare.git/worktrees", "../home"),
        ("deep/er/.git/worktrees", "../../.."),
    ];
    place.has_git("w/.git/modules/a/b");
    place.has_git("w/deep/er/.git");
    place.has_git("w/bare.git");
    place.writes("w/tree/.git", b"gitdir: ../bare.git\n");
    links.iter().for_each(|(link, to)| place.links(&format!("w/{link}"), to));
    assert_eq!(place.all_set_aside("w"), links.map(|(link, _)| PathBuf::from(link)));
    assert!(place.all_set_aside("w").is_empty(), "once");
    // In others of its folders git would take them for work trees, refs and logs of its own.
    let is_aside = |name: &str| {
        let names = fs::read_dir(place.at(name)).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_str().unwrap().contains(".set-aside-")).count()
    };
    let counts = ["w/.git", "w/.git/worktrees", "w/.git/refs/heads", "w/deep/er/.git", "w/bare.git"].map(is_aside);
    assert_eq!(counts, [7, 0, 0, 1, 1]);
    assert!(place.at("home/mine").exists());
}

#[test]
fn links_of_before_stay_though_they_are_touched_and_others_in_their_places_do_not() {
    let place = Place::new();
    for (link, to) in [("objects/info", "/srv/info"), ("hooks", "../hooks"), ("logs/refs", "/srv/refs")] {
        place.links(&format!("w/.git/{link}"), to);
    }
    let before = place.before();
    let change = |name: &str| std::os::unix::fs::lchown(place.at(name), Some(nix::unistd::geteuid().as_raw()), None);
    change("w/.git/hooks").unwrap();
    fs::rename(place.at("w/.git/objects/info"), place.at("w/.git/worktrees")).unwrap();
    fs::remove_file(place.at("w/.git/logs/refs")).unwrap();
    place.links("w/.git/logs/refs", "/home");
    let left = place.sets_aside("w", &before, SystemTime::UNIX_EPOCH);
    let all: Vec<PathBuf> = left.links.into_iter().map(|link| place.was_set_aside(link, "w")).collect();
    assert_eq!(all, [".git/logs/refs", ".git/worktrees"].map(PathBuf::from));
    assert!(place.at("w/.git/hooks").is_symlink());
}

#[test]
fn what_was_moved_into_a_folder_of_git_is_set_aside_though_the_links_in_it_did_not_change() {
    let place = Place::new();
    place.links("w/innocent/heads/main", "../../../../home/mine");
    place.links("w/.git/info/of-before", "x");
    let before = place.before();
    fs::create_dir(place.at("w/.git/logs")).unwrap();
    fs::rename(place.at("w/innocent"), place.at("w/.git/logs/refs")).unwrap();
    let left = place.sets_aside("w", &before, SystemTime::now() + Duration::from_secs(60));
    let all: Vec<PathBuf> = left.links.into_iter().map(|link| place.was_set_aside(link, "w")).collect();
    assert_eq!(all, [PathBuf::from(".git/logs/refs/heads/main")]);
}

#[test]
fn names_of_refs_and_an_annex_stay_as_they_are_made_and_nothing_that_looks_like_one() {
    let place = Place::new();
    fs::remove_file(place.at("w/.git/HEAD")).unwrap();
    place.links("w/.git/HEAD", "refs/heads/main");
    place.links("w/.git/refs/remotes/o/HEAD", "refs/remotes/o/main");
    place.links("w/.git/worktrees/wt/annex", "../../annex");
    place.links("w/.git/annex/annex", "../../annex");
    place.links("w/.git/worktrees/other/annex", "../../../annex");
    place.links("w/.git/logs/refs/heads/main", "refs/heads/main");
    place.links("w/.git/ORIG_HEAD", "refs/heads/main");
    place.links("w/.git/refs/heads/a", "refs/../../../x");
    place.links("w/.git/refs/heads/b", "/refs/heads/main");
    let refs = [".git/logs/refs/heads/main", ".git/refs/heads/a", ".git/refs/heads/b"];
    let others = [&[".git/ORIG_HEAD", ".git/annex/annex"], &refs[..], &[".git/worktrees/other/annex"]].concat();
    assert_eq!(place.all_set_aside("w"), others.into_iter().map(PathBuf::from).collect::<Vec<_>>());
}

#[test]
fn in_what_only_looks_like_a_repository_links_are_named_and_stay() {
    let place = Place::new();
    place.has_git("w/samples/one.git");
    place.links("w/samples/one.git/worktrees", "/home");
    let left = place.sets_aside("w", &GitLinksBefore::default(), SystemTime::UNIX_EPOCH);
    let stays = |link: &GitLink| matches!(link.fate, GitLinkFate::Stays(None));
    assert!(left.links.len() == 1 && left.links.iter().all(stays), "{left:?}");
}

#[test]
fn where_only_a_part_of_a_folder_of_git_is_held_links_come_to_its_top() {
    let place = Place::new();
    place.has_git("w/.git/modules/sub");
    place.links("w/.git/modules/sub/logs/HEAD", "/home/x");
    assert_eq!(place.all_set_aside("w/.git/modules/sub"), [PathBuf::from("logs/HEAD")]);
    // Here git would take it for a work tree under any name.
    place.links("w/.git/worktrees/x", "/home");
    let left = place.sets_aside("w/.git/worktrees", &GitLinksBefore::default(), SystemTime::UNIX_EPOCH);
    assert!(matches!(left.links.as_slice(), [GitLink { fate: GitLinkFate::Stays(None), .. }]), "{left:?}");
}

#[test]
fn no_link_on_the_way_is_followed_and_what_is_no_link_any_more_stays() {
    let place = Place::new();
    place.links("elsewhere/HEAD", "x");
    place.links("w/.git/logs", "../../elsewhere");
    place.writes("w/.git/ORIG_HEAD", b"");
    let (held, found, before) = (place.held("w"), GitLeft::default(), GitLinksBefore::default());
    let after = GitLinksAfter { held: &held, found: &found, before: &before };
    let paths = ["w/.git/logs/HEAD", "w/.git/ORIG_HEAD", "w/.git/gone/x", "elsewhere/HEAD"].map(|name| place.at(name));
    let left = after.set_aside(paths.to_vec());
    assert!(matches!(left.links.as_slice(), [GitLink { fate: GitLinkFate::Stays(Some(_)), .. }]), "{left:?}");
    assert!(place.at("elsewhere/HEAD").is_symlink() && place.at("w/.git/ORIG_HEAD").exists());
}

#[test]
fn links_behind_one_in_the_place_of_a_folder_of_git_are_no_news() {
    let place = Place::new();
    let before = place.before();
    fs::rename(place.at("w/.git"), place.at("w/kept")).unwrap();
    place.links("elsewhere/HEAD", "x");
    place.links("w/.git", "../elsewhere");
    let left = place.sets_aside("w", &before, SystemTime::UNIX_EPOCH);
    assert!(left.links.is_empty() && place.at("elsewhere/HEAD").is_symlink(), "{left:?}");
}

#[test]
fn what_was_put_in_the_place_of_a_link_meanwhile_comes_back_there() {
    let place = Place::new();
    place.links("w/.git/logs/HEAD", "/home");
    let held = place.held("w");
    let opened = |name: &str| held[0].folder_below(Path::new(name)).unwrap();
    let (path, top_path) = (place.at("w/.git/logs"), place.at("w/.git"));
    let folder = LinkFolder { at: opened(".git/logs"), top: None, path: &path, top_path };
    let found = folder.link(OsStr::new("HEAD")).unwrap();
    fs::rename(place.at("w/.git/logs/HEAD"), place.at("w/.git/logs/kept")).unwrap();
    place.writes("w/.git/logs/HEAD", b"of git");
    assert!(folder.set_aside(OsStr::new("HEAD"), &found, &opened(".git")).is_err());
    assert_eq!(fs::read(place.at("w/.git/logs/HEAD")).unwrap(), b"of git");
    assert_eq!(fs::read_dir(place.at("w/.git")).unwrap().count(), 3, "nothing is left at the top");
}

#[test]
fn a_link_in_the_place_of_an_index_is_set_aside_once() {
    let place = Place::new();
    let before = place.before();
    place.has_git("w/.git/worktrees/wt");
    place.links("w/.git/worktrees/wt/index", "/home");
    assert!(place.sets_aside("w", &before, SystemTime::UNIX_EPOCH).links.is_empty());
    assert_eq!(fs::read_dir(place.at("w/.git")).unwrap().count(), 3, "it is beside its place");
}

#[test]
fn long_names_and_many_links_are_set_aside_like_others() {
    let place = Place::new();
    place.links(&format!("w/.git/{}", "n".repeat(255)), "/home");
    let wide = OsStr::from_bytes(b"\xff\xfe");
    symlink("/home", place.at("w/.git").join(wide)).unwrap();
    assert_eq!(place.all_set_aside("w").len(), 2);
    for number in 0..TOLD + 50 {
        place.links(&format!("w/.git/worktrees/{number}"), "/home");
    }
    let left = place.sets_aside("w", &GitLinksBefore::default(), SystemTime::UNIX_EPOCH);
    assert_eq!((left.links.len(), left.more, left.is_cut), (TOLD, 50, false));
    assert_eq!(fs::read_dir(place.at("w/.git/worktrees")).unwrap().count(), 0);
}
