//! The options of a capture as form fields: rendering, parsing and error messages.

use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_domain::credentials::Environment;
use grabd_domain::{Fault, faults, limits};
use grabd_options::{CaptureOption, Group, Kind, TABLE, Value};

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
    /// The default, or an example.
    pub(crate) placeholder: String,
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

/// Options that are shown without being opened, in this order.
const MAIN: [&str; 6] = ["device", "format", "width", "height", "selector", "full_page"];

/// Options whose values are long.
const WIDE: [&str; 4] = ["css", "script", "headers", "cookies"];

fn in_form() -> impl Iterator<Item = &'static CaptureOption> {
    TABLE.iter().filter(|option| !NOT_IN_FORM.contains(&option.name))
}

impl Options {
    /// The fields with the values of a form or query, and their errors.
    pub(crate) fn of(input: &Form, errors: &[FieldError]) -> Self {
        let error = |name: &str| {
            let own = errors.iter().find(|field_error| field_error.field == name);
            own.map(|field_error| field_error.message.clone())
        };
        let field_of = |option: &CaptureOption| field(option, input, error(option.name));
        let groups = Group::ALL.into_iter().map(|group| {
            let options = in_form().filter(|option| option.group == group && option.name != "url");
            let options = options.filter(|option| !MAIN.contains(&option.name));
            OptionGroup::of(group.title(), options.map(field_of).collect())
        });
        Self {
            // The form around it says what it is for.
            url: Text { hint: String::new(), ..url(input, error("url")) },
            main: MAIN.into_iter().filter_map(grabd_options::find).map(field_of).collect(),
            more: groups.filter(|group| !group.fields.is_empty()).collect(),
        }
    }
}

/// The most characters of an object or a list that is entered in one line.
const LINE_CHARS: usize = 1500;

/// The most characters of a list with an entry on each line. Longer ones are for the API.
const LINES_CHARS: usize = 16_384;

