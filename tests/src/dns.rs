//! A name server that says of every name what it is told to say.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::UdpSocket;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// A running server; it ends when it is dropped.
pub struct Dns {
    /// Where to ask.
    pub address: SocketAddr,
    answer: Arc<Mutex<Ipv4Addr>>,
    _task: AbortOnDropHandle<()>,
}

impl Dns {
    /// Every name has this address, for no longer than it takes to say so.
    pub async fn start(answer: Ipv4Addr) -> std::io::Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        let address = socket.local_addr()?;
        let answer = Arc::new(Mutex::new(answer));
        let said = Arc::clone(&answer);
        let task = TaskTracker::new().spawn(async move {
            let mut question = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut question).await {
                let address = *said.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(reply) = reply(&question[..length], address) {
                    // Whoever asked may be gone.
                    drop(socket.send_to(&reply, from).await);
                }
            }
        });
        Ok(Self { address, answer, _task: AbortOnDropHandle::new(task) })
    }

    /// From now on, every name has this address.
    pub fn says(&self, answer: IpAddr) {
        if let IpAddr::V4(answer) = answer {
            *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
        }
    }
}

/// One A record with no time to live for a question about A; no record for any other (RFC 1035 section 4).
fn reply(question: &[u8], address: Ipv4Addr) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    let name = question.get(HEADER..)?.iter().position(|byte| *byte == 0)? + 1;
    let asked = question.get(HEADER..HEADER + name + 4)?;
    let about_a = asked.get(name..name + 2)? == [0, 1];
    let mut reply = question.get(..2)?.to_vec();
    // An answer, recursion wanted and done, no error; one question, one answer or none.
    reply.extend([0x81, 0x80, 0, 1, 0, u8::from(about_a), 0, 0, 0, 0]);
    reply.extend(asked);
    if about_a {
        // The name as in the question, A, IN, no time to live, four bytes.
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        reply.extend(address.octets());
    }
    Some(reply)
}
