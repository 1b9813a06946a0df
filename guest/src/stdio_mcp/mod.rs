//! MCP over standard input and output, for clients that start a program: each line is a request to the endpoint over
//! HTTP, and each message of an answer a line. `message` is what is read of a line, `asked` what waits to be sent,
//! `session` what the harness knows the client by.
//!
//! One loop waits for all of them at once, without threads. The client's handshake is kept, so that it can be done again
//! with a harness that was restarted: what did not reach one is sent then; what was sent and not answered is answered
//! with an error, since it may have had its effect. The input is always read, whatever waits: what the client takes back
//! is not sent any more, or is a connection that is closed. Where too much waits, a request is answered so at once, and
//! anything else is lost. Behind the end of the input it waits for the answers that are missing, for as long as anything
//! may take; once nobody reads them it ends, and nothing is sent.

mod asked;
mod message;
mod session;

use std::{
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

use footbridge_proto::rpc::{ErrorObject, Reason, error_answer, notification};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::{
    error::ClientError,
    events::{self, Event},
    exchange::{Exchange, Standing},
    http::HttpError,
    input::{self, InputLine, InputLines, LongLine},
    settings::ClientSettings,
};
use asked::{Asked, WaitingMessages};
use message::{Message, UNAUTHORIZED};
use session::HttpSession;

/// Messages that are under way at a time; those behind them wait.
const AT_ONCE: usize = 32;
/// Bytes of them: beyond that no other is sent until one is over.
const AT_ONCE_BYTES: usize = 32 << 20;
/// Reads of the input at a time, more than a pipe holds: what it takes back is known before anything is sent.
const READS: usize = 16;
/// Between two attempts to reach a harness.
const PAUSE: Duration = Duration::from_millis(250);
/// Before a harness that will not tell what changes is asked for it again, as while the token is another or too many ask.
const LISTEN_PAUSE: Duration = Duration::from_secs(1);

/// What an exchange is for.
#[derive(Debug)]
enum Purpose {
    /// A message of the client.
    Message(Asked),
    /// The handshake again, with a harness that does not know the client.
    Again,
    /// That the handshake is done, said again.
    SaidAgain,
    /// What changes meanwhile.
    Listen,
}

/// What can be done.
#[derive(Debug, Default)]
struct Ready {
    /// The input has something, or has ended.
    has_input: bool,
    /// Nobody reads what is written.
    has_left: bool,
}

/// A client over standard input and output, and the endpoint that it speaks to.
pub struct StdioMcp<O> {
    settings: ClientSettings,
    out: O,
    session: HttpSession,
    exchanges: Vec<Exchange<Purpose>>,
    waiting: WaitingMessages,
    /// No harness was reached; the next attempt is then.
    next_try: Option<Instant>,
    /// What changes was not to be heard; it is asked for again then.
    next_listen: Option<Instant>,
    /// Why none was reached, until one is.
    out_of_reach: Option<String>,
    /// The input has ended, and what is missing is waited for until then.
    ends: Option<Instant>,
}

impl<O: Write> StdioMcp<O> {
    /// To the endpoint of all servers, or of one, with or without the three tools that search in place of all others.
    pub fn new(settings: ClientSettings, server: Option<&str>, search: bool, out: O) -> Self {
        let session = HttpSession::at(session::path(server, search));
        let (exchanges, waiting) = (Vec::new(), WaitingMessages::default());
        let (next_try, next_listen, out_of_reach, ends) = (None, None, None, None);
        Self { settings, out, session, exchanges, waiting, next_try, next_listen, out_of_reach, ends }
    }

    /// Carries messages until the input ends, and what was asked is answered. What still runs once that has taken as
    /// long as anything may, or once nobody reads `output`, which is where the messages go, is cancelled.
    ///
    /// # Errors
    /// What reading the input or writing the output says.
    pub fn run(mut self, input: BorrowedFd<'_>, output: &impl AsFd) -> io::Result<()> {
        let mut lines = InputLines::default();
        loop {
            let ready = self.wait(input, output.as_fd())?;
            if ready.has_left {
                return Ok(());
            }
            if ready.has_input {
                self.take_input(input, &mut lines)?;
            }
            self.go_on()?;
            self.send()?;
            let is_over = self.is_over()?;
            self.out.flush()?;
            if is_over {
                return Ok(());
            }
        }
    }

    /// Whether the input has ended and nothing is missing any more. What is missing when its time is up is answered here.
    fn is_over(&mut self) -> io::Result<bool> {
        let Some(ends) = self.ends else { return Ok(false) };
        if Instant::now() < ends {
            return Ok(self.waiting.is_empty() && self.under_way().next().is_none());
        }
        while let Some(asked) = self.waiting.take() {
            let why = "the input has ended, and the time was up: nothing was sent";
            self.print_failed(&asked.message, Reason::Timeout, why)?;
        }
        for exchange in std::mem::take(&mut self.exchanges) {
            match exchange.purpose {
                Purpose::Message(asked) if !asked.is_answered => {
                    self.print_error(&asked.message, &late(&asked))?;
                }
                _ => {}
            }
        }
        Ok(true)
    }

    /// Waits until something can be done.
    fn wait(&self, input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<Ready> {
        let mut polled = vec![PollFd::new(output, PollFlags::empty())];
        if self.ends.is_none() {
            polled.push(PollFd::new(input, PollFlags::POLLIN));
        }
        let others = polled.len();
        polled.extend(self.exchanges.iter().map(Exchange::polled));
        if !input::wait(&mut polled, [self.next_try, self.next_listen, self.ends].into_iter().flatten().min())? {
            return Ok(Ready::default());
        }
        let events = |at: usize| polled[..others].get(at).and_then(PollFd::revents).unwrap_or(PollFlags::empty());
        Ok(Ready { has_left: !events(0).is_empty(), has_input: !events(1).is_empty() })
    }

    fn take_input(&mut self, input: BorrowedFd<'_>, lines: &mut InputLines) -> io::Result<()> {
        for _ in 0..READS {
            let has_ended = lines.read_some(input)?;
            self.take_lines(lines)?;
            if has_ended {
                self.ends = Some(Instant::now() + self.settings.timeout);
                return Ok(());
            }
            if !poll(&mut [PollFd::new(input, PollFlags::POLLIN)], PollTimeout::ZERO).is_ok_and(|ready| ready > 0) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn take_lines(&mut self, lines: &mut InputLines) -> io::Result<()> {
        while let Some(line) = lines.take_line() {
            match line {
                InputLine::Whole(line) if line.trim_ascii().is_empty() => {}
                InputLine::Whole(line) => self.take(Message::read(line.trim_ascii().to_vec()))?,
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

    fn take(&mut self, message: Message) -> io::Result<()> {
        if let Some(id) = &message.cancels {
            self.waiting.cancel(id);
            self.exchanges.retain(|exchange| match &exchange.purpose {
                Purpose::Message(asked) => !asked.has_id(id),
                Purpose::Again | Purpose::SaidAgain | Purpose::Listen => true,
            });
            return Ok(());
        }
        if !self.waiting.has_room_for(&message) {
            let why =
                "so much waits to be sent already that there is no place for this; nothing was sent, ask again later";
            return self.print_failed(&message, Reason::Busy, why);
        }
        self.session.heard(&message);
        self.waiting.push(Asked::now(message));
        Ok(())
    }

    /// Reads and writes what is possible now.
    fn go_on(&mut self) -> io::Result<()> {
        let mut at = 0;
        while let Some(exchange) = self.exchanges.get_mut(at) {
            let (mut messages, mut told) = (Vec::new(), Vec::new());
            let stands = exchange.go_on(&mut |kind, text| match kind {
                Some(events::APPROVAL) => told.extend(Event::read(events::APPROVAL, &text)),
                _ => messages.push(text),
            });
            if let Purpose::Message(asked) = &mut exchange.purpose {
                told.iter().for_each(|event| asked.awaited.hears(event));
            }
            if !matches!(stands, Ok(Standing::Going)) {
                let exchange = self.exchanges.remove(at);
                // What is heard with the end of a stream is news all the same.
                if matches!(exchange.purpose, Purpose::Listen) && exchange.arriving.is_stream() {
                    self.print_all(std::mem::take(&mut messages))?;
                }
                self.ended(exchange, messages, stands.err())?;
                continue;
            }
            at += 1;
            let told = match &mut exchange.purpose {
                Purpose::Message(asked) => asked.told(messages),
                Purpose::Listen => messages,
                Purpose::Again | Purpose::SaidAgain => Vec::new(),
            };
            self.print_all(told)?;
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
            (Purpose::Message(asked), Some(502), _) => self.not_reached(asked, "the relay"),
            (Purpose::Message(asked), Some(404), None)
                if self.session.is_shown_by(&asked.message) && asked.since.elapsed() < self.settings.timeout =>
            {
                self.session.lost();
                self.waiting.put_back(asked);
                Ok(())
            }
            (Purpose::Message(mut asked), status, error) => {
                if error.is_none() && asked.message.is("initialize") {
                    self.session.begun(session, messages.first().map_or(&[][..], Vec::as_slice));
                }
                let told = asked.told(messages);
                self.print_all(told)?;
                if asked.is_answered { Ok(()) } else { self.print_unanswered(&asked, status, error) }
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
            // There is nothing to hear, and never will be.
            (Purpose::Listen, Some(405 | 406), _) => {
                self.session.listens = false;
                Ok(())
            }
            // Messages go on: they are answered for themselves.
            (Purpose::Listen, Some(400..500), _) => {
                self.next_listen = Some(Instant::now() + LISTEN_PAUSE);
                Ok(())
            }
            (Purpose::Again | Purpose::SaidAgain | Purpose::Listen, status, error) => {
                self.pause(error.map_or_else(|| answered(status), |error| error.to_string()));
                Ok(())
            }
        }
    }

    /// Answers what the harness did not.
    fn print_unanswered(&mut self, asked: &Asked, status: Option<u16>, error: Option<HttpError>) -> io::Result<()> {
        let Asked { message, said, .. } = asked;
        let status = status.unwrap_or_default();
        match (error, status) {
            (Some(error), _) => {
                let why = format!("{error}. The call was sent, and may have had its effect; do not repeat it blindly");
                self.print_failed(message, Reason::OutcomeUnknown, &why)
            }
            (None, 401) => self.print_all(message.unauthorized().map(String::into_bytes)),
            (None, status) => {
                let reason = if status == 413 { Reason::TooLarge } else { Reason::BadRequest };
                self.print_failed(message, reason, &format!("the bridge answered HTTP {status}: {said}"))
            }
        }
    }

    fn not_reached(&mut self, asked: Asked, why: &str) -> io::Result<()> {
        self.pause(why.to_owned());
        self.waiting.put_back(asked);
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
        let over = self.waiting.take_older(self.settings.timeout);
        over.iter().try_for_each(|asked| self.print_failed(&asked.message, Reason::ServerUnavailable, &text))
    }

    /// Sends what waits, and what the session needs.
    fn send(&mut self) -> io::Result<()> {
        self.give_up()?;
        self.next_listen = self.next_listen.filter(|next| Instant::now() < *next);
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
        let is_listening = self.is_under_way(|purpose| matches!(purpose, Purpose::Listen));
        if self.session.may_listen() && self.next_listen.is_none() && !is_listening {
            self.begin_or_pause(Purpose::Listen, Vec::new())?;
        }
        // What is said behind a handshake needs to know the session that it begins.
        let begins = |purpose: &Purpose| matches!(purpose, Purpose::Message(asked) if asked.message.is("initialize"));
        while self.next_try.is_none() && self.has_room() && !self.is_under_way(begins) {
            let Some(asked) = self.waiting.take() else { break };
            self.settings.read_token_again();
            let request = self.session.request(&self.settings, &asked.message);
            match Exchange::begin(&self.settings, Purpose::Message(asked.clone()), request) {
                Ok(exchange) => self.begun(exchange),
                Err(error) => self.not_reached(asked, &unreached(error))?,
            }
        }
        Ok(())
    }

    /// How many bytes each message of the client has that is sent, and not over.
    fn under_way(&self) -> impl Iterator<Item = usize> {
        self.exchanges.iter().filter_map(|exchange| match &exchange.purpose {
            Purpose::Message(asked) => Some(asked.message.line.len()),
            _ => None,
        })
    }

    /// Whether one more may be sent.
    fn has_room(&self) -> bool {
        self.under_way().count() < AT_ONCE && self.under_way().sum::<usize>() <= AT_ONCE_BYTES
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
        self.print_error(message, &ErrorObject::new(reason, why))
    }

    fn print_error(&mut self, message: &Message, error: &ErrorObject) -> io::Result<()> {
        match message.failed(error) {
            Some(text) => self.print(text.into_bytes()),
            None => Ok(()),
        }
    }

    fn print_all(&mut self, texts: impl IntoIterator<Item = Vec<u8>>) -> io::Result<()> {
        texts.into_iter().try_for_each(|text| self.print(text))
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

/// What is answered to a call that is not waited for any longer.
fn late(asked: &Asked) -> ErrorObject {
    if let Some(approval) = asked.awaited.id() {
        let why = ClientError::Unanswered { approval: approval.to_owned() }.to_string();
        return ErrorObject::new(Reason::ApprovalRequired, why).with("approvalId", approval);
    }
    let why = "the input has ended, and no answer came in time. The call was cancelled, but may have had its effect; raise \
               the limit with --timeout";
    ErrorObject::new(Reason::OutcomeUnknown, why)
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
