//! Copies, to use one thing twice. A principal may be copied: it says who asks, and a token may be used any number of
//! times.

use footbridge_calls::approval::Cleared;
use footbridge_calls::approval::NotCleared;
use footbridge_calls::approval::Question;
use footbridge_calls::approval::Waiting;
use footbridge_calls::auth::Principal;
use footbridge_calls::decide::Verdict;
use footbridge_calls::upstream::Executed;
use footbridge_calls::provider::Outgoing;
use footbridge_calls::request::OutgoingRequest;
use footbridge_calls::admit::Admitted;
use footbridge_calls::admit::Receipt;
use footbridge_calls::reply::Reply;
use footbridge_calls::resolve::Found;
use footbridge_calls::resolve::ResolvedCall;
use footbridge_calls::resolve::Unresolved;

fn copied<T: Clone>() {}

fn copies() {
    copied::<Principal>();
    copied::<Found>(); //~ E0277
    copied::<ResolvedCall>(); //~ E0277
    copied::<Unresolved>(); //~ E0277
    copied::<Verdict>(); //~ E0277
    copied::<Question>(); //~ E0277
    copied::<Waiting>(); //~ E0277
    copied::<Cleared>(); //~ E0277
    copied::<NotCleared>(); //~ E0277
    copied::<Admitted>(); //~ E0277
    copied::<Receipt>(); //~ E0277
    copied::<Outgoing>(); //~ E0277
    copied::<OutgoingRequest>(); //~ E0277
    copied::<Executed>(); //~ E0277
    copied::<Reply>(); //~ E0277
}

fn a_copy_of_an_admission(admitted: &Admitted) -> Option<Admitted> {
    Some(admitted.clone()) //~ E0308
    //= None
}
