//! Pins in the store: what the definition of each tool was, and what it is where nobody accepted the change.

mod compare;

use std::time::SystemTime;

use sqlx::{Connection as _, FromRow, Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{
    Store,
    time::{millis, time},
};
use crate::store::{Acceptance, NotAccepted, PinReview, Problem, StoreError, StoredDefinition, StoredPin};
use footbridge_calls::pins::{Compared, Definition, NoPins, PinStore};
use footbridge_core::{digest::Digest, names::ServerName};
use futures::future::BoxFuture;

struct PinRow {
    server: String,
    tool: String,
    pinned: (Vec<u8>, String, i64),
    changed: Option<(Vec<u8>, String, i64)>,
}

impl FromRow<'_, SqliteRow> for PinRow {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        let changed: Option<Vec<u8>> = row.try_get("changed_digest")?;
        Ok(Self {
            server: row.try_get("server")?,
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
        server: &ServerName,
        offered: &[Definition<'_>],
        listed: bool,
    ) -> Result<Compared, StoreError> {
        let (mut connection, turn) = self.lend().await?;
        let compared = compare::compare(&mut connection, server.as_str(), offered, listed).await;
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
        let all = "SELECT server, tool, digest, definition, pinned, changed_digest, changed_definition, changed FROM pins \
                   WHERE ?1 IS NULL OR server = ?1 ORDER BY server, tool";
        let (mut connection, turn) = self.lend().await?;
        let rows: Result<Vec<PinRow>, _> = sqlx::query_as(all).bind(server).fetch_all(&mut connection).await;
        let rows = turn.over(connection, rows.map_err(Problem::from)).map_err(|problem| self.failed(problem))?;
        rows.into_iter().map(|row| pin(row).map_err(|problem| self.failed(problem))).collect()
    }

    /// The digest of what is pinned of a tool, if it has a pin.
    ///
    /// # Errors
    /// [`Problem::Damaged`] where it makes no sense, or whatever keeps it from being read.
    pub async fn pinned_digest(&self, server: &str, tool: &str) -> Result<Option<Digest>, StoreError> {
        let one = "SELECT digest FROM pins WHERE server = ? AND tool = ?";
        let (mut connection, turn) = self.lend().await?;
        let read = sqlx::query_scalar(one).bind(server).bind(tool).fetch_optional(&mut connection).await;
        let read = turn.over(connection, read.map_err(Problem::from));
        let digest: Option<Vec<u8>> = read.map_err(|problem| self.failed(problem))?;
        let wrong = || self.failed(senseless(server, tool));
        digest.map(|digest| Digest::from_bytes(&digest).ok_or_else(wrong)).transpose()
    }

    /// Pins what somebody accepted: all of it, or nothing.
    ///
    /// # Errors
    /// [`NotAccepted`].
    pub async fn accept_pins(&self, accepted: &[Acceptance]) -> Result<(), NotAccepted> {
        let (mut connection, turn) = self.lend().await?;
        let done = accept(&mut connection, accepted).await;
        match turn.over(connection, done).map_err(|problem| self.failed(problem))? {
            None => Ok(()),
            Some(other) => Err(NotAccepted::Other(other)),
        }
    }

    /// Forgets the pins of a server, all or those of these tools: what it offers is pinned anew when it is seen next.
    /// Says how many there were.
    ///
    /// # Errors
    /// When it cannot be written; all are still there then.
    pub async fn forget_pins(&self, server: &str, tools: &[String]) -> Result<u64, StoreError> {
        let forget = "DELETE FROM pins WHERE server = ?1 AND (?2 = '[]' OR tool IN (SELECT value FROM json_each(?2)))";
        self.changes(sqlx::query(forget).bind(server).bind(serde_json::json!(tools).to_string())).await
    }
}

/// Gives the first that could not be accepted; nothing was written then.
async fn accept(connection: &mut SqliteConnection, accepted: &[Acceptance]) -> Result<Option<Acceptance>, Problem> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    for one in accepted {
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
    let PinRow { server, tool, pinned, changed } = row;
    let wrong = || senseless(&server, &tool);
    let definition = |(digest, text, since): (Vec<u8>, String, i64)| {
        let digest = Digest::from_bytes(&digest).filter(|digest| *digest == Digest::of(&text))?;
        Some(StoredDefinition { digest, text, since: time(since)? })
    };
    let pinned = definition(pinned).ok_or_else(wrong)?;
    let changed = changed.map(|changed| definition(changed).ok_or_else(wrong)).transpose()?;
    Ok(StoredPin { server, tool, pinned, changed })
}

impl PinStore for Store {
    fn pins_revision(&self) -> BoxFuture<'_, Result<i64, NoPins>> {
        Box::pin(async { Self::pins_revision(self).await.map_err(NoPins::because) })
    }

    fn compare_pins<'a>(
        &'a self,
        server: &'a ServerName,
        offered: &'a [Definition<'a>],
        listed: bool,
    ) -> BoxFuture<'a, Result<Compared, NoPins>> {
        Box::pin(async move { Self::compare_pins(self, server, offered, listed).await.map_err(NoPins::because) })
    }

    fn pinned_digest<'a>(&'a self, server: &'a str, tool: &'a str) -> BoxFuture<'a, Result<Option<Digest>, NoPins>> {
        Box::pin(async { Self::pinned_digest(self, server, tool).await.map_err(NoPins::because) })
    }
}

impl PinReview for Store {
    fn pins<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, Result<Vec<StoredPin>, StoreError>> {
        Box::pin(Self::pins(self, server))
    }

    fn accept_pins<'a>(&'a self, accepted: &'a [Acceptance]) -> BoxFuture<'a, Result<(), NotAccepted>> {
        Box::pin(Self::accept_pins(self, accepted))
    }

    fn forget_pins<'a>(&'a self, server: &'a str, tools: &'a [String]) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(Self::forget_pins(self, server, tools))
    }
}
