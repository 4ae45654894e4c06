//! The options of a capture as form fields: rendering, parsing and error messages.

use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_domain::credentials::Environment;
use grabd_domain::{Fault, faults, limits};
use grabd_options::{CaptureOption, Group, Kind, TABLE, Value, plain};

use crate::environments::ENVIRONMENT;
use crate::form::{FieldError, Form};
use crate::time_format::wait;

/// A text field.
pub(crate) struct Text {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    /// May be empty.
    pub(crate) hint: String,
    /// An example. May be empty.
    pub(crate) placeholder: &'static str,
    pub(crate) max_length: usize,
    pub(crate) input_mode: &'static str,
    pub(crate) is_required: bool,
    pub(crate) value: String,
    pub(crate) error: Option<String>,
}

/// How an option is entered.
pub(crate) enum Input {
    /// A number between two bounds.
    Number { min: String, max: String, step: &'static str },
    /// A check box.
    Flag { is_checked: bool },
    /// One of some words: each with its text, and whether it is selected.
    Choice(Vec<Word>),
    /// Any of some words.
    Words(Vec<Word>),
    /// A line of text.
    Line { max_length: usize },
    /// Several lines of text.
    Lines { max_length: usize },
}

/// A word to choose.
pub(crate) struct Word {
    pub(crate) value: &'static str,
    pub(crate) text: &'static str,
    pub(crate) is_chosen: bool,
}

/// An option as a form field.
pub(crate) struct OptionField {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) hint: String,
    pub(crate) input: Input,
    pub(crate) value: String,
    /// What is used while the field is empty.
    pub(crate) placeholder: String,
    /// The option that may bring another default. May be empty.
    pub(crate) default_of: &'static str,
    /// The defaults that its values bring, such as `phone=390 tablet=768`.
    pub(crate) defaults: String,
    /// Whether it needs the whole width of the form.
    pub(crate) is_wide: bool,
    pub(crate) error: Option<String>,
}

impl OptionField {
    /// Whether it has a value or an error.
    fn is_used(&self) -> bool {
        self.error.is_some() || !self.value.is_empty()
    }

    const fn is_flag(&self) -> bool {
        matches!(self.input, Input::Flag { .. })
    }
}

/// The options of a group.
pub(crate) struct OptionGroup {
    pub(crate) title: &'static str,
    /// The names of its options.
    pub(crate) contents: String,
    /// Whether it is shown open: if one of its options has a value or an error.
    pub(crate) is_open: bool,
    pub(crate) fields: Vec<OptionField>,
}

impl OptionGroup {
    fn of(title: &'static str, mut fields: Vec<OptionField>) -> Self {
        // Fields of one kind leave no gaps: those side by side, those of the whole width, and check boxes.
        fields.sort_by_key(|field| (field.is_flag(), field.is_wide));
        let labels: Vec<_> = fields.iter().map(|field| field.label).collect();
        Self { title, contents: labels.join(", "), is_open: fields.iter().any(OptionField::is_used), fields }
    }
}

/// All options with their values.
pub(crate) struct Options {
    pub(crate) url: Text,
    /// What most captures need.
    pub(crate) main: Vec<OptionField>,
    pub(crate) more: Vec<OptionGroup>,
}

/// The most characters of a status in a list, and of a rectangle, with spaces.
const STATUS_CHARS: usize = 6;
/// The names of options that a link to the form lacks, because they are no longer kept.
const OMITTED: &str = "omitted";
const RECTANGLE_CHARS: usize = 64;

/// Options that the form does not have: a document of a megabyte is for programs.
const NOT_IN_FORM: [&str; 2] = ["html", "base_url"];

/// Options that do not fit captures which are made repeatedly: each is a new image, which a monitor compares with its baseline.
const NOT_REPEATED: [&str; 3] = ["compare_to", "max_age", "upload_url"];

/// The option for content that is left out.
const BLOCK: &str = "block";

/// The option for the proxy of the team.
pub(crate) const PROXY: &str = "proxy";

/// Options whose values are long.
const WIDE: [&str; 5] = ["css", "script", "headers", "cookies", "steps"];

fn in_form() -> impl Iterator<Item = &'static CaptureOption> {
    TABLE.iter().filter(|option| !NOT_IN_FORM.contains(&option.name))
}

