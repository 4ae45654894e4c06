//! A DNS server with configurable answers.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::UdpSocket;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// A running server. It stops when dropped.
pub struct Dns {
    /// The address of the server.
    pub address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
    _task: AbortOnDropHandle<()>,
}

/// A DNS record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// An IPv4 address.
    A(Ipv4Addr),
    /// An IPv6 address.
    Aaaa(Ipv6Addr),
    /// An alias, with the address of its target.
    Cname(&'static str, Ipv4Addr),
}

struct Zone {
    /// Of all names without records of their own. `None` if they have no address.
    default_address: Option<Ipv4Addr>,
    /// For each name, one set of records per A query. The last set repeats.
    names: HashMap<String, Vec<Vec<Record>>>,
    queries: HashMap<String, usize>,
}

impl Dns {
    /// Starts a server that answers every name with this address and a TTL of 0.
    pub async fn start(answer: Ipv4Addr) -> std::io::Result<Self> {
        Self::start_with(Some(answer)).await
    }

    /// Starts a server for which no name has an address.
    pub async fn start_empty() -> std::io::Result<Self> {
        Self::start_with(None).await
    }

    async fn start_with(default_address: Option<Ipv4Addr>) -> std::io::Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        let address = socket.local_addr()?;
        let zone = Zone { default_address, names: HashMap::new(), queries: HashMap::new() };
        let zone = Arc::new(Mutex::new(zone));
        let records = Arc::clone(&zone);
        let task = TaskTracker::new().spawn(async move {
            let mut question = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut question).await {
                let answer = reply(&question[..length], &mut records.lock().unwrap_or_else(PoisonError::into_inner));
                if let Some(answer) = answer {
                    // The client may have closed its socket.
                    drop(socket.send_to(&answer, from).await);
                }
            }
        });
        Ok(Self { address, zone, _task: AbortOnDropHandle::new(task) })
    }

    /// Changes the address of all names without records of their own.
    pub fn set_default(&self, answer: IpAddr) {
        if let IpAddr::V4(answer) = answer {
            self.zone.lock().unwrap_or_else(PoisonError::into_inner).default_address = Some(answer);
        }
    }

    /// Sets the records of a name. The first A query gets the first set, and so on; the last set repeats.
    pub fn set_records(&self, name: &str, answers: &[&[Record]]) {
        let answers = answers.iter().map(|records| records.to_vec()).collect();
        self.zone.lock().unwrap_or_else(PoisonError::into_inner).names.insert(name.to_owned(), answers);
    }
}

impl Zone {
    /// Only A queries advance to the next set, because clients send the AAAA query at the same time.
    fn records(&mut self, name: &str, about_a: bool) -> Vec<Record> {
        let Some(answers) = self.names.get(name) else {
            return self.default_address.map(Record::A).into_iter().collect();
        };
        let query = self.queries.entry(name.to_owned()).or_default();
        let records = answers.get(*query).or(answers.last()).cloned().unwrap_or_default();
        *query += usize::from(about_a);
        records
    }
}

/// The records of the requested type with a TTL of 0 (RFC 1035 section 4).
fn reply(question: &[u8], zone: &mut Zone) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    const A: u16 = 1;
    const CNAME: u16 = 5;
    const AAAA: u16 = 28;
    let length = question.get(HEADER..)?.iter().position(|byte| *byte == 0)? + 1;
    let query = question.get(HEADER..HEADER + length + 4)?;
    let kind = u16::from_be_bytes([*query.get(length)?, *query.get(length + 1)?]);
    let mut name = Vec::new();
    let mut labels = query.get(..length - 1)?;
    while let Some((count, rest)) = labels.split_first() {
        let (label, rest) = rest.split_at_checked(usize::from(*count))?;
        name.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        labels = rest;
    }
    // Compressed pointer to the name in the question, then type, class IN and a TTL of 0.
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
    // Flags: response, recursion desired and available, no error. One question.
    reply.extend([0x81, 0x80, 0, 1, 0, u8::try_from(answers.len()).ok()?, 0, 0, 0, 0]);
    reply.extend(query);
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
