//! A provider called without an admission, or by a way that only its stage has.

use footbridge::Server;
use footbridge::harness::Harness;
use footbridge_calls::catalogues::Catalogues;
use footbridge_calls::provider::CallContext;
use footbridge_calls::provider::InProcess;
use footbridge_calls::provider::Outgoing;
use footbridge_calls::request::OutgoingRequest;
use footbridge_calls::provider::ToolProvider;
use footbridge_calls::upstream::Upstream;
use footbridge_calls::watcher::Watcher;
use footbridge_calls::resolve::Resolver;
use footbridge_core::names::ServerName;
use footbridge_mcp::Servers;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

async fn with_a_request(provider: &dyn ToolProvider, request: OutgoingRequest, context: CallContext) {
    let _ = provider.call(request, context).await; //~ E0308
}

async fn mcp_servers_with_a_request(servers: &Servers, request: OutgoingRequest, context: CallContext) {
    let _ = servers.call(request, context).await; //~ E0308
}

async fn mcp_servers_by_their_own_way(servers: &Servers, outgoing: Outgoing, cancel: &CancellationToken) {
    let _ = servers.send(outgoing, cancel, None).await; //~ E0624
}

async fn functions_by_their_own_way(
    tools: &InProcess,
    server: &ServerName,
    arguments: &RawValue,
    context: CallContext,
) {
    let _ = tools.run(server, "tool", arguments, context).await; //~ E0624
}

async fn by_the_way_of_the_stage(upstream: &Upstream, outgoing: Outgoing, cancel: &CancellationToken) {
    let _ = upstream.send(outgoing, cancel, &Watcher::silent()).await; //~ E0624
}

fn the_provider_behind_the_stage(upstream: &Upstream) {
    let _ = &upstream.provider; //~ E0616
}

fn the_provider_behind_the_names(resolver: &Resolver) {
    let _ = &resolver.catalogues; //~ E0616
}

fn the_stage_of_a_harness(harness: &Harness) {
    let _ = &harness.upstream; //~ E0616
}

fn the_record_of_a_harness(harness: &Harness) {
    let _ = &harness.audit; //~ E0616
}

fn the_harness_of_a_server(server: &Server) {
    let _ = &server.harness; //~ E0616
}

fn the_provider_behind_the_catalogues(catalogues: &Catalogues) {
    let _ = &catalogues.provider; //~ E0616
}
