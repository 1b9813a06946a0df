//! The sessions of the daemon: made, kept in the store, and ended. Which are open, and when their time is over, is the
//! harness's to know; here is what the store has of each, and what is wrong with it.
//!
//! A session is in the store before its token is shown, and out of the store before its end is reported. Its states:
//! open on all its listeners; open on some, while the others are tried again (`retry`); closed, where it cannot be
//! opened at all, and the harness holds its name. It ends when it is revoked, when its time is over, or when its process
//! is gone.
//!
//! Failure paths: a session that cannot be stored is not created. One that cannot be taken out of the store is ended
//! all the same, stays in the list as closed, and whoever revoked it is told; that is tried again until it is done, and
//! what is left of it at the end of the daemon is an error of its own. Whoever asked for one that was stored and could not
//! be opened is told as well.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use footbridge_proto::{endpoint::Endpoint, token::Token, vars};
use tokio::{
    sync::Mutex,
    task::spawn_blocking,
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    as_asked,
    asked::AskedSession,
    folder::{self, NewToken},
    kept::{AllKept, Kept},
    reload::Reloader,
    spent, supervisor,
};
use crate::{
    approvers::NobodyToAsk,
    config::Config,
    control::{
        client::ControlClient,
        wire::{CreateSession, LimitedSession, Refusal, RefusalKind, ReloadReport},
    },
    harness::{Harness, Reloaded, budgets_by_control::NewBudgets},
    store::{Problem, StateStore, StoreError, StoredSession},
};
use footbridge_calls::{
    operator::Operator,
    session::{BudgetsSpent, Ended, SessionSpec},
};
use footbridge_core::{
    digest::Digest,
    limits::overrides::Overrides,
    names::{ServerName, SessionName},
    random::new_token,
};
use footbridge_edge::listener::{BindError, Listen, Listener, Listeners, address_of};
use footbridge_processes::process::ProcessWatch;
use footbridge_services::{GuestAddress, ServiceSpec, environment, environment_notes};

/// The longest pause before what could not be taken out of the store is tried again: each try may wait for it.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long the end waits for folders that are being removed.
const SWEPT: Duration = Duration::from_secs(2);

/// Sessions of one daemon: each has places for connections reserved, and all of them fit into one answer.
pub(crate) const MAX_SESSIONS: usize = 1000;

/// A session for whoever asked for it.
pub(super) struct GivenSession {
    pub(super) stored: StoredSession,
    /// Its token; of one that was there only where its folder still has it.
    pub(super) token: Option<Token>,
    /// Whether it was there before.
    pub(super) was_there: bool,
}

/// A token that its session's folder does not take.
#[derive(Debug, thiserror::Error)]
#[error("the token cannot be put into the folder {}: {source}", folder.display())]
struct TokenNotPut {
    folder: PathBuf,
    source: io::Error,
}

/// Sessions that have ended, and that a daemon would find in the store.
#[derive(Debug, thiserror::Error)]
#[error(
    "sessions that have ended are still in the store ({}): {source}. The next daemon opens again what was revoked of them: once \
     that is mended, start it, and revoke them then",
    names.iter().map(SessionName::as_str).collect::<Vec<_>>().join(", ")
)]
struct StillStored {
    names: Vec<SessionName>,
    source: StoreError,
}

/// All sessions of one daemon. Clones are the same.
#[derive(Clone)]
pub(super) struct Sessions(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) harness: Harness,
    /// Those of the configuration as it was read last.
    pub(super) listeners: Listeners,
    pub(super) store: Arc<dyn StateStore>,
    pub(super) runtime: PathBuf,
    pub(super) reloader: Reloader,
    /// Limits that the settings name: those no session has otherwise than there, alone or not.
    named_limits: BTreeSet<&'static str>,
    /// Held while a session is made, changed or ended: one after the other.
    pub(super) kept: Mutex<AllKept>,
    pub(super) tasks: TaskTracker,
    /// What removes folders, which a guest may keep busy.
    sweeps: TaskTracker,
    pub(super) shutdown: CancellationToken,
}

