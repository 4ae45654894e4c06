//! Responses to CONNECT, and data through tunnels.

use grabd_egress::EgressError;

use super::*;

/// A tunnel through `listener`, as its two ends.
async fn tunnel(listener: &Listener) -> (TcpStream, TcpStream) {
    let socket = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let at = socket.local_addr().unwrap();
    let mut client = browser(listener).await;
    client.write_all(format!("CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n\r\n").as_bytes()).await.unwrap();
    let (upstream, _) = socket.accept().await.unwrap();
    assert_eq!(head(&mut client).await.unwrap(), "HTTP/1.1 200 OK\r\n\r\n");
    (client, upstream)
}

#[tokio::test]
async fn bytes_are_copied_both_ways_until_each_side_closes() {
    let listener = listener().await;
    let (mut client, mut upstream) = tunnel(&listener).await;
    client.write_all(b"ping").await.unwrap();
    assert_eq!(read_exactly(&mut upstream, 4).await, "ping");
    upstream.write_all(b"pong").await.unwrap();
    assert_eq!(read_exactly(&mut client, 4).await, "pong");
    // One direction ends, the other continues.
    client.shutdown().await.unwrap();
    assert_eq!(read_to_end(&mut upstream).await, "");
    upstream.write_all(b"late").await.unwrap();
    assert_eq!(read_exactly(&mut client, 4).await, "late");
    drop(upstream);
    assert_eq!(read_to_end(&mut client).await, "");
}

#[tokio::test]
async fn data_directly_after_the_request_is_forwarded() {
    let socket = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let at = socket.local_addr().unwrap();
    let listener = listener().await;
    let mut client = browser(&listener).await;
    client.write_all(format!("CONNECT {at} HTTP/1.1\r\n\r\nearly").as_bytes()).await.unwrap();
    let (mut upstream, _) = socket.accept().await.unwrap();
    assert_eq!(read_exactly(&mut upstream, 5).await, "early");
    assert_eq!(head(&mut client).await.unwrap(), "HTTP/1.1 200 OK\r\n\r\n");
}

#[tokio::test]
async fn large_stream_is_copied_completely() {
    const LENGTH: usize = 48 << 20;
    let listener = listener().await;
    let (mut client, mut upstream) = tunnel(&listener).await;
    let body: Vec<u8> = (0..LENGTH).map(|i| u8::try_from(i % 251).unwrap()).collect();
    let mut received = vec![0; LENGTH];
    let both = async { tokio::join!(upstream.write_all(&body), client.read_exact(&mut received)) };
    let (sent, got) = timeout(TIMEOUT, both).await.unwrap();
    sent.unwrap();
    got.unwrap();
    assert!(received == body);
    assert!(listener.bytes() > LENGTH as u64);
    assert!(!listener.over_limit());
}

#[tokio::test]
async fn failed_tunnel_is_answered_with_the_matching_status() {
    let closed = TcpListener::bind("127.0.0.2:0").await.unwrap().local_addr().unwrap().port();
    let listener = listener().await;
    for (target, status) in [
        ("127.0.0.1:80".to_owned(), "403 Forbidden"),
        ("[::1]:443".to_owned(), "403 Forbidden"),
        ("127.0.0.2:22".to_owned(), "403 Forbidden"),
        ("localhost:443".to_owned(), "403 Forbidden"),
        (format!("127.0.0.2:{closed}"), "502 Bad Gateway"),
        ("site.example:443".to_owned(), "504 Gateway Timeout"),
    ] {
        let answer = exchange(&listener, &format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await.to_ascii_lowercase();
        let expected = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(answer, expected.to_ascii_lowercase(), "{target}");
    }
    assert_eq!(listener.refused_count(), 4);
    assert_eq!(listener.unreached().len(), 6);
    assert_eq!(listener.unreached()[5].refusal, EgressError::TimedOut);
}

#[tokio::test]
async fn closing_the_listener_closes_open_tunnels() {
    let listener = listener().await;
    let (mut client, mut upstream) = tunnel(&listener).await;
    let port = listener.port();
    drop(listener);
    assert_eq!(read_to_end(&mut client).await, "");
    assert_eq!(read_to_end(&mut upstream).await, "");
    wait_until_closed(port).await;
}

#[tokio::test]
async fn closing_the_listener_closes_a_request_without_response() {
    let socket = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let listener = listener().await;
    let mut client = browser(&listener).await;
    let request = format!("GET http://{}/ HTTP/1.1\r\n\r\n", socket.local_addr().unwrap());
    client.write_all(request.as_bytes()).await.unwrap();
    let (mut upstream, _) = socket.accept().await.unwrap();
    head(&mut upstream).await.unwrap();
    drop(listener);
    assert_eq!(read_to_end(&mut client).await, "");
    assert_eq!(read_to_end(&mut upstream).await, "");
}
