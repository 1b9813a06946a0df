//! Pins in the store: what the definition of each tool was, and what it is where nobody accepted the change.

mod compare;

use std::time::SystemTime;

use sqlx::{Connection as _, FromRow, Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{
    Store,
    time::{millis, time},
};
use crate::store::{Acceptance, NotAccepted, PinReview, Problem, StoreError, StoredDefinition, StoredPin};
use footbridge_calls::pins::{Compared, Definition, NoPins, PinStore, PinnedServer};
use footbridge_core::digest::Digest;
use futures::future::BoxFuture;

struct PinRow {
    server: String,
    origin: String,
    tool: String,
    pinned: (Vec<u8>, String, i64),
    changed: Option<(Vec<u8>, String, i64)>,
}

impl FromRow<'_, SqliteRow> for PinRow {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        let changed: Option<Vec<u8>> = row.try_get("changed_digest")?;
        Ok(Self {
            server: row.try_get("server")?,
            origin: row.try_get("origin")?,
            tool: row.try_get("tool")?,
            pinned: (row.try_get("digest")?, row.try_get("definition")?, row.try_get("pinned")?),
            changed: match changed {
                Some(digest) => Some((digest, row.try_get("changed_definition")?, row.try_get("changed")?)),
                None => None,
            },
        })
    }
}

impl Store {
    /// Compares what a server offers with its pins. What has none is pinned; of what differs from its pin the offered
    /// definition is kept beside it, for people to look at: always if the server was just listed (`listed`), otherwise
    /// only where there is none.
    ///
    /// # Errors
    /// Whatever keeps the pins from being read or written. Nothing is pinned then.
    pub async fn compare_pins(
        &self,
        server: PinnedServer<'_>,
        offered: &[Definition<'_>],
        listed: bool,
    ) -> Result<Compared, StoreError> {
        let (mut connection, turn) = self.lend().await?;
        let compared = compare::compare(&mut connection, server, offered, listed).await;
        turn.over(connection, compared).map_err(|problem| self.failed(problem))
    }

    /// What [`Compared::revision`] would be now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn pins_revision(&self) -> Result<i64, StoreError> {
        let (mut connection, turn) = self.lend().await?;
        let read = sqlx::query_scalar("SELECT revision FROM pins_revision").fetch_one(&mut connection).await;
        turn.over(connection, read.map_err(Problem::from)).map_err(|problem| self.failed(problem))
    }

    /// All pins, or those of one server, by name.
    ///
    /// # Errors
    /// [`Problem::Damaged`] where one makes no sense, or whatever keeps them from being read.
    pub async fn pins(&self, server: Option<&str>) -> Result<Vec<StoredPin>, StoreError> {
        let all = "SELECT server, origin, tool, digest, definition, pinned, changed_digest, changed_definition, changed \
                   FROM pins WHERE ?1 IS NULL OR server = ?1 ORDER BY server, origin, tool";
        let (mut connection, turn) = self.lend().await?;
        let rows: Result<Vec<PinRow>, _> = sqlx::query_as(all).bind(server).fetch_all(&mut connection).await;
        let rows = turn.over(connection, rows.map_err(Problem::from)).map_err(|problem| self.failed(problem))?;
        rows.into_iter().map(|row| pin(row).map_err(|problem| self.failed(problem))).collect()
    }

    /// Whether this definition is pinned of a tool, of any server of this name.
    ///
    /// # Errors
    /// Whatever keeps it from being read.
    pub async fn is_pinned(&self, server: &str, tool: &str, digest: Digest) -> Result<bool, StoreError> {
        let one = "SELECT EXISTS (SELECT 1 FROM pins WHERE server = ? AND tool = ? AND digest = ?)";
        let one = sqlx::query_scalar(one).bind(server).bind(tool).bind(digest.as_bytes().as_slice());
        let (mut connection, turn) = self.lend().await?;
        let read = one.fetch_one(&mut connection).await;
        turn.over(connection, read.map_err(Problem::from)).map_err(|problem| self.failed(problem))
    }

