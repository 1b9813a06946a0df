//! What a server over HTTP refuses, and what its operator can do about that.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, Utc};
use http::{HeaderMap, Response, StatusCode, header};

use super::unanswered::{HttpError, Login};

/// What an OAuth challenge of MCP holds (RFC 9728).
const OAUTH: &[u8] = b"resource_metadata";

/// Longest time for which it is passed on that a server wants nothing.
const LONGEST_WAIT: Duration = Duration::from_secs(60 * 60);

/// What one server refused last. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Refusals(Arc<Last>);

#[derive(Debug, Default)]
struct Last {
    has_credentials: bool,
    status: AtomicU16,
    login: Mutex<Option<(u16, Login)>>,
}

/// For how long a server wants nothing: it says so in seconds, or until when (RFC 9110, 10.2.3).
fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More than anybody can count is as long as possible.
        return Some(text.parse().map_or(LONGEST_WAIT, Duration::from_secs).min(LONGEST_WAIT));
    }
    let until = DateTime::parse_from_rfc2822(text).ok()?;
    Some((until.to_utc() - now).to_std().unwrap_or_default().min(LONGEST_WAIT))
}

impl Refusals {
    /// Of a server that is sent these headers.
    pub(super) fn of(configured: &HeaderMap) -> Self {
        let has_credentials = configured.keys().any(|name| *name != header::USER_AGENT);
        Self(Arc::new(Last { has_credentials, ..Last::default() }))
    }

    /// Takes note of an answer that is no success, and says what it means.
    pub(super) fn refused<B>(&self, response: &Response<B>) -> HttpError {
        let status = response.status();
        let code = status.as_u16();
        self.0.status.store(code, Ordering::Relaxed);
        let challenges = response.headers().get_all(header::WWW_AUTHENTICATE);
        let offers_oauth =
            || challenges.iter().any(|value| value.as_bytes().windows(OAUTH.len()).any(|part| part == OAUTH));
        let login = match status {
            StatusCode::UNAUTHORIZED if self.0.has_credentials => Login::Refused,
            StatusCode::UNAUTHORIZED if offers_oauth() => Login::OAuth,
            StatusCode::UNAUTHORIZED => Login::Missing,
            StatusCode::FORBIDDEN => Login::Forbidden,
            StatusCode::TOO_MANY_REQUESTS => return HttpError::Throttled(retry_after(response.headers(), Utc::now())),
            _ if status.is_redirection() => return HttpError::Redirect(code),
            _ => return HttpError::Status(code),
        };
        *self.0.login.lock().unwrap_or_else(PoisonError::into_inner) = Some((code, login));
        HttpError::Login(code, login)
    }

    /// The status and what kind of login was wanted last, if one was.
    pub(super) fn login(&self) -> Option<(u16, Login)> {
        *self.0.login.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It took something.
    pub(super) fn taken(&self) {
        self.0.status.store(0, Ordering::Relaxed);
    }

    /// The status of the last refusal, if nothing was taken since.
    pub(super) fn status(&self) -> Option<u16> {
        Some(self.0.status.load(Ordering::Relaxed)).filter(|status| *status != 0)
    }

    /// Whether the last refusal was how servers of the older transport answer to a message.
    pub(super) fn may_be_older(&self) -> bool {
        matches!(self.0.status.load(Ordering::Relaxed), 400 | 404 | 405)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_when_to_come_again_in_seconds_or_by_a_date() {
        let now = "2015-10-21T07:28:00Z".parse().unwrap();
        let said = |text: &'static str| {
            let headers = [(header::RETRY_AFTER, http::HeaderValue::from_static(text))].into_iter().collect();
            retry_after(&headers, now)
        };
        for (text, seconds) in [
            ("5", Some(5)),
            ("Wed, 21 Oct 2015 07:29:30 GMT", Some(90)),
            ("Wed, 21 Oct 2015 07:00:00 GMT", Some(0)),
            ("99999999999999999999999", Some(3600)),
            ("Tue, 31 Dec 2999 23:59:59 GMT", Some(3600)),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(said(text), seconds.map(Duration::from_secs), "{text}");
        }
    }
}
