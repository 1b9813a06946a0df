//! A session as asked for, made sense of: names, addresses, times and processes are checked before anything is made.

use std::{collections::BTreeSet, io, sync::Arc, time::Duration};

use footbridge_proto::endpoint::{Endpoint, SocketPath};

use super::folder::SessionFolderError;
use crate::control::wire::{CreateSession, Refusal, RefusalKind};
use footbridge_core::{
    gate::Policy,
    limits::overrides::Overrides,
    names::{Labels, ServerName, SessionName},
};
use footbridge_edge::listener::{Access, Listen, Listeners};
use footbridge_processes::process::{ProcessIdentity, ProcessWatch, is_gone};

/// Longest life of a session.
const MAX_TTL: Duration = Duration::from_secs(3650 * 24 * 3600);

/// Listeners of one session, users and virtual machines named for it.
const MAX_NAMED: usize = 64;

/// Bytes of all labels of one session.
const MAX_LABELS: usize = 8 * 1024;

/// What was asked for, checked.
#[derive(Debug)]
pub(super) struct AskedSession {
    pub(super) name: SessionName,
    pub(super) policy: Arc<Policy>,
    pub(super) labels: Labels,
    pub(super) limits: Overrides,
    /// Besides those of the policy.
    pub(super) services: BTreeSet<ServerName>,
    pub(super) ttl: Option<Duration>,
    pub(super) process: Option<(ProcessIdentity, ProcessWatch)>,
    pub(super) listens: Vec<Listen>,
}

/// Whether `footbridge run` would call its session that: whoever names one means the run.
fn is_of_run(name: &str) -> bool {
    let process = name.strip_prefix("run-").unwrap_or_default();
    !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit())
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Invalid, message)
}

impl AskedSession {
    /// Makes sense of a request.
    pub(super) fn read(asked: &CreateSession, policy: Arc<Policy>) -> Result<Self, Refusal> {
        let name: SessionName = asked.name.parse().map_err(|error| invalid(format!("{:?}: {error}", asked.name)))?;
        if is_of_run(name.as_str()) {
            return Err(invalid(format!("{name} is what the session of a run is called: choose another name")));
        }
        let bytes: usize = asked.labels.iter().map(|(key, value)| key.len() + value.len()).sum();
        if bytes > MAX_LABELS {
            return Err(invalid(format!("the labels have {bytes} bytes: at most {MAX_LABELS} are kept")));
        }
        if asked.listen.len().max(asked.allow_uids.len()).max(asked.peer_cids.len()).max(asked.services.len())
            > MAX_NAMED
        {
            return Err(invalid(format!(
                "at most {MAX_NAMED} of --listen, --allow-uid, --peer-cid and --service each"
            )));
        }
        Ok(Self {
            services: asked.services.iter().map(|name| service(name)).collect::<Result<_, _>>()?,
            policy,
            labels: asked.labels.clone(),
            limits: Overrides::read(&asked.limits).map_err(|error| invalid(format!("--limit: {error}")))?,
            ttl: asked.ttl_ms.map(ttl).transpose()?,
            process: asked.pid.map(process).transpose()?,
            listens: listens(asked)?,
            name,
        })
    }

    /// Gives a session without an endpoint this socket, in a folder of its own.
    pub(super) fn place(
        &mut self,
        asked: &CreateSession,
        socket: impl FnOnce(&SessionName) -> Result<SocketPath, SessionFolderError>,
    ) -> Result<(), Refusal> {
        if self.listens.is_empty() {
            let socket = socket(&self.name).map_err(|error| Refusal::new(RefusalKind::Failed, error.to_string()))?;
            self.listens.push(Listen { access: access(asked), ..Listen::at(Endpoint::Unix(socket)) });
        }
        Ok(())
    }
}

fn service(name: &str) -> Result<ServerName, Refusal> {
    name.parse().map_err(|error| invalid(format!("--service {name:?}: {error}")))
}

fn ttl(millis: u64) -> Result<Duration, Refusal> {
    let ttl = Duration::from_millis(millis);
    if ttl.is_zero() || ttl > MAX_TTL {
        return Err(invalid("--ttl is more than nothing and at most 3650d"));
    }
    Ok(ttl)
}

