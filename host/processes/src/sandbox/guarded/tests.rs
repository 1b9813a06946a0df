//! Folders as git, editors and hostile commands leave them.

use std::os::unix::fs::symlink;

use super::*;

#[test]
fn hooks_are_found_in_submodules_and_where_settings_name_them() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().canonicalize().unwrap();
    let module = tree.join(".git/modules/deep/one");
    fs::create_dir_all(module.join("objects")).unwrap();
    fs::create_dir_all(tree.join("my-hooks")).unwrap();
    fs::write(module.join("HEAD"), "").unwrap();
    fs::write(module.join("config"), "[core]\n\tworktree = ../../../../node_modules/a/b/c/d/e\n").unwrap();
    fs::create_dir_all(tree.join("node_modules/a/b/c/d/e")).unwrap();
    fs::write(tree.join("node_modules/a/b/c/d/e/.git"), "gitdir: ../../../../../../.git/modules/deep/one\n").unwrap();
    for name in ["page", "fetch"] {
        fs::write(tree.join(name), "").unwrap();
    }
    let commands = "[pager]\n\tlog = ./page\n[remote \"o\"]\n\tuploadPack = ./fetch\n";
    fs::write(
        tree.join(".git/config"),
        commands.to_owned() + "[core]\n\thooksPath = my-hooks\n[include]\n\tpath = ../shared\n",
    )
    .unwrap();
    fs::write(tree.join("shared"), "").unwrap();
    let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let found: Vec<PathBuf> = guarded(&tree).paths.into_iter().map(real).collect();
    for path in [
        ".git/config",
        ".git/hooks",
        ".git/modules/deep/one/hooks",
        "node_modules/a/b/c/d/e/.git",
        "my-hooks",
        "shared",
        "page",
        "fetch",
        ".vscode",
    ] {
        assert!(found.contains(&tree.join(path)), "{path}");
    }
    assert!(!found.contains(&tree.join(".git")));
}

#[test]
fn what_names_the_repository_of_a_work_tree_of_jj_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().canonicalize().unwrap();
    let repo = tree.join(".jj/repo");
    assert!(guarded(&tree).paths.contains(&repo), "it is not there, and would be obeyed");
    fs::create_dir_all(&repo).unwrap();
    assert!(!guarded(&tree).paths.contains(&repo), "the repository itself is worked in");
    fs::remove_dir(&repo).unwrap();
    fs::write(&repo, "../../other/.jj/repo").unwrap();
    assert!(guarded(&tree).paths.contains(&repo));
}

#[test]
fn hooks_and_settings_are_found_from_each_work_tree_and_through_all_that_settings_include() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().canonicalize().unwrap();
    let writes = |name: &str, text: &str| {
        fs::create_dir_all(tree.join(name).parent().unwrap()).unwrap();
        fs::write(tree.join(name), text).unwrap();
    };
    // A work tree of its own, a submodule, and one whose folder of git is elsewhere.
    for git in [".git", ".git/modules/mod", "apart"] {
        writes(&format!("{git}/HEAD"), "");
        fs::create_dir_all(tree.join(git).join("objects")).unwrap();
    }
    writes(".git/config", "[core]hooksPath=tools/hk\n[include]path = ../conf/a");
    writes(".git/config.worktree", "[core]\nhooksPath = only\n");
    writes("conf/a", "[include]\npath = b\n");
    writes(".git/worktrees/wt/gitdir", &format!("{}\n", tree.join("wt/.git").display()));
    writes(".git/worktrees/wt/commondir", "../..\n");
    writes(".git/modules/mod/config", "[core]\nworktree = ../../../mod\nhooksPath = hk\n");
    writes("sep/.git", "gitdir: ../apart\n");
    writes("apart/config", "[core]hooksPath = mine\n[include]path = ../shared\n");
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    for name in ["conf/b", "shared"] {
        writes(name, "");
    }
    let found: Vec<PathBuf> = guarded(&tree).paths.iter().map(real).collect();
    for path in
        ["tools/hk", "wt/tools/hk", "only", "conf/a", "conf/b", "sep/mine", "shared", "apart/config", "apart/hooks"]
    {
        assert!(found.contains(&tree.join(path)), "{path}");
    }
    fs::create_dir_all(tree.join("mod/hk")).unwrap();
    let all = guarded(&tree).paths;
    assert!(all.iter().map(real).any(|path| path == tree.join("mod/hk")));
    assert!(!all.iter().any(|path| path.starts_with(tree.join(".git/worktrees/wt/.."))));
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "each is named once");
}

