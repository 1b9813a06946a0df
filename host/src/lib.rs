//! Placeholder.
pub mod hidden;
pub mod keeper;
pub mod pty;
pub mod sandbox;
pub mod sys;
