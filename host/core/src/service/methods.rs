//! Methods that clients ask with.

/// Methods of HTTP and of what is spoken over it (WebDAV).
pub const METHODS: [&str; 24] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "QUERY",
    "CONNECT",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "SEARCH",
    "REPORT",
    "ACL",
    "MKCALENDAR",
    "CHECKOUT",
    "MERGE",
    "PURGE",
];
