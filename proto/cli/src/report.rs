//! The report of a step: one object of the shape `mcp-client/1`, whatever happened.

use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};

use crate::{answers::Block, layout::one_line};

/// The shape that is written.
const SCHEMA: &str = "mcp-client/1";
/// Most characters of an error, which a tool may have written.
const MAX_ERROR: usize = 4_000;

/// Of what is no result of a tool.
const NO_RESULT: &str = "its result is none of MCP: an object with \"content\" is expected";

/// What became of a step.
#[derive(Debug, Clone, Serialize)]
pub struct StepReport {
    schema: &'static str,
    success: bool,
    error: Option<String>,
    data: Data,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    content: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<NamedReport>>,
}

/// What became of one of several steps. Its result is written as it came: read into values it would lose digits, or all
/// of itself.
#[derive(Debug, Clone, Serialize)]
struct NamedReport {
    name: String,
    #[serde(flatten)]
    report: StepReport,
}

/// What of a result counts here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    content: Option<Box<RawValue>>,
    structured_content: Option<Box<RawValue>>,
    is_error: Option<bool>,
}

impl StepReport {
    /// Of a result.
    pub fn of(result: &RawValue) -> Self {
        let Ok(given) = serde_json::from_str::<Given>(result.get()) else { return Self::failed(NO_RESULT) };
        let is_error = given.is_error.unwrap_or(false);
        // Old servers leave the content out beside what is structured; without either nothing says that it was done.
        if given.content.is_none() && given.structured_content.is_none() && !is_error {
            return Self::failed(NO_RESULT);
        }
        // Whoever printed it may have laid it out in several lines.
        let in_line = |raw: Box<RawValue>| RawValue::from_string(one_line(&raw)).unwrap_or(raw);
        let content = given.content.filter(|content| content.get().starts_with('[')).map(in_line);
        let content = content.unwrap_or_else(nothing);
        let error = is_error.then(|| said(&content));
        let structured_content = given.structured_content.map(in_line);
        let data = Data { content, structured_content, steps: None };
        Self { schema: SCHEMA, success: !is_error, error, data }
    }

    /// Of what has no result, and why.
    pub fn failed(why: impl Into<String>) -> Self {
        let data = Data { content: nothing(), structured_content: None, steps: None };
        Self { schema: SCHEMA, success: false, error: Some(cut(why.into())), data }
    }

    /// Of several steps: it went well if each did.
    pub fn of_all(reports: &[(String, Self)]) -> Self {
        let failed: Vec<&str> =
            reports.iter().filter(|(_, report)| !report.success).map(|(name, _)| name.as_str()).collect();
        let line = |(name, report): &(String, Self)| match &report.error {
            None => format!("{name}: ok"),
            Some(error) => format!("{name}: {error}"),
        };
        let lines: Vec<String> = reports.iter().map(line).collect();
        let content = json!([{"type": "text", "text": lines.join("\n")}]);
        let content = serde_json::value::to_raw_value(&content).unwrap_or_else(|_| nothing());
        let step = |(name, report): &(String, Self)| NamedReport { name: name.clone(), report: report.clone() };
        let steps = Some(reports.iter().map(step).collect());
        let error = (!failed.is_empty())
            .then(|| format!("{} of {} steps failed: {}", failed.len(), reports.len(), failed.join(", ")));
        let data = Data { content, structured_content: None, steps };
        Self { schema: SCHEMA, success: failed.is_empty(), error, data }
    }

    /// Whether it did what it was for.
    pub fn is_success(&self) -> bool {
        self.success
    }

    /// One line of JSON.
    pub fn line(&self) -> String {
        let text = serde_json::to_string(self);
        let plain =
            |error| json!({"schema": SCHEMA, "success": false, "error": format!("{error}"), "data": {"content": []}});
        text.unwrap_or_else(|error| plain(error).to_string()) + "\n"
    }
}

fn nothing() -> Box<RawValue> {
    RawValue::from_string("[]".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The texts of a content, which say what a tool failed with.
fn said(content: &RawValue) -> String {
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).unwrap_or_default();
    let read = |block| if let Block::Text(text) = Block::read(block) { Some(text) } else { None };
    let texts: Vec<String> = blocks.into_iter().filter_map(read).collect();
    let text = texts.join("\n");
    if text.trim().is_empty() { "the tool reported an error without a word".to_owned() } else { cut(text) }
}

fn cut(text: String) -> String {
    match text.char_indices().nth(MAX_ERROR) {
        Some((at, _)) => format!("{}... [cut]", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(result: &str) -> StepReport {
        StepReport::of(&RawValue::from_string(result.to_owned()).unwrap())
    }

    #[test]
    fn a_report_is_what_its_golden_line_says() {
        let good = of(r#"{"content":[{"type":"text","text":"a \"b\""}],"structuredContent":{"n":1.0},"_meta":{}}"#);
        let bad = of(
            r#"{"content":[{"type":"text","text":"no"},{"type":"image"},{"type":"text","text":"way"}],"isError":true}"#,
        );
        let steps = [("good".to_owned(), good.clone()), ("bad".to_owned(), bad.clone())];
        let all = StepReport::of_all(&steps);
        let odd = [of(r#"{"isError":1}"#), of(r#"{"isError":true}"#), StepReport::failed("why\n\u{1b}[31m")];
        let pretty = of(
            "{\n  \"content\": [\n    {\"type\": \"text\",\n     \"text\": \"a\\nb\"}\n  ],\n  \"structuredContent\": {\n    \
             \"n\": 1.0\n  }\n}",
        );
        let lines: String =
            [&good, &bad, &all].into_iter().chain(&odd).chain([&pretty]).map(StepReport::line).collect();
        assert_eq!(lines, include_str!("report.jsonl"));
    }

    #[test]
    fn a_step_among_several_has_its_result_as_it_came() {
        for value in ["18446744073709551616", "1e400", "1.50", r#""\ud800""#] {
            let one =
                of(&format!(r#"{{"content":[{{"type":"text","text":{value}}}],"structuredContent":{{"n":{value}}}}}"#));
            let alone = one.line();
            let data = alone.trim_end().split_once(r#""data":"#).unwrap().1.strip_suffix('}').unwrap();
            let all = StepReport::of_all(&[("s".to_owned(), one)]).line();
            assert!(data.contains(value) && all.contains(&format!("\"error\":null,\"data\":{data}}}]")), "{all}");
        }
    }

    #[test]
    fn one_block_of_an_odd_shape_hides_no_text_of_an_error() {
        let bad = of(r#"{"content":[7,{"type":"text","text":"\ud800"},{"type":"text","text":"no"}],"isError":true}"#);
        assert_eq!(bad.error.as_deref(), Some("no"));
    }

    #[test]
    fn what_has_no_content_is_no_success() {
        for none in [
            "{}",
            r#"{"content":null}"#,
            r#"{"isError":null}"#,
            r#"{"content":null,"structuredContent":null}"#,
            r#"{"task":{}}"#,
        ] {
            let report = of(none);
            assert!(!report.is_success() && report.error.as_deref() == Some(NO_RESULT), "{none}");
        }
        for fine in [r#"{"content":[]}"#, r#"{"structuredContent":{"n":1}}"#, r#"{"content":[],"isError":null}"#] {
            assert!(of(fine).is_success(), "{fine}");
        }
    }

    #[test]
    fn what_a_tool_says_at_length_is_cut() {
        let long = StepReport::failed("é".repeat(10_000));
        assert!(long.error.unwrap().len() < 9_000);
    }
}
