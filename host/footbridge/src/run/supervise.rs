//! The command while it runs: it is started, gets the signals that this process gets, and has its end waited for.

use std::{io::PipeReader, ops::ControlFlow, os::fd::OwnedFd, time::Duration};

use nix::sys::signal::Signal;
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe::Receiver,
    time::{Instant, timeout},
};

use super::{HARNESS_FAILED, ask::Person, delivery::SignalDelivery, note::Note, patience::Patience};
use footbridge_processes::{
    keeper::{Kept, KeptCommand, ProgramStream, SpawnError},
    pty::Local,
    sandbox::{
        bwrap::BwrapError,
        streams::{Carriers, carried},
    },
    signals::Signals,
};

/// What is ready to be started.
pub(super) struct Prepared {
    pub(super) command: KeptCommand,
    /// Where the sandbox says that the command's init runs, if it says so.
    pub(super) ready: Option<PipeReader>,
    /// How signals reach it, where that is not by its keeper.
    pub(super) delivery: Option<SignalDelivery>,
    /// Whether it is in a sandbox that a descriptor of the host's would lead out of.
    pub(super) is_closed: bool,
}

impl Prepared {
    /// Has the note of this run be its own until nothing of the command is left, should the harness be killed, too.
    pub(super) fn noted(mut self, note: Option<&Note>) -> std::io::Result<Self> {
        if let Some(held) = note.map(Note::duplicate).transpose()?.flatten() {
            self.command = self.command.held(held);
        }
        Ok(self)
    }
}

/// What came of a run's command.
pub(super) struct Supervised {
    /// The status of the run, or why it has none.
    pub(super) status: anyhow::Result<i32>,
    /// Whether nothing of the command is left, as far as its keeper knows.
    pub(super) is_over: bool,
    /// For those that come from now on: they do nothing else any more.
    pub(super) signals: Option<Signals>,
}

impl Supervised {
    /// Of a command that was never started.
    pub(super) fn not_started(error: anyhow::Error) -> Self {
        Self { status: Err(error), is_over: true, signals: None }
    }

    /// The next signal that asks for the end.
    pub(super) async fn signal(&mut self) -> Signal {
        match &mut self.signals {
            Some(signals) => signals.next().await,
            None => std::future::pending().await,
        }
    }
}

/// Starts the command, passes signals on, and waits until nothing of it is left.
///
/// On the terminal, if there is one, the person in front of it can be asked meanwhile.
pub(super) async fn supervise(prepared: Prepared, local: Option<Local>, person: Option<Person>) -> Supervised {
    // Before the command starts: from then on whoever sends a signal expects it to get there.
    let mut signals = match Signals::listen_if_not_ignored(&PASSED_ON) {
        Ok(signals) => signals,
        Err(error) => return Supervised::not_started(error.into()),
    };
    let mut is_over = true;
    let status = carry_out(prepared, local, person, &mut signals, &mut is_over).await;
    Supervised { status, is_over, signals: Some(signals) }
}

/// As [`supervise`], which is told by the last one whether anything may be left.
async fn carry_out(
    prepared: Prepared,
    local: Option<Local>,
    person: Option<Person>,
    signals: &mut Signals,
    is_over: &mut bool,
) -> anyhow::Result<i32> {
    let Prepared { mut command, ready, delivery, is_closed } = prepared;
    let (mut streams, mut carriers) = ([(); 3].map(|()| ProgramStream::Inherit), Carriers::default());
    if let Some(local) = &local {
        (streams, command) = (local.streams(), command.local_terminal(local.duplicate()?));
    }
    if is_closed {
        (streams, carriers) = carried(streams)?;
    }
    let [stdin, stdout, stderr] = streams;
    let command = command.streams(stdin, stdout, stderr);
    // Now, since the terminal may be closed while the command starts.
    let patience = Patience::new();
    let (mut kept, mut early) = match started(command, signals, is_over).await? {
        ControlFlow::Continue(started) => started,
        ControlFlow::Break(status) => return Ok(status),
    };
    let terminal = kept.terminal.take();
    let ended = async {
        if let Some(ready) = ready {
            early = match wait_for_init(ready, signals, early).await? {
                ControlFlow::Continue(early) => early,
                ControlFlow::Break(signal) => {
                    let killed = async { while kept.kill(KILLED).await.is_none() {} };
                    cut_short(killed, signals).await;
                    return Ok(128 + signal as i32);
                }
            };
        }
        wait(&mut kept, signals, early, patience, delivery).await
    };
    let ended = async {
        tokio::select! {
            ended = ended => ended,
            never = carriers.feed() => match never {},
        }
    };
    let status = on_terminal(local, terminal, person, ended).await;
    if status.is_err() {
        let _all_is_gone_or_late = kept.kill(KILLED).await;
    }
    *is_over = kept.is_gone();
    // Where it failed, what is still left is not waited for.
    let output = carriers.end(*is_over || status.is_err());
    match status {
        Ok(status) => Ok(with_its_output(status, output, signals).await),
        Err(error) => {
            // Why it failed may be what was written last.
            with_its_output(HARNESS_FAILED, output, signals).await;
            Err(error)
        }
    }
}

/// Waits for the end, with the command on the local terminal where it has one.
async fn on_terminal(
    local: Option<Local>,
    terminal: Option<OwnedFd>,
    person: Option<Person>,
    ended: impl Future<Output = anyhow::Result<i32>>,
) -> anyhow::Result<i32> {
    match (local, terminal, person) {
        (Some(local), Some(terminal), Some(mut person)) => {
            local.attach(terminal)?.carry_with(&mut person, ended).await?
        }
        (Some(local), Some(terminal), None) => local.attach(terminal)?.carry(ended).await?,
        _ => ended.await,
    }
}

