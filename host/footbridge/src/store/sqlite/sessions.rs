//! Sessions in the store.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{Connection as _, Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{
    Store,
    time::{millis, time},
};
use crate::store::{Problem, SessionStore, StoreError, StoredSession};
use footbridge_calls::session::BudgetsSpent;
use footbridge_core::{
    digest::Digest,
    limits::overrides::Overrides,
    names::{ServerName, SessionName},
};
use footbridge_edge::listener::{Access, Listen};
use footbridge_processes::process::ProcessIdentity;
use futures::{FutureExt as _, TryFutureExt as _, future::BoxFuture};

impl SessionStore for Store {
    fn add_session<'a>(&'a self, session: &'a StoredSession) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let (mut connection, turn) = self.lend().await?;
            let added = add(&mut connection, session).await;
            turn.over(connection, added).map_err(|problem| self.failed(problem))
        })
    }

    fn set_token<'a>(&'a self, name: &'a SessionName, token: Digest) -> BoxFuture<'a, Result<bool, StoreError>> {
        let update = sqlx::query("UPDATE sessions SET token = ? WHERE name = ?");
        let update = update.bind(token.as_bytes().to_vec()).bind(name.to_string());
        self.changes(update).map_ok(|rows| rows > 0).boxed()
    }

    fn set_limits<'a>(
        &'a self,
        name: &'a SessionName,
        limits: &'a Overrides,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let update = sqlx::query("UPDATE sessions SET limits = ? WHERE name = ?");
        let update = update.bind(written(limits)).bind(name.to_string());
        self.changes(update).map_ok(|rows| rows > 0).boxed()
    }

    fn set_spent<'a>(&'a self, sessions: &'a [StoredSession]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let (mut connection, turn) = self.lend().await?;
            let done = set_spent(&mut connection, sessions).await;
            turn.over(connection, done).map_err(|problem| self.failed(problem))
        })
    }

    fn remove_session<'a>(&'a self, name: &'a SessionName) -> BoxFuture<'a, Result<bool, StoreError>> {
        let delete = sqlx::query("DELETE FROM sessions WHERE name = ?");
        self.changes(delete.bind(name.to_string())).map_ok(|rows| rows > 0).boxed()
    }

    fn sessions(&self) -> BoxFuture<'_, Result<Vec<StoredSession>, StoreError>> {
        Box::pin(async {
            let (mut connection, turn) = self.lend().await?;
            let read = all(&mut connection).await;
            turn.over(connection, read).map_err(|problem| self.failed(problem))
        })
    }
}

async fn all(connection: &mut SqliteConnection) -> Result<Vec<StoredSession>, Problem> {
    let mut transaction = connection.begin().await?;
    let all = "SELECT name, token, created, expires, policy, labels, limits, services, pid, pid_started, pid_boot, spent \
               FROM sessions ORDER BY created, name";
    let rows = sqlx::query(all).fetch_all(&mut *transaction).await?;
    let mut sessions = Vec::with_capacity(rows.len());
    for row in rows {
        sessions.push(session(&mut transaction, &row).await?);
    }
    transaction.commit().await?;
    Ok(sessions)
}

async fn set_spent(connection: &mut SqliteConnection, sessions: &[StoredSession]) -> Result<(), Problem> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    for session in sessions {
        sqlx::query("UPDATE sessions SET spent = ? WHERE name = ? AND created = ?")
            .bind(text_of(&session.spent))
            .bind(session.name.to_string())
            .bind(millis(session.created))
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// All of a session, or nothing.
async fn add(connection: &mut SqliteConnection, session: &StoredSession) -> Result<(), Problem> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    insert(&mut transaction, session).await?;
    for (position, listen) in (0..).zip(&session.listens) {
        insert_listen(&mut transaction, &session.name, position, listen).await?;
    }
    transaction.commit().await?;
    Ok(())
}

async fn insert(connection: &mut SqliteConnection, session: &StoredSession) -> Result<(), Problem> {
    let process = session.process.as_ref();
    // Maps of texts always serialize.
    let labels = serde_json::to_string(&session.labels).unwrap_or_default();
    let limits = written(&session.limits);
    let services: Vec<&str> = session.services.iter().map(ServerName::as_str).collect();
    let services = serde_json::to_string(&services).unwrap_or_default();
    let add = "INSERT INTO sessions \
               (name, token, created, expires, policy, labels, limits, services, pid, pid_started, pid_boot, spent) \
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    sqlx::query(add)
        .bind(session.name.to_string())
        .bind(session.token.as_bytes().as_slice())
        .bind(millis(session.created))
        .bind(session.expires.map(millis))
        .bind(&session.policy)
        .bind(labels)
        .bind(limits)
        .bind(services)
        .bind(process.map(|process| process.pid))
        .bind(process.map(|process| process.started.cast_signed()))
        .bind(process.map(|process| process.boot.as_str()))
        .bind(text_of(&session.spent))
        .execute(connection)
        .await?;
    Ok(())
}

