//! The menus of the gallery's toolbar: each has links to the same list with another filter or order.

use grabd_domain::Day;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::Status;
use grabd_domain::ids::KeyId;

use super::query::{ListQuery, SIZES};
use super::view::status_name;
use crate::environments::{ENVIRONMENTS, environment_name};

/// Days to choose from: how many days ago they begin and end. `None` is any time.
const SPANS: [(&str, Option<[u16; 2]>); 5] = [
    ("Any time", None),
    ("Today", Some([0, 0])),
    ("Yesterday", Some([1, 1])),
    ("Last 7 days", Some([6, 0])),
    ("Last 30 days", Some([29, 0])),
];

const STATUSES: [Status; 4] = [Status::Pending, Status::Processing, Status::Done, Status::Failed];

/// A menu.
pub(super) struct Menu {
    /// What is chosen in it.
    pub(super) label: &'static str,
    /// The current choice.
    pub(super) chosen: String,
    /// Whether the choice differs from the default.
    pub(super) is_set: bool,
    pub(super) groups: Vec<ChoiceGroup>,
    /// Whether the menu also has fields for the first and the last day.
    pub(super) has_days: bool,
}

/// Choices of which one is current.
pub(super) struct ChoiceGroup {
    pub(super) label: &'static str,
    pub(super) choices: Vec<Choice>,
}

/// A link to the same list with this choice.
pub(super) struct Choice {
    pub(super) path: String,
    pub(super) label: String,
    pub(super) is_here: bool,
}

/// The list that the menus are for.
pub(super) struct Listing<'a> {
    /// The path of the list without its query.
    pub(super) path: &'a str,
    pub(super) query: &'a ListQuery,
    pub(super) environment: Environment,
    pub(super) today: Day,
    /// The keys of the environment, with their names.
    pub(super) keys: &'a [(KeyId, String)],
}

impl Listing<'_> {
    /// All menus, in the order of the toolbar. There is none for keys if the team has none.
    pub(super) fn menus(&self) -> Vec<Menu> {
        let mut menus = vec![self.environments(), self.statuses(), self.days()];
        if !self.keys.is_empty() || self.query.key.is_some() {
            menus.push(self.keys());
        }
        menus.push(self.order());
        menus
    }

    /// The name of the key whose captures are listed.
    pub(super) fn key_name(&self) -> Option<&str> {
        let key = self.query.key?;
        let found = self.keys.iter().find(|(id, _)| *id == key);
        Some(found.map_or("A revoked key", |(_, name)| name))
    }

    fn choice(&self, query: &ListQuery, environment: Environment, label: impl Into<String>, is_here: bool) -> Choice {
        Choice { path: format!("{}?{}", self.path, query.link(environment, None)), label: label.into(), is_here }
    }

    fn environments(&self) -> Menu {
        // A key belongs to one environment.
        let query = ListQuery { key: None, ..self.query.clone() };
        let choice = |other| self.choice(&query, other, environment_name(other), other == self.environment);
        Menu {
            label: "Environment",
            chosen: environment_name(self.environment).to_owned(),
            is_set: false,
            groups: vec![ChoiceGroup { label: "Environment", choices: ENVIRONMENTS.map(choice).into() }],
            has_days: false,
        }
    }

    fn statuses(&self) -> Menu {
        let name = |status: Option<Status>| status.map_or("All statuses", status_name);
        let choice = |status| {
            let query = ListQuery { status, ..self.query.clone() };
            self.choice(&query, self.environment, name(status), status == self.query.status)
        };
        Menu {
            label: "Status",
            chosen: name(self.query.status).to_owned(),
            is_set: self.query.status.is_some(),
            groups: vec![ChoiceGroup {
                label: "Status",
                choices: std::iter::once(None).chain(STATUSES.map(Some)).map(choice).collect(),
            }],
            has_days: false,
        }
    }

    fn days(&self) -> Menu {
        let here = [self.query.from, self.query.until];
        let choice = |(label, span): (&str, Option<[u16; 2]>)| {
            let [from, until] = span.map_or([None; 2], |ago| ago.map(|days| Some(self.today.before(days))));
            let query = ListQuery { from, until, ..self.query.clone() };
            self.choice(&query, self.environment, label, here == [from, until])
        };
        let choices: Vec<Choice> = SPANS.map(choice).into();
        let chosen = choices.iter().find(|choice| choice.is_here).map(|choice| choice.label.clone());
        Menu {
            label: "Date",
            chosen: chosen.unwrap_or_else(|| period(here)),
            is_set: here != [None; 2],
            groups: vec![ChoiceGroup { label: "Date", choices }],
            has_days: true,
        }
    }

    fn keys(&self) -> Menu {
        let choice = |key: Option<KeyId>, name: &str| {
            let query = ListQuery { key, ..self.query.clone() };
            self.choice(&query, self.environment, name, key == self.query.key)
        };
        let mut choices = vec![choice(None, "All keys")];
        choices.extend(self.keys.iter().map(|(id, name)| choice(Some(*id), name)));
        Menu {
            label: "Key",
            chosen: self.key_name().unwrap_or("All keys").to_owned(),
            is_set: self.query.key.is_some(),
            groups: vec![ChoiceGroup { label: "Key", choices }],
            has_days: false,
        }
    }

    fn order(&self) -> Menu {
        let name = |oldest_first| if oldest_first { "Oldest first" } else { "Newest first" };
        let order = |oldest_first| {
            let query = ListQuery { oldest_first, ..self.query.clone() };
            self.choice(&query, self.environment, name(oldest_first), oldest_first == self.query.oldest_first)
        };
        let size = |size: usize| {
            let query = ListQuery { size, ..self.query.clone() };
            self.choice(&query, self.environment, format!("{size} per page"), size == self.query.size)
        };
        Menu {
            label: "Order",
            chosen: name(self.query.oldest_first).to_owned(),
            is_set: self.query.oldest_first || self.query.size != SIZES[0],
            groups: vec![
                ChoiceGroup { label: "Order", choices: [false, true].map(order).into() },
                ChoiceGroup { label: "Per page", choices: SIZES.map(size).into() },
            ],
            has_days: false,
        }
    }
}

