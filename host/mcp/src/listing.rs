//! Asking a server what it offers, page by page, within bounds.
//!
//! An entry that is bad, too long or too many is left out and counted; it never takes the others with it. A cursor
//! that comes again, too many pages or too many bytes end the listing with what is there. Pages are read entry by
//! entry, so that millions of tiny ones cost no memory. A listing of tools that fails fails the start; one of
//! resources or prompts only loses these.

use std::{
    collections::{BTreeSet, HashSet},
    fmt,
    sync::{Arc, LazyLock},
    time::Duration,
};

use footbridge_proto::{rpc::ErrorCode, wire::Implementation};
use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest,
    PaginatedRequestParams, ServerPeerInfo,
};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::{
    ask::{Ended, Times, ask},
    header_params,
    live::Live,
    pending_request::{Answer, PendingRequest},
};
use footbridge_calls::low_threads::LowThreads;
use footbridge_core::{
    catalogue::{ListKind, Offered},
    digest::Digest,
    limits::ServerLimits,
    redact::Redactor,
};

/// What an entry may have beyond its two schemas and its description.
const MAX_REST: usize = 64 * 1024;
/// Longest cursor, bytes: it goes back to the server, and is no part of what it may keep here.
const MAX_CURSOR: usize = 16 * 1024;
/// How many reasons for leaving out are kept for the operator.
const MAX_REASONS: usize = 20;
/// Entries of a page that are looked at beyond as many as a server may have.
const MAX_BAD: usize = 1000;
/// The code of an unknown method: servers that have no resources often answer with it.
const METHOD_NOT_FOUND: i64 = ErrorCode::MethodNotFound.number();

/// Longest page that is read at once, bytes: a millisecond of work.
const SHORT_PAGE: usize = 64 * 1024;
/// Where longer ones are read.
static READERS: LazyLock<LowThreads> = LazyLock::new(LowThreads::new);

/// What is said of a listing that a server has, as it says, and does not know.
const UNKNOWN_LISTING: &str = "the server says that it has them, and does not know how to list them";

/// What a server offers, and what was left out of it.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// What is usable.
    pub(super) catalogue: Offered,
    /// How many entries were left out.
    pub(super) left_out: usize,
    /// Why, for the first of them.
    pub(super) reasons: Vec<String>,
    /// For how long the server says that it holds; nothing where it does not say, or says none.
    pub(super) ttl: Option<Duration>,
    /// Whether its parameters may have to be repeated in headers.
    repeats_parameters: bool,
    /// Left out without a word: it is as if the server had none of them.
    disabled_tools: Arc<BTreeSet<String>>,
    /// Those of them that it has.
    disabled: BTreeSet<String>,
}

/// Why there is no listing.
#[derive(Debug, thiserror::Error)]
pub(super) enum ListError {
    /// The connection ended.
    #[error("the server ended while it listed its {0}")]
    Gone(&'static str),
    /// No answer in time.
    #[error("the server did not list its {0} within {1:?}")]
    Timeout(&'static str, Duration),
    /// An error instead of a page.
    #[error("the server answered {2:?} (code {1}) when asked for its {0}")]
    Refused(&'static str, i64, String),
    /// A page that is no page.
    #[error("the server's list of {0} cannot be used: {1}")]
    Unusable(&'static str, &'static str),
}

/// One of the things that are listed.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl Kind {
    /// The member of a page that holds the entries.
    fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    /// The same, for guests.
    fn list(self) -> ListKind {
        match self {
            Self::Tools => ListKind::Tools,
            Self::Resources => ListKind::Resources,
            Self::Templates => ListKind::Templates,
            Self::Prompts => ListKind::Prompts,
        }
    }

    fn request(self, cursor: Option<String>) -> ClientRequest {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        match self {
            Self::Tools => ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params)),
            Self::Resources => ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(params)),
            Self::Templates => {
                ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest::with_param(params))
            }
            Self::Prompts => ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params)),
        }
    }
}

/// Lists everything that the server says it has. `before` is what it had a moment ago: of resources, templates and prompts
/// that it fails to list, those.
pub(super) async fn list(live: &Live, limits: &ServerLimits, before: Option<&Offered>) -> Result<Listed, ListError> {
    let repeats_parameters = live.lines.is_none() && live.is_stateless();
    let catalogue = Offered::of(Arc::clone(&live.origin));
    let disabled_tools = Arc::clone(&live.disabled_tools);
    let mut listed = Listed { catalogue, repeats_parameters, disabled_tools, ..Listed::default() };
    let (tools, resources, prompts) = live.peer.peer_info().map_or((true, false, false), |info| {
        let can = &info.capabilities;
        (can.tools.is_some(), can.resources.is_some(), can.prompts.is_some())
    });
    if let Some(info) = live.peer.peer_info() {
        introduced(&mut listed.catalogue, &info, live.interceptor.redactor(), limits);
    }
    // A server that declares nothing at all is asked for tools all the same.
    if tools || !(resources || prompts) {
        let known = pages(live, limits, Kind::Tools, &mut listed).await?;
        if tools && !known {
            listed.cut(Kind::Tools, &UNKNOWN_LISTING);
        }
    }
    let others = [(Kind::Resources, resources), (Kind::Templates, resources), (Kind::Prompts, prompts)];
    for (kind, _) in others.into_iter().filter(|(_, declared)| *declared) {
        match pages(live, limits, kind, &mut listed).await {
            // Those that have resources need not have templates.
            Ok(known) if known || matches!(kind, Kind::Templates) => {}
            Ok(_) => listed.cut(kind, &UNKNOWN_LISTING),
            Err(gone @ ListError::Gone(_)) => return Err(gone),
            Err(error) => {
                if let Some(before) = before {
                    listed.catalogue.keep(kind.list(), before.entries(), limits);
                }
                listed.cut(kind, &error);
            }
        }
    }
    Ok(listed)
}

