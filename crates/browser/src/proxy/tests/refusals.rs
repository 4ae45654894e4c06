//! Requests that are not forwarded, what the browser receives, and what is recorded.

use grabd_domain::address::AddressError;
use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_egress::EgressError;

use super::super::UnreachedTarget;
use super::*;
use crate::FilterLists;
use crate::blocklists::Blocklist;

fn unreached(host: &str, port: u16, refusal: EgressError) -> UnreachedTarget {
    UnreachedTarget { host: host.to_owned(), port, refusal }
}

#[tokio::test]
async fn refused_plain_request_is_closed_without_a_response() {
    let closed = TcpListener::bind("127.0.0.2:0").await.unwrap().local_addr().unwrap().port();
    let listener = listener().await;
    for url in [
        "http://127.0.0.1/".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://[::ffff:127.0.0.2]/".to_owned(),
        "http://0x7f.1/".to_owned(),
        "http://localhost/".to_owned(),
        "http://127.0.0.2:6379/".to_owned(),
        format!("http://127.0.0.2:{closed}/"),
        "http://site.example/".to_owned(),
    ] {
        assert_eq!(exchange(&listener, &format!("GET {url} HTTP/1.1\r\n\r\n")).await, "", "{url}");
    }
}

/// The port is open, so only the guard can have prevented the request.
#[tokio::test]
async fn every_request_of_a_persistent_connection_is_checked() {
    let (origin, listener) = (Origin::hello().await, listener().await);
    let forbidden = TcpListener::bind("127.0.0.3:0").await.unwrap();
    let mut browser = browser(&listener).await;
    browser.write_all(format!("GET {}/ HTTP/1.1\r\n\r\n", origin.url()).as_bytes()).await.unwrap();
    head(&mut browser).await.unwrap();
    read_exactly(&mut browser, 5).await;
    let at = forbidden.local_addr().unwrap();
    browser
        .write_all(format!("GET http://{at}/ HTTP/1.1\r\nHost: {}\r\n\r\n", origin.address).as_bytes())
        .await
        .unwrap();
    assert_eq!(read_to_end(&mut browser).await, "");
    assert!(listener.was_refused("127.0.0.3", at.port()));
    assert_eq!(origin.recorded().requests.len(), 1);
    // The same port on another address is another origin.
    let elsewhere = format!("GET http://127.0.0.3:{}/ HTTP/1.1\r\n\r\n", origin.address.port());
    assert_eq!(exchange(&listener, &elsewhere).await, "");
    assert_eq!(origin.recorded().requests.len(), 1);
}

#[tokio::test]
async fn invalid_requests_are_not_forwarded() {
    let (origin, listener) = (Origin::hello().await, listener().await);
    let at = origin.address;
    for request in [
        format!("GET / HTTP/1.1\r\nHost: {at}\r\n\r\n"),
        format!("GET http://me:secret@{at}/ HTTP/1.1\r\n\r\n"),
        format!("GET https://{at}/ HTTP/1.1\r\n\r\n"),
        format!("GET ftp://{at}/ HTTP/1.1\r\n\r\n"),
        format!("OPTIONS * HTTP/1.1\r\nHost: {at}\r\n\r\n"),
        format!("GET {at} HTTP/1.1\r\n\r\n"),
    ] {
        assert_eq!(exchange(&listener, &request).await, "", "{request}");
    }
    for request in ["CONNECT 127.0.0.2 HTTP/1.1\r\n\r\n".to_owned(), format!("CONNECT me@{at} HTTP/1.1\r\n\r\n")] {
        assert!(exchange(&listener, &request).await.starts_with("HTTP/1.1 403 "), "{request}");
    }
    assert_eq!(origin.recorded().connections, 0);
}

/// Requests that two parsers could interpret differently.
#[tokio::test]
async fn ambiguous_requests_are_rejected() {
    let (origin, listener) = (Origin::hello().await, listener().await);
    let site = origin.url();
    let hidden = "GET http://127.0.0.1/ HTTP/1.1\r\n\r\n";
    for request in [
        format!("POST {site}/ HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 34\r\n\r\n{hidden}"),
        format!("POST {site}/ HTTP/1.1\r\nContent-Length: 0, 34\r\n\r\n{hidden}"),
        format!("POST {site}/ HTTP/1.1\r\nContent-Length: +5\r\n\r\n{hidden}"),
        format!("POST {site}/ HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n{hidden}"),
        format!("POST {site}/ HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n{hidden}"),
        format!("GET {site}/ HTTP/1.1\r\nX-Folded: a\r\n b\r\n\r\n"),
        format!("GET {site}/ HTTP/1.1\r\nX-Space : a\r\n\r\n"),
        format!("GET {site}/ HTTP/1.1\r\nX: a\0b\r\n\r\n"),
        format!("GET  {site}/ HTTP/1.1\r\n\r\n"),
    ] {
        let answer = exchange(&listener, &request).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{request:?} -> {answer:?}");
    }
    assert_eq!(origin.recorded().connections, 0);
}

/// Transfer-Encoding wins, Content-Length is removed, and the connection is closed, so that nothing can be smuggled.
#[tokio::test]
async fn length_with_transfer_encoding_does_not_smuggle_a_request() {
    let (origin, listener) = (Origin::hello().await, listener().await);
    let request = format!(
        "POST {site}/ HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\
         GET {site}/hidden HTTP/1.1\r\n\r\n",
        site = origin.url()
    );
    let answer = exchange(&listener, &request).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 1, "{answer}");
    let recorded = origin.recorded().requests;
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    assert!(!recorded[0].to_ascii_lowercase().contains("content-length"), "{recorded:?}");
}

