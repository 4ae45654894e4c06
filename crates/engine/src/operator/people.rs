//! The list of all users.

use grabd_store::operator::{UserCursor, UserFilter, UserSummary};

use super::Operator;
use crate::error::Error;
use crate::service::Core;

/// Users on a page.
const PAGE: u32 = 25;

/// A page of users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeoplePage {
    /// Newest first.
    pub people: Vec<UserSummary>,
    /// Cursor of the next, older page; `None` on the last page.
    pub next: Option<UserCursor>,
}

/// A page of the users that match a search: by id, or by a part of the e-mail address or of the name of a team. An empty
/// search matches all users.
///
/// # Errors
/// When the database cannot be read.
#[tracing::instrument(name = "operator.list_people", skip_all)]
pub async fn list_people(
    core: &Core,
    _: &Operator,
    search: &str,
    after: Option<UserCursor>,
) -> Result<PeoplePage, Error> {
    // One more row shows whether there is another page.
    let mut people = core.store.operator().list_user_summaries(&parse_search(search), after, PAGE + 1).await?;
    let page = usize::try_from(PAGE).unwrap_or(usize::MAX);
    let has_more = people.len() > page;
    people.truncate(page);
    let position = |last: &UserSummary| UserCursor { created_at: last.user.created_at, user: last.user.id };
    let next = people.last().filter(|_| has_more).map(position);
    Ok(PeoplePage { people, next })
}

fn parse_search(search: &str) -> UserFilter {
    let search = search.trim();
    match search.parse() {
        _ if search.is_empty() => UserFilter::All,
        Ok(id) => UserFilter::Id(id),
        Err(_) => UserFilter::Contains(search.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_is_parsed_as_id_or_text() {
        let id = "01993e1c-7b1a-7000-8000-0123456789ab";
        for (search, expected) in [
            ("", UserFilter::All),
            ("  ", UserFilter::All),
            (id, UserFilter::Id(id.parse().unwrap())),
            (" Ada@Example.com ", UserFilter::Contains("Ada@Example.com".to_owned())),
        ] {
            assert_eq!(parse_search(search), expected, "{search:?}");
        }
    }
}
