//! Batches of messages, which revisions before 2025-06-18 have.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// Most messages of one: it counts as one message for the pace of a server.
const MAX_IN_BATCH: usize = 16;

/// The messages of a batch, if they are no more than one may have.
pub(super) struct Batch<'t>(pub(super) Vec<&'t RawValue>);

impl<'de> Deserialize<'de> for Batch<'de> {
    fn deserialize<D: Deserializer<'de>>(text: D) -> Result<Self, D::Error> {
        text.deserialize_seq(BatchVisitor)
    }
}

struct BatchVisitor;

impl<'de> Visitor<'de> for BatchVisitor {
    type Value = Batch<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "up to {MAX_IN_BATCH} messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
        let mut messages = Vec::new();
        while let Some(message) = all.next_element()? {
            // What comes after them is not looked at.
            if messages.len() == MAX_IN_BATCH {
                return Err(A::Error::invalid_length(messages.len() + 1, &self));
            }
            messages.push(message);
        }
        Ok(Batch(messages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_read_up_to_its_limit_and_no_further() {
        let read = |text: &str| serde_json::from_str::<Batch<'_>>(text).map(|Batch(all)| all.len()).ok();
        let of = |count: usize| format!("[{}]", vec!["{\"a\":[1]}"; count].join(","));
        assert_eq!((read("[]"), read(&of(1)), read(&of(MAX_IN_BATCH))), (Some(0), Some(1), Some(MAX_IN_BATCH)));
        assert_eq!((read(&of(MAX_IN_BATCH + 1)), read("[1,"), read("{}")), (None, None, None));
        let beyond = format!("{},]}}", of(MAX_IN_BATCH + 1));
        let error = serde_json::from_str::<Batch<'_>>(&beyond).err().unwrap();
        assert!(error.to_string().contains("up to 16 messages"), "what comes after is not looked at: {error}");
    }
}
