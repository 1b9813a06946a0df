//! What commands ask about MCP servers and pins, the same for every harness.

use super::{
    server::{ControlPeer, sent},
    wire::{AcceptedPin, ListServers, PinsRecorded, Refusal, RefusalKind, Restarted, ServerInfo, ServerRequest},
};
use footbridge_calls::{pins::Pins, record::Audit};
use footbridge_core::{catalogue::INSTRUCTIONS, digest::Digest};
use footbridge_mcp::{RestartAsked, ServerReport, ServerState, Servers};

/// What of a harness commands may look at and restart.
#[derive(Clone)]
pub(crate) struct Overseen {
    pub(crate) servers: Option<Servers>,
    pub(crate) pins: Option<Pins>,
    pub(crate) audit: Audit,
}

/// Carries a request out.
pub(crate) async fn handle(
    overseen: &Overseen,
    request: ServerRequest,
    peer: ControlPeer,
) -> Result<serde_json::Value, Refusal> {
    match request {
        ServerRequest::ListServers(ListServers {}) => sent(overseen.list().await),
        ServerRequest::RestartServer(asked) => overseen.restart(asked.name).and_then(sent),
        ServerRequest::PinsAccepted(told) => overseen.accepted(&told.accepted, peer).await.and_then(sent),
    }
}

impl Overseen {
    async fn list(&self) -> Vec<ServerInfo> {
        let mut all = Vec::new();
        for report in self.servers.as_ref().map(Servers::report).unwrap_or_default() {
            all.push(self.info(report).await);
        }
        all
    }

    async fn info(&self, report: ServerReport) -> ServerInfo {
        let (mut tools, mut changed) = (0, Vec::new());
        let (status, why) = match report.state {
            ServerState::Starting => ("starting", None),
            ServerState::Unavailable(why) => ("unavailable", Some(why.to_string())),
            ServerState::Ready(offered) => {
                tools = offered.entries().tools().len();
                let vetted = match &self.pins {
                    Some(pins) => pins.vet(&report.name, &offered).await.map(Some),
                    None => Ok(None),
                };
                match vetted {
                    Ok(vetted) => {
                        if let Some(vetted) = vetted {
                            changed.extend(vetted.changed().map(str::to_owned));
                            changed.extend(vetted.says_other().then(|| INSTRUCTIONS.to_owned()));
                        }
                        ("ready", None)
                    }
                    Err(why) => ("unavailable", Some(why.to_string())),
                }
            }
        };
        ServerInfo {
            name: report.name.to_string(),
            kind: report.kind.to_owned(),
            status: status.to_owned(),
            why,
            tools,
            changed,
            pid: report.pid,
            restarts: report.restarts,
            calls: report.in_flight,
            last_error: report.last_error,
        }
    }

    fn restart(&self, name: String) -> Result<Restarted, Refusal> {
        let asked = self.servers.as_ref().map_or(RestartAsked::Unknown, |servers| servers.restart(&name));
        match asked {
            RestartAsked::Restarted => {
                tracing::info!(server = name, "an MCP server is restarted by a command");
                Ok(Restarted { name })
            }
            RestartAsked::NothingToStart(why) => {
                Err(Refusal::new(RefusalKind::Failed, format!("there is nothing of {name:?} to start afresh: {why}")))
            }
            RestartAsked::Unknown => {
                let message =
                    format!("there is no server {name:?}: \"footbridge servers list\" shows those that there are");
                Err(Refusal::new(RefusalKind::NotFound, message))
            }
        }
    }

    /// Records what was accepted, if it is what the store says now.
    async fn accepted(&self, accepted: &[AcceptedPin], peer: ControlPeer) -> Result<PinsRecorded, Refusal> {
        let failed = |message: &str| Refusal::new(RefusalKind::Failed, message);
        let pins = self.pins.as_ref().ok_or_else(|| failed("this harness has no pins"))?;
        let operator = peer.operator();
        for AcceptedPin { server, tool, digest: text } in accepted {
            let digest: Digest =
                text.parse().map_err(|_| Refusal::new(RefusalKind::Invalid, format!("{text:?} is no digest")))?;
            match pins.are(server, tool, digest).await {
                Ok(true) => self.audit.pin_accepted(server, tool, digest, &operator),
                Ok(false) => {
                    return Err(failed("the store of this harness has no such pin: it has another state folder"));
                }
                Err(error) => return Err(failed(&error.to_string())),
            }
        }
        Ok(PinsRecorded { recorded: accepted.len() })
    }
}
