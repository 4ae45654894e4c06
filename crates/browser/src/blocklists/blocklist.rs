//! What one grab blocks, and how often it did.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grabd_domain::capture::{BlockedContent, Blocking};
use grabd_domain::grabs::BlockedRequests;
use url::{Host, Url};

use super::list::List;
use super::names::PageNames;
use super::{FilterLists, built_in};

/// Maximum number of blocked URLs and hosts that are remembered, to tell them from those that failed.
const REMEMBERED: usize = 4096;
/// Maximum length of a remembered URL in bytes. A page can make URLs of megabytes.
const MAX_URL_BYTES: usize = 2048;
/// Maximum length of a selector, and of all selectors that are added to a page at once, in bytes. EasyList has 18 KB of
/// those that are added to every page.
const MAX_SELECTOR_BYTES: usize = 4 << 10;
const MAX_SELECTORS_BYTES: usize = 256 << 10;

/// What one grab blocks. Shared by its proxy listener, which refuses hosts, and the rules for its requests.
pub(crate) struct Blocklist {
    lists: Arc<FilterLists>,
    /// The kinds of content that are blocked.
    contents: Vec<BlockedContent>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The URL of the document in the main frame.
    page: String,
    /// Its host.
    page_host: String,
    /// Domains of documents in the main frame, from which everything is loaded.
    own: HashSet<String>,
    /// URLs and hosts of requests that were blocked by a list.
    blocked: HashSet<String>,
    counts: BlockedRequests,
}

impl Blocklist {
    /// For a grab of the page at this URL. `None` if it blocks nothing.
    pub(crate) fn new(blocking: &Blocking, lists: &Arc<FilterLists>, url: &str) -> Option<Arc<Self>> {
        if blocking.is_empty() {
            return None;
        }
        let blocklist = Self { lists: lists.clone(), contents: blocking.contents.clone(), inner: Mutex::default() };
        blocklist.add_document(url);
        Some(Arc::new(blocklist))
    }

    /// Whether lists are used.
    pub(crate) fn has_lists(&self) -> bool {
        self.contents.iter().any(|content| match content {
            BlockedContent::Ads | BlockedContent::Trackers | BlockedContent::Chats | BlockedContent::Social => true,
            BlockedContent::CookieBanners => false,
        })
    }

    /// The lists that are used, in the order in which they are asked.
    fn used(&self) -> impl Iterator<Item = (BlockedContent, &List)> {
        self.contents.iter().filter_map(move |content| Some((*content, self.list_of(*content)?)))
    }

    fn list_of(&self, content: BlockedContent) -> Option<&List> {
        match content {
            BlockedContent::Ads => self.lists.ads.as_ref(),
            BlockedContent::Trackers => self.lists.trackers.as_ref(),
            BlockedContent::Chats => built_in::chats(),
            BlockedContent::Social => built_in::social(),
            BlockedContent::CookieBanners => None,
        }
    }

    /// Records that the main frame loads this URL. Nothing is refused that is of the same site.
    pub(crate) fn add_document(&self, url: &str) {
        let Some((host, site)) = Url::parse(url).ok().as_ref().and_then(host_and_site) else { return };
        let mut inner = self.lock();
        if inner.own.len() < REMEMBERED {
            inner.own.insert(site);
        }
        (inner.page, inner.page_host) = (url.to_owned(), host);
    }

    /// Whether connections to this host are refused. Counts it if so.
    pub(crate) fn refuses_host(&self, host: &str) -> bool {
        let matches = |list: &List, inner: &Inner| list.blocks_host(host, &inner.page, &inner.page_host);
        self.has_lists() && self.decide(host, &site_of(host), matches)
    }

    /// Whether a list blocks a request. Counts it if so. `kind` is the browser's name of its type.
    pub(crate) fn blocks_url(&self, url: &str, kind: &str) -> bool {
        if !self.has_lists() {
            return false;
        }
        let kind = match kind {
            "Document" => "sub_frame",
            "Stylesheet" => "stylesheet",
            "Image" => "image",
            "Media" => "media",
            "Font" => "font",
            "Script" => "script",
            "XHR" | "Fetch" | "EventSource" => "xhr",
            "WebSocket" => "websocket",
            "Ping" => "ping",
            _ => "other",
        };
        self.decide(url, "", |list, inner| list.blocks_url(url, kind, &inner.page))
    }

