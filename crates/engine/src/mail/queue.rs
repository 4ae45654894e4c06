//! The queue of messages to send.

use grabd_domain::accounts::Email;
use tokio::sync::mpsc;

/// Queue capacity. A full queue means that the mail server is down, and new messages are refused.
pub(super) const QUEUE_CAPACITY: usize = 200;

/// An e-mail to one user.
#[derive(Clone)]
pub(crate) struct MailMessage {
    pub(crate) to: Email,
    pub(crate) subject: String,
    pub(crate) text: String,
}

/// The queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueFull;

/// The sending half of the mail queue.
#[derive(Clone)]
pub(crate) struct Mailer(mpsc::Sender<MailMessage>);

/// Creates the mail queue.
pub(crate) fn mailer() -> (Mailer, mpsc::Receiver<MailMessage>) {
    let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
    (Mailer(sender), receiver)
}

/// A place in the queue for one message.
pub(crate) struct Place<'a>(mpsc::Permit<'a, MailMessage>);

impl Place<'_> {
    /// Queues the message.
    pub(crate) fn send(self, message: MailMessage) {
        self.0.send(message);
    }
}

impl Mailer {
    /// Reserves a place for a message whose link is stored first.
    ///
    /// # Errors
    /// [`QueueFull`] when too many messages are waiting.
    pub(crate) fn reserve(&self) -> Result<Place<'_>, QueueFull> {
        self.0.try_reserve().map(Place).map_err(|_| {
            tracing::error!("message refused: the mail queue is full");
            QueueFull
        })
    }

    /// Queues a message.
    ///
    /// # Errors
    /// [`QueueFull`] when too many messages are waiting.
    pub(crate) fn enqueue(&self, message: MailMessage) -> Result<(), QueueFull> {
        self.0.try_send(message).map_err(|_| {
            tracing::error!("message dropped: the mail queue is full");
            QueueFull
        })
    }
}
