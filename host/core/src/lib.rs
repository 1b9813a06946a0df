//! Values and pure decisions of the Footbridge host.
//!
//! What everything else speaks in: names, limits, digests, secrets and their redaction, catalogues of what servers
//! offer, schemas, and the policy that decides about a call. A function here gives the same answer for the same values.
//!
//! It refuses to know clocks, sockets, files and tasks; there is one exception, [`budget`], whose holders may wait.

pub mod budget;
pub mod catalogue;
pub mod digest;
pub mod gate;
pub mod hosts;
pub mod human;
pub mod limits;
pub mod names;
pub mod policy_file;
pub mod random;
pub mod redact;
pub mod schema;
pub mod secret;
pub mod service;
pub mod settings_file;
pub mod sparingly;
