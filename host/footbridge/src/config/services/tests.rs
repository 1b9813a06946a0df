//! What services as they are written become, and what is said of those that are wrong.

use footbridge_core::service::RequestPath;

use super::{meaning::PROXY, *};

fn found(text: &str) -> FoundServices {
    found_of(text, &WantedServices::All)
}

fn found_of(text: &str, wanted: &WantedServices) -> FoundServices {
    found_by(&Commands::default(), text, wanted)
}

fn found_by(commands: &Commands, text: &str, wanted: &WantedServices) -> FoundServices {
    let path = PathBuf::from("/etc/f.toml");
    let table = File::new(&path, text).parse().unwrap();
    let variables = [("KEY".to_owned(), "s3cret-value".to_owned())];
    meant(WrittenServices { path, text: text.to_owned(), table }, &variables, commands, wanted)
}

#[test]
fn methods_and_places_that_nobody_knows_are_noted_with_what_may_be_meant() {
    let found = found(
        "[services.a]\nurl = \"https://a.example\"\nrequests = [\"GETT /**\", \"PROPFIND /**\", \"* /x\"]\n\
         environment = { U = \"{uri}/{origin}\", J = \"{\\\"a\\\": 1}\" }\n",
    );
    let notes: Vec<String> = found.notes.iter().map(ToString::to_string).collect();
    let says = [
        "f.toml:3: services.a.requests: GETT is no method of HTTP that is known here; did you mean GET?",
        "f.toml:4: services.a.environment: {uri} stands for nothing and stays as it is, unlike {url}, {token}, \
         {authority}, {name}, {origin}; did you mean {url}?",
    ];
    assert!(found.mistakes.is_empty() && notes.len() == 2, "{notes:#?}");
    notes.iter().zip(says).for_each(|(note, says)| assert!(note.ends_with(says), "{note}"));
}

#[test]
fn variables_that_have_programs_load_something_are_noted_and_those_of_the_bridge_refused() {
    let of = |environment: &str| {
        let found = found(&format!("[services.a]\nurl = \"https://a.test\"\nenvironment = {{ {environment} }}\n"));
        let plain = |all: &[Mistake]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        (plain(&found.mistakes), plain(&found.notes))
    };
    for name in ["LD_PRELOAD", "PATH", "PYTHONPATH", "node_options"] {
        let (mistakes, notes) = of(&format!("{name} = \"/x\", KEY = \"{{token}}\""));
        assert!(mistakes.is_empty() && notes.len() == 1, "{name}: {mistakes:?} {notes:?}");
        assert!(
            notes[0].contains(&format!("f.toml:3: services.a.environment.{name}: by such a variable")),
            "{notes:?}"
        );
    }
    assert_eq!(of("PIP_INDEX_URL = \"{url}/simple\""), (vec![], vec![]));
    assert_eq!(of("PIP_INDEX_URL = \"https://other.test\"").1.len(), 1);
    let (mistakes, _) = of("TOOL_CLI_TOKEN = \"x\"");
    assert!(
        mistakes.len() == 1 && mistakes[0].contains("services.a.environment.TOOL_CLI_TOKEN: it is for"),
        "{mistakes:?}"
    );
}

