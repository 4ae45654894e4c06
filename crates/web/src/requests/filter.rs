//! The filters of the list, in the query of its path.

use grabd_domain::Day;
use grabd_domain::credentials::Principal;
use grabd_domain::faults::Code;
use grabd_domain::ids::{ApiRequestId, GrantId, KeyId};
use grabd_engine::requests::{RequestFilter, RequestOutcome};
use url::form_urlencoded;

use crate::form::Form;
use crate::problem::Problem;

/// The fields of the query.
pub(super) const KEY: &str = "key";
pub(super) const APP: &str = "app";
pub(super) const STATUS: &str = "status";
pub(super) const CODE: &str = "code";
pub(super) const DAY: &str = "day";
pub(super) const REQUEST_ID: &str = "request_id";
/// A request; the page has older ones.
pub(super) const BEFORE: &str = "before";

/// The fields that are repeated in the links to other pages.
const REPEATED: [&str; 6] = [KEY, APP, STATUS, CODE, DAY, REQUEST_ID];
/// Longest request id.
pub(super) const REQUEST_ID_CHARS: usize = 128;

/// The words for outcomes, and their labels.
pub(super) const OUTCOMES: [(&str, &str, RequestOutcome); 3] = [
    ("4xx", "Refused (4xx)", RequestOutcome::Refused),
    ("5xx", "Failed (5xx)", RequestOutcome::Failed),
    ("2xx", "Accepted (2xx)", RequestOutcome::Accepted),
];

/// The filters of a page.
pub(super) struct Filters<'a> {
    form: &'a Form,
    pub(super) filter: RequestFilter,
    pub(super) before: Option<ApiRequestId>,
}

impl<'a> Filters<'a> {
    /// Reads a query.
    ///
    /// # Errors
    /// When a field has a value that the page does not offer.
    pub(super) fn of(form: &'a Form) -> Result<Self, Problem> {
        let key = optional(form, KEY, "the id of a key", |text| Some(Principal::Key(text.parse::<KeyId>().ok()?)))?;
        let app =
            optional(form, APP, "the id of an app", |text| Some(Principal::Grant(text.parse::<GrantId>().ok()?)))?;
        let outcome = |text: &str| OUTCOMES.iter().find(|(word, ..)| *word == text).map(|(.., outcome)| *outcome);
        let code = |text: &str| Code::parse(text).map(|code| code.as_str().to_owned());
        let is_short = |text: &str| (text.chars().count() <= REQUEST_ID_CHARS).then(|| text.to_owned());
        let filter = RequestFilter {
            principal: key.or(app),
            outcome: optional(form, STATUS, "2xx, 4xx or 5xx", outcome)?,
            code: optional(form, CODE, "an error code", code)?,
            day: optional(form, DAY, "a day such as 2026-11-20", Day::parse)?,
            request_id: optional(form, REQUEST_ID, "a request id of at most 128 characters", is_short)?,
        };
        let before = optional(form, BEFORE, "the id of a request", |text| text.parse().ok())?;
        Ok(Self { form, filter, before })
    }

    /// Whether not all requests are listed.
    pub(super) fn is_active(&self) -> bool {
        self.filter != RequestFilter::default()
    }

    /// The value of a field, to show it in the form.
    pub(super) fn value(&self, name: &str) -> &str {
        self.form.get(name).trim()
    }

    /// The path of the page with the same filters that begins before a request, or with the newest one.
    pub(super) fn path(&self, list: &str, before: Option<ApiRequestId>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for name in REPEATED.into_iter().filter(|name| !self.value(name).is_empty()) {
            query.append_pair(name, self.value(name));
        }
        if let Some(before) = before {
            query.append_pair(BEFORE, &before.to_string());
        }
        let query = query.finish();
        if query.is_empty() { list.to_owned() } else { format!("{list}?{query}") }
    }
}

/// The value of a field that may be left out.
fn optional<T>(
    form: &Form,
    name: &str,
    allowed: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    match form.get(name).trim() {
        "" => Ok(None),
        text => parse(text).map(Some).ok_or_else(|| {
            let seen: String = text.chars().take(50).collect();
            let message = format!("“{name}” must be {allowed}; it was “{seen}”.");
            Problem::bad_request("Invalid filter", message, "Go back to the list of requests.")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01993e1c-7b1a-7000-8000-0123456789ab";

    #[test]
    fn filters_are_read_and_repeated_in_links() {
        let query = format!("key={ID}&status=4xx&code=bad_request&day=2026-11-20&request_id=+a.b+&other=1&before={ID}");
        let form = Form::parse(query.as_bytes());
        let filters = Filters::of(&form).unwrap();
        let expected = RequestFilter {
            principal: Some(Principal::Key(ID.parse().unwrap())),
            outcome: Some(RequestOutcome::Refused),
            code: Some("bad_request".to_owned()),
            day: Day::parse("2026-11-20"),
            request_id: Some("a.b".to_owned()),
        };
        assert_eq!((&filters.filter, filters.before), (&expected, Some(ID.parse().unwrap())));
        let shared = format!("/x?key={ID}&status=4xx&code=bad_request&day=2026-11-20&request_id=a.b");
        assert_eq!(filters.path("/x", None), shared);
        assert_eq!(filters.path("/x", filters.before), format!("{shared}&before={ID}"));
        let none = Form::default();
        let filters = Filters::of(&none).unwrap();
        assert!(!filters.is_active());
        assert_eq!(filters.path("/x", None), "/x");
    }

    #[test]
    fn other_values_are_refused() {
        let long = format!("request_id={}", "a".repeat(129));
        for query in ["key=1", "app=x", "status=404", "code=teapot", "day=2026-02-30", "before=1", &long] {
            assert!(Filters::of(&Form::parse(query.as_bytes())).is_err(), "{query}");
        }
    }
}
