//! What the record costs: a call through the stages over a tool of this process, and many at once.
//!
//! Prints what a decision by a policy of 100 rules costs, what a call by the last of them costs, recorded without
//! syncing and synced; and the rate of 32 callers against one caller and against plain syncs of the same disk. It takes
//! the folder to write to; without one, a temporary one.

use std::{
    env,
    fs::File,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use footbridge::{
    InProcess, Policy, Recorder, ToolContext, ToolDefinition, ToolResult,
    config::{Variables, folders::Folders, load},
};
use footbridge_audit::AuditSettings;
use footbridge_calls::record::Audit;
use footbridge_calls::{
    approval::Approvals,
    auth::{Peer, Principal, authenticate},
    call::Stages,
    request::{CallRequest, Target},
    resolve::Resolver,
    session::SessionSpec,
    sessions::Sessions,
    upstream::{Guard, Upstream},
};
use footbridge_core::{
    budget::Budget,
    gate::{Effects, SessionRules},
    limits::{AuditLimits, CallLimits, EdgeLimits, Limits},
    redact::Redactor,
};
use footbridge_core::{names::Labels, random::new_token};
use serde_json::{Value, json, value::RawValue};
use tokio_util::sync::CancellationToken;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const CALLS: usize = 5_000;
const CALLERS: usize = 32;
const SYNCS: usize = 500;
const DECISIONS: u32 = 100_000;

fn main() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let given = env::args().skip(1).find(|arg| arg != "--bench").map(PathBuf::from);
    let base = given.unwrap_or_else(|| folder.path().to_owned());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(&base))
}

async fn measure(base: &Path) -> Result<(), Failure> {
    let unsynced = AuditSettings { sync: false, ..AuditSettings::default() };
    say(&format!("a decision by the last of 100 rules, arguments tested: {:.2} us", micros(decision(base)?)));
    let direct = direct().await;
    say(&format!("the tool itself, called directly: {:.1} us", micros(direct)));
    for (what, recorder) in [
        ("sync off", Recorder::open(&base.join("off"), &unsynced)?),
        ("sync on", Recorder::open(&base.join("on"), &AuditSettings::default())?),
    ] {
        let bench = Bench::start(recorder, many_rules(base, "allow")?)?;
        let added = bench.one_caller(CALLS).await?.saturating_sub(direct);
        say(&format!("added to a call, recorded, {what}: {:.1} us (median)", micros(added)));
        bench.audit.close()?;
    }
    let sync = plain_sync(base)?;
    say(&format!("one sync of a record's size: {:.0} us, so {:.0} a second", micros(sync), rate(sync)));
    let recorder = Recorder::open(&base.join("many"), &AuditSettings::default())?;
    let bench = Bench::start(recorder, many_rules(base, "allow")?)?;
    let (since, calls) = (Instant::now(), CALLS / 5);
    bench.callers(1, calls).await?;
    let one = since.elapsed() / u32::try_from(calls)?;
    let since = Instant::now();
    bench.callers(CALLERS, CALLS).await?;
    let many = since.elapsed() / u32::try_from(CALLS / CALLERS * CALLERS)?;
    bench.audit.close()?;
    say(&format!("sync on, 1 caller: {:.0} calls a second; {CALLERS} callers: {:.0}", rate(one), rate(many)));
    let (to_sync, to_one) = (rate(many) / rate(sync), rate(many) / rate(one));
    say(&format!("{CALLERS} callers: {to_sync:.1} times one plain sync a call, {to_one:.1} times one caller"));
    Ok(())
}

/// The stages over one tool, and somebody who may call it.
struct Bench {
    stages: Stages,
    audit: Audit,
    principal: Principal,
}

async fn tool(arguments: Value, _: ToolContext) -> ToolResult {
    ToolResult::json(json!({"twice": arguments["n"].as_i64().unwrap_or(0) * 2}))
}

impl Bench {
    fn start(recorder: Recorder, policy: Arc<Policy>) -> Result<Self, Failure> {
        let tools = InProcess::new("maths").tool(ToolDefinition::new("double"), tool).build()?;
        // Limits are for agents, not for measurements.
        let calls = CallLimits {
            per_second: 10_000_000,
            burst: 10_000_000,
            in_flight_per_session: 256,
            in_flight_per_session_and_server: 256,
            in_flight_per_server: 256,
            ..CallLimits::default()
        };
        let (edge, budget) = (EdgeLimits::default(), Budget::new(32 << 20));
        let guard = Guard { budget: budget.clone(), redactor: Redactor::default() };
        let upstream = Upstream::new(Arc::new(tools), guard);
        let audit = Audit::start(recorder, Redactor::default(), AuditLimits::default())?;
        let resolver = Resolver::new(upstream.catalogues().clone(), calls.clone(), edge.parsed_bytes);
        let token = new_token()?;
        let limits = Limits { calls, edge, ..Limits::default() };
        let approvals = Approvals::new(Vec::new(), audit.clone());
        let sessions = Sessions::new(approvals.clone(), limits, budget);
        let open = sessions.open(SessionSpec::new("bench".parse()?, &token, policy), Vec::new(), ())?;
        let peer = Peer::Unix { uid: 0, pid: None }.to_string().into();
        let principal = authenticate(open.session(), &peer, token.expose().as_bytes()).map_err(|_| "not let in")?;
        Ok(Self { stages: Stages { resolver, approvals, audit: audit.clone(), upstream }, audit, principal })
    }