    /// Pins what somebody accepted: all of it, or nothing.
    ///
    /// # Errors
    /// [`NotAccepted`].
    pub(crate) async fn accept_pins(&self, accepted: &[Acceptance]) -> Result<(), NotAccepted> {
        let (mut connection, turn) = self.lend().await?;
        let done = accept(&mut connection, accepted).await;
        match turn.over(connection, done).map_err(|problem| self.failed(problem))? {
            None => Ok(()),
            Some(other) => Err(NotAccepted::Other(other)),
        }
    }

    /// Forgets the pins of a server, by its name and origin, all or those of these tools: what it offers is pinned anew
    /// when it is seen next. Says how many there were.
    ///
    /// # Errors
    /// When it cannot be written; all are still there then.
    pub(crate) async fn forget_pins(&self, server: &str, origin: &str, tools: &[String]) -> Result<u64, StoreError> {
        let forget = "DELETE FROM pins WHERE server = ?1 AND origin = ?2 \
                      AND (?3 = '[]' OR tool IN (SELECT value FROM json_each(?3)))";
        let forget = sqlx::query(forget).bind(server).bind(origin).bind(serde_json::json!(tools).to_string());
        self.changes(forget).await
    }
}

/// Gives the first that could not be accepted; nothing was written then.
async fn accept(connection: &mut SqliteConnection, accepted: &[Acceptance]) -> Result<Option<Acceptance>, Problem> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    for one in accepted {
        // How the server is reached is part of what is digested.
        let accept = "UPDATE pins SET digest = changed_digest, definition = changed_definition, pinned = ?, \
                      changed_digest = NULL, changed_definition = NULL, changed = NULL \
                      WHERE server = ? AND tool = ? AND changed_digest = ?";
        let accept = sqlx::query(accept).bind(millis(SystemTime::now())).bind(&one.server).bind(&one.tool);
        let done = accept.bind(one.digest.as_bytes().as_slice()).execute(&mut *transaction).await?;
        if done.rows_affected() == 0 {
            transaction.rollback().await?;
            return Ok(Some(one.clone()));
        }
    }
    transaction.commit().await?;
    Ok(None)
}

fn senseless(server: &str, tool: &str) -> Problem {
    Problem::Damaged(format!("the pin of tool {tool:?} of server {server:?} makes no sense"))
}

fn pin(row: PinRow) -> Result<StoredPin, Problem> {
    let PinRow { server, origin, tool, pinned, changed } = row;
    let wrong = || senseless(&server, &tool);
    let definition = |(digest, text, since): (Vec<u8>, String, i64)| {
        let digest = Digest::from_bytes(&digest).filter(|digest| *digest == Digest::of(&text))?;
        Some(StoredDefinition { digest, text, since: time(since)? })
    };
    let pinned = definition(pinned).ok_or_else(wrong)?;
    let changed = changed.map(|changed| definition(changed).ok_or_else(wrong)).transpose()?;
    Ok(StoredPin { server, origin, tool, pinned, changed })
}

impl PinStore for Store {
    fn pins_revision(&self) -> BoxFuture<'_, Result<i64, NoPins>> {
        Box::pin(async { Self::pins_revision(self).await.map_err(NoPins::because) })
    }

    fn compare_pins<'a>(
        &'a self,
        server: PinnedServer<'a>,
        offered: &'a [Definition<'a>],
        listed: bool,
    ) -> BoxFuture<'a, Result<Compared, NoPins>> {
        Box::pin(async move { Self::compare_pins(self, server, offered, listed).await.map_err(NoPins::because) })
    }

    fn is_pinned<'a>(&'a self, server: &'a str, tool: &'a str, digest: Digest) -> BoxFuture<'a, Result<bool, NoPins>> {
        Box::pin(async move { Self::is_pinned(self, server, tool, digest).await.map_err(NoPins::because) })
    }
}

impl PinReview for Store {
    fn pins<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, Result<Vec<StoredPin>, StoreError>> {
        Box::pin(Self::pins(self, server))
    }

    fn accept_pins<'a>(&'a self, accepted: &'a [Acceptance]) -> BoxFuture<'a, Result<(), NotAccepted>> {
        Box::pin(Self::accept_pins(self, accepted))
    }

    fn forget_pins<'a>(
        &'a self,
        server: &'a str,
        origin: &'a str,
        tools: &'a [String],
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(Self::forget_pins(self, server, origin, tools))
    }
}
