//! The host side of Footbridge.

pub mod audit;
pub mod budget;
pub mod catalogue;
pub mod demo_server;
pub mod digest;
pub mod limits;
pub mod redact;
pub mod schema;
pub mod secret;
pub mod servers;
