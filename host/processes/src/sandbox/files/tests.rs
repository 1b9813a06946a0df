//! Plans over folders that are really there.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

/// A folder of this test, outside of what is private: its steps, each as a letter and the path below the folder.
struct Tree(tempfile::TempDir);

impl Tree {
    fn with(folders: &[&str], files: &[&str]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for folder in folders.iter().chain(&["session"]) {
            fs::create_dir_all(tree.path(folder)).unwrap();
        }
        for file in files {
            fs::write(tree.path(file), "x").unwrap();
        }
        tree
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn paths(&self, names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(|name| self.path(name)).collect()
    }

    fn view(&self, writable: &[&str]) -> View {
        View {
            writable: self.paths(writable),
            session: self.path("session"),
            empty: "/empty".into(),
            ..View::default()
        }
    }

    /// The steps below the folder but for the session's.
    fn steps(&self, view: &View) -> String {
        let plan = view.plan().unwrap();
        let below = plan.steps.iter().filter_map(|step| {
            let name = Path::new(&step.path).strip_prefix(self.path("").components().as_path()).ok()?.to_str()?;
            let letter = match step.access {
                FileAccess::Empty => 'e',
                FileAccess::EmptyFile => 'x',
                FileAccess::Private => 'p',
                FileAccess::Layer => 'l',
                FileAccess::ReadOnly => 'r',
                FileAccess::Writable => 'w',
                FileAccess::Link => 'k',
            };
            (name != "session").then(|| format!("{letter} {name}"))
        });
        below.collect::<Vec<_>>().join(", ")
    }
}

#[test]
fn the_deepest_step_decides_and_what_is_named_is_not_hidden() {
    let tree = Tree::with(&["home/.ssh", "home/.aws", "home/work"], &["home/.aws/config", "home/.netrc"]);
    let mut view = View { home: Some(tree.path("home")), ..tree.view(&["home/work"]) };
    view.hidden = tree.paths(&["home/.ssh", "home/.aws", "home/.netrc", "home/.missing"]);
    assert_eq!(tree.steps(&view), "l home, e home/.aws, x home/.netrc, e home/.ssh, w home/work");
    view.shown = tree.paths(&["home/.ssh", "home/.aws/config"]);
    let expected = "l home, e home/.aws, r home/.aws/config, x home/.netrc, r home/.ssh, w home/work";
    assert_eq!(tree.steps(&view), expected);
}

#[test]
fn what_others_obey_is_read_only_and_pinned_and_what_is_named_itself_is_not() {
    let tree = Tree::with(&["work/.git/objects", "work/.vscode"], &["work/.git/HEAD", "work/.git/config"]);
    let plan = "w work, w work/.git, r work/.git/config, r work/.git/hooks, r work/.vscode";
    assert_eq!(tree.steps(&tree.view(&["work"])), plan);
    assert!(tree.path("work/.git/hooks").is_dir(), "it is made, or the command could");
    let named = "w work, w work/.git, r work/.git/config, w work/.git/hooks, r work/.vscode";
    assert_eq!(tree.steps(&tree.view(&["work", "work/.git/hooks"])), named);
}

#[test]
fn a_configuration_shows_where_it_could_be_written_and_is_hidden_elsewhere() {
    let tree = Tree::with(&["work/conf"], &["work/conf/a.json", "b.json", "work/secret"]);
    let view = View {
        configurations: tree.paths(&["work/conf/a.json", "b.json"]),
        secrets: tree.paths(&["work/secret"]),
        ..tree.view(&["work"])
    };
    // The whole folder is private where it is in /tmp, so what lies above the work need not be hidden.
    let steps = tree.steps(&view);
    assert!(steps.ends_with("w work, w work/conf, r work/conf/a.json, x work/secret"), "{steps}");
    fs::write(tree.path("work/.mcp.json"), "x").unwrap();
    let view = View { configurations: tree.paths(&["work/.mcp.json"]), ..tree.view(&["work"]) };
    assert_eq!(tree.steps(&view), "w work, r work/.mcp.json");
}

#[test]
fn a_link_to_a_configuration_that_could_be_replaced_is_refused() {
    let tree = Tree::with(&["work", "real"], &["real/a.json"]);
    symlink("../real/a.json", tree.path("work/a.json")).unwrap();
    let view = View { configurations: tree.paths(&["work/a.json"]), ..tree.view(&["work"]) };
    let error = view.plan().unwrap_err().to_string();
    assert!(error.contains("work/a.json, which the command could replace"), "{error}");
    symlink("work/a.json", tree.path("outside.json")).unwrap();
    let view = View { configurations: tree.paths(&["outside.json"]), ..tree.view(&["work"]) };
    assert!(view.plan().is_err());
    let view = View { configurations: tree.paths(&["outside.json"]), ..tree.view(&["real"]) };
    assert!(view.plan().is_ok());
}

#[test]
fn the_harness_s_own_stays_hidden_whatever_is_named() {
    let tree = Tree::with(&["work/state/inner"], &["work/state/db"]);
    let view = View {
        own_folders: tree.paths(&["work/state", "work/a/new"]),
        shown: tree.paths(&["work/state/db"]),
        ..tree.view(&["work", "work/state/inner"])
    };
    assert_eq!(tree.steps(&view), "w work, w work/a, e work/a/new, e work/state");
}

#[test]
fn bound_sockets_are_covered_where_they_could_be_reached() {
    let tree = Tree::with(&["home", "work", "shown"], &["home/s", "work/s", "shown/s"]);
    let view = View {
        sockets: tree.paths(&["home/s", "work/s", "shown/s"]),
        home: Some(tree.path("home")),
        shown: tree.paths(&["shown"]),
        ..tree.view(&["work"])
    };
    assert_eq!(tree.steps(&view), "l home, r shown, x shown/s, w work, x work/s");
}

#[test]
fn a_folder_with_many_sockets_is_covered_whole_and_where_that_cannot_be_a_view_is_refused() {
    let many = |folder: &str, count: usize| (0..count).map(|at| format!("{folder}/{at:04}")).collect::<Vec<_>>();
    let names: Vec<String> = [many("work", 3), many("shown/many", FEW + 1), many("shown/few", 1)].concat();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let tree = Tree::with(&["work", "shown/many", "shown/few"], &names);
    let mut view = View { sockets: tree.paths(&names), shown: tree.paths(&["shown"]), ..tree.view(&["work"]) };
    let covered = "x work/0000, x work/0001, x work/0002";
    assert_eq!(tree.steps(&view), format!("r shown, x shown/few/0000, e shown/many, w work, {covered}"));
    view.shown.push(tree.path("shown/many"));
    assert_eq!(tree.steps(&view).matches("x shown/many/").count(), FEW + 1);
    let flood = many("work", MAX_COVERED);
    flood.iter().for_each(|name| fs::write(tree.path(name), "").unwrap());
    view.sockets.extend(flood.iter().map(|name| tree.path(name)));
    let refused = view.plan().unwrap_err().to_string();
    assert!(refused.contains(&format!("{MAX_COVERED} of them in {}: end", tree.path("work").display())), "{refused}");
}

#[test]
fn links_on_the_way_to_what_others_obey_cannot_be_replaced() {
    let tree =
        Tree::with(&["work/.git/objects", "work/shared", "real/hooks", "work/a"], &["work/.git/HEAD", "real/cfg"]);
    fs::create_dir(tree.path("work/.git/hooks")).unwrap();
    let include = format!("[include]\npath = {}\n", tree.path("real/../through/cfg").display());
    fs::write(tree.path("work/.git/config"), include).unwrap();
    for (link, to) in [
        ("work/.vscode", "shared"),
        ("through", "work/a/link"),
        ("work/a/link", "../../real"),
        ("work/.idea", "a/missing"),
        ("work/free", "shared"),
    ] {
        symlink(to, tree.path(link)).unwrap();
    }
    let held = "w work, w work/.git, r work/.git/config, r work/.git/hooks, k work/.idea, k work/.vscode, w work/a, \
                k work/a/link, r work/shared";
    assert_eq!(tree.steps(&tree.view(&["work"])), held);
    // Where nothing can hold them they are told.
    let view = View { mounts_before: MountsBefore::Refused, ..tree.view(&["work"]) };
    assert!(!tree.steps(&view).contains("k work"));
    let plan = view.plan().unwrap();
    assert_eq!(plan.appeared(), Vec::<PathBuf>::new());
    for link in ["work/.vscode", "work/a/link"] {
        fs::remove_file(tree.path(link)).unwrap();
        fs::create_dir(tree.path(link)).unwrap();
    }
    let mut told = plan.appeared();
    told.sort();
    assert_eq!(told, tree.paths(&["work/.vscode", "work/a/link"]));
}

#[test]
fn names_that_could_not_be_kept_are_told_once_they_are_there() {
    let tree = Tree::with(&["work/.idea"], &[]);
    symlink("later", tree.path("work/.vscode")).unwrap();
    let plan = tree.view(&["work"]).plan().unwrap();
    assert_eq!(plan.appeared(), Vec::<PathBuf>::new());
    fs::create_dir(tree.path("work/later")).unwrap();
    fs::write(tree.path("work/.envrc"), "x").unwrap();
    assert_eq!(plan.appeared(), tree.paths(&["work/.vscode", "work/.envrc"]));
}

#[test]
fn what_git_goes_on_with_stays_the_command_s_and_is_told_where_it_was_written_or_is_new() {
    let tree = Tree::with(&["work/.git/objects", "work/.git/rebase-merge", "other"], &["work/.git/HEAD"]);
    let todo = tree.path("work/.git/rebase-merge/git-rebase-todo");
    fs::write(&todo, "pick 1\n").unwrap();
    let view = tree.view(&["work"]);
    assert!(!tree.steps(&view).contains("rebase"));
    let plan = view.plan().unwrap();
    assert_eq!(plan.appeared(), Vec::<PathBuf>::new());
    fs::create_dir(tree.path("work/.git/sequencer")).unwrap();
    fs::write(tree.path("work/.git/sequencer/opts"), "[options]\n").unwrap();
    fs::write(&todo, "exec x\n").unwrap();
    assert_eq!(plan.appeared(), [todo.clone(), tree.path("work/.git/sequencer/opts")]);
    fs::remove_dir_all(todo.parent().unwrap()).unwrap();
    assert_eq!(plan.appeared(), [tree.path("work/.git/sequencer/opts")], "it came to its end");
    // What the command cannot write is nothing to tell of.
    let git = format!("gitdir: {}\n", tree.path("work/.git").display());
    fs::write(tree.path("other/.git"), git).unwrap();
    let plan = tree.view(&["other"]).plan().unwrap();
    fs::write(tree.path("work/.git/sequencer/opts"), "").unwrap();
    assert_eq!(plan.appeared(), Vec::<PathBuf>::new());
}

#[test]
fn links_that_lead_nowhere_are_held_and_refuse_nothing() {
    let tree = Tree::with(&["work/.git/objects"], &["work/.git/HEAD"]);
    let long = "x".repeat(300);
    for (link, to) in [
        ("work/.git/hooks", "hooks"),
        ("work/.envrc", ".envrc"),
        ("work/.idea", "one"),
        ("work/one", ".idea"),
        ("work/.vscode", &long),
    ] {
        symlink(to, tree.path(link)).unwrap();
    }
    fs::write(tree.path("work/.git/config"), format!("[include]\npath = a\0b\npath = {long}\n")).unwrap();
    let held = "w work, k work/.envrc, w work/.git, r work/.git/config, k work/.git/hooks, k work/.idea, \
                k work/.vscode, k work/one";
    assert_eq!(tree.steps(&tree.view(&["work"])), held);
    fs::remove_dir_all(tree.path("work/.git")).unwrap();
    symlink(".git", tree.path("work/.git")).unwrap();
    assert!(tree.steps(&tree.view(&["work"])).contains("k work/.git, k work/.idea"));
}

#[test]
fn what_is_in_a_folder_that_this_user_cannot_look_into_is_kept_with_it() {
    if nix::unistd::geteuid().is_root() {
        return; // Nothing is closed to root.
    }
    let tree = Tree::with(&["work/.git/objects", "work/a/one/.git/objects"], &["work/.git/HEAD", "work/.git/config"]);
    fs::write(tree.path("work/a/one/.git/HEAD"), "").unwrap();
    for (mode, folder) in [(0o444, "work/a"), (0o000, "work/.git")] {
        fs::set_permissions(tree.path(folder), fs::Permissions::from_mode(mode)).unwrap();
    }
    assert_eq!(tree.steps(&tree.view(&["work"])), "w work, r work/.git, r work/a");
    for folder in ["work/a", "work/.git"] {
        fs::set_permissions(tree.path(folder), fs::Permissions::from_mode(0o755)).unwrap();
    }
}
