//! MCP servers.
mod outcome;
mod spec;
use std::{sync::Arc, time::Duration};

use crate::{audit::Admitted, catalogue::Catalogue};
pub use outcome::*;
pub use spec::*;
use tokio_util::sync::CancellationToken;
#[derive(Clone, Debug)]
pub struct Servers(Arc<Vec<(ServerName, Arc<Catalogue>)>>);
pub enum ServerState {
    Starting,
    Ready(Arc<Catalogue>),
    Unavailable(Arc<str>),
}
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub Arc<str>);
impl Servers {
    pub fn names(&self) -> impl Iterator<Item = &ServerName> {
        self.0.iter().map(|(n, _)| n)
    }
    pub fn state(&self, _name: &str) -> Option<ServerState> {
        None
    }
    pub async fn ready(&self, _name: &str, _wait: Duration) -> Option<Result<Arc<Catalogue>, Unavailable>> {
        None
    }
    pub async fn execute(&self, admitted: Admitted, _cancel: &CancellationToken) -> Executed {
        Executed::by(admitted, |_| async { Outcome::NotSent(NotSent::Busy) }).await
    }
}
