//! An object's members, each as its own text.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The members of an object in their order, each as its text.
#[derive(Debug)]
pub struct Members<'a>(pub Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl<'a> Members<'a> {
    /// The first member of this name.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, raw)| *raw)
    }

    /// The same, where it is a text.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<String> {
        serde_json::from_str(self.get(key)?.get()).ok()
    }

    /// Whether it is an object.
    #[must_use]
    pub fn is_object(&self, key: &str) -> bool {
        self.get(key).is_some_and(|raw| raw.get().starts_with('{'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_their_text() {
        let read: Members<'_> = serde_json::from_str(r#"{"b":1.50,"a":"x","o":{ "y" : 1e400 }}"#).unwrap();
        let all: Vec<(&str, &str)> = read.0.iter().map(|(name, raw)| (name.as_str(), raw.get())).collect();
        assert_eq!(all, [("b", "1.50"), ("a", "\"x\""), ("o", r#"{ "y" : 1e400 }"#)]);
        assert_eq!((read.text("a"), read.text("b"), read.text("none")), (Some("x".to_owned()), None, None));
        assert!(read.is_object("o") && !read.is_object("a"));
        assert!(serde_json::from_str::<Members<'_>>("[]").is_err());
    }
}
