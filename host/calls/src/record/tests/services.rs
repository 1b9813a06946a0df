//! A request to a service whose carrier fails inside.

use std::sync::Arc;

use footbridge_core::{budget::Share, limits::AuditLimits, redact::Redactor, service::RequestPath};
use footbridge_proto::rpc::Reason;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{Fault, World};
use crate::{
    cause::Cause,
    provider::{Outgoing, Unanswered},
    record::Audit,
    service::{BegunAnswer, Forward, HeldRequest, KnownService, OpenExchange, ServiceRequest, Waiter, WholeRequest},
    watcher::Watcher,
};

struct Panics;

/// Its answer, of which there is none.
#[derive(Debug)]
enum Never {}

impl BegunAnswer for Never {
    fn recorded_by(&mut self, _: OpenExchange) {}
}

impl Forward for Panics {
    type Parcel = ();
    type Answer = Never;

    fn known(&self, _: &str) -> Option<KnownService> {
        Some(KnownService { rules: Arc::default(), revision: 1 })
    }

    fn hold<'a>(&'a self, (): &'a mut (), _: &'a Share, _: usize) -> BoxFuture<'a, Result<HeldRequest, Cause>> {
        Box::pin(async { Err(Cause::BodyBroken) })
    }

    async fn send(&self, _: Outgoing, (): (), _: &CancellationToken) -> Result<Never, Unanswered> {
        panic!("on purpose")
    }
}

#[tokio::test]
async fn a_request_that_panics_on_its_way_has_an_outcome() {
    let world = World::start();
    let journal = world.journal(Fault::Nothing);
    let audit = Audit::start(journal.clone(), Redactor::default(), AuditLimits::default()).unwrap();
    let request = ServiceRequest {
        service: "web".to_owned(),
        method: "GET".to_owned(),
        path: RequestPath::read("/x").unwrap(),
        query: None,
        length: None,
        is_websocket: false,
    };
    let whole = WholeRequest { request, parcel: () };
    let waiter = Waiter { cancel: CancellationToken::new(), watcher: Watcher::silent() };
    let failure = world.stages(&audit).forward(World::principal(), whole, &Panics, waiter).await.unwrap_err();
    assert_eq!(failure.cause.reason(), Reason::OutcomeUnknown);
    audit.close().unwrap();
    let record = journal.durable();
    assert!(record.contains(r#""outcome":"unknown""#), "{record}");
    world.end().await;
}