/// Starts the command, and keeps a signal that comes meanwhile: it is for the command, which may run already. A second one
/// is for a start that hangs. The status where there is no command to wait for.
async fn started(
    command: KeptCommand,
    signals: &mut Signals,
    is_over: &mut bool,
) -> anyhow::Result<ControlFlow<i32, (Kept, Option<Signal>)>> {
    *is_over = false;
    let mut spawning = std::pin::pin!(command.spawn());
    let mut early = None;
    let spawned = loop {
        tokio::select! {
            spawned = &mut spawning => break spawned,
            signal = signals.next() => if early.replace(signal).is_some() {
                let started = async {
                    *is_over = match spawning.await {
                        Ok(mut kept) => kept.kill(KILLED).await.is_some() && kept.is_gone(),
                        Err(error) => is_nothing_left(&error),
                    };
                };
                cut_short(started, signals).await;
                return Ok(ControlFlow::Break(128 + signal as i32));
            },
        }
    };
    match spawned {
        Ok(kept) => Ok(ControlFlow::Continue((kept, early))),
        Err(error) => {
            *is_over = is_nothing_left(&error);
            let SpawnError::Refused(refusal) = error else { return Err(error.into()) };
            crate::report::error(&anyhow::Error::new(refusal.clone()));
            Ok(ControlFlow::Break(refusal.exit_code()))
        }
    }
}

/// Whether what could not be started left nothing.
fn is_nothing_left(error: &SpawnError) -> bool {
    !matches!(error, SpawnError::Lost)
}

/// The status of a run whose command ended with this one, once all that it wrote is where it goes. What is lost was said,
/// and a command that did not notice has not done what it says.
async fn with_its_output(status: i32, output: impl Future<Output = bool>, signals: &mut Signals) -> i32 {
    tokio::select! {
        biased;
        is_whole = output => if status == 0 && !is_whole { HARNESS_FAILED } else { status },
        signal = signals.next() => {
            crate::report::note("footbridge: the command has ended, and the rest of its output is not waited for");
            128 + signal as i32
        }
    }
}

/// Ends a start by its second signal, and waits until nothing is left of what was started, unless a third one comes.
async fn cut_short(ends: impl Future<Output = ()>, signals: &mut Signals) {
    crate::report::note("footbridge: interrupted twice before the command had started: the start is given up");
    tokio::select! {
        _it_may_hang = timeout(KILLED, ends) => {}
        _ = signals.next() => {}
    }
}

/// Waits until the command's init takes signals; until then they are kept, and the first is given back. A second one
/// ends it all.
async fn wait_for_init(
    ready: PipeReader,
    signals: &mut Signals,
    mut early: Option<Signal>,
) -> anyhow::Result<ControlFlow<Signal, Option<Signal>>> {
    let mut ready = Receiver::from_owned_fd(ready.into())?;
    let mut said = [0; 64];
    let mut heard = std::pin::pin!(ready.read(&mut said));
    loop {
        tokio::select! {
            count = &mut heard => return match count? {
                0 => Err(BwrapError::NotStarted.into()),
                _ => Ok(ControlFlow::Continue(early)),
            },
            signal = signals.next() => if early.replace(signal).is_some() {
                return Ok(ControlFlow::Break(signal));
            },
        }
    }
}

/// The signals that are passed on to the command.
const PASSED_ON: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// How long what came of a command may take to end once it is killed.
const KILLED: Duration = Duration::from_secs(10);

/// Waits for the end, and passes on what asks for it.
async fn wait(
    kept: &mut Kept,
    signals: &mut Signals,
    early: Option<Signal>,
    mut patience: Patience,
    mut delivery: Option<SignalDelivery>,
) -> anyhow::Result<i32> {
    let (mut next, mut for_client) = (early, None);
    loop {
        if let Some(signal) = next
            && patience.ends_by(signal, Instant::now())
        {
            return kill(kept, "its third signal in a row, and it had not ended").await;
        }
        match (next.take(), &delivery) {
            (Some(signal), Some(delivery)) => delivery.send(signal),
            (Some(signal), None) => kept.signal(signal),
            (None, _) => {}
        }
        tokio::select! {
            ended = kept.wait() => return Ok(match (ended?.code(), for_client) {
                // An engine's client that was told to end in its command's place, and may call that well done.
                (0, Some(signal)) => 128 + signal as i32,
                (status, _) => status,
            }),
            signal = signals.next() => next = Some(signal),
            signal = undelivered(&mut delivery) => {
                for_client = Some(signal);
                kept.signal(signal);
            }
            () = patience.ends_by_itself() => return kill(kept, "its terminal is closed, and it had not ended").await,
        }
    }
}

/// Ends a command that would go on, whatever whoever runs it for us says.
async fn kill(kept: &mut Kept, why: &str) -> anyhow::Result<i32> {
    crate::report::note(&format!("footbridge: the command is killed, with all that came of it: {why}"));
    let _all_is_gone_or_late = kept.kill(KILLED).await;
    Ok(128 + Signal::SIGKILL as i32)
}

async fn undelivered(delivery: &mut Option<SignalDelivery>) -> Signal {
    match delivery {
        Some(delivery) => delivery.failed().await,
        None => std::future::pending().await,
    }
}