    fn decide(&self, name: &str, site: &str, matches: impl Fn(&List, &Inner) -> bool) -> bool {
        let mut inner = self.lock();
        if inner.own.contains(site) {
            return false;
        }
        let matched = self.used().find(|(_, list)| matches(list, &inner)).map(|(content, _)| content);
        let count = match matched {
            None => return false,
            Some(BlockedContent::Ads) => &mut inner.counts.ads,
            Some(BlockedContent::Trackers) => &mut inner.counts.trackers,
            // Our own lists: they are a part of what the caller asks for, not of what the operator has installed.
            Some(BlockedContent::Chats | BlockedContent::Social | BlockedContent::CookieBanners) => {
                &mut inner.counts.asked
            }
        };
        *count = count.saturating_add(1);
        if inner.blocked.len() < REMEMBERED && name.len() <= MAX_URL_BYTES {
            inner.blocked.insert(name.to_owned());
        }
        true
    }

    /// Selectors of the elements that the lists hide, each once, in an order that does not change.
    pub(crate) fn hidden_selectors(&self, names: &PageNames) -> Vec<String> {
        let page = self.lock().page.clone();
        let found: BTreeSet<String> = self.used().flat_map(|(_, list)| list.hidden_selectors(&page, names)).collect();
        let mut left = MAX_SELECTORS_BYTES;
        let mut is_in_bounds = |selector: &String| match left.checked_sub(selector.len()) {
            Some(rest) if selector.len() <= MAX_SELECTOR_BYTES => {
                left = rest;
                true
            }
            Some(_) | None => false,
        };
        found.into_iter().filter(|selector| is_in_bounds(selector)).collect()
    }

    /// Whether a request for this URL was blocked by a list.
    pub(crate) fn has_blocked(&self, url: &str) -> bool {
        let inner = self.lock();
        inner.blocked.contains(url)
            || Url::parse(url)
                .ok()
                .as_ref()
                .and_then(host_and_site)
                .is_some_and(|(host, _)| inner.blocked.contains(&host))
    }

    /// Counts a request that the caller blocked.
    pub(crate) fn count_asked(&self) {
        let mut inner = self.lock();
        inner.counts.asked = inner.counts.asked.saturating_add(1);
    }

