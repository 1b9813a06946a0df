//! Whether a session that is there is as it is asked for again, and if not, in what it differs. Pure: what is kept and
//! what is asked for in, words out.

use std::{collections::BTreeSet, time::Duration};

use footbridge_proto::endpoint::{Endpoint, TcpEndpoint};

use super::asked::AskedSession;
use crate::store::StoredSession;
use footbridge_core::{
    limits::{
        overrides::{Overrides, is_budget},
        table::Unit,
    },
    names::{Labels, ServerName},
};
use footbridge_edge::listener::{Access, Listen};

/// What both sides say.
struct Said<'a> {
    policy: &'a str,
    ttl: Option<Duration>,
    pid: Option<i32>,
    labels: &'a Labels,
    limits: &'a Overrides,
    services: BTreeSet<&'a ServerName>,
    listens: &'a [Listen],
}

/// What differs, flag by flag, with both values.
pub(super) fn differences(stored: &StoredSession, wanted: &AskedSession) -> Vec<String> {
    // Those of the policy are there whether they are named or not.
    let with_policy = |own| BTreeSet::iter(own).chain(wanted.policy.services()).collect();
    let there = Said {
        policy: &stored.policy,
        ttl: stored.expires.map(|at| at.duration_since(stored.created).unwrap_or_default()),
        pid: stored.process.as_ref().map(|process| process.pid),
        labels: &stored.labels,
        limits: &stored.limits,
        services: with_policy(&stored.services),
        listens: &stored.listens,
    };
    let asked = Said {
        policy: wanted.policy.name(),
        ttl: wanted.ttl,
        pid: wanted.process.as_ref().map(|(process, _)| process.pid),
        labels: &wanted.labels,
        limits: &wanted.limits,
        services: with_policy(&wanted.services),
        listens: &wanted.listens,
    };
    // A port that the system chose is as good as any other.
    let any_port = asked.listens.iter().any(|listen| matches!(&listen.endpoint, Endpoint::Tcp(tcp) if tcp.port == 0));
    let both = there.flags(any_port).into_iter().zip(asked.flags(any_port));
    let differing = both.filter(|((_, there), (_, asked))| there != asked);
    differing.map(|((flag, there), (_, asked))| format!("{flag} is {there}, not {asked}")).collect()
}

impl Said<'_> {
    /// By the flags of `session create`.
    fn flags(&self, any_port: bool) -> [(&'static str, String); 10] {
        let is_file = |listen: &&Listen| matches!(listen.endpoint, Endpoint::Unix(_) | Endpoint::VsockMux(_));
        let none = Access::default();
        let access = self.listens.iter().find(is_file).map_or(&none, |listen| &listen.access);
        let pairs =
            |all: &mut dyn Iterator<Item = (String, String)>| list(all.map(|(key, value)| format!("{key}={value}")));
        [
            ("--policy", self.policy.to_owned()),
            ("--ttl", self.ttl.map_or_else(nothing, time)),
            ("--with-pid", self.pid.map_or_else(nothing, |pid| pid.to_string())),
            ("--label", pairs(&mut self.labels.clone().into_iter())),
            // Budgets are the operator's to change while it is open.
            ("--limit", pairs(&mut self.limits.written().into_iter().filter(|(name, _)| !is_budget(name)))),
            ("--service", list(self.services.iter().map(ToString::to_string))),
            ("--listen", list(self.listens.iter().map(|listen| place(listen, any_port)))),
            ("--socket-mode", format!("{:04o}", access.mode)),
            ("--socket-owner", access.owner.map_or_else(nothing, |owner| owner.to_string())),
            ("--allow-uid", list(access.allowed_uids.iter().flatten().map(ToString::to_string))),
        ]
    }
}

fn nothing() -> String {
    "none".to_owned()
}

fn time(time: Duration) -> String {
    Unit::Time.show(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// In an order of their own: it does not matter how they were asked for.
fn list(all: impl Iterator<Item = String>) -> String {
    let all: BTreeSet<String> = all.collect();
    if all.is_empty() { nothing() } else { all.into_iter().collect::<Vec<_>>().join(" ") }
}

fn place(listen: &Listen, any_port: bool) -> String {
    let endpoint = match &listen.endpoint {
        Endpoint::Tcp(tcp) if any_port => Endpoint::Tcp(TcpEndpoint { port: 0, ..*tcp }),
        other => other.clone(),
    };
    listen.peer_cid.map_or_else(|| endpoint.to_string(), |cid| format!("{endpoint} (--peer-cid {cid})"))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::control::wire::CreateSession;
    use footbridge_core::{digest::Digest, gate::Policy};

    fn asked(change: impl FnOnce(&mut CreateSession)) -> AskedSession {
        let mut asked = CreateSession {
            name: "one".into(),
            policy: "open".into(),
            socket_mode: 0o600,
            listen: vec!["unix:/x".into(), "tcp:127.0.0.1:0".into()],
            ttl_ms: Some(3_600_000),
            labels: [("team".into(), "a".into())].into(),
            ..CreateSession::default()
        };
        change(&mut asked);
        AskedSession::read(&asked, Policy::open()).unwrap()
    }

    /// What is kept of it: on the port that the system chose.
    fn kept(asked: &AskedSession) -> StoredSession {
        let created = SystemTime::UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_700);
        let chosen = |listen: &Listen| match &listen.endpoint {
            Endpoint::Tcp(tcp) => {
                Listen { endpoint: Endpoint::Tcp(TcpEndpoint { port: 4711, ..*tcp }), ..listen.clone() }
            }
            _ => listen.clone(),
        };
        StoredSession {
            name: asked.name.clone(),
            token: Digest::of("t"),
            created,
            expires: asked.ttl.map(|ttl| created + ttl),
            policy: asked.policy.name().to_owned(),
            labels: asked.labels.clone(),
            limits: asked.limits.clone(),
            services: asked.services.clone(),
            listens: asked.listens.iter().map(chosen).collect(),
            process: None,
            spent: Default::default(),
            unread: None,
        }
    }

    #[test]
    fn the_same_again_differs_in_nothing_and_everything_else_is_named() {
        let there = kept(&asked(|_| {}));
        let differs = |change: fn(&mut CreateSession)| differences(&there, &asked(change)).join("; ");
        assert_eq!(differs(|asked| asked.listen.reverse()), "");
        assert_eq!(differs(|asked| asked.ttl_ms = Some(60_000)), "--ttl is 1h, not 1m");
        assert_eq!(differs(|asked| asked.ttl_ms = None), "--ttl is 1h, not none");
        assert_eq!(differs(|asked| asked.labels.clear()), "--label is team=a, not none");
        assert_eq!(
            differs(|asked| asked.limits = [("calls.burst".into(), "5".into())].into()),
            "--limit is none, not calls.burst=5"
        );
        assert_eq!(differs(|asked| asked.services = vec!["s".into()]), "--service is none, not s");
        assert_eq!(
            differs(|asked| asked.listen = vec!["unix:/y".into(), "tcp:127.0.0.1:5".into()]),
            "--listen is tcp:127.0.0.1:4711 unix:/x, not tcp:127.0.0.1:5 unix:/y"
        );
        assert_eq!(
            differs(|asked| (asked.socket_mode, asked.socket_owner, asked.allow_uids) = (0o666, Some(7), vec![8])),
            "--socket-mode is 0600, not 0666; --socket-owner is none, not 7; --allow-uid is none, not 8"
        );
        let closed = StoredSession { policy: "ask".into(), ..there.clone() };
        assert_eq!(differences(&closed, &asked(|_| {})), ["--policy is ask, not open"]);
    }
}
