//! Why there is no connection to an origin.

use std::{error::Error, fmt, io};

use footbridge_calls::provider::NotSent;
use footbridge_outbound::OnlyPrivate;

/// Why there is no connection; what a guest may know of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoConnection {
    /// Its name leads nowhere.
    #[error("its name cannot be resolved")]
    Name,
    /// Its name leads to a private address alone.
    #[error("its name leads to a private address; the operator can set allow_private if that is meant")]
    Private,
    /// It took too long.
    #[error("connecting to it took too long")]
    TooSlow,
    /// Who answered could not prove that it is the service.
    #[error("its certificate is not valid")]
    Certificate,
    /// It is of an authority that is not trusted.
    #[error(
        "its certificate is of an authority that is not trusted here, and not in the service's ca_file; the operator can put \
         that one's certificate there, which is not the server's own"
    )]
    UnknownAuthority,
    /// It is an authority's, where a server's is needed.
    #[error("its certificate is an authority's own (CA:TRUE), which is none of a server")]
    OfAuthority,
    /// It was or will be valid.
    #[error("its certificate has expired, or is not valid yet")]
    Expired,
    /// It is another server's.
    #[error("its certificate is for another name")]
    OtherName,
    /// It speaks no TLS.
    #[error("it does not speak TLS; the operator can write http:// for an address of this machine if that is meant")]
    NoTls,
    /// It did not agree to TLS.
    #[error("it refused the TLS handshake")]
    Handshake,
    /// The proxy in front of it did not let it through.
    #[error("the proxy in front of it refused, or does not answer")]
    Proxy,
    /// Nobody answered there.
    #[error("it does not take connections")]
    Refused,
    /// There is no place for one more connection.
    #[error("there are too many connections to services; try again later")]
    TooMany,
}

impl NoConnection {
    /// Whether it may be gone in a moment, by itself.
    fn may_pass(self) -> bool {
        match self {
            Self::Name | Self::TooSlow | Self::Refused | Self::Proxy | Self::TooMany => true,
            Self::Private
            | Self::Certificate
            | Self::UnknownAuthority
            | Self::OfAuthority
            | Self::Expired
            | Self::OtherName
            | Self::NoTls
            | Self::Handshake => false,
        }
    }

    /// Why nothing was sent to this, which has no connection.
    pub(crate) fn not_sent(self, what: impl fmt::Display) -> NotSent {
        let why = format!("{what} cannot be reached: {self}. Nothing was sent");
        NotSent::Unreached { why, may_pass: self.may_pass() }
    }

    /// What an error of connecting comes from.
    pub(crate) fn of(error: &(dyn Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(one) = cause {
            if let Some(known) = one.downcast_ref::<Self>() {
                return *known;
            }
            if one.is::<OnlyPrivate>() {
                return Self::Private;
            }
            if let Some(error) = one.downcast_ref::<rustls::Error>() {
                return Self::of_tls(error);
            }
            let of_system = one.downcast_ref::<io::Error>();
            if of_system.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut) {
                return Self::TooSlow;
            }
            // An error of the system may hold another one that is not its source.
            let inner = of_system.and_then(io::Error::get_ref);
            cause = match inner {
                Some(inner) => Some(inner as &(dyn Error + 'static)),
                None => one.source(),
            };
        }
        Self::Refused
    }

    fn of_tls(error: &rustls::Error) -> Self {
        use rustls::{CertificateError as Bad, Error};
        match error {
            // A signature that does not fit is that of another authority of the same name.
            Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => Self::UnknownAuthority,
            Error::InvalidCertificate(
                Bad::Expired | Bad::ExpiredContext { .. } | Bad::NotValidYet | Bad::NotValidYetContext { .. },
            ) => Self::Expired,
            Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => Self::OtherName,
            // The verifier has no other word for it.
            Error::InvalidCertificate(Bad::Other(other)) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
                Self::OfAuthority
            }
            Error::InvalidMessage(_) => Self::NoTls,
            Error::AlertReceived(_) => Self::Handshake,
            _ => Self::Certificate,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn why_nothing_is_dialled_or_answers_is_told_apart() {
        for (error, why) in [
            (io::Error::new(io::ErrorKind::PermissionDenied, OnlyPrivate), NoConnection::Private),
            (io::Error::other(NoConnection::Name), NoConnection::Name),
            (io::ErrorKind::TimedOut.into(), NoConnection::TooSlow),
            (io::ErrorKind::ConnectionRefused.into(), NoConnection::Refused),
        ] {
            assert_eq!(NoConnection::of(&error), why);
        }
    }

    #[test]
    fn what_may_pass_by_itself_may_be_tried_again() {
        for (why, passes) in [
            (NoConnection::Refused, true),
            (NoConnection::Name, true),
            (NoConnection::TooSlow, true),
            (NoConnection::Private, false),
            (NoConnection::Expired, false),
        ] {
            let said = format!("It cannot be reached: {why}. Nothing was sent");
            assert_eq!(why.not_sent("It"), NotSent::Unreached { why: said, may_pass: passes });
        }
    }

    #[test]
    fn why_tls_is_not_agreed_on_is_told_apart() {
        use rustls::{AlertDescription, CertificateError as Bad, Error, InvalidMessage, OtherError};
        let of_authority = Bad::Other(OtherError(Arc::new(io::Error::other("CaUsedAsEndEntity"))));
        for (error, why) in [
            (Error::InvalidCertificate(Bad::UnknownIssuer), NoConnection::UnknownAuthority),
            (Error::InvalidCertificate(Bad::Expired), NoConnection::Expired),
            (Error::InvalidCertificate(Bad::NotValidYet), NoConnection::Expired),
            (Error::InvalidCertificate(Bad::NotValidForName), NoConnection::OtherName),
            (Error::InvalidCertificate(of_authority), NoConnection::OfAuthority),
            (Error::InvalidCertificate(Bad::BadEncoding), NoConnection::Certificate),
            (Error::InvalidMessage(InvalidMessage::InvalidContentType), NoConnection::NoTls),
            (Error::AlertReceived(AlertDescription::HandshakeFailure), NoConnection::Handshake),
        ] {
            assert_eq!(NoConnection::of(&io::Error::other(error)), why);
        }
    }
}
