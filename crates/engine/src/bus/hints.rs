//! What a hint says, and its form between processes.

use std::collections::BTreeSet;

use grabd_domain::ids::GrabId;

/// Most grabs that hints name. If more have changed, they say that something has changed.
const MAX_GRABS: usize = 200;
/// Maximum length of a payload in bytes. PostgreSQL refuses those of 8000 and more.
pub(crate) const MAX_PAYLOAD: usize = 7999;
/// The first word of a payload. Payloads of other forms are ignored.
const FORM: &str = "1";

/// Hints that belong together. They cause reads of the database and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    /// A job waits for a slot.
    pub(crate) work: bool,
    /// Grabs that have changed.
    pub(crate) changed: Changed,
}

/// Grabs that have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// These, at most [`MAX_GRABS`].
    Grabs(BTreeSet<GrabId>),
    /// Any, since there are too many to name, or hints were lost.
    Unknown,
}

impl Default for Changed {
    fn default() -> Self {
        Self::Grabs(BTreeSet::new())
    }
}

/// A payload that is not one of hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a payload of another form than that of hints")]
pub(crate) struct Malformed;

impl Hints {
    /// A job waits.
    pub(crate) fn work() -> Self {
        Self { work: true, changed: Changed::default() }
    }

    /// A grab has changed.
    pub(crate) fn grab(id: GrabId) -> Self {
        Self { work: false, changed: Changed::Grabs(BTreeSet::from([id])) }
    }

    /// Everything may have changed: hints may be lost.
    pub(crate) const fn anything() -> Self {
        Self { work: true, changed: Changed::Unknown }
    }

    /// Adds others. The number of grabs stays bounded.
    pub(crate) fn add(&mut self, others: Self) {
        self.work |= others.work;
        match (&mut self.changed, others.changed) {
            (Changed::Unknown, _) => {}
            (changed @ Changed::Grabs(_), Changed::Unknown) => *changed = Changed::Unknown,
            (Changed::Grabs(grabs), Changed::Grabs(others)) => {
                grabs.extend(others);
                if grabs.len() > MAX_GRABS {
                    self.changed = Changed::Unknown;
                }
            }
        }
    }

    /// Whether there is nothing to say.
    pub(crate) fn is_empty(&self) -> bool {
        !self.work && matches!(&self.changed, Changed::Grabs(grabs) if grabs.is_empty())
    }

    /// As text from this process: `form origin work grabs`, such as `1 Zm9v w 01993e1c-7b1a-7000-8000-0123456789ab`.
    pub(crate) fn write(&self, origin: &str) -> String {
        let work = if self.work { "w" } else { "-" };
        let grabs = match &self.changed {
            Changed::Unknown => "*".to_owned(),
            Changed::Grabs(grabs) if grabs.is_empty() => "-".to_owned(),
            Changed::Grabs(grabs) => grabs.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        };
        format!("{FORM} {origin} {work} {grabs}")
    }

    /// Reads the text of another process. Returns its origin and the hints.
    ///
    /// # Errors
    /// When the payload has another form, or is too long.
    pub(crate) fn read(payload: &[u8]) -> Result<(&str, Self), Malformed> {
        if payload.len() > MAX_PAYLOAD {
            return Err(Malformed);
        }
        let text = std::str::from_utf8(payload).map_err(|_| Malformed)?;
        let words: Vec<&str> = text.splitn(5, ' ').collect();
        let [FORM, origin, work, grabs] = words.as_slice() else { return Err(Malformed) };
        let work = match *work {
            "w" => true,
            "-" => false,
            _ => return Err(Malformed),
        };
        let changed = match *grabs {
            "*" => Changed::Unknown,
            "-" => Changed::default(),
            ids => {
                let ids: Result<BTreeSet<GrabId>, _> = ids.split(',').map(str::parse).collect();
                Changed::Grabs(ids.map_err(|_| Malformed)?)
            }
        };
        let mut hints = Self::default();
        hints.add(Self { work, changed });
        Ok((origin, hints))
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;

    use super::*;
    use crate::random;

    fn ids(count: usize) -> Vec<GrabId> {
        (0..count).map(|_| random::grab_id(Timestamp::from_ms(0))).collect()
    }

    #[test]
    fn hints_are_read_as_they_were_written() {
        let mut hints = Hints::default();
        assert!(hints.is_empty());
        for id in ids(3) {
            hints.add(Hints::grab(id));
        }
        for hints in [Hints::default(), hints, Hints::work(), Hints::anything()] {
            let text = hints.write("a-Z_9");
            assert_eq!(Hints::read(text.as_bytes()), Ok(("a-Z_9", hints)), "{text}");
        }
    }

    #[test]
    fn more_grabs_than_a_payload_has_room_for_become_unknown() {
        let mut hints = Hints::default();
        for id in ids(MAX_GRABS) {
            hints.add(Hints::grab(id));
        }
        assert!(matches!(&hints.changed, Changed::Grabs(grabs) if grabs.len() == MAX_GRABS));
        assert!(hints.write(&random::secret_text()).len() <= MAX_PAYLOAD);
        hints.add(Hints::work());
        hints.add(Hints::grab(ids(1)[0]));
        assert_eq!(hints, Hints::anything());
        hints.add(Hints::grab(ids(1)[0]));
        assert_eq!(hints, Hints::anything());
    }

    #[test]
    fn payloads_of_other_forms_are_malformed() {
        let id = ids(1)[0];
        let long = format!("1 o w {id}{}", ",".repeat(MAX_PAYLOAD));
        let twice = format!("1 o w {id},{id} *");
        for payload in ["", "1", "1 o w", "2 o w -", "1 o x -", "1 o w x", "1 o w *,", "\u{0}", &long, &twice] {
            assert_eq!(Hints::read(payload.as_bytes()), Err(Malformed), "{payload}");
        }
        assert_eq!(Hints::read(&[b'1', b' ', 0xff, b' ', b'w', b' ', b'-']), Err(Malformed));
    }
}
