//! Requests to services sent past the stages, and exchanges that no stage opened or that end twice.

use footbridge_audit::ExchangeRecord;
use footbridge_audit::RecordedOutcome;
use footbridge_calls::provider::Outgoing;
use footbridge_calls::record::Audit;
use footbridge_calls::service::Forward;
use footbridge_calls::service::OpenExchange;
use footbridge_calls::service::ServiceRequest;
use footbridge_calls::session::Place;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

fn default<T: Default>() {}

fn copied<T: Clone>() {}

fn read<T: DeserializeOwned>() {}

async fn a_request_that_nobody_admitted<F: Forward>(carrier: &F, request: ServiceRequest, parcel: F::Parcel) {
    let _ = carrier.send(request, parcel, &CancellationToken::new()).await; //~ E0308
}

async fn one_admission_for_two_requests<F: Forward>(
    carrier: &F,
    outgoing: Outgoing,
    parcel: F::Parcel,
    another: F::Parcel,
) {
    let _ = carrier.send(outgoing, parcel, &CancellationToken::new()).await;
    let _ = carrier.send(outgoing, another, &CancellationToken::new()).await; //~ E0382
}

fn an_exchange_that_no_stage_opened(audit: Audit, place: Place) {
    let _ = OpenExchange::new(todo!(), audit, place); //~ E0624
}

fn exchanges_out_of_nothing() {
    default::<String>();
    default::<OpenExchange>(); //~ E0277
    copied::<String>();
    copied::<OpenExchange>(); //~ E0277
    read::<String>();
    read::<OpenExchange>(); //~ E0277
}

fn what_an_exchange_holds(exchange: &OpenExchange) {
    let _ = &exchange.receipt; //~ E0616
    let _ = &exchange.audit; //~ E0616
}

fn two_ends_of_one_exchange(exchange: OpenExchange, passed: ExchangeRecord, again: ExchangeRecord) {
    exchange.close(RecordedOutcome::Ok, None, passed);
    exchange.close(RecordedOutcome::Ok, None, again); //~ E0382
}
