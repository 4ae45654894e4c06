//! Lists the caller's grabs in pages, newest or oldest first.

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::faults::Field;
use grabd_domain::grabs::Status;
use grabd_domain::ids::GrabId;
use grabd_domain::limits::{DEFAULT_PAGE_SIZE, PAGE_SIZE};
use grabd_store::grabs::{Cursor, GrabList, PageRequest};

use crate::service::Core;
use crate::error::Error;

/// A list request, not validated yet.
#[derive(Debug, Default)]
pub struct ListRequest {
    /// Maximum number of grabs.
    pub limit: Option<i64>,
    /// Only grabs with this status.
    pub status: Option<Status>,
    /// Only grabs after this one in the list.
    pub starting_after: Option<String>,
    /// Only grabs directly before this one in the list.
    pub ending_before: Option<String>,
    /// Whether the list begins with the oldest grab.
    pub oldest_first: bool,
    /// Parameters whose value had the wrong type, with the received value.
    pub unparsed: Vec<(String, String)>,
}

/// Returns one page of the list.
///
/// # Errors
/// [`Fault::BadRequest`] with the invalid parameter.
#[tracing::instrument(name = "grabs.list", skip_all)]
pub async fn list(core: &Core, caller: Caller, request: &ListRequest) -> Result<GrabList, Error> {
    let page = parse(request)?;
    let cursor = page.cursor;
    let listed = core.store.grabs().list_grabs(caller.team, caller.environment, page).await?;
    Ok(listed.ok_or_else(|| {
        let (name, id) = match cursor {
            Some(Cursor::Before(id)) => ("ending_before", id.to_string()),
            Some(Cursor::After(id)) => ("starting_after", id.to_string()),
            None => ("starting_after", String::new()),
        };
        Fault::BadRequest(Field::new(name, &id, CURSOR))
    })?)
}

const CURSOR: &str = "the id of one of this key's grabs";

fn parse(request: &ListRequest) -> Result<PageRequest, Fault> {
    let limits = format!("an integer from {} to {}", PAGE_SIZE.start(), PAGE_SIZE.end());
    let unparsed = |name: &'static str, allowed: &str| {
        let seen = request.unparsed.iter().find(|(n, _)| n == name);
        seen.map_or(Ok(()), |(_, seen)| Err(Fault::BadRequest(Field::new(name, seen, allowed))))
    };
    unparsed("limit", &limits)?;
    unparsed("status", "one of \"pending\", \"processing\", \"done\", \"failed\"")?;
    unparsed("starting_after", CURSOR)?;
    unparsed("ending_before", CURSOR)?;
    let limit = request.limit.unwrap_or_else(|| DEFAULT_PAGE_SIZE.into());
    let limit = u32::try_from(limit)
        .ok()
        .filter(|_| PAGE_SIZE.contains(&limit))
        .ok_or_else(|| Fault::BadRequest(Field::new("limit", &limit.to_string(), limits)))?;
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
    let (status, oldest_first) = (request.status, request.oldest_first);
    Ok(PageRequest { limit, status, cursor, oldest_first, ..PageRequest::default() })
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
        for name in ["limit", "status"] {
            let request = ListRequest { unparsed: vec![(name.into(), "x".into())], ..ListRequest::default() };
            assert_eq!(invalid_field(&request), Some(name));
        }
    }
}
