//! Signed heads of the record in the store: a second place beside `heads.jsonl`, which a cut of the audit folder
//! leaves.

use std::path::Path;

use futures::{FutureExt as _, future::BoxFuture};
use sqlx::{
    Connection as _, Row as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteRow},
};

use super::{FILE, Store, connection::BUSY, error_at, open};
use crate::store::{HeadStore, Problem, StoreError};
use footbridge_audit::{HeadSink, NotKept, SignedHead};

/// Heads that are kept of a chain; the newest say the most, and all are in `heads.jsonl`.
const KEPT: u32 = 64;

impl HeadSink for Store {
    fn keep<'a>(&'a mut self, heads: &'a [SignedHead]) -> BoxFuture<'a, Result<(), NotKept>> {
        let (store, heads) = (self.clone(), heads.to_vec());
        Box::pin(async move {
            let (tasks, home) = (store.tasks.clone(), store.home.clone());
            Ok(tasks.spawn_on(async move { store.keep_heads(&heads).await }, &home).await??)
        })
    }
}

impl HeadStore for Store {
    fn head_sink(&self) -> Box<dyn HeadSink> {
        Box::new(self.clone())
    }

    fn forget_heads<'a>(&'a self, chain: &'a str) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.changes(sqlx::query("DELETE FROM heads WHERE chain = ?").bind(chain)).boxed()
    }
}

impl Store {
    /// Keeps signed heads, and of each chain the newest alone.
    ///
    /// # Errors
    /// When they cannot be written; then none of them is.
    pub(crate) async fn keep_heads(&self, heads: &[SignedHead]) -> Result<(), StoreError> {
        let (mut connection, turn) = self.lend().await?;
        let kept = keep(&mut connection, heads).await;
        turn.over(connection, kept).map_err(|problem| self.failed(problem))
    }

    /// The heads in the store of a state folder, oldest first. Nothing is made or changed; none where there is no
    /// store, or one from before heads were kept.
    ///
    /// # Errors
    /// When it cannot be trusted or read.
    pub(crate) async fn heads_in(state: &Path) -> Result<Vec<SignedHead>, StoreError> {
        let path = state.join(FILE);
        let read = async {
            if path.symlink_metadata().is_err() {
                return Ok(Vec::new());
            }
            open::check(&path)?;
            match read_all(&path, true).await {
                // A harness was killed in the middle of a change, which only a writer can undo.
                Err(Problem::ReadOnly) => read_all(&path, false).await,
                read => read,
            }
        };
        read.await.map_err(|problem: Problem| error_at(&path, problem))
    }
}

async fn read_all(path: &Path, read_only: bool) -> Result<Vec<SignedHead>, Problem> {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(false).read_only(read_only);
    let mut connection = SqliteConnection::connect_with(&options.busy_timeout(BUSY)).await?;
    let found = all(&mut connection).await;
    connection.close().await?;
    found
}

async fn keep(connection: &mut SqliteConnection, heads: &[SignedHead]) -> Result<(), Problem> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    for head in heads {
        let add = "INSERT OR IGNORE INTO heads (chain, seq, hash, time, key, signature) VALUES (?, ?, ?, ?, ?, ?)";
        sqlx::query(add)
            .bind(&head.chain)
            .bind(head.seq.cast_signed())
            .bind(&head.hash)
            .bind(&head.time)
            .bind(&head.key)
            .bind(&head.signature)
            .execute(&mut *transaction)
            .await?;
        let prune = "DELETE FROM heads WHERE chain = ?1 AND seq < (SELECT min(seq) FROM (SELECT seq FROM heads \
                     WHERE chain = ?1 ORDER BY seq DESC LIMIT ?2))";
        sqlx::query(prune).bind(&head.chain).bind(KEPT).execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    Ok(())
}