impl Sessions {
    pub(super) fn new(
        harness: Harness,
        store: Arc<dyn StateStore>,
        runtime: &Path,
        reloader: Reloader,
        named_limits: BTreeSet<&'static str>,
    ) -> Self {
        Self(Arc::new(Inner {
            listeners: harness.listeners().clone().with_own_folder(runtime.to_owned()),
            harness,
            store,
            runtime: runtime.to_owned(),
            reloader,
            named_limits,
            kept: Mutex::default(),
            tasks: TaskTracker::new(),
            sweeps: TaskTracker::new(),
            shutdown: CancellationToken::new(),
        }))
    }

    pub(super) fn harness(&self) -> &Harness {
        &self.0.harness
    }

    /// What a session with these limits of its own has while no other one is open.
    pub(super) fn alone(&self, own: &Overrides) -> Overrides {
        own.clone().alone(&self.0.named_limits)
    }

    /// Reads the configuration again, and takes it if it has no mistake.
    pub(super) async fn reload(&self, stop: CancellationToken) -> ReloadReport {
        self.0.reloader.reload(stop, |config| self.take(config)).await
    }

    /// Takes a new configuration, while no session is made.
    async fn take(&self, config: Config) -> Reloaded {
        let _no_changes = self.0.kept.lock().await;
        self.0.harness.reload(config)
    }

    /// Makes a session and gives its token.
    pub(super) async fn create(&self, asked: &CreateSession) -> Result<GivenSession, Refusal> {
        // Under the lock that a reload takes too: a session begins with policies of one configuration.
        let mut all = self.0.kept.lock().await;
        let wanted = self.read(asked)?;
        self.add(&mut all, asked, wanted).await
    }

    /// Gives the session of this name, if it is there, as asked for, and can be reached; makes it if there is none.
    pub(super) async fn ensure(&self, asked: &CreateSession) -> Result<GivenSession, Refusal> {
        let mut all = self.0.kept.lock().await;
        let mut wanted = self.read(asked)?;
        replaces_no_others(&all, &wanted.name, asked.replaces.as_deref())?;
        if let Some(why) = all.get(&wanted.name).and_then(Kept::ended) {
            // Its listeners may be on their way out.
            let _had_not_ended = self.0.harness.process_gone(&wanted.name).await;
            self.forget(&mut all, &wanted.name, why).await.map_err(|error| not_stored(&error))?;
        }
        let Some(kept) = all.get(&wanted.name) else { return self.add(&mut all, asked, wanted).await };
        let refused = |why: &str| {
            let message = format!("there is a session {} already, but {why}", kept.stored.name);
            Refusal::new(RefusalKind::Taken, message)
        };
        if let Some(closed) = &kept.closed {
            return Err(refused(&format!("it is closed: {closed}")));
        }
        wanted.place(asked, |name| Ok(folder::socket(&self.0.runtime, name)?))?;
        let differs = as_asked::differences(&kept.stored, &wanted);
        if !differs.is_empty() {
            let what = differs.join("; ");
            return Err(refused(&format!("not as asked for: {what}. Ask for it as it is, or revoke it first")));
        }
        if let Some((endpoint, why)) = kept.unreachable() {
            return Err(refused(&format!(
                "nobody can connect to it at {endpoint}: {why}. \"footbridge session show {0}\" says more; start the daemon \
                 again, or revoke it and make it anew",
                kept.stored.name
            )));
        }
        let token = folder::token(&self.0.runtime, &wanted.name, kept.stored.token);
        Ok(GivenSession { stored: kept.stored.clone(), token, was_there: true })
    }

    /// Makes sense of what is asked for.
    fn read(&self, asked: &CreateSession) -> Result<AskedSession, Refusal> {
        let policy = self.0.harness.policies().get(&asked.policy);
        let policy = policy.map_err(|error| Refusal::new(RefusalKind::Invalid, error.to_string()))?;
        let wanted = AskedSession::read(asked, policy)?;
        self.check_services(&wanted)?;
        Ok(wanted)
    }

