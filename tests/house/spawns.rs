//! No task or thread that nobody waits for, and no queue without an end.

use std::collections::BTreeMap;

use crate::{
    programs::{Program, Sources},
    report::Violation,
    resolve::resolve,
};

const TASK: &str = "Spawn it on the TaskTracker or JoinSet of whoever ends it.";
const THREAD: &str = "Start it with thread::Builder under a name and join it, or use spawn_blocking.";
const QUEUE: &str = "Use a bounded channel, and say what happens when it is full.";

/// What is refused, by its full name.
const REFUSED: &[(&str, &str)] = &[
    ("tokio::spawn", TASK),
    ("tokio::task::spawn", TASK),
    ("tokio::task::spawn_local", TASK),
    ("std::thread::spawn", THREAD),
    ("std::sync::mpsc::channel", QUEUE),
    ("tokio::sync::mpsc::unbounded_channel", QUEUE),
];

pub(crate) fn check(sources: &Sources) -> Vec<Violation> {
    let mut found: Vec<_> = sources.programs.iter().flat_map(of_program).collect();
    found.sort();
    found.dedup();
    found
}

fn of_program(program: &Program) -> Vec<Violation> {
    let mut found = BTreeMap::new();
    for (index, module) in program.modules.iter().enumerate() {
        let imports = module.imports().iter().map(|import| (&import.path, import.line));
        for (path, line) in imports.chain(module.mentions().iter().map(|mention| (&mention.path, mention.line))) {
            for outside in resolve(program, index, path).outside {
                if let Some((name, remedy)) = refused(&outside) {
                    found.insert((&module.file, line, name), remedy);
                }
            }
        }
    }
    let violation = |((file, line, name), remedy): ((&String, usize, &str), _)| {
        Violation::new(file, line, format!("{name} is not used here"), remedy)
    };
    found.into_iter().map(violation).collect()
}

/// The entry that this path is; where its first module is not known, its end decides.
fn refused(path: &[String]) -> Option<(&'static str, &'static str)> {
    let path = path.join("::");
    let is_end = |name: &str| name.strip_suffix(&path).is_some_and(|before| before.ends_with("::"));
    let is_entry = |name: &str| name == path || path.contains("::") && is_end(name) || path == "unbounded_channel";
    REFUSED.iter().copied().find(|(name, _)| is_entry(name) && (path != "unbounded_channel" || name.ends_with(&path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HOUSE, report::places, tree::Tree};

    fn found(text: &str) -> Vec<String> {
        let tree = Tree::of(&[("guest/src/bin/x.rs", text)]);
        let sources = Sources::read(&tree, &HOUSE);
        assert_eq!(sources.unread, []);
        places(&check(&sources))
    }

    #[test]
    fn bare_spawns_and_endless_queues_are_refused_however_they_are_named() {
        for text in [
            "fn f() {\n tokio::spawn(async {}); }",
            "fn f() {\n ::tokio::task::spawn(async {}); }",
            "use tokio::task; fn f() {\n task::spawn(async {}); }",
            "use std::{thread as t}; fn f() {\n t::spawn(|| {}); }",
            "fn f() {\n std::thread::spawn::<fn(), ()>(|| {}); }",
            "fn f() { select! {\n tokio::spawn(x) } }",
            "fn f() { m!(\nthread::spawn(x)) }",
            "use std::sync::mpsc; fn f() {\n mpsc::channel::<u8>(); }",
            "use std::sync::mpsc::{Sender,\n channel};",
            "use tokio::sync::mpsc; fn f() {\n mpsc::unbounded_channel::<u8>(); }",
            "use crate::m::\ntask; mod m { pub use tokio::task; } fn f() {\n task::spawn(x) }",
        ] {
            let line = text.lines().count();
            assert_eq!(found(text), [format!("guest/src/bin/x.rs:{line}")], "{text}");
        }
    }

    #[test]
    fn tracked_ones_are_fine() {
        for text in [
            "fn f(tasks: &TaskTracker) { tasks.spawn(async {}); JoinSet::new().spawn(async {}); }",
            "use tokio::task; fn f() { task::spawn_blocking(|| {}); tokio::task::spawn_blocking(|| {}); }",
            "use std::thread; fn f() { thread::Builder::new().spawn(|| {}); thread::scope(|s| s.spawn(|| {})); }",
            "use tokio::sync::mpsc; fn f() { mpsc::channel::<u8>(1); }",
            "use std::sync::mpsc; fn f() { mpsc::sync_channel::<u8>(1); }",
            "mod m { pub fn spawn() {} } use m::spawn; fn f() { spawn(); m::spawn(); }",
            "#[cfg(test)] mod tests { fn f() { tokio::spawn(x); } }",
            "//! tokio::spawn(x)\nfn f() { let _ = \"tokio::spawn(x)\"; }",
        ] {
            assert_eq!(found(text), [] as [&str; 0], "{text}");
        }
    }
}
