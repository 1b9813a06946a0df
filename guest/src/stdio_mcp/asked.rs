//! Messages of the client that are not over, and the queue of those that are still to be sent: so many of them, and so
//! much, at most. It knows no connection and no clock but for when a message came.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use footbridge_proto::rpc::IncomingMessage;
use serde_json::value::RawValue;

use super::message::Message;
use crate::events::AwaitedApproval;

/// Most messages that wait to be sent: several times what a client asks at once.
const MOST_WAITING: usize = 1024;
/// Most bytes of them.
const MOST_WAITING_BYTES: usize = 16 << 20;
/// What is quoted of an answer that is none.
const QUOTED_BYTES: usize = 1024;

/// A message of the client that is not over.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) message: Message,
    /// When it came.
    pub(super) since: Instant,
    /// Whether the client has its answer.
    pub(super) is_answered: bool,
    /// What came in place of one.
    pub(super) said: String,
    /// The approval that it waits for.
    pub(super) awaited: AwaitedApproval,
}

impl Asked {
    /// One that came just now.
    pub(super) fn now(message: Message) -> Self {
        let (since, awaited) = (Instant::now(), AwaitedApproval::default());
        Self { message, since, is_answered: false, said: String::new(), awaited }
    }

    /// Whether it is the one of this id.
    pub(super) fn has_id(&self, id: &RawValue) -> bool {
        self.message.id.as_deref().map(RawValue::get) == Some(id.get())
    }

    /// What of these texts the client is told: its answer, and what is said to it meanwhile.
    pub(super) fn told(&mut self, texts: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        texts.into_iter().filter(|text| self.is_told(text)).collect()
    }

    fn is_told(&mut self, text: &[u8]) -> bool {
        if self.message.is_notification {
            return false;
        }
        let read = serde_json::from_slice::<IncomingMessage<'_>>(text).ok();
        let is_its = read.as_ref().is_some_and(|read| self.message.is_answered_by(read));
        let is_told = is_its || read.is_some_and(|read| read.method.is_some());
        if !is_told {
            self.said = String::from_utf8_lossy(&text[..text.len().min(QUOTED_BYTES)]).into_owned();
        }
        self.is_answered |= is_its;
        is_told
    }
}

/// What is to be sent, in order.
#[derive(Debug, Default)]
pub(super) struct WaitingMessages {
    messages: VecDeque<Asked>,
    bytes: usize,
}

impl WaitingMessages {
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether there is a place for one more.
    pub(super) fn has_room_for(&self, message: &Message) -> bool {
        self.messages.len() < MOST_WAITING && self.bytes + message.line.len() <= MOST_WAITING_BYTES
    }

    pub(super) fn push(&mut self, asked: Asked) {
        self.bytes += asked.message.line.len();
        self.messages.push_back(asked);
    }

    /// One that came before all others, and has a place whatever waits.
    pub(super) fn put_back(&mut self, asked: Asked) {
        self.bytes += asked.message.line.len();
        self.messages.push_front(asked);
    }

    /// The one to be sent next.
    pub(super) fn take(&mut self) -> Option<Asked> {
        let asked = self.messages.pop_front()?;
        self.bytes -= asked.message.line.len();
        Some(asked)
    }

    /// The client takes this one back.
    pub(super) fn cancel(&mut self, id: &RawValue) {
        self.take_out(|asked| asked.has_id(id));
    }

    /// Takes out those that have waited for so long.
    pub(super) fn take_older(&mut self, than: Duration) -> Vec<Asked> {
        self.take_out(|asked| asked.since.elapsed() >= than)
    }

    fn take_out(&mut self, is_out: impl Fn(&Asked) -> bool) -> Vec<Asked> {
        let (out, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.messages).into_iter().partition(is_out);
        self.messages = kept.into();
        self.bytes -= out.iter().map(|asked| asked.message.line.len()).sum::<usize>();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(id: usize, bytes: usize) -> Asked {
        let line = format!(r#"{{"id":{id},"method":"x","params":{{"x":"{}"}}}}"#, "y".repeat(bytes));
        Asked::now(Message::read(line.into_bytes()))
    }

    #[test]
    fn so_many_and_so_much_may_wait_and_what_is_taken_back_makes_room() {
        for (bytes, most) in [(1, MOST_WAITING), (1 << 20, 15)] {
            let mut waiting = WaitingMessages::default();
            let ids = (0..).take_while(|id| {
                let one = asked(*id, bytes);
                let has_room = waiting.has_room_for(&one.message);
                if has_room {
                    waiting.push(one);
                }
                has_room
            });
            assert_eq!(ids.count(), most);
            let next = asked(most, bytes);
            assert!(!waiting.has_room_for(&next.message));
            waiting.cancel(next.message.id.as_deref().unwrap());
            assert!(!waiting.has_room_for(&next.message));
            waiting.cancel(asked(3, 1).message.id.as_deref().unwrap());
            assert!(waiting.has_room_for(&next.message));
            let left = std::iter::from_fn(|| waiting.take()).count();
            assert_eq!((left, waiting.bytes), (most - 1, 0));
        }
    }

    #[test]
    fn one_that_is_put_back_is_the_next() {
        let mut waiting = WaitingMessages::default();
        (0..3).for_each(|id| waiting.push(asked(id, 1)));
        let first = waiting.take().unwrap();
        waiting.put_back(first);
        assert!(waiting.take_older(Duration::from_secs(60)).is_empty());
        assert_eq!(waiting.take().unwrap().message.id.unwrap().get(), "0");
        assert_eq!(waiting.take_older(Duration::ZERO).len(), 2);
        assert!(waiting.is_empty() && waiting.bytes == 0);
    }

    #[test]
    fn its_answer_and_what_has_a_method_is_told_and_the_rest_is_kept() {
        let mut one = asked(7, 1);
        let texts =
            [r#"{"method":"notifications/progress"}"#, r#"{"id":8,"result":{}}"#, "no", r#"{"id":7,"result":{}}"#];
        let told = one.told(texts.map(|text| text.as_bytes().to_vec()).to_vec());
        assert_eq!(told, [texts[0].as_bytes(), texts[3].as_bytes()]);
        assert_eq!((one.is_answered, one.said.as_str()), (true, "no"));
        let mut notified = Asked::now(Message::read(br#"{"jsonrpc":"2.0","method":"x"}"#.to_vec()));
        assert!(notified.told(vec![texts[3].into()]).is_empty() && !notified.is_answered);
    }
}
