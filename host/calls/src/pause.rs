//! Time that does not count against a call: a person is asked meanwhile, for the server that runs it.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

/// Who holds a call's time. Clones hold the same call's.
#[derive(Debug, Clone)]
pub struct Pause(Arc<watch::Sender<usize>>);

impl Default for Pause {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

/// The time stands still until this is dropped.
#[derive(Debug)]
pub struct Paused(Pause);

impl Drop for Paused {
    fn drop(&mut self) {
        self.0.0.send_modify(|holders| *holders = holders.saturating_sub(1));
    }
}

impl Pause {
    /// Stops the time.
    pub fn hold(&self) -> Paused {
        self.0.send_modify(|holders| *holders += 1);
        Paused(self.clone())
    }

    /// Waits until so much time has passed while nobody held it.
    pub async fn pass(&self, time: Duration) {
        let mut holders = self.0.subscribe();
        let mut left = time;
        loop {
            // The sender is as old as this.
            let _ = holders.wait_for(|holders| *holders == 0).await;
            let since = Instant::now();
            tokio::select! {
                () = sleep(left) => return,
                _ = holders.wait_for(|holders| *holders > 0) => left = left.saturating_sub(since.elapsed()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn held_time_does_not_count() {
        let pause = Pause::default();
        let start = Instant::now();
        let holds = async {
            sleep(Duration::from_secs(4)).await;
            let held = (pause.hold(), pause.hold());
            sleep(Duration::from_secs(1000)).await;
            drop(held.0);
            sleep(Duration::from_secs(100)).await;
            drop(held.1);
        };
        tokio::join!(holds, pause.pass(Duration::from_secs(10)));
        assert_eq!(start.elapsed(), Duration::from_secs(1110));
    }
}