/// What the server said of itself. It comes with the handshake, which is the library's to read, and not by the
/// interceptor's way.
fn introduced(catalogue: &mut Offered, info: &ServerPeerInfo, redactor: &Redactor, limits: &ServerLimits) {
    let scrub = |text: &str| redactor.scrub(text).into_owned();
    if let Some(text) = &info.instructions {
        catalogue.set_instructions(&scrub(text), limits);
    }
    if let Some(said) = &info.server_info {
        catalogue.set_implementation(&Implementation {
            name: scrub(&said.name),
            title: said.title.as_deref().map(scrub),
            version: scrub(&said.version),
        });
    }
}

/// Lists all of a kind. Whether the server knows the listing.
async fn pages(live: &Live, limits: &ServerLimits, kind: Kind, listed: &mut Listed) -> Result<bool, ListError> {
    let mut cursor: Option<String> = None;
    // Digests, since a server may make its cursors as long as its pages.
    let mut seen = HashSet::new();
    for _ in 0..limits.pages {
        let page = page(live, limits, kind, cursor.take()).await?;
        let Some(page) = page else { return Ok(false) };
        match listed.read(kind, page, limits).await? {
            None => return Ok(true),
            Some(next) if next.len() > MAX_CURSOR => {
                listed.cut(kind, &format_args!("the server's cursor is longer than {MAX_CURSOR} bytes"));
                return Ok(true);
            }
            Some(next) if !seen.insert(Digest::of(&next)) => {
                listed.cut(kind, &"the server's cursor came back to an earlier page");
                return Ok(true);
            }
            Some(next) => cursor = Some(next),
        }
    }
    listed.cut(kind, &format_args!("there are more than {} pages", limits.pages));
    Ok(true)
}

/// One page as raw JSON, or nothing where the server does not know the method.
async fn page(
    live: &Live,
    limits: &ServerLimits,
    kind: Kind,
    cursor: Option<String>,
) -> Result<Option<Box<RawValue>>, ListError> {
    let times = Times { idle: limits.list_time, total: limits.list_time };
    let what = kind.member();
    match ask(live, kind.request(cursor), PendingRequest::new(), times, &CancellationToken::new()).await {
        // Its part of the budget goes back here: the page is gone once it is read.
        Ended::Answered(Answer::Result(page, _)) => Ok(Some(page)),
        Ended::Answered(Answer::Error { code: METHOD_NOT_FOUND, .. }) => Ok(None),
        Ended::Answered(Answer::Error { code, message }) => Err(ListError::Refused(what, code, message)),
        Ended::Answered(Answer::TooLarge) => Err(ListError::Unusable(what, "a page is too long")),
        Ended::Answered(Answer::Busy) => Err(ListError::Unusable(what, "there is no memory for a page")),
        Ended::Answered(Answer::Unusable) => Err(ListError::Unusable(what, "it is not of the protocol")),
        Ended::Answered(Answer::Throttled(_)) => Err(ListError::Unusable(what, "it is asked too often (HTTP 429)")),
        Ended::Answered(Answer::Refused(_) | Answer::Declined(_) | Answer::Lost) => Err(ListError::Gone(what)),
        Ended::Unanswered { why: super::NoAnswer::ServerGone, .. } => Err(ListError::Gone(what)),
        Ended::Unanswered { .. } => Err(ListError::Timeout(what, limits.list_time)),
    }
}

impl Listed {
    /// Takes the entries of a page, and says where the next one starts. One that takes long is read beside the workers: a
    /// server can say as often as it likes that it has megabytes of other tools.
    async fn read(
        &mut self,
        kind: Kind,
        page: Box<RawValue>,
        limits: &ServerLimits,
    ) -> Result<Option<String>, ListError> {
        if page.get().len() <= SHORT_PAGE {
            return self.take(kind, &page, limits);
        }
        let (mut listed, limits) = (std::mem::take(self), limits.clone());
        let read = move || {
            let next = listed.take(kind, &page, &limits);
            (listed, next)
        };
        let read = READERS.run(read).await;
        let (listed, next) = read.ok_or(ListError::Unusable(kind.member(), "a page could not be read"))?;
        *self = listed;
        next
    }