async fn insert_listen(
    connection: &mut SqliteConnection,
    session: &SessionName,
    position: i64,
    listen: &Listen,
) -> Result<(), Problem> {
    let add = "INSERT INTO listens (session, position, endpoint, mode, owner, allowed_uids, peer_cid) \
               VALUES (?, ?, ?, ?, ?, ?, ?)";
    sqlx::query(add)
        .bind(session.to_string())
        .bind(position)
        .bind(listen.endpoint.to_string())
        .bind(listen.access.mode)
        .bind(listen.access.owner)
        .bind(listen.access.allowed_uids.as_ref().map(|uids| serde_json::json!(uids).to_string()))
        .bind(listen.peer_cid)
        .execute(connection)
        .await?;
    Ok(())
}

async fn session(connection: &mut SqliteConnection, row: &SqliteRow) -> Result<StoredSession, Problem> {
    let name: String = row.try_get("name")?;
    let wrong = |what| Problem::Damaged(format!("the {what} of session {name:?} makes no sense"));
    let of = "SELECT endpoint, mode, owner, allowed_uids, peer_cid FROM listens WHERE session = ? ORDER BY position";
    let rows = sqlx::query(of).bind(&name).fetch_all(connection).await?;
    let listens = rows.iter().map(listen).collect::<Result<Option<Vec<Listen>>, _>>()?;
    let process: (Option<i64>, Option<i64>, _) =
        (row.try_get("pid")?, row.try_get("pid_started")?, row.try_get("pid_boot")?);
    let process = match process {
        (Some(pid), Some(started), Some(boot)) => {
            let pid = i32::try_from(pid).map_err(|_| wrong("process"))?;
            Some(ProcessIdentity { pid, started: started.cast_unsigned(), boot })
        }
        _ => None,
    };
    let expires: Option<i64> = row.try_get("expires")?;
    let mut unread = None;
    Ok(StoredSession {
        token: Digest::from_bytes(row.try_get("token")?).ok_or_else(|| wrong("token"))?,
        created: time(row.try_get("created")?).ok_or_else(|| wrong("creation"))?,
        expires: expires.map(|at| time(at).ok_or_else(|| wrong("expiry"))).transpose()?,
        labels: serde_json::from_str(row.try_get("labels")?).map_err(|_| wrong("labels"))?,
        limits: limits(row.try_get("limits")?).unwrap_or_else(|| left_out("limits", &mut unread)),
        services: services(row.try_get("services")?).unwrap_or_else(|| left_out("services", &mut unread)),
        spent: spent(row.try_get("spent")?).unwrap_or_else(|| left_out("budgets", &mut unread)),
        listens: listens.unwrap_or_else(|| left_out("listeners", &mut unread)),
        policy: row.try_get("policy")?,
        name: name.parse().map_err(|_| wrong("name"))?,
        process,
        unread,
    })
}

/// What another version writes that has more of it, or other bounds.
fn left_out<T: Default>(what: &'static str, unread: &mut Option<&'static str>) -> T {
    *unread = Some(what);
    T::default()
}

fn services(text: &str) -> Option<BTreeSet<ServerName>> {
    let written: Vec<String> = serde_json::from_str(text).ok()?;
    written.iter().map(|name| name.parse().ok()).collect()
}

fn spent(text: &str) -> Option<BudgetsSpent> {
    BudgetsSpent::read(&serde_json::from_str(text).ok()?)
}

/// Numbers by texts always serialize.
fn text_of(spent: &BudgetsSpent) -> String {
    serde_json::to_string(&spent.written()).unwrap_or_default()
}

fn written(limits: &Overrides) -> String {
    serde_json::to_string(&limits.written()).unwrap_or_default()
}

fn limits(text: &str) -> Option<Overrides> {
    let written: BTreeMap<String, String> = serde_json::from_str(text).ok()?;
    Overrides::read(&written).ok()
}

/// Nothing where it makes no sense.
fn listen(row: &SqliteRow) -> Result<Option<Listen>, sqlx::Error> {
    let (endpoint, allowed_uids) =
        (row.try_get::<&str, _>("endpoint")?, row.try_get::<Option<&str>, _>("allowed_uids")?);
    let (mode, owner, peer_cid): (i64, _, _) = (row.try_get("mode")?, row.try_get("owner")?, row.try_get("peer_cid")?);
    let number = |value: Option<i64>| value.map(u32::try_from).transpose().ok();
    let read = || {
        let allowed_uids = allowed_uids.map(serde_json::from_str).transpose().ok()?;
        let access = Access { mode: u32::try_from(mode).ok()?, owner: number(owner)?, allowed_uids };
        Some(Listen { endpoint: endpoint.parse().ok()?, access, peer_cid: number(peer_cid)? })
    };
    Ok(read())
}
