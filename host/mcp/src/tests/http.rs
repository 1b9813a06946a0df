//! Servers over HTTP: sessions, streams, bounds, and addresses that may not be used.

use std::{collections::BTreeSet, os::fd::AsRawFd as _};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, getsockname, socket};
use serde_json::json;

use super::{
    http_server::{HttpServer, Trap, continuing},
    *,
};

fn http(url: &str) -> ServerSpec {
    let key = ("x-key".parse().unwrap(), Secret::new("key-of-the-operator"));
    let spec = HttpSpec { url: url.parse().unwrap(), headers: vec![key], allow_private: false };
    ServerSpec {
        name: "x".parse().unwrap(),
        transport: TransportSpec::Http(spec),
        protocol: ProtocolChoice::Initialize,
        disabled_tools: BTreeSet::new(),
        hint: None,
    }
}

async fn ready(trap: Trap, change: impl FnOnce(&mut Limits)) -> (HttpServer, Servers) {
    let server = HttpServer::start(trap).await;
    let servers = Stage::with(http(&server.url())).limit(change).ready().await;
    (server, servers)
}

/// The same of the stateless revision.
async fn stateless(trap: Trap, change: impl FnOnce(&mut Limits)) -> (HttpServer, Servers) {
    let server = HttpServer::start(trap).await;
    let spec = ServerSpec { protocol: ProtocolChoice::Discover, ..http(&server.url()) };
    let servers = Stage::with(spec).limit(change).ready().await;
    (server, servers)
}

async fn end(server: HttpServer, servers: Servers) {
    servers.shutdown().await;
    server.stop().await;
}

#[tokio::test]
async fn a_call_is_answered_as_one_body_or_as_a_stream_with_the_operators_headers() {
    for trap in [Trap::Json, Trap::Sse] {
        let (server, servers) = ready(trap, |_| {}).await;
        assert_eq!(
            raw(echo(&servers).await),
            r#"{"content":[{"type":"text","text":"key-of-the-operator"}],"n":1}"#,
            "{trap:?}"
        );
        assert_eq!(server.calls(), 1);
        servers.shutdown().await;
        assert_eq!(server.seen().last().map(String::as_str), Some("DELETE"), "the session is given back");
        server.stop().await;
    }
}

#[tokio::test]
async fn a_lost_session_refuses_the_call_once_and_is_opened_again_unasked() {
    for (trap, says) in [
        (Trap::Lost404, "ended its session, it says (HTTP 404), and did nothing. A new one is opened: call again"),
        (
            Trap::Lost400,
            "did not take the request, it says (HTTP 400), and did nothing. If its session ended, a new one",
        ),
    ] {
        let (server, servers) = ready(trap, |_| {}).await;
        let before = turn(&servers);
        let outcome = tokio::time::timeout(Duration::from_secs(5), echo(&servers)).await.unwrap();
        let Outcome::Declined(why) = outcome else { panic!("{trap:?}: {outcome:?}") };
        assert!(why.starts_with(&format!("Server \"x\" {says}")), "{trap:?}: {why}");
        assert_eq!(server.calls(), 1, "{trap:?}");
        ready_again(&servers, before).await;
        assert!(raw(echo(&servers).await).contains("\"n\":1"));
        assert_eq!(server.calls(), 2, "{trap:?}");
        end(server, servers).await;
    }
}

#[tokio::test]
async fn sessions_that_are_lost_without_end_never_shut_the_server() {
    let change = |limits: &mut Limits| {
        limits.servers.first_pause = Duration::from_millis(1);
        limits.servers.restarts = 2;
    };
    let (server, servers) = ready(Trap::LostAlways, change).await;
    for round in 1..=6 {
        let before = turn(&servers);
        assert!(matches!(echo(&servers).await, Outcome::Declined(_)), "{round}");
        ready_again(&servers, before).await;
        assert_eq!((server.calls(), report(&servers).restarts), (round, round));
    }
    end(server, servers).await;
}

