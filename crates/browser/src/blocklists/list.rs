//! One filter list.

use std::collections::HashMap;

use adblock::Engine;
use adblock::lists::{FilterSet, ParseOptions};
use adblock::request::Request;

use super::error::ListError;
use super::names::PageNames;

/// Maximum length of a rule in bytes. Longer ones are left out; the longest of EasyList has some thousand.
const MAX_RULE_BYTES: usize = 16 << 10;

/// Maximum number of rules. The rest is left out. EasyList has about ninety thousand.
const MAX_RULES: usize = 500_000;

/// A parsed list.
pub(super) struct List {
    engine: Engine,
    /// The conditions of the exceptions for URLs of a host and of its subdomains.
    exceptions: HashMap<String, Vec<Exception>>,
    rules: usize,
}

/// An exception for some URLs of a host.
struct Exception {
    /// The hosts of the pages on which it holds. Empty: on all pages.
    pages: Vec<String>,
}

impl List {
    /// Parses a list.
    ///
    /// # Errors
    /// If it has no rules.
    pub(super) fn parse(mut text: String) -> Result<Self, ListError> {
        if text.trim_start().starts_with('<') {
            return Err(ListError::WebPage);
        }
        let is_rule = |line: &&str| !line.is_empty() && !line.starts_with(['!', '[']) && line.len() <= MAX_RULE_BYTES;
        let mut exceptions: HashMap<String, Vec<Exception>> = HashMap::new();
        let mut rules = 0;
        for rule in text.lines().map(str::trim).filter(is_rule).take(MAX_RULES) {
            rules += 1;
            if let Some((host, exception)) = exception(rule) {
                exceptions.entry(host).or_default().push(exception);
            }
        }
        if rules == 0 {
            return Err(ListError::Empty);
        }
        let is_bounded = text.lines().count() <= MAX_RULES && text.lines().all(|line| line.len() <= MAX_RULE_BYTES);
        if !is_bounded {
            let kept: Vec<&str> = text.lines().map(str::trim).filter(is_rule).take(MAX_RULES).collect();
            text = kept.join("\n");
        }
        let mut set = FilterSet::new(false);
        set.add_filter_list(text, ParseOptions::default());
        Ok(Self { engine: Engine::new_with_filter_set(set), exceptions, rules })
    }

    /// The number of lines that are neither comments nor empty.
    pub(super) fn rules(&self) -> usize {
        self.rules
    }

    /// Whether everything from this host is blocked on the page `source`. The host may be an IPv6 address without
    /// brackets. A host with an exception for some of its URLs is not blocked: which of them is requested is not known.
    pub(super) fn blocks_host(&self, host: &str, source: &str, source_host: &str) -> bool {
        let url = if host.contains(':') { format!("https://[{host}]/") } else { format!("https://{host}/") };
        self.blocks_url(&url, "other", source) && !self.has_exception(host, source_host)
    }

    /// Whether a request is blocked on the page `source`. `kind` is a type of requests in the syntax of lists.
    pub(super) fn blocks_url(&self, url: &str, kind: &str, source: &str) -> bool {
        let Ok(request) = Request::new(url, source, kind, "GET") else { return false };
        self.engine.check_network_request(&request).should_block()
    }

    /// Selectors of what the list hides on the page `source`: those for the given classes and ids, and, with the first of
    /// them, those that do not depend on one. Rules with conditions that CSS does not have, and scripts, are not applied.
    pub(super) fn hidden_selectors(&self, source: &str, names: &PageNames) -> Vec<String> {
        let resources = self.engine.url_cosmetic_resources(source);
        let mut selectors = match resources.generichide {
            true => Vec::new(),
            false => self.engine.hidden_class_id_selectors(&names.classes, &names.ids, &resources.exceptions),
        };
        if names.is_first {
            selectors.extend(resources.hide_selectors);
        }
        selectors
    }

    fn has_exception(&self, host: &str, source_host: &str) -> bool {
        let holds = |exception: &Exception| {
            exception.pages.is_empty() || exception.pages.iter().any(|page| is_within(source_host, page))
        };
        parents(host).any(|host| self.exceptions.get(host).is_some_and(|of| of.iter().any(holds)))
    }
}

/// A host and the domains that it belongs to.
fn parents(host: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(host), |host| host.split_once('.').map(|(_, parent)| parent))
}

/// Whether a host is a domain or one of its subdomains.
fn is_within(host: &str, domain: &str) -> bool {
    parents(host).any(|of| of == domain)
}