    /// The counts so far. `guard` is the number of requests that the guard refused.
    pub(crate) fn counts(&self, guard: u32) -> BlockedRequests {
        BlockedRequests { guard, ..self.lock().counts }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The host of a URL, without brackets, and its site.
fn host_and_site(url: &Url) -> Option<(String, String)> {
    let host = match url.host()? {
        Host::Domain(name) => name.trim_end_matches('.').to_owned(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    };
    let site = site_of(&host);
    Some((host, site))
}

/// The registrable domain of a host. An address, or a public suffix, is its own site.
fn site_of(host: &str) -> String {
    match host.parse::<std::net::IpAddr>() {
        Ok(_) => host.to_owned(),
        Err(_) => psl::domain_str(host).unwrap_or(host).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::{CaptureRequest, CaptureSpec};

    use super::*;

    fn blocklist(block: &[&str]) -> Option<Arc<Blocklist>> {
        let list = |text: &str| List::parse(text.to_owned()).ok();
        let lists =
            FilterLists { ads: list("||ads.example^\n/ad.png"), trackers: list("||ads.example^\n||t.example^") };
        let request = CaptureRequest {
            url: Some("https://www.page.example/".into()),
            block: Some(block.iter().map(|word| (*word).to_owned()).collect()),
            ..CaptureRequest::default()
        };
        let spec = CaptureSpec::parse(&request).unwrap();
        Blocklist::new(&spec.blocking, &Arc::new(lists), spec.url.as_str())
    }

    #[test]
    fn hosts_are_refused_and_counted_once_by_the_first_list() {
        let both = blocklist(&["ads", "trackers"]).unwrap();
        assert!(
            both.refuses_host("x.ads.example") && both.refuses_host("t.example") && !both.refuses_host("b.example")
        );
        assert!(both.blocks_url("https://b.example/ad.png", "Image"));
        both.count_asked();
        assert_eq!(both.counts(7), BlockedRequests { guard: 7, ads: 2, trackers: 1, asked: 1 });
        for (url, has_blocked) in [
            ("https://x.ads.example/y", true),
            ("https://b.example/ad.png", true),
            ("https://b.example/", false),
            ("data:x", false),
        ] {
            assert_eq!(both.has_blocked(url), has_blocked, "{url}");
        }
        let long = format!("https://b.example/ad.png?{}", "x".repeat(MAX_URL_BYTES));
        assert!(both.blocks_url(&long, "Image") && !both.has_blocked(&long), "long URLs are blocked, but not kept");
        let trackers = blocklist(&["trackers"]).unwrap();
        assert!(trackers.refuses_host("ads.example") && !trackers.blocks_url("https://b.example/ad.png", "Image"));
        assert_eq!(trackers.counts(0), BlockedRequests { trackers: 1, ..BlockedRequests::default() });
        let banners = blocklist(&["cookie_banners"]).unwrap();
        assert!(!banners.refuses_host("ads.example") && !banners.blocks_url("https://ads.example/", "Image"));
        assert!(blocklist(&[]).is_none());
    }

    #[test]
    fn chats_and_share_bars_need_no_list_of_the_operator_and_count_as_asked() {
        let both = blocklist(&["social", "chats"]).unwrap();
        assert!(both.has_lists() && both.refuses_host("widget.intercom.io") && both.refuses_host("s7.addthis.com"));
        assert!(!both.refuses_host("x.ads.example"));
        assert_eq!(both.counts(0), BlockedRequests { asked: 2, ..BlockedRequests::default() });
        let names = PageNames { classes: vec!["sharedaddy".into()], ids: vec!["tidio-chat".into()], is_first: true };
        let hidden = both.hidden_selectors(&names);
        assert!(["#tidio-chat", ".sharedaddy"].iter().all(|one| hidden.iter().any(|of| of == one)), "{hidden:?}");
        let ads = blocklist(&["ads"]).unwrap();
        assert!(!ads.refuses_host("widget.intercom.io"));
        both.add_document("https://www.intercom.io/");
        assert!(!both.refuses_host("widget.intercom.io"), "the vendor's own site is loaded");
    }

    #[test]
    fn hosts_of_main_documents_are_never_refused() {
        let ads = blocklist(&["ads"]).unwrap();
        assert!(ads.refuses_host("click.ads.example"));
        ads.add_document("https://click.ads.example/?to=x");
        assert!(!ads.refuses_host("click.ads.example") && !ads.refuses_host("cdn.ads.example"));
        assert_eq!(
            (site_of("a.b.co.uk"), site_of("127.0.0.1"), site_of("::1")),
            ("b.co.uk".into(), "127.0.0.1".into(), "::1".into())
        );
    }

    #[test]
    fn selectors_of_used_lists_are_sorted_and_bounded() {
        let long = format!("##.{}", "x".repeat(MAX_SELECTOR_BYTES));
        let many: Vec<String> = (0..100).map(|at| format!("##div[title=\"{at}{}\"]", "y".repeat(4000))).collect();
        let ads = format!("##.z\n##a[data-ad]\n{long}\npage.example##main > .both");
        let lists = FilterLists {
            ads: List::parse(ads).ok(),
            trackers: List::parse(format!("page.example##main > .both\n{}", many.join("\n"))).ok(),
        };
        let request = |block: &str| CaptureRequest {
            url: Some("https://www.page.example/".into()),
            block: Some(block.split(' ').map(str::to_owned).collect()),
            ..CaptureRequest::default()
        };
        let lists = Arc::new(lists);
        let names = PageNames { classes: vec!["z".into()], ids: vec!["q".into()], is_first: true };
        let selectors = |block: &str| {
            let spec = CaptureSpec::parse(&request(block)).unwrap();
            Blocklist::new(&spec.blocking, &lists, spec.url.as_str()).unwrap().hidden_selectors(&names)
        };
        assert_eq!(selectors("ads"), [".z", "a[data-ad]", "main > .both"]);
        assert!(selectors("cookie_banners").is_empty());
        let all = selectors("ads trackers");
        let bytes: usize = all.iter().map(String::len).sum();
        assert!(bytes > MAX_SELECTORS_BYTES / 2 && bytes <= MAX_SELECTORS_BYTES, "{bytes}");
        assert!(all.is_sorted() && all.iter().filter(|one| *one == "main > .both").count() == 1);
    }
}
