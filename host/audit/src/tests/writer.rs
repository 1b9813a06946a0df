//! The thread that writes, and its end.

use std::{
    io,
    time::{Duration, Instant},
};

use crate::{Journal, Trail, record::Record};
use footbridge_core::limits::AuditLimits;

/// Longer than anything takes here.
const LONG: Duration = Duration::from_secs(30);

/// A place in which nothing but the first line can be written without an error of the program.
#[derive(Default)]
struct Wrong {
    begun: bool,
}

impl Journal for Wrong {
    fn reserve(&mut self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn commit(&mut self, _bytes: &[u8]) -> io::Result<()> {
        assert!(!self.begun, "an error of the program");
        self.begun = true;
        Ok(())
    }
}

#[tokio::test]
async fn where_the_thread_ended_by_an_error_nothing_is_admitted() {
    let trail = Trail::start(Wrong::default(), AuditLimits::default()).unwrap();
    assert!(trail.takes_records());
    assert!(!trail.note(Record::limited("s", "rate", 1)).await);
    let deadline = Instant::now() + LONG;
    while trail.takes_records() {
        assert!(Instant::now() < deadline, "the thread does not say that it is gone");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(trail.failure().is_some_and(|why| why.contains("start it anew")));
    assert!(!trail.intent("id", Record::limited("s", "rate", 1)).await, "at once, and not when its time is over");
    assert!(matches!(trail.close(), Err(crate::RecordLost::WriterPanicked)));
}
