//! Calls, their answers, and the events in between.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
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

/// How long an answer may take where the caller names no limit: the browser itself answers within milliseconds.
const CALL_LIMIT: Duration = Duration::from_secs(10);

/// Commands that wait for the pipe: more means that the browser does not read.
const OUTGOING: usize = 256;

/// The largest message taken from a browser: a full page of 1920 x 16384 pixels that does not compress is 126 MB, and
/// 168 MB in base64.
const MESSAGE_BYTES: usize = 256 << 20;

/// The largest event taken from a browser. A page decides how long an address or a window's name in one is.
const EVENT_BYTES: usize = 4 << 20;

/// How events begin, and answers do not.
const EVENT: &[u8] = b"{\"method\"";

/// Kept of a message that is too large: its end says whose it was.
const TAIL_BYTES: usize = 256;

const READ_BYTES: usize = 256 << 10;

/// Takes a session's events in order, on the reader's task: it must be quick and must not call back. Every event comes
/// with its length in bytes, also those that are too large to be read or that nobody looks at.
pub(crate) type Sink = Arc<dyn Fn(usize, Option<Event>) + Send + Sync>;

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// The browser's end of the pipe is closed.
    #[error("the browser closed its pipe")]
    Closed,
    /// No answer came in time.
    #[error("{0} was not answered in time")]
    Timeout(String),
    /// The browser refused.
    #[error("{method}: {message}")]
    Refused {
        /// Of what.
        method: String,
        /// In the browser's words.
        message: String,
    },
    /// The answer is not what the protocol says.
    #[error("the answer to {0} cannot be read")]
    Unreadable(String),
}

/// One end of a browser's pipe. Cheap to clone.
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
}

#[derive(Default)]
struct Routes {
    calls: HashMap<u64, oneshot::Sender<Answer>>,
    sessions: HashMap<String, Sink>,
}

type Answer = Result<Box<RawValue>, String>;

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
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfSession<'a> {
    session_id: &'a str,
}

impl Client {
    /// Speaks over a pipe pair until the browser closes it; the two tasks of it live on `tracker`.
    pub(crate) fn start(to_browser: pipe::Sender, from_browser: pipe::Receiver, tracker: &TaskTracker) -> Self {
        let (outgoing, queue) = mpsc::channel(OUTGOING);
        let inner = Arc::new(Inner {
            next_id: AtomicU64::new(1),
            outgoing,
            routes: Mutex::default(),
            reading: AtomicBool::new(false),
            closed: CancellationToken::new(),
        });
        let closed = inner.closed.clone();
        tracker.spawn(async move {
            if let Some(Err(error)) = closed.run_until_cancelled(write(to_browser, queue)).await {
                tracing::debug!(%error, "the browser takes no more commands");
            }
            closed.cancel();
        });
        let reader = inner.clone();
        tracker.spawn(async move {
            if let Some(Err(error)) = reader.closed.run_until_cancelled(read(from_browser, &reader)).await {
                tracing::debug!(%error, "the browser sends no more answers");
            }
            reader.closed.cancel();
            // Whoever waits for an answer learns that none will come.
            reader.routes().calls.clear();
        });
        Self { inner }
    }

    /// Ends with the pipe.
    pub(crate) fn closed(&self) -> &CancellationToken {
        &self.inner.closed
    }

    /// Is something that arrived being read just now? What arrived behind it then waits.
    pub(crate) fn is_reading(&self) -> bool {
        self.inner.reading.load(Ordering::Relaxed)
    }

    /// Sends a session's events to a sink, from the next message on.
    pub(crate) fn route(&self, session: &str, sink: Sink) {
        self.inner.routes().sessions.insert(session.to_owned(), sink);
    }

    /// Forgets a session.
    pub(crate) fn unroute(&self, session: &str) {
        self.inner.routes().sessions.remove(session);
    }

    /// Calls and waits for the answer, at most the usual time.
    pub(crate) async fn call<C: Command>(&self, session: Option<&str>, command: C) -> Result<C::Response, CallError> {
        self.call_within(CALL_LIMIT, session, command).await
    }

    /// Calls and waits for the answer, at most `limit`.
    pub(crate) async fn call_within<C: Command>(
        &self,
        limit: Duration,
        session: Option<&str>,
        command: C,
    ) -> Result<C::Response, CallError> {
        self.call_as(limit, session, command).await
    }

    /// Calls, and reads the answer as a type of the caller's: for large answers, or for a few members of many.
    pub(crate) async fn call_as<C: Command, T: DeserializeOwned>(
        &self,
        limit: Duration,
        session: Option<&str>,
        command: C,
    ) -> Result<T, CallError> {
        let method = command.identifier();
        let raw = self.call_raw(limit, session, &command).await?;
        serde_json::from_str(raw.get()).map_err(|error| {
            tracing::debug!(%error, %method, "an answer cannot be read");
            CallError::Unreadable(method.into_owned())
        })
    }

