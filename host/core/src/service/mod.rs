//! Services as values: which requests to a named HTTP origin there may be, and what they can do.
//!
//! A path is read strictly ([`RequestPath`]): what two readers could take for two paths is refused, never repaired. A
//! [`RequestPattern`] is a method and a pattern of paths, and [`ServiceRules`] say with them what may be asked and what
//! it does. It refuses to know sockets, addresses and credentials.

mod methods;
mod path;
mod requests;

pub use methods::METHODS;
pub use path::{BadPath, RequestPath};
/// The name of the service that tunnels, and plain requests as of a proxy, are.
pub const TUNNELS: &str = "tunnels";

pub use requests::{BadPattern, RequestPattern, ServiceRules};
