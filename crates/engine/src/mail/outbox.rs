//! The messages that wait to be sent: which of them is next.

use std::collections::{HashMap, VecDeque};

use super::queue::MailMessage;

/// Messages in progress at the same time.
const MAX_CONCURRENT: usize = 8;
/// Of these to one domain, so that a domain whose mail server is slow, or is made to be, does not delay the others.
const MAX_PER_DOMAIN: usize = 4;

/// A message, and how often it was tried.
pub(super) struct Outgoing {
    pub(super) message: MailMessage,
    pub(super) tries: usize,
}

/// The messages that wait, and the domains of those in progress.
#[derive(Default)]
pub(super) struct Outbox {
    waiting: VecDeque<Outgoing>,
    in_progress: HashMap<String, usize>,
}

impl Outbox {
    /// Adds a message. Messages are sent in the order in which they were added, as far as their domains allow it.
    pub(super) fn add(&mut self, outgoing: Outgoing) {
        self.waiting.push_back(outgoing);
    }

    /// The next message that may be sent now. Its domain must be given back with [`Outbox::end`].
    pub(super) fn next(&mut self) -> Option<(String, Outgoing)> {
        if self.in_progress.values().sum::<usize>() >= MAX_CONCURRENT {
            return None;
        }
        let domain = |outgoing: &Outgoing| outgoing.message.to.domain().to_owned();
        let of = |name: &str| self.in_progress.get(name).copied().unwrap_or(0);
        let at = self.waiting.iter().position(|outgoing| of(outgoing.message.to.domain()) < MAX_PER_DOMAIN)?;
        let outgoing = self.waiting.remove(at)?;
        let domain = domain(&outgoing);
        *self.in_progress.entry(domain.clone()).or_default() += 1;
        Some((domain, outgoing))
    }

    /// Ends the sending of a message to this domain.
    pub(super) fn end(&mut self, domain: &str) {
        if let Some(count) = self.in_progress.get_mut(domain) {
            *count -= 1;
            if *count == 0 {
                self.in_progress.remove(domain);
            }
        }
    }

    /// Number of messages that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::accounts::Email;

    use super::*;

    fn outgoing(to: &str) -> Outgoing {
        let to = Email::parse(to).unwrap();
        Outgoing { message: MailMessage { to, subject: String::new(), text: String::new() }, tries: 0 }
    }

    #[test]
    fn domain_that_is_slow_leaves_room_for_others() {
        let mut outbox = Outbox::default();
        for n in 0..20 {
            outbox.add(outgoing(&format!("{n}@slow.example")));
        }
        outbox.add(outgoing("ada@example.com"));
        let mut domains = Vec::new();
        while let Some((domain, _)) = outbox.next() {
            domains.push(domain);
        }
        assert_eq!(domains, ["slow.example", "slow.example", "slow.example", "slow.example", "example.com"]);
        assert_eq!(outbox.waiting(), 16);
        outbox.end("slow.example");
        assert_eq!(outbox.next().map(|(domain, _)| domain).as_deref(), Some("slow.example"));
        assert!(outbox.next().is_none());
    }

    #[test]
    fn number_of_messages_in_progress_is_limited() {
        let mut outbox = Outbox::default();
        for n in 0..20 {
            outbox.add(outgoing(&format!("ada@{n}.example")));
        }
        assert_eq!(std::iter::from_fn(|| outbox.next()).count(), MAX_CONCURRENT);
        outbox.end("0.example");
        assert_eq!(std::iter::from_fn(|| outbox.next()).map(|(domain, _)| domain).collect::<Vec<_>>(), ["8.example"]);
    }
}
