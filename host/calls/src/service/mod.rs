//! Requests to services, which are named HTTP origins: a kind of call whose body and answer pass as they come.
//!
//! They go through the stages that all calls go through, as [`Stages::forward`](crate::call::Stages::forward) has them in
//! order. What differs is that the answer begins once its intent is on disk and its head is there, and that its outcome
//! is recorded when its last byte passed: until then an [`OpenExchange`] stands for it, and one that is dropped is
//! recorded as cut off. What carries requests is a trait, [`Forward`]; this crate refuses to know HTTP.

mod exchange;
mod forward;

pub use crate::service_call::{HeldRequest, RequestName, ServiceCall, ServiceRequest, ShownBody};
pub use exchange::OpenExchange;
pub use forward::{BegunAnswer, Forward, KnownService, Waiter, WholeRequest, still_passes};
