//! JSON-RPC, as the dialects of it share it: envelopes and parameters, read strictly, and answers that copy nothing of
//! what a server wrote.

mod answer;
mod envelope;
mod events;
mod number;
mod params;
mod refused;

pub(crate) use answer::RpcAnswer;
pub(crate) use envelope::{Envelope, envelope_error, read};
pub(crate) use events::text_of_event;
pub(crate) use number::number;
pub(crate) use params::{call_meta, completed, not_named, object, required};
pub(crate) use refused::code_of;
