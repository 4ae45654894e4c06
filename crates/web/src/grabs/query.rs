//! The query of the gallery: filters, search, order and page.

use grabd_domain::Day;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::Status;
use grabd_domain::ids::GrabId;
use grabd_engine::grabs::{ListRequest, SearchRequest};

use super::selection::MAX_SELECTED;
use crate::environments::{ENVIRONMENT, ENVIRONMENTS};
use crate::form::Form;
use crate::problem::Problem;

/// The numbers of grabs per page to choose from, the default first. Multiples of two, three and four, so that rows are
/// full.
pub(super) const SIZES: [usize; 3] = [24, 48, 96];
/// The longest text to search for, in characters.
pub(super) const MAX_SEARCH: usize = 256;
pub(super) const AFTER: &str = "starting_after";
pub(super) const BEFORE: &str = "ending_before";
const STATUS: &str = "status";
const SEARCH: &str = "q";
const FROM: &str = "from";
const UNTIL: &str = "until";
const SORT: &str = "sort";
const OLDEST: &str = "oldest";
const SIZE: &str = "size";

/// The parsed query.
pub(super) struct ListQuery {
    pub(super) environment: Option<Environment>,
    pub(super) status: Option<Status>,
    /// Text that the URL contains.
    pub(super) url: String,
    pub(super) from: Option<Day>,
    pub(super) until: Option<Day>,
    pub(super) oldest_first: bool,
    /// Grabs per page.
    pub(super) size: usize,
    pub(super) after: Option<String>,
    pub(super) before: Option<String>,
    /// How many images were just deleted.
    pub(super) deleted: Option<usize>,
}

impl ListQuery {
    /// # Errors
    /// When a filter, a date, the order or the size is not one that the page offers.
    pub(super) fn of(query: &Form) -> Result<Self, Problem> {
        let word = |name| Some(query.get(name)).filter(|word| !word.is_empty());
        let environment = word(ENVIRONMENT).map(|word| {
            ENVIRONMENTS.into_iter().find(|environment| environment.as_str() == word).ok_or_else(no_such_filter)
        });
        let status = word(STATUS).map(|word| Status::parse(word).ok_or_else(no_such_filter));
        let day = |name| match query.get(name) {
            "" => Ok(None),
            text => Day::parse(text).map(Some).ok_or_else(no_such_day),
        };
        let oldest_first = match query.get(SORT) {
            "" | "newest" => false,
            OLDEST => true,
            _ => return Err(no_such_filter()),
        };
        let size = match query.get(SIZE) {
            "" => SIZES[0],
            text => SIZES.into_iter().find(|size| size.to_string() == text).ok_or_else(no_such_filter)?,
        };
        Ok(Self {
            environment: environment.transpose()?,
            status: status.transpose()?,
            url: query.get(SEARCH).trim().chars().take(MAX_SEARCH).collect(),
            from: day(FROM)?,
            until: day(UNTIL)?,
            oldest_first,
            size,
            after: word(AFTER).map(str::to_owned),
            before: word(BEFORE).map(str::to_owned),
            deleted: word("deleted")
                .and_then(|count| count.parse().ok())
                .filter(|count| (1..=MAX_SELECTED).contains(count)),
        })
    }

    pub(super) fn is_search(&self) -> bool {
        !self.url.is_empty() || self.from.is_some() || self.until.is_some()
    }

    /// Whether days, an order or a size are chosen.
    pub(super) fn is_refined(&self) -> bool {
        self.from.is_some() || self.until.is_some() || self.oldest_first || self.size != SIZES[0]
    }

    /// Whether the page begins with the newest grab, so that new ones can be inserted.
    pub(super) fn begins_with_newest(&self) -> bool {
        !self.is_search() && !self.oldest_first && self.after.is_none() && self.before.is_none()
    }

    /// Whether the reader has filtered and sorted nothing, as on the first page of a team.
    pub(super) fn is_plain(&self) -> bool {
        self.begins_with_newest() && self.status.is_none()
    }

    pub(super) fn search_request(&self) -> SearchRequest {
        SearchRequest {
            url: self.url.clone(),
            status: self.status,
            from: self.from,
            until: self.until,
            after: self.after.clone(),
            oldest_first: self.oldest_first,
            limit: self.size,
        }
    }

    pub(super) fn request(&self) -> ListRequest {
        ListRequest {
            limit: i64::try_from(self.size).ok(),
            status: self.status,
            starting_after: self.after.clone(),
            ending_before: self.before.clone(),
            oldest_first: self.oldest_first,
            ..ListRequest::default()
        }
    }

    /// The query of a link to the same list with another filter or page. Defaults are left out.
    pub(super) fn link(
        &self,
        environment: Environment,
        status: Option<Status>,
        cursor: Option<(&str, GrabId)>,
    ) -> String {
        self.link_to(environment, status, [self.from, self.until], cursor)
    }

    /// The query of a link to the same list for other days: the first and the last one.
    pub(super) fn link_to_days(&self, environment: Environment, days: [Option<Day>; 2]) -> String {
        self.link_to(environment, self.status, days, None)
    }

    fn link_to(
        &self,
        environment: Environment,
        status: Option<Status>,
        days: [Option<Day>; 2],
        cursor: Option<(&str, GrabId)>,
    ) -> String {
        let [from, until] = days.map(|day| day.map(|day| day.to_string()).unwrap_or_default());
        let size = if self.size == SIZES[0] { String::new() } else { self.size.to_string() };
        let id = cursor.map(|(_, id)| id.to_string()).unwrap_or_default();
        let fields = [
            (ENVIRONMENT, environment.as_str()),
            (STATUS, status.map_or("", Status::as_str)),
            (SEARCH, &self.url),
            (FROM, &from),
            (UNTIL, &until),
            (SORT, if self.oldest_first { OLDEST } else { "" }),
            (SIZE, &size),
            (cursor.map_or("", |(name, _)| name), &id),
        ];
        Form::from_iter(fields.into_iter().filter(|(_, value)| !value.is_empty())).to_query()
    }
}

fn no_such_day() -> Problem {
    Problem::bad_request("Invalid date", "A date must be a day such as 2026-11-21.", "Correct the date.")
}

fn no_such_filter() -> Problem {
    Problem::bad_request("Unknown filter", "The link contains an unknown filter.", "")
}
