//! The JSON of Vault's answers.

use plugin_api::Secret;
use serde_json::Value;
use ureq::http::StatusCode;

use crate::request::Answer;

/// Characters of Vault's own words in a message.
const WORDS_MAX: usize = 200;

/// Why an answer is no success, with what helps. Only the lists of errors and warnings are repeated: nothing else of an answer is known to be no secret.
pub(crate) fn failure(answer: &Answer) -> String {
    let status = answer.status;
    let advice = match status.as_u16() {
        403 => "; the token is not valid (any more), or its policy does not allow this path",
        503 => "; Vault is sealed: unseal it",
        _ => "",
    };
    match words(answer) {
        Some(words) => format!("Vault answered {status} ({words}){advice}"),
        None => format!("Vault answered {status}{advice}"),
    }
}

/// What Vault says is wrong with a request. That a secret is not there is said with none.
pub(crate) fn words(answer: &Answer) -> Option<String> {
    let json: Value = serde_json::from_slice(answer.body.bytes()).ok()?;
    let list = |name: &str| json.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let texts: Vec<String> = list("errors")
        .iter()
        .chain(&list("warnings"))
        .filter_map(Value::as_str)
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let text: String = texts.join("; ").chars().take(WORDS_MAX).collect();
    (!text.is_empty()).then_some(text)
}

/// Whether version 2 says that the secret was there and has been removed, or destroyed.
pub(crate) fn is_removed(answer: &Answer) -> bool {
    let json: Option<Value> = serde_json::from_slice(answer.body.bytes()).ok();
    answer.status == StatusCode::NOT_FOUND
        && json.is_some_and(|json| json.pointer("/data/metadata").is_some())
}

/// The key of a secret: the field `key` in hexadecimal. `None` when it is none.
pub(crate) fn key(answer: &Answer, is_versioned: bool) -> Option<Secret> {
    let mut json: Value = serde_json::from_slice(answer.body.bytes()).ok()?;
    let place = if is_versioned { "/data/data/key" } else { "/data/key" };
    let Some(Value::String(text)) = json.pointer_mut(place).map(Value::take) else { return None };
    let text = Secret::new(text.into_bytes());
    let (pairs, rest) = text.bytes().as_chunks::<2>();
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let byte = |[high, low]: &[u8; 2]| Some(digit(*high)? << 4 | digit(*low)?);
    let key = pairs.iter().map(byte).collect::<Option<Vec<u8>>>()?;
    (rest.is_empty() && !key.is_empty()).then(|| Secret::new(key))
}

/// The names of a list, without those of folders. `None` when it is none.
pub(crate) fn names(answer: &Answer) -> Option<Vec<String>> {
    let json: Value = serde_json::from_slice(answer.body.bytes()).ok()?;
    let names = json.pointer("/data/keys")?.as_array()?.iter().filter_map(Value::as_str);
    let mut names: Vec<String> =
        names.filter(|name| !name.ends_with('/')).map(str::to_owned).collect();
    names.sort();
    Some(names)
}

/// The body of a request that keeps a key; version 2 refuses it when there is a secret of the name.
pub(crate) fn kept(key: &Secret, is_versioned: bool) -> Secret {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let (before, after): (&[u8], &[u8]) = match is_versioned {
        true => (br#"{"options":{"cas":0},"data":{"key":""#, br#""}}"#),
        false => (br#"{"key":""#, br#""}"#),
    };
    // Grown once: what is left behind by growing is not wiped.
    let mut text = Vec::with_capacity(before.len() + 2 * key.bytes().len() + after.len());
    text.extend_from_slice(before);
    for byte in key.bytes() {
        text.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    text.extend_from_slice(after);
    Secret::new(text)
}
