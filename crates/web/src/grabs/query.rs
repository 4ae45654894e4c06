//! The query of the gallery: filters, search, order and page.

use grabd_domain::Day;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::Status;
use grabd_domain::ids::{GrabId, KeyId};
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
const KEY: &str = "key";
const SEARCH: &str = "q";
const FROM: &str = "from";
const UNTIL: &str = "until";
const SORT: &str = "sort";
const OLDEST: &str = "oldest";
const SIZE: &str = "size";

/// The parsed query.
#[derive(Clone, Debug)]
pub(super) struct ListQuery {
    pub(super) environment: Option<Environment>,
    pub(super) status: Option<Status>,
    /// The API key that created the grabs.
    pub(super) key: Option<KeyId>,
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
        let key = word(KEY).map(|id| id.parse::<KeyId>().map_err(|_| no_such_filter()));
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
            key: key.transpose()?,
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

    /// Whether the list lacks some captures of its environment.
    pub(super) fn is_filtered(&self) -> bool {
        self.is_search() || self.status.is_some() || self.key.is_some()
    }

    /// Whether the page begins with the newest grab, so that new ones can be inserted.
    pub(super) fn begins_with_newest(&self) -> bool {
        !self.is_search() && !self.oldest_first && self.after.is_none() && self.before.is_none()
    }

    /// Whether the reader has filtered and sorted nothing, as on the first page of a team.
    pub(super) fn is_plain(&self) -> bool {
        self.begins_with_newest() && !self.is_filtered()
    }

    pub(super) fn search_request(&self) -> SearchRequest {
        SearchRequest {
            url: self.url.clone(),
            status: self.status,
            key: self.key,
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
            key: self.key,
            starting_after: self.after.clone(),
            ending_before: self.before.clone(),
            oldest_first: self.oldest_first,
            ..ListRequest::default()
        }
    }

    /// The query of a link to this list, or to the page of it that begins at a grab. Defaults are left out.
    pub(super) fn link(&self, environment: Environment, cursor: Option<(&str, GrabId)>) -> String {
        let fields = self.fields(environment);
        let id = cursor.map(|(_, id)| id.to_string()).unwrap_or_default();
        let cursor = cursor.map(|(name, _)| (name, id.as_str()));
        Form::from_iter(fields.iter().map(|(name, value)| (*name, value.as_str())).chain(cursor)).to_query()
    }

    /// The fields that a form around the search needs besides those that it shows. Defaults are left out.
    pub(super) fn hidden_fields(&self, environment: Environment) -> Vec<(&'static str, String)> {
        let mut fields = self.fields(environment);
        fields.retain(|(name, _)| ![SEARCH, FROM, UNTIL].contains(name));
        fields
    }

    fn fields(&self, environment: Environment) -> Vec<(&'static str, String)> {
        let day = |day: Option<Day>| day.map(|day| day.to_string()).unwrap_or_default();
        let size = if self.size == SIZES[0] { String::new() } else { self.size.to_string() };
        let mut fields = vec![
            (ENVIRONMENT, environment.as_str().to_owned()),
            (STATUS, self.status.map_or("", Status::as_str).to_owned()),
            (KEY, self.key.map(|key| key.to_string()).unwrap_or_default()),
            (SEARCH, self.url.clone()),
            (FROM, day(self.from)),
            (UNTIL, day(self.until)),
            (SORT, if self.oldest_first { OLDEST } else { "" }.to_owned()),
            (SIZE, size),
        ];
        fields.retain(|(_, value)| !value.is_empty());
        fields
    }
}

fn no_such_day() -> Problem {
    Problem::bad_request("Invalid date", "A date must be a day such as 2026-11-21.", "Correct the date.")
}

fn no_such_filter() -> Problem {
    Problem::bad_request("Unknown filter", "The link contains an unknown filter.", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<ListQuery, Problem> {
        ListQuery::of(&Form::parse(query.as_bytes()))
    }

    #[test]
    fn links_keep_all_that_was_chosen_and_leave_out_defaults() {
        let key = "01993e1c-7b1a-7000-8000-0123456789ab";
        let query = format!(
            "environment=test&status=failed&key={key}&q=a+b&from=2026-11-01&until=2026-11-30&sort=oldest&size=48"
        );
        let parsed = parse(&query).unwrap();
        assert_eq!(parsed.link(Environment::Test, None), query);
        let again: GrabId = key.parse().unwrap();
        assert_eq!(parsed.link(Environment::Test, Some((AFTER, again))), format!("{query}&starting_after={key}"));
        let names: Vec<_> = parsed.hidden_fields(Environment::Test).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["environment", "status", "key", "sort", "size"]);
        let plain = parse("sort=newest&size=24&q=++").unwrap();
        assert_eq!(plain.link(Environment::Live, None), "environment=live");
        assert!(plain.is_plain() && !plain.is_filtered() && parsed.is_filtered());
    }

    #[test]
    fn unknown_filters_are_refused() {
        for query in ["environment=prod", "status=ready", "key=x", "sort=best", "size=25", "from=yesterday"] {
            assert!(parse(query).is_err(), "{query}");
        }
    }
}
