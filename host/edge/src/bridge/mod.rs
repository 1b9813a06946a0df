//! The bridge's JSON-RPC.

pub(crate) mod listings;
pub(crate) mod rpc;
pub(crate) mod search;
pub(crate) mod wording;
