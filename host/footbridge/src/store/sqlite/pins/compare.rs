//! What a server offers against its pins: what is new is pinned, what differs is kept beside its pin.

use std::{collections::HashMap, time::SystemTime};

use sqlx::{Connection as _, SqliteConnection};

use super::millis;
use crate::store::Problem;
use footbridge_calls::pins::{Compared, Definition, PinnedServer};

/// Most pins of one server: those of a few listings of the most tools that one may have. Without it a server that
/// offers other tools all the time would fill the disk.
const MAX_PINS: i64 = 8_000;
/// Bytes of all pinned definitions of one server, likewise; and of all that are kept beside them since they changed.
const MAX_BYTES: i64 = 16 * 1024 * 1024;

/// What is to be written of a comparison.
#[derive(Default)]
struct Todo<'d> {
    known: bool,
    new: Vec<Definition<'d>>,
    changed: Vec<Definition<'d>>,
    /// Of the changed, those whose definition is to be kept.
    keep: Vec<Definition<'d>>,
    /// Tools that are what was pinned again.
    back: Vec<&'d str>,
}

/// Compares, and writes what there is to write: all of it, or nothing.
pub(super) async fn compare(
    connection: &mut SqliteConnection,
    server: PinnedServer<'_>,
    offered: &[Definition<'_>],
    listed: bool,
) -> Result<Compared, Problem> {
    // Mostly there is nothing to write, and nobody has to wait for another's turn.
    let mut reading = connection.begin().await?;
    let todo = look(&mut reading, server, offered, listed).await?;
    if todo.new.is_empty() && todo.keep.is_empty() && todo.back.is_empty() {
        let compared = compared(&mut reading, server, &todo).await?;
        reading.commit().await?;
        return Ok(compared);
    }
    reading.rollback().await?;
    let mut writing = connection.begin_with("BEGIN IMMEDIATE").await?;
    let todo = look(&mut writing, server, offered, listed).await?;
    write(&mut writing, server, &todo).await?;
    let compared = compared(&mut writing, server, &todo).await?;
    writing.commit().await?;
    Ok(compared)
}

async fn look<'d>(
    connection: &mut SqliteConnection,
    server: PinnedServer<'_>,
    offered: &[Definition<'d>],
    listed: bool,
) -> Result<Todo<'d>, Problem> {
    let all = "SELECT tool, digest, changed_digest FROM pins WHERE server = ? AND origin = ?";
    let rows: Vec<(String, Vec<u8>, Option<Vec<u8>>)> =
        sqlx::query_as(all).bind(server.name.as_str()).bind(server.origin).fetch_all(connection).await?;
    let pins: HashMap<&str, (&[u8], Option<&[u8]>)> =
        rows.iter().map(|(tool, pinned, changed)| (tool.as_str(), (pinned.as_slice(), changed.as_deref()))).collect();
    let mut todo = Todo { known: !rows.is_empty(), ..Todo::default() };
    for definition in offered {
        let digest = definition.digest.as_bytes().as_slice();
        match pins.get(definition.tool) {
            None => todo.new.push(*definition),
            Some((pinned, None)) if *pinned == digest => {}
            // Another harness may still see the change: only what was just listed says that it is gone.
            Some((pinned, Some(_))) if *pinned == digest => todo.back.extend(listed.then_some(definition.tool)),
            Some((_, kept)) => {
                todo.changed.push(*definition);
                if kept.is_none_or(|kept| listed && kept != digest) {
                    todo.keep.push(*definition);
                }
            }
        }
    }
    Ok(todo)
}

async fn write(connection: &mut SqliteConnection, server: PinnedServer<'_>, todo: &Todo<'_>) -> Result<(), Problem> {
    let now = millis(SystemTime::now());
    let (name, origin) = (server.name.as_str(), server.origin);
    for Definition { tool, digest, text } in &todo.new {
        let add = "INSERT INTO pins (server, origin, tool, digest, definition, pinned) VALUES (?, ?, ?, ?, ?, ?)";
        let add = sqlx::query(add)
            .bind(name)
            .bind(origin)
            .bind(*tool)
            .bind(digest.as_bytes().as_slice())
            .bind(*text)
            .bind(now);
        add.execute(&mut *connection).await?;
    }
    for Definition { tool, digest, text } in &todo.keep {
        let keep = "UPDATE pins SET changed_digest = ?, changed_definition = ?, changed = ? \
                    WHERE server = ? AND origin = ? AND tool = ?";
        let keep = sqlx::query(keep).bind(digest.as_bytes().as_slice()).bind(*text).bind(now);
        keep.bind(name).bind(origin).bind(*tool).execute(&mut *connection).await?;
    }
    for tool in &todo.back {
        let back = "UPDATE pins SET changed_digest = NULL, changed_definition = NULL, changed = NULL \
                    WHERE server = ? AND origin = ? AND tool = ?";
        sqlx::query(back).bind(name).bind(origin).bind(*tool).execute(&mut *connection).await?;
    }
    if !todo.new.is_empty() || !todo.keep.is_empty() {
        let sum = "SELECT count(*), coalesce(sum(length(CAST(definition AS BLOB))), 0), \
                   coalesce(sum(length(CAST(changed_definition AS BLOB))), 0) FROM pins WHERE server = ? AND origin = ?";
        let sum = sqlx::query_as(sum).bind(name).bind(origin);
        let (count, pinned, changed): (i64, i64, i64) = sum.fetch_one(connection).await?;
        if count > MAX_PINS || pinned.max(changed) > MAX_BYTES {
            return Err(Problem::TooManyPins { pins: MAX_PINS, bytes: MAX_BYTES });
        }
    }
    Ok(())
}

async fn compared(
    connection: &mut SqliteConnection,
    server: PinnedServer<'_>,
    todo: &Todo<'_>,
) -> Result<Compared, Problem> {
    let (name, origin) = (server.name.as_str(), server.origin);
    let mut changed = Vec::with_capacity(todo.changed.len());
    for definition in &todo.changed {
        let of = "SELECT definition FROM pins WHERE server = ? AND origin = ? AND tool = ?";
        let of = sqlx::query_scalar(of).bind(name).bind(origin).bind(definition.tool);
        let pinned = of.fetch_one(&mut *connection).await?;
        changed.push((definition.tool.to_owned(), pinned));
    }
    let others = "SELECT EXISTS (SELECT 1 FROM pins WHERE server = ? AND origin <> ?)";
    let name_was_known = sqlx::query_scalar(others).bind(name).bind(origin).fetch_one(&mut *connection).await?;
    let revision = sqlx::query_scalar("SELECT revision FROM pins_revision").fetch_one(connection).await?;
    let new = todo.new.iter().map(|definition| definition.tool.to_owned()).collect();
    Ok(Compared { revision, was_known: todo.known, name_was_known, new, changed })
}