    /// The median of single calls, warm.
    async fn one_caller(&self, calls: usize) -> Result<Duration, Failure> {
        let mut times = Vec::with_capacity(calls);
        for n in 0..calls + calls / 10 {
            let since = Instant::now();
            call(&self.stages, &self.principal, n).await?;
            times.push(since.elapsed());
        }
        let mut warm = times.split_off(calls / 10);
        warm.sort();
        Ok(warm[warm.len() / 2])
    }

    /// Calls by so many callers at once, in all.
    async fn callers(&self, callers: usize, calls: usize) -> Result<(), Failure> {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..callers {
            let (stages, principal) = (self.stages.clone(), self.principal.clone());
            tasks.spawn(async move {
                for n in 0..calls / callers {
                    call(&stages, &principal, n).await?;
                }
                Ok::<_, Failure>(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok(())
    }
}

async fn call(stages: &Stages, principal: &Principal, n: usize) -> Result<(), Failure> {
    let arguments = Some(RawValue::from_string(format!("{{\"n\":{n}}}"))?);
    let request = CallRequest {
        server: "maths".to_owned(),
        target: Target::Tool("double".to_owned()),
        arguments,
        meta: None,
        held: None,
    };
    let reply = stages
        .call(principal.clone(), request, &footbridge_calls::watcher::Watcher::silent(), &CancellationToken::new())
        .await;
    reply.into_answer().map(|_| ()).map_err(|failure| format!("{:?}", failure.cause).into())
}

/// A policy of 100 rules, of which none is about what is called here but the last.
fn many_rules(base: &Path, last: &str) -> Result<Arc<Policy>, Failure> {
    let rule = |n: usize| match n % 4 {
        0 => format!("decision = 'allow'\nserver = 'server-{n}'\ntool = 'get_*'\neffects = 'read'"),
        1 => format!("decision = 'deny'\ntool = '*_delete_{n}'\neffects = 'destructive'"),
        2 => {
            format!("decision = 'allow'\nserver = 's*'\ntool = 't*'\narguments = [{{at = '/p', path = '/srv/{n}/**'}}]")
        }
        _ => format!("decision = 'ask'\nserver = ['a{n}', 'b{n}']\ntool = '{{x,y}}_{n}'"),
    };
    let rules = (0..99).map(rule).chain([format!("decision = '{last}'")]);
    let file = base.join("footbridge.toml");
    std::fs::write(&file, rules.map(|rule| format!("[[policies.many.rules]]\n{rule}\n")).collect::<String>())?;
    let folders = Folders { config: base.to_owned(), ..Folders::find(0, |_| None)? };
    Ok(load(&[file], &folders, &Variables::of_this_process())?.policies.get("many")?)
}

/// The mean of deciding about one call that the last of the rules decides about.
fn decision(base: &Path) -> Result<Duration, Failure> {
    let rules = SessionRules::new(many_rules(base, "ask")?, &Labels::new());
    let arguments = json!({"p": "/srv/other/file", "q": 1});
    let since = Instant::now();
    for _ in 0..DECISIONS {
        let subject = rules.tool("server", "tool", Effects::from_annotations(None));
        let tested = rules.test(&subject, &arguments);
        std::hint::black_box(rules.decide(&subject, &tested));
    }
    Ok(since.elapsed() / DECISIONS)
}

/// The tool without any stage, as a program would call its own function.
async fn direct() -> Duration {
    let since = Instant::now();
    for n in 0..CALLS {
        let arguments = json!({"n": n});
        std::hint::black_box(arguments["n"].as_i64().map(|n| json!({"twice": n * 2}).to_string()));
    }
    since.elapsed() / u32::try_from(CALLS).unwrap_or(1)
}

/// The median of appending and syncing as much as a record is, in a file that grows.
fn plain_sync(base: &Path) -> Result<Duration, Failure> {
    let file = File::create(base.join("plain"))?;
    let (line, mut times) = ([b'x'; 400], Vec::new());
    for n in 0..SYNCS as u64 {
        let since = Instant::now();
        file.write_all_at(&line, n * line.len() as u64)?;
        file.sync_data()?;
        times.push(since.elapsed());
    }
    times.sort();
    Ok(times[times.len() / 2])
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1_000.0
}

fn rate(time: Duration) -> f64 {
    1.0 / time.as_secs_f64()
}

#[expect(clippy::print_stdout, reason = "this is what a benchmark is for")]
fn say(line: &str) {
    println!("{line}");
}