    /// Calls, and gives the answer's text.
    pub(crate) async fn call_raw<C: Command>(
        &self,
        limit: Duration,
        session: Option<&str>,
        command: &C,
    ) -> Result<Box<RawValue>, CallError> {
        let method = command.identifier();
        let id = self.inner.next_id.fetch_add(1, Ordering::Relaxed);
        let message = encode(id, &method, session, command).ok_or_else(|| CallError::Unreadable(method.to_string()))?;
        let (answered, answer) = oneshot::channel();
        self.inner.routes().calls.insert(id, answered);
        // Whoever stops waiting, by a limit or by dropping this future, leaves no entry behind.
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
            Ok(Ok(Err(message))) => Err(CallError::Refused { method: method.into_owned(), message }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(CallError::Timeout(method.into_owned())),
        }
    }

    /// Calls without waiting for the answer. A full queue or a closed pipe drops the call, which others will notice.
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

    fn dispatch(&self, text: &str) {
        let message: Incoming<'_> = match serde_json::from_str(text) {
            Ok(message) => message,
            Err(error) => return tracing::debug!(%error, "a message of the browser cannot be read"),
        };
        match (message.id, message.method, message.params) {
            (Some(id), _, _) => {
                let Some(waiting) = self.routes().calls.remove(&id) else { return };
                let answer = match (message.error, message.result) {
                    (Some(refusal), _) => Err(refusal.message),
                    (None, Some(result)) => Ok(result.to_owned()),
                    (None, None) => Err("neither result nor error".into()),
                };
                // A caller that no longer waits is none of our concern.
                let _ = waiting.send(answer);
            }
            (None, Some(method), Some(params)) => self.dispatch_event(message.session_id, method, params.get()),
            (None, _, _) => tracing::debug!("a message of the browser is neither answer nor event"),
        }
    }

    fn dispatch_event(&self, session: Option<&str>, method: &str, params: &str) {
        // The end of a session is told to its parent, with the session among the members.
        let ended = match method {
            "Target.detachedFromTarget" => serde_json::from_str::<OfSession<'_>>(params).ok().map(|of| of.session_id),
            _ => None,
        };
        let Some(session) = ended.or(session) else { return };
        let Some(sink) = self.routes().sessions.get(session).cloned() else { return };
        let event = Event::parse(method, params).unwrap_or_else(|error| {
            tracing::debug!(%error, method, "an event cannot be read");
            None
        });
        sink(params.len(), event);
    }

    /// Tells whose it was that a message of this length was left unread.
    fn account(&self, length: usize, tail: &[u8]) {
        let tail = String::from_utf8_lossy(tail);
        let session = tail.rsplit_once(r#""sessionId":""#).and_then(|(_, rest)| rest.split('"').next());
        tracing::debug!(length, session, "a message of the browser is too large");
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

/// The most that is taken of a message that begins like this.
fn most(message: &[u8]) -> usize {
    if message.starts_with(EVENT) { EVENT_BYTES } else { MESSAGE_BYTES }
}

/// Reads messages, which end with a zero byte each, until the pipe ends. One that is too large is passed over: no page
/// can end the pipe, or fill memory, with what it makes the browser say.
async fn read(mut from_browser: pipe::Receiver, inner: &Inner) -> io::Result<()> {
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    let mut searched = 0;
    // Bytes of the message under way that are gone already.
    let mut passed_over = 0;
    loop {
        buffer.reserve(READ_BYTES);
        inner.reading.store(false, Ordering::Relaxed);
        if from_browser.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
        inner.reading.store(true, Ordering::Relaxed);
        while let Some(end) = buffer[searched..].iter().position(|byte| *byte == 0) {
            let message = buffer.split_to(searched + end + 1);
            let message = &message[..message.len() - 1];
            searched = 0;
            match std::mem::take(&mut passed_over) {
                0 if message.len() <= most(message) => match std::str::from_utf8(message) {
                    Ok(text) => inner.dispatch(text),
                    Err(error) => tracing::debug!(%error, "a message of the browser is not UTF-8"),
                },
                passed_over => {
                    inner.account(passed_over + message.len(), &message[message.len().saturating_sub(TAIL_BYTES)..]);
                }
            }
        }
        searched = buffer.len();
        if passed_over > 0 || searched > most(&buffer) {
            let gone = searched.saturating_sub(TAIL_BYTES);
            // A new buffer: what the old one grew to is not kept.
            buffer = BytesMut::from(&buffer[gone..]);
            passed_over += gone;
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

    /// A client, and the far ends of its pipes.
    fn client(tracker: &TaskTracker) -> (Client, pipe::Receiver, pipe::Sender) {
        let ends = || -> (OwnedFd, OwnedFd) { rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap() };
        let ((commands, to_browser), (from_browser, answers)) = (ends(), ends());
        let client = Client::start(
            pipe::Sender::from_owned_fd(to_browser).unwrap(),
            pipe::Receiver::from_owned_fd(from_browser).unwrap(),
            tracker,
        );
        (client, pipe::Receiver::from_owned_fd(commands).unwrap(), pipe::Sender::from_owned_fd(answers).unwrap())
    }

    #[tokio::test]
    async fn what_came_before_an_answer_has_been_seen_and_rubbish_is_skipped() {
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
    async fn a_message_that_is_too_large_is_counted_and_passed_over() {
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
    async fn calls_end_by_their_limit_by_refusal_and_with_the_pipe() {
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
