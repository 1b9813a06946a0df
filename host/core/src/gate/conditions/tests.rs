//! Every kind of condition against values of every type.

use serde_json::json;

use super::*;
use crate::gate::globs::Of;

fn holds(test: Test, value: &Value) -> Option<bool> {
    Condition::new(Pointer::new("/x").unwrap(), test).holds(&json!({ "x": value }))
}

fn texts(patterns: &[&str]) -> Test {
    Test::Glob(patterns.iter().map(|text| Glob::new(text, Of::Text).unwrap()).collect())
}

fn paths(patterns: &[&str]) -> Test {
    Test::Path(patterns.iter().map(|text| Glob::new(text, Of::Path).unwrap()).collect())
}

fn number(text: &str) -> Number {
    serde_json::from_str(text).unwrap()
}

fn range(least: Option<&str>, most: Option<&str>) -> Test {
    Test::Range(least.map(number), most.map(number))
}

const YES: Option<bool> = Some(true);
const NO: Option<bool> = Some(false);

#[test]
fn each_condition_says_yes_no_or_nothing() {
    let equals = |value| Test::Equals(value);
    let one_of = |values: Value| Test::OneOf(values.as_array().unwrap().clone());
    let whole = || Test::Regex(regex("a|ab", true).unwrap());
    let part = || Test::Regex(regex("rm -rf", false).unwrap());
    for (at, (test, value, expected)) in [
        (equals(json!("main")), json!("main"), YES),
        (equals(json!("main")), json!("Main"), NO),
        (equals(json!("main")), json!(["main"]), None),
        (equals(json!("main")), json!(null), None),
        (equals(json!("1")), json!(1), None),
        (equals(json!(1)), json!(1.0), YES),
        (equals(json!(1)), json!(1.5), NO),
        (equals(json!(true)), json!(false), NO),
        (equals(json!({"a": [1, 2]})), json!({"a": [1.0, 2]}), YES),
        (equals(json!({"a": 1})), json!({"a": 1, "b": 2}), NO),
        (one_of(json!(["a", 2])), json!("a"), YES),
        (one_of(json!(["a", 2])), json!("b"), NO),
        (one_of(json!(["a", 2])), json!(2), YES),
        (one_of(json!(["a", 2])), json!(true), None),
        (texts(&["release/*", "main"]), json!("release/a/b"), YES),
        (texts(&["release/*", "main"]), json!("dev"), NO),
        (texts(&["*"]), json!(7), None),
        (whole(), json!("ab"), YES),
        (whole(), json!("abc"), NO),
        (whole(), json!("ab\n"), NO),
        (whole(), json!(["ab"]), None),
        (part(), json!("sudo rm -rf /"), YES),
        (part(), json!("ls"), NO),
        (range(Some("1"), Some("10")), json!(10), YES),
        (range(Some("1"), Some("10")), json!(10.5), NO),
        (range(Some("1"), None), json!(0.999), NO),
        (range(None, Some("0.5")), json!(0), YES),
        (range(Some("1"), None), json!("5"), None),
        (Test::Length(1, 3), json!("äöü"), YES),
        (Test::Length(1, 3), json!([]), NO),
        (Test::Length(1, 3), json!({"a": 1}), YES),
        (Test::Length(1, 3), json!(2), None),
        (Test::Present(true), json!(null), YES),
        (Test::Present(false), json!(0), NO),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(holds(test, &value), expected, "line {at}: {value}");
    }
}