impl Options {
    /// The fields with the values of a form or query, and their errors. Content that this service cannot leave out is only
    /// offered if it was chosen before, and so is the option for proxies where there are none.
    pub(crate) fn of(input: &Form, errors: &[FieldError], unavailable: &[&str]) -> Self {
        let error = |name: &str| {
            let own = errors.iter().find(|field_error| field_error.field == name);
            own.map(|field_error| field_error.message.clone())
        };
        let field_of = |option: &CaptureOption| {
            let mut field = field(option, input, error(option.name));
            if option.name == BLOCK
                && let Input::Words(words) = &mut field.input
            {
                words.retain(|word| word.is_chosen || !unavailable.contains(&word.value));
            }
            field
        };
        let mut main: Vec<_> = in_form().filter(|option| option.form.rank > 0).collect();
        main.sort_by_key(|option| option.form.rank);
        let groups = Group::ALL.into_iter().map(|group| {
            let options = in_form().filter(|option| option.group == group && option.name != "url");
            let options = options.filter(|option| option.form.rank == 0);
            let options = options
                .filter(|option| option.name != PROXY || !unavailable.contains(&PROXY) || !input.get(PROXY).is_empty());
            OptionGroup::of(group.title(), options.map(field_of).collect())
        });
        Self {
            // The form around it says what it is for.
            url: Text { hint: String::new(), ..url(input, error("url")) },
            main: main.into_iter().map(field_of).collect(),
            more: groups.filter(|group| !group.fields.is_empty()).collect(),
        }
    }

    /// The fields of a monitor or a site job, whose captures are made repeatedly. An option that does not fit them is shown if it has
    /// an error.
    pub(crate) fn of_repeated(input: &Form, errors: &[FieldError], unavailable: &[&str]) -> Self {
        let mut options = Self::of(input, errors, unavailable);
        for group in &mut options.more {
            group.fields.retain(|field| !NOT_REPEATED.contains(&field.name) || field.error.is_some());
            group.contents = group.fields.iter().map(|field| field.label).collect::<Vec<_>>().join(", ");
        }
        options.more.retain(|group| !group.fields.is_empty());
        options
    }
}

/// The most characters of an object or a list that is entered in one line.
const LINE_CHARS: usize = 1500;

/// The most characters of a list with an entry on each line. Longer ones are for the API.
const LINES_CHARS: usize = 16_384;

fn field(option: &CaptureOption, form: &Form, error: Option<String>) -> OptionField {
    // An option that is left out may depend on others, as the width on the device. So defaults are only shown. Secrets
    // are not sent back, so they must be entered again.
    let default = effective_default(option, form);
    let value = Some(entered(option, form)).filter(|value| *value != default && !option.is_secret);
    let value = value.unwrap_or_default();
    let help = plain::text(option.help);
    // Placeholders are for what is used while a field is empty. Examples are a part of the hint.
    let with_example = |text: String| format!("{text} Example: {}", option.example_text().replace('\n', ", "));
    let hint = || match option.kind.syntax() {
        Some(syntax) => with_example(format!("{help} {syntax}")),
        None => with_example(help.clone()),
    };
    let bounds = |min: &str, max: &str| format!("{help} {min} to {max}.");
    let words = |words: &'static [&'static str], is_chosen: &dyn Fn(&str) -> bool| -> Vec<Word> {
        let word = |word: &&'static str| Word {
            value: word,
            text: option.word_label(word).unwrap_or(*word),
            is_chosen: is_chosen(word),
        };
        words.iter().map(word).collect()
    };
    let (hint, input) = match option.kind {
        Kind::Integer { min, max, .. } => {
            let (min, max) = (min.to_string(), max.to_string());
            (bounds(&min, &max), Input::Number { min, max, step: "1" })
        }
        Kind::Number { min, max } => {
            let (min, max) = (min.to_string(), max.to_string());
            (bounds(&min, &max), Input::Number { min, max, step: "any" })
        }
        // A form that does not show an option, or a link that leaves it out, must not turn it off.
        Kind::Flag if option.is_on_by_default() => {
            let word = |(word, text)| Word {
                value: word,
                text,
                is_chosen: word == value || (value.is_empty() && word == default),
            };
            (help, Input::Choice([("true", "On"), ("false", "Off")].map(word).into()))
        }
        Kind::Flag => (help, Input::Flag { is_checked: value == "true" }),
        Kind::Word(all) => {
            let selected = if value.is_empty() { default } else { value.as_str() };
            (help, Input::Choice(words(all, &|word| word == selected)))
        }
        Kind::Url => (hint(), Input::Line { max_length: limits::URL_BYTES }),
        Kind::RequestFailure => (hint(), Input::Line { max_length: STATUS_CHARS }),
        Kind::Selector | Kind::TimeZone | Kind::Locale | Kind::PageRanges | Kind::GrabId | Kind::ProxyId => {
            (hint(), Input::Line { max_length: option.kind.max_chars().unwrap_or_default() })
        }
        Kind::Text { max, is_multiline: false } => (hint(), Input::Line { max_length: max }),
        Kind::Text { max, is_multiline: true } => (hint(), Input::Lines { max_length: max }),
        Kind::Selectors { max } => {
            let max_length = (option.kind.max_chars().unwrap_or_default() + 1) * max;
            (with_example(format!("{help} One on each line, at most {max}.")), Input::Lines { max_length })
        }
        Kind::Words(all) => {
            let chosen: Vec<&str> = value.split(',').map(str::trim).collect();
            (help, Input::Words(words(all, &|word| chosen.contains(&word))))
        }
        Kind::Object { .. } | Kind::Sizes { .. } | Kind::Chars { .. } => {
            (hint(), Input::Line { max_length: LINE_CHARS })
        }
        Kind::Patterns { .. }
        | Kind::Objects { .. }
        | Kind::Choices { .. }
        | Kind::Headers { .. }
        | Kind::Labels { .. } => (hint(), Input::Lines { max_length: LINES_CHARS }),
        Kind::Statuses { max } => (hint(), Input::Lines { max_length: STATUS_CHARS * max }),
        Kind::Rectangle => (hint(), Input::Line { max_length: RECTANGLE_CHARS }),
    };
    OptionField {
        name: option.name,
        label: option.form_label(),
        hint,
        is_wide: WIDE.contains(&option.name) || matches!(input, Input::Words(_)),
        input,
        value,
        placeholder: if default.is_empty() { option.form.if_empty } else { default }.to_owned(),
        default_of: option.default_of,
        defaults: defaults_text(option),
        error,
    }
}