/// The host of an exception and its condition, from `@@||host/path$domain=a.example|b.example`.
fn exception(rule: &str) -> Option<(String, Exception)> {
    let rule = rule.strip_prefix("@@||")?;
    let (pattern, options) = rule.rsplit_once('$').unwrap_or((rule, ""));
    let host = pattern.split(['/', '^', '*', '?', ':', '|']).next()?.to_ascii_lowercase();
    let pages = options.split(',').filter_map(|option| {
        option.strip_prefix("domain=").or_else(|| option.strip_prefix("from=")).map(|pages| pages.split('|'))
    });
    let pages = pages.flatten().filter(|page| !page.starts_with('~')).map(str::to_ascii_lowercase).collect();
    Some((host, Exception { pages }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "https://page.example/a";

    fn blocks(list: &str, host: &str) -> bool {
        List::parse(list.to_owned()).unwrap().blocks_host(host, PAGE, "page.example")
    }

    #[test]
    fn hosts_are_blocked_by_rules_for_the_whole_host() {
        let list = "||ads.example^\n||third.example^$third-party\n||typed.example^$image\n||path.example/ads/\n||127.0.0.3^\n/banner/";
        for (host, is_blocked) in [
            ("ads.example", true),
            ("sub.ads.example", true),
            ("notads.example", false),
            ("third.example", true),
            ("typed.example", false),
            ("path.example", false),
            ("127.0.0.3", true),
            ("127.0.0.4", false),
            ("::1", false),
        ] {
            assert_eq!(blocks(list, host), is_blocked, "{host}");
        }
        let list = List::parse("||third.example^$third-party".to_owned()).unwrap();
        assert!(!list.blocks_host("cdn.third.example", "https://www.third.example/", "www.third.example"));
    }

    #[test]
    fn hosts_with_exceptions_for_some_urls_are_not_blocked() {
        for (exception, is_blocked) in [
            ("@@||ads.example^", false),
            ("@@||ads.example/needed.js", false),
            ("@@||ads.example^$script", false),
            ("@@||cdn.ads.example/x$script,domain=page.example|b.example", false),
            ("@@||ads.example/x$domain=b.example", true),
            ("@@||ads.example/x$domain=~page.example", false),
            ("@@||other.example/x", true),
        ] {
            assert_eq!(blocks(&format!("||ads.example^\n{exception}"), "cdn.ads.example"), is_blocked, "{exception}");
        }
    }

    #[test]
    fn urls_are_blocked_by_their_path_and_type() {
        let list =
            List::parse("/banner/*$image\n@@||good.example/banner/\n||frame.example^$subdocument".into()).unwrap();
        assert!(list.blocks_url("https://x.example/banner/1.png", "image", PAGE));
        assert!(!list.blocks_url("https://x.example/banner/1.png", "script", PAGE));
        assert!(!list.blocks_url("https://good.example/banner/1.png", "image", PAGE));
        assert!(list.blocks_url("https://frame.example/", "sub_frame", PAGE));
        assert!(!list.blocks_url("not a URL", "image", PAGE));
    }

    #[test]
    fn long_rules_are_left_out() {
        let list = List::parse(format!("||a.example^\n||{}^\n||b.example^", "x".repeat(MAX_RULE_BYTES))).unwrap();
        assert_eq!(list.rules(), 2);
        assert!(list.blocks_host("b.example", PAGE, "page.example"));
    }

    fn hidden(list: &str, classes: &[&str], is_first: bool) -> Vec<String> {
        let classes = classes.iter().map(|name| (*name).to_owned()).collect();
        let names = PageNames { classes, ids: vec!["box".to_owned()], is_first };
        let mut selectors = List::parse(list.to_owned()).unwrap().hidden_selectors(PAGE, &names);
        selectors.sort();
        selectors
    }

    #[test]
    fn selectors_are_those_of_the_page_and_of_its_names() {
        let list = "##.ad\n##.ad > p\n###box\n##.other\n##[data-ad]\npage.example##.mine\nb.example##.theirs\n\
                    page.example##+js(abort, x)\n||ads.example^";
        assert_eq!(hidden(list, &["ad"], true), ["#box", ".ad", ".ad > p", ".mine", "[data-ad]"]);
        assert_eq!(hidden(list, &["new", "other"], false), ["#box", ".other"], "the rest was returned before");
        let excepted = format!("{list}\npage.example#@#.ad\npage.example#@#[data-ad]\nb.example#@##box");
        assert_eq!(hidden(&excepted, &["ad"], true), ["#box", ".ad > p", ".mine"]);
        let specific = format!("{list}\n@@||page.example^$generichide");
        assert_eq!(hidden(&specific, &["ad"], true), [".mine"]);
        assert!(hidden("||ads.example^", &["ad"], true).is_empty());
    }
}
