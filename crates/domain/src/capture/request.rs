//! What a request says besides how its image looks: the age of an earlier image, texts of the caller, and time.

use std::collections::BTreeMap;
use std::time::Duration;

use grabd_options::{TABLE, Value, unknown};

use super::class::Class;
use super::{CaptureSpec, FileKind};
use crate::faults::{Fault, Field};
use crate::limits;

impl CaptureSpec {
    /// The same spec without what does not change the image. Two grabs show the same if these specs are equal.
    #[must_use]
    pub fn image_options(&self) -> Self {
        Self { max_age: Duration::ZERO, metadata: BTreeMap::new(), unknown: Vec::new(), ..self.clone() }
    }

    /// The same spec without the names of unknown members, with which it would be another request.
    #[must_use]
    pub fn without_unknown(&self) -> Self {
        Self { unknown: Vec::new(), ..self.clone() }
    }

    /// A warning for each unknown member of the request.
    pub fn unknown_warnings(&self) -> impl Iterator<Item = String> {
        self.unknown.iter().map(|name| unknown::warning(name))
    }

    /// The options that differ from their defaults, without secret ones, in the order of their table.
    pub fn shown_options(&self) -> Vec<(&'static str, Value)> {
        let request = self.to_minimal_request();
        let shown = TABLE.iter().filter(|option| !option.is_secret);
        shown.filter_map(|option| Some((option.name, request.get(option.name)?))).collect()
    }

    /// Time limit of one render attempt.
    pub fn render_budget(&self) -> Duration {
        self.timeout.max(limits::RENDER_BUDGET)
    }

    /// How much longer a lease lasts than its render.
    pub fn lease_margin(&self) -> Duration {
        let steps = [
            (self.compare_to.is_some(), limits::COMPARE_LIMIT),
            (self.phash, limits::PHASH_LIMIT),
            (self.also.contains(&FileKind::Marks), limits::MARKS_LIMIT),
            (self.thumbnail.is_some(), limits::THUMBNAIL_LIMIT),
            (self.evidence, limits::EVIDENCE_LIMIT),
            (self.secrets.given().contains(&"upload_url"), limits::UPLOAD_LIMIT),
        ];
        let asked = steps.into_iter().filter(|(is_asked, _)| *is_asked).map(|(_, limit)| limit);
        asked.fold(limits::LEASE_MARGIN, |margin, limit| margin + limit)
    }

    /// Refuses a time limit that is longer than a synchronous caller waits.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] for `timeout_ms`.
    pub fn check_class(&self, class: Class) -> Result<(), Fault> {
        let longest = limits::SYNC_DEADLINE.as_millis();
        match class {
            Class::Sync if self.timeout > limits::SYNC_DEADLINE => {
                let allowed = format!("an integer from 1000 to {longest}, unless the grab is asynchronous");
                Err(Fault::BadRequest(Field::new("timeout_ms", &self.timeout.as_millis().to_string(), allowed)))
            }
            Class::Sync | Class::Async => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use grabd_options::Object;

    use super::super::CaptureRequest;
    use super::*;

    fn spec(change: impl FnOnce(&mut CaptureRequest)) -> CaptureSpec {
        let mut request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        change(&mut request);
        CaptureSpec::parse(&request).unwrap()
    }

    fn metadata() -> Object {
        [("order".to_owned(), Value::Text("8421".to_owned()))].into()
    }

    #[test]
    fn image_options_leave_out_age_and_metadata_only() {
        let plain = spec(|_| ());
        let other = spec(|r| (r.max_age, r.metadata) = (Some(60), Some(metadata())));
        assert_ne!(other, plain);
        assert_eq!(other.image_options(), plain);
        assert_ne!(spec(|r| r.timeout_ms = Some(1000)).image_options(), plain);
    }

    #[test]
    fn age_and_metadata_are_stored_and_defaults_are_not() {
        let stored = serde_json::to_string(&spec(|r| (r.max_age, r.metadata) = (Some(60), Some(metadata())))).unwrap();
        assert!(stored.ends_with(r#""max_age":60,"metadata":{"order":"8421"}}"#), "{stored}");
        let plain = spec(|r| (r.max_age, r.metadata) = (Some(0), Some(Object::new())));
        assert_eq!(plain, spec(|_| ()));
        assert!(!serde_json::to_string(&plain).unwrap().contains("metadata"));
    }

    #[test]
    fn longer_time_limits_are_for_asynchronous_grabs_only() {
        for (timeout_ms, is_sync, seconds) in [(None, true, 25), (Some(25_000), true, 25), (Some(25_001), false, 25)] {
            let spec = spec(|r| r.timeout_ms = timeout_ms);
            assert_eq!(spec.check_class(Class::Sync).is_ok(), is_sync, "{timeout_ms:?}");
            assert_eq!(spec.check_class(Class::Async), Ok(()));
            assert_eq!(spec.render_budget().as_secs(), seconds);
        }
        let longest = spec(|r| r.timeout_ms = Some(60_000));
        assert_eq!(longest.render_budget(), limits::MAX_RENDER_BUDGET);
        let refused = longest.check_class(Class::Sync).unwrap_err().to_string();
        let expected =
            "`timeout_ms` must be an integer from 1000 to 25000, unless the grab is asynchronous; got 60000.";
        assert_eq!(refused, expected);
        let short = spec(|r| r.timeout_ms = Some(1000));
        assert_eq!(short.render_budget(), limits::RENDER_BUDGET);
    }
}
