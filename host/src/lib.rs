//! The host side of Footbridge.

pub mod audit;
pub mod budget;
pub mod catalogue;
pub mod digest;
pub mod hidden;
pub mod keeper;
pub mod limits;
pub mod pty;
pub mod redact;
pub mod sandbox;
pub mod schema;
pub mod secret;
pub mod servers;
pub mod sys;
