//! Forwarding of plain requests and their responses.

use super::*;

#[tokio::test]
async fn origin_receives_the_request_of_a_browser_without_a_proxy() {
    let (origin, listener) = (Origin::hello().await, listener().await);
    let (site, at) = (origin.url(), origin.address);
    let mut browser = browser(&listener).await;
    let request = format!(
        "GET {site}/a%20b?c=d|`&e HTTP/1.1\r\nHost: elsewhere.example\r\nProxy-Connection: keep-alive\r\n\
         Upgrade-Insecure-Requests: 1\r\nUser-Agent: Chrome\r\nX-oDD-case: 1\r\nAccept-Encoding: gzip\r\nCookie: a=b\r\n\r\n"
    );
    browser.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(head(&mut browser).await.unwrap(), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(read_exactly(&mut browser, 5).await, "hello");
    assert_eq!(
        origin.recorded().requests,
        [format!(
            "GET /a%20b?c=d|`&e HTTP/1.1\r\nHost: {at}\r\nConnection: keep-alive\r\nUpgrade-Insecure-Requests: 1\r\n\
             User-Agent: Chrome\r\nX-oDD-case: 1\r\nAccept-Encoding: gzip\r\nCookie: a=b\r\n\r\n"
        )]
    );
}

#[tokio::test]
async fn hop_by_hop_fields_are_not_forwarded() {
    let origin = Origin::start(|_| {
        Some(
            "HTTP/1.1 200 Fine\r\nX-One: 1\r\nConnection: X-Hop\r\nX-Hop: 1\r\nProxy-Authenticate: Basic\r\n\
             Keep-Alive: timeout=5\r\nset-cookie: a\r\nSet-Cookie: b\r\nContent-Length: 0\r\n\r\n"
                .to_owned(),
        )
    })
    .await;
    let listener = listener().await;
    let mut browser = browser(&listener).await;
    let request = format!(
        "GET {}/ HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic eA==\r\nConnection: X-Mine\r\nX-Mine: 1\r\n\
         Upgrade: websocket\r\nTE: trailers\r\n\r\n",
        origin.url()
    );
    browser.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(
        head(&mut browser).await.unwrap(),
        "HTTP/1.1 200 Fine\r\nX-One: 1\r\nset-cookie: a\r\nSet-Cookie: b\r\nContent-Length: 0\r\n\r\n"
    );
    let expected = format!("GET / HTTP/1.1\r\nHost: {}\r\nConnection: keep-alive\r\n\r\n", origin.address);
    assert_eq!(origin.recorded().requests, [expected]);
}

#[tokio::test]
async fn requests_on_one_connection_share_one_origin_connection() {
    let (origin, listener) = (Origin::hello().await, listener().await);
    let mut browser = browser(&listener).await;
    for _ in 0..3 {
        browser.write_all(format!("GET {}/ HTTP/1.1\r\n\r\n", origin.url()).as_bytes()).await.unwrap();
        head(&mut browser).await.unwrap();
        read_exactly(&mut browser, 5).await;
    }
    assert_eq!((origin.recorded().connections, origin.recorded().requests.len()), (1, 3));
}

#[tokio::test]
async fn closed_origin_connection_is_reopened() {
    let closing = "HTTP/1.0 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
    let (origin, listener) = (Origin::start(move |_| Some(closing.to_owned())).await, listener().await);
    let mut browser = browser(&listener).await;
    for _ in 0..3 {
        browser.write_all(format!("GET {}/ HTTP/1.1\r\n\r\n", origin.url()).as_bytes()).await.unwrap();
        assert_eq!(head(&mut browser).await.unwrap(), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
        read_exactly(&mut browser, 2).await;
    }
    assert_eq!(origin.recorded().connections, 3);
}

#[tokio::test]
async fn second_origin_on_one_connection_gets_its_own_connection() {
    let (first, second) = (Origin::hello().await, Origin::hello().await);
    let listener = listener().await;
    let mut browser = browser(&listener).await;
    for origin in [&first, &second, &first] {
        browser.write_all(format!("GET {}/ HTTP/1.1\r\n\r\n", origin.url()).as_bytes()).await.unwrap();
        head(&mut browser).await.unwrap();
        read_exactly(&mut browser, 5).await;
    }
    assert_eq!((first.recorded().requests.len(), second.recorded().requests.len()), (2, 1));
}

#[tokio::test]
async fn request_bodies_are_forwarded_in_both_framings() {
    let (origin, listener) = (Origin::hello().await, listener().await);
    let mut browser = browser(&listener).await;
    for framing in ["Content-Length: 3\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"] {
        let request = format!("POST {}/ HTTP/1.1\r\n{framing}", origin.url());
        browser.write_all(request.as_bytes()).await.unwrap();
        head(&mut browser).await.unwrap();
        read_exactly(&mut browser, 5).await;
    }
    let recorded = origin.recorded().requests;
    assert!(recorded[0].ends_with("Content-Length: 3\r\n\r\nabc"), "{recorded:?}");
    assert!(
        recorded[1].to_ascii_lowercase().ends_with("transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
        "{recorded:?}"
    );
}

/// Method, the origin's response, and what the browser receives. A missing end of body shows as a missing `0` chunk.
#[tokio::test]
async fn responses_of_every_framing_are_forwarded() {
    let cases = [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n"),
        (
            "GET",
            "HTTP/1.1 301 Moved Permanently\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 301 Moved Permanently\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n",
        ),
        (
            "GET",
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        ),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        ),
        // Both framings: Transfer-Encoding wins, and Content-Length is removed.
        (
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        ),
        // Obsolete syntax of old servers.
        (
            "GET",
            "HTTP/1.1 200 OK\r\nX-Long: a\r\n b\r\nBroken\r\nContent-Length : 2\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nX-Long: a b\r\nContent-Length: 2\r\n\r\nhi",
        ),
    ];
    for (method, answer, expected) in cases {
        let origin = Origin::start(move |_| Some(answer.to_owned())).await;
        let listener = listener().await;
        let request = format!("{method} {}/ HTTP/1.1\r\nConnection: close\r\n\r\n", origin.url());
        let got = exchange(&listener, &request)
            .await
            .replace("Connection: close\r\n", "")
            .replace("connection: close\r\n", "");
        assert_eq!(got.to_ascii_lowercase(), expected.to_ascii_lowercase(), "{answer:?}");
    }
}

#[tokio::test]
async fn response_delimited_by_close_ends_with_the_origin_connection() {
    let socket = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let (listener, at) = (listener().await, socket.local_addr().unwrap());
    for (answer, expected) in [
        ("HTTP/1.1 200 OK\r\n\r\nhi", "2\r\nhi\r\n0\r\n\r\n"),
        // Truncated: the end of the body must not be added.
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", "2\r\nhi\r\n"),
    ] {
        let mut browser = browser(&listener).await;
        browser.write_all(format!("GET http://{at}/ HTTP/1.1\r\nConnection: close\r\n\r\n").as_bytes()).await.unwrap();
        let (mut upstream, _) = socket.accept().await.unwrap();
        head(&mut upstream).await.unwrap();
        upstream.write_all(answer.as_bytes()).await.unwrap();
        drop(upstream);
        head(&mut browser).await.unwrap();
        assert_eq!(read_to_end(&mut browser).await, expected);
    }
}

#[tokio::test]
async fn proxy_response_from_an_origin_is_not_forwarded() {
    for answer in [
        "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    ] {
        let origin = Origin::start(move |_| Some(answer.to_owned())).await;
        let request = format!("GET {}/ HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", origin.url());
        assert_eq!(exchange(&listener().await, &request).await, "");
        assert_eq!(origin.recorded().requests.len(), 1);
    }
}

#[tokio::test]
async fn large_response_is_streamed_with_backpressure() {
    const LENGTH: usize = 64 << 20;
    let socket = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let at = socket.local_addr().unwrap();
    let listener = listener().await;
    let mut browser = browser(&listener).await;
    browser.write_all(format!("GET http://{at}/ HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    let (mut upstream, _) = socket.accept().await.unwrap();
    head(&mut upstream).await.unwrap();
    let body: Vec<u8> = (0..LENGTH).map(|i| u8::try_from(i % 251).unwrap()).collect();
    let sent = async {
        upstream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n").as_bytes()).await.unwrap();
        upstream.write_all(&body).await.unwrap();
    };
    tokio::pin!(sent);
    // Nothing reads, so the origin must be blocked: no buffer in between takes everything.
    assert!(timeout(Duration::from_millis(300), &mut sent).await.is_err());
    let received = async {
        head(&mut browser).await.unwrap();
        let mut received = vec![0; LENGTH];
        browser.read_exact(&mut received).await.unwrap();
        received
    };
    let ((), received) = timeout(TIMEOUT, async { tokio::join!(sent, received) }).await.unwrap();
    assert!(received == body);
}