    async fn add(
        &self,
        all: &mut AllKept,
        asked: &CreateSession,
        mut wanted: AskedSession,
    ) -> Result<GivenSession, Refusal> {
        if wanted.policy.can_ask() && !self.0.harness.approvals().can_be_answered() {
            return Err(Refusal::new(RefusalKind::Invalid, NobodyToAsk(wanted.policy.name().to_owned()).to_string()));
        }
        if all.contains_key(&wanted.name) {
            let message = format!("there is a session {} already: revoke it, or choose another name", wanted.name);
            return Err(Refusal::new(RefusalKind::Taken, message));
        }
        if all.len() >= MAX_SESSIONS {
            let message = format!("there are {MAX_SESSIONS} sessions, and no more are kept: revoke some");
            return Err(Refusal::new(RefusalKind::Failed, message));
        }
        let placed = wanted.place(asked, |name| folder::make(&self.0.runtime, name));
        let made = match placed {
            Ok(()) => self.make(all, &wanted).await,
            Err(refusal) => Err(refusal),
        };
        match made {
            Ok((token, kept)) => {
                let stored = kept.stored.clone();
                self.watch(&kept, wanted.process.take().map(|(_, watch)| watch));
                all.insert(wanted.name.clone(), kept);
                tracing::info!(session = %wanted.name, "a session was created");
                Ok(GivenSession { stored, token: Some(token), was_there: false })
            }
            Err(refusal) => {
                folder::remove(&self.0.runtime, &wanted.name);
                Err(refusal)
            }
        }
    }

    /// Binds, stores, opens. What was done is undone where a step fails.
    async fn make(&self, all: &mut AllKept, wanted: &AskedSession) -> Result<(Token, Kept), Refusal> {
        let failed = |error: &dyn std::fmt::Display| Refusal::new(RefusalKind::Failed, error.to_string());
        let mut listens = Vec::new();
        let mut bound = Vec::new();
        for listen in &wanted.listens {
            is_of_none(all, listen)?;
            let listener = self.0.listeners.bind(listen).map_err(|error| not_bound(&error))?;
            listens.push(lasting(listen, &listener));
            bound.push(listener);
        }
        let token = new_token().map_err(|error| failed(&error))?;
        let created = SystemTime::now();
        let stored = StoredSession {
            name: wanted.name.clone(),
            token: Digest::of(token.expose()),
            created,
            expires: wanted.ttl.and_then(|ttl| created.checked_add(ttl)),
            policy: wanted.policy.name().to_owned(),
            labels: wanted.labels.clone(),
            limits: wanted.limits.clone(),
            services: wanted.services.clone(),
            listens,
            process: wanted.process.as_ref().map(|(identity, _)| identity.clone()),
            spent: BudgetsSpent::default(),
            unread: None,
        };
        self.0.store.add_session(&stored).await.map_err(|error| not_stored(&error))?;
        let spec = SessionSpec {
            labels: wanted.labels.clone(),
            limits: wanted.limits.clone(),
            alone: self.alone(&wanted.limits),
            services: wanted.services.clone(),
            expires: stored.expires,
            ..SessionSpec::new(wanted.name.clone(), &token, Arc::clone(&wanted.policy))
        };
        let put = self.put_token(&stored, &token).map_err(|error| failed(&error));
        match put.and_then(|()| self.0.harness.open(spec, bound).map_err(|error| failed(&error))) {
            Ok(life) => Ok((token, Kept::new(stored, Some(life)))),
            Err(refusal) => Err(self.unmake(all, stored, refusal).await),
        }
    }

    /// Takes a session out of the store that could not be opened, and gives why. Where that fails, too, it is in the list
    /// as closed, so that it can be revoked.
    async fn unmake(&self, all: &mut AllKept, stored: StoredSession, refusal: Refusal) -> Refusal {
        let name = stored.name.clone();
        let Err(error) = self.0.store.remove_session(&name).await else { return refusal };
        tracing::error!(session = %name, why = %refusal, %error, "a session that could not be made is still in the store");
        let closed = Some(format!("it could not be made ({refusal}), but is still in the store"));
        all.insert(name.clone(), Kept { closed, ..Kept::new(stored, None) });
        let message = format!(
            "{refusal}. Session {name} is still in the store, since {error}; then \"footbridge session revoke {name}\" \
             takes it out"
        );
        Refusal::new(refusal.kind, message)
    }

