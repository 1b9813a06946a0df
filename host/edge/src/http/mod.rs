//! HTTP/1.1, by hyper, with every limit by us: connections, heads, bodies, and what answers are made of.
//!
//! It refuses to know sessions' calls and dialects: whoever serves a connection says how a request is answered.

pub(crate) mod accept;
pub(crate) mod body;
pub(crate) mod connections;
pub(crate) mod head;
pub(crate) mod notices;
pub(crate) mod refusal;
pub(crate) mod response;
pub(crate) mod serve;
pub(crate) mod stream;
pub(crate) mod when_woken;
