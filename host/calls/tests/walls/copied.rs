//! Copies, to use one thing twice. A principal may be copied: it says who asks, and a token may be used any number of
//! times.

use footbridge_calls::auth::Principal;
use footbridge_calls::provider::Outgoing;
use footbridge_calls::reply::Reply;
use footbridge_calls::request::OutgoingRequest;
use footbridge_calls::upstream::Executed;

fn copied<T: Clone>() {}

fn copies() {
    copied::<Principal>();
    copied::<Outgoing>(); //~ E0277
    copied::<OutgoingRequest>(); //~ E0277
    copied::<Executed>(); //~ E0277
    copied::<Reply>(); //~ E0277
}

fn a_copy_of_a_call_for_a_provider(outgoing: &Outgoing) -> Option<Outgoing> {
    Some(outgoing.clone()) //~ E0308
    //= None
}
