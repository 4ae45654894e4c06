//! Lists the caller's grabs in pages, newest or oldest first.

use grabd_domain::credentials::Caller;
use grabd_domain::faults::Field;
use grabd_domain::grabs::{Grab, Status};
use grabd_domain::ids::{GrabId, KeyId};
use grabd_domain::{Day, Fault};
use grabd_store::grabs::{Cursor, GrabList, PageRequest};

use super::search::{self, SearchResult};
use crate::error::Error;
use crate::list_parameters::{allowed_limits, parse_limit};
use crate::service::Core;

/// A list request, not validated yet.
#[derive(Debug, Default)]
pub struct ListRequest {
    /// Maximum number of grabs.
    pub limit: Option<i64>,
    /// Only grabs with this status.
    pub status: Option<Status>,
    /// Only grabs that this API key has created.
    pub key: Option<KeyId>,
    /// Only grabs after this one in the list.
    pub starting_after: Option<String>,
    /// Only grabs directly before this one in the list.
    pub ending_before: Option<String>,
    /// Whether the list begins with the oldest grab.
    pub oldest_first: bool,
    /// Only grabs whose requested URL contains this text, in any case.
    pub url: Option<String>,
    /// Only grabs of this UTC day and later ones.
    pub from: Option<String>,
    /// Only grabs of this UTC day and earlier ones.
    pub until: Option<String>,
    /// Parameters whose value had the wrong type, with the received value.
    pub unparsed: Vec<(String, String)>,
}

/// One page of the list.
#[derive(Clone, Debug)]
pub struct ListedGrabs {
    /// In the order of the list.
    pub grabs: Vec<Grab>,
    /// Whether there are more in the requested direction.
    pub has_more: bool,
    /// Where a search can be continued: the last grab that was read. It is on the page only if it was found.
    pub next: Option<GrabId>,
}

/// Returns one page of the list. With a text in the URL, it reads a limited number of grabs.
///
/// # Errors
/// [`Fault::BadRequest`] with the invalid parameter.
#[tracing::instrument(name = "grabs.list", skip_all)]
pub async fn list(core: &Core, caller: Caller, request: &ListRequest) -> Result<ListedGrabs, Error> {
    let page = parse(request)?;
    if let Some(url) = &request.url {
        let SearchResult { grabs, next } = search::search_pages(core, caller, url, page).await?;
        return Ok(ListedGrabs { grabs, has_more: next.is_some(), next });
    }
    let cursor = page.cursor;
    let listed = core.store.grabs().list_grabs(caller.team, caller.environment, page).await?;
    let GrabList { grabs, has_more } = listed.ok_or_else(|| {
        let (name, id) = match cursor {
            Some(Cursor::Before(id)) => ("ending_before", id.to_string()),
            Some(Cursor::After(id)) => ("starting_after", id.to_string()),
            None => ("starting_after", String::new()),
        };
        Fault::BadRequest(Field::new(name, &id, CURSOR))
    })?;
    Ok(ListedGrabs { grabs, has_more, next: None })
}

const CURSOR: &str = "the id of one of this key's grabs";
const DAY: &str = "a day such as 2026-11-20";
const MAX_URL_TEXT: usize = 200;

fn parse(request: &ListRequest) -> Result<PageRequest, Fault> {
    let unparsed = |name: &'static str, allowed: &str| {
        let seen = request.unparsed.iter().find(|(n, _)| n == name);
        seen.map_or(Ok(()), |(_, seen)| Err(Fault::BadRequest(Field::new(name, seen, allowed))))
    };
    unparsed("limit", &allowed_limits())?;
    unparsed("status", "one of \"pending\", \"processing\", \"done\", \"failed\"")?;
    unparsed("starting_after", CURSOR)?;
    unparsed("ending_before", CURSOR)?;
    unparsed("url", "one text")?;
    unparsed("from", DAY)?;
    unparsed("until", DAY)?;
    let limit = parse_limit(request.limit)?;
    let id = |name: &'static str, text: &str| {
        text.parse::<GrabId>().map_err(|_| Fault::BadRequest(Field::new(name, &format!("\"{text}\""), CURSOR)))
    };
    let cursor = match (&request.starting_after, &request.ending_before) {
        (Some(_), Some(before)) => {
            return Err(Fault::BadRequest(Field::new("ending_before", before, "absent when starting_after is given")));
        }
        (Some(after), None) => Some(Cursor::After(id("starting_after", after)?)),
        (None, Some(before)) => Some(Cursor::Before(id("ending_before", before)?)),
        (None, None) => None,
    };
    if let Some(url) = &request.url {
        let chars = url.chars().count();
        if !(1..=MAX_URL_TEXT).contains(&chars) {
            let allowed = format!("a text of 1 to {MAX_URL_TEXT} characters");
            return Err(Fault::BadRequest(Field::new("url", &format!("{chars} characters"), allowed)));
        }
        if let Some(Cursor::Before(id)) = cursor {
            return Err(Fault::BadRequest(Field::new("ending_before", &id.to_string(), "absent when url is given")));
        }
    }
    let day = |name: &'static str, text: &Option<String>| {
        let Some(text) = text else { return Ok(None) };
        let invalid = || Fault::BadRequest(Field::new(name, &format!("\"{text}\""), DAY));
        Day::parse(text).map(Some).ok_or_else(invalid)
    };
    let from = day("from", &request.from)?.map(Day::start);
    let before = day("until", &request.until)?.map(|day| day.next().start());
    let ListRequest { status, key, oldest_first, .. } = *request;
    Ok(PageRequest { limit, status, key, cursor, from, before, oldest_first })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invalid_field(request: &ListRequest) -> Option<&'static str> {
        parse(request).err().and_then(|fault| fault.field().map(|field| field.name))
    }

    #[test]
    fn parse_reports_the_invalid_parameter() {
        let id = "01993e1c-7b1a-7000-8000-0123456789ab".to_owned();
        assert_eq!(parse(&ListRequest::default()).unwrap().limit, 25);
        for (limit, is_valid) in [(1, true), (100, true), (0, false), (101, false), (-1, false), (i64::MAX, false)] {
            let request = ListRequest { limit: Some(limit), ..ListRequest::default() };
            assert_eq!(invalid_field(&request), (!is_valid).then_some("limit"), "{limit}");
        }
        let both =
            ListRequest { starting_after: Some(id.clone()), ending_before: Some(id.clone()), ..ListRequest::default() };
        assert_eq!(invalid_field(&both), Some("ending_before"));
        assert!(invalid_field(&ListRequest { starting_after: Some(id), ..ListRequest::default() }).is_none());
        let not_an_id = ListRequest { starting_after: Some("x".into()), ..ListRequest::default() };
        assert_eq!(invalid_field(&not_an_id), Some("starting_after"));
        let with = |url: &str, from: &str| ListRequest {
            url: Some(url.into()),
            from: Some(from.into()),
            ..ListRequest::default()
        };
        assert_eq!(invalid_field(&with("shop", "2026-11-20")), None);
        for (url, from, field) in
            [("", "2026-11-20", "url"), ("shop", "20.11.2026", "from"), ("shop", "2026-02-30", "from")]
        {
            assert_eq!(invalid_field(&with(url, from)), Some(field));
        }
        for name in ["limit", "status", "url", "from", "until"] {
            let request = ListRequest { unparsed: vec![(name.into(), "x".into())], ..ListRequest::default() };
            assert_eq!(invalid_field(&request), Some(name));
        }
    }
}