    /// Refuses services that there are none of.
    fn check_services(&self, wanted: &AskedSession) -> Result<(), Refusal> {
        let services = self.0.harness.services();
        let mut all = wanted.services.iter().chain(wanted.policy.services());
        match all.find(|name| services.spec(name.as_str()).is_none()) {
            Some(name) => Err(Refusal::new(RefusalKind::Invalid, self.0.reloader.no_service(name.as_str()))),
            None => Ok(()),
        }
    }

    /// The services that a session has: its own, and those that its policy has by now.
    fn services(&self, stored: &StoredSession) -> Vec<ServiceSpec> {
        let services = self.0.harness.services();
        let policy = self.0.harness.policies().get(&stored.policy).ok();
        let of_policy = policy.iter().flat_map(|policy| policy.services());
        let names: BTreeSet<&ServerName> = stored.services.iter().chain(of_policy).collect();
        names.into_iter().filter_map(|name| services.spec(name.as_str())).collect()
    }

    /// What whoever made a session should know of it: what its guest may miss of the variables of its services.
    pub(super) fn notes(&self, stored: &StoredSession) -> Vec<String> {
        environment_notes(&self.services(stored)).iter().map(ToString::to_string).collect()
    }

    /// What the guest of a session sets for its services, with this token.
    pub(super) fn environment(&self, stored: &StoredSession, token: &Token) -> BTreeMap<String, String> {
        let specs = self.services(stored);
        // A relay listens where it always does; what listens on TCP is reached without one.
        let port = stored.listens.iter().find_map(|listen| match address_of(&listen.endpoint) {
            Endpoint::Tcp(tcp) => Some(tcp.port),
            _ => None,
        });
        let guest = GuestAddress { port: port.unwrap_or(vars::DEFAULT_PORT), token: token.expose() };
        environment(&specs, guest).into_iter().collect()
    }

    /// The session's own folder, if it listens there.
    pub(super) fn own_folder(&self, stored: &StoredSession) -> Option<PathBuf> {
        let is_own = |listen: &Listen| folder::is_of(&self.0.runtime, &stored.name, &listen.endpoint);
        stored.listens.iter().any(is_own).then(|| folder::mounted(&self.0.runtime, &stored.name))
    }

    /// The token of a session with a folder of its own, written and not yet in its place.
    fn write_token(&self, stored: &StoredSession, token: &Token) -> Result<Option<NewToken>, TokenNotPut> {
        let own = stored.listens.iter().find(|listen| folder::is_of(&self.0.runtime, &stored.name, &listen.endpoint));
        let Some(own) = own else { return Ok(None) };
        let new = folder::write_token(&self.0.runtime, &stored.name, token, &own.access);
        new.map(Some).map_err(|source| self.not_put(&stored.name, source))
    }

    fn not_put(&self, name: &SessionName, source: io::Error) -> TokenNotPut {
        TokenNotPut { folder: folder::mounted(&self.0.runtime, name), source }
    }

    /// Puts a token into the session's own folder, if it has one.
    fn put_token(&self, stored: &StoredSession, token: &Token) -> Result<(), TokenNotPut> {
        let new = self.write_token(stored, token)?;
        new.map_or(Ok(()), NewToken::put).map_err(|source| self.not_put(&stored.name, source))
    }

