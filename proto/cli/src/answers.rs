//! The shapes of answers as a client reads them.
//!
//! More lenient than what a bridge writes (`footbridge_proto::wire`): both generations of bridges and words of a
//! later version must pass. What is not needed is not looked at; what is needed and of another type is an error.

use std::collections::HashMap;

use base64::{
    Engine as _,
    engine::{
        DecodePaddingMode,
        general_purpose::{GeneralPurpose, GeneralPurposeConfig},
    },
};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Value, value::RawValue};

mod prompts;

pub use base64::DecodeError;
pub use prompts::{
    Completion, FilledPrompt, FoundToolList, FoundToolSummary, ListedPrompts, PromptArgumentSummary, PromptMessage,
    PromptSummary,
};

/// Result of `listServers`.
#[derive(Debug, Deserialize)]
pub struct ListedServers {
    /// In the bridge's order.
    pub servers: Vec<ServerSummary>,
}

/// One server.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerSummary {
    /// Its name.
    pub name: String,
    /// How many tools it has.
    pub tool_count: u64,
    /// Some of their names.
    #[serde(default)]
    pub examples: Vec<String>,
    /// Why it cannot be used right now, such as `starting` or `unavailable`.
    #[serde(default)]
    pub status: Option<String>,
    /// The same in words.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Result of `listTools`.
#[derive(Debug, Deserialize)]
pub struct ListedTools {
    /// In the bridge's order.
    pub tools: Vec<ToolSummary>,
    /// What is missing from them, a line each.
    #[serde(default)]
    pub partial: Vec<String>,
}

/// Result of `listTools` with `full`. A bridge that does not know the word lists names and descriptions.
#[derive(Debug, Default, Deserialize)]
pub struct FullTools {
    /// In the bridge's order.
    pub tools: Vec<ToolDescription>,
    /// What is decided about those that are not simply allowed: `ask` or `deny`.
    #[serde(default)]
    pub decisions: HashMap<String, String>,
    /// What is missing from them, a line each.
    #[serde(default)]
    pub partial: Vec<String>,
}

/// One tool.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSummary {
    /// Its name.
    pub name: String,
    /// What it says of itself.
    #[serde(default)]
    pub description: Option<String>,
    /// Whether its results are structured JSON.
    #[serde(default)]
    pub has_structured_output: bool,
}

/// Result of `describeTool`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDescription {
    /// Its name.
    pub name: String,
    /// What it says of itself.
    #[serde(default)]
    pub description: Option<String>,
    /// What arguments it takes.
    #[serde(default)]
    pub input_schema: Value,
    /// What structured results look like.
    #[serde(default)]
    pub output_schema: Option<Value>,
    /// Hints about what it does.
    #[serde(default)]
    pub annotations: Option<Map<String, Value>>,
}

/// Result of `callTool`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallResult {
    /// Blocks, each as its text.
    #[serde(default, deserialize_with = "null_or")]
    pub content: Vec<Box<RawValue>>,
    /// Whether the tool reports an error.
    #[serde(default, deserialize_with = "null_or")]
    pub is_error: bool,
    /// The result as JSON, where the tool gives one.
    #[serde(default)]
    pub structured_content: Option<Box<RawValue>>,
}

/// A value, or its default for null: servers write that for what they have nothing of, and the tool has run.
fn null_or<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl CallResult {
    /// The blocks of its content, read.
    pub fn blocks(&self) -> impl Iterator<Item = Block> {
        self.content.iter().map(|raw| Block::read(raw))
    }

    /// The texts among them, one after the other on lines of their own.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.blocks().filter_map(|block| if let Block::Text(text) = block { Some(text) } else { None });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The structured result as a `T`, where the tool gives one.
    ///
    /// # Errors
    /// When it is no `T`.
    pub fn structured<T: DeserializeOwned>(&self) -> serde_json::Result<Option<T>> {
        self.structured_content.as_ref().map(|raw| serde_json::from_str(raw.get())).transpose()
    }
}

/// One block of a [`CallResult`].
#[derive(Debug)]
pub enum Block {
    /// A text.
    Text(String),
    /// An image.
    Image(Data),
    /// A sound.
    Audio(Data),
    /// A resource that came along.
    Resource(Content),
    /// A block of another kind, or of an odd shape, as its text.
    Other(Box<RawValue>),
}

/// Bytes in a [`Block`].
#[derive(Debug)]
pub struct Data {
    /// The bytes in base64, as they came.
    pub base64: String,
    /// What they are, such as `image/png`.
    pub mime_type: Option<String>,
}

impl Data {
    /// The bytes.
    ///
    /// # Errors
    /// When it is not base64.
    pub fn bytes(&self) -> Result<Vec<u8>, DecodeError> {
        decode(&self.base64)
    }
}

