//! What a guest writes in its folder is neither run nor obeyed outside: no module, script, program or folder of a server,
//! nothing on a PATH, no command of the operator, no configuration and no link on the way to one.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use footbridge_tests::{Host, NOBODY, Servers, programs, sandboxes, skipped};
use nix::unistd::geteuid;
use serde_json::{Value, json};

/// An MCP server with one tool, which says where it runs and what is there. It imports what it needs, as servers do.
const SERVER: &str = r"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    method = message.get('method')
    if method == 'initialize':
        result = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 's', 'version': '1'}}
    elif method == 'tools/list':
        result = {'tools': [{'name': 'where', 'inputSchema': {'type': 'object'}}]}
    elif method == 'tools/call':
        result = {'content': [{'type': 'text', 'text': os.getcwd() + ' ' + str(os.listdir('.'))}]}
    else:
        continue
    print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}), flush=True)
";

/// With these servers, as an ordinary user: root could write everywhere.
fn host(servers: &Servers) -> Host {
    let host = Host::with(servers);
    if geteuid().is_root() { host.as_user(NOBODY) } else { host }
}

/// One server that python runs from what is written here.
fn python(more: Value) -> Servers {
    let mut entry = json!({"command": "python3", "args": ["-c", SERVER]});
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Servers::none().and("py", entry)
}

/// A script that leaves a mark where no sandbox could.
fn mark(host: &Host) -> (PathBuf, String) {
    let mark = host.path().join("mark");
    (mark.clone(), format!("#!/bin/sh\ntouch {}\n", mark.display()))
}

/// Makes a file that can be run, as a guest would.
fn makes(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    programs::writes(path, text);
}

#[test]
fn a_module_in_the_guest_s_folder_is_not_imported_by_a_server() {
    for sandbox in sandboxes::ordinary("a_module_in_the_guest_s_folder_is_not_imported_by_a_server") {
        let host = host(&python(json!({}))).sandbox(sandbox);
        let (mark, _) = mark(&host);
        let script = format!("echo \"open('{}', 'w')\" >json.py; test -s json.py", mark.display());
        assert_eq!(host.runs_script(&script).status, 0);
        let said = host.runs_script("tool-cli py where '{}'").well();
        assert!(!mark.exists(), "{sandbox}: the guest's module ran");
        let (folder, content) = said.trim().split_once(' ').unwrap();
        assert!(Path::new(folder).starts_with(host.state()) && content == "[]", "{sandbox}: {said}");
        let left = fs::read_dir(host.state().join("programs")).unwrap().count();
        assert_eq!(left, 0, "{sandbox}: its folder went with it");
    }
}

#[test]
fn without_a_sandbox_and_with_a_daemon_servers_start_in_a_folder_of_their_own_too() {
    let is_own = |said: &str, host: &Host| {
        let (folder, content) = said.trim().split_once(' ').unwrap();
        assert!(Path::new(folder).starts_with(host.state()) && content == "[]", "{said}");
    };
    let servers = python(json!({}));
    let host = Host::open_with(&servers);
    is_own(&host.runs_script("tool-cli py where '{}'").stdout, &host);
    let mut daemon = Host::with(&servers).serves();
    let guest = daemon.opens("one", &[]);
    is_own(&guest.runs(&["py", "where", "{}"]).well(), &daemon.host);
    daemon.ends();
    assert_eq!(fs::read_dir(daemon.host.state().join("programs")).unwrap().count(), 0);
    let folder = json!({"cwd": "."});
    let host = Host::open_with(&python(folder));
    let said = host.runs_script("tool-cli py where '{}'").stdout;
    assert!(said.starts_with(&format!("{} [", host.path().display())), "{said}");
}