    /// Gives a session another token. Where that has no place, it keeps the one it has.
    pub(super) async fn rotate(&self, name: &SessionName, replaces: Option<&str>) -> Result<GivenSession, Refusal> {
        let mut all = self.0.kept.lock().await;
        replaces_no_others(&all, name, replaces)?;
        let kept = all.get_mut(name).filter(|kept| kept.goes_on()).ok_or_else(|| no_such(name))?;
        let token = new_token().map_err(|error| Refusal::new(RefusalKind::Failed, error.to_string()))?;
        let digest = Digest::of(token.expose());
        let new = self.write_token(&kept.stored, &token).map_err(|error| {
            let message =
                format!("session {name} keeps its token: {error}. \"footbridge session revoke {name}\" ends it");
            Refusal::new(RefusalKind::Failed, message)
        })?;
        self.0.store.set_token(name, digest).await.map_err(|error| not_stored(&error))?;
        kept.stored.token = digest;
        // One that is closed opens with it later.
        let _is_there = self.0.harness.rotate(name, digest);
        tracing::info!(session = %name, "a session's token was replaced");
        let stored = kept.stored.clone();
        new.map_or(Ok(()), NewToken::put).map_err(|source| {
            let error = self.not_put(name, source);
            let message =
                format!("the old token of session {name} is void, but {error}: once that is mended, rotate it again");
            Refusal::new(RefusalKind::Failed, message)
        })?;
        Ok(GivenSession { stored, token: Some(token), was_there: false })
    }

    /// Gives a session budgets of its own, also for when it is opened again.
    pub(super) async fn limit(&self, by: &Operator, asked: NewBudgets) -> Result<LimitedSession, Refusal> {
        let mut all = self.0.kept.lock().await;
        let kept = all.get_mut(&asked.session).filter(|kept| kept.goes_on());
        let kept = kept.ok_or_else(|| no_such(&asked.session))?;
        if let Some(closed) = kept.closed.as_ref().filter(|_| kept.stored.unread.is_some()) {
            // What is in the store is more than is known here.
            let message = format!("session {} is closed: {closed}", asked.session);
            return Err(Refusal::new(RefusalKind::Failed, message));
        }
        let mut limits = kept.stored.limits.clone();
        limits.add(asked.limits.clone());
        self.0.store.set_limits(&asked.session, &limits).await.map_err(|error| not_stored(&error))?;
        kept.stored.limits = limits;
        self.0.harness.open_budgets().set(by, asked)
    }

    /// Ends a session because an operator says so.
    pub(super) async fn revoke(&self, operator: &Operator, name: &SessionName) -> Result<(), Refusal> {
        let mut all = self.0.kept.lock().await;
        if !all.contains_key(name) {
            return Err(no_such(name));
        }
        let _was_open = self.0.harness.revoke(operator, name).await;
        self.forget(&mut all, name, Ended::Revoked).await.map_err(|error| {
            let message =
                format!("session {name} has ended, but would be back after a restart: {error}. It is tried until it is done; \"footbridge session list\" has it as closed until then");
            Refusal::new(RefusalKind::Failed, message)
        })
    }

    /// Takes a session that has ended out of the store, and what it had off the disk. First it has to end for its
    /// guest.
    pub(super) async fn forget(&self, all: &mut AllKept, name: &SessionName, why: Ended) -> Result<(), StoreError> {
        if let Some(kept) = all.get_mut(name) {
            kept.closed = Some(format!("it has ended ({}), but is still in the store", why.as_str()));
        }
        self.0.store.remove_session(name).await?;
        all.remove(name);
        folder::remove(&self.0.runtime, name);
        self.sweep();
        tracing::info!(session = %name, why = why.as_str(), "a session ended");
        Ok(())
    }

    /// Removes what is left of sessions that ended, beside everything else.
    pub(super) fn sweep(&self) {
        let runtime = self.0.runtime.clone();
        self.0.sweeps.spawn_blocking(move || folder::sweep(&runtime));
    }