/// The text that was entered. A set of words arrives as one field for each word.
fn entered(option: &CaptureOption, input: &Form) -> String {
    if matches!(option.kind, Kind::Words(_)) {
        return input.all(option.name).collect::<Vec<_>>().join(", ");
    }
    input.get(option.name).to_owned()
}

/// What is used while an option is left empty in a form: its default, or the one that another option of the form brings.
pub(super) fn effective_default(option: &CaptureOption, form: &Form) -> &'static str {
    option.default_with(form.get(option.default_of))
}

/// All defaults of an option that depend on another one, for the script of the form.
fn defaults_text(option: &CaptureOption) -> String {
    let Some(Kind::Word(words)) = grabd_options::find(option.default_of).map(|other| other.kind) else {
        return String::new();
    };
    words.iter().map(|word| format!("{word}={}", option.default_with(word))).collect::<Vec<_>>().join(" ")
}

/// The URL field.
pub(crate) fn url(input: &Form, error: Option<String>) -> Text {
    Text {
        name: "url",
        label: "URL",
        hint: "The page must be public.".to_owned(),
        placeholder: "https://example.com",
        max_length: limits::URL_BYTES,
        input_mode: "url",
        is_required: true,
        value: input.get("url").to_owned(),
        error,
    }
}

/// Converts a form to a request. Only the syntax of numbers is checked here; the domain validates the values.
pub(crate) fn request(input: &Form) -> CaptureRequest {
    let mut request = CaptureRequest::default();
    for option in in_form() {
        let text = &entered(option, input);
        if option.kind == Kind::Flag && !option.is_on_by_default() {
            // Browsers leave out a check box that is not checked.
            request.set(option.name, Value::Flag(text == "true"));
        } else if !text.trim().is_empty() {
            match option.kind.parse(text) {
                Some(value) => _ = request.set(option.name, value),
                None => {
                    let seen = option.seen(&format!("\"{}\"", text.trim()));
                    request.unparsed.push((option.name.to_owned(), seen));
                }
            }
        }
    }
    request.url = request.url.map(with_scheme);
    request
}

/// Whether an option that is secret has a value.
pub(crate) fn has_secrets(input: &Form) -> bool {
    in_form().any(|option| option.is_secret && !input.get(option.name).trim().is_empty())
}

