//! Reads what a caller asks for of a grab, as text.

use axum::Router;
use grabd_api::elements::{Element, elements};
use grabd_memory::{MemoryBudget, Reservation};
use grabd_proto::v1::{Grab, GrabFile, GrabStatus};
use serde_json::Value;
use tokio::task::spawn_blocking;

use super::changes;
use super::file::{FileError, Files, LoadedFile};
use super::json_text;
use super::kind::Readable;

/// The largest file that is made into text, in bytes.
const MAX_TEXT_BYTES: u64 = 8 << 20;

/// Reads the files of grabs.
pub(crate) struct Reader(Files);

/// A text of a grab. Its memory is reserved until it is dropped.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) text: String,
    memory: Vec<Reservation>,
}

/// Why something cannot be read. The text is for the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    /// The capture has not ended.
    #[error("The grab is {0}. There is nothing to read before it is done.")]
    NotDone(&'static str),
    /// The capture failed.
    #[error("The grab has failed, so that there is nothing to read.")]
    Failed,
    /// The image was deleted.
    #[error("The image of the grab was deleted, and its files with it.")]
    Deleted,
    /// The capture did not make the file.
    #[error("The grab has no file `{0}`. Files are made at the capture: create it with `also: [\"{0}\"]`.")]
    NoFile(&'static str),
    /// It is an image.
    #[error("`{0}` is an image, and cannot be read as text.")]
    NoText(&'static str),
    /// There is nothing to compare the grab with.
    #[error("`difference` needs an earlier grab: name it in `compare_to`.")]
    NoEarlier,
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Document {
    /// Keeps memory for the text and the part of it that is sent, and gives back that of the files.
    fn without_files(mut self) -> Self {
        let kept = u64::try_from(self.text.len()).unwrap_or(u64::MAX).saturating_mul(2);
        self.memory.iter_mut().for_each(|reservation| reservation.shrink_to(kept));
        self
    }
}

impl Reader {
    /// Reads files through this router, which serves them at the paths of their URLs, which have this origin.
    pub(crate) fn new(images: Router, memory: MemoryBudget, origin: &str) -> Self {
        Self(Files::new(images, memory, origin))
    }

    /// The file at a URL of the service, which has at most this many bytes.
    ///
    /// # Errors
    /// See [`FileError`].
    pub(crate) async fn file(&self, url: &str, max_bytes: u64) -> Result<LoadedFile, FileError> {
        self.0.load(url, max_bytes).await
    }

    /// What was asked for, as text. Only `difference` needs the earlier grab.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub(crate) async fn text(
        &self,
        grab: &Grab,
        kind: Readable,
        earlier: Option<&Grab>,
    ) -> Result<Document, ReadError> {
        let document = match kind {
            Readable::Markdown | Readable::Text | Readable::Accessibility => self.document(grab, kind).await?,
            Readable::Elements => self.made_of(grab, kind, json_text::of_elements).await?,
            Readable::Report => self.made_of(grab, kind, json_text::of_object).await?,
            Readable::Difference => {
                check_done(grab)?;
                self.changes(earlier.ok_or(ReadError::NoEarlier)?, grab).await
            }
            Readable::Marks => return Err(ReadError::NoText(kind.name())),
        };
        Ok(document.without_files())
    }

    /// The file of a kind, as it is.
    async fn document(&self, grab: &Grab, kind: Readable) -> Result<Document, ReadError> {
        let LoadedFile { bytes, media_type: _, memory } =
            self.0.load(&file_of(grab, kind)?.url, MAX_TEXT_BYTES).await?;
        // Files of text are UTF-8.
        let text =
            String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Ok(Document { text, memory: vec![memory] })
    }

    /// A text that is made of a file.
    async fn made_of(&self, grab: &Grab, kind: Readable, make: fn(&str) -> String) -> Result<Document, ReadError> {
        let Document { text, memory } = self.document(grab, kind).await?;
        blocking(move || Document { text: make(&text), memory }).await
    }

    /// What changed between two grabs. What cannot be compared is said in the text.
    async fn changes(&self, older: &Grab, newer: &Grab) -> Document {
        let mut text = format!("From grab {} to grab {}.\n{}\n\n", older.id, newer.id, image_change(older, newer));
        let mut memory = Vec::new();
        match self.compared(older, newer, Readable::Elements, compare_elements).await {
            Ok(found) => {
                text.push_str(&found.text);
                memory.extend(found.memory);
            }
            Err(why) => text.push_str(&format!("Elements are not compared: {why}\n\n")),
        }
        let lines = match self.compared(older, newer, Readable::Text, changes::of_lines).await {
            Ok(found) => Ok(found),
            Err(why) => self.compared(older, newer, Readable::Markdown, changes::of_lines).await.map_err(|_| why),
        };
        match lines {
            Ok(found) => {
                text.push_str(&found.text);
                memory.extend(found.memory);
            }
            Err(why) => text.push_str(&format!("Text is not compared: {why}\n")),
        }
        Document { text, memory }
    }

    /// A comparison of the files of a kind of two grabs, or why one of them cannot be read.
    async fn compared(
        &self,
        older: &Grab,
        newer: &Grab,
        kind: Readable,
        compare: fn(&str, &str) -> String,
    ) -> Result<Document, String> {
        let old = self.document(older, kind).await.map_err(|why| format!("of the earlier grab: {why}"))?;
        let new = self.document(newer, kind).await.map_err(|why| format!("of this grab: {why}"))?;
        let compared = blocking(move || Document {
            text: compare(&old.text, &new.text),
            memory: old.memory.into_iter().chain(new.memory).collect(),
        });
        compared.await.map(Document::without_files).map_err(|why| why.to_string())
    }
}

/// Runs work that takes long with a large file on a thread where it does not delay other requests.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ReadError> {
    spawn_blocking(work).await.map_err(|_| ReadError::File(FileError::Unreadable))
}

/// The file of a kind of a done grab.
///
/// # Errors
/// If it has none.
pub(crate) fn file_of(grab: &Grab, kind: Readable) -> Result<&GrabFile, ReadError> {
    check_done(grab)?;
    grab.files.iter().find(|file| file.kind == kind.name()).ok_or(match grab.image_url {
        Some(_) => ReadError::NoFile(kind.name()),
        None => ReadError::Deleted,
    })
}

fn check_done(grab: &Grab) -> Result<(), ReadError> {
    match grab.status() {
        GrabStatus::Done => Ok(()),
        GrabStatus::Failed => Err(ReadError::Failed),
        GrabStatus::Pending | GrabStatus::Unspecified => Err(ReadError::NotDone("pending")),
        GrabStatus::Processing => Err(ReadError::NotDone("processing")),
    }
}

fn compare_elements(older: &str, newer: &str) -> String {
    let read = |file: &str| -> Vec<Element> {
        serde_json::from_str::<Value>(file).map(|file| elements(&file).0).unwrap_or_default()
    };
    changes::of_elements(&read(older), &read(newer))
}

/// What is known about the change of the image.
fn image_change(older: &Grab, newer: &Grab) -> String {
    let difference = newer.difference.as_ref().filter(|difference| difference.compared_to == older.id);
    match difference {
        Some(difference) if difference.regions.is_empty() => "The image did not change.".to_owned(),
        Some(difference) => {
            let regions = difference.regions.iter();
            let regions: Vec<String> =
                regions.map(|of| format!("{},{} {}x{}", of.x, of.y, of.width, of.height)).collect();
            let percent = difference.ratio * 100.0;
            format!(
                "{percent:.2} % of the image changed. Regions (left,top and width x height): {}.",
                regions.join("; ")
            )
        }
        None if newer.image_sha256.is_some() && newer.image_sha256 == older.image_sha256 => {
            "The images are equal.".to_owned()
        }
        None => "Regions of the image are found only at the capture, with `compare_to`.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use grabd_proto::v1::{Difference, Region};
    use serde_json::json;

    use super::*;

    const ORIGIN: &str = "https://grabd.example";

    fn grab(id: &str, kinds: &[&str]) -> Grab {
        let files = kinds.iter().map(|kind| GrabFile {
            kind: (*kind).to_owned(),
            url: format!("{ORIGIN}/f/{id}/{kind}"),
            ..GrabFile::default()
        });
        let mut grab = Grab {
            id: id.to_owned(),
            image_url: Some(format!("{ORIGIN}/i/a/b/{id}")),
            files: files.collect(),
            ..Grab::default()
        };
        grab.set_status(GrabStatus::Done);
        grab
    }

    fn reader() -> Reader {
        let elements = |name: &str| {
            let place = json!({ "x": 1, "y": 2, "width": 3, "height": 4 });
            let button = json!({ "role": "button", "name": name, "selector": "#a", "box": place });
            json!({ "image": { "width": 10, "height": 20 }, "elements": [button] }).to_string()
        };
        let (old, new) = (elements("Buy"), elements("Sold"));
        let images = Router::new()
            .route("/f/old/elements", get(async move || old))
            .route("/f/new/elements", get(async move || new))
            .route("/f/old/text", get(async || "Price 1\nSame\n"))
            .route("/f/new/text", get(async || "Price 2\nSame\n"));
        Reader::new(images, MemoryBudget::new(1 << 20), ORIGIN)
    }

    #[tokio::test]
    async fn files_are_read_as_text() {
        let (reader, new) = (reader(), grab("new", &["elements", "text", "report"]));
        let text = reader.text(&new, Readable::Text, None).await.unwrap().text;
        assert_eq!(text, "Price 2\nSame\n");
        let text = reader.text(&new, Readable::Elements, None).await.unwrap().text;
        assert!(text.ends_with("\n1 button \"Sold\" 1,2 3x4 selector=\"#a\"\n"), "{text}");
        let error = async |grab: &Grab, kind| reader.text(grab, kind, None).await.unwrap_err();
        assert_eq!(error(&new, Readable::Markdown).await, ReadError::NoFile("markdown"));
        assert_eq!(error(&new, Readable::Report).await, ReadError::File(FileError::Missing));
        assert_eq!(error(&new, Readable::Difference).await, ReadError::NoEarlier);
        assert_eq!(error(&new, Readable::Marks).await, ReadError::NoText("marks"));
        let deleted = Grab { image_url: None, files: Vec::new(), ..new.clone() };
        assert_eq!(error(&deleted, Readable::Text).await, ReadError::Deleted);
        let mut open = new.clone();
        open.set_status(GrabStatus::Processing);
        assert_eq!(error(&open, Readable::Text).await, ReadError::NotDone("processing"));
        open.set_status(GrabStatus::Failed);
        assert_eq!(error(&open, Readable::Difference).await, ReadError::Failed);
    }

    #[tokio::test]
    async fn difference_compares_what_both_grabs_have() {
        let (reader, old) = (reader(), grab("old", &["elements", "text"]));
        let mut new = grab("new", &["elements", "text"]);
        let regions = vec![Region { x: 0, y: 16, width: 32, height: 16 }];
        new.difference = Some(Difference { compared_to: "old".to_owned(), ratio: 0.25, regions, image_url: None });
        let text = reader.text(&new, Readable::Difference, Some(&old)).await.unwrap().text;
        assert_eq!(
            text,
            "From grab old to grab new.\n\
             25.00 % of the image changed. Regions (left,top and width x height): 0,16 32x16.\n\n\
             Elements whose words changed (1):\n~ was \"Buy\", now button \"Sold\" 1,2 3x4\n\n\
             Lines of text that came (1):\n+ Price 2\n\nLines of text that went (1):\n- Price 1\n\n"
        );
        let bare = grab("old", &[]);
        let text = reader.text(&new, Readable::Difference, Some(&bare)).await.unwrap().text;
        for part in ["Elements are not compared: of the earlier grab:", "Text is not compared: of the earlier grab:"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(reader.0.load("/f/old/text", 100).await.unwrap().bytes, b"Price 1\nSame\n");
    }

    #[tokio::test]
    async fn memory_of_files_is_given_back_when_their_text_is_made() {
        let memory = MemoryBudget::new(1 << 20);
        let images = Router::new().route("/f/new/text", get(async || "a".repeat(100 << 10)));
        let reader = Reader::new(images, memory.clone(), ORIGIN);
        let document = reader.text(&grab("new", &["text"]), Readable::Text, None).await.unwrap();
        assert_eq!(memory.reserved_bytes(), 200 << 10);
        drop(document);
        assert_eq!(memory.reserved_bytes(), 0);
    }
}