    /// Ends a session when its process is gone, and forgets it once it has ended, whoever ended it.
    pub(super) fn watch(&self, kept: &Kept, process: Option<ProcessWatch>) {
        let Some(life) = kept.life.clone() else { return };
        let (sessions, name) = (self.clone(), kept.stored.name.clone());
        self.0.tasks.spawn(async move {
            tokio::select! {
                () = life.cancelled() => {}
                () = sessions.0.shutdown.cancelled() => return,
                () = gone(process.as_ref()) => {}
            }
            let mut all = sessions.0.kept.lock().await;
            // The name may be another session's by now, or this one was revoked and forgotten.
            let is_here = all.get(&name).is_some_and(|kept| kept.is(&life));
            if !is_here || life.ended() == Some(Ended::Revoked) {
                return;
            }
            let _had_not_ended = sessions.0.harness.process_gone(&name).await;
            let why = life.ended().unwrap_or(Ended::ProcessGone);
            if let Err(error) = sessions.forget(&mut all, &name, why).await {
                tracing::error!(session = %name, %error, "a session that ended is still in the store");
            }
        });
    }

    /// Takes those out of the store that have ended and could not be taken out yet, up to the first for which that fails.
    async fn forget_ended(&self) -> Result<(), StoreError> {
        let mut all = self.0.kept.lock().await;
        for (name, why) in still_stored(&all) {
            self.forget(&mut all, &name, why).await?;
        }
        Ok(())
    }

    /// Keeps the store as things are, from now on: what sessions spend, and which have ended.
    pub(super) fn keep_store(&self) {
        let sessions = self.clone();
        self.0.tasks.spawn(async move {
            let (mut fails, mut pause, mut next) = (false, spent::EVERY, Instant::now());
            while sessions.0.shutdown.run_until_cancelled(sleep(spent::EVERY)).await.is_some() {
                if Instant::now() >= next {
                    // Said where it failed first, and seen in the list.
                    let is_done = sessions.forget_ended().await.is_ok();
                    pause = if is_done { spent::EVERY } else { LONGEST_PAUSE.min(2 * pause) };
                    next = Instant::now() + pause;
                }
                let open = sessions.harness().open_sessions();
                let kept = spent::keep(&*sessions.0.store, &sessions.0.kept, &open).await;
                if let (Err(error), false) = (&kept, fails) {
                    spent::not_kept(error);
                }
                fails = kept.is_err();
            }
        });
    }

    /// Where a service manager watches over this process, tells it that sessions can be changed and commands, which come
    /// in at this socket, are answered.
    pub(super) fn are_watched(&self, socket: &Path) {
        let Some(interval) = supervisor::watchdog() else { return };
        let (sessions, socket) = (self.clone(), socket.to_owned());
        self.0.tasks.spawn(async move {
            let over = sessions.0.shutdown.clone();
            let tells = supervisor::tell_that_it_works(interval, || sessions.work(&socket), supervisor::notify);
            over.run_until_cancelled(tells).await;
        });
    }

    /// Whether they do: their lock is free in time, and a command is answered.
    async fn work(&self, socket: &Path) -> Result<(), String> {
        drop(self.0.kept.lock().await);
        let socket = socket.to_owned();
        let asked =
            spawn_blocking(move || ControlClient::connect(&socket).map(drop).map_err(|error| error.to_string()));
        asked.await.map_err(|error| error.to_string()).flatten()
    }

    /// Names of all sessions.
    pub(super) fn names(all: &AllKept) -> BTreeSet<String> {
        all.keys().map(ToString::to_string).collect()
    }

    /// What takes the time from calls that still run when everything ends.
    pub(super) fn hurry(&self) -> CancellationToken {
        self.0.harness.hurry()
    }

    /// Ends everything in order. Sessions stay in the store.
    ///
    /// # Errors
    /// All has ended, but the record or the store lacks some of it.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.0.shutdown.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
        let Some(inner) = Arc::into_inner(self.0) else {
            anyhow::bail!("something still holds the sessions: they are cut off");
        };
        let open = inner.harness.open_sessions();
        let recorded = inner.harness.stop().await;
        let forgotten = last_try(&*inner.store, &*inner.kept.lock().await).await;
        if let Err(error) = spent::keep(&*inner.store, &inner.kept, &open).await {
            spent::not_kept(&error);
        }
        inner.listeners.released().await;
        inner.sweeps.close();
        // What is not removed by then the next daemon removes.
        let _goes_on = timeout(SWEPT, inner.sweeps.wait()).await;
        if let (Err(_), Err(error)) = (&recorded, &forgotten) {
            tracing::error!(%error);
        }
        recorded?;
        Ok(forgotten?)
    }
}