#[tokio::test]
async fn what_one_calls_arguments_provoke_cuts_no_other_call() {
    let (server, servers) = ready(Trap::Picky, |_| {}).await;
    let before = turn(&servers);
    let provokes = async {
        while server.calls() == 0 {
            tokio::task::yield_now().await;
        }
        for how in ["html", "html404", "json"].into_iter().cycle().take(12) {
            let outcome = call(&servers, "echo", json!({"how": how})).await;
            assert!(matches!(outcome, Outcome::Declined(_)), "{how}: {outcome:?}");
        }
        while !server.seen().iter().any(|method| method == "ping") {
            tokio::task::yield_now().await;
        }
        server.release();
    };
    let both = async { tokio::join!(echo(&servers), provokes) };
    let (held, ()) = tokio::time::timeout(LONG, both).await.unwrap();
    assert!(raw(held).contains("\"n\":1"));
    assert_eq!((turn(&servers), report(&servers).restarts), (before, 0));
    assert_eq!(server.calls(), 13, "nothing is sent twice");
    assert_eq!(server.seen().iter().filter(|method| *method == "initialize").count(), 1);
    end(server, servers).await;
}

#[tokio::test]
async fn a_server_that_drains_answers_what_is_in_flight_before_it_is_given_up() {
    let (server, servers) = ready(Trap::Picky, |limits| limits.servers.first_pause = Duration::from_millis(1)).await;
    let before = turn(&servers);
    let refused = async {
        while server.calls() == 0 {
            tokio::task::yield_now().await;
        }
        server.drain().await;
        let mut refused = 0;
        while refused < 200 {
            let outcome = call(&servers, "echo", json!({"how": "html"})).await;
            match &outcome {
                // The connections of before are still served.
                Outcome::Declined(_) => {}
                Outcome::NotSent(NotSent::Unavailable(why)) if why.contains("cannot be reached") => refused += 1,
                _ => panic!("{outcome:?}"),
            }
        }
        assert_eq!(turn(&servers), before);
        server.release();
    };
    let both = async { tokio::join!(echo(&servers), refused) };
    let (held, ()) = tokio::time::timeout(LONG, both).await.unwrap();
    assert!(raw(held).contains("\"n\":1"));
    end(server, servers).await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (server, servers) = ready(Trap::Redirect, |_| {}).await;
    let outcome = echo(&servers).await;
    let Outcome::Declined(why) = &outcome else { panic!("{outcome:?}") };
    assert!(why.contains("a redirect, which is not followed, and did nothing"), "{why}");
    assert_eq!(server.calls(), 1);
    end(server, servers).await;
    // What came of it is elsewhere: something may have come of it.
    let (server, servers) = ready(Trap::SeeOther, |_| {}).await;
    assert!(matches!(echo(&servers).await, Outcome::Unknown(NoAnswer::Unusable)));
    end(server, servers).await;
}

#[tokio::test]
async fn a_server_that_is_asked_too_often_did_nothing_and_says_when_to_come_again() {
    let (server, servers) = ready(Trap::Throttles, |_| {}).await;
    let outcome = echo(&servers).await;
    assert!(matches!(outcome, Outcome::Throttled(Some(time)) if time == Duration::from_secs(7)), "{outcome:?}");
    assert_eq!(server.calls(), 1, "it is not asked again unasked");
    end(server, servers).await;
}

#[tokio::test]
async fn a_stream_without_an_answer_ends_at_the_idle_time_or_with_the_stream() {
    let (server, servers) = ready(Trap::EndlessSse, |limits| limits.calls.idle_time = Duration::from_millis(300)).await;
    assert!(matches!(echo(&servers).await, Outcome::Unknown(NoAnswer::Silent)));
    end(server, servers).await;
    let (server, servers) = ready(Trap::SseEnds, |_| {}).await;
    let outcome = tokio::time::timeout(Duration::from_secs(5), echo(&servers)).await.unwrap();
    assert!(matches!(outcome, Outcome::Unknown(NoAnswer::ServerGone)), "{outcome:?}");
    assert_eq!(server.calls(), 1);
    end(server, servers).await;
}

