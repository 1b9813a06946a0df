//! MCP over standard input and output, for clients that start a program: each line is a request to the endpoint over
//! HTTP, and each message of an answer a line. `message` is what is read of a line, `session` what the harness knows
//! the client by.
//!
//! One loop waits for all of them at once, without threads. The client's handshake is kept, so that it can be done again
//! with a harness that was restarted: what did not reach one is sent then; what was sent and not answered is answered
//! with an error, since it may have had its effect. What the client takes back is a connection that is closed. Behind
//! the end of the input it waits for the answers that are missing, for as long as anything may take and somebody reads.

mod message;
mod session;

use std::{
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

use footbridge_proto::rpc::{ErrorObject, IncomingMessage, Reason, error_answer, notification};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::value::RawValue;

use crate::{
    error::ClientError,
    exchange::{Exchange, Standing},
    http::HttpError,
    input::{self, InputLine, InputLines, LongLine},
    settings::ClientSettings,
};
use message::{Message, UNAUTHORIZED};
use session::HttpSession;

/// Requests at a time; lines behind them wait.
const AT_ONCE: usize = 32;
/// Between two attempts to reach a harness.
const PAUSE: Duration = Duration::from_millis(250);

/// What an exchange is for.
#[derive(Debug)]
enum Purpose {
    /// A message of the client, and since when it waits.
    Message(Message, Instant),
    /// The handshake again, with a harness that does not know the client.
    Again,
    /// That the handshake is done, said again.
    SaidAgain,
    /// What changes meanwhile.
    Listen,
}

/// A client over standard input and output, and the endpoint that it speaks to.
pub struct StdioMcp<O> {
    settings: ClientSettings,
    out: O,
    session: HttpSession,
    exchanges: Vec<Exchange<Purpose>>,
    /// What is to be sent, and since when it waits.
    waiting: Vec<(Message, Instant)>,
    /// No harness was reached; the next attempt is then.
    next_try: Option<Instant>,
    /// Why none was reached, until one is.
    out_of_reach: Option<String>,
    /// The input has ended, and what is missing is waited for until then.
    ends: Option<Instant>,
}

impl<O: Write> StdioMcp<O> {
    /// To the endpoint of all servers, or of one, with or without the three tools that search in place of all others.
    pub fn new(settings: ClientSettings, server: Option<&str>, search: bool, out: O) -> Self {
        let session = HttpSession::at(session::path(server, search));
        let (exchanges, waiting) = (Vec::new(), Vec::new());
        Self { settings, out, session, exchanges, waiting, next_try: None, out_of_reach: None, ends: None }
    }

    /// Carries messages until the input ends, and what was asked is answered. What still runs once that has taken as
    /// long as anything may, or once nobody reads `output`, which is where the messages go, is cancelled.
    ///
    /// # Errors
    /// What reading the input or writing the output says.
    pub fn run(mut self, input: BorrowedFd<'_>, output: &impl AsFd) -> io::Result<()> {
        let mut lines = InputLines::default();
        loop {
            if self.wait(input, output.as_fd())? {
                if lines.read_some(input)? {
                    self.ends = Some(Instant::now() + self.settings.timeout);
                }
                self.take_lines(&mut lines)?;
            }
            self.go_on()?;
            self.send()?;
            let is_over = self.is_over(output.as_fd())?;
            self.out.flush()?;
            if is_over {
                return Ok(());
            }
        }
    }

    /// Whether the input has ended and nothing is missing any more, or nobody reads it. What is missing when its time is
    /// up is answered here.
    fn is_over(&mut self, output: BorrowedFd<'_>) -> io::Result<bool> {
        let Some(ends) = self.ends else { return Ok(false) };
        if Instant::now() < ends {
            let is_message = |purpose: &Purpose| matches!(purpose, Purpose::Message(..));
            let is_missing = !self.waiting.is_empty() || self.is_under_way(is_message);
            return Ok(!is_missing || has_left(output));
        }
        for (message, _) in std::mem::take(&mut self.waiting) {
            self.print_failed(&message, Reason::Timeout, "the input has ended, and the time was up: nothing was sent")?;
        }
        for exchange in std::mem::take(&mut self.exchanges) {
            if let Purpose::Message(message, _) = exchange.purpose {
                let why = "the input has ended, and no answer came in time. The call was cancelled, but may have had its \
                           effect; raise the limit with --timeout";
                self.print_failed(&message, Reason::OutcomeUnknown, why)?;
            }
        }
        Ok(true)
    }

    /// Waits until something can be done; whether it is the input that has something.
    fn wait(&self, input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<bool> {
        let mut polled: Vec<PollFd<'_>> = self.exchanges.iter().map(Exchange::polled).collect();
        let takes_more = self.ends.is_none() && self.waiting.len() + self.exchanges.len() < AT_ONCE;
        if takes_more {
            polled.push(PollFd::new(input, PollFlags::POLLIN));
        } else if self.ends.is_some() {
            polled.push(PollFd::new(output, PollFlags::empty()));
        }
        if !input::wait(&mut polled, [self.next_try, self.ends].into_iter().flatten().min())? {
            return Ok(false);
        }
        let of_input = polled.last().filter(|_| takes_more).and_then(PollFd::revents);
        Ok(of_input.is_some_and(|events| !events.is_empty()))
    }

    fn take_lines(&mut self, lines: &mut InputLines) -> io::Result<()> {
        while let Some(line) = lines.take_line() {
            match line {
                InputLine::Whole(line) if line.trim_ascii().is_empty() => {}
                InputLine::Whole(line) => self.take(Message::read(line.trim_ascii().to_vec())),
                InputLine::TooLong(line) => self.print_too_long(&line)?,
            }
        }
        Ok(())
    }

    /// Answers a line that no bridge takes. What is no request has an id of the other side, if any.
    fn print_too_long(&mut self, line: &LongLine) -> io::Result<()> {
        let id = line.id.as_deref().filter(|_| line.has_method);
        let why = ClientError::RequestTooLarge(line.bytes).to_string();
        self.print(error_answer(id, &ErrorObject::new(Reason::TooLarge, why)).into_bytes())
    }

    fn take(&mut self, message: Message) {
        if let Some(id) = &message.cancels {
            let is_it = |of: &Message| of.id.as_deref().map(RawValue::get) == Some(id.get());
            self.waiting.retain(|(waiting, _)| !is_it(waiting));
            self.exchanges.retain(|exchange| match &exchange.purpose {
                Purpose::Message(sent, _) => !is_it(sent),
                Purpose::Again | Purpose::SaidAgain | Purpose::Listen => true,
            });
            return;
        }
        self.session.heard(&message);
        self.waiting.push((message, Instant::now()));
    }

    /// Reads and writes what is possible now.
    fn go_on(&mut self) -> io::Result<()> {
        let mut at = 0;
        while let Some(exchange) = self.exchanges.get_mut(at) {
            let mut messages = Vec::new();
            let stands = exchange.go_on(&mut |_, message| messages.push(message));
            if matches!(stands, Ok(Standing::Going)) && messages.is_empty() {
                at += 1;
                continue;
            }
            let is_over = !matches!(stands, Ok(Standing::Going));
            if is_over {
                let exchange = self.exchanges.remove(at);
                self.ended(exchange, messages, stands.err())?;
            } else {
                at += 1;
                let is_told = !matches!(&exchange.purpose, Purpose::Message(message, _) if message.is_notification);
                for message in messages.into_iter().filter(|_| is_told) {
                    self.print(message)?;
                }
            }
        }
        Ok(())
    }

    fn ended(
        &mut self,
        exchange: Exchange<Purpose>,
        messages: Vec<Vec<u8>>,
        error: Option<HttpError>,
    ) -> io::Result<()> {
        let (status, session) = (exchange.arriving.status, exchange.arriving.session);
        match (exchange.purpose, status, error) {
            // The relay of a sandbox says so where it reaches no harness: nothing was read of the request.
            (Purpose::Message(message, since), Some(502), _) => self.not_reached(message, since, "the relay"),
            (Purpose::Message(message, since), Some(404), None)
                if self.session.is_shown_by(&message) && since.elapsed() < self.settings.timeout =>
            {
                self.session.lost();
                self.waiting.insert(0, (message, since));
                Ok(())
            }
            (Purpose::Message(message, _), _, Some(error)) => {
                for text in messages.into_iter().filter(|_| !message.is_notification) {
                    self.print(text)?;
                }
                let why = format!("{error}. The call was sent, and may have had its effect; do not repeat it blindly");
                self.print_failed(&message, Reason::OutcomeUnknown, &why)
            }
            (Purpose::Message(message, _), status, None) => {
                if message.is("initialize") {
                    self.session.begun(session, messages.first().map_or(&[][..], Vec::as_slice));
                }
                self.print_answers(&message, status.unwrap_or_default(), messages)
            }
            (Purpose::Again, Some(200), None) => {
                self.session.begun(session, messages.first().map_or(&[][..], Vec::as_slice));
                self.session.is_to_be_said = true;
                for kind in ["tools", "resources", "prompts"] {
                    self.print(notification(&format!("notifications/{kind}/list_changed"), None).into_bytes())?;
                }
                Ok(())
            }
            (Purpose::SaidAgain, _, None) => Ok(()),
            (Purpose::Listen, Some(404), _) => {
                self.session.lost();
                Ok(())
            }
            (Purpose::Listen, Some(400..500), _) => {
                self.session.listens = false;
                Ok(())
            }
            (Purpose::Again | Purpose::SaidAgain | Purpose::Listen, status, error) => {
                self.pause(error.map_or_else(|| answered(status), |error| error.to_string()));
                Ok(())
            }
        }
    }

    fn print_answers(&mut self, message: &Message, status: u16, messages: Vec<Vec<u8>>) -> io::Result<()> {
        if message.is_notification {
            return Ok(());
        }
        let mut is_answered = message.id.is_none();
        let mut said = String::new();
        for text in messages {
            let read = serde_json::from_slice::<IncomingMessage<'_>>(&text).ok();
            let is_its = read.as_ref().is_some_and(|read| message.is_answered_by(read));
            let is_told = read.is_some_and(|read| read.method.is_some());
            if is_its || is_told {
                is_answered |= is_its;
                self.print(text)?;
            } else {
                said = String::from_utf8_lossy(&text[..text.len().min(1024)]).into_owned();
            }
        }
        if is_answered {
            return Ok(());
        }
        if status == 401 {
            return message.unauthorized().map_or(Ok(()), |text| self.print(text.into_bytes()));
        }
        let reason = if status == 413 { Reason::TooLarge } else { Reason::BadRequest };
        self.print_failed(message, reason, &format!("the bridge answered HTTP {status}: {said}"))
    }

    fn not_reached(&mut self, message: Message, since: Instant, why: &str) -> io::Result<()> {
        self.pause(why.to_owned());
        self.waiting.insert(0, (message, since));
        // Its time may be over, and it is not sent again then.
        self.give_up()
    }

    /// Tries again in a moment.
    fn pause(&mut self, why: String) {
        self.next_try = Some(Instant::now() + PAUSE);
        self.out_of_reach = Some(why);
    }

    /// Answers what waited for a harness for as long as anything may take.
    fn give_up(&mut self) -> io::Result<()> {
        let Some(why) = &self.out_of_reach else { return Ok(()) };
        let target = &self.settings.target;
        let text =
            format!("the bridge at {target} cannot be reached, and nothing was sent ({why}): is the harness up?");
        let waiting = std::mem::take(&mut self.waiting);
        let (over, waiting): (Vec<_>, _) =
            waiting.into_iter().partition(|(_, since)| since.elapsed() >= self.settings.timeout);
        self.waiting = waiting;
        over.iter().try_for_each(|(message, _)| self.print_failed(message, Reason::ServerUnavailable, &text))
    }

    /// Sends what waits, and what the session needs.
    fn send(&mut self) -> io::Result<()> {
        self.give_up()?;
        if self.next_try.is_some_and(|next| Instant::now() < next) {
            return Ok(());
        }
        self.next_try = None;
        if self.is_under_way(|purpose| matches!(purpose, Purpose::Again)) {
            return Ok(());
        }
        if let Some(handshake) = self.session.to_repeat() {
            return self.begin_or_pause(Purpose::Again, handshake);
        }
        if std::mem::take(&mut self.session.is_to_be_said) {
            let said = self.session.said();
            self.begin_or_pause(Purpose::SaidAgain, said)?;
        }
        if self.session.may_listen() && !self.is_under_way(|purpose| matches!(purpose, Purpose::Listen)) {
            self.begin_or_pause(Purpose::Listen, Vec::new())?;
        }
        // What is said behind a handshake needs to know the session that it begins.
        let begins = |purpose: &Purpose| matches!(purpose, Purpose::Message(message, _) if message.is("initialize"));
        while self.next_try.is_none()
            && self.exchanges.len() < AT_ONCE
            && !self.waiting.is_empty()
            && !self.is_under_way(begins)
        {
            let (message, since) = self.waiting.remove(0);
            self.settings.read_token_again();
            let request = self.session.request(&self.settings, &message);
            match Exchange::begin(&self.settings, Purpose::Message(message.clone(), since), request) {
                Ok(exchange) => self.begun(exchange),
                Err(error) => self.not_reached(message, since, &unreached(error))?,
            }
        }
        Ok(())
    }

    fn begun(&mut self, exchange: Exchange<Purpose>) {
        self.exchanges.push(exchange);
        self.out_of_reach = None;
    }

    fn is_under_way(&self, is_it: fn(&Purpose) -> bool) -> bool {
        self.exchanges.iter().any(|exchange| is_it(&exchange.purpose))
    }

    fn begin_or_pause(&mut self, purpose: Purpose, body: Vec<u8>) -> io::Result<()> {
        self.settings.read_token_again();
        let request = match purpose {
            Purpose::Listen => self.session.listening(&self.settings),
            _ => self.session.request(&self.settings, &Message::read(body)),
        };
        match Exchange::begin(&self.settings, purpose, request) {
            Ok(exchange) => self.begun(exchange),
            // Whatever it is, the next attempt says the same or succeeds.
            Err(error) => self.pause(unreached(error)),
        }
        Ok(())
    }

    fn print_failed(&mut self, message: &Message, reason: Reason, why: &str) -> io::Result<()> {
        match message.failed(reason, why) {
            Some(text) => self.print(text.into_bytes()),
            None => Ok(()),
        }
    }

    /// A message as one line: a line break in JSON is white space between two tokens.
    fn print(&mut self, mut text: Vec<u8>) -> io::Result<()> {
        for byte in &mut text {
            if matches!(*byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        text.push(b'\n');
        self.out.write_all(&text)
    }
}

/// Why nothing was sent, in few words.
fn unreached(error: ClientError) -> String {
    match error {
        ClientError::Connect { source, .. } => source.to_string(),
        error => error.to_string(),
    }
}

/// What an answer with this status says of the way to the harness.
fn answered(status: Option<u16>) -> String {
    match status {
        Some(401) => UNAUTHORIZED.to_owned(),
        status => format!("it answered HTTP {}", status.unwrap_or_default()),
    }
}

/// Whether nobody reads what is written there.
fn has_left(output: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::new(output, PollFlags::empty())];
    let found = poll(&mut polled, PollTimeout::ZERO);
    found.is_ok_and(|count| count > 0)
}
