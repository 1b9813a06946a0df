//! From a secret to the header that a service wants it in.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use footbridge_core::{redact::Redactor, secret::Secret};
use http::{HeaderName, HeaderValue};

use crate::spec::BadService;

/// The header with a credential, and all that must not show of it.
#[derive(Clone)]
pub struct Credential {
    /// Name and value.
    pub header: (HeaderName, HeaderValue),
    /// The secret itself, the value that holds it, and what else it was made into.
    pub secrets: Vec<Secret>,
}

impl Credential {
    /// The header of this name: `{credential}` in the value is the secret, and `{basic}` it with a user. White space at the
    /// ends of the secret is left out: at those of a header it means nothing (RFC 9110, 5.5), so that an origin says the
    /// rest alone. A password in `{basic}` keeps it, but for the end of its line.
    ///
    /// # Errors
    /// [`BadService`], which holds nothing of the secret.
    pub fn new(name: &str, value: &str, user: Option<&str>, secret: &Secret) -> Result<Self, BadService> {
        let name: HeaderName = name.parse().map_err(|_| BadService::Header)?;
        let (bare, password) = (bare(secret.expose()), secret.expose().trim_end_matches(['\r', '\n']));
        let basic = STANDARD.encode(format!("{}:{password}", user.unwrap_or_default()));
        let filled = Secret::new(value.replace("{credential}", bare).replace("{basic}", &basic));
        let mut header = HeaderValue::from_str(filled.expose()).map_err(|_| BadService::Credential)?;
        header.set_sensitive(true);
        let mut secrets = vec![Secret::new(bare), filled];
        secrets.extend((password != bare && value.contains("{basic}")).then(|| Secret::new(password)));
        // What stands behind the scheme is a credential without it.
        let bare: Vec<Secret> =
            secrets.iter().filter_map(|one| Some(Secret::new(one.expose().split_once(' ')?.1.trim()))).collect();
        secrets.extend(bare);
        Ok(Self { header: (name, header), secrets })
    }
}

/// A secret without the white space at its ends that means nothing at those of a header.
#[must_use]
pub fn bare(secret: &str) -> &str {
    secret.trim_matches([' ', '\t', '\r', '\n'])
}

/// Whether a header holds the credential, in its name too, where capitals are small letters. What is no text is looked at as
/// text all the same.
pub(crate) fn has_credential(name: &HeaderName, value: &HeaderValue, redactor: &Redactor) -> bool {
    let text = String::from_utf8_lossy(value.as_bytes());
    redactor.is_in_small_letters(name.as_str()) || matches!(redactor.scrub(&text), std::borrow::Cow::Owned(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_holds_the_secret_as_the_service_wants_it() {
        let secret = Secret::new("s3cret-value");
        let header = |value: &str, user: Option<&str>| {
            let made = Credential::new("Authorization", value, user, &secret).unwrap();
            (made.header.1.to_str().unwrap().to_owned(), made.secrets.len())
        };
        assert_eq!(header("{credential}", None), ("s3cret-value".to_owned(), 2));
        assert_eq!(header("Bearer {credential}", None), ("Bearer s3cret-value".to_owned(), 3));
        assert_eq!(header("Basic {basic}", Some("me")), ("Basic bWU6czNjcmV0LXZhbHVl".to_owned(), 3));
        for padded in ["s3cret-value ", "\ts3cret-value", " s3cret-value\r\n"] {
            for value in ["{credential}", "Bearer {credential}"] {
                let made = |text| Credential::new("Authorization", value, Some("me"), &Secret::new(text)).unwrap();
                let (padded, plain) = (made(padded), made("s3cret-value"));
                assert_eq!((padded.header, padded.secrets), (plain.header, plain.secrets));
            }
        }
        let basic = |text: &str| Credential::new("a", "Basic {basic}", Some("me"), &Secret::new(text)).unwrap();
        let (spaced, ended) = (basic("s3cret value "), basic("s3cret value \r\n"));
        assert_eq!(spaced.header.1.to_str().unwrap(), "Basic bWU6czNjcmV0IHZhbHVlIA==");
        assert_eq!((spaced.header, spaced.secrets), (ended.header, ended.secrets));
        let padded = Credential::new("a", "{credential}", None, &Secret::new("Bearer  s3cret-value\t")).unwrap();
        assert!(padded.secrets.contains(&secret), "what stands behind the scheme");
        assert_eq!(Credential::new("a b", "x", None, &secret).err(), Some(BadService::Header));
        let two_lines = Secret::new("a\nb");
        assert_eq!(Credential::new("a", "{credential}", None, &two_lines).err(), Some(BadService::Credential));
    }
}