/// Adds `https://` if the scheme is missing. Text with a colon before its first slash is left unchanged.
pub(crate) fn with_scheme(text: String) -> String {
    let first = text.split('/').next().unwrap_or_default();
    if first.is_empty() || first.contains(':') { text } else { format!("https://{text}") }
}

/// The options as a query, which prefills the form.
pub(crate) fn to_query(spec: &CaptureSpec, environment: Environment) -> String {
    let request = spec.to_minimal_request();
    let options = in_form().filter(|option| !option.is_secret);
    let values = options.filter_map(|option| Some((option.name, option.kind.to_text(&request.get(option.name)?))));
    let values: Vec<(&str, String)> = values.collect();
    let pairs = values.iter().map(|(name, value)| (*name, value.as_str()));
    // Secret values are deleted when a grab has ended.
    let secrets = spec.secrets.given().iter().copied();
    let names = spec.omitted.keys().map(String::as_str).chain(secrets).collect::<Vec<_>>().join(",");
    let omitted = (!names.is_empty()).then_some((OMITTED, names.as_str()));
    Form::from_iter(pairs.chain([(ENVIRONMENT, environment.as_str())]).chain(omitted)).to_query()
}

/// The labels of options that the query lacks, because they are no longer kept.
pub(crate) fn omitted_labels(query: &Form) -> Vec<&'static str> {
    let names = query.get(OMITTED).split(',');
    names.filter_map(|name| in_form().find(|option| option.name == name)).map(|option| option.label).collect()
}

/// The form error for a rejected request; `Err` if the user cannot correct it in the form.
pub(crate) fn field_error(fault: Fault) -> Result<FieldError, Fault> {
    let about = |field: &'static str, message: String| Ok(FieldError { field, message });
    match fault {
        Fault::BadRequest(field) | Fault::InvalidViewport(field) => about(field.name, sentence(&field)),
        Fault::SsrfDetected(_) => about("url", "This URL is not public, so it cannot be captured.".to_owned()),
        Fault::QueueLimitExceeded { limit } => about(
            "",
            format!("The team already has {limit} captures in progress. Try again when one of them has finished."),
        ),
        Fault::QueueTooLong { wait_s } => {
            let wait = wait(wait_s);
            about("", format!("Many captures are waiting for a browser. Send the form again in {wait}."))
        }
        Fault::FailedRenderTimeExceeded { retry_after_s, .. } => {
            let wait = wait(retry_after_s);
            about("", format!("Too many captures of this account failed. Send the form again in {wait}."))
        }
        Fault::StorageFull | Fault::TeamStorageFull { .. } | Fault::AccountStorageFull { .. } => {
            about("", fault.to_string())
        }
        Fault::IdempotencyMismatch(_) | Fault::IdempotencyConflict => {
            about("", "This form was already submitted with other options. Submit it again to use these.".to_owned())
        }
        Fault::RenderBlocked(message) | Fault::RenderFailed(message) => about("url", message),
        // Each page says where to get some.
        Fault::CreditsExhausted
        | Fault::Unauthorized
        | Fault::TeamSuspended
        | Fault::LinkRefused(_)
        | Fault::KeyExpired { .. }
        | Fault::Forbidden { .. }
        | Fault::NotFound { .. }
        | Fault::RateLimitExceeded { .. }
        | Fault::WaitLimitExceeded { .. }
        | Fault::ImagesBusy { .. }
        | Fault::Unavailable
        | Fault::InternalError => Err(fault),
    }
}

/// The domain's validation error in the words of the form.
fn sentence(field: &faults::Field) -> String {
    let faults::Field { name, member, seen, allowed } = field;
    let Some(option) = grabd_options::find(name) else {
        return format!("The form must be {}.", plain::text(allowed));
    };
    if *name == "url" {
        let detail = allowed.find(',').map_or("", |at| &allowed[at..]);
        return format!("Enter {}{}.", plain::WEB_ADDRESS, plain::text(detail));
    }
    let label = match member {
        Some(member) => format!("{}: “{member}”", option.form_label()),
        None => option.form_label().to_owned(),
    };
    let allowed = if *allowed == option.kind.allowed() { option.form_allowed() } else { plain::text(allowed) };
    // A value that is an object or a list is in the field itself, and secret ones are not shown.
    let value = seen.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(seen);
    match option.is_secret || value.is_empty() || value.starts_with(['[', '{']) {
        true => format!("{label} must be {allowed}."),
        false => format!("{label} must be {allowed}; it was {value}."),
    }
}

#[cfg(test)]
mod tests;
