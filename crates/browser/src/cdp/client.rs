//! Calls, their responses, and event dispatch.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use chromiumoxide::Command;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Event;

/// Default time limit of a call. The browser responds within milliseconds.
const CALL_LIMIT: Duration = Duration::from_secs(10);

/// Commands queued for the pipe. The queue fills up when the browser does not read.
const OUTGOING: usize = 256;

/// Results from this size on are not copied out of their message.
const LARGE_BYTES: usize = 1 << 20;

/// Maximum event size. A page controls the length of URLs and window names in events.
const EVENT_BYTES: usize = 4 << 20;

/// The first bytes of an event. Responses start differently.
const EVENT: &[u8] = b"{\"method\"";

/// The first bytes of a response, before the number of its call.
const RESPONSE: &[u8] = b"{\"id\":";

/// Bytes kept of an oversized message. Its end contains the session ID.
const TAIL_BYTES: usize = 256;

const READ_BYTES: usize = 256 << 10;

/// Receives a session's events in order, on the reader's task. It must not block and must not call the client. Every
/// event comes with its length in bytes, including events that are oversized or not parsed.
pub(crate) type Sink = Arc<dyn Fn(usize, Option<Event>) + Send + Sync>;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// The browser closed the pipe.
    #[error("the browser closed its pipe")]
    Closed,
    /// No response in time.
    #[error("{0} was not answered in time")]
    Timeout(String),
    /// The browser returned an error.
    #[error("{method}: {message}")]
    Refused {
        /// The method.
        method: String,
        /// The browser's message.
        message: String,
    },
    /// The response does not match the protocol.
    #[error("the response to {0} cannot be parsed")]
    InvalidResponse(String),
    /// The response exceeds the maximum message size. It was discarded.
    #[error("the response to {method} has {bytes} bytes")]
    TooLarge {
        /// The method.
        method: String,
        /// The size of the response.
        bytes: usize,
    },
}

/// The JSON text of a result.
#[derive(Debug)]
pub(crate) struct RawResult(Bytes);

impl RawResult {
    /// Deserializes the result.
    pub(crate) fn parse<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_slice(&self.0)
    }

    fn parse_owned<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_slice(&self.0)
    }

    /// A part of the text, from [`RawResult::parse`], in a buffer of its own. It is copied only if it was not borrowed.
    pub(crate) fn into_part(self, find: impl FnOnce(&Self) -> Option<Cow<'_, str>>) -> Option<Vec<u8>> {
        let part = match find(&self)? {
            Cow::Borrowed(part) => self.0.slice_ref(part.as_bytes()),
            Cow::Owned(part) => return Some(part.into_bytes()),
        };
        // Without another reference to the message, its buffer is reused.
        drop(self);
        Some(part.into())
    }
}

/// A connection to a browser over its pipe. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    next_id: AtomicU64,
    outgoing: mpsc::Sender<Vec<u8>>,
    routes: Mutex<Routes>,
    reading: AtomicBool,
    closed: CancellationToken,
    /// Maximum size of a response in bytes.
    max_response_bytes: usize,
}

#[derive(Default)]
struct Routes {
    calls: HashMap<u64, oneshot::Sender<CallReply>>,
    sessions: HashMap<String, Sink>,
}

type CallReply = Result<RawResult, CallFailure>;

/// Why a call has no result.
enum CallFailure {
    /// The browser returned this error.
    Refused(String),
    /// The response had this many bytes.
    TooLarge(usize),
}

