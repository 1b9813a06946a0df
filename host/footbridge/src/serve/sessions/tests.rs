//! Sessions over a store that fails, and where ports are another's.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};

use super::*;
use crate::{
    config::folders::Folders,
    store::{SessionStore as _, memory_tests::InMemory},
};
use footbridge_audit::VolatileJournal;
use footbridge_calls::{provider::InProcess, session::BudgetOf};
use footbridge_core::{gate::Policy, limits::Limits};

/// Sessions over this store, with one tool server, for a test that ends with `folder`.
fn sessions(store: &InMemory, folder: &Path) -> Sessions {
    let tools = Arc::new(InProcess::new("x").build().unwrap());
    let harness = Harness::over(tools, Limits::default(), &[], VolatileJournal::new(), None).unwrap();
    let folders = Folders::find(7, |name| (name == "HOME").then(|| folder.into())).unwrap();
    let reloader = Reloader::new(Vec::new(), folders, &Config::default());
    Sessions::new(harness, Arc::new(store.clone()), &folder.join("runtime"), reloader, BTreeSet::new())
}

#[tokio::test]
async fn one_that_cannot_be_made_nor_taken_out_of_the_store_is_said_and_can_be_revoked() {
    let (folder, store) = (tempfile::tempdir().unwrap(), InMemory::default());
    let sessions = sessions(&store, folder.path());
    // What takes the name, so that none of it can be opened.
    let name: SessionName = "one".parse().unwrap();
    let taken = SessionSpec::new(name.clone(), &new_token().unwrap(), Policy::open());
    sessions.harness().open(taken, Vec::new()).unwrap();
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
    sessions.stop().await.unwrap();
}

#[tokio::test]
async fn one_that_ended_and_is_still_in_the_store_is_listed_and_made_anew() {
    let (folder, store) = (tempfile::tempdir().unwrap(), InMemory::default());
    let sessions = sessions(&store, folder.path());
    let asked =
        CreateSession { name: "one".to_owned(), policy: "open".into(), socket_mode: 0o600, ..Default::default() };
    let stored = sessions.create(&asked).await.ok().unwrap().stored;
    store.removes_no_session(true);
    let operator = Operator::UnixPeer { uid: 7, pid: 9 };
    assert!(sessions.revoke(&operator, &stored.name).await.is_err());
    let refused = sessions.ensure(&asked).await.err().unwrap().message;
    assert!(refused.contains("is locked"), "{refused}");
    store.removes_no_session(false);
    let again = sessions.ensure(&asked).await.ok().unwrap();
    assert!(!again.was_there && again.stored.token != stored.token);
    // The same of one whose time was over while no daemon ran.
    sessions.revoke(&operator, &stored.name).await.unwrap();
    store.add_session(&StoredSession { expires: Some(SystemTime::UNIX_EPOCH), ..stored.clone() }).await.unwrap();
    store.removes_no_session(true);
    assert_eq!(sessions.restore().await.unwrap(), 1);
    let closed = sessions.0.kept.lock().await[&stored.name].closed.clone().unwrap();
    assert!(closed.contains("it has ended (expired)"), "{closed}");
    store.removes_no_session(false);
    assert!(!sessions.ensure(&asked).await.ok().unwrap().was_there);
    sessions.stop().await.unwrap();
}