#[test]
fn a_server_that_the_sandbox_could_rewrite_is_refused_by_name_unless_it_is_trusted() {
    for sandbox in
        sandboxes::ordinary("a_server_that_the_sandbox_could_rewrite_is_refused_by_name_unless_it_is_trusted")
    {
        let host = host(&Servers::none()).sandbox(sandbox);
        let (mark, script) = mark(&host);
        let work = host.work();
        for name in ["server.sh", "package/index.js", "json.py"] {
            makes(&work.join(name), &script);
        }
        symlink(work.join("server.sh"), host.path().join("link.sh")).unwrap();
        for (entry, says) in [
            (json!({"command": work.join("server.sh")}), "its program"),
            (json!({"command": host.path().join("link.sh")}), "its program"),
            (json!({"command": "./work/server.sh"}), "its program"),
            (json!({"command": "sh", "args": [work.join("server.sh")]}), "its argument"),
            (json!({"command": "sh", "args": [work.join("later.sh")]}), "its argument"),
            (json!({"command": "npx", "args": ["-y", work.join("package")]}), "its argument"),
            (json!({"command": "sh", "args": ["server.sh"], "cwd": "work"}), "its folder"),
            (
                json!({"command": "python3", "args": ["-c", SERVER], "env": {"PYTHONPATH": work}}),
                "its variable PYTHONPATH",
            ),
        ] {
            let text = Servers::none().and("mine", entry.clone()).text(host.path());
            fs::write(host.servers_file(), &text).unwrap();
            host.runs(&["true"]).fails(2, &["server \"mine\"", says, work.to_str().unwrap(), "\"trustFolder\": true"]);
            assert!(!mark.exists(), "{sandbox}: {entry}");
        }
        let data = json!({"command": "python3", "args": ["-c", SERVER, work]});
        fs::write(host.servers_file(), Servers::none().and("py", data).text(host.path())).unwrap();
        assert_eq!(host.runs_script("tool-cli py where '{}'").status, 0, "a folder that is data is no script");
        let trusted = json!({"command": work.join("server.sh"), "trustFolder": true});
        fs::write(host.servers_file(), Servers::none().and("mine", trusted).text(host.path())).unwrap();
        assert_eq!(host.runs_script("tool-cli mine; true").status, 0);
        assert!(mark.exists(), "{sandbox}: trusted, it runs");
    }
}

#[test]
fn a_program_on_a_path_that_a_guest_writes_or_that_is_relative_is_not_found() {
    for sandbox in sandboxes::ordinary("a_program_on_a_path_that_a_guest_writes_or_that_is_relative_is_not_found") {
        let host = host(&python(json!({}))).sandbox(sandbox);
        let (mark, script) = mark(&host);
        makes(&host.work().join("bin/python3"), &script);
        makes(&host.work().join("bin/bwrap"), &script);
        symlink(host.work().join("bin"), host.path().join("linked")).unwrap();
        let [own, linked] = ["work/bin", "linked"].map(|name| host.path().join(name).display().to_string());
        let system = std::env::var("PATH").unwrap();
        let host = host.env("PATH", format!("{own}:bin::{linked}:{system}"));
        let ran = host.runs_script("tool-cli py where '{}'; echo $PATH");
        assert!(!mark.exists(), "{sandbox}: what a guest wrote ran: {ran:?}");
        assert!(ran.stdout.contains("/programs/") && ran.stdout.contains(&own), "{sandbox}: {ran:?}");
        let said = ran.stderr.matches("left out of PATH").count();
        assert!(said == 1 && ran.stderr.contains(&format!("{own}:bin:.:{linked}")), "{sandbox}: {ran:?}");
    }
}

/// The same host, whose owner has a home folder of its own, and that.
fn at_home(host: Host) -> (Host, PathBuf) {
    let home = host.path().join("home");
    folder(&home);
    (host.env("HOME", &home).env("XDG_CONFIG_HOME", ""), home)
}

