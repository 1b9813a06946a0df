//! Calls of the operator without a daemon: a server is started, listed or called once, and ended.
//!
//! `entries` reads which servers are written down, and nothing more; `lists` keeps what each offered last, so that help
//! and completion start nothing; `listing` starts servers to ask them; `call` carries one call out, through the stages
//! that a guest's call goes through, and `via` has a running harness do it; `terminal` asks the person in front of it;
//! `flags` gives a tool's flags to clap; `failure` is every way this can end.
//!
//! It refuses to know what is printed, and decides nothing: the operator's calls have a policy like all others.

pub(crate) mod call;
pub(crate) mod entries;
pub(crate) mod failure;
pub(crate) mod flags;
pub(crate) mod listing;
pub(crate) mod lists;
pub(crate) mod running;
pub(crate) mod terminal;
pub(crate) mod via;
