//! Connections that speak HTTP/1.1, by hyper, and every limit by us.

pub(crate) mod accept;
pub(crate) mod body;
pub(crate) mod connections;
pub(crate) mod head;
pub(crate) mod overload;
pub(crate) mod stream;
