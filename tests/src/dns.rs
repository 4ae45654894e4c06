//! A name server that says of every name what it is told to say.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::UdpSocket;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// A running server; it ends when it is dropped.
pub struct Dns {
    /// Where to ask.
    pub address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
    _task: AbortOnDropHandle<()>,
}

/// What a name has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// An address.
    A(Ipv4Addr),
    /// An address of IPv6.
    Aaaa(Ipv6Addr),
    /// Another name, whose address is given along with it.
    Cname(&'static str, Ipv4Addr),
}

struct Zone {
    everyone: Ipv4Addr,
    /// For each name its answers: one after the other, and the last one for ever.
    names: HashMap<String, Vec<Vec<Record>>>,
    asked: HashMap<String, usize>,
}

impl Dns {
    /// Every name has this address, for no longer than it takes to say so.
    pub async fn start(answer: Ipv4Addr) -> std::io::Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        let address = socket.local_addr()?;
        let zone = Zone { everyone: answer, names: HashMap::new(), asked: HashMap::new() };
        let zone = Arc::new(Mutex::new(zone));
        let said = Arc::clone(&zone);
        let task = TaskTracker::new().spawn(async move {
            let mut question = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut question).await {
                let answer = reply(&question[..length], &mut said.lock().unwrap_or_else(PoisonError::into_inner));
                if let Some(answer) = answer {
                    // Whoever asked may be gone.
                    drop(socket.send_to(&answer, from).await);
                }
            }
        });
        Ok(Self { address, zone, _task: AbortOnDropHandle::new(task) })
    }

    /// From now on, every name has this address.
    pub fn says(&self, answer: IpAddr) {
        if let IpAddr::V4(answer) = answer {
            self.zone.lock().unwrap_or_else(PoisonError::into_inner).everyone = answer;
        }
    }

    /// From now on, this name has these records: those of the first list when it is asked for the first time, and so
    /// on; the last list stays.
    pub fn says_of(&self, name: &str, answers: &[&[Record]]) {
        let answers = answers.iter().map(|records| records.to_vec()).collect();
        self.zone.lock().unwrap_or_else(PoisonError::into_inner).names.insert(name.to_owned(), answers);
    }
}

impl Zone {
    /// Only a question about A turns a page: the one about AAAA is asked at the same time.
    fn records(&mut self, name: &str, about_a: bool) -> Vec<Record> {
        let Some(answers) = self.names.get(name) else { return vec![Record::A(self.everyone)] };
        let asked = self.asked.entry(name.to_owned()).or_default();
        let records = answers.get(*asked).or(answers.last()).cloned().unwrap_or_default();
        *asked += usize::from(about_a);
        records
    }
}

/// The records of the kind that is asked for, with no time to live (RFC 1035 section 4).
fn reply(question: &[u8], zone: &mut Zone) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    const A: u16 = 1;
    const CNAME: u16 = 5;
    const AAAA: u16 = 28;
    let length = question.get(HEADER..)?.iter().position(|byte| *byte == 0)? + 1;
    let asked = question.get(HEADER..HEADER + length + 4)?;
    let kind = u16::from_be_bytes([*asked.get(length)?, *asked.get(length + 1)?]);
    let mut name = Vec::new();
    let mut labels = asked.get(..length - 1)?;
    while let Some((count, rest)) = labels.split_first() {
        let (label, rest) = rest.split_at_checked(usize::from(*count))?;
        name.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        labels = rest;
    }
    // Of the name that was asked for, by pointer; IN; no time to live.
    let head = |kind: u16| [&[0xc0, 12][..], &kind.to_be_bytes(), &[0, 1, 0, 0, 0, 0]].concat();
    let mut answers = Vec::new();
    for record in zone.records(&name.join("."), kind == A) {
        match (record, kind) {
            (Record::A(address), A) => answers.push([&head(A)[..], &[0, 4], &address.octets()].concat()),
            (Record::Aaaa(address), AAAA) => answers.push([&head(AAAA)[..], &[0, 16], &address.octets()].concat()),
            (Record::Cname(other, address), A) => {
                let other = encode(other);
                let size = u16::try_from(other.len()).ok()?.to_be_bytes();
                answers.push([&head(CNAME)[..], &size, &other].concat());
                answers.push([&other[..], &A.to_be_bytes(), &[0, 1, 0, 0, 0, 0, 0, 4], &address.octets()].concat());
            }
            (Record::A(_) | Record::Aaaa(_) | Record::Cname(..), _) => {}
        }
    }
    let mut reply = question.get(..2)?.to_vec();
    // An answer, recursion wanted and done, no error; one question.
    reply.extend([0x81, 0x80, 0, 1, 0, u8::try_from(answers.len()).ok()?, 0, 0, 0, 0]);
    reply.extend(asked);
    reply.extend(answers.concat());
    Some(reply)
}

fn encode(name: &str) -> Vec<u8> {
    let labels = name.split('.').filter(|label| !label.is_empty());
    let mut bytes: Vec<u8> = labels
        .flat_map(|label| [&[u8::try_from(label.len()).unwrap_or_default()], label.as_bytes()].concat())
        .collect();
    bytes.push(0);
    bytes
}
