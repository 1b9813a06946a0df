//! Sessions over a store that fails.

use super::*;
use crate::{
    config::folders::Folders,
    store::{SessionStore as _, memory_tests::InMemory},
};
use footbridge_audit::VolatileJournal;
use footbridge_calls::provider::InProcess;
use footbridge_core::{gate::Policy, limits::Limits};

#[tokio::test]
async fn one_that_cannot_be_made_nor_taken_out_of_the_store_is_said_and_can_be_revoked() {
    let tools = Arc::new(InProcess::new("x").build().unwrap());
    let harness = Harness::over(tools, Limits::default(), &[], VolatileJournal::new(), None).unwrap();
    // What takes the name, so that none of it can be opened.
    let name: SessionName = "one".parse().unwrap();
    harness.open(SessionSpec::new(name.clone(), &new_token().unwrap(), Policy::open()), Vec::new()).unwrap();
    let (folder, store) = (tempfile::tempdir().unwrap(), InMemory::default());
    let folders = Folders::find(7, |name| (name == "HOME").then(|| folder.path().into())).unwrap();
    let runtime = folder.path().join("runtime");
    let reloader = Reloader::new(Vec::new(), folders, &Config::default());
    let sessions = Sessions::new(harness, Arc::new(store.clone()), &runtime, reloader, BTreeSet::new());
    let asked =
        CreateSession { name: name.to_string(), policy: "open".into(), socket_mode: 0o600, ..Default::default() };

    let refused = sessions.create(&asked).await.err().unwrap().message;
    assert!(!refused.contains("store") && sessions.0.kept.lock().await.is_empty(), "{refused}");
    store.removes_no_session(true);
    let refused = sessions.create(&asked).await.err().unwrap().message;
    assert!(refused.contains("is locked") && refused.contains("footbridge session revoke one"), "{refused}");
    let closed = sessions.0.kept.lock().await[&name].closed.clone().unwrap();
    assert!(closed.contains("could not be made"), "{closed}");

    let operator = Operator::UnixPeer { uid: 7, pid: 9 };
    assert!(sessions.revoke(&operator, &name).await.is_err());
    store.removes_no_session(false);
    sessions.revoke(&operator, &name).await.unwrap();
    assert!(sessions.0.kept.lock().await.is_empty() && store.sessions().await.unwrap().is_empty());
    sessions.stop().await;
}
