//! What a stage gives, made by a trait: as a default, or read from a text.

use footbridge_calls::approval::Cleared;
use footbridge_calls::approval::Question;
use footbridge_calls::auth::Principal;
use footbridge_calls::decide::Verdict;
use footbridge_calls::upstream::Executed;
use footbridge_calls::provider::Outgoing;
use footbridge_calls::admit::Admitted;
use footbridge_calls::admit::Receipt;
use footbridge_calls::reply::Reply;
use footbridge_calls::resolve::ResolvedCall;
use footbridge_calls::session::Shown;
use serde::de::DeserializeOwned;

fn default<T: Default>() {}

fn read<T: DeserializeOwned>() {}

fn defaults() {
    default::<String>();
    default::<Shown>(); //~ E0277
    default::<Principal>(); //~ E0277
    default::<ResolvedCall>(); //~ E0277
    default::<Verdict>(); //~ E0277
    default::<Question>(); //~ E0277
    default::<Cleared>(); //~ E0277
    default::<Admitted>(); //~ E0277
    default::<Receipt>(); //~ E0277
    default::<Outgoing>(); //~ E0277
    default::<Executed>(); //~ E0277
    default::<Reply>(); //~ E0277
}

fn texts() {
    read::<String>();
    read::<Shown>(); //~ E0277
    read::<Principal>(); //~ E0277
    read::<ResolvedCall>(); //~ E0277
    read::<Verdict>(); //~ E0277
    read::<Question>(); //~ E0277
    read::<Cleared>(); //~ E0277
    read::<Admitted>(); //~ E0277
    read::<Receipt>(); //~ E0277
    read::<Outgoing>(); //~ E0277
    read::<Executed>(); //~ E0277
    read::<Reply>(); //~ E0277
}
