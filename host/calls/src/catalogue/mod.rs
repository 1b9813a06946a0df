//! What a server offers, in three types, one made of the other: `Offered`, of core, is what a provider gives; [`Vetted`]
//! is that, compared with its pins; [`Visible`] is what of that a session may see. Guests are answered from the third.

mod vetted;
mod visible;

pub use vetted::Vetted;
pub use visible::Visible;
pub(crate) use visible::no_such_resource;