/// The chosen days as they are shown.
fn period([from, until]: [Option<Day>; 2]) -> String {
    match (from, until) {
        (Some(from), Some(until)) if from == until => from.to_string(),
        (Some(from), Some(until)) => format!("{from} to {until}"),
        (Some(from), None) => format!("Since {from}"),
        (None, Some(until)) => format!("Until {until}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::Form;

    fn menus(query: &str, keys: &[(KeyId, String)]) -> Vec<Menu> {
        let query = ListQuery::of(&Form::parse(query.as_bytes())).unwrap();
        let today = Day::parse("2026-11-21").unwrap();
        Listing { path: "/grabs", query: &query, environment: Environment::Test, today, keys }.menus()
    }

    fn chosen(menus: &[Menu]) -> Vec<(&str, bool)> {
        menus.iter().map(|menu| (&*menu.chosen, menu.is_set)).collect()
    }

    #[test]
    fn menus_name_what_is_chosen() {
        let plain = menus("", &[]);
        let defaults = [("Test", false), ("All statuses", false), ("Any time", false), ("Newest first", false)];
        assert_eq!(chosen(&plain), defaults);
        let key: KeyId = "01993e1c-7b1a-7000-8000-0123456789ab".parse().unwrap();
        let keys = [(key, "build server".to_owned())];
        let query = format!("status=failed&from=2026-11-15&until=2026-11-21&key={key}&sort=oldest");
        let set =
            [("Test", false), ("Failed", true), ("Last 7 days", true), ("build server", true), ("Oldest first", true)];
        assert_eq!(chosen(&menus(&query, &keys)), set);
        assert_eq!(chosen(&menus(&query, &[]))[3], ("A revoked key", true));
        for (query, expected) in [
            ("from=2026-11-01", "Since 2026-11-01"),
            ("until=2026-11-01", "Until 2026-11-01"),
            ("from=2026-11-01&until=2026-11-02", "2026-11-01 to 2026-11-02"),
            ("from=2026-11-01&until=2026-11-01", "2026-11-01"),
        ] {
            assert_eq!(chosen(&menus(query, &[]))[2], (expected, true), "{query}");
        }
    }

    #[test]
    fn choices_keep_the_other_filters_and_the_key_only_in_its_environment() {
        let key: KeyId = "01993e1c-7b1a-7000-8000-0123456789ab".parse().unwrap();
        let menus = menus(&format!("status=done&key={key}&q=a&starting_after={key}"), &[(key, "ours".to_owned())]);
        let paths = |at: usize| -> Vec<&str> {
            menus[at].groups.iter().flat_map(|group| &group.choices).map(|choice| &*choice.path).collect()
        };
        assert_eq!(paths(0)[0], "/grabs?environment=live&status=done&q=a");
        assert_eq!(paths(1)[0], format!("/grabs?environment=test&key={key}&q=a"));
        assert_eq!(
            paths(2)[1],
            format!("/grabs?environment=test&status=done&key={key}&q=a&from=2026-11-21&until=2026-11-21")
        );
        assert_eq!(
            paths(3),
            [
                "/grabs?environment=test&status=done&q=a".to_owned(),
                format!("/grabs?environment=test&status=done&key={key}&q=a"),
            ]
        );
        assert_eq!(paths(4)[4], format!("/grabs?environment=test&status=done&key={key}&q=a&size=96"));
    }
}
