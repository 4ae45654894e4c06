//! The button that captures a page again and compares both images.

use grabd_domain::capture::CaptureSpec;
use grabd_domain::grabs::Grab;
use grabd_engine::random;

use super::no_credits::NoCredits;
use super::options;
use crate::form::Form;
use crate::team::TeamContext;

/// The last segment of the path that captures again.
pub(super) const RETAKE: &str = "retake";

/// How a capture is repeated.
pub(super) struct RetakeForm {
    /// The path that captures with the same options. `None`: some of them are no longer kept.
    pub(super) action: Option<String>,
    /// The form with the options that are kept.
    pub(super) edit: String,
    pub(super) form_token: String,
    pub(super) once: String,
}

/// Why a capture was not repeated.
pub(super) enum Refusal {
    /// There are no credits.
    NoCredits(NoCredits),
    /// Anything else: a sentence.
    Other(String),
}

impl RetakeForm {
    pub(super) fn of(grab: &Grab, at: &TeamContext) -> Self {
        Self {
            action: has_all_options(grab).then(|| at.grab_path(grab.id, RETAKE)),
            edit: format!("{}?{}", at.path("capture"), query(grab)),
            form_token: at.form_token().to_owned(),
            once: random::secret_text(),
        }
    }
}

/// The options of a grab with which its page is captured again and compared with it. `None` if some are no longer kept.
pub(super) fn same_options(grab: &Grab) -> Option<Form> {
    has_all_options(grab).then(|| Form::parse(query(grab).as_bytes()))
}

/// Whether the page can be captured with exactly the same options: secrets, which include documents, are deleted when a grab
/// has ended, and long options a day later.
fn has_all_options(grab: &Grab) -> bool {
    grab.spec.secrets.given().is_empty() && grab.spec.omitted.is_empty()
}

fn query(grab: &Grab) -> String {
    let spec = CaptureSpec { compare_to: Some(grab.id), ..grab.spec.clone() };
    options::to_query(&spec, grab.environment)
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;
    use grabd_domain::capture::{CaptureRequest, OptionValue, Secret};
    use grabd_domain::credentials::Environment;
    use grabd_domain::grabs::{Class, State};
    use grabd_domain::ids::{GrabId, TeamId};

    use super::*;

    const ID: &str = "01993e1c-7b1a-7000-8000-0123456789ab";

    fn grab(change: impl FnOnce(&mut CaptureRequest)) -> Grab {
        let mut request = CaptureRequest { url: Some("https://example.com/".to_owned()), ..CaptureRequest::default() };
        change(&mut request);
        Grab {
            id: ID.parse::<GrabId>().unwrap(),
            team: ID.parse::<TeamId>().unwrap(),
            environment: Environment::Live,
            class: Class::Async,
            spec: CaptureSpec::parse(&request).unwrap().without_secrets(),
            created_at: Timestamp::from_ms(1),
            deleted_at: None,
            attempts: 1,
            state: State::Pending,
        }
    }

    #[test]
    fn same_options_are_those_of_the_grab_and_its_id_to_compare_with() {
        let earlier = grab(|request| (request.width, request.css) = (Some(800), Some("a{}".to_owned())));
        let request = options::request(&same_options(&earlier).unwrap());
        let expected = CaptureSpec { compare_to: Some(earlier.id), ..earlier.spec };
        assert_eq!(CaptureSpec::parse(&request).unwrap(), expected);
    }

    #[test]
    fn options_that_are_not_kept_are_entered_again() {
        let header = || Secret([("X-Token".to_owned(), OptionValue::Text("hidden".to_owned()))].into());
        assert!(same_options(&grab(|request| request.headers = Some(header()))).is_none());
        let document =
            |request: &mut CaptureRequest| (request.url, request.html) = (None, Some(Secret("<p>a".to_owned())));
        assert!(same_options(&grab(document)).is_none());
        let long = grab(|request| request.css = Some("x".repeat(300)));
        assert!(same_options(&long).is_some());
        let kept = long.spec.without_long_options(|_| "digest".to_owned()).unwrap();
        assert!(same_options(&Grab { spec: kept, ..long }).is_none());
    }
}