#[test]
fn a_pipe_in_place_of_git_s_settings_holds_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    let git = folder.path().canonicalize().unwrap().join(".git");
    fs::create_dir(&git).unwrap();
    nix::unistd::mkfifo(&git.join("config"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(guarded(folder.path()).paths.iter().any(|path| path.ends_with(".git/config")));
}

#[test]
fn repositories_and_settings_of_editors_further_down_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().canonicalize().unwrap();
    for name in ["one/.git", "a/b/two/.git", "a/b/two/.claude", "part/.vscode", "part/.husky", "plain"] {
        fs::create_dir_all(tree.join(name)).unwrap();
    }
    for name in ["node_modules/x/.git", "a/b/c/d/e/.git"] {
        fs::create_dir_all(tree.join(name)).unwrap();
    }
    fs::create_dir(tree.join("linked")).unwrap();
    fs::write(tree.join("linked/.git"), "gitdir: ../one/.git/worktrees/linked\n").unwrap();
    let found = guarded(&tree);
    assert!(!found.is_cut);
    for path in
        ["one/.git/config", "one/.envrc", "a/b/two/.git/hooks", "a/b/two/.claude", "part/.vscode", "linked/.git"]
    {
        assert!(found.paths.contains(&tree.join(path)), "{path}");
    }
    for path in ["part/.husky", "plain/.vscode", "node_modules/x/.git/config", "a/b/c/d/e/.git/config"] {
        assert!(!found.paths.contains(&tree.join(path)), "{path}");
    }
    (0..=MAX_NESTED).for_each(|number| fs::create_dir_all(tree.join(format!("many/{number}/.git"))).unwrap());
    assert!(guarded(&tree).is_cut);
}

#[test]
fn links_in_what_is_guarded_are_found_and_files_that_have_other_names() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().canonicalize().unwrap();
    for name in [".git/objects", ".git/hooks", "src/deep", "skills/one", ".claude", ".vscode"] {
        fs::create_dir_all(tree.join(name)).unwrap();
    }
    for name in [".git/HEAD", "src/hook", "src/deep/skill", "src/other"] {
        fs::write(tree.join(name), "").unwrap();
    }
    for (link, to) in [
        (".git/hooks/pre-commit", "../../src/hook"),
        (".claude/skills", "../skills"),
        ("skills/one/skill", "../../src/deep/skill"),
        (".vscode/all", ".."),
        (".vscode/later", "../missing"),
        ("src/free", "other"),
    ] {
        symlink(to, tree.join(link)).unwrap();
    }
    fs::hard_link(tree.join("src/other"), tree.join(".vscode/tasks.json")).unwrap();
    fs::hard_link(tree.join("src/other"), tree.join(".envrc")).unwrap();
    let found = guarded(&tree);
    for path in [".git/hooks/pre-commit", ".claude/skills", ".claude/skills/one/skill", ".vscode/later"] {
        assert!(found.paths.contains(&tree.join(path)), "{path}");
    }
    for path in [".vscode/all", ".vscode/all/src/free", "src/free"] {
        assert!(!found.paths.contains(&tree.join(path)), "{path}");
    }
    assert_eq!(found.linked, [".vscode/tasks.json", ".envrc"].map(|name| tree.join(name)));
    assert!(!found.is_cut);
}

