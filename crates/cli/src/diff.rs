//! `grab diff`: what changed on a page since an earlier capture.

use std::path::{Path, PathBuf};

use grabd_options::Kind;
use serde_json::json;

use crate::api::{Api, Grab, describe, describe_region, difference_image};
use crate::args::{ConnectionArgs, DiffArgs, Format};
use crate::capture::{self, Keys, download};
use crate::failure::{Exit, Failure};
use crate::{list, output};

/// Compares two captures and prints the changed share and the regions.
pub(crate) async fn diff(api: &Api, connection: &ConnectionArgs, args: &DiffArgs) -> Result<Exit, Failure> {
    let Some(earlier) = &args.earlier else {
        return Err(Failure::Usage("name the earlier capture, or a --baseline".to_owned()));
    };
    if let Some(path) = &args.output {
        check_output(path)?;
    }
    let keys = Keys::new(args.idempotency_key.as_ref(), 1)?;
    let earlier = list::fetch(api, earlier).await?;
    let later = match &args.later {
        Some(id) if is_id(id) => compared(api, &earlier, id).await?,
        Some(url) => capture_again(api, args, &keys, &earlier, &capture::complete_url(url.clone())?).await?,
        None => capture_again(api, args, &keys, &earlier, &earlier.fields.target_url).await?,
    };
    let exit = if is_over(args, &later) { Exit::Changed } else { Exit::Done };
    let Some(difference) = &later.fields.difference else {
        let id = &later.fields.id;
        return Err(Failure::NoImage(format!("capture {id} was not compared with another one")));
    };
    let saved = match (&args.output, difference_image(api, difference)) {
        (Some(path), Some(url)) => {
            download::save(api, &url, path).await?;
            Some(path)
        }
        (Some(_), None) => {
            eprintln!("Nothing changed, so there is no image of the difference.");
            None
        }
        (None, _) => None,
    };
    if connection.json {
        let file = saved.map(|path| path.display().to_string());
        let shown = json!({ "id": later.fields.id, "difference": later.json["difference"], "file": file });
        output::line(&shown.to_string())?;
        return Ok(exit);
    }
    output::line(&describe(difference))?;
    for region in &difference.regions {
        output::line(&describe_region(*region))?;
    }
    if let Some(path) = saved {
        eprintln!("The image of the difference is in {}.", path.display());
    }
    Ok(exit)
}

/// Whether more changed than `--fail-over` allows.
pub(crate) fn is_over(args: &DiffArgs, later: &Grab) -> bool {
    let limit = args.fail_over.unwrap_or(f64::INFINITY);
    later.fields.difference.as_ref().is_some_and(|difference| difference.ratio > limit)
}

/// Whether a text is an id rather than a URL.
fn is_id(text: &str) -> bool {
    uuid::Uuid::parse_str(text).is_ok()
}

/// The later of two captures, one of which was compared with the other when it was made.
async fn compared(api: &Api, first: &Grab, second: &str) -> Result<Grab, Failure> {
    let second = list::fetch(api, second).await?;
    let names = |later: &Grab, earlier: &Grab| {
        later.fields.difference.as_ref().is_some_and(|difference| difference.compared_to == earlier.fields.id)
    };
    if names(&second, first) {
        return Ok(second);
    }
    if names(first, &second) {
        return Ok(first.clone());
    }
    let [first, second] = [first, &second].map(|grab| &grab.fields.id);
    Err(Failure::Usage(format!(
        "captures {first} and {second} were not compared with each other: the service compares a new capture with an \
         earlier one. `grab diff {first}` captures the page again and compares it"
    )))
}

/// Captures a page in the format and size of the earlier capture, and compares it with that one.
pub(crate) async fn capture_again(
    api: &Api,
    args: &DiffArgs,
    keys: &Keys,
    earlier: &Grab,
    url: &str,
) -> Result<Grab, Failure> {
    let mut body = serde_json::Map::from_iter([
        ("url".to_owned(), json!(url)),
        ("compare_to".to_owned(), json!(earlier.fields.id)),
    ]);
    for name in ["width", "format"] {
        body.extend(earlier.json.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    // Captures of full pages tell a height that no window may have.
    match earlier.json["height"].as_u64() {
        Some(height) if height > max_height() => _ = body.insert("full_page".to_owned(), json!(true)),
        Some(height) => _ = body.insert("height".to_owned(), json!(height)),
        None => {}
    }
    body.extend(args.options.0.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
    let later = capture::create_one(api, keys, body.into()).await?;
    match &*later.fields.status {
        "done" => Ok(later),
        _ => Err(Failure::CaptureFailed(later.error())),
    }
}

/// The largest height of a window.
fn max_height() -> u64 {
    match grabd_options::find("height").map(|option| option.kind) {
        Some(Kind::Integer { max, .. }) => u64::try_from(max).unwrap_or(u64::MAX),
        _ => u64::MAX,
    }
}

/// Checks before the capture, which may cost a credit, that the image can be saved.
fn check_output(path: &Path) -> Result<(), Failure> {
    Format::check_extension(path, Some(Format::Png))?;
    let directory =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or(PathBuf::from("."), PathBuf::from);
    let why = match () {
        () if path.is_dir() => "is a directory; name a file",
        () if !directory.is_dir() => "is in a directory that does not exist",
        () => return Ok(()),
    };
    Err(Failure::Usage(format!("{} {why}", path.display())))
}