/// A message of the browser. A large one is owned, so that its result is not copied.
enum Message<'a> {
    Small(&'a [u8]),
    Large(Bytes),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Call<'a, P> {
    id: u64,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    params: &'a P,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Incoming<'a> {
    id: Option<u64>,
    method: Option<&'a str>,
    session_id: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<ErrorReply>,
}

#[derive(Deserialize)]
struct ErrorReply {
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DetachedParams<'a> {
    session_id: &'a str,
}

impl Client {
    /// Connects over a pipe pair until the browser closes it. Responses of more than `max_response_bytes` are
    /// discarded. The two tasks run on `tracker`.
    pub(crate) fn start(
        to_browser: pipe::Sender,
        from_browser: pipe::Receiver,
        max_response_bytes: usize,
        tracker: &TaskTracker,
    ) -> Self {
        let (outgoing, queue) = mpsc::channel(OUTGOING);
        let inner = Arc::new(Inner {
            next_id: AtomicU64::new(1),
            outgoing,
            routes: Mutex::default(),
            reading: AtomicBool::new(false),
            closed: CancellationToken::new(),
            max_response_bytes,
        });
        let closed = inner.closed.clone();
        tracker.spawn(async move {
            if let Some(Err(error)) = closed.run_until_cancelled(write(to_browser, queue)).await {
                tracing::debug!(%error, "cannot write to the browser");
            }
            closed.cancel();
        });
        let reader = inner.clone();
        tracker.spawn(async move {
            if let Some(Err(error)) = reader.closed.run_until_cancelled(read(from_browser, &reader)).await {
                tracing::debug!(%error, "cannot read from the browser");
            }
            reader.closed.cancel();
            // Dropping the senders fails all pending calls.
            reader.routes().calls.clear();
        });
        Self { inner }
    }

    /// Cancelled when the pipe is closed.
    pub(crate) fn closed(&self) -> &CancellationToken {
        &self.inner.closed
    }

    /// Whether a message is being handled, in which case later messages are waiting.
    pub(crate) fn is_reading(&self) -> bool {
        self.inner.reading.load(Ordering::Relaxed)
    }

    /// Sends a session's events to a sink, starting with the next message.
    pub(crate) fn route(&self, session: &str, sink: Sink) {
        self.inner.routes().sessions.insert(session.to_owned(), sink);
    }

    /// Stops routing a session's events.
    pub(crate) fn unroute(&self, session: &str) {
        self.inner.routes().sessions.remove(session);
    }

    /// Calls a method, with the default time limit.
    pub(crate) async fn call<C: Command>(&self, session: Option<&str>, command: C) -> Result<C::Response, CallError> {
        self.call_within(CALL_LIMIT, session, command).await
    }

    /// Calls a method, with a time limit.
    pub(crate) async fn call_within<C: Command>(
        &self,
        limit: Duration,
        session: Option<&str>,
        command: C,
    ) -> Result<C::Response, CallError> {
        self.call_as(limit, session, command).await
    }

    /// Calls a method, and deserializes the result as `T`: for large results, or if only a few members are needed.
    pub(crate) async fn call_as<C: Command, T: DeserializeOwned>(
        &self,
        limit: Duration,
        session: Option<&str>,
        command: C,
    ) -> Result<T, CallError> {
        let method = command.identifier();
        let raw = self.call_raw(limit, session, &command).await?;
        raw.parse_owned().map_err(|error| {
            tracing::debug!(%error, %method, "a response cannot be parsed");
            CallError::InvalidResponse(method.into_owned())
        })
    }

    /// Calls a method, and returns the raw result.
    pub(crate) async fn call_raw<C: Command>(
        &self,
        limit: Duration,
        session: Option<&str>,
        command: &C,
    ) -> Result<RawResult, CallError> {
        let method = command.identifier();
        let id = self.inner.next_id.fetch_add(1, Ordering::Relaxed);
        let message =
            encode(id, &method, session, command).ok_or_else(|| CallError::InvalidResponse(method.to_string()))?;
        let (reply_sender, answer) = oneshot::channel();
        self.inner.routes().calls.insert(id, reply_sender);
        // Removes the entry also after a timeout or when this future is dropped.
        let _entry = Entry { inner: &self.inner, id };
        if self.inner.closed.is_cancelled() {
            return Err(CallError::Closed);
        }
        let exchange = async {
            self.inner.outgoing.send(message).await.map_err(|_| CallError::Closed)?;
            answer.await.map_err(|_| CallError::Closed)
        };
        match tokio::time::timeout(limit, exchange).await {
            Ok(Ok(Ok(result))) => Ok(result),
            Ok(Ok(Err(CallFailure::Refused(message)))) => {
                Err(CallError::Refused { method: method.into_owned(), message })
            }
            Ok(Ok(Err(CallFailure::TooLarge(bytes)))) => {
                Err(CallError::TooLarge { method: method.into_owned(), bytes })
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(CallError::Timeout(method.into_owned())),
        }
    }

    /// Sends a command without waiting for a response, but for room in the queue.
    pub(crate) async fn send<C: Command>(&self, session: Option<&str>, command: &C) {
        let id = self.inner.next_id.fetch_add(1, Ordering::Relaxed);
        if let Some(message) = encode(id, &command.identifier(), session, command) {
            // Fails if the pipe is closed, which all callers notice.
            let _ = self.inner.outgoing.send(message).await;
        }
    }

    /// Sends a command without waiting for a response. It is dropped if the queue is full or the pipe is closed.
    pub(crate) fn tell<C: Command>(&self, session: Option<&str>, command: &C) {
        let id = self.inner.next_id.fetch_add(1, Ordering::Relaxed);
        if let Some(message) = encode(id, &command.identifier(), session, command)
            && self.inner.outgoing.try_send(message).is_err()
        {
            tracing::debug!(method = %command.identifier(), "a command was dropped");
        }
    }
}

impl Inner {
    fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn dispatch(&self, message: Message<'_>) {
        let bytes: &[u8] = match &message {
            Message::Small(bytes) => bytes,
            Message::Large(bytes) => bytes,
        };
        let incoming: Incoming<'_> = match serde_json::from_slice(bytes) {
            Ok(incoming) => incoming,
            Err(error) => return tracing::debug!(%error, "a browser message cannot be parsed"),
        };
        match (incoming.id, incoming.method, incoming.params) {
            (Some(id), _, _) => {
                let answer = match (incoming.error, incoming.result) {
                    (Some(error), _) => Err(CallFailure::Refused(error.message)),
                    (None, Some(result)) => Ok(RawResult(match &message {
                        Message::Small(_) => Bytes::copy_from_slice(result.get().as_bytes()),
                        Message::Large(bytes) => bytes.slice_ref(result.get().as_bytes()),
                    })),
                    (None, None) => Err(CallFailure::Refused("neither result nor error".into())),
                };
                // The caller must have the only reference to the message.
                drop(message);
                self.answer(id, answer);
            }
            (None, Some(method), Some(params)) => self.dispatch_event(incoming.session_id, method, params.get()),
            (None, _, _) => tracing::debug!("a browser message is neither a response nor an event"),
        }
    }

    fn answer(&self, id: u64, answer: CallReply) {
        let Some(waiting) = self.routes().calls.remove(&id) else { return };
        // The caller may have stopped waiting.
        let _ = waiting.send(answer);
    }

    fn dispatch_event(&self, session: Option<&str>, method: &str, params: &str) {
        // The end of a session is sent to its parent session, with the ended session's ID in the parameters.
        let ended = match method {
            "Target.detachedFromTarget" => {
                serde_json::from_str::<DetachedParams<'_>>(params).ok().map(|of| of.session_id)
            }
            _ => None,
        };
        let Some(session) = ended.or(session) else { return };
        let Some(sink) = self.routes().sessions.get(session).cloned() else { return };
        let event = Event::parse(method, params).unwrap_or_else(|error| {
            tracing::debug!(%error, method, "an event cannot be parsed");
            None
        });
        sink(params.len(), event);
    }

    /// Reports the length of an oversized message to the call that it responds to, else to its session's sink.
    fn record_oversized(&self, length: usize, call: Option<u64>, tail: &[u8]) {
        if let Some(call) = call {
            tracing::debug!(length, "the response to a call is too large");
            return self.answer(call, Err(CallFailure::TooLarge(length)));
        }
        let tail = String::from_utf8_lossy(tail);
        let session = tail.rsplit_once(r#""sessionId":""#).and_then(|(_, rest)| rest.split('"').next());
        tracing::debug!(length, session, "a browser message is too large");
        let sink = session.and_then(|session| self.routes().sessions.get(session).cloned());
        if let Some(sink) = sink {
            sink(length, None);
        }
    }
}

struct Entry<'a> {
    inner: &'a Inner,
    id: u64,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.inner.routes().calls.remove(&self.id);
    }
}