#[test]
fn all_that_git_takes_for_a_repository_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().canonicalize().unwrap();
    for name in ["main/objects", "parted", "linked", "own/.git", "plain/objects"] {
        fs::create_dir_all(tree.join(name)).unwrap();
    }
    fs::write(tree.join("parted/HEAD"), "").unwrap();
    fs::write(tree.join("parted/commondir"), "../main\n").unwrap();
    fs::write(tree.join("own/.git/commondir"), "../../main\n").unwrap();
    symlink("refs/heads/main", tree.join("linked/HEAD")).unwrap();
    symlink("../main/objects", tree.join("linked/objects")).unwrap();
    let found = guarded(&tree).paths;
    for path in ["parted/config", "parted/../main/config", "linked/config", "own/.git/../../main/config"] {
        assert!(found.contains(&tree.join(path)), "{path}");
    }
    assert!(!found.contains(&tree.join("plain/config")));
}

#[test]
fn what_an_earlier_command_filled_is_looked_at_in_part_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().canonicalize().unwrap();
    fs::create_dir_all(tree.join("one/.git/objects")).unwrap();
    for number in 0..100 {
        let work_tree = tree.join(format!("one/.git/worktrees/{number}"));
        fs::create_dir_all(&work_tree).unwrap();
        fs::write(work_tree.join("gitdir"), format!("/missing/{number}/.git\n")).unwrap();
    }
    let hooks: String = (0..900).map(|number| format!("hooksPath = h{number}\n")).collect();
    fs::write(tree.join("one/.git/config"), format!("[core]\n{hooks}")).unwrap();
    let found = guarded(&tree);
    assert!(found.is_cut && found.paths.len() <= MAX_NAMES);
    fs::remove_file(tree.join("one/.git/config")).unwrap();
    assert!(!guarded(&tree).is_cut);
    fs::create_dir(tree.join(".vscode")).unwrap();
    (0..=MAX_IN_FOLDER).for_each(|number| fs::write(tree.join(format!(".vscode/{number}")), "").unwrap());
    assert!(guarded(&tree).is_cut);
}

/// A path that takes long to follow costs its own time, and not that of all others as well.
#[test]
fn what_takes_long_to_follow_is_looked_at_for_a_while_and_that_is_said() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir_all(at("sub/.git/objects")).unwrap();
    fs::write(at("sub/.git/HEAD"), "").unwrap();
    let mut search = Search { until: Instant::now(), ..Search::default() };
    search.add_all_in(&at("sub"));
    search.add_inner(place.path());
    assert!(search.found.is_cut && search.found.paths.is_empty() && search.gits.is_empty());
}

#[test]
fn hooks_that_are_named_again_and_again_and_work_trees_too_are_looked_at_once() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir_all(at("tree")).unwrap();
    fs::create_dir_all(at(".git/objects")).unwrap();
    fs::write(at(".git/HEAD"), "").unwrap();
    fs::write(at(".git/config"), format!("[core]\n{}", "hooksPath=d\n".repeat(900))).unwrap();
    for number in 0..100 {
        fs::create_dir_all(at(&format!(".git/worktrees/{number}"))).unwrap();
        fs::write(at(&format!(".git/worktrees/{number}/gitdir")), at("tree/.git").to_str().unwrap()).unwrap();
    }
    let found = guarded(place.path());
    assert!(!found.is_cut, "90,000 names, of which two differ");
    assert!(found.paths.contains(&at("tree/d")) && found.paths.contains(&at("d")));
}

