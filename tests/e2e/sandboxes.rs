//! The recipes of `docs/sandboxes.md`, run from its own text: a block whose fence says `sh recipe=NAME`, alone in a
//! folder with a `servers.json`, after the block that says `sh recipe-before=serve` if its name starts with `serve-`.

use std::{collections::BTreeMap, fs, os::unix::fs::symlink, path::Path, process::Command};

use footbridge_tests::{Engine, Host, Ran, Real, Running, Servers, programs, recipes, skipped};
use nix::sys::signal::Signal;

/// What `agent` recipes leave on the standard output: the listing of the demo server's tools.
const SIGN: &str = "get_weather";

/// The marked blocks, by what marks them.
fn of_the_documentation() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (mark, block) in recipes::of_page("docs/sandboxes.md") {
        assert_eq!(found.insert(mark.clone(), block), None, "two recipes {mark}");
    }
    found
}

/// A folder as the recipes take for granted, with programs that come first on the PATH.
fn place(before: &Path) -> Host {
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".into());
    let path = format!("{}:{}:{path}", before.display(), programs::folder().display());
    let host = Host::with(&Servers::demo()).env("PATH", path);
    fs::copy(host.servers_file(), host.work().join("servers.json")).unwrap();
    host
}

fn run(host: &Host, text: &str) -> Ran {
    Running::start(&mut host.shell_of(text)).ends()
}

fn does_what_it_says(name: &str, ran: &Ran) {
    assert!(ran.status == 0 && ran.stdout.contains(SIGN), "docs/sandboxes.md: {name}: {ran:?}");
}

/// Whether this works here; if not, says why the recipe is skipped.
fn works(recipe: &str, words: &[&str]) -> bool {
    let reason = match Command::new(words[0]).args(&words[1..]).current_dir("/").output() {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => format!("{}: {error}", words[0]),
    };
    skipped(&format!("recipe {recipe}"), &reason);
    false
}

/// What a recipe needs besides Footbridge; nothing if it cannot run here.
fn needs(name: &str, folder: &Path) -> Option<Option<Engine>> {
    let ready = match name.trim_start_matches("run-").trim_start_matches("serve-") {
        "none" | "net" => true,
        "unshare" => works(name, &["unshare", "-Urn", "ip", "link", "set", "lo", "up"]),
        "bwrap" => works(name, &["bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--unshare-all", "true"]),
        "compose" => {
            let compose = Real::server("recipe serve-compose", "podman-compose")?.program();
            programs::writes(
                &folder.join("podman-compose"),
                &format!("#!/bin/sh\nexec {} \"$@\"\n", compose.display()),
            );
            let engine = Engine::podman("recipe serve-compose")?;
            engine.shim(folder);
            return Some(Some(engine));
        }
        engine @ ("podman" | "docker") => {
            let of = if engine == "docker" { Engine::docker } else { Engine::podman };
            let engine = of(&format!("recipe {name}"))?;
            engine.shim(folder);
            return Some(Some(engine));
        }
        "nspawn" => {
            let root = folder.join("rootfs");
            root_file_system(&root);
            let root = format!("--directory={}", root.display());
            works(
                name,
                &["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--pipe", &root, "/bin/busybox", "true"],
            )
        }
        other => panic!("docs/sandboxes.md: no test knows what the recipe {other} needs"),
    };
    ready.then_some(None)
}

/// The least that systemd-nspawn takes for a system.
fn root_file_system(root: &Path) {
    for folder in ["bin", "etc", "usr", "run", "tmp", "proc", "sys", "dev", "root", "var"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join("etc/os-release"), "ID=test\n").unwrap();
    fs::write(root.join("etc/localtime"), "").unwrap();
    let _the_probe_says_so = fs::copy("/bin/busybox", root.join("bin/busybox"));
}

#[test]
fn recipes_with_run_do_what_they_say() {
    let all = of_the_documentation();
    let mine: Vec<_> = all.iter().filter(|(name, _)| name.starts_with("run-")).collect();
    let names: Vec<&str> = mine.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["run-bwrap", "run-docker", "run-net", "run-none", "run-podman"]);
    for (name, text) in mine {
        let folder = tempfile::tempdir().unwrap();
        let Some(engine) = needs(name, folder.path()) else { continue };
        does_what_it_says(name, &run(&place(folder.path()), text));
        if let Some(engine) = engine {
            engine.leaves_nothing_behind();
        }
    }
}

#[test]
fn recipes_with_a_session_do_what_they_say() {
    let all = of_the_documentation();
    let before = &all["before=serve"];
    let mine: Vec<_> = all.iter().filter(|(name, _)| name.starts_with("serve-")).collect();
    let names: Vec<&str> = mine.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["serve-bwrap", "serve-compose", "serve-docker", "serve-nspawn", "serve-podman", "serve-unshare"]
    );
    for (name, text) in mine {
        let folder = tempfile::tempdir().unwrap();
        let Some(engine) = needs(name, folder.path()) else { continue };
        let host = place(folder.path());
        symlink(folder.path().join("rootfs"), host.work().join("rootfs")).unwrap();
        fs::copy(programs::repository().join("docs/compose.yaml"), host.work().join("compose.yaml")).unwrap();
        let config = host.servers_file();
        let mut daemon =
            Running::start(&mut host.footbridge(&["serve".as_ref(), "--config".as_ref(), config.as_ref()]));
        daemon.stderr.shows("ready");
        does_what_it_says(name, &run(&host, &format!("{before}{text}")));
        daemon.signal(Signal::SIGTERM);
        assert_eq!(daemon.status().code(), Some(0));
        drop(engine);
    }
}

#[test]
fn the_development_container_is_json_and_isolated() {
    let text = fs::read_to_string(programs::repository().join("docs/devcontainer.json")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["runArgs"][0], "--network=none");
    let mounts = value["mounts"].as_array().unwrap();
    assert!(mounts.iter().all(|mount| mount.as_str().unwrap().ends_with(",readonly")), "{mounts:?}");
    assert!(!text.contains("TOOL_CLI_TOKEN\""), "a value there would show in an argument");
}
