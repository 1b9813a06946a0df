//! What is told at the end of a run of what the command left, wherever its folder is by then.

use std::fs;

use crate::confined::{hosts, owned};

#[test]
fn what_a_command_left_is_told_of_where_its_folder_was_moved_to() {
    for host in hosts("what_a_command_left_is_told_of_where_its_folder_was_moved_to") {
        for is_swapped in [false, true] {
            let moved = host.path().join("moved");
            owned(&host.work().join("of-before"), Some(""));
            let script = "echo ready; read go; echo x >.envrc; mkdir -p d/.git; ln -s ~ out; echo left";
            let mut running = host.starts_script(script);
            running.stdout.shows("ready\n");
            fs::rename(host.work(), &moved).unwrap();
            if is_swapped {
                owned(&host.work(), None);
                owned(&host.work().join("mcp.json"), Some(""));
            }
            running.hears("go\n");
            let ran = running.ends();
            let says = ["/work was moved", "/moved/.envrc; look", "/moved/d/.git; their", "/moved/out; look"];
            assert!(ran.status == 0 && says.iter().all(|text| ran.stderr.contains(text)), "{ran:?}");
            assert!(!ran.stderr.contains("mcp.json") && !ran.stderr.contains("of-before"), "{ran:?}");
            fs::remove_dir_all(moved).unwrap();
            let _it_may_be_there = fs::remove_dir_all(host.work());
            owned(&host.work(), None);
        }
    }
}

#[test]
fn instructions_to_agents_can_be_written_and_that_is_told() {
    for host in hosts("instructions_to_agents_can_be_written_and_that_is_told") {
        for name in ["AGENTS.md", "GEMINI.md", ".cursorrules"] {
            owned(&host.work().join(name), Some("as it was\n"));
        }
        owned(&host.work().join(".Renviron"), Some(""));
        let ran = host.runs_script(
            "echo more >>AGENTS.md; echo new >CLAUDE.md; cat GEMINI.md >/dev/null; mkdir .pi; echo x >.pi/settings.json; \
             (echo x >.Renviron) 2>/dev/null || echo no",
        );
        let told = |name: &str| ran.stderr.contains(&format!("/{name}"));
        assert!(ran.stdout == "no\n" && ran.stderr.contains("instructions to agents: "), "{ran:?}");
        assert!(told("AGENTS.md") && told("CLAUDE.md") && told(".pi") && !told("GEMINI.md"), "{ran:?}");
        assert!(!told(".cursorrules") && !host.runs(&["true"]).stderr.contains("AGENTS.md"), "{ran:?}");
    }
}

#[test]
fn many_links_leave_the_one_that_counts_in_sight_and_all_are_in_a_file() {
    for host in hosts("many_links_leave_the_one_that_counts_in_sight_and_all_are_in_a_file") {
        owned(&crate::confined::home(&host).join(".ssh"), None);
        let ran = host.runs_script(
            "for n in $(seq 100 249); do ln -s /tmp a$n; done; ln -s ~/.ssh zz-keys
             deep=$(printf 'd%.0s' $(seq 200)); mkdir -p $deep/$deep/$deep; ln -s /tmp $deep/$deep/$deep/end; echo x >.envrc",
        );
        let line = ran.stderr.lines().find(|line| line.contains("links that lead out")).unwrap();
        let first = line.split(": ").nth(2).unwrap().split(", ").next().unwrap();
        assert!(first.ends_with("/zz-keys") && line.contains(", 132 more (all are named in "), "{ran:?}");
        assert!(line.len() < 8000 && ran.stderr.contains(".envrc; look"), "{}: {ran:?}", line.len());
        let file = line.split("named in ").nth(1).unwrap().split(')').next().unwrap();
        let all = fs::read_to_string(file).unwrap();
        assert!(all.lines().count() == 152 && all.contains("/a249\n") && all.contains("d/end\n"), "{all}");
    }
}