#[test]
fn what_is_missing_cannot_be_evaluated_but_for_its_presence() {
    let at = |pointer: &str, test: Test| {
        let arguments = json!({"a": {"b/c": [10, {"~": 20}]}, "": 1});
        Condition::new(Pointer::new(pointer).unwrap(), test).holds(&arguments)
    };
    assert_eq!(at("/x", Test::Equals(json!(1))), None);
    assert_eq!(at("/x", Test::Present(false)), YES);
    assert_eq!(at("/a/b~1c/1/~0", Test::Equals(json!(20))), YES);
    assert_eq!(at("/a/b~1c/2", Test::Equals(json!(20))), None);
    assert_eq!(at("/a/b~1c/-", Test::Present(true)), NO);
    assert_eq!(at("/", Test::Equals(json!(1))), YES);
    assert_eq!(at("", Test::Length(2, 2)), YES);
    for bad in ["a", "/~", "/~2", "a/b"] {
        assert!(Pointer::new(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_path_is_made_normal_and_refused_where_it_walks_up() {
    for (path, normal) in [
        ("/a//b/./c/", Some("/a/b/c")),
        ("/", Some("/")),
        ("a/b", Some("a/b")),
        ("./a", Some("a")),
        (".", Some(".")),
        ("/...", Some("/...")),
        ("/a..b", Some("/a..b")),
        ("..", None),
        ("/a/../b", None),
        ("/a/..", None),
        ("a/b/../../..", None),
        ("~/x", None),
        ("~root/x", None),
        ("C:\\x", None),
        ("/a\\..\\b", None),
        ("/a\0", None),
        ("/a\n", None),
        ("/a\u{202e}", None),
        ("", None),
    ] {
        assert_eq!(normal_path(path).as_deref(), normal, "{path:?}");
    }
}

#[test]
fn a_path_is_compared_with_patterns_of_its_own_kind() {
    for (patterns, path, expected) in [
        (&["/srv/**"][..], "/srv/a/b", YES),
        (&["/srv/**"], "/srv/./a//b/", YES),
        (&["/srv/**"], "/srv", YES),
        (&["/srv/**"], "/srv/../etc", None),
        (&["/srv/**"], "/srvx", NO),
        (&["/srv/**"], "srv/a", None),
        (&["/srv/**"], "file:///srv/a", None),
        (&["/srv/*"], "/srv/a/b", NO),
        (&["src/**"], "./src/a", YES),
        (&["src/**"], "/src/a", None),
        (&["src/**", "/srv/**"], "/srv/a", YES),
        (&["src/**", "/srv/**"], "/etc", None),
        (&["**/.ssh/**"], "/home/x/.ssh/id", YES),
        (&["**/.ssh/**"], ".ssh/id", YES),
        (&["{/a,/b}/**"], "/b/x", YES),
    ] {
        assert_eq!(holds(paths(patterns), &json!(path)), expected, "{patterns:?} {path}");
    }
    assert_eq!(holds(paths(&["/**"]), &json!(["/a"])), None);
}

#[test]
fn numbers_are_compared_without_rounding() {
    for (a, b, order) in [
        ("9007199254740993", "9007199254740992.0", Ordering::Greater),
        ("9007199254740992", "9007199254740992.0", Ordering::Equal),
        ("18446744073709551615", "-1", Ordering::Greater),
        ("18446744073709551615", "1e300", Ordering::Less),
        ("-9223372036854775808", "-1e300", Ordering::Greater),
        ("2", "2.5", Ordering::Less),
        ("-2", "-2.5", Ordering::Greater),
        ("0", "-0.0", Ordering::Equal),
        ("0.1", "0.2", Ordering::Less),
    ] {
        assert_eq!(compare(&number(a), &number(b)), Some(order), "{a} {b}");
        assert_eq!(compare(&number(b), &number(a)), Some(order.reverse()), "{b} {a}");
    }
}

#[test]
fn a_regex_cannot_escape_what_is_put_around_it() {
    for bad in ["a)|(b", "(", "(?x)a # comment"] {
        assert!(regex(bad, true).is_err(), "{bad}");
    }
    assert!(regex("(a{1000}){1000}", true).is_err(), "too large");
}

#[test]
fn a_rule_that_closes_takes_a_path_in_every_reading() {
    let condition = |pattern: &str| Condition::new(Pointer::new("/x").unwrap(), paths(&[pattern]));
    let closes = |path: &str, pattern: &str| condition(pattern).holds_for_any_reading(&json!({ "x": path }));
    for path in
        ["/etc/key ", " /etc/key", "/etc/key?", "/etc/key#a", "/etc/key;1", "/etc/%6bey", "/etc//key", "/etc/key/"]
    {
        assert_eq!(closes(path, "/etc/key"), Some(true), "{path}");
        assert_eq!(closes(path, "/etc/*"), Some(true), "{path}");
    }
    assert_eq!(closes("/etc;v=1/key", "/etc/key"), Some(true));
    assert_eq!(closes("/srv/key", "/etc/*"), Some(false));
    assert_eq!(closes("/srv/%2e%2e/etc/key", "/etc/*"), None, "it walks up");
    assert_eq!(closes("", "/etc/*"), None);
    // What opens takes the path as it stands.
    assert_eq!(condition("/etc/key").holds(&json!({"x": "/etc/key#a"})), Some(false));
}
