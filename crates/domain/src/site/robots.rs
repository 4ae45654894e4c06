//! Reads the robots.txt of a host (RFC 9309).

use std::time::Duration;

use super::address::path_and_query;
use super::glob::{Extent, comparable_path, comparable_pattern, matches};
use crate::target::TargetUrl;

/// What is read of a robots.txt, in bytes. The rest is left out, as RFC 9309 allows.
pub const ROBOTS_BYTES: usize = 500 << 10;
/// The longest time between two requests that a robots.txt may ask for. Longer ones are shortened.
pub const MAX_CRAWL_DELAY: Duration = Duration::from_secs(60);
/// The name under which a robots.txt has rules for this service.
const PRODUCT: &str = "grabd";
/// The address that is always allowed.
const ROBOTS_PATH: &str = "/robots.txt";

/// The rules of a host for this service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Robots {
    rules: Vec<Rule>,
    crawl_delay: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    /// In the form in which it is compared, without a final `$`.
    pattern: String,
    extent: Extent,
    is_allowed: bool,
}

/// For whom a group of rules is.
#[derive(Clone, Copy, Default)]
struct Group {
    is_for_this: bool,
    is_for_all: bool,
    /// Whether a rule has followed, so that the next name begins another group.
    has_rules: bool,
}

impl Robots {
    /// Reads the text. Lines that are not understood are left out. Of several groups for the same name, all rules count.
    pub fn parse(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&text[..text.len().min(ROBOTS_BYTES)]);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let (mut own, mut general, mut has_own) = (Self::default(), Self::default(), false);
        let mut group = Group::default();
        for line in text.split(['\r', '\n']) {
            let line = line.split_once('#').map_or(line, |(line, _)| line);
            let Some((key, value)) = line.split_once(':').or_else(|| without_colon(line)) else { continue };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            match key.as_str() {
                "user-agent" => {
                    if group.has_rules {
                        group = Group::default();
                    }
                    let is_for_this = product_of(value).eq_ignore_ascii_case(PRODUCT);
                    group.is_for_this |= is_for_this;
                    group.is_for_all |= value == "*";
                    has_own |= is_for_this;
                }
                "allow" | "disallow" | "crawl-delay" => {
                    group.has_rules = true;
                    for (is_for, robots) in [(group.is_for_this, &mut own), (group.is_for_all, &mut general)] {
                        if is_for {
                            robots.add(&key, value);
                        }
                    }
                }
                // Others, such as `sitemap`, do not end a group.
                _ => {}
            }
        }
        if has_own { own } else { general }
    }

    fn add(&mut self, key: &str, value: &str) {
        if key == "crawl-delay" {
            let seconds: Option<f64> = value.parse().ok();
            let delay = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            // Too long for a duration, or no number at all.
            let Some(delay) = delay else { return };
            self.crawl_delay = Some(self.crawl_delay.unwrap_or_default().max(delay.min(MAX_CRAWL_DELAY)));
            return;
        }
        // An empty rule matches nothing.
        if !value.starts_with(['/', '*', '$']) {
            return;
        }
        let (pattern, extent) = match value.strip_suffix('$') {
            Some(pattern) => (pattern, Extent::Whole),
            None => (value, Extent::Beginning),
        };
        self.rules.push(Rule { pattern: comparable_pattern(pattern), extent, is_allowed: key == "allow" });
    }

    /// Whether an address of the host may be requested: the longest matching rule decides, and of two that are equally long the one
    /// that allows.
    pub fn allows(&self, url: &TargetUrl) -> bool {
        let path = comparable_path(path_and_query(url));
        if path == ROBOTS_PATH {
            return true;
        }
        let matching = self.rules.iter().filter(|rule| matches(&rule.pattern, &path, rule.extent));
        matching.map(|rule| (rule.length(), rule.is_allowed)).max().is_none_or(|(_, is_allowed)| is_allowed)
    }

    /// About how many bytes of memory the rules take.
    pub fn memory_bytes(&self) -> usize {
        self.rules.iter().map(|rule| size_of::<Rule>() + rule.pattern.len()).sum()
    }

    /// The time between two requests that the host asks for, at most [`MAX_CRAWL_DELAY`].
    pub const fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }
}

impl Rule {
    /// The number of bytes that decides which rule is the most specific one.
    fn length(&self) -> usize {
        self.pattern.len() + usize::from(self.extent == Extent::Whole)
    }
}

/// The key and the value of a line whose colon is missing, which other robots understand, too.
fn without_colon(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_ascii_whitespace();
    let pair = (words.next()?, words.next()?);
    words.next().is_none().then_some(pair)
}

/// The product token at the beginning of a name, such as `grabd` of `grabd/1.0`.
fn product_of(value: &str) -> &str {
    let end = value.find(|char: char| !char.is_ascii_alphabetic() && !matches!(char, '-' | '_'));
    &value[..end.unwrap_or(value.len())]
}

#[cfg(test)]
mod tests {
    use super::super::address::normal_address;
    use super::*;

    fn allowed(robots: &str, path: &str) -> bool {
        let url = normal_address(&format!("https://example.com{path}")).unwrap();
        Robots::parse(robots.as_bytes()).allows(&url)
    }

