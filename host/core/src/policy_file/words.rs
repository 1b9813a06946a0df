//! One word, or a list of them.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IntoDeserializer, SeqAccess, Visitor, value::StrDeserializer},
};

/// At least one word.
#[derive(Debug, Clone)]
pub(super) struct Words<T>(pub(super) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Words<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
            type Value = Words<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Words<T>, E> {
                let one: StrDeserializer<'_, E> = text.into_deserializer();
                T::deserialize(one).map(|one| Words(vec![one]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Words<T>, A::Error> {
                let mut all = Vec::new();
                while let Some(one) = seq.next_element()? {
                    all.push(one);
                }
                if all.is_empty() { Err(A::Error::custom("an empty list never matches")) } else { Ok(Words(all)) }
            }
        }
        deserializer.deserialize_any(OneOrMany(PhantomData))
    }
}
