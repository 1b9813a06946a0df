//! What a command waits for, on a line of the terminal that is gone before anything else is printed.
//!
//! Nothing is shown where standard error is no terminal that draws, nor before a second is over. A thread of its own draws
//! it: what is waited for may be of tasks or not. One line is there at a time.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use footbridge_cli::drawn_line::DrawnLine;

/// What is done sooner is not told of.
const SOON: Duration = Duration::from_secs(1);

/// Drawing more often shows nobody more.
const EVERY: Duration = Duration::from_millis(200);

/// The line, and how many keep it off the screen.
static SCREEN: Mutex<(Option<DrawnLine>, usize)> = Mutex::new((None, 0));

fn screen() -> MutexGuard<'static, (Option<DrawnLine>, usize)> {
    SCREEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows what is waited for, and how long already, as long as this lives.
#[derive(Debug, Default)]
pub(crate) struct WaitLine {
    /// Dropped to end it.
    drawing: Option<(mpsc::SyncSender<()>, thread::JoinHandle<()>)>,
}

impl WaitLine {
    /// From now on what this says is shown.
    #[must_use]
    pub(crate) fn shown(what: impl Fn() -> String + Send + 'static) -> Self {
        if !DrawnLine::can_be_drawn() {
            return Self::default();
        }
        let (end, ended) = mpsc::sync_channel(0);
        let begun = Instant::now();
        // Where there is room for no thread the rest goes on.
        let drawing = thread::Builder::new().spawn(move || {
            let mut wait = SOON;
            while ended.recv_timeout(wait) == Err(mpsc::RecvTimeoutError::Timeout) {
                draw(&format!("{} ({} s)", what(), begun.elapsed().as_secs()));
                wait = EVERY;
            }
        });
        Self { drawing: drawing.ok().map(|drawing| (end, drawing)) }
    }

    /// The same of what does not change.
    #[must_use]
    pub(crate) fn of(what: &'static str) -> Self {
        Self::shown(move || what.to_owned())
    }
}

impl Drop for WaitLine {
    fn drop(&mut self) {
        if let Some((end, drawing)) = self.drawing.take() {
            drop(end);
            // One that panicked has drawn nothing since.
            let _ = drawing.join();
            screen().0 = None;
        }
    }
}

fn draw(text: &str) {
    let mut screen = screen();
    if screen.1 == 0 {
        screen.0.get_or_insert_default().draw(text);
    }
}

/// Writes something else, with the line off the screen; it comes back by itself, below.
pub(crate) fn aside<T>(write: impl FnOnce() -> T) -> T {
    let mut screen = screen();
    if let Some(line) = &mut screen.0 {
        line.take_away();
    }
    write()
}

/// As long as this lives the screen is somebody else's.
#[derive(Debug)]
pub(crate) struct ScreenTaken(());

impl ScreenTaken {
    /// From now on.
    pub(crate) fn take() -> Self {
        let mut screen = screen();
        (screen.0, screen.1) = (None, screen.1 + 1);
        Self(())
    }
}

impl Drop for ScreenTaken {
    fn drop(&mut self) {
        screen().1 -= 1;
    }
}

/// What is left of several things that are waited for at once, for whoever shows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Left(Arc<Mutex<BTreeSet<String>>>);

impl Left {
    /// All of these.
    pub(crate) fn of(names: impl IntoIterator<Item = String>) -> Self {
        Self(Arc::new(Mutex::new(names.into_iter().collect())))
    }

    /// This one is not waited for any more.
    pub(crate) fn is_done(&self, name: &str) {
        self.names().remove(name);
    }

    /// What is left, in a list.
    pub(crate) fn listed(&self) -> String {
        self.names().iter().map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
