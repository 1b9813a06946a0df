//! Services: named HTTP origins whose credential stays on the host, as what carries admitted requests there.
//!
//! [`Services`] is the handle of all of them, and the [`Forward`](footbridge_calls::service::Forward) of the stages: a
//! request comes in as an [`Outgoing`](footbridge_calls::provider::Outgoing), which only an admission holds.
//!
//! What a service is: `spec`, and [`preset`] for some that are known; `service` asks one of them. Connections: `connect`
//! where they may lead, `shares` what of them, and of names that are looked up, each session has, `proxy` what may be on
//! the way, `origin_stream` what may come over one, `heard_out` what is still read of one whose origin is gone, `client`
//! whose they are, `connections` how they are made and kept, `connection_task` who carries them on. What crosses: `request`
//! and `answer` of a head, `upload` and `answer_body` how bodies pass, `pace` how fast, `passing` what of an answer does,
//! `usage` what an answer says of a model's use, `events` where one that has to end early may, `answered` what goes on
//! behind an answer. `tunnel` opens connections to allowed hosts, which are a service of the name [`TUNNELS`], `greeting`
//! reads what has to come first in one, `websocket` has a request become one, and `carried` has the bytes of both pass.
//!
//! Failure paths, each an outcome: no credential, no address, a private one, a refused connection, no valid certificate
//! (nothing was sent); silence, an end without an answer, a body over its limit (unknown). Nothing is sent twice: a request
//! is given another connection only where not one byte of it was written.
//!
//! It refuses to know guests, tokens and decisions.

mod answer;
mod answer_body;
mod answered;
mod body_digest;
mod carried;
mod client;
mod connect;
mod connection_task;
mod connections;
mod credential;
mod environment;
mod events;
mod greeting;
mod heard_out;
mod media;
mod no_connection;
mod origin_stream;
mod pace;
mod passing;
mod preset;
mod proxy;
mod request;
mod service;
mod services;
mod shape;
mod shares;
mod spec;
mod stream_member;
mod told;
mod tunnel;
mod upload;
mod usage;
mod websocket;
mod windows;

pub use answer::{ServiceAnswer, ServiceBody};
pub use answer_body::{AnswerBody, AnswerPart, BrokenAnswer};
pub use answered::Behind;
pub use carried::CarryOver;
pub use credential::{Credential, bare};
pub use environment::{EnvironmentNote, environment, environment_notes};
pub use footbridge_core::service::TUNNELS;
pub use no_connection::NoConnection;
pub use preset::{PRESETS, Preset};
pub use proxy::{BadProxy, ServiceProxy};
pub use request::{Parcel, authorized_by, credentials, may_hold_key};
pub use services::{HostCheck, Services, ServicesChanged};
pub use shape::{ErrorShape, Said};
pub use spec::{Authority, BadService, GuestAddress, NoCredential, ServiceOrigin, ServiceSpec, authorities};
pub use tunnel::{Tunnel, Tunnels};
pub use upload::Upload;
pub use websocket::WebSocket;