async fn all(connection: &mut SqliteConnection) -> Result<Vec<SignedHead>, Problem> {
    let there = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'heads'";
    let tables: i64 = sqlx::query_scalar(there).fetch_one(&mut *connection).await?;
    if tables == 0 {
        return Ok(Vec::new());
    }
    let read = "SELECT chain, seq, hash, time, key, signature FROM heads ORDER BY chain, seq";
    let rows: Vec<SqliteRow> = sqlx::query(read).fetch_all(connection).await?;
    let head = |row: &SqliteRow| -> Result<SignedHead, sqlx::Error> {
        Ok(SignedHead {
            chain: row.try_get("chain")?,
            seq: row.try_get::<i64, _>("seq")?.cast_unsigned(),
            hash: row.try_get("hash")?,
            time: row.try_get("time")?,
            key: row.try_get("key")?,
            signature: row.try_get("signature")?,
        })
    };
    Ok(rows.iter().map(head).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(chain: &str, seq: u64) -> SignedHead {
        SignedHead {
            chain: chain.into(),
            seq,
            hash: format!("sha256:{seq}"),
            time: "2026-11-22T02:58:09.000000Z".into(),
            key: "ed25519:K".into(),
            signature: "S".into(),
        }
    }

    async fn kept(state: &Path) -> Vec<(String, u64)> {
        Store::heads_in(state).await.unwrap().into_iter().map(|head| (head.chain, head.seq)).collect()
    }

    #[tokio::test]
    async fn heads_come_back_as_they_were_and_the_oldest_go() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(kept(folder.path()).await, []);
        assert!(!folder.path().join(FILE).exists(), "looking makes nothing");
        let store = Store::open(folder.path()).await.unwrap();
        store.keep_heads(&[head("a", 1), head("b", 1)]).await.unwrap();
        store.keep_heads(&[head("a", 1)]).await.unwrap();
        assert_eq!(Store::heads_in(folder.path()).await.unwrap(), [head("a", 1), head("b", 1)]);
        let many: Vec<SignedHead> = (2..=u64::from(KEPT) + 6).map(|seq| head("a", seq)).collect();
        store.keep_heads(&many).await.unwrap();
        let found = kept(folder.path()).await;
        let of_a: Vec<u64> = found.iter().filter(|(chain, _)| chain == "a").map(|(_, seq)| *seq).collect();
        assert_eq!((of_a.len(), of_a.first(), of_a.last()), (KEPT as usize, Some(&7), Some(&(u64::from(KEPT) + 6))));
        assert_eq!(store.forget_heads("a").await.unwrap(), u64::from(KEPT));
        assert_eq!(kept(folder.path()).await, [("b".to_owned(), 1)]);
        store.close().await;
    }

    #[test]
    fn a_store_that_is_open_keeps_heads_on_a_thread_and_a_runtime_of_theirs() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let store = runtime.block_on(Store::open(folder.path())).unwrap();
        let mut sink = store.clone();
        let keeping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(sink.keep(&[head("a", 1), head("a", 2)])).unwrap();
        });
        keeping.join().unwrap();
        // The one connection came back.
        assert_eq!(runtime.block_on(store.forget_heads("b")).unwrap(), 0);
        assert_eq!(runtime.block_on(kept(folder.path())), [("a".to_owned(), 1), ("a".to_owned(), 2)]);
        runtime.block_on(store.close());
        let error = runtime.block_on(store.clone().keep(&[head("a", 3)])).unwrap_err();
        assert!(error.to_string().contains("closed"), "{error}");
    }

    #[tokio::test]
    async fn a_store_from_before_heads_has_none_and_gets_the_table() {
        let folder = tempfile::tempdir().unwrap();
        open::leave_older(&folder.path().join(FILE), 2).await;
        assert_eq!(kept(folder.path()).await, []);
        let store = Store::open(folder.path()).await.unwrap();
        store.keep_heads(&[head("a", 1)]).await.unwrap();
        assert_eq!(kept(folder.path()).await, [("a".to_owned(), 1)]);
        store.close().await;
    }
}