/// Makes a folder that belongs to the host's owner.
fn folder(path: &Path) {
    fs::create_dir_all(path).unwrap();
    if geteuid().is_root() {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

#[test]
fn what_programs_take_from_below_the_home_folder_is_not_the_guest_s() {
    for sandbox in sandboxes::ordinary("what_programs_take_from_below_the_home_folder_is_not_the_guest_s") {
        let (host, home) = at_home(host(&python(json!({}))).sandbox(sandbox));
        let (mark, script) = mark(&host);
        let refused = |host: &Host, places: &[&Path]| {
            let mut says = vec!["server \"py\"", "which programs take code or settings", "\"trustFolder\": true"];
            says.extend(places.iter().map(|place| place.to_str().unwrap()));
            host.runs(&["true"]).fails(2, &says);
            assert!(!mark.exists());
        };
        // Modules of python, named with --write.
        for name in [".local/lib/python3", ".npm/_npx", ".cache/uv"] {
            folder(&home.join(name));
        }
        for name in [".local", ".local/lib/python3", ".npm", ".cache"] {
            let written = home.join(name);
            let words = ["run", "--sandbox", sandbox, "--config"].map(std::ffi::OsStr::new);
            let config = host.servers_file();
            let more = [config.as_os_str(), "--write".as_ref(), written.as_os_str(), "--".as_ref(), "true".as_ref()];
            let ran = footbridge_tests::Running::start(&mut host.footbridge(&[&words[..], &more].concat())).ends();
            ran.fails(2, &["from which programs take code or settings", written.to_str().unwrap()]);
        }
        // As people do who keep such files in a repository.
        for (link, to) in [(".gitconfig", "gitconfig"), (".npmrc", "later"), (".local", "local")] {
            let link = home.join(link);
            fs::remove_dir_all(&link).ok();
            symlink(host.work().join(to), &link).unwrap();
            refused(&host, &[&link, &host.work()]);
            fs::remove_file(link).unwrap();
        }
        // What shells take is for shells.
        let profile = home.join(".bash_profile");
        symlink(host.work().join("profile"), &profile).unwrap();
        makes(&host.work().join("profile"), &script);
        assert_eq!(host.runs_script("tool-cli py where '{}'").status, 0);
        let login = json!({"command": "bash", "args": ["-lc", "exec python3 /none.py"]});
        fs::write(host.servers_file(), Servers::none().and("py", login).text(host.path())).unwrap();
        refused(&host, &[&profile]);
    }
}

#[test]
fn variables_that_lead_to_the_guest_s_folder_are_not_handed_on() {
    for sandbox in sandboxes::ordinary("variables_that_lead_to_the_guest_s_folder_are_not_handed_on") {
        let shows =
            SERVER.replace("os.getcwd()", "str([os.environ.get(n) for n in ('XDG_CONFIG_HOME', 'TMPDIR', 'LANG')])");
        let entry = json!({"command": "python3", "args": ["-c", shows]});
        let (host, _) = at_home(host(&Servers::none().and("py", entry)).sandbox(sandbox));
        let work = host.work();
        let host = host.env("TMPDIR", work.join("tmp")).env("PYTHONPATH", work.join("lib"));
        let host = host.env("XDG_CONFIG_HOME", "/srv/config");
        let ran = host.runs_script("tool-cli py where '{}'");
        assert_eq!(ran.stdout, "['/srv/config', None, 'C.UTF-8'] []\n", "{sandbox}: {ran:?}");
        assert!(ran.stderr.contains("TMPDIR") && !ran.stderr.contains("PYTHONPATH"), "{sandbox}: {ran:?}");
        let host = host.env("TMPDIR", "/tmp").env("XDG_CONFIG_HOME", work.join("xdg"));
        let ran = host.runs_script("tool-cli py where '{}'");
        assert_eq!(ran.stdout, "[None, '/tmp', 'C.UTF-8'] []\n", "{sandbox}: {ran:?}");
        assert!(ran.stderr.contains("XDG_CONFIG_HOME"), "{sandbox}: {ran:?}");
    }
}

#[test]
fn commands_of_the_operator_get_no_variable_that_leads_to_the_guest_s_folder() {
    let name = "commands_of_the_operator_get_no_variable_that_leads_to_the_guest_s_folder";
    for sandbox in sandboxes::ordinary(name) {
        let (host, home) = at_home(host(&Servers::none()).sandbox(sandbox).policy("ask"));
        let (mark, _) = mark(&host);
        let module = format!("open('{}', 'w')\ndef dumps(x): return 'value-of-the-secret'\n", mark.display());
        makes(&host.work().join("lib/json.py"), &module);
        let printed = json!(["python3", "-c", "import json; print(json.dumps('value-of-the-secret'))"]);
        let said = |what: &str| {
            let file = host.path().join(what);
            json!([
                "sh",
                "-c",
                format!(
                    "echo \"${{TMPDIR-none}} ${{PYTHONPATH-none}}\" >{}; cat >/dev/null; echo '{{\"decision\":\"allow\"}}'",
                    file.display()
                )
            ])
        };
        let demo =
            json!({"command": programs_of(&host), "args": ["demo-server"], "env": {"KEY": {"command": printed}}});
        fs::write(host.servers_file(), Servers::none().and("demo", demo).text(host.path())).unwrap();
        let settings = host.path().join("footbridge.toml");
        let text = format!("[approval]\ncommand = {}\n[audit]\nhead_command = {}\n", said("asked"), said("head"));
        fs::write(&settings, text).unwrap();
        let place = host.path().to_owned();
        let configs = [host.servers_file(), settings];
        let (lib, tmp) = (host.work().join("lib"), host.work().join("tmp"));
        let host = host.only_configs(&configs).env("PYTHONPATH", lib).env("TMPDIR", tmp);
        let ran = host.runs_script("tool-cli demo add_note '{\"text\":\"x\"}'");
        assert!(ran.status == 0 && !mark.exists(), "{sandbox}: {ran:?}");
        let once = ran.stderr.matches("PYTHONPATH").count();
        assert!(once == 1 && ran.stderr.contains("commands that print secrets"), "{sandbox}: {ran:?}");
        for what in ["asked", "head"] {
            assert_eq!(fs::read_to_string(place.join(what)).unwrap(), "none none\n", "{sandbox}: {what}");
        }
        // The home folder cannot be left out.
        symlink(host.work().join("gitconfig"), home.join(".gitconfig")).unwrap();
        let more = [".gitconfig", "from which programs take code or settings", "Move it out of there"];
        let secret = json!({"command": "true", "env": {"KEY": {"command": ["true"]}}, "trustFolder": true});
        fs::write(&configs[0], Servers::none().and("demo", secret).text(&place)).unwrap();
        host.runs(&["true"])
            .fails(2, &[&more[..], &["the secret command", "footbridge.toml:2", "footbridge.toml:4"]].concat());
    }
}

#[test]
fn calls_without_a_daemon_start_nothing_that_a_run_from_the_same_folder_could_have_written() {
    let host = Host::with(&Servers::none());
    let (mark, script) = mark(&host);
    makes(&host.work().join("server.sh"), &script);
    let entry = json!({"command": host.work().join("server.sh")});
    fs::write(host.servers_file(), Servers::none().and("mine", entry.clone()).text(host.path())).unwrap();
    for words in [&["call", "mine", "x"][..], &["tools", "mine"]] {
        host.one_shot(words).fails(2, &["its program", "which the sandbox can write", "\"trustFolder\": true"]);
        assert!(!mark.exists());
    }
    let mut trusted = entry;
    trusted["trustFolder"] = true.into();
    fs::write(host.servers_file(), Servers::none().and("mine", trusted).text(host.path())).unwrap();
    let _no_server = host.one_shot(&["tools", "mine"]);
    assert!(mark.exists(), "trusted, it runs");
    // A program of a virtual environment that is left out of PATH is missed by name.
    makes(&host.work().join("bin/a-server"), &script);
    let entry = json!({"command": "a-server"});
    fs::write(host.servers_file(), Servers::none().and("mine", entry).text(host.path())).unwrap();
    let path = format!("{}:{}", host.work().join("bin").display(), std::env::var("PATH").unwrap());
    let host = host.env("PATH", path);
    let ran = host.one_shot(&["tools", "mine"]);
    assert!(ran.status != 0 && ran.stderr.contains("left out of PATH"), "{ran:?}");
}

#[test]
fn commands_of_the_operator_start_in_a_folder_of_their_own_and_not_from_the_guest_s() {
    for sandbox in
        sandboxes::ordinary("commands_of_the_operator_start_in_a_folder_of_their_own_and_not_from_the_guest_s")
    {
        let host = host(&Servers::none()).sandbox(sandbox).policy("ask");
        let (mark, script) = mark(&host);
        let ask = host.work().join("ask");
        makes(&ask, &script);
        let secret = |command: Value| {
            let entry =
                json!({"command": programs_of(&host), "args": ["demo-server"], "env": {"KEY": {"command": command}}});
            Servers::none().and("demo", entry).text(host.path())
        };
        let noted = |what: &str| format!("pwd >{}; ls -A >>{0}", host.path().join(what).display());
        let settings = |approval: Value, head: Value| {
            let text = format!("[approval]\ncommand = {approval}\n[audit]\nhead_command = {head}\n");
            fs::write(host.path().join("footbridge.toml"), text).unwrap();
        };
        let config = [host.servers_file(), host.path().join("footbridge.toml")];
        let good = |what: &str, more: &str| json!(["sh", "-c", format!("{}; {more}", noted(what))]);
        let (allow, head, value) = (
            good("asked", "echo '{\"decision\":\"allow\"}'"),
            good("head", "cat >/dev/null"),
            good("secret", "echo value-of-the-secret"),
        );
        fs::write(host.servers_file(), secret(value.clone())).unwrap();
        settings(allow.clone(), head.clone());
        let place = host.path().to_owned();
        let host = host.only_configs(&config);
        let ran = host.runs_script("tool-cli demo add_note '{\"text\":\"x\"}'");
        assert_eq!(ran.status, 0, "{ran:?}");
        for what in ["asked", "head", "secret"] {
            let said = fs::read_to_string(place.join(what)).unwrap();
            let first = said.lines().next().unwrap();
            assert!(first.contains("/state/programs/") && said.lines().count() == 1, "{sandbox}: {what}: {said}");
        }
        let bad = json!([ask]);
        for (approval, head, value, says) in [
            (&bad, &head, &value, "footbridge.toml:2"),
            (&allow, &json!(["sh", ask]), &value, "footbridge.toml:4"),
            (&allow, &head, &bad, "the secret command"),
        ] {
            let entry = json!({"command": "sh", "env": {"KEY": {"command": value}}});
            fs::write(&config[0], Servers::none().and("demo", entry).text(&place)).unwrap();
            let text = format!("[approval]\ncommand = {approval}\n[audit]\nhead_command = {head}\n");
            fs::write(&config[1], text).unwrap();
            host.runs(&["true"]).fails(2, &[says, ask.to_str().unwrap(), "Move it out of there"]);
            assert!(!mark.exists(), "{sandbox}: {says}");
        }
    }
}

/// The program of the host, which an ordinary user can run.
fn programs_of(host: &Host) -> PathBuf {
    let copied = host.path().join("bin/footbridge");
    if copied.exists() { copied } else { programs::footbridge() }
}

#[test]
fn a_secret_s_file_that_a_guest_could_make_stops_the_run() {
    for sandbox in sandboxes::ordinary("a_secret_s_file_that_a_guest_could_make_stops_the_run") {
        let host = host(&Servers::none()).sandbox(sandbox);
        let key = host.work().join("keys/key");
        let demo = json!({"command": programs_of(&host), "args": ["demo-server"], "env": {"KEY": {"file": key}}});
        fs::write(host.servers_file(), Servers::none().and("demo", demo).text(host.path())).unwrap();
        host.runs(&["true"])
            .fails(2, &["work/keys/key: it is not there, and the sandbox can write", "keep it elsewhere"]);
        // Elsewhere it is missing for that server alone.
        let missing = host.path().join("key");
        let demo = json!({"command": programs_of(&host), "args": ["demo-server"], "env": {"KEY": {"file": missing}}});
        fs::write(host.servers_file(), Servers::none().and("demo", demo).text(host.path())).unwrap();
        assert_eq!(host.runs(&["true"]).status, 0);
    }
}

#[test]
fn a_link_on_the_way_to_a_configuration_that_a_guest_could_replace_is_refused() {
    for sandbox in sandboxes::ordinary("a_link_on_the_way_to_a_configuration_that_a_guest_could_replace_is_refused") {
        let host = host(&python(json!({}))).sandbox(sandbox);
        let (work, real) = (host.work(), host.servers_file());
        symlink(&real, work.join("link.json")).unwrap();
        symlink(host.path(), work.join("folder")).unwrap();
        symlink(work.join("link.json"), host.path().join("through.json")).unwrap();
        for (given, link) in [
            (work.join("link.json"), "link.json"),
            (PathBuf::from("link.json"), "link.json"),
            (work.join("folder/servers.json"), "folder"),
            (host.path().join("through.json"), "link.json"),
        ] {
            let words = ["run", "--sandbox", sandbox, "--config"].map(Into::into);
            let mut words: Vec<std::ffi::OsString> = words.into();
            words.extend([given.into_os_string(), "--".into(), "true".into()]);
            let words: Vec<_> = words.iter().map(std::ffi::OsString::as_os_str).collect();
            let ran = footbridge_tests::Running::start(&mut host.footbridge(&words)).ends();
            let link = work.join(link);
            ran.fails(2, &[link.to_str().unwrap(), "is a link in", "the sandbox can write", real.to_str().unwrap()]);
        }
        fs::hard_link(&real, work.join("hard.json")).unwrap();
        host.runs(&["true"]).fails(2, &["servers.json", "2 names (hard links)"]);
    }
}

#[test]
fn dotfiles_are_obeyed_only_where_a_guest_in_their_folder_could_not_replace_them() {
    for sandbox in sandboxes::ordinary("dotfiles_are_obeyed_only_where_a_guest_in_their_folder_could_not_replace_them")
    {
        // Of other programs' settings there, a guest's are obeyed.
        let host = host(&python(json!({"trustFolder": true}))).sandbox(sandbox).policy("open");
        if !geteuid().is_root() && std::env::var_os("XDG_CONFIG_HOME").is_some() {
            return skipped("dotfiles", "XDG_CONFIG_HOME is set");
        }
        let (work, mark) = (host.work(), mark(&host).0);
        // ~/.config is a link into the folder that the guest gets.
        let (home, dotfiles) = (host.path().join("home"), work.join("config/footbridge"));
        fs::create_dir_all(&home).unwrap();
        fs::create_dir_all(&dotfiles).unwrap();
        if geteuid().is_root() {
            for path in [work.join("config"), dotfiles.clone()] {
                std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
                fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
            }
        }
        symlink(work.join("config"), home.join(".config")).unwrap();
        let host = host.env("HOME", &home).only_configs(&[]);
        fs::copy(host.servers_file(), dotfiles.join("servers.json")).unwrap();
        if geteuid().is_root() {
            std::os::unix::fs::chown(dotfiles.join("servers.json"), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let hostile = format!(
            "{{\"mcpServers\":{{\"py\":{{\"command\":\"sh\",\"args\":[\"-c\",\"touch {}\"]}}}}}}",
            mark.display()
        );
        let attack = format!(
            "tool-cli py where '{{}}' >/dev/null && echo served; echo '{hostile}' >mine; chmod 600 mine; \
             cp mine config/footbridge/servers.json; mv -f mine config/footbridge/servers.json; \
             mv config old && mkdir -p config/footbridge && cp mine config/footbridge/servers.json; \
             rm -rf config; ln -sfn /tmp config; true"
        );
        let ran = host.runs_script(&attack);
        assert_eq!(ran.stdout, "served\n", "{sandbox}: {ran:?}");
        let again = host.runs_script("tool-cli py where '{}'");
        assert!(again.status == 0 && !mark.exists(), "{sandbox}: {again:?}");
        // A link further on lies in the guest's folder: nothing keeps that as it is. Also where there is no file yet.
        fs::rename(&dotfiles, work.join("config/now")).unwrap();
        symlink("now", &dotfiles).unwrap();
        host.runs(&["true"]).fails(2, &[dotfiles.to_str().unwrap(), "is a link in"]);
        fs::remove_file(work.join("config/now/servers.json")).unwrap();
        host.runs(&["true"]).fails(2, &[dotfiles.to_str().unwrap(), "is a link in"]);
    }
}

#[test]
fn a_state_folder_behind_a_link_that_a_guest_could_replace_is_refused() {
    let host = Host::with(&Servers::demo());
    fs::create_dir(host.path().join("elsewhere")).unwrap();
    let link = host.work().join("state");
    symlink(host.path().join("elsewhere"), &link).unwrap();
    let host = host.env("FOOTBRIDGE_STATE", &link);
    host.runs(&["true"]).fails(2, &[link.to_str().unwrap(), "is a link in", "FOOTBRIDGE_STATE"]);
    assert_eq!(Host::sandbox(host, "none").runs(&["true"]).status, 125, "no promise, but no link for a state folder");
}
