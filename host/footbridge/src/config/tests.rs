//! All files together: every mistake at once, and what is odd beside them.

use std::{fs, os::unix::fs::PermissionsExt as _};

use super::*;

/// All that is said of files with these texts: mistakes, and notes.
fn said(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let (config, mistakes) = looked_over(files);
    let plain = |all: &[Mistake]| all.iter().map(ToString::to_string).collect();
    (plain(&mistakes), plain(&config.notes))
}

fn looked_over(files: &[(&str, &str)]) -> (Config, Vec<Mistake>) {
    let place = tempfile::tempdir().unwrap();
    let home = |name: &str| (name == "HOME").then(|| place.path().as_os_str().to_owned());
    let folders = Folders::find(7, home).unwrap();
    let write = |(name, text): &(&str, &str)| {
        let path = place.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    let files: Vec<PathBuf> = files.iter().map(write).collect();
    look_over(&files, &folders, &Variables::of_this_process())
}

#[track_caller]
fn holds(found: &[String], all: &[&str]) {
    assert_eq!(found.len(), all.len(), "{found:#?}");
    for part in all {
        assert!(found.iter().any(|one| one.contains(part)), "{part}: {found:#?}");
    }
}

#[test]
fn mistakes_of_settings_services_and_policies_are_said_at_once() {
    let text = "[limits.calls]\nspeed = 1\n[services.x]\nurl = \"ftp://x\"\n[services.y]\nurll = \"https://y\"\n\
                [approval]\ntimes = 1\n[[policies.p.rules]]\ndecision = \"alow\"\n";
    let (mistakes, _) = said(&[("f.toml", text)]);
    let all = ["limits.calls.speed", "services.x.url", "services.y.urll", "approval.times", "policies.p.rules"];
    holds(&mistakes, &all);
}

#[test]
fn notes_are_said_beside_mistakes() {
    let text = r#"{"mcpServers": {"a": {"comand": "x"}, "b": {"command": "no-such-program-here", "strange": 1}}}"#;
    let (mistakes, notes) = said(&[("s.json", text)]);
    holds(&mistakes, &["did you mean \"command\"?"]);
    assert!(notes.iter().any(|note| note.contains("no-such-program-here")), "{notes:#?}");
    assert!(notes.iter().any(|note| note.contains("key \"strange\" is not known here")), "{notes:#?}");
}

const SERVICES: &str = "[services.own]\nurl = \"https://own.test\"\nrequests = [\"* /x\"]\n\
                        [tunnels]\nallow = [\"a.test:443\"]\n";

#[test]
fn rules_about_services_methods_and_paths_that_there_are_not_are_noted_with_what_may_be_meant() {
    let rule = |says: &str| format!("{SERVICES}[[policies.p.rules]]\ndecision = \"deny\"\n{says}\n");
    let place = |key: &str| format!("f.toml:8: policies.p.rules[1].{key}: rule \"1\" of policy \"p\" ");
    for (says, key, note) in [
        ("service = \"owm\"", "service", "is about no service that is configured; did you mean \"own\"?"),
        ("service = \"OWN\"", "service", "is about no service that is configured; did you mean \"own\"?"),
        ("service = \"tunels\"", "service", "is about no service that is configured; did you mean \"tunnels\"?"),
        ("service = \"other-*\"", "service", "is about no service that is configured"),
        (
            "service = [\"owm\", \"tunnels\", \"later\"]",
            "service",
            "names the service \"owm\", which is no service that is configured; did you mean \"own\"?",
        ),
        ("method = \"DELET\"", "method", "is about no method of HTTP that is known here; did you mean \"DELETE\"?"),
        ("method = \"post\"", "method", "is about no method of HTTP that is known here; did you mean \"POST\"?"),
        (
            "method = [\"GET\", \"PSOT\"]",
            "method",
            "names the method \"PSOT\", which is no method of HTTP that is known here; did you mean \"POST\"?",
        ),
        (
            "path = \"/x?force=*\"",
            "path",
            "has the path \"/x?force=*\", and a path has no query: \"?\" stands for one character",
        ),
        (
            "path = \"/s/own/x\"",
            "path",
            "has the path \"/s/own/x\", and a path is what comes behind /s/NAME: that is not written",
        ),
    ] {
        let (mistakes, notes) = said(&[("f.toml", &rule(says))]);
        assert!(mistakes.is_empty() && notes.len() == 1, "{says}: {mistakes:#?} {notes:#?}");
        assert!(notes[0].ends_with(&format!("{}{note}", place(key))), "{says}: {notes:#?}");
    }
    for says in [
        "service = [\"o*\", \"later\"]",
        "service = \"tunnels\"",
        "service = \"*\"",
        "method = [\"P*\", \"X-NEW\"]",
        "path = \"/x?\"",
        "uri = \"note:///x?y=1\"",
    ] {
        assert_eq!(said(&[("f.toml", &rule(says))]), (vec![], vec![]), "{says}");
    }
    // What a service names is known, whatever else is said of it.
    let brewed = rule("method = \"BREW\"").replace("* /x", "BREW /pot");
    holds(&said(&[("f.toml", &brewed)]).1, &["services.own.requests: BREW is no method of HTTP"]);
    let (_, notes) = said(&[("f.toml", "[[policies.p.rules]]\ndecision = \"deny\"\nservice = \"own\"\n")]);
    holds(&notes, &["f.toml:3: policies.p.rules[1].service: rule \"1\" of policy \"p\" is about no service"]);
}

#[test]
fn rules_and_effects_of_servers_that_there_are_not_are_noted_at_their_files_and_places() {
    let servers = r#"{"mcpServers": {"demo": {"command": "sh"}, "other": {"command": "sh"}}}"#;
    let first = "[[effects]]\nserver = \"demo\"\nare = \"read\"\n[[effects]]\nserver = \"dmeo\"\nare = \"read\"\n\
                 [[policies.p.rules]]\nserver = [\"dmeo\", \"other\", \"later\"]\ndecision = \"deny\"\n";
    let second = "[[effects]]\nserver = \"nothing-like-it\"\ntool = \"x\"\nare = \"read\"\n";
    let (mistakes, notes) = said(&[("s.json", servers), ("f.toml", first), ("g.toml", second)]);
    assert!(mistakes.is_empty(), "{mistakes:#?}");
    holds(
        &notes,
        &[
            "f.toml:5: effects[2].server: this entry is about no server that is configured; did you mean \"demo\"?",
            "f.toml:8: policies.p.rules[1].server: rule \"1\" of policy \"p\" names the server \"dmeo\", which is no \
             server that is configured; did you mean \"demo\"?",
            "f.toml:8: policies.p.rules[1].server: rule \"1\" of policy \"p\" names the server \"later\", which is no \
             server that is configured",
            "g.toml:2: effects[1].server: this entry is about no server that is configured",
        ],
    );
}

#[test]
fn services_that_policies_give_and_that_there_are_not_are_said_beside_other_mistakes() {
    let text = format!(
        "{SERVICES}[services.bad]\nurl = \"ftp://x\"\n[policies.p]\nservices = [\"own\", \"bad\", \"onw\", \"nope\"]\n\
         [[policies.p.rules]]\ndecision = \"alow\"\n"
    );
    let (mistakes, _) = said(&[("f.toml", &text)]);
    holds(
        &mistakes,
        &[
            "f.toml:7: services.bad.url",
            "f.toml:9: policies.p.services: policy \"p\" gives the service \"onw\", and there is none (did you mean \
             \"own\"?): write [services.onw]",
            "f.toml:9: policies.p.services: policy \"p\" gives the service \"nope\", and there is none: write",
            "f.toml:11: policies.p.rules[1].decision",
        ],
    );
    // What a file says that is none is not known.
    let gives = "[policies.p]\nservices = [\"later\"]\n";
    holds(&said(&[("f.toml", gives), ("g.toml", "[services.later\n")]).0, &["g.toml:1"]);
    // A later policy of the same name counts.
    assert_eq!(said(&[("f.toml", gives), ("g.toml", "[policies.p]\nservices = []\n")]).0, Vec::<String>::new());
}

#[test]
fn a_webhook_that_is_refused_is_said_beside_a_key_that_is_not_known() {
    let text = "[approval]\nwach = true\nwebhook.url = \"http://example.com/x\"\n";
    holds(
        &said(&[("f.toml", text)]).0,
        &["f.toml:2: approval.wach", "f.toml:3: approval.webhook.url: http without TLS"],
    );
}

#[test]
fn what_a_later_settings_file_does_not_say_stays_as_an_earlier_one_has_it() {
    let first = "[limits.calls]\nburst = 7\n[edge]\nallow_hosts = [\"a.test\"]\n[audit]\nsync = false\n\
                 [approval]\nwatch = false\n";
    let (config, mistakes) = looked_over(&[("f.toml", first), ("g.toml", SERVICES)]);
    assert!(mistakes.is_empty() && config.notes.is_empty(), "{mistakes:#?} {:#?}", config.notes);
    assert_eq!((config.limits.calls.burst, config.audit.sync), (7, false));
    assert_eq!(config.allow_hosts, ["a.test"]);
    assert_eq!(config.named_limits.into_iter().collect::<Vec<_>>(), ["calls.burst"]);
    let later = "[limits.calls]\nper_second = 5\n";
    let (config, _) = looked_over(&[("f.toml", first), ("g.toml", later)]);
    assert_eq!((config.limits.calls.burst, config.limits.calls.per_second), (100, 5), "it is one table");
    assert_eq!(
        (config.audit.sync, config.named_limits.into_iter().collect::<Vec<_>>()),
        (false, vec!["calls.per_second"])
    );
    holds(&said(&[("f.toml", first), ("g.toml", later)]).1, &["\"limits\" replaces that of "]);
}
