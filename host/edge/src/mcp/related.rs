//! Results that say of which task they are.

use std::collections::BTreeMap;

use footbridge_calls::cause::{Broken, Cause};
use footbridge_proto::rpc::raw;
use serde_json::{json, value::RawValue};

use crate::dialect::Found;

/// The member of `_meta` that says of which task something is.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// All members of an object, as they are written.
type Members<'a> = BTreeMap<String, &'a RawValue>;

/// A result that says of which task it is.
pub(super) fn to_task(result: &RawValue, id: &str) -> Found {
    let broken = |_| Cause::Internal(Broken::Result);
    let mut members: Members<'_> = serde_json::from_str(result.get()).map_err(broken)?;
    let mut meta: Members<'_> = match members.get("_meta") {
        Some(meta) if meta.get().starts_with('{') => serde_json::from_str(meta.get()).map_err(broken)?,
        _ => Members::new(),
    };
    let task = raw(&json!({ "taskId": id }));
    meta.insert(RELATED.to_owned(), &task);
    let meta = raw(&meta);
    members.insert("_meta".to_owned(), &meta);
    Ok(raw(&members))
}
