//! Sessions in the store.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{Connection as _, FromRow, Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{
    Store,
    time::{millis, time},
};
use crate::store::{Problem, SessionStore, StoreError, StoredSession};
use footbridge_core::{
    digest::Digest,
    limits::overrides::Overrides,
    names::{ServerName, SessionName},
};
use footbridge_edge::listener::{Access, Listen};
use footbridge_processes::process::ProcessIdentity;
use futures::future::BoxFuture;

struct SessionRow {
    name: String,
    token: Vec<u8>,
    created: i64,
    expires: Option<i64>,
    policy: String,
    labels: String,
    limits: String,
    services: String,
    pid: Option<i64>,
    pid_started: Option<i64>,
    pid_boot: Option<String>,
}

struct ListenRow {
    endpoint: String,
    mode: i64,
    owner: Option<i64>,
    allowed_uids: Option<String>,
    peer_cid: Option<i64>,
}

impl FromRow<'_, SqliteRow> for SessionRow {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            name: row.try_get("name")?,
            token: row.try_get("token")?,
            created: row.try_get("created")?,
            expires: row.try_get("expires")?,
            policy: row.try_get("policy")?,
            labels: row.try_get("labels")?,
            limits: row.try_get("limits")?,
            services: row.try_get("services")?,
            pid: row.try_get("pid")?,
            pid_started: row.try_get("pid_started")?,
            pid_boot: row.try_get("pid_boot")?,
        })
    }
}

impl FromRow<'_, SqliteRow> for ListenRow {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            endpoint: row.try_get("endpoint")?,
            mode: row.try_get("mode")?,
            owner: row.try_get("owner")?,
            allowed_uids: row.try_get("allowed_uids")?,
            peer_cid: row.try_get("peer_cid")?,
        })
    }
}

impl Store {
    /// Keeps a new session.
    ///
    /// # Errors
    /// [`Problem::Taken`] where there is one of this name, or whatever keeps it from being written. It is not there
    /// then.
    pub(crate) async fn add_session(&self, session: &StoredSession) -> Result<(), StoreError> {
        let (mut connection, turn) = self.lend().await?;
        let added = add(&mut connection, session).await;
        turn.over(connection, added).map_err(|problem| self.failed(problem))
    }

    /// Gives a session another token; says whether there is such a session.
    ///
    /// # Errors
    /// When it cannot be written; the old token stays.
    pub(crate) async fn set_token(&self, name: &SessionName, token: Digest) -> Result<bool, StoreError> {
        let update = sqlx::query("UPDATE sessions SET token = ? WHERE name = ?");
        self.changes(update.bind(token.as_bytes().as_slice()).bind(name.to_string())).await.map(|rows| rows > 0)
    }

    /// Forgets a session; says whether there was one.
    ///
    /// # Errors
    /// When it cannot be written; it is still there then.
    pub(crate) async fn remove_session(&self, name: &SessionName) -> Result<bool, StoreError> {
        let delete = sqlx::query("DELETE FROM sessions WHERE name = ?");
        self.changes(delete.bind(name.to_string())).await.map(|rows| rows > 0)
    }

    /// All sessions, oldest first.
    ///
    /// # Errors
    /// [`Problem::Damaged`] where one makes no sense, or whatever keeps them from being read.
    pub async fn sessions(&self) -> Result<Vec<StoredSession>, StoreError> {
        let (mut connection, turn) = self.lend().await?;
        let read = async {
            let mut transaction = connection.begin().await?;
            let all = "SELECT name, token, created, expires, policy, labels, limits, services, pid, pid_started, pid_boot \
                       FROM sessions ORDER BY created, name";
            let rows: Vec<SessionRow> = sqlx::query_as(all).fetch_all(&mut *transaction).await?;
            let mut sessions = Vec::with_capacity(rows.len());
            for row in rows {
                sessions.push(session(&mut transaction, row).await?);
            }
            transaction.commit().await?;
            Ok(sessions)
        };
        let read: Result<_, Problem> = read.await;
        turn.over(connection, read).map_err(|problem| self.failed(problem))
    }
}

impl SessionStore for Store {
    fn add_session<'a>(&'a self, session: &'a StoredSession) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(Self::add_session(self, session))
    }

    fn set_token<'a>(&'a self, name: &'a SessionName, token: Digest) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(Self::set_token(self, name, token))
    }

    fn remove_session<'a>(&'a self, name: &'a SessionName) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(Self::remove_session(self, name))
    }

    fn sessions(&self) -> BoxFuture<'_, Result<Vec<StoredSession>, StoreError>> {
        Box::pin(Self::sessions(self))
    }
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
    let limits = serde_json::to_string(&session.limits.written()).unwrap_or_default();
    let services: Vec<&str> = session.services.iter().map(ServerName::as_str).collect();
    let services = serde_json::to_string(&services).unwrap_or_default();
    let add = "INSERT INTO sessions \
               (name, token, created, expires, policy, labels, limits, services, pid, pid_started, pid_boot) \
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
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

async fn session(connection: &mut SqliteConnection, row: SessionRow) -> Result<StoredSession, Problem> {
    let wrong = |what| Problem::Damaged(format!("the {what} of session {:?} makes no sense", row.name));
    let of = "SELECT endpoint, mode, owner, allowed_uids, peer_cid FROM listens WHERE session = ? ORDER BY position";
    let listens: Vec<ListenRow> = sqlx::query_as(of).bind(&row.name).fetch_all(connection).await?;
    let process = match (row.pid, row.pid_started, &row.pid_boot) {
        (Some(pid), Some(started), Some(boot)) => {
            let pid = i32::try_from(pid).map_err(|_| wrong("process"))?;
            Some(ProcessIdentity { pid, started: started.cast_unsigned(), boot: boot.clone() })
        }
        _ => None,
    };
    Ok(StoredSession {
        name: row.name.parse().map_err(|_| wrong("name"))?,
        token: Digest::from_bytes(&row.token).ok_or_else(|| wrong("token"))?,
        created: time(row.created).ok_or_else(|| wrong("creation"))?,
        expires: match row.expires {
            Some(expires) => Some(time(expires).ok_or_else(|| wrong("expiry"))?),
            None => None,
        },
        labels: serde_json::from_str(&row.labels).map_err(|_| wrong("labels"))?,
        limits: limits(&row.limits).ok_or_else(|| wrong("limits"))?,
        services: services(&row.services).ok_or_else(|| wrong("services"))?,
        listens: listens.iter().map(|row| listen(row).ok_or_else(|| wrong("listener"))).collect::<Result<_, _>>()?,
        policy: row.policy.clone(),
        process,
    })
}

fn services(text: &str) -> Option<BTreeSet<ServerName>> {
    let written: Vec<String> = serde_json::from_str(text).ok()?;
    written.iter().map(|name| name.parse().ok()).collect()
}

fn limits(text: &str) -> Option<Overrides> {
    let written: BTreeMap<String, String> = serde_json::from_str(text).ok()?;
    Overrides::read(&written).ok()
}

fn listen(row: &ListenRow) -> Option<Listen> {
    let number = |value: Option<i64>| value.map(u32::try_from).transpose().ok();
    let allowed_uids = row.allowed_uids.as_deref().map(serde_json::from_str).transpose().ok()?;
    let access = Access { mode: u32::try_from(row.mode).ok()?, owner: number(row.owner)?, allowed_uids };
    Some(Listen { endpoint: row.endpoint.parse().ok()?, access, peer_cid: number(row.peer_cid)? })
}
