//! How one direction of a connection stands, for the other to see.

use std::{cell::Cell, time::Duration};

use tokio::{sync::Notify, time::sleep};

/// One direction.
#[derive(Default)]
pub(crate) struct Direction {
    /// Once it ended: how long the other one may be silent.
    ended: Cell<Option<Duration>>,
    end: Notify,
}

impl Direction {
    /// It ended; the other one may be silent for so long.
    pub(crate) fn end(&self, grace: Duration) {
        self.ended.set(Some(grace));
        self.end.notify_one();
    }

    /// Resolves when it has ended and its grace has passed. Asked anew after each byte, so it measures silence.
    pub(crate) async fn silent(&self) {
        loop {
            match self.ended.get() {
                Some(grace) => return sleep(grace).await,
                None => self.end.notified().await,
            }
        }
    }
}
