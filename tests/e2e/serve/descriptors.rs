//! A daemon that is out of descriptors: who connects waits, and the log says so once.

use std::{
    os::unix::net::UnixStream,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use footbridge_tests::{Host, PATIENCE, Running, Servers, starting};
use nix::sys::signal::Signal;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::json;

use super::LIST;

#[test]
fn it_says_once_that_nothing_can_be_accepted_and_once_that_it_goes_on() {
    let mut daemon = Host::with(&Servers::none()).serves();
    let guests = ["one", "two", "three"].map(|name| daemon.opens(name, &[]));
    let pid = Pid::from_raw(daemon.process().pid());
    let none = Rlimit { current: Some(3), maximum: getrlimit(Resource::Nofile).maximum };
    let before = prlimit(pid, Resource::Nofile, none).unwrap();
    let sockets = ["one", "two", "three"].map(|name| daemon.host.own_socket(name));
    let control = daemon.host.runtime().join("serve/control.sock");
    let waiting: Vec<_> = sockets.iter().chain([&control]).map(|path| UnixStream::connect(path).unwrap()).collect();
    for what in ["guests", "commands"] {
        daemon.process().stderr.shows(&format!("raise the limit of open files (ulimit -n) what=\"{what}\""));
    }
    // They fail again and again meanwhile, of which nothing is said until it is over: there is no event to wait for, and how
    // often it was is looked at then.
    thread::sleep(Duration::from_secs(1));
    prlimit(pid, Resource::Nofile, before).unwrap();
    for what in ["guests", "commands"] {
        daemon.process().stderr.shows(&format!("accepted again what=\"{what}\""));
    }
    assert!(guests.iter().all(|guest| guest.posts(LIST).status == 200));
    drop(waiting);
    let said = daemon.ends().stderr;
    assert_eq!(said.matches("no new connection").count(), 2, "guests and commands: {said}");
    let over: Vec<&str> = said.lines().filter(|line| line.contains("accepted again")).collect();
    assert_eq!(over.len(), 2, "{said}");
    // Of guests by three listeners.
    for (what, once) in [("guests", 3), ("commands", 1)] {
        let of_it = over.iter().find(|line| line.contains(&format!("what=\"{what}\""))).unwrap();
        let failed = of_it.split_once("failed=").unwrap().1.split_whitespace().next().unwrap();
        assert!(failed.parse::<u64>().unwrap() > once, "{of_it}");
    }
}

/// The soft limit of open files of a process.
fn soft_limit(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = text.lines().find(|line| line.starts_with("Max open files")).unwrap();
    line.split_whitespace().nth(3).unwrap().parse().unwrap()
}

/// The process that came of this one and has the word among its own.
fn descendant(pid: i32, word: &str) -> Option<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let of_task = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let children: Vec<i32> = tasks
        .flat_map(|task| of_task(task).split_whitespace().map(|child| child.parse().unwrap()).collect::<Vec<_>>())
        .collect();
    let is_it =
        |child: &&i32| std::fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default().contains(word);
    children.iter().find(is_it).copied().or_else(|| children.iter().find_map(|child| descendant(*child, word)))
}

#[test]
fn sessions_and_their_connections_leave_descriptors_for_operators_and_neighbours() {
    let host = Host::with(&Servers::demo());
    let serve = host.serve_of();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -Sn 200 && ulimit -Hn 256 && exec \"$@\"", "sh"]);
    let mut daemon = Running::start(&mut starting(&serve, command));
    daemon.stderr.shows("footbridge: ready");
    assert_eq!(soft_limit(daemon.pid()), 256, "as far as it may go");

    let mut created = Vec::new();
    let refused = loop {
        let name = format!("s{}", created.len());
        let ran = host.session(&["create", &name, "--policy", "open", "--json"]);
        if ran.status != 0 {
            break ran.stderr;
        }
        created.push(serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap());
        assert!(created.len() < 64, "more than there can be");
    };
    assert!(refused.contains("may not open enough files") && created.len() > 10, "{} {refused}", created.len());

    let idle: Vec<UnixStream> = (0..created.len())
        .flat_map(|n| {
            let path = host.own_socket(&format!("s{n}"));
            (0..62).map_while(move |_| UnixStream::connect(&path).ok())
        })
        .collect();
    assert_eq!(host.session(&["list", "--json"]).well().lines().count(), created.len());
    assert!(host.session(&["revoke", "s1"]).status == 0);
    assert!(host.session(&["create", "new", "--policy", "open"]).status == 0, "there is room for one again");
    drop(idle);
    let guest = footbridge_tests::Guest::at_socket(
        created[0]["endpoints"][0].as_str().unwrap().strip_prefix("unix:").unwrap(),
        created[0]["token"].as_str().unwrap(),
    );
    let params = json!({"server": "demo", "tool": "get_weather", "arguments": {"city": "Bern"}});
    let deadline = Instant::now() + PATIENCE;
    let answer = loop {
        // Those that left have their places until that is noticed, and whoever finds none is closed at once.
        match guest.starts_to_ask("callTool", params.clone()).answer_if_any() {
            Some(answer) if answer.status != 503 => break answer,
            nothing => assert!(Instant::now() < deadline, "{nothing:?}"),
        }
    };
    assert!(answer.status == 200 && answer.json()["result"].is_object(), "{answer:?}");
    let server = descendant(daemon.pid(), "demo-server").unwrap();
    assert_eq!(soft_limit(server), 200, "what it was started with");
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.ends().status, 0);
}
