//! Pins in the store: what the definition of each tool was, and what it is where nobody accepted the change.

mod compare;

use std::time::SystemTime;

use sqlx::{
    Connection as _, FromRow, Row as _, Sqlite, SqliteConnection,
    query::QueryScalar,
    sqlite::{SqliteArguments, SqliteRow},
};

use super::{
    Store,
    time::{millis, time},
};
use crate::store::{Acceptance, NotAccepted, PinReview, Problem, StoreError, StoredDefinition, StoredPin};
use footbridge_calls::pins::{Compared, Definition, NoPins, PinStore, PinnedServer};
use footbridge_core::digest::Digest;
use futures::{FutureExt as _, TryFutureExt as _, future::BoxFuture};

impl Store {
    /// What a statement for one value gives.
    async fn value<T>(&self, query: QueryScalar<'_, Sqlite, T, SqliteArguments>) -> Result<T, StoreError>
    where
        T: Send + Unpin,
        (T,): for<'r> FromRow<'r, SqliteRow>,
    {
        let (mut connection, turn) = self.lend().await?;
        let read = query.fetch_one(&mut connection).await.map_err(Problem::from);
        turn.over(connection, read).map_err(|problem| self.failed(problem))
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

fn pin(row: &SqliteRow) -> Result<StoredPin, Problem> {
    let (server, origin, tool): (String, _, String) =
        (row.try_get("server")?, row.try_get("origin")?, row.try_get("tool")?);
    let definition = |digest: &[u8], text: &str, since: &str| -> Result<StoredDefinition, Problem> {
        let (text, since): (String, i64) = (row.try_get(text)?, row.try_get(since)?);
        let digest = Digest::from_bytes(digest).filter(|digest| *digest == Digest::of(&text));
        let whole = digest.zip(time(since)).map(|(digest, since)| StoredDefinition { digest, text, since });
        whole.ok_or_else(|| Problem::Damaged(format!("the pin of tool {tool:?} of server {server:?} makes no sense")))
    };
    let pinned = definition(row.try_get("digest")?, "definition", "pinned")?;
    let changed: Option<&[u8]> = row.try_get("changed_digest")?;
    let changed = changed.map(|digest| definition(digest, "changed_definition", "changed")).transpose()?;
    Ok(StoredPin { server, origin, tool, pinned, changed })
}

impl PinStore for Store {
    fn pins_revision(&self, waits: bool) -> BoxFuture<'_, Result<Option<i64>, NoPins>> {
        let read = async move {
            let lent = if waits { Some(self.lend().await?) } else { self.lend_at_once().await? };
            let Some((mut connection, turn)) = lent else { return Ok(None) };
            let revision = sqlx::query_scalar("SELECT revision FROM pins_revision").fetch_one(&mut connection).await;
            turn.over(connection, revision.map_err(Problem::from)).map(Some).map_err(|problem| self.failed(problem))
        };
        read.map_err(NoPins::because).boxed()
    }

    fn compare_pins<'a>(
        &'a self,
        server: PinnedServer<'a>,
        offered: &'a [Definition<'a>],
        listed: bool,
    ) -> BoxFuture<'a, Result<Compared, NoPins>> {
        Box::pin(async move {
            let (mut connection, turn) = self.lend().await.map_err(NoPins::because)?;
            let compared = compare::compare(&mut connection, server, offered, listed).await;
            turn.over(connection, compared).map_err(|problem| NoPins::because(self.failed(problem)))
        })
    }

    fn is_pinned<'a>(&'a self, server: &'a str, tool: &'a str, digest: Digest) -> BoxFuture<'a, Result<bool, NoPins>> {
        let one = "SELECT EXISTS (SELECT 1 FROM pins WHERE server = ? AND tool = ? AND digest = ?)";
        let one = sqlx::query_scalar(one).bind(server).bind(tool).bind(digest.as_bytes().to_vec());
        self.value(one).map_err(NoPins::because).boxed()
    }
}

impl PinReview for Store {
    fn pins<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, Result<Vec<StoredPin>, StoreError>> {
        Box::pin(async move {
            let all = "SELECT server, origin, tool, digest, definition, pinned, changed_digest, changed_definition, changed \
                       FROM pins WHERE ?1 IS NULL OR server = ?1 ORDER BY server, origin, tool";
            let (mut connection, turn) = self.lend().await?;
            let rows = sqlx::query(all).bind(server).fetch_all(&mut connection).await;
            let rows = turn.over(connection, rows.map_err(Problem::from)).map_err(|problem| self.failed(problem))?;
            rows.iter().map(|row| pin(row).map_err(|problem| self.failed(problem))).collect()
        })
    }

    fn accept_pins<'a>(&'a self, accepted: &'a [Acceptance]) -> BoxFuture<'a, Result<(), NotAccepted>> {
        Box::pin(async move {
            let (mut connection, turn) = self.lend().await?;
            let done = accept(&mut connection, accepted).await;
            match turn.over(connection, done).map_err(|problem| self.failed(problem))? {
                None => Ok(()),
                Some(other) => Err(NotAccepted::Other(other)),
            }
        })
    }

    fn forget_pins<'a>(
        &'a self,
        server: &'a str,
        origin: &'a str,
        tools: &'a [String],
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        let forget = "DELETE FROM pins WHERE server = ?1 AND origin = ?2 \
                      AND (?3 = '[]' OR tool IN (SELECT value FROM json_each(?3)))";
        let forget = sqlx::query(forget).bind(server).bind(origin).bind(serde_json::json!(tools).to_string());
        self.changes(forget).boxed()
    }
}