fn encode<P: Serialize>(id: u64, method: &str, session_id: Option<&str>, params: &P) -> Option<Vec<u8>> {
    let mut message = serde_json::to_vec(&Call { id, method, session_id, params }).ok()?;
    message.push(0);
    Some(message)
}

async fn write(mut to_browser: pipe::Sender, mut queue: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(message) = queue.recv().await {
        to_browser.write_all(&message).await?;
    }
    Ok(())
}

impl Inner {
    /// Maximum size of a message that starts with these bytes.
    fn size_limit(&self, message: &[u8]) -> usize {
        if message.starts_with(EVENT) { EVENT_BYTES } else { self.max_response_bytes }
    }
}

/// The call that a message responds to, from its first bytes.
fn call_id(message: &[u8]) -> Option<u64> {
    let digits = message.strip_prefix(RESPONSE)?.split(|byte| !byte.is_ascii_digit()).next()?;
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Reads zero-terminated messages until the pipe is closed. Oversized messages are skipped, so that a page can neither
/// break the connection nor exhaust memory.
async fn read(mut from_browser: pipe::Receiver, inner: &Inner) -> io::Result<()> {
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    let mut searched = 0;
    // Bytes of the current message that were discarded, and the call that it responds to.
    let mut discarded = 0;
    let mut discarded_call = None;
    loop {
        buffer.reserve(READ_BYTES);
        inner.reading.store(false, Ordering::Relaxed);
        if from_browser.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
        inner.reading.store(true, Ordering::Relaxed);
        while let Some(end) = buffer[searched..].iter().position(|byte| *byte == 0) {
            let length = searched + end;
            searched = 0;
            let (already, call) = (std::mem::take(&mut discarded), discarded_call.take());
            if already > 0 || length > inner.size_limit(&buffer[..length]) {
                let call = if already > 0 { call } else { call_id(&buffer[..length]) };
                inner.record_oversized(already + length, call, &buffer[length.saturating_sub(TAIL_BYTES)..length]);
                // A new buffer, to release the memory of the old one.
                buffer = BytesMut::from(&buffer[length + 1..]);
            } else if length >= LARGE_BYTES {
                // The message keeps the buffer, and nothing else refers to it.
                let rest = BytesMut::from(&buffer[length + 1..]);
                buffer.truncate(length);
                inner.dispatch(Message::Large(std::mem::replace(&mut buffer, rest).freeze()));
            } else {
                inner.dispatch(Message::Small(&buffer.split_to(length + 1)[..length]));
            }
        }
        searched = buffer.len();
        if discarded > 0 || searched > inner.size_limit(&buffer) {
            if discarded == 0 {
                discarded_call = call_id(&buffer);
            }
            let excess = searched.saturating_sub(TAIL_BYTES);
            buffer = BytesMut::from(&buffer[excess..]);
            discarded += excess;
            searched = buffer.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chromiumoxide::cdp::browser_protocol::browser::GetVersionParams;
    use chromiumoxide::cdp::browser_protocol::page;
    use std::os::fd::OwnedFd;

    const MAX_RESPONSE_BYTES: usize = 8 << 20;

    /// A client, and the other ends of its pipes.
    fn client(tracker: &TaskTracker) -> (Client, pipe::Receiver, pipe::Sender) {
        let ends = || -> (OwnedFd, OwnedFd) { rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap() };
        let ((commands, to_browser), (from_browser, answers)) = (ends(), ends());
        let client = Client::start(
            pipe::Sender::from_owned_fd(to_browser).unwrap(),
            pipe::Receiver::from_owned_fd(from_browser).unwrap(),
            MAX_RESPONSE_BYTES,
            tracker,
        );
        (client, pipe::Receiver::from_owned_fd(commands).unwrap(), pipe::Sender::from_owned_fd(answers).unwrap())
    }

    #[tokio::test]
    async fn events_before_a_response_are_dispatched_first_and_invalid_messages_are_skipped() {
        let tracker = TaskTracker::new();
        let (client, _commands, mut answers) = client(&tracker);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        client.route("s", Arc::new(move |_, event| log.lock().unwrap().extend(event)));
        let script: &[u8] = b"rubbish\0\xff\0{\"method\":\"Page.frameNavigated\",\"params\":{},\"sessionId\":\"s\"}\0\
            {\"method\":\"Page.loadEventFired\",\"params\":{},\"sessionId\":\"s\"}\0\
            {\"method\":\"Target.detachedFromTarget\",\"params\":{\"sessionId\":\"s\"}}\0{\"id\":1,\"result\":{}}\0";
        let (answer, sent) =
            tokio::join!(client.call(Some("s"), page::EnableParams::default()), answers.write_all(script));
        sent.unwrap();
        answer.unwrap();
        assert_eq!(*seen.lock().unwrap(), [Event::Loaded, Event::Detached]);
    }

    #[tokio::test]
    async fn oversized_message_is_counted_and_skipped() {
        let tracker = TaskTracker::new();
        let (client, _commands, mut answers) = client(&tracker);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        client.route("s", Arc::new(move |bytes, event| log.lock().unwrap().push((bytes, event))));
        let filler = "x".repeat(EVENT_BYTES + 1);
        let large = format!(r#"{{"method":"Page.loadEventFired","params":{{"x":"{filler}"}},"sessionId":"s"}}"#);
        let script = [
            large.as_bytes(),
            b"\0{\"method\":\"Page.loadEventFired\",\"params\":{},\"sessionId\":\"s\"}\0",
            b"{\"method\":\"Page.nobodyLooks\",\"params\":{},\"sessionId\":\"s\"}\0{\"id\":1,\"result\":{}}\0",
        ]
        .concat();
        let (answer, sent) =
            tokio::join!(client.call(Some("s"), page::EnableParams::default()), answers.write_all(&script));
        sent.unwrap();
        answer.unwrap();
        assert_eq!(*seen.lock().unwrap(), [(large.len(), None), (2, Some(Event::Loaded)), (2, None)]);
    }

    #[tokio::test]
    async fn large_result_is_taken_without_a_copy_and_an_oversized_one_fails_its_call() {
        let tracker = TaskTracker::new();
        let (client, _commands, mut answers) = client(&tracker);
        let call = async |bytes: usize, answers: &mut pipe::Sender, id: u64| {
            let data = "A".repeat(bytes);
            let answer =
                format!("{{\"id\":{id},\"result\":{{\"data\":\"{data}\"}},\"sessionId\":\"s\"}}\0{{\"id\":0}}\0");
            let version = GetVersionParams::default();
            let (answer, sent) =
                tokio::join!(client.call_raw(CALL_LIMIT, None, &version), answers.write_all(answer.as_bytes()));
            sent.unwrap();
            answer
        };
        for (id, bytes) in [(1, 10), (2, LARGE_BYTES), (3, MAX_RESPONSE_BYTES - 100)] {
            let result = call(bytes, &mut answers, id).await.unwrap();
            let message = result.0.as_ptr_range();
            let data = result.into_part(|result| {
                let parsed: HashMap<&str, &str> = result.parse().unwrap();
                Some(Cow::Borrowed(parsed["data"]))
            });
            let data = data.unwrap();
            assert!(data.len() == bytes && data.iter().all(|byte| *byte == b'A'));
            // The data is moved to the start of the result's own buffer.
            assert!(data.as_ptr() <= message.start && data.as_ptr_range().end > message.start, "{bytes}");
        }
        for (id, excess) in [(4, 0), (5, 100_000), (6, MAX_RESPONSE_BYTES)] {
            let failed = call(MAX_RESPONSE_BYTES + excess, &mut answers, id).await.unwrap_err();
            let overhead = "{\"id\":4,\"result\":{\"data\":\"\"},\"sessionId\":\"s\"}".len();
            let bytes = MAX_RESPONSE_BYTES + excess + overhead;
            assert_eq!(failed, CallError::TooLarge { method: "Browser.getVersion".into(), bytes });
        }
        assert!(call(10, &mut answers, 7).await.is_ok(), "the connection continues");
    }

    #[tokio::test]
    async fn calls_fail_on_timeout_browser_error_and_closed_pipe() {
        let tracker = TaskTracker::new();
        let (client, _commands, mut answers) = client(&tracker);
        let short = Duration::from_millis(5);
        let late = client.call_within(short, None, GetVersionParams::default()).await;
        assert_eq!(late.unwrap_err(), CallError::Timeout("Browser.getVersion".into()));
        assert!(client.inner.routes().calls.is_empty());

        let refuse = answers.write_all(b"{\"id\":2,\"error\":{\"code\":-1,\"message\":\"no\"}}\0");
        let (refused, sent) = tokio::join!(client.call(None, GetVersionParams::default()), refuse);
        sent.unwrap();
        assert!(matches!(refused, Err(CallError::Refused { message, .. }) if message == "no"));

        let (lost, ()) = tokio::join!(client.call(None, GetVersionParams::default()), async move { drop(answers) });
        assert_eq!(lost.unwrap_err(), CallError::Closed);
        tracker.close();
        tokio::time::timeout(CALL_LIMIT, tracker.wait()).await.unwrap();
    }
}
