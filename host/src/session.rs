//! A session: one sandbox, its token, and how much of the harness it takes.
//!
//! A session outlives connections; nothing of it hangs on one.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    num::NonZeroU32,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use footbridge_proto::{
    rpc::Reason,
    token::{PREFIX, Token},
};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{digest::Digest, limits::CallLimits, servers::ServerName};

/// The name of a session: `[a-z0-9][a-z0-9-]{0,31}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionName(String);

/// What an operator finds a session by: keys and values of their own.
pub type Labels = BTreeMap<String, String>;

/// Why a text is no session name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a session's name is 1 to 32 of a-z, 0-9 and -, and does not start with -")]
pub struct BadSessionName;

impl FromStr for SessionName {
    type Err = BadSessionName;

    fn from_str(text: &str) -> Result<Self, BadSessionName> {
        let known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let fits = (1..=32).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(known);
        if fits { Ok(Self(text.to_owned())) } else { Err(BadSessionName) }
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The system has no random bytes.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoRandomness;

/// Random bytes in a text of `[A-Za-z0-9_-]`.
///
/// # Errors
/// [`NoRandomness`].
pub fn random_text<const BYTES: usize>() -> Result<String, NoRandomness> {
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// A new token: [`PREFIX`] and 32 random bytes.
///
/// # Errors
/// [`NoRandomness`].
pub fn new_token() -> Result<Token, NoRandomness> {
    Token::parse(&format!("{PREFIX}{}", random_text::<32>()?)).map_err(|_| NoRandomness)
}

/// One sandbox's right to call, and what it is using.
pub struct Session {
    name: SessionName,
    token: Digest,
    limits: CallLimits,
    rate: DefaultDirectRateLimiter,
    in_flight: Arc<Semaphore>,
    per_server: Mutex<HashMap<ServerName, Arc<Semaphore>>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A call's place among those in flight. Dropping it frees the place.
#[derive(Debug)]
pub struct Place {
    _session: OwnedSemaphorePermit,
    _server: Option<OwnedSemaphorePermit>,
}

/// Why a call gets no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverLimit {
    /// More calls a second than allowed.
    Rate {
        /// When the next one may come, milliseconds.
        retry_after_ms: u64,
    },
    /// More calls at once than allowed.
    Busy,
}

impl OverLimit {
    /// The reason on the wire.
    #[must_use]
    pub fn reason(self) -> Reason {
        match self {
            Self::Rate { .. } => Reason::RateLimited,
            Self::Busy => Reason::Busy,
        }
    }
}

impl Session {
    /// A session that this token opens. Only the token's digest is kept.
    #[must_use]
    pub fn new(name: SessionName, token: &Token, limits: CallLimits) -> Self {
        let or_one = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(or_one(limits.per_second)).allow_burst(or_one(limits.burst));
        Self {
            name,
            token: Digest::of(token.expose()),
            rate: RateLimiter::direct(quota),
            in_flight: Arc::new(Semaphore::new(limits.in_flight_per_session)),
            per_server: Mutex::default(),
            limits,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &SessionName {
        &self.name
    }

    /// Whether this is its token. Digests are compared, so that the time taken says nothing of the token.
    #[must_use]
    pub fn opens_with(&self, token: &[u8]) -> bool {
        Digest::of(token) == self.token
    }

    /// Takes a place for a call to a server, or to none that is known.
    ///
    /// # Errors
    /// [`OverLimit`], at once for the rate, within [`CallLimits::busy_after`] for the calls in flight.
    pub async fn enter(&self, server: Option<&ServerName>) -> Result<Place, OverLimit> {
        if let Err(too_soon) = self.rate.check() {
            let wait = too_soon.wait_time_from(governor::clock::Clock::now(&governor::clock::DefaultClock::default()));
            let retry_after_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
            return Err(OverLimit::Rate { retry_after_ms });
        }
        let server = server.map(|name| self.semaphore_of(name));
        let places = async {
            let server = match server {
                Some(semaphore) => Some(semaphore.acquire_owned().await.map_err(|_| OverLimit::Busy)?),
                None => None,
            };
            let session = Arc::clone(&self.in_flight).acquire_owned().await.map_err(|_| OverLimit::Busy)?;
            Ok(Place { _session: session, _server: server })
        };
        timeout(self.limits.busy_after, places).await.unwrap_or(Err(OverLimit::Busy))
    }

    /// Names are the configuration's, so the map stays as small as that is.
    fn semaphore_of(&self, server: &ServerName) -> Arc<Semaphore> {
        let mut map = self.per_server.lock().unwrap_or_else(PoisonError::into_inner);
        let places = self.limits.in_flight_per_session_and_server;
        Arc::clone(map.entry(server.clone()).or_insert_with(|| Arc::new(Semaphore::new(places))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(limits: CallLimits) -> Session {
        Session::new("one".parse().unwrap(), &Token::parse("fbt_x").unwrap(), limits)
    }

    #[test]
    fn names_have_their_form() {
        for good in ["a", "0", "a-b-9", &"x".repeat(32)] {
            assert!(good.parse::<SessionName>().is_ok(), "{good}");
        }
        for bad in ["", "-a", "A", "a_b", "a/b", "ä", &"x".repeat(33)] {
            assert!(bad.parse::<SessionName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn only_its_own_token_opens_it() {
        let session = session(CallLimits::default());
        assert!(session.opens_with(b"fbt_x"));
        assert!(!session.opens_with(b"fbt_y") && !session.opens_with(b"fbt_") && !session.opens_with(b""));
    }

    #[test]
    fn tokens_are_43_characters_after_the_prefix_and_differ() {
        let (a, b) = (new_token().unwrap(), new_token().unwrap());
        assert!(a.expose().starts_with(PREFIX) && a.expose().len() == PREFIX.len() + 43 && a != b);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_server_does_not_take_every_place() {
        let session = session(CallLimits { in_flight_per_session: 6, ..CallLimits::default() });
        let (slow, other): (ServerName, ServerName) = ("slow".parse().unwrap(), "other".parse().unwrap());
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(session.enter(Some(&slow)).await.unwrap());
        }
        assert_eq!(session.enter(Some(&slow)).await.unwrap_err(), OverLimit::Busy);
        held.push(session.enter(Some(&other)).await.unwrap());
        held.push(session.enter(None).await.unwrap());
        assert_eq!(session.enter(Some(&other)).await.unwrap_err(), OverLimit::Busy);
        held.clear();
        assert!(session.enter(Some(&slow)).await.is_ok());
    }

    #[tokio::test]
    async fn beyond_the_burst_it_says_when_to_come_back() {
        let session = session(CallLimits { burst: 3, per_second: 1, ..CallLimits::default() });
        for _ in 0..3 {
            drop(session.enter(None).await.unwrap());
        }
        let over = session.enter(None).await.unwrap_err();
        assert!(matches!(over, OverLimit::Rate { retry_after_ms: 1..=1000 }), "{over:?}");
    }
}
