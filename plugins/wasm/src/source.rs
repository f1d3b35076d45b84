//! The text of a routine or library as the bytes of a module: base64, hexadecimal digits, or WebAssembly's text form.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::failure::Failure;

/// The first bytes of a module, as hexadecimal digits.
const MAGIC_DIGITS: &str = "0061736d";

/// Base64 with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The bytes that a text stands for. The interpreter reads the text form itself.
pub(crate) fn module_bytes(text: &str) -> Result<Vec<u8>, Failure> {
    let text = text.trim();
    if text.starts_with('(') || text.starts_with(";;") {
        return Ok(text.as_bytes().to_vec());
    }
    let plain: String = text.split_whitespace().collect();
    let digits = plain.strip_prefix("0x").unwrap_or(&plain);
    let bytes = if digits.to_ascii_lowercase().starts_with(MAGIC_DIGITS) {
        from_hex(digits)
    } else {
        BASE64.decode(&plain).ok()
    };
    match bytes {
        Some(bytes) if bytes.starts_with(b"\0asm") => Ok(bytes),
        Some(_) | None => {
            let what =
                "the text is not a module in base64, hexadecimal digits or WebAssembly's text form";
            Err(Failure::guest(what))
        }
    }
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::module_bytes;

    #[test]
    fn a_module_is_written_in_three_forms() {
        let module = b"\0asm\x01\0\0\0".to_vec();
        for text in [" AGFzbQEAAAA=\n", "AGFzbQEA\nAAA", "0x0061736d01000000", "0061736D 01000000"]
        {
            assert_eq!(module_bytes(text).expect(text), module);
        }
        assert_eq!(module_bytes(" (module)").expect("text"), b"(module)");
        for text in ["", "hello", "0x0061736d0", "0061736d0g", "AAAA", "0x6162"] {
            assert!(module_bytes(text).is_err(), "{text}");
        }
    }
}
