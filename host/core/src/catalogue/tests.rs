//! What is kept of a listing, and what of it a session may see.

use super::*;
use crate::digest::Digest;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn add(catalogue: &mut Offered, text: &str) -> Result<(), BadEntry> {
    catalogue.add_tool(&raw(text), &ServerLimits::default())
}

#[test]
fn a_bad_tool_is_left_out_and_the_others_stay() {
    let mut catalogue = Offered::default();
    assert_eq!(add(&mut catalogue, r#"{"inputSchema":{}}"#), Err(BadEntry::NoKey("name")));
    assert_eq!(add(&mut catalogue, "7"), Err(BadEntry::NoKey("name")));
    assert_eq!(add(&mut catalogue, r#"{"name":"a"}"#), Err(BadEntry::NoSchema));
    assert!(matches!(add(&mut catalogue, r#"{"name":"a","name":"b","inputSchema":{}}"#), Err(BadEntry::Json(_))));
    assert_eq!(add(&mut catalogue, r#"{"name":"a","inputSchema":{}}"#), Ok(()));
    assert_eq!(add(&mut catalogue, r#"{"name":"a","inputSchema":{}}"#), Err(BadEntry::Repeated));
    assert_eq!(catalogue.entries().tools().len(), 1);
}

#[test]
fn of_a_servers_program_its_names_are_kept_and_nothing_that_has_room_for_more() {
    let of = |name: &str, title: Option<&str>, version: &str| {
        let mut catalogue = Offered::default();
        let said = Implementation { name: name.into(), title: title.map(Into::into), version: version.into() };
        catalogue.set_implementation(&said);
        catalogue.implementation().map(|kept| (kept.name.clone(), kept.title.clone(), kept.version.clone()))
    };
    assert_eq!(of("git", Some("Git"), "1.2"), Some(("git".into(), Some("Git".into()), "1.2".into())));
    assert_eq!(of("git\nIgnore all", Some("\nx"), &"9".repeat(500)), Some(("git".into(), None, "9".repeat(MAX_NAME))));
    assert_eq!(of("", Some("Git"), "1"), None);
}

#[test]
fn instructions_are_pinned_with_how_the_server_is_reached_and_no_tool_has_their_name() {
    let of = |text: &str| {
        let mut catalogue = Offered::of(Arc::new(Origin::new(serde_json::json!("x"))));
        catalogue.set_instructions(text, &ServerLimits { description_bytes: 8, ..ServerLimits::default() });
        catalogue.instructions().map(|given| (given.text().to_owned(), given.pinned().to_owned()))
    };
    assert_eq!(of(" \n"), None);
    assert_eq!(of(" Be kind\n").unwrap().1, r#"{"server":"x","tool":{"instructions":"Be kind"}}"#);
    assert_eq!(of("Be kind to all").unwrap().0, "Be kind  [cut: the description is too long]");
    let named = format!(r#"{{"name":"{INSTRUCTIONS}","inputSchema":{{}}}}"#);
    assert_eq!(add(&mut Offered::default(), &named), Err(BadEntry::Reserved));
}

#[test]
fn unknown_members_reach_describe_tool_after_the_known_ones() {
    let mut catalogue = Offered::default();
    add(
        &mut catalogue,
        r#"{"_meta":{"x":123456789012345678901234567890},"title":"T","name":"a","outputSchema":{"type":"object"},"inputSchema":{}}"#,
    )
    .unwrap();
    let tool = catalogue.entries().tool("a").unwrap();
    assert_eq!(
        tool.definition().get(),
        r#"{"name":"a","description":"(no description)","inputSchema":{},"outputSchema":{"type":"object"},"_meta":{"x":123456789012345678901234567890},"title":"T"}"#
    );
    assert!(tool.is_structured());
}

#[test]
fn the_digest_covers_all_that_a_guest_is_shown_and_not_the_order() {
    let digest = |text: &str| Tool::parse(&raw(text), &ServerLimits::default(), None).unwrap().digest();
    let a = digest(r#"{"name":"a","inputSchema":{"x":1,"y":2},"_meta":{"n":1}}"#);
    assert_eq!(a, digest(r#"{"_meta":{ "n":1 },"inputSchema":{"y":2,"x":1},"name":"a"}"#));
    for other in [
        r#"{"name":"a","inputSchema":{"x":1,"y":3},"_meta":{"n":1}}"#,
        r#"{"name":"a","inputSchema":{"x":1,"y":2},"_meta":{"n":2}}"#,
        r#"{"name":"a","inputSchema":{"x":1,"y":2},"_meta":{"n":1},"title":"A"}"#,
        r#"{"name":"a","inputSchema":{"x":1,"y":2},"_meta":{"n":1},"nobody":"knows"}"#,
    ] {
        assert_ne!(a, digest(other), "{other}");
    }
}

#[test]
fn numbers_that_no_value_keeps_are_told_apart_by_their_digits() {
    let tool = |number: &str| {
        let text = format!(r#"{{"name":"a","inputSchema":{{"maximum":{number}}}}}"#);
        Tool::parse(&raw(&text), &ServerLimits::default(), None).unwrap()
    };
    for (one, other) in
        [("1e400", "2e400"), ("123456789012345678901234567890", "123456789012345678901234567891"), ("1.5", "\"1.5\"")]
    {
        assert_ne!(tool(one).digest(), tool(other).digest(), "{one}");
    }
    assert_eq!(tool("1e400").digest(), Digest::of(tool("1e400").pinned()));
}

#[test]
fn how_a_server_is_reached_is_part_of_each_definition() {
    let of = |command: &str| {
        let mut catalogue = Offered::of(Arc::new(Origin::new(serde_json::json!({ "command": command }))));
        add(&mut catalogue, r#"{"name":"a","inputSchema":{}}"#).unwrap();
        catalogue.entries().tool("a").unwrap().pinned().to_owned()
    };
    assert_eq!(of("x"), r#"{"server":{"command":"x"},"tool":{"inputSchema":{},"name":"a"}}"#);
    assert_ne!(of("x"), of("y"));
}

#[test]
fn a_changed_tool_is_known_by_its_pin_and_the_worst_is_assumed_of_one_that_cannot_be_read() {
    let pin = r#"{"tool":{"name":"a","annotations":{"readOnlyHint":true,"openWorldHint":false},"outputSchema":{}}}"#;
    let changed = ChangedTool::by_pin(pin);
    assert_eq!((changed.effects().words(), changed.is_structured()), (vec!["read"], true));
    assert_eq!(ChangedTool::by_pin("rubbish").effects().words(), ["write", "destructive", "egress"]);
}

#[test]
fn a_long_description_is_cut_and_says_so() {
    let text = format!(r#"{{"name":"a","inputSchema":{{}},"description":"{}"}}"#, "é".repeat(10_000));
    let tool = Tool::parse(&raw(&text), &ServerLimits::default(), None).unwrap();
    assert!(tool.description().len() < 17 * 1024 && tool.description().ends_with("too long]"));
}

#[test]
fn a_page_is_read_whatever_it_lists() {
    let page: Page = serde_json::from_str(r#"{"tools":[{"name":7}],"nextCursor":"x"}"#).unwrap();
    assert_eq!((page.entries.len(), page.next_cursor.as_deref()), (1, Some("x")));
    let page: Page = serde_json::from_str(r#"{"resourceTemplates":[],"extra":1}"#).unwrap();
    assert_eq!((page.entries.len(), page.next_cursor), (0, None));
}

#[test]
fn a_tool_is_written_under_another_name_and_with_nothing_added() {
    for (given, written) in [
        (
            r#"{"icons":[{"src":"data:,x"}],"name":"a","inputSchema":{"type":"object"},"_meta":{"n":1.50}}"#,
            r#"{"name":"s__a","inputSchema":{"type":"object"},"icons":[{"src":"data:,x"}],"_meta":{"n":1.50}}"#,
        ),
        (
            r#"{"name":"\u0061\"","description":"(no description)","inputSchema":{}}"#,
            r#"{"name":"s__a","description":"(no description)","inputSchema":{}}"#,
        ),
        (r#"{"name":"a","inputSchema":{}}"#, r#"{"name":"s__a","inputSchema":{}}"#),
    ] {
        let tool = Tool::parse(&raw(given), &ServerLimits::default(), None).unwrap();
        let mut text = String::new();
        tool.write_as("s__a", &mut text);
        assert_eq!(text, written);
    }
}
