//! What a caller is told about a page beside the picture.

use grabd_domain::grabs::Facts;

use super::Tab;

/// Everything that was seen of the page until now.
pub(super) fn seen(tab: &Tab) -> Facts {
    let blocked_requests = tab.listener.refused_count();
    tab.watch.look(|seen| match (&seen.document, &seen.navigation, &seen.aborted) {
        (Some(document), _, _) => Facts {
            final_url: Some(document.unreachable_url.clone().unwrap_or_else(|| document.url.clone())),
            http_status: document.head.as_ref().map(|head| head.status),
            blocked_requests,
            ..Facts::default()
        },
        (None, Some(navigation), _) | (None, None, Some(navigation)) => Facts {
            final_url: Some(navigation.url.clone()),
            http_status: navigation.head.as_ref().map(|head| head.status),
            blocked_requests,
            ..Facts::default()
        },
        (None, None, None) => Facts { blocked_requests, ..Facts::default() },
    })
}
