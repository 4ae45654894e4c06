//! Which document caused which request.
//!
//! A page that another one is about to replace can still make requests, also to the origin of its successor. So the state of
//! the tab does not say on whose behalf a request is made, but the loader of its document does.

use std::collections::{HashMap, VecDeque};

use url::{Origin, Url};

use crate::cdp::{Event, Kind};

/// The number of documents that are remembered. A page of this many frames is rare, and the requests of further ones get no
/// headers.
const MAX_DOCUMENTS: usize = 1024;

/// The number of pending requests that are remembered.
const MAX_REQUESTS: usize = 8192;

/// The documents of all frames, and the pending requests of each.
#[derive(Debug, Default)]
pub(crate) struct Requesters {
    /// The loaders of documents and their origins, oldest first.
    documents: VecDeque<(String, DocumentOrigin)>,
    /// The loader of each pending request.
    requests: HashMap<String, String>,
}

/// The origin of a document, by its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DocumentOrigin {
    /// That of a document from the web.
    Web(Origin),
    /// That of the document which made it, unless it is in a sandbox: `about:blank`, `about:srcdoc`, `blob:`.
    Inherited,
}

impl DocumentOrigin {
    fn of(url: &str) -> Self {
        match Url::parse(url) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Self::Web(url.origin()),
            Ok(_) | Err(_) => Self::Inherited,
        }
    }
}

impl Requesters {
    /// Records what an event says about documents and requests.
    pub(super) fn note(&mut self, event: &Event) {
        if let Event::RequestStarted { request, loader, kind, url, .. } = event {
            // Each redirect of a document has another URL.
            if *kind == Kind::Document && request == loader {
                self.add_document(loader, url);
            }
            if self.requests.len() < MAX_REQUESTS || self.requests.contains_key(request) {
                self.requests.insert(request.clone(), loader.clone());
            }
        } else if let Event::FrameNavigated { loader, url, .. } = event {
            self.add_document(loader, url);
        } else if let Event::RequestFinished { request } | Event::RequestFailed { request, .. } = event {
            self.requests.remove(request);
        }
    }

    /// Whether the event of a request has come.
    pub(super) fn knows(&self, request: &str) -> bool {
        self.requests.contains_key(request)
    }

    /// The origin of the document that caused a request. `None` if it is not known, as for a worker.
    pub(super) fn origin(&self, request: &str) -> Option<&DocumentOrigin> {
        let loader = self.requests.get(request)?;
        self.documents.iter().rev().find(|(of, _)| of == loader).map(|(_, origin)| origin)
    }

    fn add_document(&mut self, loader: &str, url: &str) {
        let origin = DocumentOrigin::of(url);
        if let Some((_, known)) = self.documents.iter_mut().find(|(of, _)| of == loader) {
            *known = origin;
            return;
        }
        if self.documents.len() == MAX_DOCUMENTS {
            self.documents.pop_front();
        }
        self.documents.push_back((loader.to_owned(), origin));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(request: &str, loader: &str, kind: Kind, url: &str) -> Event {
        let (request, loader, url) = (request.to_owned(), loader.to_owned(), url.to_owned());
        Event::RequestStarted { request, loader, frame: None, kind, url, redirected: None, details: Box::default() }
    }

    #[test]
    fn request_has_the_origin_of_its_document_after_redirects() {
        let mut requesters = Requesters::default();
        for event in [
            started("L", "L", Kind::Document, "https://a.example/to"),
            started("L", "L", Kind::Document, "https://b.example/"),
            started("1", "L", Kind::Image, "https://a.example/i"),
            started("2", "", Kind::Worker, "https://a.example/w"),
        ] {
            requesters.note(&event);
        }
        let web = |url: &str| Some(DocumentOrigin::Web(Url::parse(url).unwrap().origin()));
        assert_eq!(requesters.origin("1").cloned(), web("https://b.example/"));
        assert!(requesters.knows("2") && requesters.origin("2").is_none());
        let (frame, loader, url) = ("F".to_owned(), "S".to_owned(), "about:srcdoc".to_owned());
        requesters.note(&Event::FrameNavigated { frame, is_main: false, loader, url, unreachable_url: None });
        requesters.note(&started("3", "S", Kind::Image, "https://a.example/i"));
        assert_eq!(requesters.origin("3"), Some(&DocumentOrigin::Inherited));
        requesters.note(&Event::RequestFinished { request: "3".into() });
        assert!(!requesters.knows("3"));
    }

    #[test]
    fn number_of_documents_and_requests_is_bounded() {
        let mut requesters = Requesters::default();
        for number in 0..MAX_REQUESTS + 10 {
            let id = number.to_string();
            requesters.note(&started(&id, &id, Kind::Document, "https://a.example/"));
        }
        assert_eq!((requesters.documents.len(), requesters.requests.len()), (MAX_DOCUMENTS, MAX_REQUESTS));
    }
}