#[tokio::test]
async fn proxy_does_not_connect_to_itself() {
    let listener = proxy_allowing("127.0.0.0/8", Limits::default()).open().await.unwrap();
    let own = format!("127.99.0.1:{}", listener.port());
    assert_eq!(exchange(&listener, &format!("GET http://{own}/ HTTP/1.1\r\n\r\n")).await, "");
    assert!(exchange(&listener, &format!("CONNECT {own} HTTP/1.1\r\n\r\n")).await.starts_with("HTTP/1.1 403 "));
    let refusal = EgressError::Address { address: ADDRESS.into(), why: AddressError::Own };
    assert_eq!(listener.unreached(), vec![unreached("127.99.0.1", listener.port(), refusal); 2]);
}

#[tokio::test]
async fn unreached_targets_are_recorded_in_order() {
    let closed = TcpListener::bind("127.0.0.2:0").await.unwrap().local_addr().unwrap().port();
    let (origin, listener) = (Origin::hello().await, listener().await);
    let plain = |url: String| format!("GET {url} HTTP/1.1\r\nConnection: close\r\n\r\n");
    exchange(&listener, &plain(format!("{}/", origin.url()))).await;
    exchange(&listener, &plain("http://LOCALHOST.:8080/".to_owned())).await;
    exchange(&listener, "CONNECT [2001:DB8::1]:443 HTTP/1.1\r\n\r\n").await;
    exchange(&listener, "CONNECT 127.0.0.2:25 HTTP/1.1\r\n\r\n").await;
    exchange(&listener, &plain(format!("http://127.0.0.2:{closed}/"))).await;
    let documentation = EgressError::Address {
        address: "2001:db8::1".parse().unwrap(),
        why: AddressError::Reserved("documentation (RFC 3849)"),
    };
    assert_eq!(
        listener.unreached(),
        [
            unreached("localhost", 8080, EgressError::Name),
            unreached("2001:db8::1", 443, documentation),
            unreached("127.0.0.2", 25, EgressError::Port),
            unreached("127.0.0.2", closed, EgressError::ConnectFailed(std::io::ErrorKind::ConnectionRefused)),
        ]
    );
    assert_eq!(listener.refused_count(), 3);
    for (host, port) in [("localhost", 8080), ("Localhost.", 8080), ("[2001:db8::1]", 443), ("2001:db8:0::1", 443)] {
        assert!(listener.was_refused(host, port), "{host}");
    }
    // Not requested, or requested and merely unreachable.
    for (host, port) in
        [("localhost", 80), ("example.com", 443), ("127.0.0.2", closed), ("127.0.0.2", origin.address.port())]
    {
        assert!(!listener.was_refused(host, port), "{host}:{port}");
    }
}

#[tokio::test]
async fn refusals_are_recorded_per_grab() {
    let proxy = proxy(Limits::default());
    let (one, other) = (proxy.open().await.unwrap(), proxy.open().await.unwrap());
    exchange(&one, "GET http://10.0.0.1/ HTTP/1.1\r\n\r\n").await;
    assert!(one.was_refused("10.0.0.1", 80));
    assert!(!other.was_refused("10.0.0.1", 80));
    assert_eq!((one.refused_count(), other.refused_count()), (1, 0));
}

#[tokio::test]
async fn list_is_bounded_but_refusals_are_still_found() {
    let listener = listener().await;
    for port in 1000..1300 {
        exchange(&listener, &format!("GET http://10.0.0.1:{port}/ HTTP/1.1\r\n\r\n")).await;
    }
    assert_eq!(listener.unreached().len(), 256);
    assert_eq!(listener.refused_count(), 300);
    assert!(listener.was_refused("10.0.0.1", 1299));
}

#[tokio::test]
async fn deny_listener_refuses_allowed_targets() {
    let origin = Origin::hello().await;
    let listener = proxy(Limits::default()).open_deny().await.unwrap();
    assert_eq!(exchange(&listener, &format!("GET {}/ HTTP/1.1\r\n\r\n", origin.url())).await, "");
    let tunnel = format!("CONNECT {} HTTP/1.1\r\n\r\n", origin.address);
    assert!(exchange(&listener, &tunnel).await.starts_with("HTTP/1.1 403 "));
    assert_eq!(origin.recorded().connections, 0);
    assert_eq!(listener.refused_count(), 2);
    assert!(listener.was_refused("127.0.0.2", origin.address.port()));
}

#[tokio::test]
async fn listed_hosts_are_refused_without_a_connection_and_are_no_failures() {
    let (origin, listener) = (Origin::hello().await, listener().await);
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("ads.txt"), "||127.0.0.2^").unwrap();
    let (lists, _) = FilterLists::read(directory.path());
    let (url, block) = (Some("https://example.com/".into()), Some(vec!["ads".into()]));
    let spec = CaptureSpec::parse(&CaptureRequest { url, block, ..CaptureRequest::default() }).unwrap();
    let blocklist = Blocklist::new(&spec.blocking, &Arc::new(lists), spec.url.as_str()).unwrap();
    listener.set_blocklist(blocklist.clone());
    let (at, get) = (origin.address, format!("GET {}/ HTTP/1.1\r\n\r\n", origin.url()));
    let connect = format!("CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n\r\n");
    assert!(exchange(&listener, &connect).await.starts_with("HTTP/1.1 403 "));
    assert_eq!(exchange(&listener, &get).await, "");
    assert_eq!((blocklist.counts(0).ads, origin.recorded().connections), (2, 0));
    assert_eq!((listener.refused_count(), listener.unreached().len()), (0, 0));
    // The host of a document of the main frame.
    blocklist.add_document(&origin.url());
    let mut browser = browser(&listener).await;
    browser.write_all(get.as_bytes()).await.unwrap();
    assert!(head(&mut browser).await.unwrap().starts_with("HTTP/1.1 200 "));
}