    #[test]
    fn groups_of_the_same_name_are_combined() {
        // RFC 9309, section 2.2.1, with the name of this service.
        let robots = "user-agent: grabd\ndisallow: /foo\ndisallow: /bar\n\nuser-agent: BazBot\ndisallow: /baz\n\n\
                      user-agent: GRABD\ndisallow: /qux\n";
        for (path, expected) in [("/foo", false), ("/bar/a", false), ("/qux", false), ("/baz", true), ("/", true)] {
            assert_eq!(allowed(robots, path), expected, "{path}");
        }
    }

    #[test]
    fn group_of_the_name_excludes_that_of_all() {
        // RFC 9309, section 5.1.
        let robots = "User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n\
                      User-Agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n\n\
                      User-Agent: barbot\nUser-Agent: bazbot\nDisallow: /example/page.html\n\n\
                      User-Agent: quxbot\n";
        for (path, expected) in [
            ("/example/page.html", false),
            ("/publications/a", true),
            ("/a.gif", false),
            ("/a.gif?b", true),
            ("/publications/a.gif", true),
            ("/", true),
        ] {
            assert_eq!(allowed(robots, path), expected, "{path}");
        }
        let named = robots.replace("foobot", "grabd/2.0");
        for (path, expected) in
            [("/", false), ("/publications/a", false), ("/example/page.html", true), ("/example/allowed.gif", true)]
        {
            assert_eq!(allowed(&named, path), expected, "{path}");
        }
        let shared = robots.replace("barbot", "Grabd");
        assert!(!allowed(&shared, "/example/page.html") && allowed(&shared, "/example/"));
        // A group without rules allows all.
        assert!(allowed(&robots.replace("quxbot", "grabd"), "/example/"));
    }

    #[test]
    fn longest_match_decides() {
        // RFC 9309, section 5.2.
        let robots = "User-Agent: grabd\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n";
        assert!(!allowed(robots, "/example/page/disallowed.gif"));
        assert!(allowed(robots, "/example/page/allowed.gif"));
        let tie = "User-agent: *\nDisallow: /page\nAllow: /page\n";
        assert!(allowed(tie, "/page"), "of two rules of the same length, the one that allows decides");
    }

    #[test]
    fn colon_may_be_missing() {
        let robots = "user-agent grabd\n  disallow   /private\nallow /private/but this\n";
        assert!(!allowed(robots, "/private/but") && allowed(robots, "/"));
    }

    #[test]
    fn special_characters_and_encodings_are_understood() {
        // RFC 9309, sections 2.2.2 and 2.2.3.
        for (rules, path, expected) in [
            ("Disallow: /path/file-with-a-%2A.html", "/path/file-with-a-*.html", false),
            ("Disallow: /path/file-with-a-%2A.html", "/path/file-with-a-%2A.html", false),
            ("Disallow: /path/foo-%24", "/path/foo-$", false),
            ("Disallow: /path/foo-%24", "/path/foo-%24", false),
            ("Disallow: /path/$foo", "/path/$foo", false),
            ("Disallow: /foo/bar/\u{30c4}", "/foo/bar/%E3%83%84", false),
            ("Disallow: /foo/bar/%E3%83%84", "/foo/bar/\u{30c4}", false),
            ("Disallow: /foo/bar/%62%61%7A", "/foo/bar/baz", false),
            ("Disallow: /foo # a comment", "/foo", false),
            ("Allow: /this/*/exactly\nDisallow: /", "/this/path/exactly", true),
            ("Allow: /this/path/exactly$\nDisallow: /", "/this/path/exactly/more", false),
            ("Disallow:", "/", true),
            ("Disallow: a", "/a", true),
            ("Disallow: /", "/robots.txt", true),
            ("disallow all", "/", true),
        ] {
            assert_eq!(allowed(&format!("User-agent: *\n{rules}\n"), path), expected, "{rules} {path}");
        }
        assert!(!allowed("\u{feff}user-agent:*\r\nSitemap: https://example.com/s\r\nDISALLOW:/\r\n", "/"));
        assert!(allowed("Disallow: /", "/"), "a rule without a name is for nobody");
        assert!(allowed("", "/") && allowed("\u{0}\u{1}", "/"));
    }

    #[test]
    fn delay_is_bounded() {
        let delay = |value: &str| {
            let robots = format!("User-agent: *\nCrawl-delay: {value}\n");
            Robots::parse(robots.as_bytes()).crawl_delay()
        };
        assert_eq!(delay("2.5"), Some(Duration::from_millis(2500)));
        assert_eq!(delay("3600"), Some(MAX_CRAWL_DELAY));
        for value in ["", "-1", "soon", "NaN"] {
            assert_eq!(delay(value), None, "{value}");
        }
    }

    #[test]
    fn rules_beyond_the_limit_are_left_out() {
        let robots = format!("User-agent: *\n{}\nDisallow: /\n", "#".repeat(ROBOTS_BYTES));
        assert!(allowed(&robots, "/"));
        // Patterns of an attacker are matched in a time that is linear in the address.
        let hostile = format!("User-agent: *\nDisallow: /{}b\n", "*a".repeat(200_000));
        assert!(allowed(&hostile, &format!("/{}", "a".repeat(1900))));
    }
}