    fn take(&mut self, kind: Kind, page: &RawValue, limits: &ServerLimits) -> Result<Option<String>, ListError> {
        let mut text = serde_json::Deserializer::from_str(page.get());
        let visitor = PageVisitor { listed: self, kind, limits };
        text.deserialize_map(visitor).map_err(|_| ListError::Unusable(kind.member(), "a page is not of the protocol"))
    }

    fn add(&mut self, kind: Kind, raw: &RawValue, limits: &ServerLimits) {
        let length = raw.get().len();
        if length > 2 * limits.schema_bytes + limits.description_bytes + MAX_REST {
            self.catalogue.gaps_mut().left_out(kind.list(), "it is too long");
            return self.leave_out(kind, &"an entry is too long");
        }
        if let Kind::Tools = kind
            && let Some(name) = self.disabled(raw)
        {
            self.disabled.insert(name);
            return;
        }
        if self.repeats_parameters
            && let Kind::Tools = kind
            && let Err(error) = header_params::check(raw)
        {
            return self.leave_out_entry(kind, raw, &error);
        }
        let added = match kind {
            Kind::Tools => self.catalogue.add_tool(raw, limits),
            Kind::Resources => self.catalogue.add_resource(raw.to_owned(), limits),
            Kind::Templates => self.catalogue.add_template(raw.to_owned(), limits),
            Kind::Prompts => self.catalogue.add_prompt(raw.to_owned(), limits),
        };
        match added {
            Ok(()) => {}
            Err(error) => self.leave_out_entry(kind, raw, &error),
        }
    }

    /// Names of tools that are disabled, and that it does not have.
    pub(super) fn disabled_in_vain(&self) -> Vec<String> {
        self.disabled_tools.difference(&self.disabled).cloned().collect()
    }

    /// The name of a tool, if it is disabled.
    fn disabled(&self, tool: &RawValue) -> Option<String> {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        if self.disabled_tools.is_empty() {
            return None;
        }
        let Named { name } = serde_json::from_str(tool.get()).ok()?;
        self.disabled_tools.contains(&name).then_some(name)
    }

    fn leave_out_entry(&mut self, kind: Kind, raw: &RawValue, error: &dyn fmt::Display) {
        self.catalogue.gaps_mut().left_out(kind.list(), &error.to_string());
        let start: String = raw.get().chars().take(80).collect();
        self.leave_out(kind, &format_args!("{error} ({start})"));
    }

    /// Entries of a page that were not looked at.
    fn leave_out_rest(&mut self, kind: Kind, count: usize) {
        let why = "the page has more entries than a server may have";
        self.catalogue.gaps_mut().left_out_many(kind.list(), count, why);
        self.leave_out(kind, &why);
        self.left_out += count - 1;
    }

    /// The listing ends early, or is not there at all.
    fn cut(&mut self, kind: Kind, why: &dyn fmt::Display) {
        self.catalogue.gaps_mut().cut(kind.list(), &why.to_string());
        self.leave_out(kind, why);
    }

    fn leave_out(&mut self, kind: Kind, why: &dyn fmt::Display) {
        self.left_out += 1;
        if self.reasons.len() < MAX_REASONS {
            let why = format!("{}: {why}", kind.member());
            self.reasons.push(footbridge_proto::text::Escaped(&why).to_string());
        }
    }
}

struct PageVisitor<'a> {
    listed: &'a mut Listed,
    kind: Kind,
    limits: &'a ServerLimits,
}

impl<'de> Visitor<'de> for PageVisitor<'_> {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a page of a listing")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut next = None;
        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if name == self.kind.member() {
                map.next_value_seed(Entries { listed: self.listed, kind: self.kind, limits: self.limits })?;
            } else if name == "nextCursor" {
                let raw = map.next_value::<&'de RawValue>()?;
                let cursor = serde_json::from_str::<Option<String>>(raw.get());
                if cursor.is_err() {
                    self.listed.cut(self.kind, &"its cursor is no text");
                }
                next = cursor.ok().flatten().filter(|cursor| !cursor.is_empty());
            } else if name == "ttlMs" {
                let raw = map.next_value::<&'de RawValue>()?;
                let ttl = raw.get().parse().ok().filter(|ms| *ms > 0).map(Duration::from_millis);
                self.listed.ttl = self.listed.ttl.into_iter().chain(ttl).min();
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(next)
    }
}

struct Entries<'a> {
    listed: &'a mut Listed,
    kind: Kind,
    limits: &'a ServerLimits,
}

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        for _ in 0..self.limits.entries + MAX_BAD {
            let Some(raw) = seq.next_element::<&'de RawValue>()? else { return Ok(()) };
            self.listed.add(self.kind, raw, self.limits);
        }
        let mut rest = 0;
        while seq.next_element::<IgnoredAny>()?.is_some() {
            rest += 1;
        }
        if rest > 0 {
            self.listed.leave_out_rest(self.kind, rest);
        }
        Ok(())
    }
}