fn process(pid: i32) -> Result<(ProcessIdentity, ProcessWatch), Refusal> {
    let gone = || invalid(format!("there is no process {pid}: --with-pid names one that runs"));
    let failed =
        |error: io::Error| Refusal::new(RefusalKind::Failed, format!("process {pid} cannot be watched: {error}"));
    let identity = match ProcessIdentity::of(pid) {
        Err(error) if is_gone(&error) => return Err(gone()),
        other => other.map_err(failed)?,
    };
    let handle = identity.open().map_err(failed)?.ok_or_else(gone)?;
    Ok((identity, handle.watch().map_err(failed)?))
}

fn listens(asked: &CreateSession) -> Result<Vec<Listen>, Refusal> {
    let mut listens = Vec::new();
    for text in &asked.listen {
        let endpoint: Endpoint = text.parse().map_err(|error| invalid(format!("--listen {text}: {error}")))?;
        if Listeners::needs_peer_cid(&endpoint) && !asked.peer_cids.is_empty() {
            let one = |cid: &u32| Listen { peer_cid: Some(*cid), ..Listen::at(endpoint.clone()) };
            listens.extend(asked.peer_cids.iter().map(one));
        } else {
            listens.push(Listen { access: access(asked), ..Listen::at(endpoint) });
        }
    }
    if !asked.peer_cids.is_empty() && !listens.iter().any(|listen| listen.peer_cid.is_some()) {
        return Err(invalid(
            "--peer-cid goes with --listen vsock:..., or with an inherited vsock socket, and there is none",
        ));
    }
    Ok(listens)
}

fn access(asked: &CreateSession) -> Access {
    let allowed: BTreeSet<u32> = asked.allow_uids.iter().copied().collect();
    let allowed_uids = if allowed.is_empty() { None } else { Some(allowed) };
    Access { mode: asked.socket_mode & 0o777, owner: asked.socket_owner, allowed_uids }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(change: impl FnOnce(&mut CreateSession)) -> Result<AskedSession, Refusal> {
        let mut asked =
            CreateSession { name: "one".into(), policy: "open".into(), socket_mode: 0o600, ..CreateSession::default() };
        change(&mut asked);
        AskedSession::read(&asked, Policy::open())
    }

    fn refused(change: impl FnOnce(&mut CreateSession), part: &str) {
        let refusal = asked(change).unwrap_err();
        assert!(refusal.message.contains(part), "{part}: {refusal}");
    }

    #[tokio::test]
    async fn what_makes_no_sense_is_named() {
        refused(|asked| asked.name = "A".into(), "\"A\"");
        refused(|asked| asked.ttl_ms = Some(0), "--ttl");
        refused(|asked| asked.ttl_ms = Some(u64::MAX), "--ttl");
        refused(|asked| asked.pid = Some(i32::MAX), "no process 2147483647");
        refused(|asked| asked.pid = Some(-1), "no process -1");
        refused(|asked| asked.listen = vec!["udp:1".into()], "--listen udp:1");
        refused(|asked| asked.peer_cids = vec![4], "--peer-cid");
        refused(|asked| asked.allow_uids = (0..65).collect(), "at most 64");
        refused(|asked| asked.limits = [("calls.burst".into(), "0".into())].into(), "--limit: calls.burst may be 1 to");
        refused(|asked| asked.labels = [("k".to_owned(), "v".repeat(9000))].into(), "labels");
    }

    #[tokio::test]
    async fn each_virtual_machine_gets_a_listener_and_others_keep_theirs() {
        let session = asked(|asked| {
            asked.listen = vec!["vsock:any:7179".into(), "unix:/x".into()];
            asked.peer_cids = vec![4, 5];
            asked.socket_mode = 0o666;
            asked.allow_uids = vec![7, 7];
            asked.pid = Some(std::process::id().cast_signed());
        });
        let session = session.unwrap();
        let cids: Vec<_> = session.listens.iter().map(|listen| listen.peer_cid).collect();
        assert_eq!(cids, [Some(4), Some(5), None]);
        let unix = &session.listens[2].access;
        assert_eq!((unix.mode, unix.allowed_uids.as_ref().unwrap().len()), (0o666, 1));
        assert!(session.process.is_some());
    }
}
