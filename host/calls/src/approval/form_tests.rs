//! Tests of what servers ask, and of what fits as an answer.

use serde_json::json;

use super::*;

fn form(params: &Value) -> Result<Form, BadForm> {
    Form::read(&params.to_string()).map(|(form, _)| form)
}

fn asks(properties: &Value, required: &[&str]) -> Form {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    form(&json!({"message": "m", "requestedSchema": schema})).unwrap()
}

fn given(fields: &[(&str, &str)]) -> Given {
    Given::Fields(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

fn all() -> Form {
    let many = json!({"type": "array", "items": {"type": "string", "enum": ["x", "y", "z"]}, "maxItems": 2});
    let titled = json!({"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]});
    asks(
        &json!({
            "name": {"type": "string", "minLength": 2},
            "mail": {"type": "string", "format": "email"},
            "day": {"type": "string", "format": "date"},
            "age": {"type": "integer", "minimum": 18, "default": 30},
            "share": {"type": "number"},
            "agree": {"type": "boolean"},
            "colour": titled,
            "some": many,
        }),
        &["name"],
    )
}

#[test]
fn typed_texts_become_values_of_their_types_and_defaults_fill_in() {
    let content = all().content(&given(&[
        ("name", "Jo"),
        ("mail", "a@b.test"),
        ("day", "2026-11-22"),
        ("share", "0.5"),
        ("agree", "true"),
        ("colour", "g"),
        ("some", "x"),
        ("some", "z"),
    ]));
    let expected = json!({"age": 30, "agree": true, "colour": "g", "day": "2026-11-22", "mail": "a@b.test",
        "name": "Jo", "share": 0.5, "some": ["x", "z"]});
    assert_eq!(content.unwrap().unwrap(), expected);
    let content = all().content(&Given::Content(json!({"name": "Jo", "age": 18}))).unwrap();
    assert_eq!(content.unwrap(), json!({"age": 18, "name": "Jo"}));
}

#[test]
fn what_does_not_fit_is_named() {
    for (fields, why) in [
        (&[][..], "\"name\" is missing"),
        (&[("name", "J")], "does not fit"),
        (&[("name", "Jo"), ("age", "7")], "does not fit"),
        (&[("name", "Jo"), ("age", "1.5")], "does not fit"),
        (&[("name", "Jo"), ("age", "old")], "no number"),
        (&[("name", "Jo"), ("age", "99999999999999999999")], "would not keep its value"),
        (&[("name", "Jo"), ("agree", "yes")], "true or false"),
        (&[("name", "Jo"), ("mail", "nobody")], "no email"),
        (&[("name", "Jo"), ("day", "22.11.2026")], "no date"),
        (&[("name", "Jo"), ("colour", "blue")], "does not fit"),
        (&[("name", "Jo"), ("some", "x"), ("some", "y"), ("some", "z")], "does not fit"),
        (&[("name", "Jo"), ("name", "Al")], "takes one value"),
        (&[("name", "Jo"), ("more", "x")], "there is no field \"more\""),
    ] {
        let unfit = all().content(&given(fields)).unwrap_err();
        assert!(unfit.to_string().contains(why), "{fields:?}: {unfit}");
    }
    for content in [json!([]), json!({"name": "Jo", "more": 1}), json!({"name": 7}), json!({"name": null})] {
        all().content(&Given::Content(content)).unwrap_err();
    }
}

#[test]
fn an_address_is_shown_and_takes_consent_alone() {
    let url = |url: &str| form(&json!({"mode": "url", "message": "m", "url": url, "elicitationId": "1"}));
    let asked = url("https://auth.test/start?x=1").unwrap();
    assert_eq!(asked.info().url.as_deref(), Some("https://auth.test/start?x=1"));
    assert_eq!(asked.content(&given(&[])), Ok(None));
    asked.content(&given(&[("a", "b")])).unwrap_err();
    for bad in ["javascript:alert(1)", "file:///etc/passwd", "https://bank.test@evil.test/", "nothing", ""] {
        assert_eq!(url(bad).unwrap_err(), BadForm::Url, "{bad}");
    }
}

#[test]
fn what_is_no_form_of_the_protocol_or_asks_for_a_secret_is_declined() {
    let of = |properties: Value| {
        form(&json!({"message": "m", "requestedSchema": {"type": "object", "properties": properties}}))
    };
    assert_eq!(of(json!({"api_key": {"type": "string"}})).unwrap_err(), BadForm::Secret("api_key".into()));
    assert_eq!(of(json!({"a": {"type": "object"}})).unwrap_err(), BadForm::Field("a".into()));
    assert_eq!(form(&json!({"message": "m", "mode": "voice"})).unwrap_err(), BadForm::Mode("voice".into()));
    for params in [json!({}), json!({"message": "m"}), json!({"message": "m", "requestedSchema": {"type": "object"}})] {
        assert!(matches!(form(&params), Err(BadForm::Unreadable(_))), "{params}");
    }
    let twice = r#"{"message":"a","message":"b","requestedSchema":{"type":"object","properties":{}}}"#;
    assert!(matches!(Form::read(twice), Err(BadForm::Unreadable(_))));
    assert_eq!(form(&json!({"message": "m".repeat(MAX_MESSAGE + 1)})).unwrap_err(), BadForm::TooLong);
    assert_eq!(form(&json!({"message": "m".repeat(MAX_QUESTION)})).unwrap_err(), BadForm::TooLong);
    let bomb = json!({"a": {"type": "string", "pattern": "(a+){200000}"}});
    assert!(matches!(of(bomb), Err(BadForm::Unreadable(_))));
}

#[test]
fn no_reason_is_as_long_as_what_the_server_wrote() {
    let long = "\u{e9}".repeat(20_000);
    let field = |name: &str, schema: Value| {
        let properties = json!({name: schema});
        json!({"message": "m", "requestedSchema": {"type": "object", "properties": properties}})
    };
    for params in [
        field(&long, json!({"type": "object"})),
        field(&format!("password{long}"), json!({"type": "string"})),
        json!({"message": "m", "mode": long}),
        json!(long),
    ] {
        let why = form(&params).unwrap_err().to_string();
        assert!(why.len() < 700 && why.contains("..."), "{why}");
    }
}
