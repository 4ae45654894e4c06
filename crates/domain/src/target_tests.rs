use super::*;

/// Allows only the address of the test site.
fn policy() -> Policy {
    Policy { allow: vec!["127.0.0.2/32".parse().unwrap()], ..Policy::default() }
}

fn outcome(text: &str) -> &'static str {
    match check_url(text, &policy()) {
        Ok(_) => "allow",
        Err(fault) => fault.code().as_str(),
    }
}

#[test]
fn localhost_is_public_only_if_its_address_is_allowed() {
    let policy = |allow: &str| Policy { allow: vec![allow.parse().unwrap()], ..Policy::default() };
    for url in ["http://localhost:3000/", "http://app.localhost/"] {
        assert!(check_url(url, &policy("127.0.0.1/32")).is_ok() && check_url(url, &policy("::1/128")).is_ok(), "{url}");
        assert!(
            check_url(url, &policy("127.0.0.2/32")).is_err() && check_url(url, &Policy::default()).is_err(),
            "{url}"
        );
    }
    assert!(check_url("http://localhost.local/", &policy("127.0.0.1/32")).is_err());
}

#[test]
fn check_url_detects_hosts_that_are_not_public() {
    #[rustfmt::skip]
    let urls = [
        "http://127.0.0.1/", "https://127.0.0.1/", "http://127.0.0.1:80/", "http://127.0.0.1:8080/admin",
        "http://127.255.255.254/", "http://localhost/", "http://LOCALHOST/", "http://localhost./",
        "http://foo.localhost/", "http://ip6-localhost/", "http://%6c%6f%63%61%6c%68%6f%73%74/", "http://127.1/",
        "http://127.0.1/", "http://2130706433/", "http://0x7f000001/", "http://0x7F.0x0.0x0.0x1/",
        "http://0177.0.0.1/", "http://017700000001/", "http://0x7f.1/", "http://127.0.0.1./", "http://127.00.00.01/",
        "http://127%2e0%2e0%2e1/", "http://%31%32%37.0.0.1/",
        "http://\u{ff11}\u{ff12}\u{ff17}.\u{ff10}.\u{ff10}.\u{ff11}/", "http://127.0.0.1\u{ad}/", "http://0/",
        "http://0.0.0.0/", "http://0.1.2.3/", "http://00000000/", "http://[::1]/", "http://[::1]:8080/",
        "http://[0:0:0:0:0:0:0:1]/", "http://[0000:0000:0000:0000:0000:0000:0000:0001]/", "http://[::]/",
        "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::ffff:8.8.8.8]/", "http://[::127.0.0.1]/",
        "http://[::ffff:0:127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[64:ff9b::10.0.0.1]/",
        "http://[2002:7f00:1::]/", "http://[2002:a9fe:a9fe::1]/", "http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/",
        "http://[2001:db8::1]/", "http://[2001:1ff:ffff::1]/", "http://[3fff::1]/", "http://[3fff:fff:ffff::1]/",
        "http://[5f00::1]/", "http://[100::1]/", "http://[fc00::1]/", "http://[fd00:ec2::254]/latest/meta-data/",
        "http://[fd20:ce::254]/computeMetadata/v1/", "http://[fe80::1]/", "http://[febf::1]/", "http://[fec0::1]/",
        "http://[ff02::1]/", "http://10.0.0.1/", "http://10.255.255.255/", "http://172.16.0.1/",
        "http://172.31.255.255/", "http://192.168.0.1/", "http://3232235521/", "http://0300.0250.0.1/",
        "http://100.64.0.1/", "http://100.127.255.255/", "http://100.100.100.200/latest/meta-data/",
        "http://169.254.169.254/latest/meta-data/", "http://2852039166/", "http://0251.0376.0251.0376/",
        "http://169.254.43518/", "http://169.254.170.2/v2/credentials/", "http://168.63.129.16/",
        "http://192.0.0.1/", "http://192.0.2.1/", "http://192.88.99.1/", "http://198.18.0.1/",
        "http://198.19.255.255/", "http://198.51.100.1/", "http://203.0.113.1/", "http://224.0.0.1/",
        "http://239.255.255.250/", "http://240.0.0.1/", "http://255.255.255.255/",
        "http://metadata.google.internal/computeMetadata/v1/", "http://METADATA.GOOGLE.INTERNAL/",
        "http://metadata/", "http://instance-data/latest/meta-data/", "http://kubernetes.default.svc.cluster.local/",
        "http://host.docker.internal/", "http://printer.local/", "http://router.home.arpa/",
        "http://127.0.0.3:8801/",
    ];
    for url in urls {
        assert_eq!(outcome(url), "ssrf_detected", "{url}");
    }
}

#[test]
fn check_url_rejects_invalid_urls() {
    #[rustfmt::skip]
    let urls = [
        "http://[::1", "view-source:https://example.com/", "about:blank", "about:srcdoc", "javascript:alert(1)",
        "data:text/html,<h1>x</h1>", "blob:https://example.com/0", "wss://example.com/", "http://exa mple.com/",
        "/etc/passwd", "", "http://", "http:///", "http://?", "http://:80/", "http://%zz/", "http://exa%23mple.com/",
        "http://example.com:65536/", "http://example.com:-1/", "http://example.com:80a/",
    ];
    for url in urls {
        assert_eq!(outcome(url), "bad_request", "{url:?}");
    }
}