/// Reads base64, with or without padding.
///
/// # Errors
/// When it is none.
pub fn decode(base64: &str) -> Result<Vec<u8>, DecodeError> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    LENIENT.decode(base64.trim_ascii())
}

impl Block {
    /// Reads a block of a result's content.
    #[must_use]
    pub fn read(raw: &RawValue) -> Self {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Members {
            #[serde(rename = "type")]
            kind: String,
            #[serde(default)]
            text: Option<String>,
            #[serde(default)]
            data: Option<String>,
            #[serde(default)]
            mime_type: Option<String>,
            #[serde(default)]
            resource: Option<Content>,
        }
        let read = serde_json::from_str::<Members>(raw.get()).ok().and_then(|members| {
            let Members { kind, text, data, mime_type, resource } = members;
            let data = data.map(|base64| Data { base64, mime_type });
            match kind.as_str() {
                "text" => text.map(Self::Text),
                "image" => data.map(Self::Image),
                "audio" => data.map(Self::Audio),
                "resource" => resource.map(Self::Resource),
                _ => None,
            }
        });
        read.unwrap_or_else(|| Self::Other(raw.to_owned()))
    }
}

/// Result of `readResource`.
#[derive(Debug, Deserialize)]
pub struct ResourceContents {
    /// The resource's parts, each as its text.
    pub contents: Vec<Box<RawValue>>,
}

/// One part of a resource.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Content {
    /// Which one.
    #[serde(default)]
    pub uri: String,
    /// What it is.
    #[serde(default)]
    pub mime_type: Option<String>,
    /// Its text.
    #[serde(default)]
    pub text: Option<String>,
    /// Its bytes in base64.
    #[serde(default)]
    pub blob: Option<String>,
}

impl Content {
    /// Its bytes, where it has a blob.
    ///
    /// # Errors
    /// When that is not base64.
    pub fn bytes(&self) -> Result<Option<Vec<u8>>, DecodeError> {
        self.blob.as_deref().map(decode).transpose()
    }
}

/// Result of `listResources`.
#[derive(Debug, Deserialize)]
pub struct ListedResources {
    /// In the bridge's order.
    pub resources: Vec<ResourceSummary>,
}

/// Result of `listResourceTemplates`.
#[derive(Debug, Deserialize)]
pub struct ListedTemplates {
    /// In the bridge's order.
    pub templates: Vec<ResourceSummary>,
}

/// One resource or resource template.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSummary {
    /// Its uri, or the template of its uris.
    #[serde(alias = "uriTemplate")]
    pub uri: String,
    /// Its name.
    #[serde(default)]
    pub name: Option<String>,
    /// What it is.
    #[serde(default)]
    pub mime_type: Option<String>,
    /// What it says of itself.
    #[serde(default)]
    pub description: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str) -> CallResult {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn blocks_are_read_by_their_kind_and_odd_ones_kept() {
        let result = result(
            r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":"eA==","mimeType":"image/png"},
                {"type":"audio","data":"eA"},{"type":"resource","resource":{"uri":"a:b","blob":"eA=="}},
                {"type":"new","x":1e400},{"type":"text"},7,{"type":"text","text":"b"}]}"#,
        );
        let blocks: Vec<Block> = result.blocks().collect();
        assert!(matches!(&blocks[0], Block::Text(text) if text == "a"));
        assert!(matches!(&blocks[1], Block::Image(data) if data.bytes().unwrap() == b"x" && data.mime_type.is_some()));
        assert!(matches!(&blocks[2], Block::Audio(data) if data.bytes().unwrap() == b"x"));
        assert!(matches!(&blocks[3], Block::Resource(part) if part.bytes().unwrap().unwrap() == b"x"));
        assert!(matches!(&blocks[4], Block::Other(raw) if raw.get() == r#"{"type":"new","x":1e400}"#));
        assert!(matches!((&blocks[5], &blocks[6]), (Block::Other(_), Block::Other(_))));
        assert_eq!(result.text(), "a\nb");
    }

    #[test]
    fn null_is_as_nothing_in_a_result() {
        let nothing = result(r#"{"content":null,"isError":null,"structuredContent":null}"#);
        assert!(nothing.content.is_empty() && !nothing.is_error && nothing.structured_content.is_none());
        let some = result(r#"{"content":[null],"isError":true,"structuredContent":{"n":1e400}}"#);
        assert_eq!((some.content[0].get(), some.is_error), ("null", true));
        assert_eq!(some.structured_content.unwrap().get(), r#"{"n":1e400}"#);
    }

    #[test]
    fn a_structured_result_is_read_as_a_type() {
        let result = result(r#"{"content":[],"structuredContent":{"n":3}}"#);
        assert_eq!(result.structured::<Value>().unwrap().unwrap()["n"], 3);
        assert!(result.structured::<Vec<u8>>().is_err());
    }
}