#[test]
fn an_address_that_ends_with_what_a_preset_puts_behind_it_is_noted() {
    let notes = |text: &str| {
        let found = found(&format!("[services.a]\ncredential = \"${{KEY}}\"\n{text}\n"));
        assert!(found.mistakes.is_empty(), "{:?}", found.mistakes);
        found.notes.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for (preset, url, doubled) in [
        ("openai", "https://models.test/v1", "/v1"),
        ("openai", "https://models.test/v1/", "/v1"),
        ("openai", "http://localhost:9/proxy/v1", "/v1"),
        ("anthropic", "https://models.test/v1", "/v1"),
        ("gemini", "https://models.test/v1beta", "/v1beta"),
        ("openrouter", "https://models.test/api/v1", "/api/v1"),
        ("azure-openai", "https://x.test/openai", "/openai"),
        ("gitlab", "https://forge.test/api/v4", "/api/v4"),
        ("pip", "https://packages.test/simple", "/simple"),
    ] {
        let notes = notes(&format!("preset = {preset:?}\nurl = {url:?}"));
        let says = format!("puts {doubled} in front of its paths itself; write the address without it");
        assert!(notes.len() == 1 && notes[0].ends_with(&says), "{preset} {url}: {notes:?}");
        assert!(notes[0].contains(&format!("f.toml:4: services.a.url: preset {preset:?}")), "{notes:?}");
    }
    for text in [
        "preset = \"openai\"",
        "preset = \"openai\"\nurl = \"https://models.test\"",
        "preset = \"openai\"\nurl = \"https://models.test/openai\"",
        "preset = \"git\"\nurl = \"https://forge.test/v1\"",
        "preset = \"openai\"\nurl = \"https://models.test/v1\"\nenvironment = { OPENAI_BASE_URL = \"{url}\" }",
        "header = \"x\"\nurl = \"https://models.test/v1\"",
    ] {
        assert_eq!(notes(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_preset_needs_a_credential_alone_and_an_own_service_says_the_rest() {
    let found = found(
        "[services.anthropic]\npreset = \"anthropic\"\ncredential = \"${KEY}\"\n[services.tracker]\nurl = \"https://tracker.example/api\"\n\
         header = \"Authorization\"\ncredential = \"Bearer ${KEY}\"\nrequests = [\"GET /v2/**\"]\nenvironment = { U = \"{url}\" }\n",
    );
    assert!(found.mistakes.is_empty(), "{:?}", found.mistakes);
    let [model, tracker] = &found.services[..] else { panic!("{:?}", found.services) };
    let header = |spec: &ServiceSpec| {
        let (name, value) = spec.credential.clone().unwrap();
        format!("{name}: {}", value.to_str().unwrap())
    };
    assert_eq!(
        (header(model), model.origin.to_string()),
        ("x-api-key: s3cret-value".into(), "https://api.anthropic.com".into())
    );
    assert_eq!(header(tracker), "authorization: Bearer s3cret-value");
    let git = "[services.git]\npreset = \"git\"\nurl = \"https://git.test\"\nuser = \"bot\"\ncredential = \"${KEY}\"\n";
    // bot:s3cret-value
    assert_eq!(header(&super::tests::found(git).services[0]), "authorization: Basic Ym90OnMzY3JldC12YWx1ZQ==");
    assert_eq!(tracker.environment["U"], "{url}");
    assert!(found.gathered.names.contains("KEY") && !format!("{:?}", found.services).contains("s3cret"));
}

#[test]
fn a_credential_that_is_not_there_is_noted_and_no_mistake() {
    let lacks = |found: &FoundServices| {
        found.services[0].lacks_credential.as_ref().map(ToString::to_string).unwrap_or_default()
    };
    for (text, why) in [
        ("[services.a]\npreset = \"openai\"\ncredential = \"${NONE}\"", "NONE is not set"),
        ("[services.a]\npreset = \"openai\"\ncredential = { command = [\"false\"] }", "false failed"),
        ("[services.a]\npreset = \"openai\"\n", "none is written"),
        ("[services.a]\npreset = \"azure-openai\"\nurl = \"https://a.test\"\n", "none is written"),
    ] {
        let all = found(text);
        assert!(all.mistakes.is_empty() && lacks(&all).contains(why), "{text}: {:?}", all.mistakes);
        let note = all.notes[0].to_string();
        assert!(note.contains("services.a") && note.contains(why) && note.contains("refused until then"), "{note}");
    }
    for text in ["preset = \"openai\"\nurl = \"http://localhost:9\"", "preset = \"github\"", "url = \"https://a.test\""]
    {
        assert_eq!(lacks(&found(&format!("[services.a]\n{text}\n"))), "", "{text}");
    }
}

#[test]
fn a_credential_that_cannot_be_read_again_is_said_to_stay() {
    for (text, stays) in
        [("preset = \"openai\"\ncredential = { command = [\"false\"] }", true), ("preset = \"openai\"", false)]
    {
        let all = found_of(&format!("[services.a]\n{text}\n"), &WantedServices::Again);
        let note = all.notes[0].to_string();
        assert_eq!(note.contains("keeps the credential that it had"), stays, "{note}");
        assert_eq!(note.contains("requests to this service are refused until then"), !stays, "{note}");
    }
}

#[test]
fn white_space_at_the_ends_of_a_credential_is_left_out_and_noted() {
    let all = found("[services.a]\nheader = \"x\"\nurl = \"https://a.test\"\ncredential = \"Bearer ${KEY} \"\n");
    assert!(all.mistakes.is_empty() && all.services[0].lacks_credential.is_none(), "{:?}", all.mistakes);
    assert_eq!(all.services[0].credential.as_ref().unwrap().1, "Bearer s3cret-value");
    assert!(all.services[0].secrets.iter().any(|secret| secret.expose() == "s3cret-value"));
    assert!(all.notes[0].to_string().contains("white space, which means nothing in a header"), "{:?}", all.notes);
    let blank = found("[services.a]\npreset = \"openai\"\ncredential = \" \\t\"\n");
    let why = blank.services[0].lacks_credential.as_ref().map(ToString::to_string);
    assert_eq!(why.as_deref(), Some("it is white space alone"));
}

#[test]
fn a_credential_too_short_to_be_looked_for_is_noted() {
    for (credential, is_noted) in [("1234567", true), ("12345678", false)] {
        let all = found(&format!("[services.a]\npreset = \"openai\"\ncredential = \"{credential}\"\n"));
        let noted = all.notes.iter().any(|note| note.to_string().contains("less than 8 bytes, so it is not taken out"));
        assert_eq!(noted, is_noted, "{credential}: {:?}", all.notes);
    }
}

#[test]
fn a_credential_that_begins_with_what_its_preset_writes_is_noted() {
    for (more, is_noted) in [("", true), ("header = \"authorization\"\n", false)] {
        let all = found(&format!("[services.a]\npreset = \"openai\"\n{more}credential = \"bearer ${{KEY}}\"\n"));
        let noted =
            all.notes.iter().any(|note| note.to_string().contains("the preset writes \"Bearer\" in front of it"));
        assert_eq!(noted, is_noted, "{more}: {:?}", all.notes);
    }
    assert!(found("[services.a]\npreset = \"openai\"\ncredential = \"${KEY}\"\n").notes.is_empty());
}

#[test]
fn a_command_that_hangs_is_ended_and_its_service_alone_lacks_its_credential() {
    let commands = Commands::default().within(std::time::Duration::from_millis(200));
    let text = "[services.a]\npreset = \"openai\"\ncredential = { command = [\"sleep\", \"1000\"] }\n\
                [services.b]\npreset = \"openai\"\ncredential = \"${KEY}\"\n";
    let all = found_by(&commands, text, &WantedServices::All);
    let [a, b] = &all.services[..] else { panic!("{:?}", all.services) };
    let why = a.lacks_credential.as_ref().unwrap().to_string();
    assert!(
        why.contains("did not end within 200ms") && b.lacks_credential.is_none() && all.mistakes.is_empty(),
        "{why}"
    );
}

#[test]
fn no_command_of_a_service_that_is_not_wanted_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let ran = folder.path().join("ran");
    let text = format!(
        "[services.a]\npreset = \"openai\"\ncredential = {{ command = [\"touch\", {ran:?}] }}\n\
         [services.b]\npreset = \"openai\"\ncredential = \"${{NONE}}\"\n[services.c]\npreset = \"openai\"\ncredential = \"${{KEY}}\"\n"
    );
    let all = found_of(&text, &WantedServices::Named(vec!["c".to_owned()]));
    assert!(!ran.exists() && all.notes.is_empty() && all.mistakes.is_empty());
    // What they name is kept from guests.
    assert!(["NONE", "KEY"].iter().all(|name| all.gathered.names.contains(*name)));
    assert_eq!(found(&text).notes.len(), 2);
    assert!(ran.exists());
}

#[test]
fn tunnels_are_a_service_whose_requests_are_hosts() {
    let found = found("[tunnels]\nallow = [\"a.test:443\", \"*.b.test:8443\"]\nplain = [\"c.test:80\"]\n");
    assert!(found.mistakes.is_empty(), "{:?}", found.mistakes);
    let [tunnels] = &found.services[..] else { panic!("{:?}", found.services) };
    let allows = |method: &str, path: &str| tunnels.rules.allows(method, &RequestPath::read(path).unwrap());
    for (method, path, allowed) in [
        ("CONNECT", "/a.test:443", true),
        ("CONNECT", "/a.test:80", false),
        ("CONNECT", "/x.y.b.test:8443", true),
        ("CONNECT", "/b.test:8443", false),
        ("CONNECT", "/evilb.test:8443", false),
        ("CONNECT", "/c.test:80", false),
        ("GET", "/c.test:80/x/y", true),
        ("GET", "/a.test:443/", false),
        ("POST", "/c.test:80/x", false),
    ] {
        assert_eq!(allows(method, path), allowed, "{method} {path}");
    }
    assert_eq!(tunnels.environment["https_proxy"], PROXY);
    let mistakes = |text: &str| super::tests::found(text).mistakes.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(mistakes("[tunnels]\nallow = [\"127.0.0.1:443\"]\n")[0].contains("allow_private"));
    assert!(mistakes("[tunnels]\nplain = [\"localhost:80\"]\nallow_private = true\n").is_empty());
    assert!(mistakes("[tunnels]\nallow = [\"A.test:443\"]\n")[0].contains("small letters"));
    for bad in ["a.test", "*:443", "a.*:443", "a.test:0", "a.test:https", "https://a.test:443", "[::1]:443"] {
        let all = mistakes(&format!("[tunnels]\nallow = [\"{bad}\"]\n"));
        assert!(
            all.len() == 1 && all[0].contains("tunnels.allow") && all[0].contains("files.example"),
            "{bad}: {all:?}"
        );
    }
    assert!(mistakes("[services.tunnels]\nurl = \"https://a.test\"\n")[0].contains("[tunnels]"));
}

#[test]
fn every_mistake_is_named_with_its_place() {
    for (text, what) in [
        ("[services.a]\n", "services.a: a service needs its address"),
        ("[services.A]\nurl = \"https://a.test\"", "services.A: a service's name"),
        ("[services.a]\nurl = \"http://a.test\"", "services.a.url: http without TLS"),
        ("[services.a]\nurl = \"https://10.0.0.1\"", "services.a.url: its address is private"),
        ("[services.a]\npreset = \"none\"", "services.a.preset: there is no preset \"none\""),
        ("[services.a]\npreset = \"git\"", "services.a: a service needs its address"),
        (
            "[services.a]\nurl = \"https://a.test\"\ncredential = \"${KEY}\"",
            "services.a: a credential needs the header",
        ),
        ("[services.a]\nurl = \"https://a.test\"\nheader = \"x\"", "services.a.header: a header needs what it holds"),
        ("[services.a]\nurl = \"https://a.test\"\nrequests = [\"/v1\"]", "services.a.requests: \"/v1\" is no pattern"),
        ("[services.a]\nurl = \"https://a.test\"\nproxy = \"p.test:1\"", "services.a.proxy: not an http: address"),
        (
            "[services.a]\nurl = \"http://127.0.0.1:1\"\nproxy = \"http://p.test:1\"",
            "services.a.proxy: an origin without TLS",
        ),
        ("[tunnels]\nproxy = \"https://p.test\"", "tunnels.proxy: not an http: address"),
        ("services.a = 5", "services.a: it has the type integer, and must be a table"),
        ("[services.a]\nurll = \"https://a.test\"", "did you mean \"url\"?"),
        ("[services.a]\nurl = \"https://a.test\"\nca_file = \"/none.pem\"", "services.a.ca_file: /none.pem"),
    ] {
        let all: Vec<String> = found(text).mistakes.iter().map(ToString::to_string).collect();
        assert!(all.len() == 1 && all[0].contains(what), "{text}: {all:?}");
    }
}
