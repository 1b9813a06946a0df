//! Why a request is refused before it is read. Each has a status and a text; a dialect may write them in its own shape.

use http::StatusCode;

/// Why a request goes no further than its head or its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A header's name has a `_`, which others on the way may take for a `-`.
    HeaderName,
    /// No `Host`, several, or one that is none.
    BadHost,
    /// A `Host` that is neither loopback nor allowed.
    Host,
    /// It comes from a web page.
    WebPage,
    /// It comes from another site.
    CrossSite,
    /// It asks as of a proxy, where there are no tunnels.
    NoTunnels,
    /// There is nothing at its path.
    NotFound,
    /// It is no POST, and its path has nothing else.
    NotPost,
    /// It shows no token, or a wrong one.
    Token,
    /// Its body has no length.
    Chunked,
    /// Its body is not said to be JSON.
    NotJson,
    /// Its body is compressed.
    Encoded,
    /// Its body is over the limit.
    TooLarge,
    /// Its body took too long.
    TooSlow,
    /// Its body ended early.
    Broken,
    /// Too many bytes are held for others.
    Busy,
    /// Something here failed while it was read.
    Unreadable,
}

impl Refusal {
    /// The status of HTTP for it.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::HeaderName | Self::BadHost | Self::Chunked | Self::Broken => StatusCode::BAD_REQUEST,
            Self::Host | Self::WebPage | Self::CrossSite => StatusCode::FORBIDDEN,
            Self::NotFound | Self::NoTunnels => StatusCode::NOT_FOUND,
            Self::NotPost => StatusCode::METHOD_NOT_ALLOWED,
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::NotJson | Self::Encoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unreadable => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// What the guest is told.
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::HeaderName => "Header names with _ are refused",
            Self::BadHost => "Exactly one Host header is required, a name or an address with or without a port",
            Self::Host => "Host not allowed",
            Self::WebPage => "Requests from web pages are refused",
            Self::CrossSite => "Cross-site requests are refused",
            Self::NoTunnels => {
                "This session has no tunnels, so its port is no proxy: the operator gives it them with --service tunnels"
            }
            Self::NotFound => "Not found: services are below /s/NAME/",
            Self::NotPost => "Only POST accepted",
            Self::Token => "Unauthorized",
            Self::Chunked => "Transfer-Encoding is refused: send Content-Length",
            Self::NotJson => "Content-Type must be application/json",
            Self::Encoded => "Content-Encoding is refused",
            Self::TooLarge => "Request too large",
            Self::TooSlow => "The body did not arrive in time",
            Self::Broken => "The body did not arrive whole",
            Self::Busy => "Too many bytes are held at once: try again in a moment",
            Self::Unreadable => "The request could not be read",
        }
    }

    /// Whether no other request may be read from its connection.
    pub(crate) fn closes(self) -> bool {
        matches!(self, Self::HeaderName | Self::BadHost | Self::Chunked) || self.ends_body()
    }

    /// Whether nothing more of its body is to be read either.
    pub(crate) fn ends_body(self) -> bool {
        matches!(self, Self::TooLarge | Self::TooSlow | Self::Broken)
    }
}
