//! Guesses the browser and system from a User-Agent header. For display only; no decision depends on it.

/// User-Agent tokens, in the order of specificity: later tokens also appear in the headers of earlier browsers.
const BROWSERS: [(&str, &str); 7] = [
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("HeadlessChrome/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("CriOS/", "Chrome"),
    ("Safari/", "Safari"),
];
const SYSTEMS: [(&str, &str); 7] = [
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
];
/// Maximum length of an unrecognised User-Agent.
const MAX_CHARS: usize = 60;

/// A description such as `Firefox on Linux`, or the beginning of the header if it is not recognised.
pub(crate) fn describe(agent: Option<&str>) -> String {
    let Some(agent) = agent.filter(|agent| !agent.trim().is_empty()) else {
        return "Unknown browser".to_owned();
    };
    let find =
        |known: &[(&str, &'static str)]| known.iter().find(|(token, _)| agent.contains(token)).map(|(_, name)| *name);
    match (find(&BROWSERS), find(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        (None, _) => agent.chars().take(MAX_CHARS).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describe_names_known_browsers_and_systems() {
        for (agent, expected) in [
            ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 \
                 Safari/537.36 Edg/140.0.0.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) \
                 Version/18.0 Mobile/15E148 Safari/604.1",
                "Safari on iPhone",
            ),
            (
                "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36",
                "Chrome on Android",
            ),
            ("curl/8.5.0", "curl/8.5.0"),
            ("", "Unknown browser"),
        ] {
            assert_eq!(describe(Some(agent)), expected);
        }
        assert_eq!(describe(Some(&"x".repeat(500))).len(), MAX_CHARS);
        assert_eq!(describe(None), "Unknown browser");
    }
}
