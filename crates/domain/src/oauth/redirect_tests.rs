use super::*;

#[test]
fn parse_accepts_valid_redirect_uris() {
    for text in [
        "https://claude.ai/api/mcp/auth_callback",
        "https://example.com",
        "https://example.com:8443/cb?a=b&c=%20d",
        "https://xn--bcher-kva.example/cb",
        "https://127.0.0.1/cb",
        "http://127.0.0.1/cb",
        "http://127.0.0.1:33418",
        "http://127.0.0.1:33418/",
        "http://localhost:6274/oauth/callback",
        "http://[::1]:8080/cb",
        "com.example.app:/oauth",
        "com.example.app://oauth/cb",
        "com.example-2.app:cb",
        "cursor://anysphere.cursor-retrieval/oauth/user-abc/callback",
        "vscode://vscode.github-authentication/did-authenticate",
        "vscode-insiders://x/y",
        "windsurf://x",
    ] {
        assert_eq!(RedirectUri::parse(text).map(|uri| uri.to_string()), Ok(text.to_owned()));
    }
}

#[test]
fn parse_rejects_invalid_redirect_uris() {
    use RedirectError::{Fragment, Host, Insecure, Scheme, Text, UserInfo, Wildcard};
    let long = format!("https://example.com/{}", "a".repeat(MAX_BYTES));
    for (text, why) in [
        ("", Text),
        ("/cb", Text),
        ("example.com/cb", Text),
        ("//example.com/cb", Text),
        (&long, Text),
        ("https://example.com/a b", Text),
        (" https://example.com/", Text),
        ("https://example.com/\n", Text),
        ("https://example.com\\@evil.example/", Text),
        ("https://bücher.example/", Text),
        // A Cyrillic letter that looks like a Latin one.
        ("https://ex\u{430}mple.com/cb", Text),
        // An ideographic full stop, which some parsers treat as a dot.
        ("https://example\u{3002}com/cb", Text),
        ("https://example.com/\u{202e}", Text),
        ("https://example.com/\"><script>", Text),
        ("https://example.com/cb#", Fragment),
        ("https://example.com/cb#x", Fragment),
        ("https://*.example.com/cb", Wildcard),
        ("https://example.com/*", Wildcard),
        ("https://user@example.com/cb", UserInfo),
        ("https://user:password@example.com/cb", UserInfo),
        ("https://@example.com/cb", UserInfo),
        ("https://claude.ai@evil.example/cb", UserInfo),
        ("http://localhost@evil.example/cb", UserInfo),
        ("com.example.app://user@host/cb", UserInfo),
        ("https:example.com/cb", Host),
        ("https:/example.com/cb", Host),
        ("https:///example.com/cb", Host),
        ("https://", Text),
        ("https://EXAMPLE.com/cb", Host),
        ("https://ex%61mple.com/cb", Host),
        ("https://0x7f.1/cb", Host),
        ("https://2130706433/cb", Host),
        ("https://example.com:/cb", Host),
        ("https://example.com:0/cb", Host),
        ("https://example.com:65536/cb", Text),
        ("https://example.com:+80/cb", Text),
        ("https://example.com:08443/cb", Host),
        ("http://127.1/cb", Host),
        ("http://127.0.0.01/cb", Host),
        ("http://[0:0:0:0:0:0:0:1]/cb", Host),
        ("http://LOCALHOST/cb", Host),
        ("http://example.com/cb", Insecure),
        ("http://127.0.0.2/cb", Insecure),
        ("http://0.0.0.0/cb", Insecure),
        ("http://localhost./cb", Insecure),
        ("http://localhost.example.com/cb", Insecure),
        ("http://127.0.0.1.example.com/cb", Insecure),
        ("http://[::ffff:7f00:1]/cb", Insecure),
        ("HTTPS://example.com/cb", Scheme),
        ("HTTP://localhost/cb", Scheme),
        ("javascript:alert(1)", Scheme),
        ("data:text/html,x", Scheme),
        ("file:///etc/passwd", Scheme),
        ("blob:https://example.com/x", Scheme),
        ("about:blank", Scheme),
        ("ftp://example.com/", Scheme),
        ("ws://localhost/", Scheme),
        ("myapp://callback", Scheme),
        ("cursor2://callback", Scheme),
        ("javascript.:alert(1)", Scheme),
        (".app:/x", Scheme),
        ("Com.Example.App:/x", Scheme),
        ("com.example_app:/x", Scheme),
        ("1com.example:/x", Scheme),
        ("com.example.app:", Text),
        ("com.example.app://", Text),
        ("cursor:", Text),
    ] {
        assert_eq!(RedirectUri::parse(text), Err(why), "{text}");
    }
}