/// Those that have ended, and could not be taken out of the store.
fn still_stored(all: &AllKept) -> Vec<(SessionName, Ended)> {
    let ended = |(name, kept): (&SessionName, &Kept)| Some((name.clone(), kept.closed.as_ref().and(kept.ended())?));
    all.iter().filter_map(ended).collect()
}

/// Takes them out at the end of the daemon, up to the first for which that fails.
async fn last_try(store: &dyn StateStore, all: &AllKept) -> Result<(), StillStored> {
    let mut names: VecDeque<SessionName> = still_stored(all).into_iter().map(|(name, _)| name).collect();
    while let Some(name) = names.front() {
        if let Err(source) = store.remove_session(name).await {
            return Err(StillStored { names: names.into(), source });
        }
        names.pop_front();
    }
    Ok(())
}

async fn gone(process: Option<&ProcessWatch>) {
    match process {
        Some(process) => process.ended().await,
        None => std::future::pending().await,
    }
}

/// Where it listens, so that it can listen there again: with the port that the system chose.
fn lasting(listen: &Listen, listener: &Listener) -> Listen {
    match (&listen.endpoint, listener.endpoint()) {
        (Endpoint::Tcp(_), Ok(endpoint)) => Listen { endpoint, ..listen.clone() },
        _ => listen.clone(),
    }
}

/// Checks that no other session has this place, also one that is closed and listens there later: its guest would show its
/// token to the other one.
fn is_of_none(all: &AllKept, listen: &Listen) -> Result<(), Refusal> {
    let is_it = |other: &&Listen| (&other.endpoint, other.peer_cid) == (&listen.endpoint, listen.peer_cid);
    // Of a virtual machine that is taken, binding says more.
    let counts = |kept: &&Kept| kept.closed.is_some() || listen.peer_cid.is_none();
    let its = |kept: &&Kept| kept.stored.listens.iter().any(|other| is_it(&other));
    let Some(other) = all.values().filter(counts).find(its) else { return Ok(()) };
    let (endpoint, name) = (&listen.endpoint, &other.stored.name);
    let closed = if other.closed.is_some() { ", which is closed by now" } else { "" };
    let message =
        format!("{endpoint} is where session {name} listens{closed}: choose another place, or revoke that session");
    Err(Refusal::new(RefusalKind::Taken, message))
}

fn not_bound(error: &BindError) -> Refusal {
    let kind = match error {
        BindError::InUse(_) | BindError::Locked(_) | BindError::CidTaken { .. } | BindError::NotASocket { .. } => {
            RefusalKind::Taken
        }
        BindError::Io { .. } | BindError::Vsock { .. } => RefusalKind::Failed,
        _ => RefusalKind::Invalid,
    };
    Refusal::new(kind, error.to_string())
}

/// Refuses to have a token written over that of another session, which may be the only copy.
fn replaces_no_others(all: &AllKept, name: &SessionName, replaces: Option<&str>) -> Result<(), Refusal> {
    let Some(token) = replaces.and_then(|digest| digest.parse::<Digest>().ok()) else { return Ok(()) };
    let is_others = |kept: &&Kept| kept.stored.token == token && kept.stored.name != *name && kept.ended().is_none();
    all.values().find(is_others).map_or(Ok(()), |kept| {
        let message = format!(
            "nothing was changed: that file holds the token of session {}; name another file, or revoke that session first",
            kept.stored.name
        );
        Err(Refusal::new(RefusalKind::Invalid, message))
    })
}

fn not_stored(error: &StoreError) -> Refusal {
    let kind = if matches!(error.problem, Problem::Taken) { RefusalKind::Taken } else { RefusalKind::Failed };
    Refusal::new(kind, format!("nothing was changed: {error}"))
}

pub(super) fn no_such(name: &SessionName) -> Refusal {
    Refusal::new(RefusalKind::NotFound, format!("there is no session {name}: \"footbridge session list\" shows all"))
}
