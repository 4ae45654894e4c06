//! Types text and presses keys, as a user does.

use chromiumoxide::cdp::browser_protocol::input::{DispatchKeyEventParams, DispatchKeyEventType, InsertTextParams};
use grabd_domain::capture::{HeldKey, KeyPress};

use crate::cdp::CallError;
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;

/// A key of a keyboard.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    /// Its name in events, which is the character that it types.
    key: String,
    /// Its place on the keyboard.
    code: String,
    /// Its number in events.
    number: i64,
    /// What it types.
    text: Option<String>,
}

/// Types a text into the focused field, in place of what is selected there.
///
/// # Errors
/// If the browser does not answer.
pub(super) async fn insert_text(context: &CaptureContext<'_>, text: &str) -> Result<(), CaptureError> {
    send(context, InsertTextParams::new(text)).await
}

/// Presses a key while others are held.
///
/// # Errors
/// If the browser does not answer.
pub(super) async fn press(context: &CaptureContext<'_>, press: &KeyPress) -> Result<(), CaptureError> {
    let mut modifiers = 0;
    for &held in &press.held {
        modifiers |= bit(held);
        send(context, event(DispatchKeyEventType::RawKeyDown, &held_key(held), modifiers)).await?;
    }
    let key = key(press);
    let down = if key.text.is_some() { DispatchKeyEventType::KeyDown } else { DispatchKeyEventType::RawKeyDown };
    send(context, event(down, &key, modifiers)).await?;
    send(context, event(DispatchKeyEventType::KeyUp, &key, modifiers)).await?;
    for &held in press.held.iter().rev() {
        modifiers &= !bit(held);
        send(context, event(DispatchKeyEventType::KeyUp, &held_key(held), modifiers)).await?;
    }
    Ok(())
}

/// Sends a command to the page.
///
/// # Errors
/// If the browser does not answer.
pub(super) async fn send<C: chromiumoxide::Command>(
    context: &CaptureContext<'_>,
    command: C,
) -> Result<(), CaptureError> {
    match context.tab.client.call(Some(&context.tab.session), command).await {
        // The document was replaced, which the caller notices by itself.
        Ok(_) | Err(CallError::Refused { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn event(kind: DispatchKeyEventType, key: &Key, modifiers: i64) -> DispatchKeyEventParams {
    let text = key.text.clone().filter(|_| kind == DispatchKeyEventType::KeyDown);
    DispatchKeyEventParams {
        modifiers: Some(modifiers),
        unmodified_text: text.clone(),
        text,
        key: Some(key.key.clone()),
        code: Some(key.code.clone()),
        windows_virtual_key_code: Some(key.number),
        ..DispatchKeyEventParams::new(kind)
    }
}

/// The bit of a held key in events.
const fn bit(held: HeldKey) -> i64 {
    match held {
        HeldKey::Alt => 1,
        HeldKey::Control => 2,
        HeldKey::Meta => 4,
        HeldKey::Shift => 8,
    }
}

fn held_key(held: HeldKey) -> Key {
    let (key, code, number) = match held {
        HeldKey::Alt => ("Alt", "AltLeft", 18),
        HeldKey::Control => ("Control", "ControlLeft", 17),
        HeldKey::Meta => ("Meta", "MetaLeft", 91),
        HeldKey::Shift => ("Shift", "ShiftLeft", 16),
    };
    Key { key: key.to_owned(), code: code.to_owned(), number, text: None }
}

/// The key of a US keyboard.
fn key(press: &KeyPress) -> Key {
    let is_command = press.held.iter().any(|held| *held != HeldKey::Shift);
    let named = |number: i64| Key { key: press.key.clone(), code: press.key.clone(), number, text: None };
    match press.key.as_str() {
        "Enter" => Key { text: (!is_command).then(|| "\r".to_owned()), ..named(13) },
        "Tab" => named(9),
        "Escape" => named(27),
        "Backspace" => named(8),
        "Delete" => named(46),
        "Space" => Key { key: " ".to_owned(), text: (!is_command).then(|| " ".to_owned()), ..named(32) },
        "PageUp" => named(33),
        "PageDown" => named(34),
        "End" => named(35),
        "Home" => named(36),
        "ArrowLeft" => named(37),
        "ArrowUp" => named(38),
        "ArrowRight" => named(39),
        "ArrowDown" => named(40),
        "Insert" => named(45),
        name => match name.strip_prefix('F').and_then(|number| number.parse::<i64>().ok()) {
            Some(number) => named(111 + number),
            None => character(name, press.held.contains(&HeldKey::Shift), is_command),
        },
    }
}

/// The key of a letter or a digit.
fn character(name: &str, is_shift: bool, is_command: bool) -> Key {
    let upper = name.to_ascii_uppercase();
    let number = upper.bytes().next().map_or(0, i64::from);
    let is_digit = upper.bytes().all(|byte| byte.is_ascii_digit());
    let key = match (is_shift, is_command) {
        (true, _) => upper.clone(),
        (false, true) => name.to_ascii_lowercase(),
        (false, false) => name.to_owned(),
    };
    let code = format!("{}{upper}", if is_digit { "Digit" } else { "Key" });
    Key { text: (!is_command).then(|| key.clone()), key, code, number }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, held: &[HeldKey]) -> (String, String, i64, Option<String>) {
        let Key { key, code, number, text } = key(&KeyPress { key: name.to_owned(), held: held.to_vec() });
        (key, code, number, text)
    }

    #[test]
    fn keys_are_those_of_a_us_keyboard() {
        let expected = |key: &str, code: &str, number: i64, text: Option<&str>| {
            (key.to_owned(), code.to_owned(), number, text.map(str::to_owned))
        };
        assert_eq!(of("Enter", &[]), expected("Enter", "Enter", 13, Some("\r")));
        assert_eq!(of("Tab", &[HeldKey::Shift]), expected("Tab", "Tab", 9, None));
        assert_eq!(of("Space", &[]), expected(" ", "Space", 32, Some(" ")));
        assert_eq!(of("F5", &[]), expected("F5", "F5", 116, None));
        assert_eq!(of("F", &[]), expected("F", "KeyF", 70, Some("F")));
        assert_eq!(of("7", &[]), expected("7", "Digit7", 55, Some("7")));
        assert_eq!(of("a", &[HeldKey::Shift]), expected("A", "KeyA", 65, Some("A")));
        assert_eq!(of("A", &[HeldKey::Control]), expected("a", "KeyA", 65, None));
    }
}