/// What the repository that is worked in obeys is found first, whatever an earlier command made beside it.
#[test]
fn work_trees_and_folders_of_editors_that_a_command_made_take_no_place_of_the_repository_s_own() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().canonicalize().unwrap().join(name);
    for folder in [".git/objects", ".git/hooks", ".own", "scripts"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    fs::write(at(".git/HEAD"), "").unwrap();
    let words: String = (0..20).map(|number| format!("editor = e{number}\n")).collect();
    fs::write(at(".git/config"), format!("[core]\nhooksPath = .own\n{words}")).unwrap();
    fs::write(at("scripts/commit"), "").unwrap();
    symlink("../../scripts/commit", at(".git/hooks/pre-commit")).unwrap();
    symlink("../scripts/push", at(".own/pre-push")).unwrap();
    for number in 0..3_000 {
        let work_tree = at(&format!(".git/worktrees/{number}"));
        fs::create_dir_all(&work_tree).unwrap();
        fs::write(work_tree.join("gitdir"), format!("/missing/{number}/.git\n")).unwrap();
    }
    for name in GUARDED.iter().take(60).filter(|name| !name.contains('/')) {
        fs::create_dir_all(at(name)).unwrap();
        (0..MAX_IN_FOLDER).for_each(|number| fs::write(at(name).join(number.to_string()), "").unwrap());
    }
    let found = guarded(&at(""));
    assert!(found.is_cut);
    for name in [".own", ".git/hooks/pre-commit", ".own/pre-push"] {
        assert!(found.paths.contains(&at(name)), "{name}");
    }
}

#[test]
fn repositories_of_other_tools_and_projects_of_editors_are_found_further_down() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    for folder in ["a/.hg", "b/c/.jj/repo", "d/.sl", "e"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    for name in ["one.code-workspace", "a/two.sublime-project", "e/three.code-workspace"] {
        fs::write(at(name), "{}").unwrap();
    }
    let found = guarded(place.path());
    for name in
        ["a/.hg/hgrc", "b/c/.jj/repo/config.toml", "d/.sl/config", "one.code-workspace", "a/two.sublime-project"]
    {
        assert!(found.paths.contains(&at(name)), "{name}");
    }
    assert!(!found.paths.contains(&at("e/three.code-workspace")), "nobody opens that folder as a project");
}

#[test]
fn so_many_links_are_followed_and_no_more_since_each_is_a_mount() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir_all(at("t")).unwrap();
    for name in [".vscode", ".idea", ".zed"] {
        fs::create_dir_all(at(name)).unwrap();
        for number in 0..MAX_IN_FOLDER - 1 {
            symlink(format!("../t/{name}{number}"), at(name).join(number.to_string())).unwrap();
        }
    }
    let found = guarded(place.path());
    let links = found.paths.iter().filter(|path| path.is_symlink()).count();
    assert!(found.is_cut && links == MAX_LINKS, "{links}");
}

#[test]
fn links_of_work_trees_and_projects_that_a_command_made_take_no_place_either() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().canonicalize().unwrap().join(name);
    for folder in [".git/objects", ".vscode", "tools"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    fs::write(at(".git/HEAD"), "").unwrap();
    fs::write(at("tools/tasks.json"), "").unwrap();
    symlink("../tools/tasks.json", at(".vscode/tasks.json")).unwrap();
    for tree in ["a", "b", "c"] {
        let hooks = at(&format!(".git/worktrees/{tree}/hooks"));
        fs::create_dir_all(&hooks).unwrap();
        fs::write(hooks.with_file_name("gitdir"), "/missing/.git\n").unwrap();
        (0..MAX_IN_FOLDER - 1).for_each(|number| symlink("/x", hooks.join(number.to_string())).unwrap());
    }
    (0..=MAX_PROJECTS).for_each(|number| fs::write(at(&format!("{number}.code-workspace")), "").unwrap());
    let found = guarded(&at(""));
    assert!(found.is_cut);
    for name in [".vscode/tasks.json", ".git/config", ".git/hooks"] {
        assert!(found.paths.contains(&at(name)), "{name}");
    }
    let projects = found.paths.iter().filter(|path| is_project(path)).count();
    assert_eq!(projects, MAX_PROJECTS);
}