fn field(option: &CaptureOption, input: &Form, error: Option<String>) -> OptionField {
    let default = option.default.trim_matches('"');
    // An option that is left out may depend on others, as the width on the device. So defaults are only shown. Secrets
    // are not sent back, so they must be entered again.
    let value = Some(entered(option, input)).filter(|value| *value != default && !option.is_secret);
    let value = value.unwrap_or_default();
    let hint = || match option.kind.syntax() {
        Some(syntax) => format!("{} {syntax}", option.help),
        None => option.help.to_owned(),
    };
    let bounds = |min: &str, max: &str| format!("{} {min} to {max}.", option.help);
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
            (option.help.to_owned(), Input::Choice([("true", "On"), ("false", "Off")].map(word).into()))
        }
        Kind::Flag => (option.help.to_owned(), Input::Flag { is_checked: value == "true" }),
        Kind::Word(words) => {
            let selected = if value.is_empty() { default } else { value.as_str() };
            let words = words.iter().map(|word| Word { value: word, text: word, is_chosen: *word == selected });
            (option.help.to_owned(), Input::Choice(words.collect()))
        }
        Kind::Url => (option.help.to_owned(), Input::Line { max_length: limits::URL_BYTES }),
        Kind::Selector | Kind::TimeZone | Kind::Locale | Kind::PageRanges | Kind::GrabId => {
            (option.help.to_owned(), Input::Line { max_length: option.kind.max_chars().unwrap_or_default() })
        }
        Kind::Text { max, is_multiline: false } => (option.help.to_owned(), Input::Line { max_length: max }),
        Kind::Text { max, is_multiline: true } => (option.help.to_owned(), Input::Lines { max_length: max }),
        Kind::Selectors { max } => {
            let max_length = (option.kind.max_chars().unwrap_or_default() + 1) * max;
            (format!("{} One on each line, at most {max}.", option.help), Input::Lines { max_length })
        }
        Kind::Words(words) => {
            let chosen: Vec<&str> = value.split(',').map(str::trim).collect();
            let words = words.iter().map(|word| Word { value: word, text: word, is_chosen: chosen.contains(word) });
            (option.help.to_owned(), Input::Words(words.collect()))
        }
        Kind::Object { .. } | Kind::Sizes { .. } | Kind::Chars { .. } => {
            (hint(), Input::Line { max_length: LINE_CHARS })
        }
        Kind::Patterns { .. } | Kind::Objects { .. } | Kind::Headers { .. } | Kind::Labels { .. } => {
            (hint(), Input::Lines { max_length: LINES_CHARS })
        }
        Kind::Statuses { max } => {
            let hint = format!("{} 4xx, 5xx or a number, one on each line.", option.help);
            (hint, Input::Lines { max_length: STATUS_CHARS * max })
        }
        Kind::Rectangle => {
            (format!("{} As x,y,width,height.", option.help), Input::Line { max_length: RECTANGLE_CHARS })
        }
    };
    OptionField {
        name: option.name,
        label: option.label,
        hint,
        is_wide: WIDE.contains(&option.name) || matches!(input, Input::Words(_)),
        input,
        value,
        placeholder: if default.is_empty() { example(option) } else { default.to_owned() },
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

/// The option's example as it is entered.
fn example(option: &CaptureOption) -> String {
    serde_json::from_str(option.example).map(|value| option.kind.to_text(&value)).unwrap_or_default()
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
    let names = spec.omitted.keys().map(String::as_str).collect::<Vec<_>>().join(",");
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

/// The domain's validation error with the label of the field.
fn sentence(field: &faults::Field) -> String {
    let faults::Field { name, seen, allowed } = field;
    let label = match grabd_options::find(name) {
        Some(option) => option.label.to_owned(),
        None => "The form".to_owned(),
    };
    match (*name, seen.is_empty()) {
        ("url", true) => "Enter the URL of a page.".to_owned(),
        (_, true) => format!("{label} must be {allowed}."),
        (_, false) => format!("{label} must be {allowed}; it was {seen}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(options: &Options) -> Vec<&OptionField> {
        options.main.iter().chain(options.more.iter().flat_map(|group| &group.fields)).collect()
    }

    #[test]
    fn every_option_is_in_the_form_once_and_examples_can_be_entered() {
        let options = Options::of(&Form::default(), &[]);
        let mut names: Vec<_> = all(&options).iter().map(|field| field.name).collect();
        names.push("url");
        names.sort_unstable();
        let mut expected: Vec<_> = in_form().map(|option| option.name).collect();
        expected.sort_unstable();
        assert_eq!(names, expected);
        for option in in_form() {
            let example = example(option);
            assert!(option.kind.parse(&example).is_some_and(|value| option.check(&value).is_ok()), "{example}");
        }
    }

    #[test]
    fn words_are_read_from_check_boxes_and_from_a_list() {
        let expected = Some(vec!["pdf".to_owned(), "markdown".to_owned()]);
        for query in ["also=pdf&also=markdown", "also=pdf,+markdown"] {
            assert_eq!(parse(query).also, expected, "{query}");
            let options = Options::of(&Form::parse(query.as_bytes()), &[]);
            let fields = all(&options);
            let also = fields.iter().find(|field| field.name == "also").unwrap();
            let Input::Words(words) = &also.input else { panic!("a set of words") };
            let chosen: Vec<_> = words.iter().filter(|word| word.is_chosen).map(|word| word.value).collect();
            assert_eq!(chosen, ["markdown", "pdf"], "{query}");
        }
    }

    fn parse(query: &str) -> CaptureRequest {
        request(&Form::parse(query.as_bytes()))
    }

    #[test]
    fn empty_fields_are_omitted_from_the_request() {
        let request = parse("url=&width=+&height=&format=&delay_ms=&selector=");
        assert_eq!((request.url, request.width, request.selector), (None, None, None));
        assert!(request.unparsed.is_empty());
        assert_eq!(request.full_page, Some(false));
    }

    #[test]
    fn invalid_numbers_are_passed_on_as_unparsed() {
        let request = parse("url=https://example.com/&width=wide&height=7e2&delay_ms=500");
        assert_eq!((request.width, request.height, request.delay_ms), (None, None, Some(500)));
        let seen: Vec<_> = request.unparsed.iter().map(|(name, seen)| (&**name, &**seen)).collect();
        assert_eq!(seen, [("width", "\"wide\""), ("height", "\"7e2\"")]);
        let fault = CaptureSpec::parse(&request).unwrap_err();
        let FieldError { field, message } = field_error(fault).unwrap();
        assert_eq!((field, &*message), ("width", "Width must be an integer from 320 to 1920; it was \"wide\"."));
    }

    #[test]
    fn missing_scheme_becomes_https() {
        for (text, url) in [
            ("example.com", "https://example.com"),
            (" example.com/a?b=c:d ", "https://example.com/a?b=c:d"),
            ("http://example.com", "http://example.com"),
            ("javascript:alert(1)", "javascript:alert(1)"),
            ("localhost:8080/", "localhost:8080/"),
            ("//example.com", "//example.com"),
        ] {
            assert_eq!(with_scheme(text.trim().to_owned()), url);
        }
    }

    #[test]
    fn option_that_is_on_by_default_is_turned_off_only_explicitly() {
        assert_eq!(parse("url=https://example.com/").javascript, None);
        assert_eq!(parse("url=https://example.com/&javascript=true").javascript, Some(true));
        let request = parse("url=https://example.com/&javascript=false&clip=1,2,3,4&fail_on_status=4xx%0D%0A503");
        assert_eq!(request.javascript, Some(false));
        assert_eq!(request.fail_on_status, Some(vec!["4xx".to_owned(), "503".to_owned()]));
        let spec = CaptureSpec::parse(&request).unwrap();
        let query = to_query(&spec, Environment::Live);
        assert_eq!(CaptureSpec::parse(&parse(&query)).unwrap(), spec, "{query}");
        let invalid = CaptureSpec::parse(&parse("url=https://example.com/&clip=1,2")).unwrap_err();
        assert!(field_error(invalid).unwrap().message.starts_with("Clip must be an object with"));
    }

    #[test]
    fn query_of_a_spec_prefills_the_form() {
        let query = "url=https%3A%2F%2Fexample.com%2F%3Fa%3Db%26c&width=800&height=600&format=webp&full_page=true\
                     &delay_ms=250&selector=a%5Bhref%3D%22x%22%5D&environment=test";
        let spec = CaptureSpec::parse(&parse(query)).unwrap();
        assert_eq!(to_query(&spec, Environment::Test), query);
        let options = Options::of(&Form::parse(query.as_bytes()), &[]);
        let fields = all(&options);
        let field = |name: &str| fields.iter().find(|field| field.name == name).unwrap();
        assert_eq!(field("width").value, "800");
        assert!(matches!(field("full_page").input, Input::Flag { is_checked: true }));
        let Input::Choice(formats) = &field("format").input else { panic!("a choice") };
        assert!(formats[2].value == "webp" && formats[2].is_chosen);
        let open: Vec<_> = options.more.iter().filter(|group| group.is_open).map(|group| group.title).collect();
        assert_eq!(open, ["Timing"], "the delay differs from its default");
    }

    #[test]
    fn query_names_options_that_are_no_longer_kept() {
        let long = "x".repeat(300);
        let spec = CaptureSpec::parse(&parse(&format!("url=https://example.com/&css={long}&script={long}"))).unwrap();
        let kept = spec.without_long_options(|_| "digest".to_owned()).unwrap();
        let query = to_query(&kept, Environment::Live);
        assert!(!query.contains("xxx"), "{query}");
        assert_eq!(omitted_labels(&Form::parse(query.as_bytes())), ["CSS", "Script"]);
        assert_eq!(omitted_labels(&Form::parse(to_query(&spec, Environment::Live).as_bytes())), [""; 0]);
        assert_eq!(omitted_labels(&Form::parse(b"omitted=<b>,css,unknown")), ["CSS"]);
    }

    #[test]
    fn secrets_are_read_from_the_form_and_not_sent_back() {
        let query = "url=https://example.com/&headers=X-Token:+hidden-1&cookies=a=hidden-2;+path=/x&basic_auth=me:hidden-3\
                     &geolocation=48.2,16.37&block_types=image,+font&width=wide";
        let request = parse(query);
        assert!(request.headers.is_some() && request.cookies.is_some() && request.basic_auth.is_some());
        let options = Options::of(&Form::parse(query.as_bytes()), &[]);
        let fields = all(&options);
        assert!(fields.iter().all(|field| !field.value.contains("hidden")));
        let value = |name: &str| fields.iter().find(|field| field.name == name).unwrap().value.as_str();
        assert_eq!((value("geolocation"), value("block_types")), ("48.2,16.37", "image, font"));
        let spec = CaptureSpec::parse(&CaptureRequest { unparsed: Vec::new(), ..request }).unwrap();
        let prefilled = to_query(&spec, Environment::Test);
        assert!(prefilled.contains("geolocation=48.2%2C16.37") && !prefilled.contains("hidden"), "{prefilled}");
        let fault = CaptureSpec::parse(&parse("url=https://example.com/&headers=hidden")).unwrap_err();
        assert!(!field_error(fault).unwrap().message.contains("hidden\""));
    }
}
