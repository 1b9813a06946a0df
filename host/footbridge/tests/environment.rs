//! Which variables a command gets, from values alone.

#![expect(clippy::unwrap_used, reason = "a test says no more than that it failed, and where")]

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use footbridge_processes::sandbox::{Asked, EnvironmentError, Environments, SandboxKind, environment};

fn made(kind: SandboxKind, asked: &[&str], tools: Option<&str>) -> Result<Vec<String>, EnvironmentError> {
    let callers: Vec<(OsString, OsString)> = [
        ("HOME", "/h"),
        ("PATH", "/bin"),
        ("LC_ALL", "C"),
        ("API_KEY", "k"),
        ("EDITOR", "ed"),
        ("TOOL_CLI_TOKEN", "outer"),
        ("LCX", "no"),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .to_vec();
    let asked: Vec<Asked> = asked
        .iter()
        .map(|text| match text.split_once('=') {
            Some((name, value)) => Asked { name: name.to_owned(), value: Some(value.into()) },
            None => Asked { name: (*text).to_owned(), value: None },
        })
        .collect();
    let referred = BTreeSet::from(["API_KEY".to_owned()]);
    let from = Environments { callers: &callers, asked: &asked, referred: &referred, tools: tools.map(Path::new) };
    let join = |(name, value): (OsString, OsString)| [name, value].join(OsStr::new("=")).into_string().unwrap();
    Ok(environment(kind, from)?.into_iter().map(join).collect())
}

#[test]
fn the_environment_is_a_list_of_what_is_allowed_or_of_what_is_left() {
    let closed = ["HOME=/h", "LC_ALL=C", "PATH=/bin"];
    type Row<'a> = (SandboxKind, &'a [&'a str], Option<&'a str>, &'a [&'a str]);
    let table: &[Row<'_>] = &[
        (SandboxKind::Closed, &[], None, &closed),
        (SandboxKind::Closed, &["EDITOR"], None, &["EDITOR=ed", "HOME=/h", "LC_ALL=C", "PATH=/bin"]),
        (SandboxKind::Closed, &["EDITOR=vi", "NONE"], None, &["EDITOR=vi", "HOME=/h", "LC_ALL=C", "PATH=/bin"]),
        (SandboxKind::Closed, &["API_KEY=other"], None, &["API_KEY=other", "HOME=/h", "LC_ALL=C", "PATH=/bin"]),
        (SandboxKind::Closed, &[], Some("/t"), &["HOME=/h", "LC_ALL=C", "PATH=/t:/bin"]),
        (SandboxKind::Closed, &["PATH="], Some("/t"), &["HOME=/h", "LC_ALL=C", "PATH=/t:/usr/local/bin:/usr/bin:/bin"]),
        (SandboxKind::Open, &[], None, &["EDITOR=ed", "HOME=/h", "LCX=no", "LC_ALL=C", "PATH=/bin"]),
    ];
    for (kind, asked, tools, expected) in table {
        assert_eq!(made(*kind, asked, *tools).unwrap(), *expected, "{kind:?} {asked:?} {tools:?}");
    }
}

#[test]
fn an_environment_that_would_show_a_credential_is_refused() {
    for kind in [SandboxKind::Open, SandboxKind::Closed] {
        assert_eq!(made(kind, &["API_KEY"], None), Err(EnvironmentError::Referred("API_KEY".to_owned())));
    }
    assert_eq!(made(SandboxKind::Open, &["=x"], None), Err(EnvironmentError::Name(String::new())));
    assert_eq!(made(SandboxKind::Open, &[], Some("/a:b")), Err(EnvironmentError::Colon("/a:b".into())));
}