#[test]
fn matches_requires_identical_uris_except_loopback_ports() {
    let uri = |text| RedirectUri::parse(text).unwrap();
    for (registered, requested, matches) in [
        ("https://a.example/cb", "https://a.example/cb", true),
        ("https://a.example/cb", "https://a.example/cb/", false),
        ("https://a.example", "https://a.example/", false),
        ("https://a.example/cb", "https://a.example/cb?x=1", false),
        ("https://a.example/cb", "https://a.example/CB", false),
        ("https://a.example/cb", "https://a.example/x/../cb", false),
        ("https://a.example/cb", "https://a.example/c%62", false),
        ("https://a.example/cb", "https://a.example:443/cb", false),
        ("https://a.example/cb", "https://a.example:8443/cb", false),
        ("https://a.example/cb", "https://b.a.example/cb", false),
        ("https://a.example/cb", "https://a.example.evil.example/cb", false),
        ("https://127.0.0.1/cb", "https://127.0.0.1:8443/cb", false),
        ("http://127.0.0.1/cb", "http://127.0.0.1:1234/cb", true),
        ("http://127.0.0.1:80/cb", "http://127.0.0.1:1234/cb", true),
        ("http://127.0.0.1:1234/cb", "http://127.0.0.1/cb", true),
        ("http://localhost:1/cb", "http://localhost:2/cb", true),
        ("http://[::1]:1/cb", "http://[::1]:2/cb", true),
        ("http://localhost/cb?x=1", "http://localhost:2/cb?x=1", true),
        ("http://localhost/cb?x=1", "http://localhost:2/cb?x=2", false),
        ("http://localhost/cb", "http://localhost:2/cb/", false),
        ("http://localhost/cb", "http://localhost:2/", false),
        ("http://localhost", "http://localhost:2/", false),
        ("http://localhost", "http://localhost:2", true),
        ("http://localhost/cb", "http://127.0.0.1/cb", false),
        ("http://127.0.0.1/cb", "http://localhost/cb", false),
        ("http://127.0.0.1/cb", "http://[::1]/cb", false),
        ("http://localhost/cb", "https://localhost/cb", false),
        ("com.example.app:/cb", "com.example.app:/cb", true),
        ("com.example.app:/cb", "com.example.app:/cb2", false),
        ("com.example.app://host:1/cb", "com.example.app://host:2/cb", false),
        ("cursor://x/cb", "vscode://x/cb", false),
    ] {
        assert_eq!(uri(registered).matches(&uri(requested)), matches, "{registered} {requested}");
    }
}

#[test]
fn with_query_appends_to_an_existing_query() {
    for (text, expected) in [
        ("https://a.example/cb", "https://a.example/cb?code=c&state=a%26b+%C3%A9"),
        ("https://a.example/cb?x=1", "https://a.example/cb?x=1&code=c&state=a%26b+%C3%A9"),
        ("https://a.example/cb?", "https://a.example/cb?code=c&state=a%26b+%C3%A9"),
        ("https://a.example", "https://a.example?code=c&state=a%26b+%C3%A9"),
        ("com.example.app:/cb", "com.example.app:/cb?code=c&state=a%26b+%C3%A9"),
    ] {
        assert_eq!(RedirectUri::parse(text).unwrap().with_query(&[("code", "c"), ("state", "a&b é")]), expected);
    }
}

#[test]
fn display_location_and_csp_source_depend_on_the_kind() {
    for (text, location, source, is_loopback) in [
        ("https://a.example:8443/cb", "a.example:8443", "https://a.example:8443", false),
        ("http://127.0.0.1:1234/cb", "127.0.0.1:1234", "http://127.0.0.1:1234", true),
        ("http://[::1]:1234/cb", "[::1]:1234", "http:", true),
        ("com.example.app:/cb", "com.example.app", "com.example.app:", false),
        ("cursor://x/cb", "cursor", "cursor:", false),
    ] {
        let uri = RedirectUri::parse(text).unwrap();
        assert_eq!(
            (uri.display_location(), uri.origin_or_scheme().as_str(), uri.is_loopback()),
            (location, source, is_loopback)
        );
    }
}
