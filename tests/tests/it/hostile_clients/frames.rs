//! Raw HTTP/2 frames, because client libraries do not send what these tests need.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const CONTINUATION: u8 = 9;
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

/// Encodes a frame.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame is small").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The header block of a request, in HPACK literals without indexing.
pub(super) fn block(method: &str, path: &str, further: &[(&str, &str)]) -> Vec<u8> {
    let pseudo = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "a")];
    let text = |text: &str| {
        let length = u8::try_from(text.len()).ok().filter(|length| *length < 127).expect("a short text");
        [&[length], text.as_bytes()].concat()
    };
    let fields = pseudo.iter().chain(further);
    fields.flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

/// Opens a connection and sends the preface and settings.
pub(super) async fn open(to: SocketAddr, settings: &[u8]) -> Result<TcpStream> {
    let mut stream = super::connect(to).await?;
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, settings)].concat()).await?;
    Ok(stream)
}

/// Parses kind and payload of every complete frame.
pub(super) fn parse(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while let [a, b, c, kind, _, _, _, _, _, rest @ ..] = bytes {
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        let Some((payload, after)) = rest.split_at_checked(length) else { break };
        frames.push((*kind, payload.to_vec()));
        bytes = after;
    }
    frames
}

/// Counts frames of a kind.
pub(super) fn count(frames: &[(u8, Vec<u8>)], kind: u8) -> usize {
    frames.iter().filter(|(seen, _)| *seen == kind).count()
}

/// The error code of the last GOAWAY frame.
pub(super) fn goaway(frames: &[(u8, Vec<u8>)]) -> Option<u32> {
    let (_, payload) = frames.iter().rfind(|(kind, _)| *kind == GOAWAY)?;
    payload.get(4..8).and_then(|code| code.try_into().ok()).map(u32::from_be_bytes)
}