/// Ambiguous URLs. Either error is acceptable.
#[test]
fn check_url_rejects_ambiguous_urls() {
    #[rustfmt::skip]
    let urls = [
        "http://localhost:22/", "http://example.com@127.0.0.1/", "http://user:pass@127.0.0.1/",
        "http://example.com:80@127.0.0.1:8080/", "http://127.0.0.1:80\\@example.com/",
        "http://127.0.0.1#@example.com/", "http://127.0.0.1?@example.com/", "http://1.1.1.1 &@127.0.0.1# @3.3.3.3/",
        "http:///127.0.0.1/", "http:127.0.0.1/", "http:\\\\127.0.0.1\\", " http://127.0.0.1/",
        "\u{0}http://127.0.0.1/", "http://127.0.0.1:00080/", "http://[fe80::1%25eth0]/", "http://::1/",
        "http://[127.0.0.1]/", "file:///etc/passwd", "FILE:///etc/passwd", "file://localhost/etc/passwd",
        "\\\\localhost\\etc\\passwd", "view-source:http://127.0.0.1/", "chrome://version",
        "chrome-extension://abc/x.html", "filesystem:http://127.0.0.1/x", "ftp://127.0.0.1/",
        "dict://127.0.0.1:11211/stats", "ws://127.0.0.1/", "jar:http://127.0.0.1!/",
        "http+unix://%2Fvar%2Frun%2Fdocker.sock/info", "http://example.com%40127.0.0.1/", "ht\u{9}tp://127.0.0.1/",
        "http://127.0.0.1\u{0}.example.com/", "http://127.0.0.1%00.example.com/", "http://127.0.0.1%0d%0aHost:x/",
        "http://127.0.0.1 /", "//127.0.0.1/", "127.0.0.1", "localhost:8080", "http://./", "http://127.0.0.1../", "http://127.030.1%2E../",
        "http://localhost../", "http://256.256.256.256/",
        "http://4294967296/", "http://1.2.3.4.5/", "http://xn--/", "http://[::1]extra/", "http://example.com:0/",
        "http://example.com:22/", "http://example.com:25/", "http://example.com:6379/", "http://example.com:10080/",
    ];
    for url in urls {
        assert!(["bad_request", "ssrf_detected"].contains(&outcome(url)), "{url:?}");
    }
}

#[test]
fn check_url_allows_public_hosts() {
    #[rustfmt::skip]
    let urls = [
        "https://example.com/", "HTTPS://EXAMPLE.COM/", "http://example.com./", "https://example.com:443/x?y=1#z",
        "https://example.com:8443/", "http://example.com:8080/", "https://b\u{fc}cher.example.com/",
        "https://xn--bcher-kva.example.com/", "https://example.com/?url=http://127.0.0.1/",
        "https://example.com/http://169.254.169.254/", "https://127.0.0.1.example.com/", "https://10.example.com/",
        "http://127.0.0.2:8800/ok.png", "http://2130706434:8800/ok.png", "http://93.184.216.34/",
        "http://172.32.0.1/", "http://172.15.255.255/", "http://100.63.255.255/", "http://100.128.0.1/",
        "http://198.17.255.255/", "http://198.20.0.1/", "http://223.255.255.255/", "http://[2606:4700:4700::1111]/",
        "http://[2001:200::1]/", "http://[2003::1]/",
    ];
    for url in urls {
        assert_eq!(outcome(url), "allow", "{url}");
    }
}

#[test]
fn check_url_limits_the_length_of_urls_and_names() {
    let fits = format!("http://example.com/{}", "a".repeat(URL_BYTES - 19));
    assert_eq!(outcome(&fits), "allow");
    assert_eq!(outcome(&format!("{fits}a")), "bad_request");
    let escaped = format!("http://example.com/{}", "\u{e9}".repeat((URL_BYTES - 19) / 6));
    assert_eq!(outcome(&escaped), "allow");
    assert_eq!(outcome(&format!("{escaped}\u{e9}")), "bad_request");
    assert_eq!(outcome(&format!("http://{}.com/", "a".repeat(64))), "bad_request");
    assert_eq!(outcome(&format!("http://{}com/", "a.".repeat(126))), "bad_request");
}

#[test]
fn check_url_returns_the_normalized_url() {
    let url = |text| check_url(text, &policy()).unwrap();
    assert_eq!(url("HTTP://EXAMPLE.com:80/a%20b").as_str(), "http://example.com/a%20b");
    assert_eq!(url("http://example.com.:8080").host(), TargetHost::Name("example.com".into()));
    assert_eq!(url("https://example.com").port(), 443);
    assert_eq!(url("http://2130706434:8800/").host(), TargetHost::Address("127.0.0.2".parse().unwrap()));
}
