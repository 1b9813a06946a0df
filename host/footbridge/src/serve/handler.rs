//! What commands ask of the daemon, one line a method.

use std::path::PathBuf;

use footbridge_proto::endpoint::{Endpoint, VsockCid, VsockEndpoint};
use tokio_util::sync::CancellationToken;

use super::{
    kept::Kept,
    sessions::{GivenSession, Sessions, no_such},
};
use crate::{
    control::{
        approvals,
        server::{ControlPeer, Handler, Notices, sent},
        servers,
        wire::{
            BudgetInfo, ControlRequest, Created, DaemonRequest, EnsureSession, HarnessInfo, HarnessRequest, Hello,
            ListSessions, ListenerInfo, Refusal, RefusalKind, ReloadConfig, Revoked, SessionInfo, SessionRequest,
        },
    },
    harness::{SessionView, budgets_by_control::NewBudgets, calls_by_control},
};
use footbridge_core::{digest::digest_text, human::timestamp, names::SessionName};
use footbridge_edge::listener::{Listen, address_of};

/// Who is here, and what is wrong.
fn hello(sessions: &Sessions) -> HarnessInfo {
    let (reload_failed, record_failed) = (sessions.0.reloader.failed(), sessions.harness().record_failed());
    HarnessInfo { reload_failed, record_failed, ..HarnessInfo::this("serve") }
}

impl Handler for Sessions {
    async fn handle(
        &self,
        request: ControlRequest,
        peer: ControlPeer,
        notices: Notices,
    ) -> Result<serde_json::Value, Refusal> {
        let harness = self.harness();
        match request {
            ControlRequest::Harness(HarnessRequest::Hello(Hello { .. })) => sent(hello(self)),
            ControlRequest::Daemon(asked) => self.daemon(asked, peer).await,
            ControlRequest::Session(SessionRequest::LimitSession(asked)) => {
                self.limit(&peer.operator(), NewBudgets::read(&asked)?).await.and_then(sent)
            }
            ControlRequest::Approval(asked) => {
                let book = harness.approvals();
                approvals::handle(book, book.asks_people(), asked, peer)
            }
            ControlRequest::Server(asked) => servers::handle(&harness.overseen(), asked, peer).await,
            ControlRequest::Tool(asked) => {
                calls_by_control::handle(&harness.operator_calls(), asked, peer, notices).await
            }
        }
    }
}

impl Sessions {
    async fn daemon(&self, asked: DaemonRequest, peer: ControlPeer) -> Result<serde_json::Value, Refusal> {
        match asked {
            DaemonRequest::ReloadConfig(ReloadConfig {}) => {
                let stop = CancellationToken::new();
                let _stopped_in_the_end = stop.clone().drop_guard();
                sent(self.reload(stop).await)
            }
            DaemonRequest::CreateSession(asked) => {
                self.create(&asked).await.map(|given| created(self, given)).and_then(sent)
            }
            DaemonRequest::EnsureSession(EnsureSession(asked)) => {
                self.ensure(&asked).await.map(|given| created(self, given)).and_then(sent)
            }
            DaemonRequest::ListSessions(ListSessions {}) => sent(self.list().await),
            DaemonRequest::ShowSession(asked) => self.show(&name(&asked.name)?).await.and_then(sent),
            DaemonRequest::RotateSession(asked) => self
                .rotate(&name(&asked.name)?, asked.replaces.as_deref())
                .await
                .map(|given| created(self, given))
                .and_then(sent),
            DaemonRequest::RevokeSession(asked) => {
                self.revoke(&peer.operator(), &name(&asked.name)?).await?;
                sent(Revoked { name: asked.name })
            }
        }
    }
}

fn name(text: &str) -> Result<SessionName, Refusal> {
    text.parse().map_err(|error| Refusal::new(RefusalKind::Invalid, format!("{text:?}: {error}")))
}

fn created(sessions: &Sessions, given: GivenSession) -> Created {
    let GivenSession { stored, token, was_there } = given;
    Created {
        environment: token.as_ref().map(|token| sessions.environment(&stored, token)).unwrap_or_default(),
        name: stored.name.to_string(),
        was_there,
        token_digest: token.is_none().then(|| digest_text(stored.token)),
        token: token.map(|token| token.expose().to_owned()),
        folder: sessions.own_folder(&stored).map(|folder| folder.display().to_string()),
        endpoints: stored.listens.iter().map(|listen| to_connect(listen).to_string()).collect(),
        expires: stored.expires.map(timestamp),
        notes: sessions.notes(&stored),
    }
}

/// Where the guest connects to.
fn to_connect(listen: &Listen) -> Endpoint {
    let from_a_guest = |port| Endpoint::Vsock(VsockEndpoint { cid: VsockCid::Host, port });
    match address_of(&listen.endpoint) {
        // 1 is this machine itself, by the loopback transport.
        Endpoint::Vsock(vsock) if listen.peer_cid == Some(1) => {
            Endpoint::Vsock(VsockEndpoint { cid: VsockCid::Local, port: vsock.port })
        }
        Endpoint::Vsock(vsock) => from_a_guest(vsock.port),
        Endpoint::VsockMux(mux) => from_a_guest(mux.port()),
        other => other,
    }
}

impl Sessions {
    async fn list(&self) -> Vec<SessionInfo> {
        let views = self.0.harness.sessions();
        let all = self.0.kept.lock().await;
        all.values().map(|kept| info(kept, &views, self.own_folder(&kept.stored))).collect()
    }

    async fn show(&self, name: &SessionName) -> Result<SessionInfo, Refusal> {
        let views = self.0.harness.sessions();
        let all = self.0.kept.lock().await;
        let kept = all.get(name).ok_or_else(|| no_such(name))?;
        Ok(info(kept, &views, self.own_folder(&kept.stored)))
    }
}

fn info(kept: &Kept, views: &[SessionView], folder: Option<PathBuf>) -> SessionInfo {
    let stored = &kept.stored;
    let view = views.iter().find(|view| view.spec.name == stored.name);
    let listener = |(at, listen): (usize, &Listen)| ListenerInfo {
        endpoint: listen.endpoint.to_string(),
        mode: matches!(listen.endpoint, Endpoint::Unix(_) | Endpoint::VsockMux(_))
            .then(|| format!("{:04o}", listen.access.mode)),
        owner: listen.access.owner,
        allow_uids: listen.access.allowed_uids.iter().flatten().copied().collect(),
        peer_cid: listen.peer_cid,
        broken: kept.broken.get(&at).cloned(),
    };
    SessionInfo {
        name: stored.name.to_string(),
        policy: stored.policy.clone(),
        created: timestamp(stored.created),
        expires: stored.expires.map(timestamp),
        pid: stored.process.as_ref().map(|process| process.pid),
        labels: stored.labels.clone(),
        limits: stored.limits.written(),
        services: view.map_or(&stored.services, |view| &view.services).iter().map(ToString::to_string).collect(),
        folder: folder.map(|folder| folder.display().to_string()),
        listeners: stored.listens.iter().enumerate().map(listener).collect(),
        closed: kept.closed.clone(),
        connections: view.map_or(0, |view| view.connections),
        calls: view.map_or(0, |view| view.calls),
        budgets: view.map(|view| BudgetInfo::all(&view.spent)).unwrap_or_default(),
    }
}