#[tokio::test]
async fn what_ended_is_taken_out_of_the_store_once_it_can_be_and_is_an_error_at_the_end_where_it_cannot() {
    let (folder, store) = (tempfile::tempdir().unwrap(), InMemory::default());
    let first = sessions(&store, folder.path());
    let asked = |name: &str| CreateSession {
        name: name.to_owned(),
        policy: "open".into(),
        socket_mode: 0o600,
        ..Default::default()
    };
    let operator = Operator::UnixPeer { uid: 7, pid: 9 };
    for name in ["one", "two"] {
        let _given = first.create(&asked(name)).await.ok().unwrap();
    }
    store.removes_no_session(true);
    let one: SessionName = "one".parse().unwrap();
    let refused = first.revoke(&operator, &one).await.err().unwrap().message;
    assert!(refused.contains("tried until it is done"), "{refused}");
    store.removes_no_session(false);
    first.keep_store();
    let forgotten = async {
        while store.sessions().await.unwrap().len() > 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), forgotten).await.unwrap();
    assert_eq!(Sessions::names(&*first.0.kept.lock().await), ["two".to_owned()].into());

    store.removes_no_session(true);
    assert!(first.revoke(&operator, &"two".parse().unwrap()).await.is_err());
    let text = first.stop().await.unwrap_err().to_string();
    assert!(text.contains("(two)") && text.contains("is locked") && text.contains("revoke them then"), "{text}");
}

#[tokio::test]
async fn what_sessions_spend_is_kept_where_it_is_new_and_tried_again_where_it_cannot_be() {
    let (folder, store) = (tempfile::tempdir().unwrap(), InMemory::default());
    let sessions = sessions(&store, folder.path());
    let asked =
        CreateSession { name: "one".to_owned(), policy: "open".into(), socket_mode: 0o600, ..Default::default() };
    let stored = sessions.create(&asked).await.ok().unwrap().stored;
    let spent: BudgetsSpent = [(BudgetOf::Tokens, 9)].into_iter().collect();
    let has_spent = SessionSpec {
        spent: spent.clone(),
        ..SessionSpec::new(stored.name.clone(), &new_token().unwrap(), Policy::open())
    };
    // As if the daemon had been started anew, and it had spent more since.
    let operator = Operator::UnixPeer { uid: 7, pid: 9 };
    sessions.harness().revoke(&operator, &stored.name).await;
    let life = sessions.harness().open(has_spent, Vec::new()).unwrap();
    let unspent = stored.clone();
    sessions.0.kept.lock().await.insert(stored.name.clone(), Kept::new(stored, Some(life)));
    let open = sessions.harness().open_sessions();
    let keep = || spent::keep(&store, &sessions.0.kept, &open);
    let in_store = async || store.sessions().await.unwrap()[0].spent.clone();

    store.keeps_no_spending(true);
    assert!(keep().await.is_err() && in_store().await == BudgetsSpent::default());
    store.keeps_no_spending(false);
    for _ in 0..2 {
        keep().await.unwrap();
        assert_eq!((in_store().await, store.spending_kept()), (spent.clone(), 1));
    }
    // By itself, too.
    store.set_spent(&[unspent]).await.unwrap();
    sessions.0.kept.lock().await.values_mut().for_each(|kept| kept.stored.spent = BudgetsSpent::default());
    sessions.keep_store();
    while in_store().await != spent {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(open);
    sessions.stop().await.unwrap();
}

#[tokio::test]
async fn ports_that_another_has_are_not_waited_for_after_a_restart() {
    let (folder, store) = (tempfile::tempdir().unwrap(), InMemory::default());
    let sessions = sessions(&store, folder.path());
    let asked =
        CreateSession { name: "one".to_owned(), policy: "open".into(), socket_mode: 0o600, ..Default::default() };
    let mut stored = sessions.create(&asked).await.ok().unwrap().stored;
    let operator = Operator::UnixPeer { uid: 7, pid: 9 };
    sessions.revoke(&operator, &stored.name).await.unwrap();
    let another = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint: Endpoint = format!("tcp:{}", another.local_addr().unwrap()).parse().unwrap();
    stored.listens = vec![Listen::at(endpoint); 64];
    store.add_session(&stored).await.unwrap();

    // Whoever waits gives its thread back.
    let pauses = || getrusage(UsageWho::RUSAGE_THREAD).unwrap().voluntary_context_switches();
    let before = pauses();
    assert_eq!(sessions.restore().await.unwrap(), 1);
    let paused = pauses() - before;
    assert_eq!(sessions.0.kept.lock().await[&stored.name].broken.len(), 64);
    assert!(paused < 64, "{paused}");
    sessions.stop().await.unwrap();
}
