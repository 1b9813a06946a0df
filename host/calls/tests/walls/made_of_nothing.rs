//! What a stage gives, made by a trait: as a default, or read from a text.

use footbridge_calls::auth::Principal;
use footbridge_calls::provider::Outgoing;
use footbridge_calls::reply::Reply;
use footbridge_calls::upstream::Executed;
use serde::de::DeserializeOwned;

fn default<T: Default>() {}

fn read<T: DeserializeOwned>() {}

fn defaults() {
    default::<String>();
    default::<Principal>(); //~ E0277
    default::<Outgoing>(); //~ E0277
    default::<Executed>(); //~ E0277
    default::<Reply>(); //~ E0277
}

fn texts() {
    read::<String>();
    read::<Principal>(); //~ E0277
    read::<Outgoing>(); //~ E0277
    read::<Executed>(); //~ E0277
    read::<Reply>(); //~ E0277
}