#[tokio::test]
async fn whatever_ends_a_call_nothing_of_it_stays() {
    let change = |limits: &mut Limits| limits.calls.idle_time = Duration::from_millis(300);
    for trap in [Trap::SseEnds, Trap::EndlessSse, Trap::Hangup, Trap::WrongId, Trap::Sse] {
        let (server, servers) = ready(trap, change).await;
        let (events, mut told) = tokio::sync::mpsc::channel(8);
        let call = outgoing(&servers, "echo", json!({})).await;
        servers.send(call, &CancellationToken::new(), Events::new(Some(events), &Redactor::default(), None)).await;
        let over = async { while told.recv().await.is_some() {} };
        assert!(tokio::time::timeout(Duration::from_secs(5), over).await.is_ok(), "{trap:?}");
        end(server, servers).await;
    }
}

/// On one worker, as it is, and long before the call's own time.
#[tokio::test]
async fn heads_without_end_lose_their_connection_and_hold_nobody_else_up() {
    let (server, stop) = (HttpServer::start(Trap::Json).await, CancellationToken::new());
    let (address, unread, tracker) = continuing(server.address, stop.clone()).await;
    let beside = ServerSpec { name: "beside".parse().unwrap(), ..http(&server.url()) };
    let stage = Stage::with(http(&format!("http://{address}/mcp"))).and(beside);
    let servers = stage.limit(|limits| limits.calls.idle_time = 10 * LONG).ready().await;
    servers.ready("beside", LONG).await.unwrap().unwrap();
    let floods = tokio::time::timeout(LONG, echo(&servers));
    let about = outgoing_to("beside", &servers, "echo", json!({})).await;
    let stays = CancellationToken::new();
    let neighbour = servers.send(about, &stays, Events::default());
    let (outcome, beside) = tokio::join!(floods, neighbour);
    assert!(matches!(outcome, Ok(Outcome::Unknown(NoAnswer::Unusable))), "{outcome:?}");
    assert!(raw(beside).contains("\"n\":1"));
    // The connection goes with the call.
    tokio::time::timeout(LONG, unread.cancelled()).await.unwrap();
    let ignored = servers.report().into_iter().map(|report| (report.name.to_string(), report.ignored));
    assert_eq!(ignored.collect::<Vec<_>>(), [("beside".to_owned(), 0), ("x".to_owned(), 1)], "it is said why");
    servers.shutdown().await;
    stop.cancel();
    tracker.close();
    tokio::time::timeout(LONG, tracker.wait()).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn bodies_and_events_beyond_the_limit_are_too_large() {
    for trap in [Trap::HugeBody, Trap::HugeEvent, Trap::EndlessEvent] {
        let (server, servers) = ready(trap, |limits| limits.servers.line_bytes = 1 << 20).await;
        let outcome = echo(&servers).await;
        assert!(matches!(outcome, Outcome::TooLarge { .. }), "{trap:?}: {outcome:?}");
        end(server, servers).await;
    }
}

#[tokio::test]
async fn answers_that_are_none_are_unusable_at_once() {
    for trap in [Trap::WrongType, Trap::WrongId] {
        let (server, servers) = ready(trap, |_| {}).await;
        let outcome = echo(&servers).await;
        assert!(matches!(outcome, Outcome::Unknown(NoAnswer::Unusable)), "{trap:?}: {outcome:?}");
        end(server, servers).await;
    }
}

#[tokio::test]
async fn a_call_that_is_accepted_and_cannot_be_answered_is_not_waited_for() {
    let (server, servers) = ready(Trap::Accepts, |limits| limits.calls.idle_time = Duration::from_millis(300)).await;
    // Until the server said that it has no stream, which it is asked beside the first call, one could come on it.
    let unusable = async { while !matches!(echo(&servers).await, Outcome::Unknown(NoAnswer::Unusable)) {} };
    tokio::time::timeout(LONG, unusable).await.unwrap();
    end(server, servers).await;
}

#[tokio::test]
async fn a_connection_lost_in_a_call_leaves_its_outcome_unknown_and_is_not_tried_again() {
    let (server, servers) = ready(Trap::Hangup, |_| {}).await;
    let outcome = tokio::time::timeout(Duration::from_secs(5), echo(&servers)).await.unwrap();
    assert!(matches!(outcome, Outcome::Unknown(NoAnswer::ServerGone)), "{outcome:?}");
    assert_eq!(server.calls(), 1);
    end(server, servers).await;
}

#[tokio::test]
async fn refused_credentials_are_called_that() {
    let (server, servers) = ready(Trap::Unauthorized, |_| {}).await;
    let outcome = echo(&servers).await;
    let Outcome::Declined(why) = &outcome else { panic!("{outcome:?}") };
    assert_eq!(why, "Server \"x\" needs a login, it says, and did nothing; ask the operator");
    end(server, servers).await;
}

#[tokio::test]
async fn a_server_that_wants_a_login_says_what_to_configure() {
    let missing = "it answered HTTP 401: it needs a login. Put its token into \"headers\" of its entry";
    let oauth = "it answered HTTP 401: it needs a login by OAuth, which is not spoken here";
    let refused = "it answered HTTP 401: it does not accept the credentials in \"headers\" of its entry";
    let forbidden = "it answered HTTP 403: it forbids what was asked";
    for (trap, has_key, said) in [
        (Trap::Login, false, missing),
        (Trap::LoginByOAuth, false, oauth),
        (Trap::Login, true, refused),
        (Trap::Forbids, true, forbidden),
    ] {
        for protocol in [ProtocolChoice::Initialize, ProtocolChoice::Discover, ProtocolChoice::Auto] {
            let server = HttpServer::start(trap).await;
            let mut spec = ServerSpec { protocol, ..http(&server.url()) };
            if let TransportSpec::Http(http) = &mut spec.transport {
                http.headers.retain(|_| has_key);
            }
            let servers = Stage::with(spec).start();
            let why = unavailable(&servers).await;
            assert!(why.ends_with("it needs a login; ask the operator"), "{trap:?}: {why}");
            let detail = report(&servers).last_error.unwrap();
            assert!(detail.starts_with(said), "{trap:?} {protocol:?}: {detail}");
            end(server, servers).await;
        }
    }
}

#[tokio::test]
async fn an_address_where_nothing_is_is_told_by_its_status_alone() {
    let server = HttpServer::start(Trap::Nowhere).await;
    let servers = Stage::with(http(&server.url())).start();
    assert!(unavailable(&servers).await.contains("could not be reached or does not speak the protocol"));
    assert_eq!(report(&servers).last_error.unwrap(), "the handshake failed: it answered HTTP 404");
    end(server, servers).await;
}

#[tokio::test]
async fn a_server_that_refuses_the_end_of_the_handshake_is_told_by_its_status() {
    let server = HttpServer::start(Trap::NoNotices).await;
    let servers = Stage::with(http(&server.url())).start();
    assert!(unavailable(&servers).await.contains("could not be reached or does not speak the protocol"));
    let said = "the handshake failed: it answered HTTP 500 to notifications/initialized";
    assert_eq!(report(&servers).last_error.unwrap(), said);
    end(server, servers).await;
}

#[tokio::test]
async fn a_server_that_is_left_alone_still_says_why_it_did_not_start() {
    let change = |limits: &mut Limits| {
        limits.servers.first_pause = Duration::from_millis(1);
        limits.servers.restarts = 2;
    };
    for (trap, said) in
        [(Trap::Login, "it needs a login; ask the operator"), (Trap::Older, "it speaks another transport")]
    {
        let server = HttpServer::start(trap).await;
        let servers = Stage::with(http(&server.url())).limit(change).start();
        for round in 1..=6 {
            let why = unavailable(&servers).await;
            assert!(why.contains(said), "{round}: {why}");
            assert_eq!(why.contains("is left alone for"), round > 3, "{round}: {why}");
        }
        assert!(!unavailable(&servers).await.contains("it ended"));
        end(server, servers).await;
    }
}

/// The same server by the older transport.
fn sse(server: &HttpServer) -> ServerSpec {
    let ServerSpec { transport: TransportSpec::Http(spec), .. } = http(&server.url()) else { panic!("not HTTP") };
    ServerSpec { transport: TransportSpec::Sse(spec), ..http(&server.url()) }
}

#[tokio::test]
async fn a_server_of_the_older_transport_works_and_its_stream_is_opened_again() {
    let server = HttpServer::start(Trap::Older).await;
    let servers = Stage::with(sse(&server)).ready().await;
    for _ in 0..2 {
        assert_eq!(raw(echo(&servers).await), r#"{"content":[{"type":"text","text":"key-of-the-operator"}],"n":1}"#);
    }
    let refused = call(&servers, "echo", json!({"how": "refused"})).await;
    assert!(matches!(refused, Outcome::Declined(_)), "{refused:?}");
    let before = turn(&servers);
    let cut = tokio::time::timeout(LONG, call(&servers, "echo", json!({"how": "cut"}))).await.unwrap();
    assert!(matches!(cut, Outcome::Unknown(NoAnswer::ServerGone)), "{cut:?}");
    ready_again(&servers, before).await;
    assert!(raw(echo(&servers).await).contains("\"n\":1"));
    assert_eq!(server.calls(), 5, "nothing is sent twice");
    end(server, servers).await;
}

#[tokio::test]
async fn a_server_of_the_older_transport_is_recognised_and_named() {
    let server = HttpServer::start(Trap::Older).await;
    let servers = Stage::with(http(&server.url())).start();
    assert!(unavailable(&servers).await.contains("another transport than it is configured with"));
    assert!(report(&servers).last_error.unwrap().contains("add \"type\": \"sse\" to its entry"));
    end(server, servers).await;
}

#[tokio::test]
async fn a_server_of_the_older_transport_that_takes_no_message_is_told_by_its_status() {
    let server = HttpServer::start(Trap::OlderRefuses).await;
    let servers = Stage::with(sse(&server)).start();
    assert!(unavailable(&servers).await.contains("could not be reached or does not speak the protocol"));
    assert_eq!(report(&servers).last_error.unwrap(), "the handshake failed: it answered HTTP 500");
    end(server, servers).await;
}

#[tokio::test]
async fn a_stream_that_names_no_address_of_its_own_is_refused() {
    for (trap, said) in [(Trap::OlderForeign, "is not its own"), (Trap::Json, "answered HTTP 405")] {
        let server = HttpServer::start(trap).await;
        let servers = Stage::with(sse(&server)).start();
        assert!(unavailable(&servers).await.contains("ask the operator"));
        assert!(report(&servers).last_error.unwrap().contains(said), "{trap:?}");
        assert_eq!(server.seen().iter().filter(|method| *method == "initialize").count(), 0, "{trap:?}");
        end(server, servers).await;
    }
}

#[tokio::test]
async fn disabled_tools_are_not_there() {
    let server = HttpServer::start(Trap::Json).await;
    let spec = ServerSpec { disabled_tools: BTreeSet::from(["echo".to_owned()]), ..http(&server.url()) };
    let servers = Stage::with(spec).ready().await;
    assert_eq!(catalogue(&servers).await.entries().tools().len(), 0);
    assert_eq!(report(&servers).left_out, 0);
    end(server, servers).await;
}

#[tokio::test]
async fn a_server_that_left_takes_no_call_and_is_unavailable() {
    let (server, servers) = ready(Trap::Json, |_| {}).await;
    let address = server.address;
    server.stop().await;
    // Nobody else's server is to be found there.
    let place = tokio::net::TcpSocket::new_v4().unwrap();
    place.set_reuseaddr(true).unwrap();
    place.bind(address).unwrap();
    let outcome = echo(&servers).await;
    // Over a connection that was kept it may have got there, as far as the client knows.
    let kept = matches!(outcome, Outcome::Unknown(NoAnswer::ServerGone));
    let why = match &outcome {
        Outcome::NotSent(NotSent::Unavailable(why)) => why,
        _ => "cannot be reached",
    };
    assert!(kept || matches!(outcome, Outcome::NotSent(_)), "{outcome:?}");
    assert!(why.contains("cannot be reached") && !why.contains(&address.port().to_string()), "{why}");
    let mut published = servers.handle("x").unwrap().shared.published.subscribe();
    published.wait_for(|now| matches!(now.state, ServerState::Unavailable(_))).await.unwrap();
    servers.shutdown().await;
}

/// A connection that was kept ends the ping as it ended the call, and says as little.
#[tokio::test]
async fn a_server_that_leaves_in_a_ping_is_unavailable() {
    let (server, servers) = ready(Trap::LeavesInPing, |_| {}).await;
    let _refused = echo(&servers).await;
    let mut published = servers.handle("x").unwrap().shared.published.subscribe();
    let gone = published.wait_for(|now| matches!(now.state, ServerState::Unavailable(_)));
    tokio::time::timeout(LONG, gone).await.unwrap().unwrap();
    end(server, servers).await;
}

#[tokio::test]
async fn nobody_listening_is_unavailable_and_the_address_stays_here() {
    // Bound, so that nobody else gets it.
    let held = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(held.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).unwrap();
    let free = getsockname::<SockaddrIn>(held.as_raw_fd()).unwrap();
    let servers = Stage::with(http(&format!("http://{free}/mcp"))).start();
    let why = unavailable(&servers).await;
    assert!(why.contains("could not be reached") && !why.contains("127.0.0.1"), "{why}");
    assert!(report(&servers).last_error.unwrap().contains("cannot be reached"));
    servers.shutdown().await;
}

#[tokio::test]
async fn plain_http_to_another_machine_is_refused_before_anything_is_sent() {
    let servers = Stage::with(http("http://192.0.2.1/mcp")).start();
    assert!(unavailable(&servers).await.contains("its address is refused; ask the operator"));
    assert!(report(&servers).last_error.unwrap().contains("use https:"));
    servers.shutdown().await;
}

#[tokio::test]
async fn tools_with_wrong_marks_for_headers_are_left_out_and_named() {
    let server = HttpServer::start(Trap::Marked).await;
    let spec = ServerSpec { protocol: ProtocolChoice::Auto, ..http(&server.url()) };
    let servers = Stage::with(spec).ready().await;
    let offered = catalogue(&servers).await;
    let names: Vec<&str> = offered.entries().tools().map(|tool| tool.name()).collect();
    assert_eq!(names, ["echo"]);
    let report = report(&servers);
    assert_eq!(report.left_out, 3);
    let reasons = report.left_out_reasons.join("\n");
    for part in ["no name of an HTTP header", "spaced", "no string, integer or boolean"] {
        assert!(reasons.contains(part), "{part}: {reasons}");
    }
    // What is marked well is repeated.
    assert!(raw(call(&servers, "echo", json!({"region": "eu"})).await).contains("\"text\":\"eu\""));
    end(server, servers).await;
}

#[tokio::test]
async fn a_server_that_names_other_revisions_is_not_taken_for_an_old_one() {
    let server = HttpServer::start(Trap::Later).await;
    let spec = ServerSpec { protocol: ProtocolChoice::Auto, ..http(&server.url()) };
    let servers = Stage::with(spec).start();
    let why = unavailable(&servers).await;
    assert!(why.ends_with("it speaks a revision of the protocol that is not known here; ask the operator"), "{why}");
    let detail = report(&servers).last_error.unwrap();
    assert_eq!(detail, "it speaks revision 2031-01-01 of the protocol, and was asked for 2026-07-28");
    assert!(!server.seen().iter().any(|method| method == "initialize"), "{:?}", server.seen());
    end(server, servers).await;
}

#[tokio::test]
async fn leaving_a_call_over_http_tells_the_server() {
    let (server, servers) = ready(Trap::EndlessSse, |_| {}).await;
    let cancel = CancellationToken::new();
    let sent = servers.send(outgoing(&servers, "echo", json!({})).await, &cancel, Events::default());
    let leaves = async {
        while server.calls() == 0 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(sent, leaves);
    assert!(matches!(outcome, Outcome::Unknown(NoAnswer::Cancelled)), "{outcome:?}");
    while !server.seen().iter().any(|method| method == "notifications/cancelled") {
        tokio::task::yield_now().await;
    }
    end(server, servers).await;
}

/// Waits until something was asked of the server so often.
async fn seen(server: &HttpServer, method: &str, times: usize) {
    let asked = async {
        while server.seen().iter().filter(|seen| *seen == method).count() < times {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, asked).await.unwrap();
}

/// Waits until changes can be told of, or cannot.
async fn hears(servers: &Servers, whether: bool) {
    let hearing = {
        let published = servers.handle("x").unwrap().shared.published.borrow().clone();
        Arc::clone(published.live.unwrap().interceptor.hearing())
    };
    let changed = async {
        while hearing.is_open() != whether {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, changed).await.unwrap();
}

fn has(offered: &Arc<Offered>, tool: &str) -> bool {
    offered.entries().tool(tool).is_some()
}

#[tokio::test]
async fn a_subscription_that_ends_with_its_server_is_made_again_and_the_listing_too() {
    let (server, servers) = stateless(Trap::Subscribed, |limits| limits.servers.list_age = 10 * LONG).await;
    seen(&server, "subscriptions/listen", 1).await;
    let mut published = servers.handle("x").unwrap().shared.published.subscribe();
    server.replace();
    // Nobody uses it meanwhile.
    let other = published.wait_for(|now| matches!(&now.state, ServerState::Ready(offered) if has(offered, "other")));
    tokio::time::timeout(LONG, other).await.unwrap().unwrap();
    assert_eq!(server.seen().iter().filter(|method| *method == "subscriptions/listen").count(), 2);
    end(server, servers).await;
}

#[tokio::test]
async fn what_may_have_changed_unheard_is_listed_again_before_its_next_use() {
    let (server, servers) = stateless(Trap::Subscribed, |limits| limits.servers.list_age = 10 * LONG).await;
    hears(&servers, true).await;
    server.replace();
    hears(&servers, false).await;
    assert!(has(&catalogue(&servers).await, "other"), "it is used before it is subscribed again");
    end(server, servers).await;
}

#[tokio::test]
async fn a_listing_that_nobody_could_say_is_outdated_is_made_again_for_whoever_uses_it() {
    for trap in [Trap::Unsubscribed, Trap::RefusesSubscriptions] {
        let (server, servers) = stateless(trap, |limits| limits.servers.list_age = Duration::from_millis(1)).await;
        if trap == Trap::RefusesSubscriptions {
            seen(&server, "subscriptions/listen", 1).await;
        }
        let call = outgoing(&servers, "echo", json!({})).await;
        server.replace();
        tokio::time::timeout(LONG, async { while !has(&catalogue(&servers).await, "other") {} }).await.unwrap();
        // It was decided about what is there no more.
        let outcome = servers.send(call, &CancellationToken::new(), Events::default()).await;
        assert!(matches!(outcome, Outcome::NotSent(NotSent::Changed)), "{outcome:?}");
        let refused = server.seen().iter().filter(|method| *method == "subscriptions/listen").count();
        assert!(refused <= 1, "it is asked no more");
        end(server, servers).await;
    }
}

#[tokio::test]
async fn what_changes_between_the_listing_and_the_first_subscription_is_listed_before_its_use() {
    let (server, servers) = stateless(Trap::ChangesUnheard, |limits| limits.servers.list_age = 10 * LONG).await;
    hears(&servers, true).await;
    assert!(has(&catalogue(&servers).await, "other"));
    let listed = || server.seen().iter().filter(|method| *method == "tools/list").count();
    assert_eq!((listed(), has(&catalogue(&servers).await, "other"), listed()), (2, true, 2), "once");
    end(server, servers).await;
}

#[tokio::test]
async fn what_cannot_be_listed_again_is_what_it_was() {
    let (server, servers) =
        stateless(Trap::LosesPrompts, |limits| limits.servers.list_age = Duration::from_millis(1)).await;
    assert!(catalogue(&servers).await.entries().prompt("p").is_some());
    server.replace();
    let changed = async {
        loop {
            let offered = catalogue(&servers).await;
            if has(&offered, "other") {
                return offered;
            }
        }
    };
    let offered = tokio::time::timeout(LONG, changed).await.unwrap();
    assert!(offered.entries().prompt("p").is_some() && !has(&offered, "echo"), "{:?}", offered.entries());
    end(server, servers).await;
}

#[tokio::test]
async fn a_listing_is_made_again_by_its_age_alone_where_no_change_can_be_told() {
    let (server, servers) = stateless(Trap::Unsubscribed, |_| {}).await;
    for _ in 0..20 {
        catalogue(&servers).await;
    }
    seen(&server, "tools/list", 1).await;
    assert_eq!(server.seen().iter().filter(|method| *method == "tools/list").count(), 1, "it is not old");
    end(server, servers).await;
    // A program says so at any time.
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let spec = with_env(stdio("x", &["ok"]), "MISBEHAVING_RECORD", record.to_str().unwrap());
    let servers = Stage::with(spec).limit(|limits| limits.servers.list_age = Duration::from_millis(1)).ready().await;
    for _ in 0..20 {
        catalogue(&servers).await;
    }
    raw(echo(&servers).await);
    assert_eq!(std::fs::read_to_string(&record).unwrap().matches("tools/list").count(), 1);
    servers.shutdown().await;
}

#[tokio::test]
async fn a_session_that_ends_with_its_stream_is_opened_again_before_a_call_finds_out() {
    let (server, servers) = ready(Trap::Streams, |_| {}).await;
    let before = turn(&servers);
    seen(&server, "GET", 1).await;
    hears(&servers, true).await;
    server.replace();
    ready_again(&servers, before).await;
    assert_eq!(server.calls(), 0);
    assert!(raw(echo(&servers).await).contains("\"n\":1"));
    end(server, servers).await;
}

#[tokio::test]
async fn a_server_without_a_handshake_is_told_with_a_call_what_its_caller_hears_of_logs() {
    let (server, servers) = stateless(Trap::Unsubscribed, |_| {}).await;
    let (events, _told) = tokio::sync::mpsc::channel(8);
    for (events, logs) in [
        (
            Events::new(Some(events), &Redactor::default(), Some(footbridge_calls::events::LogLevel::Info)),
            r#""logs":"info""#,
        ),
        (Events::default(), r#""logs":null"#),
    ] {
        let call = outgoing(&servers, "echo", json!({})).await;
        let outcome = servers.send(call, &CancellationToken::new(), events).await;
        let result = raw(outcome);
        assert!(result.contains(logs), "{result}");
    }
    end(server, servers).await;
}
